"""Every recorded outcome file still parses, still passes the gates, and is judged as it was on the day it was recorded.

A file of a GPU is recorded by `python -m bench.gpu_check --output tests/device/recorded/NAME.json` where one is attached.
`cpu.json` is of a processor, in the same format: it keeps this test honest where no GPU was at hand.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.recorded import failed_gates, read, verdict
from core.errors import BadInput
from core.probe import Measurement

FILES = sorted((Path(__file__).parent / "recorded").glob("*.json"))


def test_at_least_one_file_is_recorded_and_its_device_is_named() -> None:
    assert FILES
    assert all(read(path).device.kind == path.stem.split("-")[0] for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_recorded_file_holds_measurements_that_pass_the_gates_again(path: Path) -> None:
    found = read(path)
    assert any(isinstance(outcome, Measurement) and outcome.trusted for outcome in found.outcomes)
    assert failed_gates(found) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_recorded_file_is_judged_as_it_was(path: Path) -> None:
    assert verdict(read(path))[1] == read(path).verdict


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_times_that_no_device_could_reach_do_not_pass_the_gates(path: Path) -> None:
    found = read(path)
    first = next(outcome for outcome in found.outcomes if isinstance(outcome, Measurement) and outcome.trusted and outcome.flop)
    faster = tuple(replace(t, samples_ns=tuple(max(1, ns // 1000) for ns in t.samples_ns)) for t in first.timings)
    assert failed_gates(replace(found, outcomes=(replace(first, timings=faster),)))


def test_a_file_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_text(FILES[0].read_text(encoding="utf-8")[:-200], encoding="utf-8")
    with pytest.raises(BadInput):
        read(cut)
