"""Each framework's own view: real processes of frameworks that are here, recorded words of failures that cannot happen here."""

import json
import os
import sys
from pathlib import Path

import pytest

from core.probe import RUNTIME_IDS, Runtime
from probes.packages import installed
from probes.runtimes import installed_runtimes
from probes.view import SEERS
from probes.views import View, ask, ask_runtimes, explain, read_view, warnings_in

SEES_CPU = json.dumps({"version": "2.21.0", "devices": [{"kind": "cpu", "name": "CPU", "memory_bytes": None}], "error": ""})


def _runtime(name: str) -> Runtime:
    return next(one for one in installed_runtimes() if one.id == name)


def _liar(folder: Path, script: str) -> Runtime:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return Runtime("jax", "jax", "jit", (), str(path), installed=True)


def test_a_framework_that_is_here_tells_its_devices(tmp_path: Path) -> None:
    view = ask(_runtime("jax"), "cpu", os.environ, tmp_path)
    assert view.ok, view
    assert (view.words, view.version) == ("cpu", dict(_runtime("jax").versions)["jax"])
    assert view.seconds > 0


@pytest.mark.skipif(bool({"jax-cuda12-plugin", "jax-cuda13-plugin"} & set(installed())), reason="a GPU build of jax is here")
def test_a_framework_without_its_gpu_build_gives_the_reason(tmp_path: Path) -> None:
    view = ask(_runtime("jax"), "gpu", os.environ, tmp_path)
    assert not view.ok
    assert (view.reason, view.remedy) == ("this is the CPU build of jax", "pip install 'jax[cuda13]'  # in its environment")


