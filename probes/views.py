"""Asking each framework what it sees, in a process of its own, and reading its warnings for the reason when it sees nothing.

Costs seconds a framework, so it is done only when a person asks. Two at a time: importing is bound by the processor. A framework
that hangs is ended with everything that it started; a silent fall-back to the CPU is a "no" with its reason.
"""

import json
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import Any, cast

from core.errors import one_line
from core.probe import Runtime
from probes.environment import ROOT, worker_environment
from probes.process import kill_group
from probes.view import SEERS

LIMIT_S = 90.0
AT_ONCE = 2
WARNINGS_KEPT = 3
_KINDS = {"cpu": "CPU", "gpu": "GPU", "tpu": "TPU"}
_REASONS = (
    (r"driver on your system is too old|driver version is insufficient|CUDA driver is a stub",
     "the NVIDIA driver is too old for its CUDA build", "update the NVIDIA driver, or install the build for an older CUDA"),
    (r"already in use by (?:a )?process(?: with pid)? (?P<pid>\d+)", "the TPU is in use by process {pid}",
     "kill {pid}  # if it is yours; else ask its owner, or wait"),
    (r"TPU is already in use|libtpu.* already in use|libtpu_lockfile",
     "a process that is gone left the lock of libtpu, or another one uses the TPU", "sudo rm -f /tmp/libtpu_lockfile"),
    (r"Loaded runtime CuDNN library: (?P<found>[\d.]+) but source was compiled with: (?P<own>[\d.]+)",
     "it loaded cuDNN {found}, but was built with {own}", "unset LD_LIBRARY_PATH"),
    (r"Could not load dynamic library '(?P<library>[^']+)'", "it could not load {library} and would use the CPU",
     "pip install 'tensorflow[and-cuda]'  # in its environment"),
    (r"Cannot dlopen some GPU libraries|Could not find cuda drivers", "it found no CUDA libraries and would use the CPU",
     "pip install 'tensorflow[and-cuda]'  # in its environment"),
    (r"CUDA-enabled jaxlib is not installed|assert _default_backend is not None", "this is the CPU build of jax",
     "pip install 'jax[{extra}]'  # in its environment"),
    (r"not compiled with CUDA enabled", "this is the CPU build of torch", "install the CUDA build of torch in its environment"),
    (r"CUDA_ERROR_OUT_OF_MEMORY|RESOURCE_EXHAUSTED", "the memory of the device is taken", "nvidia-smi  # tells by whom"),
    (r"[Nn]o CUDA-capable device|CUDA_ERROR_NO_DEVICE", "CUDA sees no device", "nvidia-smi  # and look at CUDA_VISIBLE_DEVICES"),
    (r"PERMISSION_DENIED|[Pp]ermission denied: '?/dev", "this user may not open the device file",
     "ls -l /dev/vfio /dev/accel* /dev/kfd"),
    (r"TPU_SKIP_MDS_QUERY|metadata server", "it asked Google's metadata server in vain", "export TPU_SKIP_MDS_QUERY=1"),
    (r"Unknown backend:? '?(?:cuda|gpu)|No GPU/TPU found|falling back to cpu",
     "it has no way to the device and would use the CPU", "install its build for this device"),
    (r"Unable to initialize backend '(?P<name>\w+)'", "it could not initialise its backend {name}",
     "install its build for this device"),
    (r"No module named '(?P<name>[\w.]+)'", "its module {name} is missing", "pip install {name}  # in its environment"),
)  # fmt: skip
"""What frameworks write, most telling first, with reason and remedy. Source: the issues named in docs/guide.md, "Devices"."""
_NOISE = re.compile(r"^I\d{4} |^\S+ \S+ I |All log messages before absl")
"""Lines of information, as Google's log and TensorFlow mark them."""
_WARNING = re.compile(r"warning|error|cannot|could not|unable|fall", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Seen:
    """One device as a framework names it."""

    kind: str
    name: str
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class View:
    """What one framework said of one kind of device.

    Args:
        runtime: a runtime id.
        kind: `cpu`, `gpu` or `tpu`, what it was asked for.
        ok: whether it sees one of that kind.
        version: its own word.
        devices: all that it sees.
        seconds: that it took, its import counted.
        reason, remedy: why it sees none; empty when it does.
        warnings: lines that it wrote, the telling ones.
    """

    runtime: str
    kind: str
    ok: bool
    version: str = ""
    devices: tuple[Seen, ...] = ()
    seconds: float = 0.0
    reason: str = ""
    remedy: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Return what it sees of the kind, `2 x NVIDIA H200`."""
        names = [seen.name for seen in self.devices if seen.kind == self.kind]
        return ", ".join(f"{names.count(name)} x {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names))


def ask_runtimes(
    runtimes: Sequence[Runtime],
    kinds: Sequence[str],
    inherited: Mapping[str, str],
    home: Path,
    limit_s: float = LIMIT_S,
    on_view: Callable[[View], None] = lambda _view: None,
    vendor: str = "",
) -> tuple[View, ...]:
    """Ask every installed runtime for every kind of device, two processes at a time; modes of one framework share an answer.

    Args:
        runtimes: those that are not installed are passed over.
        kinds: `cpu`, `gpu`, `tpu`.
        inherited: this process's variables.
        home: data directory, for caches.
        limit_s: seconds that one may take.
        on_view: hears of each as soon as it is there, in a thread of the pool.
        vendor: of the GPUs; empty when there are none.
    """
    alike: dict[tuple[str, str, str, str], list[Runtime]] = {}
    for runtime in runtimes:
        for kind in kinds if runtime.installed else ():
            alike.setdefault((runtime.interpreter, runtime.framework, SEERS[runtime.id].__name__, kind), []).append(runtime)

    def one(group: tuple[str, list[Runtime]]) -> tuple[View, ...]:
        kind, members = group
        view = ask(members[0], kind, inherited, home, limit_s, vendor)
        views = tuple(replace(view, runtime=member.id) for member in members)
        for each in views:
            on_view(each)
        return views

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return tuple(chain.from_iterable(pool.map(one, [(key[3], members) for key, members in alike.items()])))


def ask(
    runtime: Runtime, kind: str, inherited: Mapping[str, str], home: Path, limit_s: float = LIMIT_S, vendor: str = ""
) -> View:
    """Ask one runtime for one kind of device; whatever goes wrong is the reason of its view."""
    environment = {**worker_environment(runtime.id, kind, inherited, home, "", vendor), "TF_CPP_MIN_LOG_LEVEL": "0"}
    started = monotonic()
    try:
        process = subprocess.Popen(  # noqa: S603 - our own module in an interpreter of the user's or ours
            [runtime.interpreter, "-m", "probes.view", runtime.id],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=ROOT,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return View(runtime.id, kind, False, reason=one_line(f"it cannot be started: {error}", 160), remedy="./tandem runtimes")
    try:
        out, log = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        kill_group(process.pid)
        process.communicate()
        reason, remedy = f"it did not tell within {limit_s:g} s", "ask again when the machine is idle"
        return View(runtime.id, kind, False, seconds=monotonic() - started, reason=reason, remedy=remedy)
    finally:
        kill_group(process.pid)
    text = log.decode("utf-8", "replace")
    return read_view(runtime.id, kind, out.decode("utf-8", "replace"), text, process.returncode, monotonic() - started)


def read_view(runtime: str, kind: str, out: str, log: str, exit_code: int | None, seconds: float) -> View:
    """Return what one process said.

    Args:
        runtime, kind: what was asked.
        out: its answer, one JSON line.
        log: what it and its libraries wrote to the error stream.
        exit_code: below 0 for a signal.
        seconds: that it took.
    """
    try:
        told = cast("dict[str, Any]", json.loads(out))
        seen = tuple(Seen(str(one["kind"]), str(one["name"]), one["memory_bytes"]) for one in told["devices"])
        version, error = str(told["version"]), str(told["error"])
    except (ValueError, KeyError, TypeError):
        last = next((line for line in reversed(log.splitlines()) if line.strip()), "")
        reason, remedy = explain(log, kind) or (f"it ended with exit code {exit_code} and no answer: {one_line(last, 160)}", "")
        return View(runtime, kind, False, seconds=seconds, reason=reason, remedy=remedy, warnings=warnings_in(log))
    ok = any(one.kind == kind for one in seen)
    reason, remedy = ("", "") if ok else explain(f"{error}\n{log}", kind) or _unsaid(kind, seen, error)
    return View(runtime, kind, ok, version, seen, seconds, reason, remedy, warnings_in(log))


def _unsaid(kind: str, seen: tuple[Seen, ...], error: str) -> tuple[str, str]:
    if error:
        return error, ""
    others = ", ".join(dict.fromkeys(_KINDS.get(one.kind, one.kind) for one in seen)) or "nothing"
    return f"it sees {others} and no {_KINDS.get(kind, kind)}, and says nothing about it", "install its build for this device"


def explain(text: str, kind: str = "gpu") -> tuple[str, str] | None:
    """Return reason and remedy for what a framework wrote when asked for a kind of device; None when nothing of it is known."""
    for pattern, reason, remedy in _REASONS:
        found = re.search(pattern, text)
        if found:
            words = {"extra": "tpu" if kind == "tpu" else "cuda13", **found.groupdict(default="")}
            return reason.format(**words), remedy.format(**words)
    return None


def warnings_in(log: str) -> tuple[str, ...]:
    """Return the last few lines that warn."""
    lines = [one_line(line, 200) for line in log.splitlines() if _WARNING.search(line) and not _NOISE.search(line)]
    return tuple(dict.fromkeys(lines))[-WARNINGS_KEPT:]
