"""What a split costs and draws, and at which price of a pool the choice turns."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from advisor.charges import cost_of, energy_of
from advisor.split.sides import Side
from core.quantity import Quantity, total
from core.split import BreakEven, Single, pool_words
from core.workload import Workload

PRICES = 400
"""Points of a pool's price, from a hundredth to a hundred times of it, between which the choice may turn."""
SPAN = 100.0
_HALVINGS = 40


def cost_of_split(workload: Workload, used: Sequence[Side], seconds: Quantity) -> Quantity | None:
    """Return US dollars of the job (or 1,000 steps) on all pools together; None where one has no price.

    Args:
        workload: the job.
        used: pools with a share.
        seconds: of a step.
    """
    parts = [cost_of(workload, side.joined, seconds) for side in used]
    known = tuple(part for part in parts if part is not None)
    return total(known, correlation=1.0) if known and len(known) == len(parts) else None


def energy_of_split(workload: Workload, used: Sequence[Side], seconds: Quantity) -> Quantity | None:
    """Return joules of the job (or 1,000 steps) on all pools together, waiting as working; None where one is unknown.

    Args:
        workload: the job.
        used: pools with a share.
        seconds: of a step.
    """
    parts = [energy_of(workload, side.chip, side.pool.count, seconds) for side in used]
    known = tuple(part for part in parts if part is not None)
    return total(known) if known and len(known) == len(parts) else None


def price_break_even(
    side: Side, used: Sequence[Side], seconds: float, singles: Sequence[Single], least_saving: float
) -> BreakEven | None:
    """Return the price of one pool from which (or up to which) the split is the cheaper choice; None where prices are not known.

    Its own price moves both the split and that pool alone, so the turning point is looked for, not solved for.

    Args:
        side: the pool whose price is moved.
        used: pools with a share; it is one of them.
        seconds: of a step of the split.
        singles: every pool alone; those that are not feasible do not count.
        least_saving: fraction that the split must save.
    """
    now = side.joined.price_usd_per_h
    rest = [other.joined.price_usd_per_h for other in used if other is not side]
    alone = [(one.seconds.mid, one.pool) for one in singles if one.feasible and one.seconds is not None]
    if not now or any(price is None for price in rest) or not alone or any(pool.price_usd_per_h is None for _, pool in alone):
        return None
    others = sum(price for price in rest if price is not None)

    def excess(price: float) -> float:
        """Return what the split costs beyond what it may, in dollars an hour of a second's step; alone it moves in proportion."""
        moved = price / now if now else 1.0
        least = min(one_s * (pool.price_usd_per_h or 0.0) * (moved if pool == side.pool else 1.0) for one_s, pool in alone)
        return seconds * (price + others) - (1.0 - least_saving) * least

    at = _turn(excess, now)
    name, unit = pool_words(side.pool), "USD/h"
    worth = excess(now) <= 0
    if at is None:
        words = f"in cost the split is {'always' if worth else 'never'} worth it, at any price of {name}"
        return BreakEven("price", unit, now, None, f"{words} from a hundredth to a hundred times of it")
    side_of_it = "up to" if excess(at * 0.99) <= 0 else "from"
    words = f"in cost the split is worth it {side_of_it} {at:.4g} USD an hour for {name} (now {now:.4g})"
    return BreakEven("price", unit, now, at, words)


def price_break_evens(
    used: Sequence[Side], seconds: float, singles: Sequence[Single], least_saving: float
) -> tuple[BreakEven, ...]:
    """Return where the price of each pool turns the choice in cost; one sentence where that of none does.

    Args:
        used: pools with a share.
        seconds: of a step of the split.
        singles: every pool alone.
        least_saving: fraction that the split must save.
    """
    found = [price_break_even(side, used, seconds, singles, least_saving) for side in used]
    known = tuple(one for one in found if one is not None)
    if len(known) > 1 and all(one.at is None for one in known) and all("never" in one.words for one in known):
        words = "in cost the split is never worth it, at any price of one of the pools from a hundredth to a hundred times of it"
        return (BreakEven("price", known[0].unit, None, None, words),)
    return known


def _turn(excess: Callable[[float], float], now: float) -> float | None:
    """Return the price nearest to the present one at which the sign changes, or None within the span."""
    grid = [now * SPAN ** (2.0 * index / PRICES - 1.0) for index in range(PRICES + 1)]
    turns = [(low, high) for low, high in pairwise(grid) if (excess(low) <= 0) != (excess(high) <= 0)]
    if not turns:
        return None
    low, high = min(turns, key=lambda pair: abs(_log_distance(pair[0], now)))
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if (excess(low) <= 0) == (excess(middle) <= 0) else (low, middle)
    return (low * high) ** 0.5


def _log_distance(price: float, now: float) -> float:
    return max(price / now, now / price)
