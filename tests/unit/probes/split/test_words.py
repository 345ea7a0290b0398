from dataclasses import replace

import pytest

from core.errors import BadInput
from core.split import Bar, Check
from probes.split.words import Calibrated, Cost, LinkSpec, Ran, SideStep, periods
from probes.split.work import turns_of


def _step(start, stop, loss=None, bars=()):
    return SideStep(start, stop, bars, loss, 0)


STEPS = (
    tuple(
        _step(at, at + 0.8, 1.0 - 0.1 * at, (("compute", at, at + 0.5, "work"), ("wait", at + 0.5, at + 0.8, "waits")))
        for at in range(5)
    ),
    tuple(_step(at + 0.1, at + 1.0, 0.5) for at in range(5)),
)


def test_a_step_lasts_from_the_later_end_to_the_next() -> None:
    assert periods(STEPS) == pytest.approx((1.0, 1.0, 1.0, 1.0))


def test_an_idle_side_does_not_count() -> None:
    assert periods((STEPS[0], ())) == pytest.approx((1.0,) * 4)


def test_steps_that_only_one_side_ended_do_not_count() -> None:
    assert len(periods((STEPS[0], STEPS[1][:3]))) == 2


def test_the_loss_of_a_step_is_that_of_both_sides_together() -> None:
    assert Ran(STEPS, (), 0, ((), ())).losses == pytest.approx((1.5, 1.4, 1.3, 1.2, 1.1))


def test_a_side_that_sees_no_loss_adds_none() -> None:
    blind = tuple(replace(step, loss=None) for step in STEPS[1])
    assert Ran((STEPS[0], blind), (), 0, ((), ())).losses == pytest.approx((1.0, 0.9, 0.8, 0.7, 0.6))


def test_the_timeline_begins_at_nothing_and_names_its_lanes() -> None:
    bars = Ran(STEPS, (), 0, ((), ())).timeline(("one", "other"))
    assert bars[0] == Bar("one", 0.0, 0.5, "compute", "work")
    assert (bars[1].kind, bars[1].stop_s) == ("wait", pytest.approx(0.8))


def test_seconds_of_a_kind_are_summed() -> None:
    assert STEPS[0][0].seconds("compute") == 0.5


def test_a_run_holds_when_every_check_does() -> None:
    checks = (Check("a", 0.0, 0.0), Check("b", 2.0, 1.0))
    assert not Ran(STEPS, checks, 0, ((), ())).holds
    assert Ran(STEPS, checks[:1], 0, ((), ())).holds


def test_a_pace_is_told_by_rows_and_by_whether_the_other_side_worked() -> None:
    costs = (Cost("compute", 8, True, (3.0, 1.0, 2.0)), Cost("compute", 4, True, (1.0,)), Cost("compute", 4, False, (0.5,)))
    calibrated = Calibrated((costs, ()), (), (), 0)
    assert calibrated.pace(0, "compute", loaded=True) == ((4, 1.0), (8, 2.0))
    assert calibrated.pace(0, "compute", loaded=False) == ((4, 0.5),)
    assert calibrated.pace(1, "compute", loaded=True) == ()


def test_two_sides_that_take_as_long_in_the_median_wait_for_whoever_is_late() -> None:
    unsteady = Cost("compute", 4, True, (1.0, 2.0, 3.0))
    told = Calibrated(
        ((unsteady, Cost("flatten", 4, True, (0.5, 0.5, 0.5))), (unsteady, Cost("flatten", 4, True, (0.5,) * 3))), (), (), 0
    )
    assert told.longer_s((4, 4)) == 3.5  # of nine pairs one has 1, three have 2 and five have 3 as the longer
    assert told.longer_s((4, 5)) is None


def test_a_second_calibration_adds_its_samples_to_those_of_the_first() -> None:
    first = Calibrated(((Cost("compute", 4, True, (1.0, 3.0)),), ()), ((8, 0.5),), (), 16)
    more = Calibrated(((Cost("compute", 4, True, (5.0,)), Cost("compute", 2, True, (0.25,))), ()), ((8, 9.0),), (), 16)
    both = first.with_more(more)
    assert both.pace(0, "compute", loaded=True) == ((2, 0.25), (4, 3.0))
    assert both.exchanges == ((8, 0.5),)


@pytest.mark.parametrize(
    ("rows", "most", "expected"),
    [(0, 4, ()), (0, 0, ()), (5, 0, (5,)), (5, 8, (5,)), (5, 2, (1, 2, 2)), (8, 4, (4, 4)), (9, 4, (3, 3, 3))],
)
def test_turns_are_as_few_and_as_even_as_may_be(rows, most, expected) -> None:
    assert turns_of(rows, most) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "stages"},
        {"batch": 0},
        {"layers": ()},
        {"rows": (5, 6)},
        {"rows": (-1, 13)},
        {"most": (-1, 0)},
        {"push_every": 0},
        {"mode": "local", "rows": (0, 12)},
        {"mode": "local", "inner_steps": (0, 2)},
        {"mode": "pipeline", "micro_batches": 5},
        {"mode": "operators", "ahead": 2},
    ],
)
def test_a_task_that_cannot_be_done_is_refused_in_one_line(tasks, change) -> None:
    with pytest.raises(BadInput) as caught:
        replace(tasks["data"], **change)
    assert "expected" in str(caught.value)


@pytest.mark.parametrize(
    "link",
    [
        {"transport": "pigeon"},
        {"bytes_per_s": 0.0},
        {"bytes_per_s": float("nan")},
        {"latency_s": -1.0},
        {"latency_s": float("nan")},
    ],
)
def test_what_is_no_link_is_refused(link) -> None:
    with pytest.raises(BadInput):
        LinkSpec(**link)
