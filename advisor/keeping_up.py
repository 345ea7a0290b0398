"""How many chips keep up with a rate of requests, told from what those that were looked at can just not serve.

Replicas answer requests on their own, so the chips that a rate needs follow from one of them. What this must not do: take that
for the answer. The count is found here, and the pool of that count is then priced and queued as every other.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil, exp

from advisor.spare import chips_used, copies
from core.advice import SURE, Estimate
from core.quantity import Z_80

SPARE = (1.0, 1.3, 2.0)
"""Times the chips that just keep up that are looked at, where none meets every target yet."""
_JUST_OVER = 1 + 1e-9
"""A pool that serves exactly what comes does not keep up: its queue grows."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Chips that would keep up.

    Args:
        accelerator: a catalog key.
        chips: in all.
        together: of a replica, or of all where replicas share weights: the chips are a multiple of it.
    """

    accelerator: str
    chips: int
    together: int


def fleets_of(estimates: Iterable[Estimate]) -> tuple[Fleet, ...]:
    """Return what keeps up with the rate even where steps are as slow as their band says, of each chip that nobody attached.

    Where no pool of a chip meets the targets, fleets with room to spare are among them, since a queue is short where there is.

    Args:
        estimates: of pools that were looked at, with what they serve and miss.
    """
    best: dict[str, Estimate] = {}
    least: dict[str, int] = {}
    for one in estimates:
        pool = one.candidate.pools[0]
        if pool.attached or one.served is None or (one.fit_chance or 1.0) < SURE:
            continue
        if one.served.utilisation < 1 and not one.misses:
            least[pool.accelerator] = min(pool.count, least.get(pool.accelerator, pool.count))
        known = best.get(pool.accelerator)
        if known is None or _rate_of_a_chip(one) > _rate_of_a_chip(known):
            best[pool.accelerator] = one
    found: list[Fleet] = []
    for key, one in sorted(best.items()):
        fleet = fleet_of(one, Z_80)
        if fleet is None or fleet.chips >= least.get(key, fleet.chips + 1):
            continue
        replicas = fleet.chips // fleet.together
        spare = SPARE if key not in least else SPARE[:1]
        found += [replace(fleet, chips=ceil(replicas * more) * fleet.together) for more in spare]
    return tuple(dict.fromkeys(found))


def fleet_of(estimate: Estimate, surely: float = 0.0) -> Fleet | None:
    """Return the chips that keep up with the rate if all are divided as an estimate's are; None where its rate is not told.

    Args:
        estimate: of a pool of any size.
        surely: standard deviations of the step time by which it may be slower than its middle value.
    """
    served, step = estimate.served, estimate.step_time_s
    if served is None or step is None or served.limit_per_s <= 0:
        return None
    plan = estimate.candidate.plan
    groups = 1 if plan.fsdp > 1 or plan.expert > 1 else copies(plan)  # replicas that share weights are had as a whole
    each = chips_used(plan) // groups
    needed = ceil(served.utilisation * groups * exp(surely * step.sigma) * _JUST_OVER)
    return Fleet(estimate.candidate.pools[0].accelerator, needed * each, each)


def enough_words(estimate: Estimate) -> str:
    """Return how many chips, divided as these are, would keep up with the rate; empty where these do, or wait for their input.

    Args:
        estimate: of a rented pool.
    """
    served = estimate.served
    if served is None or served.utilisation < 1 or estimate.candidate.pools[0].attached:
        return ""
    if any(share.term == "input" for share in estimate.breakdown):
        return ""  # input comes by the host, not by the chip
    middle, least, most = (fleet_of(estimate, surely) for surely in (0.0, -Z_80, Z_80))
    if middle is None or least is None or most is None:
        return ""
    band = f" ({least.chips:,} to {most.chips:,} by the band of its step)" if least != most else ""
    return f"{middle.chips:,} chips divided so would keep up{band}"


def _rate_of_a_chip(estimate: Estimate) -> float:
    """Return requests a second for each chip in use."""
    return 0.0 if estimate.served is None else estimate.served.limit_per_s / chips_used(estimate.candidate.plan)
