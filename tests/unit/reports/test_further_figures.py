"""Figures that only some jobs have are told where they are known, and nowhere else."""

import csv
import io
from dataclasses import replace

import pytest

from cli import shapes
from core.advice import Estimate, Served
from core.quantity import log_normal
from core.run import Run
from reports import document, to_csv, view
from tests.samples.runs import sample_run

JOB = log_normal(7200.0, 0.1, "published", "interrupted every 2 h")
LATENCIES = tuple(log_normal(seconds, 0.1, "published") for seconds in (1.0, 2.0, 4.0))
SERVED = Served(5.0, 20.0, LATENCIES, LATENCIES, LATENCIES)


def with_figures(run: Run, served: Served | None = SERVED) -> Run:
    """A run whose leading candidate has the time of its job, and latencies where it serves a rate."""
    told = run.recommendation
    assert told is not None
    best: Estimate = replace(told.ranked[0], job_s=JOB, served=served)
    return replace(run, recommendation=replace(told, best=best, ranked=(best, *told.ranked[1:])))


def test_a_candidate_tells_the_time_of_its_job_and_latencies() -> None:
    row = view.candidate_rows(with_figures(sample_run()))[0]
    told = {name: figure.text for name, figure in row.further}
    assert told == {"most that it serves": "20.0 requests/s", "latency of half": "1.00 s", "latency of 99 in 100": "4.00 s"}
    alone = view.candidate_rows(with_figures(sample_run(), None))[0]
    assert {name: figure.text for name, figure in alone.further} == {"whole job": "2.00 h"}


def test_spreadsheets_have_columns_for_the_rate_and_the_latencies() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv.render(with_figures(sample_run())).decode())))
    names = ("most_served_per_s", "latency_half_s", "latency_99_in_100_s")
    assert [float(rows[0][f"{name}_mid"]) for name in names] == pytest.approx([20, 1, 4])
    assert rows[0]["job_s_mid"] == rows[1]["latency_half_s_mid"] == ""


def test_a_candidate_without_them_has_no_such_line() -> None:
    assert all(row.further == () for row in view.candidate_rows(sample_run()))


def test_sides_that_lack_a_figure_show_a_dash_for_it() -> None:
    table = document.side_table(with_figures(sample_run(), None))
    line = next(row for row in table.rows if row[0].text == "whole job")
    texts = [cell.text for cell in line[1:]]
    assert sum("2.00 h" in text for text in texts) == 1
    assert texts.count(view.UNKNOWN) == len(texts) - 1


def test_the_document_holds_percentiles_by_name() -> None:
    told = shapes.served(SERVED)
    assert told["utilisation"] == 0.25
    assert {name: one["mid"] for name, one in told["total_s"].items()} == {"p50": 1.0, "p95": 2.0, "p99": 4.0}
    assert shapes.served(Served(30.0, 20.0))["total_s"] is None
