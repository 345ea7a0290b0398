"""Stages from made-up measurements, and real models as stretches that can be parted."""

from itertools import pairwise
from typing import Any

import pytest

import intake
from advisor.split.pipeline import plan_pipeline
from core.errors import BadInput
from core.workload import Workload
from probes.split.words import Calibrated, Cost
from probes.split.work import pieces_of
from services.split_measured_pipeline import Stretch, guessed, micro_batch_counts, plan_stages, stretches_of
from services.split_run_modes import task_for

FREE = ((1000, 1e-9), (2000, 1e-9))
SLOW = ((1000, 0.11), (2000, 0.12))
HEAD: dict[str, Any] = {"kind": "class_head", "name": "head", "classes": 10, "loss": "cross_entropy"}


def workload(**changes: object) -> Workload:
    return intake.read_document({"schema": 1, "task": "train", "batch": 8, "dtype": "fp32", "optimizer": "sgd", **changes})


def towers(*widths: int) -> list[dict[str, Any]]:
    """Return towers of one layer each, with a head of 10 classes."""
    relu = {"activation": "relu", "last_activation": "relu"}
    blocks: list[dict[str, Any]] = [
        {"kind": "dense_tower", "name": f"t{n}", "widths": list(pair), **relu, "first": n == 0}
        for n, pair in enumerate(pairwise(widths))
    ]
    return [*blocks, {**HEAD, "inputs": widths[-1]}]


def stretches(job: Workload) -> tuple[Stretch, ...]:
    return stretches_of(job, pieces_of(task_for(job, "pipeline")))


def stage(forward: float, backward: float, update: float) -> tuple[Cost, ...]:
    times = {"forward": forward, "backward": backward, "flatten": 0.0, "update": update}
    return tuple(Cost(what, 2, loaded, (seconds,)) for what, seconds in times.items() for loaded in (True, False))


def whole(a_sample_s: float, update: float) -> tuple[Cost, ...]:
    told = [Cost("compute", rows, True, (rows * a_sample_s,)) for rows in (1, 8)]
    return (*told, Cost("update", 8, True, (update,)))


def test_four_micro_batches_on_two_equal_stages_are_five_in_a_row() -> None:
    """One forward, one backward on two stages: as many micro-batches and one more, without a link; then the update."""
    told = Calibrated((stage(1.0, 2.0, 0.25), stage(1.0, 2.0, 0.25)), (), FREE, 0, 4000)
    plan = plan_stages(told, ("a", "b"), 8, 4)
    assert plan is not None
    assert plan.seconds == pytest.approx(5 * 3 + 0.25)
    assert [stage.pool for stage in plan.stages] == ["a", "b"]


def test_one_micro_batch_goes_there_and_back() -> None:
    told = Calibrated((stage(1.0, 2.0, 0.25), stage(3.0, 4.0, 0.5)), (), SLOW, 0, 1000)
    plan = plan_stages(told, ("a", "b"), 2, 1)
    assert plan is not None
    assert plan.seconds == pytest.approx(1 + 0.11 + 3 + 4 + 0.11 + 2 + 0.25)


def test_the_first_stage_stays_on_the_first_side_even_where_the_other_order_were_quicker() -> None:
    told = Calibrated((stage(9.0, 9.0, 0.0), stage(1.0, 1.0, 0.0)), (), FREE, 0, 4000)
    plan = plan_stages(told, ("b", "a"), 8, 4)
    assert plan is not None
    assert [(one.pool, one.first, one.stop) for one in plan.stages] == [("b", 0, 1), ("a", 1, 2)]


def test_stages_that_were_not_measured_have_no_plan() -> None:
    assert plan_stages(Calibrated((stage(1, 1, 1), ()), (), FREE, 0, 10), ("a", "b"), 8, 4) is None
    assert plan_stages(Calibrated((stage(1, 1, 1), stage(1, 1, 1)), (), (), 0, 10), ("a", "b"), 8, 4) is None


