"""The check of a GPU is judged on samples of known rates."""

from pathlib import Path

import pytest

from bench import gpu_check
from bench.published import published_for
from bench.recorded import Recorded, figures, read, told, verdict, write
from core.device import Device
from core.probe import Measurement, Outcome, Probe, ProbeFailure, Timing

H200 = Device("gpu:0", "gpu", "NVIDIA H200", "GPU-1", 141 * 10**9, accelerator="h200")
TAKEN = "2026-11-30T00:00:00+00:00"


def _measured(subject: str, sizes: tuple[tuple[str, int], ...], dtype: str, work: float, rate: float) -> Measurement:
    """Return a measurement whose copy takes exactly work / rate seconds."""
    ns = round(work / rate * 1e9)
    timings = tuple(Timing(depth, 1, tuple(ns * depth + 5000 for _ in range(12))) for depth in (1, 5))
    flop, traffic = (int(work), 0) if subject.startswith("matmul") else (0, int(work))
    probe = Probe(subject, "kernel", sizes, dtype, "jax", "gpu:0")
    return Measurement(probe, timings, "slope", flop, traffic, None, (), True, (), "GPU-1", TAKEN)


def _product(rate: float) -> Measurement:
    return _measured("matmul_chain", (("n", 8192),), "bf16", 2 * 8192**3, rate)


def _copy(rate: float) -> Measurement:
    return _measured("memory_copy", (("bytes", 2**28),), "fp32", 2**29, rate)


def _recorded(*outcomes: Outcome, seconds: float = 200.0, device: Device = H200) -> Recorded:
    return Recorded(1, device, outcomes, (("bf16", 989e12), ("fp32", 67e12)), 480.0, seconds, "")


def test_rates_as_published_hold() -> None:
    held, said = verdict(_recorded(_product(735e12), _copy(4.0e12)))
    assert held, said
    assert said.startswith("HOLDS: NVIDIA H200: 2 of 2 figures within 10% of published ones")


@pytest.mark.parametrize(("product", "copy", "named"), [(500e12, 4.0e12, "bf16 product"), (735e12, 2.0e12, "memory copy")])
def test_a_rate_far_from_the_published_one_falls_short_by_name(product: float, copy: float, named: str) -> None:
    held, said = verdict(_recorded(_product(product), _copy(copy)))
    assert not held
    assert named in said


def test_the_tolerance_is_ten_percent_beyond_the_published_span() -> None:
    assert verdict(_recorded(_product(680e12 * 0.901), _copy(4010e9)))[0]
    assert not verdict(_recorded(_product(680e12 * 0.899), _copy(4010e9)))[0]
    assert verdict(_recorded(_product(790e12 * 1.099), _copy(4010e9)))[0]


def test_a_needed_figure_that_was_not_measured_falls_short() -> None:
    held, said = verdict(_recorded(_copy(4.0e12)))
    assert not held
    assert "bf16 product, 8192^3 was not measured" in said


def test_a_failed_probe_is_told_with_its_reason() -> None:
    failure = ProbeFailure(_product(1e12).probe, "device", "got jax on cpu", None, "", TAKEN)
    held, said = verdict(_recorded(failure, _copy(4.0e12)))
    assert not held
    assert "got jax on cpu" in said


def test_a_check_that_took_too_long_falls_short() -> None:
    assert not verdict(_recorded(_product(735e12), _copy(4.0e12), seconds=601.0))[0]


def test_an_accelerator_without_published_figures_is_said_to_have_none() -> None:
    unknown = Device("gpu:0", "gpu", "Some GPU", "GPU-2", 10**9)
    assert "nothing is published here for Some GPU" in verdict(_recorded(_product(735e12), device=unknown))[1]


def test_a_figure_that_no_probe_repeats_says_why() -> None:
    found = {one.published.dtype: one for one in figures(_recorded(_product(735e12), _copy(4.0e12)))}
    assert found["fp8"].rate is None
    assert found["fp8"].reason == "no probe of this kind and dtype"
    assert told(None, "FLOP/s") == "-"


def test_a_recorded_file_reads_back_as_it_was(tmp_path: Path) -> None:
    value = _recorded(_product(735e12), _copy(4.0e12))
    write(tmp_path / "gpu.json", value)
    assert read(tmp_path / "gpu.json") == value


def test_every_published_row_has_a_source_and_a_span() -> None:
    rows = [row for key in ("h200", "h100-sxm", "a100-80") for row in published_for(key)]
    assert len(rows) >= 12
    assert all(row.source and 0 < row.low <= row.high for row in rows)
    assert {row.accelerator for row in rows if row.needed} == {"h200", "h100-sxm", "a100-80"}


def test_without_a_gpu_the_check_ends_with_one_line_and_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cpu = Device("cpu:0", "cpu", "Some CPU", "cpu-1", 10**9, cores=2)
    monkeypatch.setattr(gpu_check, "devices", lambda: (cpu,))
    assert gpu_check.main(["--only", "launch"]) == 2
    said = capsys.readouterr().err.strip()
    assert said.startswith("got no NVIDIA GPU (Some CPU); expected gpu:0")
    assert "\n" not in said


def test_the_plan_holds_the_shapes_that_are_published() -> None:
    from core.probe import Runtime

    runtime = Runtime("jax", "jax", "jit", (), "python", installed=True)
    planned = gpu_check.plan(H200, (runtime,), None)
    probes = [one.probe for one in planned]
    assert any(p.subject == "matmul_chain" and ("n", 8192) in p.sizes and p.dtype == "bf16" for p in probes)
    assert any(p.subject == "memory_copy" and p.dtype == "fp32" for p in probes)
    assert len(set(probes)) == len(probes)
