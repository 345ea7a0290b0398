"""The history of devices as a use case: from the database to flags, and a drift that is marked as it is measured."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.probe import Measurement, Outcome, Timing
from core.run import Progress
from probes.inventory import devices
from probes.session import Answered, Event, Stage, Waiting
from services import device_history
from services.context import Context, context
from services.probing import Reporter
from tests.samples.parts import kernel_outcomes, sample_device

KERNEL = next(o for o in kernel_outcomes() if isinstance(o, Measurement))


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path / "home"))
    context.cache_clear()
    yield context()
    context().store.close()
    context.cache_clear()


def timed(seconds: float, day: int, **changes: object) -> Measurement:
    timings = (Timing(1, 1, tuple(round(1e9 * seconds * part) for part in (0.99, 1.0, 1.01))),)
    return replace(KERNEL, timings=timings, taken_at=f"2026-03-{day:02d}T10:00:00+00:00", warnings=(), **changes)  # type: ignore[arg-type]


@pytest.mark.usefixtures("alone")
def test_before_anything_was_measured_there_is_no_history() -> None:
    assert device_history.histories() == ()


def test_what_was_kept_is_told_for_the_attached_device_with_its_drift(alone: Context) -> None:
    here = devices()[0]
    for day, seconds in ((1, 0.1), (2, 0.1), (3, 0.2)):
        alone.store.keep_loose(timed(seconds, day, device_uuid=here.uuid))
    found = device_history.histories()
    assert [(one.id, one.name) for one in found] == [(here.id, here.name)]
    assert len(found[0].series[0].points) == 3
    assert len(found[0].flags) == 1
    assert "2.0 times as slow as" in found[0].flags[0]


def test_devices_of_other_runs_are_peers_when_they_are_of_one_kind(alone: Context) -> None:
    one, other = (replace(sample_device(), uuid=uuid, accelerator="h100-sxm", kind="gpu") for uuid in ("uuid-0", "uuid-1"))
    from tests.samples.runs import sample_run

    alone.store.create_run(replace(sample_run(), devices=(one, other), outcomes=(), actuals=()))
    alone.store.keep_loose(timed(0.1, 1, device_uuid="uuid-0"))
    alone.store.keep_loose(timed(0.2, 1, device_uuid="uuid-1"))
    found = {history.uuid: history for history in device_history.histories()}
    assert found["uuid-0"].flags == ()
    assert "2.0 times as slow as on another device of this kind" in found["uuid-1"].flags[0]


def test_a_drift_is_marked_before_it_is_kept_and_other_events_pass_as_they_are(alone: Context) -> None:
    heard: list[Event] = []
    hear = device_history.marking_history(alone.store, heard.append)
    alone.store.keep_loose(timed(0.1, 1))
    failure = next(o for o in kernel_outcomes() if o is not None)
    for event in (Stage("measuring"), Answered(timed(0.2, 2)), Answered(timed(0.101, 3))):
        hear(event)
    assert heard[0] == Stage("measuring")
    first, second = (event.outcome for event in heard[1:] if isinstance(event, Answered))
    assert isinstance(first, Measurement)
    assert first.warnings[0].startswith("drift: 2.0 times as slow as the last trusted run (2026-03-01 10:00 UTC)")
    assert first.timings == timed(0.2, 2).timings
    assert second == timed(0.101, 3)
    assert failure is not None


def test_the_reporter_tells_place_and_holder() -> None:
    told: list[Progress] = []
    kept: list[Outcome] = []
    reporter = Reporter(1, kept.append, lambda progress, _outcome: told.append(progress), 10.0)
    reporter.hear(Waiting("cpu:0", 2, "place 2, held by run abc since 14:02 UTC"))
    reporter.hear(Waiting("cpu:0", None, "no place in the queue (No space left on device), held by another process"))
    reporter.hear(Stage("starting runtimes"))
    assert [(one.stage, one.place) for one in told] == [
        ("waiting for cpu:0, place 2, held by run abc since 14:02 UTC", 2),
        ("waiting for cpu:0, no place in the queue (No space left on device), held by another process", 1),
        ("starting runtimes", 0),
    ]
