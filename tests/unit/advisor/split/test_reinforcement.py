"""The best way of acting and learning equals trying every way, and the long tail, the push and staleness cost what they must."""

import random
from dataclasses import replace
from itertools import product

import pytest

from advisor.split.pace import Pace
from advisor.split.reinforcement import plan_learning, seconds_at
from advisor.split.reinforcement_rollout import LEVELS, batch_s, dealt
from advisor.split.reinforcement_words import (
    Actors,
    ChipPool,
    Environments,
    Learner,
    LearningPlan,
    LearningProblem,
    Lengths,
    NoLearning,
)
from core.device import Link
from core.errors import BadInput

INSTANCES = 300
EVEN = Lengths(100.0)


def _random(seed: int) -> LearningProblem:
    draw = random.Random(seed)
    names = ("gpu", "tpu")
    pools = tuple(ChipPool(name, draw.randint(1, 6), draw.choice((0.0, 1.0, 3.0))) for name in names)
    actors, learners = [], []
    for name in names:
        kind = draw.choice(("gpu", "tpu"))
        for chips in sorted(draw.sample(range(1, 7), draw.randint(0, 2))):
            step = Pace(((1, draw.uniform(0.005, 0.03)), (8, draw.uniform(0.03, 0.06))), most=draw.choice((None, 2, 4, 8)))
            actors.append(Actors(name, chips, draw.randint(1, chips), step, draw.choice((0.0, 0.3)), kind=kind))
        for chips in sorted(draw.sample(range(1, 7), draw.randint(0, 2))):
            pace = Pace(((1, draw.uniform(0.1, 0.5)), (16, draw.uniform(0.5, 8))))
            scoring = draw.choice((None, Pace(((1, 0.2),))))
            learners.append(Learner(name, chips, pace, scoring, draw.choice((0.0, 0.2)), kind=kind))
    actors = actors or [Actors("gpu", 1, 1, Pace(((1, 0.01),)))]
    learners = learners or [Learner("gpu", 1, Pace(((1, 0.1),)))]
    links = tuple((a, b, Link(0.01, draw.uniform(0.5, 20))) for a in names for b in names if a != b and draw.random() < 0.9)
    lengths = Lengths(draw.uniform(20, 200), draw.choice((0.0, 50.0, 200.0)), 500.0)
    world = draw.choice((None, None, Environments("cpu", draw.uniform(50, 2000), draw.random() < 0.5)))
    return LearningProblem(
        pools, tuple(actors), tuple(learners), draw.randint(1, 12), lengths, draw.choice((0.0, 2.0)), draw.choice((0.0, 0.1)),
        links, environments=world, most_stale=draw.randint(0, 3), objective=draw.choice(("time", "cost")),
    )


def _step(problem: LearningProblem, one: Actors, count: int, engines: int) -> float:
    model = one.step.at_once(count)
    if problem.environments is None:
        return model
    world = count * engines / problem.environments.steps_per_s
    return max(model, world) if problem.environments.overlapped else model + world


