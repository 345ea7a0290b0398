"""The smallest change of one thing that changes the choice, where that follows in closed form."""

from advisor.ranking import Contender
from advisor.terms import terms_flips
from core.advice import Flip
from core.device import Pool
from core.workload import Workload

SMALLEST_CHANGE = 0.005
"""A change below this, as a fraction, cannot be seen in three digits: such candidates are told as equal, not as a flip."""


def flips_of(order: tuple[Contender, ...], objective: str, workload: Workload) -> tuple[Flip, ...]:
    """Return the changes at which another candidate takes the lead; none where no candidate meets the targets.

    Args:
        order: best first.
        objective: `time`, `cost` or `energy`.
        workload: the job.
    """
    if len(order) < 2 or order[0].late:
        return ()
    best = order[0]
    found = [*_price_flips(order), *terms_flips(order, workload)] if objective == "cost" else []
    runner = next((c for c in order[1:] if not c.late and c.score > best.score), None)
    if runner is not None and best.estimate.served is None:  # what serves at a rate is told by its queue, not by its step
        found.extend(_speed_flips(best, runner))
    return tuple(flip for flip in found if abs(flip.at - flip.now) > SMALLEST_CHANGE * flip.now)


def _price_flips(order: tuple[Contender, ...]) -> tuple[Flip, ...]:
    """Return the price of the best at which it loses, and the prices at which the next chip and the next seller win.

    Another seller is one of other terms or own hardware; pools of one chip that one sells change their price together.
    """
    best = order[0]
    others = [c for c in order[1:] if not c.late and _sold_apart(c, best)]
    chip = next((c for c in others if c.device != best.device), None)
    seller = next((c for c in others if c.device == best.device and _count(c) == _count(best)), None)
    rivals = [c for c in others if c is chip or c is seller]
    pairs = [(best, rivals[0], rivals[0]), *((rival, best, rival) for rival in rivals)] if rivals else []
    found: list[Flip] = []
    for mover, other, winner in pairs:
        pool = mover.estimate.candidate.pools[0]
        price = pool.price_usd_per_h
        if not price or mover.score <= 0 or other.score <= 0:
            continue
        at, won = price * other.score / mover.score, winner.estimate.candidate.label
        if (at > price) is not (mover is best):
            continue  # the order does not go by the price alone
        found.append(Flip(f"price of {pool.label}", price, at, "USD per hour", won))
        found.extend(_use_flip(pool, at, won))
    return tuple(found)


def _use_flip(pool: Pool, usd_per_h: float, winner: str) -> tuple[Flip, ...]:
    """Return the share of hours with work at which own hardware costs a price; none where no share does."""
    own = pool.own
    if own is None:
        return ()
    left = usd_per_h / pool.count - own.power_usd_per_chip_h
    at = own.fixed_usd_per_chip_h / left if left > 0 else 0.0
    return (Flip(f"use of {pool.label}", 100 * own.utilisation, 100 * at, "% of the time", winner),) if 0 < at <= 1 else ()


def _sold_apart(other: Contender, best: Contender) -> bool:
    mine, theirs = best.estimate.candidate.pools[0], other.estimate.candidate.pools[0]
    return mine.accelerator != theirs.accelerator or (mine.where, mine.own) != (theirs.where, theirs.own)


def _count(one: Contender) -> int:
    return one.estimate.candidate.pools[0].count


def _speed_flips(best: Contender, runner: Contender) -> tuple[Flip, ...]:
    """Return how slow the best must be, or how fast the next, for the order to change."""
    if best.score <= 0 or runner.score <= 0:
        return ()
    ratio = runner.score / best.score
    label = runner.estimate.candidate.label
    found: list[Flip] = []
    mine, theirs = best.estimate.step_time_s, runner.estimate.step_time_s
    if mine is not None:
        found.append(Flip(f"step time of {best.estimate.candidate.label}", mine.mid, mine.mid * ratio, "s", label))
    if theirs is not None:
        found.append(Flip(f"step time of {label}", theirs.mid, theirs.mid / ratio, "s", label))
    return tuple(found)
