"""`./tandem devices --history`: the same history as a document and as a table, and nothing of it unless it is asked for."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.devices import devices as command
from cli.shapes import outcome
from core.probe import Measurement, Timing
from core.statistics import iqr
from probes.inventory import devices
from services.context import Context, context
from tests.samples.parts import kernel_outcomes

KERNEL = next(o for o in kernel_outcomes() if isinstance(o, Measurement))


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path / "home"))
    context.cache_clear()
    yield context()
    context().store.close()
    context.cache_clear()


def told(*arguments: str) -> str:
    done = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    assert done.exception is None
    return done.stdout


def kept(here: Context) -> None:
    for day, factor in ((1, 1), (2, 2)):
        timings = (Timing(1, 1, (100_000_000 * factor, 101_000_000 * factor, 102_000_000 * factor)),)
        here.store.keep_loose(replace(KERNEL, timings=timings, device_uuid=devices()[0].uuid, warnings=(),
                                      taken_at=f"2026-03-0{day}T10:00:00+00:00"))


def test_the_document_has_each_point_with_its_four_figures_and_the_drift(alone: Context) -> None:
    kept(alone)
    assert "history" not in json.loads(told("--json"))
    found = json.loads(told("--history", "--json"))["history"]
    assert [one["id"] for one in found] == [devices()[0].id]
    first, second = found[0]["series"][0]["points"]
    assert {"median_s", "iqr_s", "min_s", "n", "taken_at", "trusted", "versions", "changed", "drift"} <= set(first)
    assert (first["median_s"], first["min_s"], first["n"], first["drift"]) == (0.101, 0.1, 3, None)
    assert second["drift"]["flagged"] is True
    assert second["drift"]["against"] == first["taken_at"]
    assert found[0]["flags"] == found[0]["series"][0]["flags"] != []


def test_the_table_shows_the_newest_and_says_what_drifted(alone: Context) -> None:
    assert "Nothing was measured here yet" in told("--history")
    kept(alone)
    lines = told("--history")
    assert "+100.0 %" in lines
    assert "2.0 times as slow as the last trusted run" in lines
    assert "History of" not in told()


def test_an_outcome_is_told_with_median_spread_minimum_and_count() -> None:
    said, samples = outcome(KERNEL), KERNEL.samples_s
    assert (said["median_s"], said["iqr_s"]) == (KERNEL.median_s, iqr(samples))
    low, high = sorted(KERNEL.timings, key=lambda timing: timing.depth)
    least = (min(high.samples_ns) - min(low.samples_ns)) / (high.depth - low.depth) * 1e-9
    assert (said["min_s"], said["n"]) == (pytest.approx(least), len(samples))