def _rolled(problem: LearningProblem, one: Actors, count: int, engines: int) -> float:
    """Step by step in stretches between ends, the surplus before at full speed."""
    each = -(-count // one.engines)
    most = one.step.most or problem.samples
    held = min(each, most)
    left = [problem.lengths.quantile((index + 0.5) / held) for index in range(held)]
    clock = (each - held) * problem.lengths.cut_mean * _step(problem, one, most, engines) / most
    while left:
        stretch = min(left)
        clock += stretch * _step(problem, one, len(left), engines)
        left = [length - stretch for length in left if length - stretch > 1e-12 * stretch]
    return clock


def _way(problem: LearningProblem, size: float, a: str, b: str) -> float | None:
    if a == b or not size:
        return 0.0
    return next((link.latency_s + size / link.bytes_per_s for x, y, link in problem.links if (x, y) == (a, b)), None)


def _every_seconds(problem: LearningProblem, learner: Learner, crew: tuple[Actors, ...]) -> list[float]:
    """Seconds of every mode and division of the samples, for actors on chips of their own."""
    samples, engines = problem.samples, sum(one.engines for one in crew)
    learn = learner.pace.at_once(samples) + (learner.scoring.at_once(samples) if learner.scoring else 0.0)
    transfer = max(_way(problem, problem.weights_bytes, learner.pool, one.pool) for one in crew)
    load = max(one.load_s for one in crew)
    push = learner.gather_s + transfer + load
    found = []
    for counts in product(range(1, samples + 1), repeat=len(crew)):
        if sum(counts) != samples:
            continue
        ends = [max(_rolled(problem, one, count, engines), _way(problem, problem.sample_bytes * count, one.pool, learner.pool))
                for one, count in zip(crew, counts, strict=True)]
        found.append(max(ends) + learn + push)
        if problem.most_stale:
            found.append(max(max(ends) + load, learn + learner.gather_s, transfer, found[-1] / 2))
    for level in LEVELS if problem.most_stale else ():
        filled = [max(1, int((one.step.most or samples) * level)) for one in crew]
        each = [_step(problem, one, count, engines) for one, count in zip(crew, filled, strict=True)]
        rates = [one.engines * count / (problem.lengths.cut_mean * seconds)
                 for one, count, seconds in zip(crew, filled, each, strict=True)]
        sent = [_way(problem, problem.sample_bytes * samples * rate / sum(rates), one.pool, learner.pool)
                for one, rate in zip(crew, rates, strict=True)]
        longest = problem.lengths.quantile((samples - 0.5) / samples) * max(each)
        found.append(max(max(samples / sum(rates), *sent) + load, learn + learner.gather_s, transfer,
                         (longest + learn + push) / problem.most_stale))
    return found


def _best(problem: LearningProblem) -> float | None:
    """The least of the objective over all learners, sets of actors, divisions and modes."""
    chips = {pool.name: pool.chips for pool in problem.pools}
    price = {pool.name: pool.price_usd_per_chip_h for pool in problem.pools}
    columns = [[None, *(one for one in problem.actors if one.pool == name)] for name in chips]
    values = []
    for learner, *choice in product(problem.learners, *columns):
        crew = tuple(one for one in choice if one is not None)
        if not crew or learner.chips > chips[learner.pool] or any(one.chips > chips[one.pool] for one in crew):
            continue
        used = dict.fromkeys(chips, 0)
        for one in (*crew, learner):
            used[one.pool] += one.chips
        joined = all(_way(problem, problem.weights_bytes, learner.pool, one.pool) is not None
                     and _way(problem, problem.sample_bytes, one.pool, learner.pool) is not None for one in crew)
        if joined and all(used[name] <= chips[name] for name in chips):
            cost = sum(price[name] * count for name, count in used.items()) / 3600
            values += [(cost if problem.objective == "cost" else 1.0) * value for value in _every_seconds(problem, learner, crew)]
        if len(crew) == 1 and (crew[0].pool, crew[0].chips) == (learner.pool, learner.chips):
            rolled = _rolled(problem, crew[0], problem.samples, crew[0].engines)
            learn = learner.pace.at_once(problem.samples) + (learner.scoring.at_once(problem.samples) if learner.scoring else 0.0)
            cost = price[learner.pool] * learner.chips / 3600
            seconds = rolled + learn + learner.gather_s + crew[0].load_s
            values.append((cost if problem.objective == "cost" else 1.0) * seconds)
    return min(values, default=None)


def _value(problem: LearningProblem, plan: LearningPlan) -> float:
    return plan.usd_per_step if problem.objective == "cost" else plan.seconds


def test_the_plan_equals_every_way_of_acting_and_learning() -> None:
    able = 0
    for seed in range(INSTANCES):
        problem = _random(seed)
        plan, best = plan_learning(problem), _best(problem)
        if best is None:
            assert isinstance(plan, NoLearning), seed
            assert plan.missing
            continue
        able += 1
        assert isinstance(plan, LearningPlan), seed
        assert _value(problem, plan) == pytest.approx(best, rel=1e-6, abs=1e-12), seed
        _check(problem, plan)
    assert able > INSTANCES / 2


def _check(problem: LearningProblem, plan: LearningPlan) -> None:
    assert sum(crew.samples for crew in plan.crews) == pytest.approx(problem.samples)
    assert sum(part for _, part in plan.fractions) == pytest.approx(1)
    assert sum(seconds for _, seconds in plan.terms) == pytest.approx(plan.seconds)
    assert plan.staleness <= problem.most_stale
    chips = {pool.name: pool.chips for pool in problem.pools}
    used = dict.fromkeys(chips, 0)
    for one in (plan.learner, *(crew.actors for crew in plan.crews)):
        used[one.pool] += one.chips
    if plan.mode == "together":
        used[plan.learner.pool] -= plan.learner.chips
    assert all(used[name] <= chips[name] for name in chips)
    assert all(0 <= bar.start_s <= bar.stop_s <= plan.seconds * (1 + 1e-9) for bar in plan.timeline)


def test_the_order_of_pools_changes_nothing_and_one_pool_alone_is_never_better() -> None:
    for seed in range(80):
        problem = _random(seed)
        turned = replace(problem, pools=problem.pools[::-1], actors=problem.actors[::-1], learners=problem.learners[::-1])
        first, second = plan_learning(problem), plan_learning(turned)
        assert type(first) is type(second)
        if isinstance(first, LearningPlan) and isinstance(second, LearningPlan):
            assert _value(problem, first) == pytest.approx(_value(problem, second))
            for one in first.singles:
                alone = one.usd_per_step if problem.objective == "cost" else one.seconds
                assert alone is None or alone >= _value(problem, first) * (1 - 1e-9)


def test_a_batch_lasts_as_long_as_its_longest_rollout() -> None:
    spread = Lengths(100.0, 80.0, 400.0)
    step = Pace(((1, 0.01), (64, 0.01)))
    assert batch_s(step, 64, spread, 64) == pytest.approx(spread.quantile(63.5 / 64) * 0.01)
    assert batch_s(step, 64, EVEN, 64) == pytest.approx(1.0)
    assert spread.quantile(0.9999) == 400.0


def test_more_rollouts_than_places_fill_them_anew() -> None:
    assert batch_s(Pace(((1, 0.01), (8, 0.02))), 8, EVEN, 32) == pytest.approx(4 * 100 * 0.02)


@pytest.mark.parametrize(("count", "most"), [(16, 32), (64, 64), (96, 32)])
def test_a_batch_lasts_about_as_long_as_drawn_rollouts_do_in_a_simulation(count: int, most: int) -> None:
    draw, lengths, step = random.Random(3), Lengths(200.0, 120.0, 1000.0), Pace(((1, 0.010), (64, 0.025)))
    found = []
    for _ in range(60):
        waiting = [max(1, round(lengths.quantile(draw.uniform(1e-6, 1 - 1e-6)))) for _ in range(count)]
        flying, clock = [], 0.0
        while waiting or flying:
            while waiting and len(flying) < most:
                flying.append(waiting.pop())
            stretch = min(flying)
            clock += stretch * step.at_once(len(flying))
            flying = [left - stretch for left in flying if left > stretch]
        found.append(clock)
    assert batch_s(step, most, lengths, count) == pytest.approx(sum(found) / len(found), rel=0.12)


@pytest.mark.parametrize("seed", range(20))
def test_one_step_off_goes_as_fast_as_a_chain_of_steps_that_wait_for_each_other(seed: int) -> None:
    draw = random.Random(seed)
    actors = Actors("gpu", 1, 1, Pace(((1, draw.uniform(0.01, 0.05)),)), draw.uniform(0, 2))
    learner = Learner("tpu", 1, Pace(((1, draw.uniform(0.5, 8)),)), None, draw.uniform(0, 2))
    link = Link(draw.uniform(0, 4), 1e9)
    problem = LearningProblem(
        (ChipPool("gpu", 1), ChipPool("tpu", 1)), (actors,), (learner,), 1, EVEN, 1.0, links=(("tpu", "gpu", link),),
    )
    plan = plan_learning(problem)
    assert isinstance(plan, LearningPlan)
    rolled, gathered, arrived = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
    for _ in range(400):  # rollouts of a step begin with the weights that came of the step before the last
        rolled.append(max(rolled[-1], arrived[-2]) + actors.load_s + actors.step.at_once(1) * 100)
        gathered.append(max(rolled[-1], gathered[-1]) + learner.pace.at_once(1) + learner.gather_s)
        arrived.append(gathered[-1] + link.latency_s + 1e-9)
    period = max((gathered[-1] - gathered[201]) / 200, link.latency_s)
    assert plan.seconds <= period * (1 + 1e-6)
    if plan.mode == "one-step-off":
        assert plan.seconds == pytest.approx(period, rel=1e-6)


def test_samples_are_dealt_out_by_pace() -> None:
    slow, fast = Actors("a", 1, 1, Pace(((1, 0.03),))), Actors("b", 1, 1, Pace(((1, 0.01),)))
    problem = LearningProblem(
        (ChipPool("a", 2), ChipPool("b", 2)), (slow, fast), (Learner("a", 1, Pace(((1, 1.0),))),), 40, EVEN, 0.0,
    )
    counts, seconds = dealt(problem, (slow, fast), "a")
    assert counts == (10, 30)
    assert seconds == pytest.approx(10 * 0.03 * 100)


GPU_ROLLS = Actors("gpu", 8, 8, Pace(((1, 0.008), (64, 0.02)), most=64), 1.0, "vllm", "fp8", "gpu")
TPU_LEARNS = Learner("tpu", 16, Pace(((1, 0.5), (512, 30.0))), None, 2.0, "jax", "bf16", "tpu")
EIGHT_BILLION = LearningProblem(
    (ChipPool("gpu", 8, 3.0), ChipPool("tpu", 16, 2.7)), (GPU_ROLLS,), (TPU_LEARNS,), 512, Lengths(2000.0, 1500.0, 8192.0), 16e9,
    links=(("tpu", "gpu", Link(1e-3, 12.5e9)), ("gpu", "tpu", Link(1e-3, 12.5e9))), most_stale=4,
)


def test_a_stream_with_a_free_link_goes_at_the_slower_of_both_rates() -> None:
    free = replace(
        EIGHT_BILLION, links=(("tpu", "gpu", Link(0.0, 1e30)),), actors=(replace(GPU_ROLLS, load_s=0.0),),
        learners=(replace(TPU_LEARNS, gather_s=0.0),), most_stale=1000,
    )
    plan = plan_learning(free)
    assert isinstance(plan, LearningPlan)
    rolled = 8 * 64 / (free.lengths.cut_mean * 0.02)
    assert plan.samples_per_s == pytest.approx(min(rolled, 512 / 30.0))


def test_less_staleness_costs_throughput_and_none_takes_turns() -> None:
    seconds = []
    for stale in (0, 1, 2, 4, 8):
        plan = plan_learning(replace(EIGHT_BILLION, most_stale=stale))
        assert isinstance(plan, LearningPlan)
        assert plan.staleness <= stale
        seconds.append(plan.seconds)
    assert seconds == sorted(seconds, reverse=True)
    synchronous = plan_learning(replace(EIGHT_BILLION, most_stale=0))
    assert isinstance(synchronous, LearningPlan)
    assert synchronous.mode == "synchronous"
    assert synchronous.push_s == pytest.approx(2.0 + 1e-3 + 16e9 / 12.5e9 + 1.0)
    tail = batch_s(GPU_ROLLS.step, 64, EIGHT_BILLION.lengths, 64)
    assert synchronous.seconds == pytest.approx(tail + 30.0 + synchronous.push_s)


def test_a_store_is_used_where_there_is_no_link_or_a_slow_one() -> None:
    slow = replace(EIGHT_BILLION, most_stale=0, links=(("tpu", "gpu", Link(0.0, 1e9)),), store=Link(0.05, 8e9))
    plan = plan_learning(slow)
    assert isinstance(plan, LearningPlan)
    assert plan.moves[0].seconds == pytest.approx(2 * (0.05 + 16e9 / 8e9))
    none = plan_learning(replace(EIGHT_BILLION, links=()))
    assert isinstance(none, NoLearning)
    assert none.missing == ("no pool has chips for both, and no link joins one that can learn with one that can roll out",)
    assert {one.pool: one.missing for one in none.singles} == {"gpu": "it can only roll out", "tpu": "it can only learn"}


def test_a_faster_link_is_never_slower() -> None:
    seconds = [seconds_at(EIGHT_BILLION, rate) for rate in (1e7, 1e8, 1e9, 1e10, 1e11)]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[0] == pytest.approx(1e-3 + 16e9 / 1e7)  # the push alone


def test_two_pools_that_must_share_say_what_the_split_costs() -> None:
    for seed in range(60):
        problem = replace(_random(seed), least_pools=2)
        plan = plan_learning(problem)
        if isinstance(plan, LearningPlan):
            assert len({plan.learner.pool, *(crew.actors.pool for crew in plan.crews)}) == 2
            alone = plan_learning(replace(problem, least_pools=1))
            assert isinstance(alone, LearningPlan)
            assert _value(problem, alone) <= _value(problem, plan) * (1 + 1e-9)


def test_environments_that_are_too_slow_set_the_pace() -> None:
    lone = Actors("gpu", 1, 1, Pace(((1, 0.001), (100, 0.002))))
    problem = LearningProblem(
        (ChipPool("gpu", 2),), (lone,), (Learner("gpu", 1, Pace(((1, 1e-3),))),), 100, EVEN, 0.0,
        environments=Environments("cpu", 1000.0), most_stale=0,
    )
    plan = plan_learning(problem)
    assert isinstance(plan, LearningPlan)
    assert plan.seconds == pytest.approx(100 * 100 / 1000.0 + 0.1)


def test_unlike_engines_warn_of_log_probabilities_with_rule_and_source() -> None:
    plan = plan_learning(EIGHT_BILLION)
    assert isinstance(plan, LearningPlan)
    assert len(plan.warnings) == 1
    assert "gpu and tpu, vllm and jax, fp8 and bf16" in plan.warnings[0]
    assert "R119" in plan.warnings[0]
    assert "openreview.net" in plan.warnings[0]


def test_like_engines_warn_of_nothing() -> None:
    alike = replace(EIGHT_BILLION, learners=(replace(TPU_LEARNS, stack="vllm", dtype="fp8", kind="gpu"),))
    plan = plan_learning(alike)
    assert isinstance(plan, LearningPlan)
    assert plan.warnings == ()


@pytest.mark.parametrize("changed", [
    {"samples": 0}, {"actors": ()}, {"objective": "speed"}, {"weights_bytes": -1.0}, {"environments": Environments("cpu", 0.0)},
    {"learners": (replace(TPU_LEARNS, pool="npu"),)},
])
def test_what_does_not_fit_together_is_told_in_one_line(changed: dict) -> None:
    with pytest.raises(BadInput, match=r"got .*; expected .*; .+"):
        replace(EIGHT_BILLION, **changed)
