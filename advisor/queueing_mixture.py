"""Latencies as mixtures of gamma distributions above a least value each: their percentiles, and whether a share keeps a limit.

It must not know what the latencies are of. To ask about one limit takes one look, where percentiles take a search each.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.queueing_chain import Floats

QUANTILES = (0.5, 0.95, 0.99)
_TOLD = 1.2e-3
"""By which part, above the least possible time, a told percentile may lie over the true one: cells of 26 %, twice cut in 15."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """One latency over all requests, seconds."""

    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class Mixture:
    """Gamma distributions above a least value each: weights that sum to one, least values, means and variances above them."""

    weight: Floats
    least: Floats
    mean: Floats
    variance: Floats

    def below(self, values: Floats) -> Floats:
        """Return the shares below values.

        Args:
            values: in any order.
        """
        from scipy import special

        gamma: Any = special.gammainc
        spread = (self.variance > 1e-12 * np.square(self.least + self.mean)) & (self.mean > 0)
        over = values[:, None] - self.least[spread]
        shape = np.square(self.mean[spread]) / self.variance[spread]
        scale = self.variance[spread] / self.mean[spread]
        smooth: Floats = gamma(shape, np.maximum(over, 0.0) / scale) @ self.weight[spread]
        sharp = (values[:, None] >= (self.least + self.mean)[~spread] * (1 - 1e-9)) @ self.weight[~spread]
        return smooth + sharp

    def keeps(self, limit_s: float | None, share: float) -> bool:
        """Return whether a share keeps a limit; if so, its percentile as `percentiles` tells it does, too.

        Args:
            limit_s: seconds; None is always kept.
            share: between 0 and 1.
        """
        if limit_s is None:
            return True
        low = float(np.min(self.least))
        return float(self.below(np.array([low + (limit_s - low) / (1 + _TOLD)]))[0]) >= share

    def average(self) -> float:
        """Return the mean."""
        return float(np.sum(self.weight * (self.least + self.mean)))

    def percentiles(self) -> Percentiles:
        """Return mean and percentiles, the latter to about a part in 1,000."""
        low, top = float(np.min(self.least)), float(np.max(self.least + self.mean + 60.0 * np.sqrt(self.variance)))
        grid: Floats = np.append(low, low + (top - low) * np.geomspace(1e-4, 1.0, 40))
        shares = self.below(grid)
        return Percentiles(self.average(), *(self._quantile(share, grid, shares) for share in QUANTILES))

    def _quantile(self, share: float, grid: Floats, shares: Floats) -> float:
        """Return the least value with a share below it, in ever finer grids."""
        for _ in range(2):
            place = min(int(np.searchsorted(shares, share)), len(grid) - 1)
            if place == 0:
                return float(grid[0])
            grid = np.linspace(float(grid[place - 1]), float(grid[place]), 16)
            shares = self.below(grid)
        return float(grid[min(int(np.searchsorted(shares, share)), len(grid) - 1)])


def joined(parts: list[tuple[Floats, Floats, Floats, Floats]]) -> Mixture:
    """Return what several parts are together, those without weight left out.

    Args:
        parts: weights, least values, means and variances above them, as `Mixture` has them; weights need not sum to one.
    """
    weight, least, mean, variance = (np.concatenate(column) for column in zip(*parts, strict=True))
    kept = weight > 1e-9
    weight = weight[kept]
    return Mixture(weight / np.sum(weight), least[kept], mean[kept], variance[kept])
