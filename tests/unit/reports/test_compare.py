"""Runs side by side: what differs, by how much, and whether the bands part."""

from dataclasses import replace

import pytest

from core.quantity import log_normal
from core.run import Run
from core.workload import Total
from reports.compare import Cell, CompareRow, compare, unlike
from tests.samples.runs import sample_failed, sample_run


def _faster(run: Run, factor: float, sigma: float = 0.01) -> Run:
    """Return the run with the step time of its best candidate times a factor, in a narrow band."""
    advice = run.recommendation
    assert advice is not None
    assert advice.best is not None
    assert advice.best.step_time_s is not None
    step = log_normal(advice.best.step_time_s.mid * factor, sigma, "measured", "the test")
    best = replace(advice.best, step_time_s=step)
    ranked = tuple(best if e.candidate == best.candidate else e for e in advice.ranked)
    return replace(run, recommendation=replace(advice, best=best, ranked=ranked))


def _row(rows: tuple[CompareRow, ...], name: str) -> CompareRow:
    return next(row for row in rows if row.name == name)


def test_equal_runs_differ_in_nothing() -> None:
    assert not [row for row in compare((sample_run(), sample_run())) if row.differs]


def test_a_change_is_told_against_the_first_run() -> None:
    base, other = _faster(sample_run(), 1.0), _faster(sample_run(), 0.8)
    first, second = _row(compare((base, other)), "step time of the chosen").cells
    assert (first.change, first.verdict) == ("", "")
    assert (second.change, second.verdict) == ("-20.0 %", "bands part")
    assert _row(compare((other, base)), "step time of the chosen").cells[1].change == "+25.0 %"


@pytest.mark.parametrize(
    ("factor", "said"),
    [(1.99, "+99.0 %"), (0.9999, "+0.0 %"), (2.0, "2 x"), (17.25, "17.2 x"), (0.51, "-49.0 %"), (0.4, "0.4 x")],
)
def test_a_change_that_nobody_pictures_in_percent_is_a_factor(factor: float, said: str) -> None:
    rows = compare((_faster(sample_run(), 1.0), _faster(sample_run(), factor)))
    assert _row(rows, "step time of the chosen").cells[1].change == said


def test_steps_of_other_work_are_told_once_and_equal_ones_are_not() -> None:
    run = sample_run()
    half = replace(run, workload=replace(run.workload, blocks=run.workload.blocks[:1]))
    assert unlike((run, run)) == ""
    assert "FLOP to" in unlike((run, half))
    inferring = replace(run, workload=replace(run.workload, task="infer"))
    assert f"tasks {run.workload.task} and infer" in unlike((run, inferring))


def test_bands_that_overlap_do_not_part() -> None:
    rows = compare((_faster(sample_run(), 1.0, 0.2), _faster(sample_run(), 0.95, 0.2)))
    assert _row(rows, "step time of the chosen").cells[1].verdict == "bands overlap"


def test_every_candidate_that_two_runs_know_has_a_row() -> None:
    run = sample_run()
    assert run.recommendation is not None
    labels = {e.candidate.label for e in run.recommendation.ranked if e.step_time_s}
    assert {row.name for row in compare((run, run)) if row.section == "step time"} == labels


def test_a_run_without_advice_says_so_and_is_held_against_nothing() -> None:
    rows = compare((sample_run(), replace(sample_failed(), recommendation=None)))
    assert _row(rows, "step time of the chosen").cells[1] == Cell("—")
    assert _row(rows, "state").differs
    assert not [row for row in rows if row.section == "step time"]


def test_costs_of_different_amounts_are_shown_and_not_held_against_each_other() -> None:
    whole = sample_run()
    step_wise = replace(whole, workload=replace(whole.workload, total=Total()))
    assert whole.workload.total_steps is not None
    assert _row(compare((whole, step_wise)), "cost of the chosen").cells[1].change == ""
    assert _row(compare((whole, whole)), "cost of the chosen").cells[1].change == "+0.0 %"


def test_facts_and_versions_of_both_are_there() -> None:
    run = sample_run()
    other = replace(run, versions=(*run.versions, ("newcomer", "1.0")))
    rows = compare((run, other))
    assert [cell.text for cell in _row(rows, "newcomer").cells] == ["—", "1.0"]
    assert _row(rows, "batch").section == "workload"
    assert {row.section for row in rows} == {"answer", "step time", "workload", "machine", "versions"}
