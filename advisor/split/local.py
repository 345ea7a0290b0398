"""Copies that meet every so many steps: which pools, which shares, how seldom, in which form.

For every set of pools (`MOST_SETS` at most), way of keeping them level and form, the fewest steps between meetings are taken that
keep their cost within what is allowed, as fewer are nearer to synchronous training; of these the fastest is the plan.
"""

from itertools import combinations, pairwise
from math import ceil

from advisor.split.data_parallel import MOST_SETS
from advisor.split.local_published import covering, quality_note
from advisor.split.local_rounds import Round, Rounds
from advisor.split.local_timeline import timeline
from advisor.split.local_words import LocalPlan, LocalProblem, LocalShare
from core.errors import BadInput
from core.split import Move


def plan_local(problem: LocalProblem) -> LocalPlan | None:
    """Return the fastest plan; None when no pools can share the batch, or reach each other.

    Args:
        problem: to be planned.

    Raises:
        BadInput: more pools than all sets are tried of.
    """
    if len(problem.pools) > MOST_SETS:
        raise BadInput(f"{len(problem.pools)} pools", f"{MOST_SETS} at most", "join pools that are alike")
    rounds = Rounds(problem)
    chosen = [one for used in _sets(problem) for one in _seldom_enough(rounds, used)]
    if not chosen:
        return None
    names = [pool.name for pool in problem.pools]

    def rank(one: Round) -> tuple[bool, float, int, int, list[str]]:
        place = problem.variants.index(one.variant) if one.variant in problem.variants else 0
        return one.exposed > problem.most_exposed, one.seconds, one.inner_steps, place, sorted(names[at] for at in one.samples)

    return _told(problem, rounds, min(chosen, key=rank))


def _sets(problem: LocalProblem) -> list[tuple[int, ...]]:
    count = len(problem.pools)
    return [used for size in range(problem.least_pools, count + 1) for used in combinations(range(count), size)]


def _seldom_enough(rounds: Rounds, used: tuple[int, ...]) -> list[Round]:
    """Return for each way of working and form the round with the fewest steps that is allowed, or else the least exposed one."""
    problem, found = rounds.problem, list[Round]()
    variants = problem.variants if len(used) > 1 else ("plain",)
    for work in rounds.works(used):
        for variant in variants:
            every = [rounds.round_of(variant, work, steps) for steps in sorted(set(problem.inner_steps))]
            able = [one for one in every if one is not None]
            within = [one for one in able if one.exposed <= problem.most_exposed]
            if able:
                found.append(within[0] if within else min(able, key=lambda one: (one.exposed, one.inner_steps)))
    return found


def _told(problem: LocalProblem, rounds: Rounds, chosen: Round) -> LocalPlan:
    total = sum(chosen.samples[index] * chosen.steps[index] for index in chosen.samples)
    shares: list[LocalShare] = []
    for index, pool in enumerate(problem.pools):
        samples, steps = chosen.samples.get(index, 0), chosen.steps.get(index, 0.0)
        busy = chosen.busy_s.get(index, 0.0) + (pool.outer_s if steps and len(chosen.samples) > 1 else 0.0)
        weight = samples * steps / total
        shares.append(LocalShare(pool.name, samples, steps, weight, busy, max(0.0, chosen.round_s - busy)))
    alone = [next(iter(rounds.works((index,))), None) for index in range(len(problem.pools))]
    singles = [
        (pool.name, work.step_s[index] if work else None)
        for index, (pool, work) in enumerate(zip(problem.pools, alone, strict=True))
    ]
    sent = chosen.fragments * chosen.way.sent_bytes
    count, steps = len(chosen.samples), chosen.inner_steps
    return LocalPlan(
        chosen.seconds,
        chosen.variant,
        chosen.style,
        steps,
        chosen.round_s,
        chosen.compute_s,
        chosen.waited_s + chosen.outer_s,
        tuple(shares),
        None if problem.total_steps is None else ceil(problem.total_steps / steps) * chosen.fragments if count > 1 else 0,
        sent / chosen.round_s if chosen.round_s > 0 else 0.0,
        (("compute", chosen.compute_s / steps), ("exchange", chosen.waited_s / steps), ("outer", chosen.outer_s / steps)),
        _moves(problem, chosen),
        timeline(problem, chosen),
        tuple(singles),
        chosen.exposed <= problem.most_exposed,
        quality_note(chosen.variant, count, steps, problem.bits) if count > 1 else "one copy: nothing is averaged",
        covering(chosen.variant) if count > 1 else (),
    )


def _moves(problem: LocalProblem, chosen: Round) -> tuple[Move, ...]:
    ring, way = chosen.way.ring, chosen.way
    if len(ring) == 1:
        return ()
    names = [pool.name for pool in problem.pools]
    seconds = chosen.fragments * way.busy_s + way.latency_s
    sent = chosen.fragments * way.sent_bytes
    if len(ring) == 2:
        first, second = sorted(names[index] for index in ring)
        return (Move("changes", first, second, 2 * sent, seconds, chosen.waited_s),)
    return tuple(Move("changes", names[a], names[b], sent, seconds, chosen.waited_s) for a, b in pairwise((*ring, ring[0])))
