"""Messages, environments, peaks, runtimes and exits: the small parts around a worker."""

import sys
from pathlib import Path

import pytest

from core.device import Device
from core.errors import BadInput, NotFound
from core.probe import Probe, Runtime, Timing
from probes.backends import backend_module, backend_modules
from probes.environment import only_device, worker_environment
from probes.launcher import say_exit
from probes.messages import (
    Broken,
    Finish,
    Finished,
    Open,
    Prepare,
    Prepared,
    Ready,
    Sample,
    Sampled,
    read_reply,
    read_request,
    write,
)
from probes.peaks import peak_flop_per_s
from probes.runtimes import installed_runtimes
from probes.usability import usable_by

PROBE = Probe("dense_tower", "block", (("batch", 2), ("widths", (4, 2))), "fp32", "jax", "cpu:0")
REQUESTS = (Open("jax", "cpu", "/h/agreed"), Prepare(PROBE), Sample(0.5, 4), Finish())
REPLIES = (
    Ready((("jax", "0.10.2"),), "cpu"),
    Prepared(0.1),
    Sampled(4),
    Finished((Timing(1, 2, (3, 4)),), 5, 1e-7),
    Broken("compile", "no"),
)


@pytest.mark.parametrize("message", REQUESTS, ids=lambda m: type(m).__name__)
def test_requests_survive_the_pipe(message: Open | Prepare | Sample | Finish) -> None:
    assert read_request(write(message)) == message


@pytest.mark.parametrize("message", REPLIES, ids=lambda m: type(m).__name__)
def test_replies_survive_the_pipe(message: Ready | Prepared | Sampled | Finished | Broken) -> None:
    assert read_reply(write(message)) == message


def test_a_line_that_is_no_reply_is_refused() -> None:
    with pytest.raises(BadInput):
        read_reply(b"{}")


def test_a_worker_on_the_cpu_sees_no_gpu_and_no_secrets() -> None:
    environment = worker_environment(
        "jax", "cpu", {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "canary", "OMP_NUM_THREADS": "2"}, Path("/h"), "r1"
    )
    assert environment["CUDA_VISIBLE_DEVICES"] == "-1"
    assert environment["JAX_PLATFORMS"] == "cpu"
    assert environment["TANDEM_RUN_ID"] == "r1"
    assert environment["OMP_NUM_THREADS"] == "2"
    assert "canary" not in "".join(environment.values())


def test_the_backend_of_keras_is_set_before_its_import() -> None:
    assert worker_environment("keras-torch", "cpu", {}, Path("/h"), "")["KERAS_BACKEND"] == "torch"


def test_a_gpu_of_amd_is_asked_for_by_its_own_platform() -> None:
    assert worker_environment("jax", "gpu", {}, Path("/h"), "", "AMD")["JAX_PLATFORMS"] == "rocm"
    assert worker_environment("keras-jax", "gpu", {}, Path("/h"), "", "NVIDIA")["JAX_PLATFORMS"] == "cuda"
    assert worker_environment("jax", "cpu", {}, Path("/h"), "", "AMD")["JAX_PLATFORMS"] == "cpu"


def test_a_worker_sees_the_gpu_that_it_is_for_and_no_other() -> None:
    second = Device("gpu:1", "gpu", "NVIDIA H200", "GPU-2", 141 * 10**9)
    assert only_device(second) == {"CUDA_VISIBLE_DEVICES": "GPU-2"}
    assert only_device(Device("cpu:0", "cpu", "CPU", "cpu-1", 2**30)) == {}


def test_each_way_to_end_has_its_own_sentence() -> None:
    said = [say_exit(code) for code in (0, 3, -9, -6, -11, -4, -15, None)]
    assert len(set(said)) == len(said)


def test_every_runtime_with_a_backend_is_in_the_catalog() -> None:
    assert set(backend_modules()) <= {runtime.id for runtime in installed_runtimes()}