def test_two_modes_of_one_framework_share_one_process(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    fake = _liar(tmp_path, f"echo called >> {calls}; echo '{SEES_CPU}'")
    modes = [Runtime(name, "torch", mode, (), fake.interpreter, installed=True) for name, mode in (("torch-eager", "eager"),
             ("torch-compile", "compile"))]  # fmt: skip
    heard: list[View] = []
    views = ask_runtimes([*modes, Runtime("mxnet", "mxnet", "eager")], ("cpu",), {}, tmp_path, on_view=heard.append)
    assert [(view.runtime, view.ok) for view in views] == [("torch-eager", True), ("torch-compile", True)]
    assert tuple(heard) == views
    assert calls.read_text(encoding="utf-8").count("called") == 1


def test_every_runtime_can_be_asked() -> None:
    assert set(SEERS) == set(RUNTIME_IDS)


def test_a_framework_that_hangs_is_ended(tmp_path: Path) -> None:
    view = ask(_liar(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600"), "cpu", os.environ, tmp_path, limit_s=0.5)
    assert (view.ok, view.reason) == (False, "it did not tell within 0.5 s")
    pid = int((tmp_path / "pid").read_text(encoding="ascii"))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_framework_that_crashes_gives_its_last_line(tmp_path: Path) -> None:
    view = ask(_liar(tmp_path, "echo boom >&2; exit 7"), "cpu", os.environ, tmp_path)
    assert view.reason == "it ended with exit code 7 and no answer: boom"


def test_an_interpreter_that_is_gone_is_a_reason(tmp_path: Path) -> None:
    gone = Runtime("jax", "jax", "jit", (), str(tmp_path / "none"), installed=True)
    assert "cannot be started" in ask(gone, "cpu", {}, tmp_path).reason


@pytest.mark.parametrize("out", ["", "null", "[]", '{"version": "1"}', '{"version": "1", "devices": [1], "error": ""}'])
def test_an_answer_that_is_none_is_a_no(out: str) -> None:
    assert not read_view("jax", "cpu", out, "", 0, 1.0).ok


def test_a_silent_fall_back_is_a_no_even_without_a_word() -> None:
    view = read_view("torch-xla", "tpu", SEES_CPU, "", 0, 1.0)
    assert (view.ok, view.reason) == (False, "it sees CPU and no TPU, and says nothing about it")


def test_what_a_framework_raised_is_the_reason_when_nothing_better_is_known() -> None:
    told = json.dumps({"version": "", "devices": [], "error": "ValueError: odd"})
    assert read_view("jax", "gpu", told, "", 0, 1.0).reason == "ValueError: odd"


@pytest.mark.parametrize(("log", "reason", "remedy"), [
    ("UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040). Please update",
     "driver is too old", "update the NVIDIA driver"),
    ("CUDA driver version is insufficient for CUDA runtime version", "driver is too old", "older CUDA"),
    ("Unable to initialize backend 'tpu': ABORTED: The TPU is already in use by process with pid 4242. Not attempting to load",
     "in use by process 4242", "kill 4242"),
    ("ABORTED: Internal error when accessing libtpu multi-process lockfile. Run '$ sudo rm /tmp/libtpu_lockfile'.",
     "left the lock of libtpu", "sudo rm -f /tmp/libtpu_lockfile"),
    ("Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.8.0.  CuDNN library needs to have matching major",
     "loaded cuDNN 9.1.0, but was built with 9.8.0", "unset LD_LIBRARY_PATH"),
    ("Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file",
     "could not load libcudart.so.11.0", "tensorflow[and-cuda]"),
    ("W tensorflow/core/common_runtime/gpu/gpu_device.cc:2348] Cannot dlopen some GPU libraries. Please make sure",
     "found no CUDA libraries", "tensorflow[and-cuda]"),
    ("I external/local_xla/xla/tsl/cuda/cudart_stub.cc:31] Could not find cuda drivers on your machine, GPU will not be used.",
     "found no CUDA libraries", "tensorflow[and-cuda]"),
    ("An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to cpu.",
     "CPU build of jax", "jax[cuda13]"),
    ("AssertionError: Torch not compiled with CUDA enabled", "CPU build of torch", "CUDA build of torch"),
    ("No GPU/TPU found, falling back to CPU. (Set TF_CPP_MIN_LOG_LEVEL=0 and rerun.)", "would use the CPU", "its build"),
    ("RuntimeError: Unable to initialize backend 'rocm': module not found", "backend rocm", "its build"),
    ("OSError: PERMISSION_DENIED: open(/dev/vfio/0)", "may not open the device file", "ls -l"),
    ("ModuleNotFoundError: No module named 'torch_tpu'", "module torch_tpu is missing", "pip install torch_tpu"),
    ("RuntimeError: No CUDA-capable device is detected", "CUDA sees no device", "CUDA_VISIBLE_DEVICES"),
    ("EnvironmentError: Failed to get response from metadata server for TPU. TPU_SKIP_MDS_QUERY is not set", "metadata server",
     "TPU_SKIP_MDS_QUERY"),
    ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate", "memory of the device is taken", "nvidia-smi"),
])  # fmt: skip
def test_what_frameworks_write_is_read_for_the_reason(log: str, reason: str, remedy: str) -> None:
    told = explain(log)
    assert told is not None
    assert reason in told[0]
    assert remedy in told[1]


def test_only_lines_that_warn_are_kept() -> None:
    log = (
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
        "I0000 00:00:1796075473.498416 22436 port.cc:153] floating-point errors may differ\n"
        "UserWarning: something is off\nplain line\nUserWarning: something is off\n"
    )
    assert warnings_in(log) == ("UserWarning: something is off",)


def test_what_a_library_prints_does_not_spoil_the_answer(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text(
        "print('welcome')\n__version__ = '1'\ndef devices():\n    print('looking')\n    return []\n", encoding="utf-8"
    )
    runner = tmp_path / "run.py"
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from probes.view import main; main('jax')\n"
    runner.write_text(code, encoding="utf-8")
    fake = _liar(tmp_path, f"exec {sys.executable} {runner}")
    view = ask(fake, "cpu", os.environ, tmp_path)
    assert (view.version, view.devices) == ("1", ())
