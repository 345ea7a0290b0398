"""Reinforcement learning over the pools of a split: who rolls out, who learns, from estimates of both on parts of each pool."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from advisor.charges import steps_charged
from advisor.datasheet import Datasheets
from advisor.split.bandwidth import bandwidth_of
from advisor.split.given import TOGETHER, Given
from advisor.split.judgement import Curves, Planned
from advisor.split.pace import Pace
from advisor.split.reinforcement import plan_learning, seconds_at
from advisor.split.reinforcement_words import (
    Actors,
    ChipPool,
    Environments,
    Learner,
    LearningAlone,
    LearningPlan,
    LearningProblem,
    Lengths,
    NoLearning,
)
from advisor.split.replicas import Key, Timed, replicas_of, sizes_of
from advisor.split.sides import Side
from core.device import Link
from core.ops import DTYPE_BYTES
from core.probe import Runtime
from core.quantity import Quantity, exact, log_normal
from core.split import Share, Single, pool_words
from core.workload import Rollouts, Workload

PARTS_OF = {2: 4, 3: 2}
"""By the number of pools, how a pool is tried: whole, and in so many parts, each half of the last; more pools whole only."""
TOKEN_BYTES = 8.0
"""Of a rollout on its way to the learner: a token's number and its log-probability, 4 bytes each."""
ENVIRONMENTS = "environments"
ROLLING: Mapping[str, object] = {
    "task": "infer", "length": None, "rollouts": None, "optimizer": None, "total": None, "targets": None,
}  # fmt: skip
"""What of a document changes when its model rolls out instead of being trained."""


def learning_of(given: Given) -> Planned:
    """Return the best way of rolling out on one pool and learning on another, beside each pool alone by turns."""
    workload, rollouts = given.workload, given.workload.rollouts
    if rollouts is None:
        said = "how samples come about is not said"
        return Planned("rl", missing=(said,), said=said)
    able = [side for side in given.sides if side.chip is not None and side.runtime]
    if len(able) < TOGETHER:
        return given.without("rl", [index for index, side in enumerate(given.sides) if side in able])
    timed = replicas_of(rollouts.prompt, rollouts.output, able, lambda changes: given.variant({**ROLLING, **changes}))
    actors = tuple(one for side in able for one in _actors(side, workload, timed, len(able)))
    learners, doubt = _learners(able, workload)
    if not actors or not learners:
        what = "no pool holds a model that rolls out" if not actors else "no pool holds the model in training"
        return Planned("rl", missing=(what,), said=what)
    problem = LearningProblem(
        tuple(ChipPool(side.name, side.pool.count, (side.joined.price_usd_per_h or 0.0) / side.pool.count) for side in able),
        actors, learners, workload.batch, _lengths(rollouts),
        float(workload.trained_parameter_count * DTYPE_BYTES[workload.dtype]),
        TOKEN_BYTES * (rollouts.prompt + rollouts.output), _ways(given), environments=_environments(rollouts),
        most_stale=rollouts.most_stale, least_pools=2,
    )  # fmt: skip
    found = plan_learning(problem)
    if isinstance(found, NoLearning):
        singles = tuple(_single(side, found.singles, workload, doubt) for side in given.sides)
        return Planned("rl", missing=found.missing, said="; ".join(found.missing), singles=singles)
    return _planned(given, problem, found, doubt)


def _lengths(rollouts: Rollouts) -> Lengths:
    longest = float("inf") if rollouts.longest is None else float(rollouts.longest)
    return Lengths(float(rollouts.output), rollouts.deviation, longest)


def _environments(rollouts: Rollouts) -> Environments | None:
    rate = rollouts.environment_steps_per_s
    return None if rate is None else Environments(ENVIRONMENTS, rate)


def _ways(given: Given) -> tuple[tuple[str, str, Link], ...]:
    names = [side.name for side in given.sides]
    return tuple(
        (names[a], names[b], link)
        for a, row in enumerate(given.links) for b, link in enumerate(row) if link is not None and a != b
    )


def _parts(count: int, pools: int) -> tuple[int, ...]:
    """Return how many chips of a pool are tried: all, half, a quarter, ..."""
    return tuple(dict.fromkeys(max(1, count >> power) for power in range(PARTS_OF.get(pools, 1))))


