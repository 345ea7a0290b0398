"""A step against the rate of the link, planned again at each rate, and the rate at which the best pool alone is as fast."""

from collections.abc import Callable
from itertools import pairwise
from math import isfinite

from advisor.split.judgement import Curves
from core.split import BreakEven, Curve

FOURFOLDS = (-6, 4)
"""The curve goes from a four-thousandth of the present rate to 64 times of it."""
CLOSE = 0.01
"""A turning point is told to within this fraction."""
_GBIT = 0.125e9


def bandwidth_of(seconds: Callable[[float], float], now: float, single_s: float) -> Curves:
    """Return the curve of a step against the rate of the link, and where it meets the best single pool.

    Args:
        seconds: of a step, planned for so many bytes a second; never longer for more.
        now: bytes a second of the link.
        single_s: of the best pool alone.
    """
    points = [(now * 4.0**power, seconds(now * 4.0**power)) for power in range(*FOURFOLDS)]
    kept = tuple(point for point in points if isfinite(point[1]))
    turn = _turn(seconds, points, single_s)
    curve = Curve("bandwidth", kept, now, None, turn, single_s)
    if turn is None:
        words = "at any rate of the link the split is faster" if seconds(now) < single_s else "no link makes the split faster"
        return (curve,), (BreakEven("bandwidth", "B/s", now, None, f"{words} than the best pool alone"),)
    words = f"from {turn / _GBIT:.3g} Gbit/s on the split is faster than the best pool alone (now {now / _GBIT:.3g})"
    return (curve,), (BreakEven("bandwidth", "B/s", now, turn, words),)


def _turn(seconds: Callable[[float], float], points: list[tuple[float, float]], single_s: float) -> float | None:
    """Return the rate at which the step is as long as the single's, between two points of the curve; None outside of it.

    False position on seconds against one over the rate, in which what a link takes is a line (Illinois variant).
    """
    crossing = next(((a, b) for a, b in pairwise(points) if a[1] >= single_s > b[1]), None)
    if crossing is None:
        return None
    (slow, slow_s), (fast, fast_s) = crossing
    if not isfinite(slow_s):
        slow_s = 2.0 * single_s
    while fast / slow > 1.0 + CLOSE:
        part = (slow_s - single_s) / (slow_s - fast_s)
        middle = 1.0 / (1.0 / slow + min(max(part, 0.1), 0.9) * (1.0 / fast - 1.0 / slow))
        middle_s = seconds(middle)
        if middle_s >= single_s:
            slow, slow_s = middle, middle_s
        else:
            fast, fast_s = middle, middle_s
    return (slow * fast) ** 0.5
