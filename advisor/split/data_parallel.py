"""One batch over unlike pools: the integer shares, and the pools to use, with which a step ends soonest.

Up to `MOST_SETS` pools every set of them is tried and the plan is the best; of more, pools are left out one after another, and
the plan says what a step could take less at most. `data_parallel_words` tells what a step consists of.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from math import inf

from advisor.split.data_parallel_exchange import FREE, Exchange, Links, exchange_of, least_exchange
from advisor.split.data_parallel_shares import Shares
from advisor.split.data_parallel_step import timeline
from advisor.split.data_parallel_words import CopyAlone, DataPlan, DataProblem, DataShare
from core.split import Move

MOST_SETS = 8
"""Pools of which all 255 sets are tried."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Shares of the pools in use, in units; `seconds` of the step."""

    seconds: float
    shares: dict[int, int]
    way: Exchange


def plan_data(problem: DataProblem) -> DataPlan | None:
    """Return the fastest plan; None when there is none: `why_no_shares` says why.

    Args:
        problem: to be planned.
    """
    tables = Shares(problem)
    chosen = fastest(tables, problem.links, problem.least_pools)
    return _told(tables, chosen) if chosen else None


def why_no_shares(problem: DataProblem) -> tuple[str, ...]:
    """Return what stands in the way of a plan, one phrase each; empty when a plan exists.

    Args:
        problem: as given to `plan_data`.
    """
    tables = Shares(problem)
    if fastest(tables, problem.links, problem.least_pools):
        return ()
    grains = ", ".join(f"{pool.pace.grain} on {pool.name}" for pool in problem.pools)
    able = any(exchange_of(problem.links, used, 1.0) for used in combinations(range(len(problem.pools)), problem.least_pools))
    if not able:
        return (f"no {problem.least_pools} pools can reach each other in a ring",)
    return (f"a batch of {problem.batch} is no sum of multiples of {grains} with at least {problem.least_pools} pools",)


def fastest(tables: Shares, links: Links, least_pools: int, fixed: dict[int, int] | None = None) -> Chosen | None:
    """Return the fastest choice of pools and shares.

    Args:
        tables: of the problem.
        links: between the pools.
        least_pools: to be used.
        fixed: shares of some pools, in units above 0; these are used.
    """
    given, best = fixed or {}, None
    count = len(tables.tables)

    def tried(used: tuple[int, ...], under_s: float) -> Chosen | None:
        way = exchange_of(links, used, tables.problem.gradient_bytes / tables.problem.buckets)
        found = tables.best(used, way, under_s, given) if way else None
        return Chosen(*found, way) if found and way else None

    if count > MOST_SETS:
        return _eliminated(tuple(range(count)), max(least_pools, len(given)), set(given), tried)
    for size in (count, *range(1, count)):  # all pools first: a good plan soon spares the rest
        for used in combinations(range(count), size):
            if size >= least_pools and set(given) <= set(used):
                best = tried(used, best.seconds if best else inf) or best
    return best


def _eliminated(
    used: tuple[int, ...], least: int, kept: set[int], tried: Callable[[tuple[int, ...], float], Chosen | None]
) -> Chosen | None:
    """Leave out pools one after another, each time the one without which the step is shortest; try small sets too."""
    every = used
    best = tried(used, inf)
    while len(used) > max(least, 1):
        level: Chosen | None = None
        for pool in used:
            if pool not in kept:
                fewer = tuple(one for one in used if one != pool)
                level = tried(fewer, level.seconds if level else inf) or level
        if level is None:
            break
        used = tuple(sorted(level.shares))
        best = level if best is None or level.seconds < best.seconds else best
    for size in (1, 2):
        for few in combinations(every, size):
            if size >= least and kept <= set(few):
                best = tried(few, best.seconds if best else inf) or best
    return best


def _told(tables: Shares, chosen: Chosen) -> DataPlan:
    problem, unit = tables.problem, tables.unit
    proved = len(problem.pools) <= MOST_SETS
    shares: list[DataShare] = []
    for index, pool in enumerate(problem.pools):
        samples = chosen.shares.get(index, 0) * unit
        compute = pool.pace.seconds(samples)
        busy = compute + (pool.reduce_s + pool.spread_s + pool.update_s if samples else 0.0)
        turns, weight = pool.pace.turns(samples), samples / problem.batch
        shares.append(DataShare(pool.name, samples, weight, turns, compute, busy, max(0.0, chosen.seconds - busy)))
    return DataPlan(
        chosen.seconds,
        tuple(shares),
        _terms(tables, chosen, max(share.compute_s for share in shares)),
        _moves(tables, chosen),
        timeline(problem, {index: share * unit for index, share in chosen.shares.items()}, chosen.way),
        tuple(_alone(tables, index) for index in range(len(problem.pools))),
        tables.ideal_s(),
        chosen.seconds if proved else min(chosen.seconds, _bound_s(tables)),
        proved,
    )


def _bound_s(tables: Shares) -> float:
    problem = tables.problem
    singles = [one.seconds for index in range(len(problem.pools)) if (one := _alone(tables, index)).seconds is not None]
    size = problem.gradient_bytes / problem.buckets
    counts = range(2, len(problem.pools) + 1)
    return min((*singles, *(tables.ideal_s(least_exchange(problem.links, count, size), count) for count in counts)))


def _free_s(tables: Shares, chosen: Chosen) -> float:
    return tables.seconds(chosen.shares, replace(chosen.way, busy_s=0.0, latency_s=0.0))


def _terms(tables: Shares, chosen: Chosen, compute_s: float) -> tuple[tuple[str, float], ...]:
    free = _free_s(tables, chosen)
    update = max(tables.problem.pools[pool].update_s for pool in chosen.shares)
    reduce_s = max(0.0, free - compute_s - update)
    exchange = max(0.0, chosen.seconds - free)
    return (
        ("compute", compute_s),
        ("reduce", reduce_s),
        ("exchange", exchange),
        ("update", chosen.seconds - compute_s - reduce_s - exchange),
    )


def _moves(tables: Shares, chosen: Chosen) -> tuple[Move, ...]:
    ring, way = chosen.way.ring, chosen.way
    if len(ring) == 1:
        return ()
    names = [pool.name for pool in tables.problem.pools]
    buckets = tables.problem.buckets
    seconds = buckets * way.busy_s + way.latency_s
    exposed = max(0.0, chosen.seconds - _free_s(tables, chosen))
    sent = buckets * way.sent_bytes
    if len(ring) == 2:
        first, second = sorted(names[pool] for pool in ring)
        return (Move("gradients", first, second, 2 * sent, seconds, exposed),)
    return tuple(Move("gradients", names[a], names[b], sent, seconds, exposed) for a, b in pairwise((*ring, ring[0])))


def _alone(tables: Shares, index: int) -> CopyAlone:
    pool, batch = tables.problem.pools[index], tables.problem.batch
    if batch % pool.pace.grain:
        return CopyAlone(pool.name, None, f"a batch of {batch} is no multiple of {pool.pace.grain}")
    return CopyAlone(pool.name, tables.seconds({index: tables.count}, FREE))