def _actors(side: Side, workload: Workload, timed: Mapping[Key, Sequence[Timed]], pools: int) -> list[Actors]:
    """Return ways to roll out on a pool: on all or a part of its chips, in engines of the fewest chips that hold the model."""
    held = [chips for chips in sizes_of(side.pool.count) if (side.pool.accelerator, chips) in timed]
    if not held or side.chip is None:
        return []
    rising: list[tuple[int, float]] = []
    for point in timed[side.pool.accelerator, held[0]]:
        rising.append((point.places, max(point.step_s, rising[-1][1]) if rising else point.step_s))
    pace = Pace(tuple(rising), 1, rising[-1][0])
    weights = workload.trained_parameter_count * DTYPE_BYTES[workload.dtype]
    load_s = weights / ((side.chip.host_bytes_per_s or 16e9) * held[0])
    return [
        Actors(side.name, chips, chips // held[0], pace, load_s, side.runtime, workload.dtype, side.pool.kind)
        for chips in _parts(side.pool.count, pools) if chips >= held[0]
    ]


def _learners(sides: Sequence[Side], workload: Workload) -> tuple[tuple[Learner, ...], tuple[float, str]]:
    """Return ways to train on a pool, and the widest deviation of the estimates with its tier."""
    pools = [(replace(side.pool, count=chips), side) for side in sides for chips in _parts(side.pool.count, len(sides))]
    datasheets = Datasheets(workload, [(pool, side.chip) for pool, side in pools if side.chip is not None])
    weights = workload.trained_parameter_count * DTYPE_BYTES[workload.dtype]
    found: list[Learner] = []
    doubts: list[tuple[float, str]] = [(0.0, "published")]
    for pool, side in pools:
        if side.chip is None:
            continue
        told = datasheets.estimate(Runtime(side.runtime, "", ""), pool, side.chip)
        if isinstance(told, str) or told.fits is False or told.step_time_s is None:
            continue
        gather_s = weights / ((side.chip.host_bytes_per_s or 16e9) * pool.count)
        pace = Pace(((workload.batch, told.step_time_s.mid),))
        found.append(Learner(side.name, pool.count, pace, None, gather_s, side.runtime, workload.dtype, side.pool.kind))
        doubts.append((told.step_time_s.sigma, told.step_time_s.tier))
    return tuple(found), max(doubts)


def _cost(usd_per_step: float, workload: Workload) -> Quantity | None:
    return exact(usd_per_step * steps_charged(workload), "published", "prices of the chips that are used")


def _single(side: Side, alone: Sequence[LearningAlone], workload: Workload, doubt: tuple[float, str]) -> Single:
    one = next((one for one in alone if one.pool == side.name), None)
    if one is None or one.seconds is None:
        why = side.missing or (one.missing if one is not None else "nothing is known")
        return Single(side.pool, side.runtime, None, None, None, feasible=False, missing=why)
    seconds = log_normal(one.seconds, *doubt, f"rollouts and learning on the same pool, {one.mode}")
    cheaper = (side.pool.price_usd_per_h or 0.0) / (side.joined.price_usd_per_h or 1.0)
    cost = None if one.usd_per_step is None or side.pool.price_usd_per_h is None else _cost(one.usd_per_step * cheaper, workload)
    return Single(side.pool, side.runtime, seconds, cost, None, feasible=True)


def _planned(given: Given, problem: LearningProblem, found: LearningPlan, doubt: tuple[float, str]) -> Planned:
    workload = given.workload
    fractions = dict(found.fractions)
    seconds = log_normal(found.seconds, *doubt, f"{found.mode}, weights of rollouts up to {found.staleness} steps old")
    shares: list[Share] = []
    for side in given.sides:
        roles: list[str] = []
        busy = 0.0
        if found.learner.pool == side.name:
            roles.append(f"learns on {found.learner.chips} chips")
            busy = found.learner.pace.seconds(problem.samples) + found.learner.gather_s
        for crew in found.crews:
            if crew.actors.pool == side.name:
                roles.append(f"rolls out on {crew.actors.chips} chips, {crew.in_flight} at once on each engine")
                busy = max(busy, crew.seconds)
        shares.append(Share(
            side.joined, side.runtime, fractions.get(side.name, 0.0), fractions.get(side.name, 0.0), "of the busy chip-seconds",
            min(busy, found.seconds), max(0.0, found.seconds - busy), detail="; ".join(roles) or "left out",
        ))
    singles = tuple(_single(side, found.singles, workload, doubt) for side in given.sides)
    said = "; ".join(f"{pool_words(share.pool)} {share.detail}" for share in shares if share.fraction > 0)
    priced = all(side.joined.price_usd_per_h is not None for side in given.sides if fractions.get(side.name))
    return Planned(
        "rl", seconds, _cost(found.usd_per_step, workload) if priced else None, None, found.terms, tuple(shares), found.moves,
        found.timeline, curves=lambda: _curves(problem, found), singles=singles,
        said=f"{said} ({found.mode}, weights up to {found.staleness} steps old)",
        missing=found.warnings,
    )


def _curves(problem: LearningProblem, found: LearningPlan) -> Curves:
    """Return the step against the links' rate, and where the best pool alone is as fast."""
    rates = [link.bytes_per_s for _, _, link in problem.links]
    alone = [one.seconds for one in found.singles if one.seconds is not None]
    if not rates or not alone:
        return (), ()
    return bandwidth_of(lambda rate: seconds_at(problem, rate), min(rates), min(alone))
