"""Statistics of raw samples; nothing is ever dropped, doubts are flagged instead."""

from collections.abc import Sequence
from math import ceil, floor


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
