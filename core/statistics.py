"""Statistics of raw samples; nothing is ever dropped, doubts are flagged instead."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

LEAST_CHANGE = 0.05
"""A change of a median below this, as a fraction, is never told: other sessions of a calm machine differ by as much."""


def quantile(samples: Sequence[float], fraction: float) -> float:
    """Return a quantile by linear interpolation between order statistics.

    Args:
        samples: at least one value, any order.
        fraction: 0 to 1.

    Raises:
        ValueError: no samples, or a fraction outside 0 to 1.

    Source: Hyndman and Fan (1996), definition 7.
    """
    if not samples or not 0 <= fraction <= 1:
        raise ValueError(f"got {len(samples)} samples at fraction {fraction}; expected at least one and 0 to 1")
    ordered = sorted(samples)
    at = fraction * (len(ordered) - 1)
    low, high = floor(at), ceil(at)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def median(samples: Sequence[float]) -> float:
    """Return the median; raises ValueError without samples."""
    return quantile(samples, 0.5)


def iqr(samples: Sequence[float]) -> float:
    """Return the distance between the quartiles; raises ValueError without samples."""
    return quantile(samples, 0.75) - quantile(samples, 0.25)


def range_share(samples: Sequence[float]) -> float:
    """Return greatest less least over the median; 0 where that is not positive, ValueError without samples."""
    middle = median(samples)
    return (max(samples) - min(samples)) / middle if middle > 0 else 0.0


def modified_z_scores(samples: Sequence[float]) -> tuple[float, ...]:
    """Return 0.6745 (x - median) / MAD for each sample; zeros when the MAD is zero.

    Source: Iglewicz and Hoaglin (1993), How to Detect and Handle Outliers.
    """
    middle = median(samples)
    deviation = median([abs(x - middle) for x in samples])
    if deviation == 0:
        return tuple(0.0 for _ in samples)
    return tuple(0.6745 * (x - middle) / deviation for x in samples)


def slope_samples(series: Sequence[tuple[int, Sequence[int]]]) -> tuple[float, ...]:
    """Return seconds for one more copy, pairing the samples of the shallowest and the deepest program.

    Samples of all depths are taken in turn, so that the i-th of each saw the same state of the machine:
    the difference of a pair is free of dispatch cost and of slow drift.

    Args:
        series: (depth, samples in ns) for each program; one program alone is divided by its depth.

    Raises:
        ValueError: no program, or a single one of depth 0.
    """
    ordered = sorted(series, key=lambda item: item[0])
    if not ordered or (len(ordered) == 1 and ordered[0][0] == 0):
        raise ValueError("got no program with a copy of the subject; expected at least one of depth 1 or more")
    if len(ordered) == 1:
        depth, samples = ordered[0]
        return tuple(ns / depth * 1e-9 for ns in samples)
    (low_depth, low), (high_depth, high) = ordered[0], ordered[-1]
    return tuple((b - a) / (high_depth - low_depth) * 1e-9 for a, b in zip(low, high, strict=False))


def relative_error_of_median(samples: Sequence[float]) -> float:
    """Return the standard error of the median as a fraction of it, from the spread of the quartiles.

    Args:
        samples: at least two positive values.

    Source: normal theory, se(median) = 1.2533 sigma / sqrt(n) with sigma = IQR / 1.349.
    """
    middle = median(samples)
    if len(samples) < 2 or middle <= 0:
        return 1.0
    return 1.2533 * iqr(samples) / 1.349 / len(samples) ** 0.5 / middle


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures that stand for raw samples wherever they are shown; all in the unit of the samples, `count` excepted."""

    median: float
    iqr: float
    minimum: float
    count: int

    @property
    def spread(self) -> float:
        """Distance between the quartiles as a fraction of the median; 0 where the median is not positive."""
        return self.iqr / self.median if self.median > 0 else 0.0


def summary(samples: Sequence[float]) -> Summary:
    """Return the figures of raw samples; raises ValueError without samples."""
    return Summary(median(samples), iqr(samples), min(samples), len(samples))


@dataclass(frozen=True, slots=True)
class Change:
    """How one median stands to another.

    Args:
        fraction: now / before - 1; positive is slower where seconds are compared.
        noise: what the noise alone may do, as a fraction of the median before.
    """

    fraction: float
    noise: float

    @property
    def beyond_noise(self) -> bool:
        """Whether it is more than `LEAST_CHANGE` and more than the noise."""
        return abs(self.fraction) > max(LEAST_CHANGE, self.noise)


def change(before: Summary, now: Summary) -> Change | None:
    """Return how a median has changed against one taken in another session; None where one is not positive.

    The noise is the wider of the two interquartile ranges. Samples of one session share its state, so the standard error of
    their median, which falls with their count, says little of what the next session gives; the spread of single samples does.
    """
    if before.median <= 0 or now.median <= 0:
        return None
    return Change(now.median / before.median - 1, max(before.iqr, now.iqr) / before.median)


def against_peers(mine: Summary, peers: Sequence[Summary]) -> Change | None:
    """Return how a device stands to others of its kind: to the median of their medians; None without peers.

    Args:
        mine: of the device.
        peers: of the others, one each.

    The noise is the widest of: its own interquartile range, that of the medians of its peers, and the middle one of theirs.
    """
    medians = [peer.median for peer in peers]
    if not medians or mine.median <= 0 or (middle := median(medians)) <= 0:
        return None
    noise = max(mine.iqr, iqr(medians), median([peer.iqr for peer in peers]))
    return Change(mine.median / middle - 1, noise / middle)
