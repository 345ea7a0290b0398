"""Replicas of a model that generates, on parts of a pool: what a step takes with more and more requests in flight.

A replica is the fewest chips of a pool that hold the model, or twice or four times as many; more copies are more replicas. Steps
are estimated at one request in flight, two, four, and so on, as far as keys and values fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.search import Search
from advisor.spare import chips_used, copies
from advisor.split.sides import Side, Variant
from core.device import Accelerator
from core.sketch import DECODE, PREFILL

IN_FLIGHT = (1, 2, 4, 8, 16, 32, 64, 128, 256)
Key = tuple[str, int]
"""Accelerator and chips of a replica."""


@dataclass(frozen=True, slots=True)
class Timed:
    """One replica with so many requests of a class in flight.

    Args:
        places: requests in flight.
        prefill_s: of reading one prompt.
        step_s: that gives a token to each.
        kept_bytes: keys and values of one prompt.
        sigma, tier: of the estimate.
    """

    places: int
    prefill_s: float
    step_s: float
    kept_bytes: float
    sigma: float
    tier: str


def replicas_of(prompt: int, output: int, sides: Sequence[Side], variant: Variant) -> dict[Key, list[Timed]]:
    """Return, by accelerator and chips of a replica, what it takes with more and more requests in flight.

    Args:
        prompt, output: tokens of a request.
        sides: whose pools the replicas are part of.
        variant: the workload with other sizes; of a task that generates.
    """
    found: dict[Key, list[Timed]] = {}
    sizes = {(side.pool.accelerator, chips): side for side in sides for chips in sizes_of(side.pool.count)}
    for places in IN_FLIGHT:
        tried = IN_FLIGHT.index(places)  # a replica that held no further request is not asked again
        open_sizes = {key: side for key, side in sizes.items() if len(found.get(key, ())) == tried}
        if not open_sizes:
            break
        search = Search(variant({"batch": places, "prompt": prompt, "output": output}))
        search.prepare((_chip(side), chips) for (_, chips), side in open_sizes.items())
        for (key, chips), side in open_sizes.items():
            best = search.best(side.runtime, _chip(side), chips)
            if isinstance(best, str) or not best.fits or chips_used(best.plan) < chips or (places == 1 and copies(best.plan) > 1):
                continue
            passes = {each.regime: each.seconds for each in search.passes(side.runtime, key, chips, best.row)}
            kept = dict(best.memory).get("key-value cache", 0.0) * chips * prompt / (prompt + output / 2)
            timed = Timed(places, passes.get(PREFILL, 0.0) / places, passes[DECODE], kept / places, best.sigma, best.tier)
            found.setdefault((key, chips), []).append(timed)
    return found


def _chip(side: Side) -> Accelerator:
    assert side.chip is not None
    return side.chip


def sizes_of(count: int) -> tuple[int, ...]:
    """Return the sizes that replicas of a pool may have: powers of two up to all of it."""
    return tuple(1 << power for power in range(count.bit_length()) if 1 << power <= count)
