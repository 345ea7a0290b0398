"""What the command line says of a run: the documents that scripts rely on, and the same for people."""

import json

import pytest

from cli import parts, shapes
from core.probe import Measurement
from core.run import Progress
from reports import view
from tests.samples.parts import sample_runtimes
from tests.samples.runs import outcomes_of, sample_hostile, sample_nothing_feasible, sample_run, sample_running

QUANTITIES = {"step_time_s", "throughput", "memory_bytes_per_chip", "compile_s", "cost_usd", "energy_j", "job_s"}


def test_advice_has_the_keys_of_the_contract() -> None:
    run = sample_run()
    assert run.recommendation is not None
    said = json.loads(json.dumps(shapes.recommendation(run.recommendation, run.id), allow_nan=False))
    assert {"best", "ranked", "excluded", "verdicts", "flips", "gaps", "confidence", "run_id"} <= set(said)
    assert said["run_id"] == run.id
    assert set(said["confidence"]) == {"p_best", "expected_regret"}
    for one in (said["best"], *said["ranked"], *said["unranked"]):
        assert {"runtime", "pools", "plan", "estimate"} <= set(one)
        assert {"accelerator", "count"} <= set(one["pools"][0])
        assert set(one["estimate"]) == QUANTITIES
        for value in one["estimate"].values():
            assert value is None or {"low", "mid", "high", "tier"} <= set(value)
    assert {"runtime", "accelerator", "rule", "flag", "reason"} <= set(said["excluded"][0])
    assert {"rule", "flag", "effect", "reason", "source", "as_of"} <= set(said["verdicts"][0])
    assert {"what", "probe", "seconds", "remedy"} == set(said["gaps"][0])


def test_advice_says_what_the_recommendation_says() -> None:
    run = sample_run()
    assert run.recommendation is not None
    assert run.recommendation.best is not None
    assert run.recommendation.best.step_time_s is not None
    said = shapes.recommendation(run.recommendation, None)
    assert said["best"]["estimate"]["step_time_s"]["mid"] == run.recommendation.best.step_time_s.mid
    assert [one["runtime"] for one in said["ranked"]] == [one.candidate.runtime for one in run.recommendation.ranked]
    assert said["sentence"] == run.recommendation.sentence


def test_nothing_feasible_is_null_and_not_an_error() -> None:
    run = sample_nothing_feasible()
    assert run.recommendation is not None
    assert shapes.recommendation(run.recommendation, run.id)["best"] is None


def test_an_outcome_has_the_keys_of_the_contract_whether_it_was_answered_or_not() -> None:
    run = sample_run()
    shaped = [shapes.outcome(one) for one in run.outcomes]
    assert {True, False} == {one["ok"] for one in shaped}
    for one, said in zip(run.outcomes, shaped, strict=True):
        assert {"probe", "runtime", "device", "ok", "median_s", "iqr_s", "n", "method", "warnings", "error"} <= set(said)
        if isinstance(one, Measurement):
            assert said["median_s"] == one.median_s
            assert said["n"] == len(one.samples_s)
        else:
            assert said["median_s"] is None
            assert one.error in said["error"]


def test_a_run_and_a_runtime_have_the_keys_of_the_contract() -> None:
    said = json.loads(json.dumps(shapes.run(sample_run()), allow_nan=False))
    assert {"id", "created_at", "state", "name", "task", "owner", "versions"} <= set(said)
    assert {"recommendation", "outcomes", "actuals"} <= set(said)
    for one in sample_runtimes():
        assert {"id", "framework", "mode", "version", "installed", "reason"} <= set(shapes.runtime(one))


def test_the_text_answer_opens_with_the_three_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    run = sample_run()
    answer = run.recommendation
    assert answer is not None
    parts.tell_answer(run)
    text = capsys.readouterr().out
    assert text.startswith(f"{answer.sentence}\n{answer.why}\n{answer.rests_on}\n")
    assert "Left out:" in text
    shown = [row.label for row in view.shortlisted_rows(run, parts.SHOWN_ROWS)]
    assert len(shown) == parts.SHOWN_ROWS
    assert all(label in text for label in shown)


def test_the_text_answer_of_a_hostile_run_keeps_each_row_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    run = sample_hostile()
    parts.tell_answer(run)
    parts.tell_outcomes(run.outcomes)
    assert not [line for line in capsys.readouterr().out.split("\n") if not line.isprintable()]


def test_outcomes_are_told_with_their_figure_or_their_reason(capsys: pytest.CaptureFixture[str]) -> None:
    run = sample_run()
    parts.tell_outcomes(run.outcomes)
    text = capsys.readouterr().out
    assert text.count("\n") == len(run.outcomes) + 1
    for one in run.outcomes:
        line = parts.outcome_line(one)
        assert ("took" in line) == isinstance(one, Measurement)


def test_progress_says_what_was_measured_what_comes_and_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    run = sample_running()
    measured = outcomes_of(run, "jax")[0]
    parts.tell_progress(Progress("measuring", 3, 9, "lstm_layer in jax", remaining_s=12.0, place=2), measured)
    line = capsys.readouterr().err
    assert line.startswith("[3/9] ")
    assert [part for part in ("took", "lstm_layer in jax", "12.0 s left", "place 2") if part not in line] == []
    parts.tell_progress(Progress("starting runtimes"), None)
    assert capsys.readouterr().err == "starting runtimes\n"
