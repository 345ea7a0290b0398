"""The arithmetic of the bench: errors, bands, choices and the verdict."""

import os
from pathlib import Path

import pytest

from bench import truth
from bench.attached import verdict_line
from bench.control import Usage, share_of_others, usage
from bench.scoring import Row, choose, judge
from core.errors import BadInput


def _row(case: str, runtime: str, mid: float | None, true: float | None, width: float = 0.1) -> Row:
    low, high = (None, None) if mid is None else (mid * (1 - width), mid * (1 + width))
    return Row(case, runtime, low, mid, high, true)


def test_the_error_is_relative_to_the_truth_and_keeps_its_sign() -> None:
    assert _row("a", "jax", 1.1, 1.0).error == pytest.approx(0.1)
    assert _row("a", "jax", 0.9, 1.0).error == pytest.approx(-0.1)
    assert _row("a", "jax", None, 1.0).error is None


def test_a_band_holds_the_truth_at_its_edge_and_not_beyond() -> None:
    assert Row("a", "jax", 0.9, 1.0, 1.1, 1.1).inside is True
    assert Row("a", "jax", 0.9, 1.0, 1.1, 1.1001).inside is False
    assert Row("a", "jax", 0.9, 1.0, 1.1, None).inside is None


def test_a_choice_within_three_percent_of_the_fastest_is_good() -> None:
    rows = [_row("a", "jax", 1.0, 1.029), _row("a", "tf-xla", 1.1, 1.0)]
    choice = choose("a", ["jax", "tf-xla"], rows)
    assert choice is not None
    assert (choice.fastest, choice.good) == ("tf-xla", True)
    slower = choose("a", ["jax", "tf-xla"], [_row("a", "jax", 1.0, 1.04), rows[1]])
    assert slower is not None
    assert not slower.good


def test_a_chosen_runtime_whose_native_could_not_run_is_no_good_choice() -> None:
    choice = choose("a", ["jax"], [_row("a", "jax", 1.0, None), _row("a", "tf-xla", 1.1, 1.0)])
    assert choice is not None
    assert choice.regret is None
    assert not choice.good


def test_every_bound_holds_for_a_bench_that_is_good_enough() -> None:
    rows = [_row(f"case {i}", "jax", 1.05, 1.0, 0.06 if i < 8 else 0.01) for i in range(10)]
    choices = [choice for i in range(10) if (choice := choose(f"case {i}", ["jax"], rows[i : i + 1]))]
    verdict = judge(rows, choices)
    assert verdict.shortfalls == ()
    assert verdict_line(verdict).startswith("HOLDS: median error 5.0%, 90th percentile 5.0%, coverage 80.0%")


def test_each_bound_that_falls_short_is_named() -> None:
    rows = [_row("a", "jax", 1.5, 1.0), _row("a", "tf-xla", None, 1.0)]
    said = " ".join(judge(rows, []).shortfalls)
    bounds = ("1 workloads", "1 rows without a prediction", "median error 50.0%", "90th percentile 50.0%", "coverage 0.0%",
              "0 of 1")
    for part in bounds:
        assert part in said


def test_rows_whose_native_could_not_run_count_nowhere() -> None:
    verdict = judge([_row("a", "jax", 1.0, 1.0), _row("a", "tf-xla", 9.0, None)], [])
    assert (verdict.rows, verdict.unpredicted) == (1, 0)


def test_truths_come_back_from_their_file_as_they_were(tmp_path: Path) -> None:
    row = truth.TruthRow("a", "jax", (100, 300, 200), 1.5, 7, 2**20, (0.01, 0.02))
    truth.keep(tmp_path / "truth.json", {("a", "jax"): row})
    assert truth.read(tmp_path / "truth.json") == {("a", "jax"): row}
    assert row.median_s == pytest.approx(200e-9)


def test_a_file_that_holds_something_else_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"truths": [{"color": 1}]}', encoding="utf-8")
    with pytest.raises(BadInput, match="keep-truth"):
        truth.read(tmp_path / "other.json")


def test_processor_time_of_this_process_is_not_counted_as_that_of_others() -> None:
    before = Usage(at_s=0.0, machine_s=100.0, own_s=10.0)
    cores = os.cpu_count() or 1
    assert share_of_others(before, Usage(10.0, 100.0 + 5.0, 15.0)) == 0.0
    assert share_of_others(before, Usage(10.0, 100.0 + 5.0 + cores, 15.0)) == pytest.approx(0.1)


def test_the_machine_has_used_at_least_what_this_process_used() -> None:
    now = usage()
    assert now.machine_s > now.own_s > 0
