"""What was measured over time comes out again: in order, with every raw sample, within its limits."""

from dataclasses import replace

from core.device import Device
from core.probe import Measurement, Outcome
from db import Store
from tests.samples.parts import kernel_outcomes, sample_device
from tests.samples.runs import sample_run

KERNEL = next(o for o in kernel_outcomes() if isinstance(o, Measurement))
SUBJECTS = (KERNEL.probe.subject,)


def on(day: int, **changes: object) -> Measurement:
    return replace(KERNEL, taken_at=f"2026-03-{day:02d}T10:00:00+00:00", **changes)  # type: ignore[arg-type]


def kept(store: Store, *outcomes: Outcome) -> None:
    for outcome in outcomes:
        store.keep_loose(outcome)


def test_a_series_comes_out_oldest_first_with_every_raw_sample_and_quarantined_ones_too(store: Store) -> None:
    found = (on(1), on(2, trusted=False), on(3))
    kept(store, *found)
    assert store.series(SUBJECTS, 10, 100) == found
    assert store.series(("another",), 10, 100) == ()


def test_a_series_goes_back_so_far_for_each_probe_and_in_all(store: Store) -> None:
    other = replace(KERNEL.probe, dtype="bf16")
    kept(store, *(on(day) for day in range(1, 6)), on(6, probe=other), on(7, device_uuid="another"))
    assert [one.taken_at[8:10] for one in store.series(SUBJECTS, 2, 100)] == ["04", "05", "06", "07"]
    assert [one.taken_at[8:10] for one in store.series(SUBJECTS, 2, 3)] == ["05", "06", "07"]


def test_what_was_trusted_before_is_of_this_probe_and_device_newest_first(store: Store) -> None:
    kept(store, on(1), on(2, trusted=False), on(3), on(4, device_uuid="another"))
    kept(store, on(5, probe=replace(KERNEL.probe, dtype="bf16")))
    found = store.trusted_before(KERNEL.device_uuid, KERNEL.probe, 8)
    assert found == (on(3), on(1))
    assert store.trusted_before(KERNEL.device_uuid, KERNEL.probe, 1) == (on(3),)


def test_every_device_that_a_run_found_is_known_as_it_was_found_last(store: Store) -> None:
    first: Device = sample_device()
    other = replace(first, id="cpu:1", uuid="other")
    named = replace(first, name="Renamed")
    for run_id, day, devices in (("a" * 12, 1, (first, other)), ("b" * 12, 2, (named,)), ("c" * 12, 3, (named,))):
        created_at = f"2026-03-0{day}T10:00:00+00:00"
        store.create_run(replace(sample_run(), id=run_id, created_at=created_at, devices=devices, outcomes=(), actuals=()))
    assert {device.uuid: device.name for device in store.devices_seen()} == {first.uuid: "Renamed", "other": first.name}
