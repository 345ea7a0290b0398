"""A step against the rate of the link, planned again at each rate, and the rate at which the best pool alone is as fast."""

from collections.abc import Callable
from math import isfinite

from advisor.split.data_parallel_curves import turning_bandwidth
from advisor.split.judgement import Curves
from core.split import Curve

FOURFOLDS = (-6, 4)
"""The curve goes from a four-thousandth of the present rate to 64 times of it."""
CLOSE = 0.01
"""A turning point is told to within this fraction."""


def bandwidth_of(seconds: Callable[[float], float], now: float, single_s: float) -> Curves:
    """Return the curve of a step against the rate of the link, and where it meets the best single pool.

    Args:
        seconds: of a step, planned for so many bytes a second; never longer for more.
        now: bytes a second of the link.
        single_s: of the best pool alone.
    """
    points = [(now * 4.0**power, seconds(now * 4.0**power)) for power in range(*FOURFOLDS)]
    turn = turning_bandwidth(seconds, single_s, now, 0.0, CLOSE)
    kept = tuple(point for point in points if isfinite(point[1]))
    return (Curve("bandwidth", kept, now, None, turn.at, single_s),), (turn,)
