"""Drills: whatever a worker does, its probe becomes one stored failure with its reason, and all other probes complete.

The faulty framework is a package named `jax` of our own, put before the real one by a wrapper around the interpreter; the
sound one is torch, for real.
"""

import stat
import sys
from pathlib import Path

import psutil
import pytest

from core.device import Device
from core.probe import Measurement, Outcome, Probe, ProbeFailure, Runtime
from core.settings import Settings
from probes.inventory import devices
from probes.launcher import Limits
from probes.plan import Planned
from probes.session import Answered, Event, Waiting, run_probes

pytestmark = pytest.mark.slow

PROBES = ("jax", "torch-eager")


def _wrapper(folder: Path, framework: str, before: str = "") -> str:
    package = folder / "fake" / "jax"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(framework, encoding="utf-8")
    script = folder / "python"
    script.write_text(
        f'#!/bin/sh\n{before}\nexport PYTHONPATH="{package.parent}:$PYTHONPATH"\nexec "{sys.executable}" "$@"\n', encoding="utf-8"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def _run(folder: Path, interpreter: str, limits: Limits | None = None, subjects: tuple[str, ...] = ("launch",)) -> list[Outcome]:
    cpu = devices()[0]
    runtimes = (
        Runtime("jax", "jax", "jit", (), interpreter, installed=True),
        Runtime("torch-eager", "torch", "eager", (), sys.executable, installed=True),
    )
    planned = [
        Planned(Probe(subject, "kernel", (("n", 8),), "fp32", name, cpu.id), 0, 0) for subject in subjects for name in PROBES
    ]
    heard: list[Event] = []
    settings = Settings(folder / "home", "", "", (), folder / "leases")
    run_probes(planned, (cpu,), runtimes, settings, heard.append, lambda: False, 120.0, limits)
    return [event.outcome for event in heard if isinstance(event, Answered)]


def _failure(outcomes: list[Outcome]) -> ProbeFailure:
    failures = [o for o in outcomes if isinstance(o, ProbeFailure)]
    assert len(failures) == 1
    assert failures[0].probe.runtime == "jax"
    good = [o for o in outcomes if isinstance(o, Measurement)]
    assert [o.probe.runtime for o in good] == ["torch-eager"]
    assert good[0].median_s > 0
    assert not [p for p in psutil.Process().children(recursive=True) if "probes.worker" in " ".join(p.cmdline())]
    return failures[0]


def test_a_worker_killed_from_outside_is_told_as_killed(tmp_path: Path) -> None:
    failure = _failure(_run(tmp_path, _wrapper(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")))
    assert "SIGKILL" in failure.error
    assert failure.exit_code == -9


def test_a_worker_that_hangs_is_ended_within_its_limit(tmp_path: Path) -> None:
    hang = "import time\nwhile True:\n    time.sleep(1)\n"
    failure = _failure(_run(tmp_path, _wrapper(tmp_path, hang), Limits(open_s=15.0)))
    assert "no answer within 15 s" in failure.error


def test_a_framework_that_is_missing_is_told_by_name(tmp_path: Path) -> None:
    failure = _failure(_run(tmp_path, _wrapper(tmp_path, "raise ModuleNotFoundError(\"No module named 'jax'\")\n")))
    assert "No module named 'jax'" in failure.error
    assert failure.stage == "import"


def test_a_framework_that_imports_but_aborts_is_told_as_aborted(tmp_path: Path) -> None:
    failure = _failure(_run(tmp_path, _wrapper(tmp_path, "def devices():\n    import os\n    os.abort()\n")))
    assert "SIGABRT" in failure.error


def test_a_worker_that_uses_too_much_memory_is_ended_with_the_figure(tmp_path: Path) -> None:
    greedy = "import time\nheld = []\nwhile True:\n    held.append(bytearray(64 * 2**20))\n    time.sleep(0.05)\n"
    failure = _failure(_run(tmp_path, _wrapper(tmp_path, greedy), Limits(memory_bytes=1200 * 2**20)))
    assert failure.error.startswith("out of memory")


def test_a_worker_that_ends_without_a_word_is_told_so(tmp_path: Path) -> None:
    failure = _failure(_run(tmp_path, _wrapper(tmp_path, "import os\nos._exit(0)\n")))
    assert "ended without an answer" in failure.error


def test_a_flood_of_output_harms_nobody(tmp_path: Path) -> None:
    flood = _wrapper(
        tmp_path,
        "raise ImportError('flooded')\n",
        "(yes flood & yes flood >&2 & sleep 3; kill %1 %2) 2>/dev/null &\nyes | head -c 50000000",
    )
    failure = _failure(_run(tmp_path, flood))
    assert "flooded" in failure.error
    assert len(failure.stderr_tail) <= 4096


def test_an_interpreter_that_does_not_exist_is_told_with_its_path(tmp_path: Path) -> None:
    failure = _failure(_run(tmp_path, str(tmp_path / "no-such-python")))
    assert "no-such-python" in failure.error


def test_a_runtime_that_keeps_dying_is_held_and_every_probe_is_answered(tmp_path: Path) -> None:
    outcomes = _run(tmp_path, _wrapper(tmp_path, "import os\nos._exit(7)\n"), None, ("launch",) * 1 + ("matmul_chain",) * 1)
    failures = [o for o in outcomes if isinstance(o, ProbeFailure)]
    assert [f.probe.runtime for f in failures] == ["jax", "jax"]
    assert all("exit code 7" in f.error for f in failures)
    assert sum(isinstance(o, Measurement) for o in outcomes) == 2


def test_a_device_that_is_held_makes_the_next_session_wait(tmp_path: Path) -> None:
    from filelock import FileLock

    cpu: Device = devices()[0]
    (tmp_path / "leases").mkdir()
    heard: list[Event] = []
    settings = Settings(tmp_path / "home", "", "", (), tmp_path / "leases")
    planned = [Planned(Probe("launch", "kernel", (("n", 8),), "fp32", "torch-eager", cpu.id), 0, 0)]
    with FileLock(tmp_path / "leases" / f"{cpu.uuid}.lock"):
        run_probes(planned, (cpu,), (), settings, heard.append, lambda: bool(heard), 10.0)
    assert heard == [Waiting(cpu.id, 1, "place 1, held by another process")]


@pytest.mark.parametrize("budget_s", [0.0])
def test_probes_that_do_not_begin_in_time_say_so(tmp_path: Path, budget_s: float) -> None:
    cpu = devices()[0]
    runtime = Runtime("torch-eager", "torch", "eager", (), sys.executable, installed=True)
    heard: list[Event] = []
    settings = Settings(tmp_path / "home", "", "", (), tmp_path / "leases")
    planned = [Planned(Probe("launch", "kernel", (("n", 8),), "fp32", "torch-eager", cpu.id), 0, 0)]
    run_probes(planned, (cpu,), (runtime,), settings, heard.append, lambda: False, budget_s)
    outcomes = [event.outcome for event in heard if isinstance(event, Answered)]
    assert [type(o) for o in outcomes] == [ProbeFailure]
    assert isinstance(outcomes[0], ProbeFailure)
    assert "time budget" in outcomes[0].error
