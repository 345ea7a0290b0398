"""The planner of workflows against everything that there is to try, and what must hold for any workflow."""

from dataclasses import replace
from random import Random

import pytest

from advisor.split.stages import plan_stages
from advisor.split.stages_words import Edge, Stage, StageOption, StagePool, StagesPlan, StagesProblem, Wire
from core.device import Link
from core.errors import BadInput
from core.workflow import FormChange, WorkflowStore
from tests.unit.advisor.split.stages_cases import LEVEL, every_plan, faults, workflow

MARGIN = 1e-6


def _plan(problem: StagesProblem) -> StagesPlan | None:
    """Return a plan; None where streams make stages wait for each other, as they do in some of the random workflows."""
    try:
        return plan_stages(problem, singles=False)
    except BadInput:
        return None


@pytest.mark.parametrize("objective", ["time", "cost", "energy"])
def test_a_plan_equals_the_best_of_all_that_there_are(objective: str) -> None:
    compared = 0
    for seed in range(130):
        problem = workflow(seed, objective)
        plan = _plan(problem)
        if plan is None:
            continue
        compared += 1
        everything = [figures[LEVEL[objective]] for figures in every_plan(problem)]
        assert bool(plan.placed) == bool(everything), (seed, plan.barred)
        if plan.placed:
            assert plan.value == pytest.approx(min(everything), rel=MARGIN, abs=1e-9), seed
            assert plan.proven, seed
            assert faults(problem, plan) == [], seed
    assert compared >= 100


