"""Rounds of copies from made-up measurements."""

import pytest

from probes.split.words import Calibrated, Cost, SplitTask
from services.split_measured_local import alone_s, local_problem, plan_rounds, task_of_rounds

EXCHANGES = ((1000, 0.11), (2000, 0.12))
LAYERS = (("class_head", (("classes", 2),), 1),)


def side(a_sample_s: float) -> tuple[Cost, ...]:
    rows = {"compute": {rows: rows * a_sample_s for rows in (1, 4, 8)}, "flatten": dict.fromkeys((1, 4, 8), 0.01)}
    fixed = {"update": 0.02, "change": 0.03, "reduce": 0.04, "load": 0.05}
    found = [Cost(what, count, loaded, (s,)) for what, by in rows.items() for count, s in by.items() for loaded in (True, False)]
    return (*found, *(Cost(what, 8, loaded, (s,)) for what, s in fixed.items() for loaded in (True, False)))


def found(first: float = 0.1, second: float = 0.1) -> Calibrated:
    return Calibrated((side(first), side(second)), EXCHANGES, (), 2000)


def test_a_round_is_its_steps_and_one_meeting() -> None:
    plan = plan_rounds(found(), ("a", "b"), 8, longest_s=3.0)
    assert plan is not None
    assert plan.inner_steps == 5
    assert plan.round_s == pytest.approx(5 * (4 * 0.1 + 0.01 + 0.02) + 0.12 + 0.03 + 0.04 + 0.05)


def test_rounds_are_as_long_as_fits() -> None:
    longest = {limit: plan_rounds(found(), ("a", "b"), 8, limit) for limit in (0.1, 1.5, 3.0, 5.0, 99.0)}
    assert [plan.inner_steps for plan in longest.values() if plan] == [2, 2, 5, 10, 20]


def test_the_slower_side_has_fewer_samples() -> None:
    plan = plan_rounds(found(0.1, 0.3), ("a", "b"), 8, 99.0)
    assert plan is not None
    task = task_of_rounds(SplitTask("local", LAYERS, 8, rows=(4, 4)), plan)
    assert task.rows == (6, 2)
    assert task.inner_steps == (plan.inner_steps,) * 2


def test_a_side_alone_does_as_many_samples_as_both() -> None:
    plan = plan_rounds(found(), ("a", "b"), 8, 3.0)
    assert plan is not None
    assert alone_s(found(), 0, plan, 8) == pytest.approx(5 * (8 * 0.1 + 0.01 + 0.02))


def test_without_measurements_there_is_no_plan() -> None:
    assert local_problem(Calibrated((side(0.1), ()), EXCHANGES, (), 2000), ("a", "b"), 8) is None
    assert plan_rounds(Calibrated((side(0.1), side(0.1)), (), (), 2000), ("a", "b"), 8, 1.0) is None