def test_an_unknown_runtime_is_refused_by_name() -> None:
    with pytest.raises(NotFound, match="caffe"):
        backend_module("caffe")


def test_an_interpreter_that_is_not_there_is_the_reason() -> None:
    jax = next(r for r in installed_runtimes((("jax", "/no/such/python"),)) if r.id == "jax")
    assert not jax.installed
    assert "TANDEM_PYTHON_JAX" in jax.reason


@pytest.mark.parametrize("said", ["null", "[1, 2]", '{"jax": 1}', '{"jax": null, "optax": []}', "rubbish", ""])
def test_an_interpreter_that_tells_no_packages_is_the_reason(tmp_path: Path, said: str) -> None:
    liar = tmp_path / "python"
    liar.write_text(f"#!/bin/sh\necho '{said}'\n", encoding="utf-8")
    liar.chmod(0o755)
    jax = next(r for r in installed_runtimes((("jax", str(liar)),)) if r.id == "jax")
    assert not jax.installed
    assert jax.reason.startswith(f"TANDEM_PYTHON_JAX names {liar}, which is not a Python")


@pytest.mark.parametrize("path", ["/", "a" * 5000, "no-such-python"])
def test_a_path_that_is_no_program_is_the_reason(path: str) -> None:
    jax = next(r for r in installed_runtimes((("jax", path),)) if r.id == "jax")
    assert not jax.installed
    assert "is no program that can be run" in jax.reason


def test_an_interpreter_is_looked_for_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my-python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    jax = next(r for r in installed_runtimes((("jax", "my-python"),)) if r.id == "jax")
    assert "no program" not in jax.reason


def test_an_interpreter_that_lacks_packages_is_named_with_them(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    jax = next(r for r in installed_runtimes((("jax", str(bare)),)) if r.id == "jax")
    assert not jax.installed
    assert jax.reason == f"not installed in {bare}: jax, jaxlib, optax; install it there"


def test_a_cpu_build_of_torch_cannot_use_a_gpu_and_says_what_would_help() -> None:
    gpu = Device("gpu:0", "gpu", "NVIDIA H200", "GPU-1", 141 * 10**9)
    torch = Runtime("torch-eager", "torch", "eager", (("torch", "2.13.0+cpu"),), "/python", installed=True)
    (pair,) = usable_by((gpu,), (torch,))
    assert not pair.ok
    assert pair.remedy == "./tandem runtimes install torch-cuda"


def test_a_runtime_that_is_not_installed_gives_its_reason_for_every_device() -> None:
    cpu = Device("cpu:0", "cpu", "x", "cpu-1", 1)
    (pair,) = usable_by((cpu,), (Runtime("mxnet", "mxnet", "eager", reason="retired"),))
    assert (pair.ok, pair.reason) == (False, "retired")


def test_the_peak_of_a_catalog_chip_is_its_dense_peak() -> None:
    assert peak_flop_per_s(Device("gpu:0", "gpu", "x", "GPU-1", 1, None, "h100-sxm"), "bf16") == pytest.approx(989e12, rel=0.01)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fma avx2 avx512f", 2 * 16 * 2 * 2 * 3.2e9),
        ("fma avx2", 2 * 8 * 2 * 2 * 3.2e9),
        ("sse2", 2 * 4 * 2 * 2 * 0.5 * 3.2e9),
        ("", None),
    ],
)
def test_the_bound_of_a_processor_follows_its_lanes_and_clock(tmp_path: Path, flags: str, expected: float | None) -> None:
    information = tmp_path / "cpuinfo"
    information.write_text(f"processor : 0\ncpu MHz : 2000.0\nflags : {flags}\n\nprocessor : 1\n", encoding="utf-8")
    clock_file_is_there = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").exists()
    got = peak_flop_per_s(Device("cpu:0", "cpu", "x", "cpu-1", 1, 2), "fp32", information)
    if expected is None:
        assert got is None
    elif clock_file_is_there:
        assert got is not None
    else:
        assert got == pytest.approx(expected)