@pytest.mark.parametrize(("objective", "limit"), [("time", "budget"), ("cost", "deadline"), ("energy", "deadline")])
def test_a_plan_within_limits_equals_the_best_of_all_that_keep_them(objective: str, limit: str) -> None:
    barred = 0
    for seed in range(200, 240):
        problem = workflow(seed, objective)
        if _plan(problem) is None:
            continue
        everything = every_plan(problem)
        figures = sorted({figure[1 if limit == "budget" else 0] for figure in everything})
        if not figures:
            continue
        most = figures[len(figures) // 4] * 1.0001 if seed % 5 else figures[0] * 0.9
        limited = replace(problem, budget_usd=most) if limit == "budget" else replace(problem, deadline_s=most)
        kept = [one[LEVEL[objective]] for one in everything if one[1 if limit == "budget" else 0] <= most]
        plan = plan_stages(limited, singles=False)
        barred += not kept
        assert bool(plan.placed) == bool(kept), (seed, plan.barred)
        if kept:
            assert plan.value == pytest.approx(min(kept), rel=MARGIN, abs=1e-9), seed
            assert faults(problem, plan) == [], seed
        else:
            assert f"the {limit} of" in plan.barred, seed
    assert barred > 2


@pytest.mark.parametrize("objective", ["time", "cost"])
def test_the_order_of_pools_and_stages_changes_nothing(objective: str) -> None:
    for seed in range(300, 320):
        problem = workflow(seed, objective)
        plan = _plan(problem)
        if plan is None:
            continue
        chance = Random(seed)
        pools, stages = list(problem.pools), list(problem.stages)
        chance.shuffle(pools)
        chance.shuffle(stages)
        other = plan_stages(replace(problem, pools=tuple(pools), stages=tuple(stages)), singles=False)
        assert other.value == pytest.approx(plan.value, rel=MARGIN)


@pytest.mark.parametrize("objective", ["time", "cost"])
def test_without_a_pool_nothing_is_better(objective: str) -> None:
    for seed in range(400, 415):
        problem = workflow(seed, objective)
        plan = _plan(problem)
        if plan is None or plan.value is None:
            continue
        for gone in problem.pools:
            stages = tuple(
                replace(stage, options=tuple(option for option in stage.options if option.pool != gone.name))
                for stage in problem.stages
            )
            less = plan_stages(replace(problem, stages=stages), singles=False)
            assert less.value is None or less.value >= plan.value * (1 - MARGIN)


def test_a_free_link_is_never_slower_than_a_slow_one() -> None:
    for seed in range(500, 515):
        problem = workflow(seed)
        plan = _plan(problem)
        if plan is None or plan.value is None:
            continue
        free = tuple(replace(wire, link=Link(0.0, 1e30)) for wire in problem.wires)
        faster = plan_stages(replace(problem, wires=free), singles=False)
        assert faster.value is not None
        assert faster.value <= plan.value * (1 + MARGIN)


def test_shares_of_a_plan_sum_to_one_and_its_terms_to_its_seconds() -> None:
    for seed in range(40):
        plan = _plan(workflow(seed))
        if plan is None or not plan.placed:
            continue
        assert sum(use.fraction for use in plan.uses) == pytest.approx(1.0)
        assert sum(seconds for _, seconds in plan.terms) == pytest.approx(plan.seconds)
        assert max(bar.stop_s for bar in plan.timeline) == pytest.approx(plan.seconds)
        assert all(0 <= bar.start_s <= bar.stop_s for bar in plan.timeline)


def _two(**changes: object) -> StagesProblem:
    """Return a workflow that trains on a TPU in JAX and evaluates on a GPU in torch, over 1 GB/s."""
    stages = (
        Stage("prepare", (StageOption("cpu", 10.0), StageOption("gpu", 10.0)), anywhere=True),
        Stage("train", (StageOption("tpu", 100.0, "", "", "jax"), StageOption("gpu", 300.0, "", "", "torch"))),
        Stage("evaluate", (StageOption("gpu", 50.0, "", "torch"), StageOption("tpu", None, "the harness needs CUDA"))),
    )
    edges = (Edge("prepare", "train", 1e9), Edge("train", "evaluate", 2e9))
    pools = (StagePool("cpu", 0.0, is_host=True), StagePool("tpu", 36.0), StagePool("gpu", 36.0))
    wires = tuple(Wire(pair, Link(0.0, 1e9)) for pair in (("cpu", "tpu"), ("cpu", "gpu"), ("tpu", "gpu")))
    conversions = (FormChange("jax", "torch", 5.0, 1e9, warning="compare logits"),)
    return replace(StagesProblem(stages, edges, pools, wires, None, conversions), **changes)  # type: ignore[arg-type]


def test_training_on_one_and_evaluating_on_the_other_pays_for_the_way_and_the_conversion() -> None:
    plan = plan_stages(_two())
    assert {one.stage: one.pool for one in plan.placed} == {"prepare": "cpu", "train": "tpu", "evaluate": "gpu"}
    assert plan.seconds == pytest.approx(10 + 1 + 100 + 2 + (5 + 2) + 50)
    assert plan.cost_usd == pytest.approx(150 * 36 / 3600)
    assert dict(plan.terms) == pytest.approx({"stages on cpu": 10, "stages on tpu": 100, "stages on gpu": 50, "moves": 3,
                                              "conversions": 7})  # fmt: skip
    assert plan.warnings == ("train to evaluate: compare logits",)
    assert [(move.source, move.target, move.seconds, move.exposed_s) for move in plan.moves] == [
        ("cpu", "tpu", 1.0, 1.0), ("tpu", "gpu", 9.0, 9.0)]  # fmt: skip


def test_each_pool_alone_keeps_its_host_and_says_why_it_cannot() -> None:
    singles = {one.pool: one for one in plan_stages(_two()).singles}
    assert singles["gpu"].seconds == pytest.approx(10 + 300 + 50)
    assert not singles["tpu"].feasible
    assert "evaluate can run on no pool" in singles["tpu"].missing
    assert "the harness needs CUDA" in singles["tpu"].missing
    assert plan_stages(_two()).best_single == "gpu"


@pytest.mark.parametrize(("changes", "said"), [
    ({"deadline_s": 100.0}, "the deadline of 1.67 min: the least that can be reached is 2.83 min"),
    ({"budget_usd": 1.0}, "the budget of 1.00 USD: the least is 1.50 USD"),
    ({"deadline_s": 200.0, "most_pools": 1}, "the deadline of 3.33 min: the least that can be reached is 6.00 min"),
    ({"wires": (), "store": None, "stages": (Stage("prepare", (StageOption("cpu", 1.0),)), *_two().stages[1:])},
     "prepare cannot hand over to train: no network or store joins their pools"),
    ({"pools": (StagePool("cpu", 0.0), StagePool("tpu"), StagePool("gpu")), "objective": "cost"}, "gpu: its price is not known"),
    ({"pools": (StagePool("cpu", 0.0), StagePool("tpu", 0.0), StagePool("gpu", 0.0, quota_h=0.01))}, "the quotas of hours: gpu"),
])  # fmt: skip
def test_what_bars_a_workflow_is_said_with_what_can_be_reached(changes: dict[str, object], said: str) -> None:
    plan = plan_stages(_two(**changes), singles=False)
    assert plan.placed == ()
    assert said in plan.barred


def test_streams_go_at_the_pace_of_the_slowest_and_add_up_on_one_pool() -> None:
    decode = Stage("decode", (StageOption("cpu", 40.0), StageOption("tpu", 30.0)))
    train = Stage("train", (StageOption("tpu", 50.0),))
    pools = (StagePool("cpu", 0.0), StagePool("tpu", 0.0))
    problem = StagesProblem((decode, train), (Edge("decode", "train", 6e10, streamed=True),), pools, (),
                            WorkflowStore(2e9, 2e9))  # fmt: skip
    apart = plan_stages(problem, singles=False)
    assert apart.seconds == pytest.approx(60.0)  # the store: 30 s up and 30 s down
    assert {one.pool for one in apart.placed} == {"cpu", "tpu"}
    together = plan_stages(replace(problem, store=None), singles=False)
    assert together.seconds == pytest.approx(80.0)


def test_the_cheapest_of_the_fastest_is_taken() -> None:
    pools = (StagePool("dear", 7200.0), StagePool("cheap", 3600.0), StagePool("slow", 0.0))
    options = tuple(StageOption(name, seconds) for name, seconds in (("dear", 5.0), ("cheap", 5.0), ("slow", 20.0)))
    long = Stage("long", (StageOption("slow", 20.0),))
    plan = plan_stages(StagesProblem((Stage("one", options[:2]), Stage("two", options[:2]), long), (), pools), singles=False)
    assert (plan.seconds, plan.cost_usd) == (pytest.approx(20.0), pytest.approx(10.0))


@pytest.mark.parametrize(("changes", "said"), [
    ({"edges": (Edge("prepare", "train"), Edge("train", "prepare"))}, "wait for each other"),
    ({"edges": (Edge("prepare", "none"),)}, "an edge of stage 'none'"),
    ({"pools": (StagePool("cpu"), StagePool("cpu"), StagePool("gpu"), StagePool("tpu"))}, "pool 'cpu' twice"),
    ({"edges": (Edge("prepare", "train", -1.0),)}, "expected a finite number"),
    ({"wires": (Wire(("cpu", "gpu"), Link(0.0, 0.0)),)}, "1 / rate between cpu and gpu"),
    ({"stages": ()}, "0 stages"),
    ({"stages": (Stage("a", (StageOption("none", 1.0),)),), "edges": ()}, "pool 'none' of a"),
])  # fmt: skip
def test_what_is_no_workflow_is_refused_in_one_line(changes: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        plan_stages(_two(**changes))
    assert said in str(caught.value)
