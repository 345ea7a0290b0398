"""The smallest change of one thing that changes the choice, where that follows in closed form."""

from collections.abc import Iterable

from advisor.ranking import Contender
from advisor.targets import Aim, aims_of
from advisor.terms import terms_flips
from core.advice import Flip
from core.device import Pool
from core.workload import Workload

FAR_OFF = 10.0
"""Times that the input may take longer or less: beyond it nobody asks."""
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
    found.extend((*_target_flips(order, workload), *_input_flips(order)))
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
    """Return how slow the best must be, or how fast the next, for the order to change; a step that waits is its input's."""
    if best.score <= 0 or runner.score <= 0:
        return ()
    ratio = runner.score / best.score
    label = runner.estimate.candidate.label
    found: list[Flip] = []
    mine, theirs = best.estimate.step_time_s, runner.estimate.step_time_s
    if mine is not None and not _waits(best):
        found.append(Flip(f"step time of {best.estimate.candidate.label}", mine.mid, mine.mid * ratio, "s", label))
    if theirs is not None and not _waits(runner):
        found.append(Flip(f"step time of {label}", theirs.mid, theirs.mid / ratio, "s", label))
    return tuple(found)


def _waits(one: Contender) -> bool:
    """Return whether its chips wait for input, so that no faster step of theirs is of use."""
    fed = one.estimate.fed
    return fed is not None and fed.waits_s > 0


def _input_flips(order: tuple[Contender, ...]) -> tuple[Flip, ...]:
    """Return how much sooner and how much later the input of every candidate must be for another to lead.

    A step is the longer of its chips' time and its input's, and all inputs become so many times as long together.
    """
    best = order[0]
    mine = best.estimate.fed
    if mine is None or best.score <= 0:
        return ()
    able = [one for one in order[1:] if not one.late and one.score > 0 and one.estimate.step_time_s is not None]
    found = [(times, one) for one in able for times in _crossings(best, one)]
    later = min(((times, one) for times, one in found if 1 < times <= FAR_OFF), key=lambda pair: pair[0], default=None)
    sooner = max(((times, one) for times, one in found if 1 / FAR_OFF <= times < 1), key=lambda pair: pair[0], default=None)
    what, now = f"input of a step on {best.estimate.candidate.pools[0].label}", mine.input_s.mid
    pairs = (pair for pair in (sooner, later) if pair is not None)
    return tuple(Flip(what, now, now * times, "s", one.estimate.candidate.label) for times, one in pairs)


def _crossings(best: Contender, other: Contender) -> tuple[float, ...]:
    """Return how many times as long as told the inputs must take for another to need as little as the best."""
    (mine, mine_in), (theirs, theirs_in) = _sides(best), _sides(other)
    found: list[float] = []
    if mine_in > theirs_in and theirs >= mine:
        found.append(theirs / mine_in)  # the longer the input, the best waits more, and then needs what the other's chips do
    if theirs_in >= mine_in and theirs_in > 0 and mine > theirs:
        found.append(mine / theirs_in)  # the shorter it is, the other waits less, and then needs what the best's chips do
    return tuple(found)


def _sides(one: Contender) -> tuple[float, float]:
    """Return the score that a candidate would have by its chips alone, and by its input alone; 0 without any."""
    fed, step = one.estimate.fed, one.estimate.step_time_s
    assert step is not None
    if fed is None:
        return one.score, 0.0
    each = one.score / step.mid
    return fed.chips_s.mid * each, fed.input_s.mid * each


def _target_flips(order: tuple[Contender, ...], workload: Workload) -> tuple[Flip, ...]:
    """Return for each target how loose it must be for what needs less to meet it, and how tight for the best to miss it."""
    best = order[0]
    less = [one for one in order[1:] if one.late and one.score < best.score]
    found: list[Flip] = []
    for aim in (aim for aim in aims_of(best.estimate, workload) if aim.unit):
        looser = min(((other, one) for one in less if (other := _only_miss(one, aim, workload)) is not None),
                     key=lambda pair: pair[0].taken.mid, default=None)  # fmt: skip
        if looser is not None:
            found.append(Flip(aim.limits, aim.allowed, looser[0].taken.mid, aim.unit, looser[1].estimate.candidate.label))
        tighter = _next_within(order[1:], aim, workload)
        if tighter is not None:
            found.append(Flip(aim.limits, aim.allowed, aim.taken.mid, aim.unit, tighter.estimate.candidate.label))
    return tuple(found)


def _only_miss(one: Contender, aim: Aim, workload: Workload) -> Aim | None:
    """Return the aim of a candidate that is the one which it misses; None where it misses another, or more."""
    missed = [other for other in aims_of(one.estimate, workload) if other.times > 1]
    return missed[0] if len(missed) == 1 and missed[0].limits == aim.limits else None


def _next_within(others: Iterable[Contender], aim: Aim, workload: Workload) -> Contender | None:
    """Return who leads where a target is so tight that the best just misses it; None where nobody meets it then."""
    for one in others:
        taken = next((other.taken.mid for other in aims_of(one.estimate, workload) if other.limits == aim.limits), None)
        if not one.late and taken is not None and taken < aim.taken.mid:
            return one
    return None
