"""Drift: does a row of samples climb or fall over the probe, as it does when a clock falls or a cache fills?

A median hides a trend: half of the samples before and half behind it. So the slope is estimated robustly, and it is believed
only when the order of the samples can hardly be chance.
"""

from collections.abc import Sequence
from math import sqrt

from core.statistics import median

DRIFT_SHARE = 0.05
"""Change over the probe, as a share of the median, from which on it is flagged."""
SURE_Z = 3.0
"""Standard errors of Kendall's statistic: one steady probe in four hundred would be flagged by chance."""
FEWEST = 8
MOST = 200
"""Pairs grow with the square of the samples; longer rows are thinned evenly."""


def relative_drift(samples: Sequence[float]) -> float:
    """Return the change from the first to the last sample as a fraction of the median, 0 when there are too few samples.

    Source: Theil (1950) and Sen (1968), median of the slopes of all pairs.
    """
    kept = _thinned(samples)
    middle = median(kept) if kept else 0.0
    if len(kept) < FEWEST or middle <= 0:
        return 0.0
    slopes = [(kept[j] - kept[i]) / (j - i) for i in range(len(kept)) for j in range(i + 1, len(kept))]
    return median(slopes) * (len(kept) - 1) / middle


def kendall_z(samples: Sequence[float]) -> float:
    """Return how many standard errors the count of rising over falling pairs is away from chance, 0 with too few samples.

    Source: Mann (1945) and Kendall (1975); without ties var(S) = n (n - 1) (2 n + 5) / 18.
    """
    kept = _thinned(samples)
    n = len(kept)
    if n < FEWEST:
        return 0.0
    score = sum((kept[j] > kept[i]) - (kept[j] < kept[i]) for i in range(n) for j in range(i + 1, n))
    if score == 0:
        return 0.0
    return (score - (1 if score > 0 else -1)) / sqrt(n * (n - 1) * (2 * n + 5) / 18)


def drift_doubt(samples: Sequence[float]) -> str:
    """Return what to say when samples drift, else nothing."""
    change = relative_drift(samples)
    if abs(change) <= DRIFT_SHARE or abs(kendall_z(samples)) < SURE_Z:
        return ""
    return f"drift: samples became {abs(change):.0%} {'slower' if change > 0 else 'faster'} over the probe"


def _thinned(samples: Sequence[float]) -> list[float]:
    step = max(1, -(-len(samples) // MOST))
    return list(samples[::step])
