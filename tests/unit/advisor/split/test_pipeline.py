"""Pipelines by hand: known steps, schedules, links and memory; what does not fit is told; large ones have a proven gap."""

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from advisor.split.pipeline import alone, plan_pipeline, why_no_pipeline
from advisor.split.pipeline_bound import of_plans
from advisor.split.pipeline_curves import layer_curve, pipeline_bandwidth_curve, pipeline_break_even
from advisor.split.pipeline_schedule import Times, depth, passes, step_seconds
from advisor.split.pipeline_search import Best, prove
from advisor.split.pipeline_tables import Tables
from advisor.split.pipeline_words import Crossing, PipelineProblem, Sizing, StagePool, every_way
from core.device import Link
from core.errors import BadInput


def pool(name: str, layers: int, speed: float = 1.0, counts: tuple[int, ...] = (8,), memory: float | None = None) -> StagePool:
    """A layer takes 1 + 2 seconds of the whole batch at speed 1, keeps one byte of it, and has one byte of state."""
    sizings = tuple(
        Sizing(count, (1 / speed / count,) * layers, (2 / speed / count,) * layers, (1 / count,) * layers) for count in counts
    )
    return StagePool(name, sizings, (1.0,) * layers, memory)


def problem_of(pools: tuple[StagePool, ...], link: Link, size: float = 0.0, **changes: object) -> PipelineProblem:
    layers, counts = len(pools[0].state_bytes), [sizing.micro_batches for sizing in pools[0].sizings]
    crossings = tuple(Crossing(count, (size / count,) * (layers - 1), (size / count,) * (layers - 1)) for count in counts)
    return replace(PipelineProblem(pools, crossings, every_way(len(pools), link)), **changes)  # type: ignore[arg-type]


