"""Plans reinforcement learning over unlike pools: which chips roll out, which learn, how they take turns, and what that costs.

Every learner is tried with every set of actors that leaves it its chips, in every mode that the allowed staleness admits; beside
them, actors and learner on the same chips by turns. With R seconds of rollouts, L of scoring and learning, and a push that takes
gather, transfer and load, a step lasts

    together, synchronous   R + L + push
    one step off            max(R + load, L + gather, (R + L + push) / 2)
    asynchronous            max(samples / rate + load, L + gather, transfer, (longest rollout + L + push) / staleness)

since weights that a rollout began with were pushed at most so many steps before it is trained on. A synchronous batch waits for
its longest rollout; a stream does not.

Source: the modes are those of SEED RL (arXiv:1910.06591), IMPALA (arXiv:1802.01561) and AReaL (arXiv:2505.24298).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import ceil

from advisor.split.reinforcement_rollout import LEVELS, crew_s, dealt, stream
from advisor.split.reinforcement_told import told
from advisor.split.reinforcement_words import (
    Actors,
    Draft,
    Learner,
    LearningAlone,
    LearningPlan,
    LearningProblem,
    NoLearning,
)
from core.device import Link
from core.errors import BadInput

MOST_SETS = 200_000
_NEAR = 1e-9


def plan_learning(problem: LearningProblem) -> LearningPlan | NoLearning:
    """Return the best way, with each pool alone beside it.

    Args:
        problem: what is asked.

    Raises:
        BadInput: so many ways that trying all would take minutes.
    """
    drafts = {pool.name: _best(replace(problem, least_pools=1), frozenset((pool.name,))) for pool in problem.pools}
    singles = tuple(_alone(problem, name, draft) for name, draft in drafts.items())
    best = _best(problem, frozenset(drafts))
    if best is None:
        return NoLearning(_why(problem), singles)
    return told(problem, best, singles)


def seconds_at(problem: LearningProblem, bytes_per_s: float) -> float:
    """Return seconds from step to step, planned anew with every link at another rate; infinite where there is no way.

    Args:
        problem: its latencies and its object store stay.
        bytes_per_s: of every link, one way.
    """
    links = tuple((source, target, Link(link.latency_s, bytes_per_s)) for source, target, link in problem.links)
    plan = plan_learning(replace(problem, links=links))
    return plan.seconds if isinstance(plan, LearningPlan) else float("inf")


def _best(problem: LearningProblem, pools: frozenset[str]) -> Draft | None:
    """Return the best way on some of the pools; None where there is none."""
    best: Draft | None = None
    for draft in _drafts(problem, pools):
        if best is None or _rank(problem, draft) < _rank(problem, best):
            best = draft
    return best


def _rank(problem: LearningProblem, draft: Draft) -> tuple[float, float, int, tuple[str, ...]]:
    """Return what drafts are compared by: the objective, rounded so that order decides no ties; the other; then the freshest."""
    first, second = draft.seconds, draft.usd_per_step
    if problem.objective == "cost":
        first, second = second, first
    names = tuple(sorted(f"{one.pool} {one.chips}" for one in draft.crew))
    return float(f"{first:.9e}"), float(f"{second:.9e}"), draft.staleness, (draft.mode, draft.learner.pool, *names)


def _drafts(problem: LearningProblem, pools: frozenset[str]) -> Iterator[Draft]:
    """Return every way on some of the pools."""
    chips = {pool.name: pool.chips for pool in problem.pools if pool.name in pools}
    learners = [one for one in problem.learners if one.pool in chips and one.chips <= chips[one.pool]]
    columns = [
        [None, *(one for one in problem.actors if one.pool == name and one.chips <= most)] for name, most in sorted(chips.items())
    ]
    ways = len(learners)
    for column in columns:
        ways *= len(column)
    if ways > MOST_SETS:
        raise BadInput(f"{ways:,} ways to share out the chips", f"at most {MOST_SETS:,}", "give fewer counts of chips of a pool")
    for choice in product(*columns):
        crew = tuple(one for one in choice if one is not None)
        if not crew:
            continue
        acting = {one.pool for one in crew}
        for learner in learners:
            if len(acting | {learner.pool}) < problem.least_pools:
                continue
            taken = sum(one.chips for one in crew if one.pool == learner.pool) + learner.chips
            if taken <= chips[learner.pool] and _reached(problem, learner, crew):
                yield from _apart(problem, learner, crew)
            if crew[0].pool == learner.pool and crew[0].chips == learner.chips and len(crew) == 1:
                yield _together(problem, learner, crew[0])


def _reached(problem: LearningProblem, learner: Learner, crew: tuple[Actors, ...]) -> bool:
    """Return whether weights reach all actors and samples the learner."""
    return all(
        problem.way_s(problem.weights_bytes, learner.pool, one.pool) is not None
        and problem.way_s(problem.sample_bytes, one.pool, learner.pool) is not None
        for one in crew
    )


def _learn_s(problem: LearningProblem, learner: Learner) -> float:
    scoring = 0.0 if learner.scoring is None else learner.scoring.seconds(problem.samples)
    return learner.pace.seconds(problem.samples) + scoring


def _usd(problem: LearningProblem, chips: tuple[tuple[str, int], ...], seconds: float) -> float:
    prices = {pool.name: pool.price_usd_per_chip_h for pool in problem.pools}
    return sum(prices[pool] * count for pool, count in chips) * seconds / 3600


def _together(problem: LearningProblem, learner: Learner, actors: Actors) -> Draft:
    """Return both on the same chips by turns: weights are laid out anew for rolling out, and back."""
    counts, rollout_s = dealt(problem, (actors,), learner.pool)
    learn_s = _learn_s(problem, learner)
    push_s = learner.gather_s + actors.load_s
    seconds = rollout_s + learn_s + push_s
    cost = _usd(problem, ((learner.pool, learner.chips),), seconds)
    samples, flying = (float(counts[0]),), _flying((actors,), counts)
    return Draft(
        "together", seconds, cost, learner, (actors,), samples, flying, (rollout_s,), rollout_s, learn_s, 0.0, push_s, 0
    )


def _apart(problem: LearningProblem, learner: Learner, crew: tuple[Actors, ...]) -> Iterator[Draft]:
    """Return actors and learner on chips of their own, in every mode that is allowed."""
    counts, rollout_s = dealt(problem, crew, learner.pool)
    transfer_s = max(problem.way_s(problem.weights_bytes, learner.pool, one.pool) or 0.0 for one in crew)
    load_s = max(one.load_s for one in crew)
    learn_s, push_s = _learn_s(problem, learner), learner.gather_s + transfer_s + load_s
    loop_s = rollout_s + learn_s + push_s
    chips = (*((one.pool, one.chips) for one in crew), (learner.pool, learner.chips))
    engines = sum(one.engines for one in crew)
    each_s = tuple(crew_s(problem, one, count, engines, learner.pool) for one, count in zip(crew, counts, strict=True))

    def draft(
        mode: str, seconds: float, samples: tuple[float, ...], flying: tuple[int, ...], rolled: tuple[float, ...], staleness: int
    ) -> Draft:
        cost = _usd(problem, chips, seconds)
        return Draft(
            mode, seconds, cost, learner, crew, samples, flying, rolled, max(rolled), learn_s, transfer_s, push_s, staleness
        )

    if 0 not in counts:  # without those that have nothing to do it is another way
        whole, flying = tuple(float(count) for count in counts), _flying(crew, counts)
        yield draft("synchronous", loop_s, whole, flying, each_s, 0)
        if problem.most_stale:
            off_s = max(rollout_s + load_s, learn_s + learner.gather_s, transfer_s, loop_s / 2)
            yield draft("one-step-off", off_s, whole, flying, each_s, 1)
    if not problem.most_stale:
        return
    for level in LEVELS:
        rates, longest_s, filled = stream(problem, crew, level)
        streamed_s = max(problem.samples / sum(rates), _sent_s(problem, crew, rates, learner.pool))
        behind_s = longest_s + learn_s + push_s
        seconds = max(streamed_s + load_s, learn_s + learner.gather_s, transfer_s, behind_s / problem.most_stale)
        shares = tuple(problem.samples * rate / sum(rates) for rate in rates)
        rolled = tuple(share / rate for share, rate in zip(shares, rates, strict=True))
        yield draft("asynchronous", seconds, shares, filled, rolled, max(1, ceil(behind_s / seconds - _NEAR)))


def _sent_s(problem: LearningProblem, crew: tuple[Actors, ...], rates: tuple[float, ...], learner: str) -> float:
    """Return seconds in which the rollouts of a step reach the learner, where they never stop."""
    shares = [problem.samples * rate / sum(rates) for rate in rates]
    return max(
        problem.way_s(problem.sample_bytes * share, one.pool, learner) or 0.0 for one, share in zip(crew, shares, strict=True)
    )


def _flying(crew: tuple[Actors, ...], counts: tuple[int, ...]) -> tuple[int, ...]:
    """Return the rollouts that are in flight on one engine of each of the actors at the start of a batch."""
    found: list[int] = []
    for one, count in zip(crew, counts, strict=True):
        each = -(-count // one.engines)
        found.append(each if one.step.most is None else min(each, one.step.most))
    return tuple(found)


def _alone(problem: LearningProblem, pool: str, draft: Draft | None) -> LearningAlone:
    if draft is not None:
        return LearningAlone(pool, draft.seconds, draft.usd_per_step, draft.mode)
    acts = any(one.pool == pool for one in problem.actors)
    learns = any(one.pool == pool for one in problem.learners)
    missing = "it can only roll out" if acts and not learns else "it can only learn" if learns and not acts else ""
    return LearningAlone(pool, None, missing=missing or ("its chips are too few for both" if acts else "it can do neither"))


def _why(problem: LearningProblem) -> tuple[str, ...]:
    chips = {pool.name: pool.chips for pool in problem.pools}
    if all(one.chips > chips[one.pool] for one in problem.learners):
        return ("no way to learn fits in the chips of its pool",)
    if all(one.chips > chips[one.pool] for one in problem.actors):
        return ("no way to roll out fits in the chips of its pool",)
    if problem.least_pools > 1:
        return (f"actors and learner cannot be shared out over {problem.least_pools} pools: by chips or links",)
    return ("no pool has chips for both, and no link joins one that can learn with one that can roll out",)
