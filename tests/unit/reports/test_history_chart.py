"""The chart of a device's history: one band a series, drifts told by shape and word, and it draws as a vector."""

import json
from dataclasses import replace
from typing import Any

import pytest

from core.history import DeviceHistory, histories_of, series_of
from core.probe import Measurement, Probe, Timing
from reports import facts, read_json, render
from reports.charts.history import MOST_SERIES, describe_history, history
from reports.picture import to_svg
from tests.samples.runs import sample_run

PROBE = Probe("matmul_chain", "kernel", (("n", 512),), "fp32", "jax", "cpu:0")


def taken(day: int, seconds: float, **changes: object) -> Measurement:
    samples = tuple(round(1e9 * seconds * part) for part in (0.98, 1.0, 1.02))
    made = Measurement(PROBE, (Timing(1, 1, samples),), "direct", 1, 0, None, (), True, (("jax", "1"),), "uuid-0",
                       f"2026-03-{day:02d}T10:00:00+00:00")
    return replace(made, **changes)  # type: ignore[arg-type]


def told(*found: Measurement) -> DeviceHistory:
    return histories_of(series_of(found), {"uuid-0": "Card"}, {}, {"uuid-0": "cpu:0"})[0]


def rows(device: DeviceHistory, kind: str) -> list[dict[str, Any]]:
    chart = history(device)
    assert chart is not None
    return [row for data in chart.to_dict()["datasets"].values() for row in data if row["kind"] == kind]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_draws_every_measurement_and_names_each_series_once(theme: str) -> None:
    other = {"probe": replace(PROBE, runtime="torch-eager"), "versions": ()}
    device = told(taken(1, 0.1), taken(2, 0.2), taken(3, 0.1, **other), taken(4, 0.1, **other))
    assert len(rows(device, "point")) == 4
    assert [row["name"] for row in rows(device, "name")] == [one.name for one in device.series]
    chart = history(device, theme)
    assert chart is not None
    svg = to_svg(chart.to_dict(), 700)
    assert "matmul_chain n=512 fp32 forward in torch-eager" in svg
    assert "200 ms, x 2.0" in svg
    json.dumps(chart.to_dict(), allow_nan=False)


def test_a_drift_has_a_shape_of_its_own_and_a_change_of_version_a_line() -> None:
    found = told(taken(1, 0.1), taken(2, 0.2), taken(3, 0.2, versions=(("jax", "2"),)), taken(4, 0.2, trusted=False))
    assert [row["state"] for row in rows(found, "point")] == ["as before", "drifted", "as before", "not trusted"]
    assert [row["changed"] for row in rows(found, "point")] == [False, False, True, True]
    assert "jax 1 to 2" in rows(found, "point")[2]["note"]


def test_a_slower_point_lies_higher_and_all_stay_in_their_band() -> None:
    for row in rows(told(taken(1, 0.1), taken(2, 0.2), taken(3, 0.15)), "point"):
        assert 0 < row["top"] <= row["y"] <= row["bottom"] < 1
    first, second, third = (row["y"] for row in rows(told(taken(1, 0.1), taken(2, 0.2), taken(3, 0.15)), "point"))
    assert second < third < first


def test_nothing_measured_draws_nothing_and_too_many_series_are_counted() -> None:
    assert history(DeviceHistory("uuid", "", "", ())) is None
    assert history(told(taken(1, 0.1))) is None
    sizes = [replace(PROBE, sizes=(("n", n),)) for n in range(MOST_SERIES + 3)]
    many = told(*(taken(day, 0.1, probe=one) for one in sizes for day in (1, 2)))
    assert len(rows(many, "name")) == MOST_SERIES
    chart = history(many)
    assert chart is not None
    assert "3 more" in " ".join(chart.to_dict()["title"]["subtitle"])


def test_its_words_say_what_it_shows() -> None:
    once = "1 measurement of 1 probe on cpu:0. Everything was measured once: there is nothing to compare yet."
    assert describe_history(told(taken(1, 0.1))) == once
    assert "Nothing drifted by more than its noise." in describe_history(told(taken(1, 0.1), taken(2, 0.1)))
    assert "2.0 times as slow as" in describe_history(told(taken(1, 0.1), taken(2, 0.2)))


def test_no_raw_sample_is_lost_on_the_way_into_a_report_and_each_row_has_its_four_figures() -> None:
    run = sample_run()
    back = read_json(render(run, "json"))
    samples = [[t.samples_ns for t in o.timings] for o in run.outcomes if isinstance(o, Measurement)]
    assert [[t.samples_ns for t in o.timings] for o in back.outcomes if isinstance(o, Measurement)] == samples
    assert sum(len(one) for each in samples for one in each) > 100
    shown = facts.measurement_rows(run)
    assert len(shown) == len(samples)
    assert all(row.median and row.iqr and row.minimum and row.n > 0 for row in shown)