def times(forward: list[float], backward: list[float], out: list[float], latency: float = 0.0) -> Times:
    def column(values: list[float]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        return np.array(values, dtype=np.float64).reshape(-1, 1)

    late = column([latency] * len(out))
    return Times(column(forward), column(backward), column([0.0] * len(forward)), column(out), column(out), late, late)


@pytest.mark.parametrize("schedule", ["1f1b", "1f1b-eager", "gpipe"])
@pytest.mark.parametrize(("stages", "count"), [(1, 4), (2, 8), (4, 8), (4, 2), (5, 16)])
def test_equal_stages_with_a_free_link_take_as_many_turns_as_micro_batches_and_stages_less_one(
    schedule: str, stages: int, count: int
) -> None:
    found = step_seconds(times([1.0] * stages, [2.0] * stages, [0.0] * (stages - 1)), schedule, count)
    assert found[0] == pytest.approx((count + stages - 1) * 3.0)  # bubble (stages - 1) / micro-batches, arXiv 2104.04473


def test_a_slow_link_is_the_beat_of_the_pipeline() -> None:
    # 2 stages of 1 + 2 s, 5 s to send a micro-batch: six of them out, then six back, one after another
    found = step_seconds(times([1.0, 1.0], [2.0, 2.0], [5.0]), "gpipe", 6)
    assert found[0] == pytest.approx(1 + 6 * 5 + 1 + 2 + 6 * 5 + 2)


def test_latency_delays_but_does_not_occupy() -> None:
    # in GPipe's order 4 forwards leave from 1 to 4 s and arrive from 11 s on; the last backward begins after 15 + 4 x 2 s at most
    found = step_seconds(times([1.0, 1.0], [2.0, 2.0], [0.0], 10.0), "gpipe", 4)
    assert found[0] == pytest.approx(1 + 10 + 4 * 1 + 4 * 2 + 10 + 2)


def test_eager_passes_hide_a_latency_that_one_forward_one_backward_does_not() -> None:
    plain, eager = (step_seconds(times([1.0, 1.0], [1.0, 1.0], [0.0], 1.0), name, 64)[0] for name in ("1f1b", "1f1b-eager"))
    assert plain == pytest.approx(64 / 2 * 6 + 1, abs=4)  # two in flight, a round trip of six
    assert eager == pytest.approx(64 * 2 + 4, abs=3)


@pytest.mark.parametrize("schedule", ["1f1b", "1f1b-eager", "gpipe"])
def test_no_stage_ever_keeps_more_than_its_depth(schedule: str) -> None:
    held, most = [0] * 4, [0] * 4
    for stage, backward, _ in passes(schedule, 4, 6):
        held[stage] += -1 if backward else 1
        most[stage] = max(most[stage], held[stage])
    assert most == [depth(schedule, 3 - stage, 6) for stage in range(4)]
    assert held == [0] * 4


@pytest.mark.parametrize("schedule", ["1f1b", "1f1b-eager", "gpipe"])
def test_no_plan_is_faster_than_its_bound(schedule: str) -> None:
    draw = np.random.default_rng(5)
    for _ in range(40):
        stages, count = int(draw.integers(1, 6)), int(draw.integers(1, 12))
        scale = draw.choice([0.0, 0.1, 1.0, 5.0])
        many = Times(
            draw.uniform(0, 1, (stages, 20)), draw.uniform(0, 2, (stages, 20)), draw.uniform(0, 1, (stages, 20)),
            *(scale * draw.uniform(0, 1, (stages - 1, 20)) for _ in range(4)),
        )
        assert np.all(of_plans(many, schedule, count) <= step_seconds(many, schedule, count) * (1 + 1e-12))


def test_without_backward_work_nothing_goes_back_and_no_latency_is_waited_for_twice() -> None:
    # 2 layers of 1/8 s a micro-batch on either, 8 micro-batches, 0.5 s on the way: a flow shop
    def forward(one: StagePool) -> StagePool:
        return replace(one, sizings=tuple(replace(sizing, backward_s=(0.0,) * 4) for sizing in one.sizings), memory_bytes=3.2)

    whole = problem_of((forward(pool("a", 4)), forward(pool("b", 4, 1.0))), Link(0.5, 1e9), least_pools=2)
    plan = plan_pipeline(whole)
    assert plan is not None
    assert plan.schedule == "forward"
    assert plan.seconds == pytest.approx(2 / 8 + 0.5 + 2 / 8 + 7 * 2 / 8)
    assert [move.what for move in plan.moves] == ["activations"]
    assert {bar.what.split()[0] for bar in plan.timeline if bar.kind == "compute"} == {"forward"}
    assert [stage.memory_bytes for stage in plan.stages] == pytest.approx([2.25, 2.25])
    assert plan.proved


@pytest.mark.parametrize("seed", range(12))
def test_plans_without_backward_work_are_the_fastest_of_all(seed: int) -> None:
    draw = random.Random(seed)
    problem = random_problem(seed, 6, 2, rate=draw.uniform(0, 3))
    pools = tuple(
        replace(one, update_s=(), sizings=tuple(replace(sizing, backward_s=(0.0,) * 6) for sizing in one.sizings))
        for one in problem.pools
    )
    crossings = tuple(replace(one, gradient_bytes=(0.0,) * 5) for one in problem.crossings)
    plan = plan_pipeline(replace(problem, pools=pools, crossings=crossings, least_pools=2))
    every = [
        sum(first) + send + 0.01 + sum(second) + (m - 1) * max(sum(first), send, sum(second))  # a flow shop of equal jobs
        for a, b in ((0, 1), (1, 0)) for edge in range(1, 6) for index, m in enumerate((4, 8))
        for send in [crossings[index].activation_bytes[0]]
        for first in [pools[a].sizings[index].forward_s[:edge]] for second in [pools[b].sizings[index].forward_s[edge:]]
    ]
    assert plan is not None
    assert plan.seconds == pytest.approx(min(every))


def test_two_pools_get_layers_by_their_speed() -> None:
    plan = plan_pipeline(problem_of((pool("fast", 12, 3.0, (48,)), pool("slow", 12, 1.0, (48,))), Link(0.0, 1e12)))
    assert plan is not None
    assert {stage.pool: stage.stop - stage.first for stage in plan.stages} == {"fast": 9, "slow": 3}
    assert plan.seconds == pytest.approx(9 * (1 + 1 / 48))
    assert plan.fractions in {(("fast", 0.75), ("slow", 0.25)), (("slow", 0.25), ("fast", 0.75))}


def test_many_micro_batches_and_a_free_link_come_near_the_rates_together() -> None:
    pools = tuple(pool(f"p{index}", 24, speed, (256,)) for index, speed in enumerate((1.0, 2.0, 3.0)))
    plan = plan_pipeline(problem_of(pools, Link(0.0, 1e15)))
    assert plan is not None
    assert plan.seconds == pytest.approx(24 * 3 / 6, rel=1e-2)  # 12, 8 and 4 layers: level


def test_a_pool_that_costs_more_than_it_brings_is_left_out() -> None:
    plan = plan_pipeline(problem_of((pool("fast", 6, 10.0), pool("slow", 6, 0.1)), Link(0.01, 1e9)))
    assert plan is not None
    assert [stage.pool for stage in plan.stages] == ["fast"]
    both = plan_pipeline(problem_of((pool("fast", 6, 10.0), pool("slow", 6, 0.1)), Link(0.01, 1e9), least_pools=2))
    assert both is not None
    assert both.seconds > plan.seconds == both.best_single.seconds  # type: ignore[union-attr]


def test_memory_moves_the_cut_and_counts_what_is_in_flight() -> None:
    # state of 1 a layer and 1/8 a micro-batch kept: the first stage of two keeps two of them, 1.25 a layer, the last 1.125
    pools = (pool("wide", 8, 1.0, memory=100.0), pool("tight", 8, 4.0, memory=2.3))
    plan = plan_pipeline(problem_of(pools, Link(0.0, 1e9)))
    assert plan is not None
    assert {stage.pool: (stage.first, stage.stop) for stage in plan.stages} == {"wide": (0, 6), "tight": (6, 8)}
    assert {stage.pool: stage.memory_bytes for stage in plan.stages} == pytest.approx({"wide": 7.5, "tight": 2.25})
    assert "needs" in alone(problem_of(pools, Link(0.0, 1e9)))[1].missing


def test_a_layer_that_fits_nowhere_is_named() -> None:
    pools = tuple(replace(pool(name, 3, memory=2.0), state_bytes=(1.0, 9.0, 1.0)) for name in "ab")
    problem = problem_of(pools, Link(0.0, 1e9))
    assert plan_pipeline(problem) is None
    assert "layer 1 fits nowhere" in why_no_pipeline(problem)[0]


def test_layers_that_fit_one_by_one_but_not_together_are_told() -> None:
    problem = problem_of(tuple(pool(name, 9, memory=3.0) for name in "ab"), Link(0.0, 1e9))
    assert plan_pipeline(problem) is None
    assert "no row of stretches" in why_no_pipeline(problem)[0]


def test_pools_that_are_not_joined_make_no_pipeline() -> None:
    pools = (pool("a", 4), pool("b", 4))
    problem = replace(problem_of(pools, Link(0.0, 1e9)), links=((None, None), (None, None)), least_pools=2)
    assert plan_pipeline(problem) is None
    assert "no 2 pools can send" in why_no_pipeline(problem)[0]


def random_problem(seed: int, layers: int, count: int, rate: float = 1.0) -> PipelineProblem:
    draw = random.Random(seed)
    pools = tuple(
        StagePool(
            f"p{index}",
            tuple(Sizing(m, tuple(s / m for s in forward), tuple(2 * s / m for s in forward), (1 / m,) * layers) for m in (4, 8)),
            (1.0,) * layers, None, (0.01,) * layers,
        )
        for index in range(count)
        for forward in [[draw.uniform(0.5, 1.5) for _ in range(layers)]]
    )
    crossings = tuple(Crossing(m, (rate / m,) * (layers - 1), (rate / m,) * (layers - 1)) for m in (4, 8))
    return PipelineProblem(pools, crossings, every_way(count, Link(0.01, 1.0)))


@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_pools_does_not_matter_and_one_less_is_not_faster(seed: int) -> None:
    problem = random_problem(seed, 8, 3)
    plan = plan_pipeline(problem)
    turned = plan_pipeline(replace(problem, pools=problem.pools[::-1], links=tuple(row[::-1] for row in problem.links[::-1])))
    fewer = plan_pipeline(replace(problem, pools=problem.pools[1:], links=tuple(row[1:] for row in problem.links[1:])))
    assert plan is not None
    assert turned is not None
    assert fewer is not None
    assert plan.seconds == pytest.approx(turned.seconds, rel=1e-12)
    assert plan.seconds <= fewer.seconds * (1 + 1e-12)


def test_a_faster_link_is_never_slower_and_meets_the_best_pool_alone_at_the_break_even() -> None:
    problem = random_problem(3, 8, 2, rate=5.0)
    curve = pipeline_bandwidth_curve(problem, (0.1, 1.0, 10.0, 100.0))
    assert all(later <= earlier * (1 + 1e-12) for (_, earlier), (_, later) in pairwise(curve))
    found = pipeline_break_even(problem)
    single = min(one.seconds for one in alone(problem) if one.seconds is not None)
    assert found.at is None or pipeline_bandwidth_curve(problem, (found.at,))[0][1] == pytest.approx(single, rel=1e-3)
    assert pipeline_break_even(replace(problem, crossings=tuple(
        Crossing(one.micro_batches, (0.0,) * 7, (0.0,) * 7) for one in problem.crossings))).at is None


def test_the_curve_over_layers_has_the_plan_as_its_least_and_the_pools_alone_at_its_ends() -> None:
    problem = random_problem(4, 8, 2, rate=0.1)
    curve, plan, singles = layer_curve(problem), plan_pipeline(problem), alone(problem)
    assert plan is not None
    assert min(seconds for _, seconds in curve) == pytest.approx(plan.seconds)
    assert [curve[0][1], curve[-1][1]] == pytest.approx([singles[1].seconds, singles[0].seconds])
    assert len(curve) == 9


def test_the_timeline_fills_every_lane_and_never_doubles_a_pool() -> None:
    plan = plan_pipeline(random_problem(5, 10, 3))
    assert plan is not None
    for stage in plan.stages:
        bars = [bar for bar in plan.timeline if bar.lane == stage.pool]
        assert sum(bar.stop_s - bar.start_s for bar in bars) == pytest.approx(plan.seconds)
        assert all(later.start_s >= earlier.stop_s - 1e-9 for earlier, later in pairwise(bars))
        assert sum(bar.stop_s - bar.start_s for bar in bars if bar.kind in {"compute", "update"}) == pytest.approx(stage.busy_s)


def test_a_search_that_is_cut_short_still_bounds_every_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(6, 12, 4)
    whole = plan_pipeline(problem)
    monkeypatch.setattr("advisor.split.pipeline_search.MOST_PLANS", 5000)
    short = plan_pipeline(problem)
    assert whole is not None
    assert short is not None
    assert whole.proved
    assert not short.proved
    assert short.bound_s <= whole.seconds * (1 + 1e-12) <= short.seconds * (1 + 1e-9)
    assert 0 < short.gap < 0.5


def test_seven_pools_have_a_bound_that_no_searched_plan_undercuts() -> None:
    problem = random_problem(7, 14, 7, rate=0.05)
    plan = plan_pipeline(problem)
    assert plan is not None
    assert not plan.proved
    assert 0 < plan.gap < 0.4
    assert plan.bound_s < plan.seconds
    fewer = replace(problem, pools=problem.pools[:4], links=tuple(row[:4] for row in problem.links[:4]))
    best = Best()
    prove(Tables(fewer), best)
    assert plan.bound_s <= best.seconds


@pytest.mark.parametrize(("change", "part"), [
    ({"schedules": ("interleaved",)}, "interleaved"), ({"least_pools": 5}, "least_pools 5"), ({"links": ()}, "links"),
    ({"crossings": (Crossing(8, (1.0,), (1.0,)),)}, "bytes that cross"), ({"pools": ()}, "no pools"),
    ({"crossings": (Crossing(4, (1.0,) * 3, (1.0,) * 3),)}, "a with"),
])
def test_numbers_that_do_not_fit_are_refused(change: dict[str, object], part: str) -> None:
    with pytest.raises(BadInput, match=part):
        replace(problem_of((pool("a", 4), pool("b", 4)), Link(0.0, 1.0)), **change)  # type: ignore[arg-type]