def test_stretches_of_towers_share_the_arithmetic_and_the_weights() -> None:
    found = stretches(workload(model={"blocks": towers(64, 128, 32)}))
    products = [64 * 128, 128 * 32, 32 * 10]
    assert [one.stop for one in found] == [1, 2, 3]
    assert [one.work for one in found] == pytest.approx([one / sum(products) for one in products], rel=0.02)
    counts = [64 * 128 + 128, 128 * 32 + 32, 32 * 10 + 10]
    assert [one.parameters for one in found] == pytest.approx([one / sum(counts) for one in counts])
    assert [one.output_bytes for one in found[:-1]] == [4 * 8 * 128, 4 * 8 * 32]


def test_in_sixteen_bits_half_as_many_bytes_cross() -> None:
    found = stretches(workload(model={"blocks": towers(64, 128, 32)}, dtype="bf16"))
    assert found[0].output_bytes == 2 * 8 * 128


@pytest.mark.parametrize(("model", "count"), [
    ({"preset": "gpt2-demo"}, 6), ({"preset": "bert-base"}, 14),
    ({"preset": "dlrm-small"}, None), ({"preset": "resnet-50"}, None),
])
def test_presets_are_stretches_whose_parts_add_up(model: dict[str, str], count: int | None) -> None:
    found = stretches(workload(model=model))
    assert len(found) == (count or len(found))
    assert sum(one.work for one in found) == pytest.approx(1.0)
    assert sum(one.parameters for one in found) == pytest.approx(1.0)
    assert [one.stop for one in found] == sorted({one.stop for one in found})


@pytest.mark.parametrize("blocks", [[{**HEAD, "inputs": 16}]], ids=["a head alone"])
def test_a_model_of_one_piece_is_refused(blocks: list[dict[str, Any]]) -> None:
    with pytest.raises(BadInput, match="expected one that can be cut in two"):
        stretches(workload(model={"blocks": blocks}))


def test_the_quicker_side_is_told_more_of_the_work() -> None:
    """Twenty equal layers on sides of which one is three times as quick: it gets about three quarters of them."""
    rows = tuple(Stretch(stop, 0.05, 0.05, 8000.0) for stop in range(1, 21))
    problem = guessed(Calibrated((whole(0.1, 0.0), whole(0.3, 0.0)), (), FREE, 0), ("a", "b"), rows, 8, {}, in_order=False)
    assert problem is not None
    plan = plan_pipeline(problem)
    assert plan is not None
    held = {stage.pool: stage.stop - stage.first for stage in plan.stages}
    assert held["a"] in (14, 15, 16)
    assert plan.micro_batches == 8


def test_what_passes_were_measured_to_take_moves_the_cut() -> None:
    rows = tuple(Stretch(stop, 0.1, 0.1, 8000.0) for stop in range(1, 11))
    told = Calibrated((whole(0.1, 0.0), whole(0.1, 0.0)), (), FREE, 0)
    held: list[dict[str, int]] = []
    for scales in ({}, {"a": 1.0, "b": 4.0}):
        problem = guessed(told, ("a", "b"), rows, 8, scales, in_order=False)
        plan = None if problem is None else plan_pipeline(problem)
        assert plan is not None
        held.append({stage.pool: stage.stop - stage.first for stage in plan.stages})
    assert held[0] == {"a": 5, "b": 5}
    assert held[1] == {"a": 8, "b": 2}


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_the_order_of_the_sides_can_be_kept(names: tuple[str, str]) -> None:
    """The heaviest stretch is the last; whichever side is quick, the first side has the first stage."""
    rows = (Stretch(1, 0.1, 0.1, 8000.0), Stretch(2, 0.1, 0.1, 8000.0), Stretch(3, 0.8, 0.8, 8000.0))
    for costs in ((whole(0.1, 0.0), whole(0.3, 0.0)), (whole(0.3, 0.0), whole(0.1, 0.0))):
        problem = guessed(Calibrated(costs, (), FREE, 0), names, rows, 8, {}, in_order=True)
        plan = None if problem is None else plan_pipeline(problem)
        assert plan is not None
        assert [stage.pool for stage in plan.stages] == list(names)


@pytest.mark.parametrize(("batch", "counts"), [
    (8, (1, 2, 4, 8)), (6, (1, 2)), (12, (1, 2, 4)), (15, (1, 3, 5)), (7, (1, 7)), (1, (1,)),
])
def test_a_batch_is_cut_into_what_divides_it(batch: int, counts: tuple[int, ...]) -> None:
    assert micro_batch_counts(batch) == counts
