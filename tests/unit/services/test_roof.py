"""The roof is measured once a day: what still answers is carried over, anything else is measured anew."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.device import Device
from core.probe import Measurement, Runtime, Timing
from services.roof import carried_over, roof_probes

CPU = Device("cpu:0", "cpu", "test", "cpu-test", 24 * 2**30, 2)
TORCH = Runtime("torch-eager", "torch", "eager", (("torch", "2.13.0"),), "/python", installed=True)
JAX = Runtime("jax", "jax", "jit", (("jax", "0.10.2"),), "/python", installed=True)
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ROOF = roof_probes((JAX, TORCH), CPU, "fp32")
STORED = Measurement(
    ROOF[0].probe, (Timing(1, 1, (10, 11)), Timing(5, 1, (50, 55))), "slope", 10, 10, None, (), True, (("torch", "2.13.0"),),
    CPU.uuid, "2026-11-30T09:00:00+00:00",
)


def test_the_roof_is_a_large_product_and_a_sweep_over_memory_in_one_runtime() -> None:
    assert [(one.probe.subject, one.probe.runtime) for one in ROOF] == [
        ("matmul_chain", "torch-eager"), ("memory_triad", "torch-eager"),
    ]
    assert roof_probes((replace(JAX, id="tf-xla"),), CPU, "fp32") == ()


def test_what_was_measured_this_morning_is_carried_over() -> None:
    assert carried_over(ROOF, (STORED,), CPU, (TORCH,), NOW) == (STORED,)


@pytest.mark.parametrize(
    "changed",
    [
        {"taken_at": (NOW - timedelta(days=1)).isoformat()},
        {"taken_at": (NOW + timedelta(hours=1)).isoformat()},
        {"trusted": False},
        {"warnings": ("contended: other processes used 40 % of the machine meanwhile",)},
        {"versions": (("torch", "2.12.0"),)},
        {"device_uuid": "cpu-other"},
        {"probe": replace(STORED.probe, dtype="bf16")},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_is_old_doubted_disturbed_or_of_another_kind_is_measured_anew(changed: dict[str, object]) -> None:
    assert carried_over(ROOF, (replace(STORED, **changed),), CPU, (TORCH,), NOW) == ()  # type: ignore[arg-type]
