"""What a split costs and draws, and at which price of a pool the choice turns."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from advisor.charges import cost_of, energy_of
from advisor.split.sides import Side
from core.quantity import Quantity, total
from core.split import BreakEven, Single, pool_words
from core.workload import Workload

UNIT = "USD/h"
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


def price_break_evens(
    used: Sequence[Side], seconds: float, singles: Sequence[Single], least_saving: float
) -> tuple[BreakEven, ...]:
    """Return where the price of each pool turns the choice in cost; one sentence where that of none does.

    A pool's price moves both the split and that pool alone, so the turning point is looked for, not solved for.

    Args:
        used: pools with a share.
        seconds: of a step of the split.
        singles: every pool alone; those that are not feasible do not count.
        least_saving: fraction that the split must save.

    Returns:
        None of them where a price is not known.
    """
    prices = [side.joined.price_usd_per_h for side in used]
    alone = [(one.seconds.mid, one.pool) for one in singles if one.feasible and one.seconds is not None]
    if not all(prices) or not alone or any(pool.price_usd_per_h is None for _, pool in alone):
        return ()

    def excess(moved: Side | None, factor: float) -> float:
        """Return what the split costs beyond what it may, in dollars an hour of a second's step, at a factor on one price."""
        paid = sum((side.joined.price_usd_per_h or 0.0) * (factor if side is moved else 1.0) for side in used)
        least = min(
            one_s * (pool.price_usd_per_h or 0.0) * (factor if moved is not None and pool == moved.pool else 1.0)
            for one_s, pool in alone
        )
        return seconds * paid - (1.0 - least_saving) * least

    turns = [(side, _turn(partial(excess, side))) for side in used]
    if all(factor is None for _, factor in turns):
        worth = "always" if excess(None, 1.0) <= 0 else "never"
        words = f"in cost the split is {worth} worth it, at any price of one of the pools"
        return (BreakEven("price", UNIT, None, None, f"{words} from a hundredth to a hundred times of it"),)
    return tuple(_told(side, factor, excess) for side, factor in turns if factor is not None)


def _told(side: Side, factor: float, excess: Callable[[Side, float], float]) -> BreakEven:
    now = side.joined.price_usd_per_h or 0.0
    way = "up to" if excess(side, factor * 0.99) <= 0 else "from"
    words = f"in cost the split is worth it {way} {now * factor:.4g} USD an hour for {pool_words(side.pool)} (now {now:.4g})"
    return BreakEven("price", UNIT, now, now * factor, words)


def _turn(excess: Callable[[float], float]) -> float | None:
    """Return the factor nearest to one at which the sign changes, or None within the span."""
    grid = [SPAN ** (2.0 * index / PRICES - 1.0) for index in range(PRICES + 1)]
    turns = [(low, high) for low, high in pairwise(grid) if (excess(low) <= 0) != (excess(high) <= 0)]
    if not turns:
        return None
    low, high = min(turns, key=lambda pair: max(pair[0], 1.0 / pair[0]))
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if (excess(low) <= 0) == (excess(middle) <= 0) else (low, middle)
    return (low * high) ** 0.5
