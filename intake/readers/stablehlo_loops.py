"""How often a loop runs, from what its condition compares before the first pass and after the next two."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.symbols import Extent
from intake.readers.symbolic import Extents


@dataclass(frozen=True, slots=True)
class Counter:
    """What a loop's condition says at one time.

    Args:
        holds: whether another pass follows.
        left, right: what it compares; None where that is not known.
        direction: of the comparison, as StableHLO writes it.
    """

    holds: bool
    left: Extent | None
    right: Extent | None
    direction: str


def count_of(counters: Sequence[Counter | None], extents: Extents) -> Extent | None:
    """Return how many passes a loop makes.

    Args:
        counters: before the first pass, after it and after the second, as far as there was one.
        extents: the program's symbols.

    Returns:
        The count; None where it depends on values, or the counter does not grow by equal steps.
    """
    if any(one is None for one in counters):
        return None
    told = [one for one in counters if one is not None]
    if not told[-1].holds:
        return len(told) - 1
    gaps = [_gap(one) for one in told]
    if len(told) < 3 or any(gap is None for gap in gaps):
        return None
    first, second, third = (gap for gap in gaps if gap is not None)
    step = first - second
    if second - third != step or not isinstance(step, int) or step == 0:
        return None
    towards = {"LT": 1, "LE": 1, "GT": -1, "GE": -1, "NE": 1 if step > 0 else -1}.get(told[0].direction)
    if towards is None or step * towards <= 0:
        return None
    distance = first * towards + (1 if told[0].direction in {"LE", "GE"} else 0)
    return extents.rounded_up(distance, abs(step))


def _gap(one: Counter) -> Extent | None:
    return None if one.left is None or one.right is None else one.right - one.left
