"""One faulty kernel on trial: the worker's own code, the session's own verdict, and which gates spoke."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from core.device import Device
from core.errors import TandemError, WorkerError, one_line
from core.probe import Probe
from probes.agreement import agrees
from probes.case import Case
from probes.contention import Bystanders, usage
from probes.gates import gate_of
from probes.kernels import kernel_modules
from probes.messages import Finish, Finished, Open, Prepare, Sample
from probes.plan import Planned
from probes.subjects import Subject
from probes.timer import Stopwatch
from probes.verdict import verdict
from probes.watch import Sensor, Watch
from probes.worker import Worker

SIDE = 512
SAMPLE_S = 0.15
FEWEST = 12
NOISE = ("noisy", "outliers", "contended", "unsteady", "slow start", "short", "drift", "suspect path")
"""Gates that speak of the machine: an honest kernel on a machine with neighbours may hear them."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one kernel.

    Args:
        framework: runtime id, or where the fault is when none is needed.
        fault: its name; `honest` makes none.
        expected: gates of which one at least must speak.
        gates: those that spoke.
        said: their phrases.
    """

    framework: str
    fault: str
    expected: tuple[str, ...]
    gates: tuple[str, ...]
    said: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Whether a fault was caught by its gate, or an honest kernel passed all that do not speak of the machine."""
        if self.fault == "honest":
            return not set(self.gates) - set(NOISE)
        return bool(set(self.gates) & set(self.expected))


class FirstCallWatch(Stopwatch):
    """A timer that takes every call for a sample, also the one that compiles."""

    def warm_up(self) -> None:
        """Claim to be warm."""
        self.warm, self.late = [1], [0]

    def rewarm(self) -> None:
        """Do nothing."""


class TrialWorker(Worker):
    """The worker as it is, but for the subject and the timer of a trial."""

    own_subject: ModuleType | None = None
    first_call_counts = False

    def subject(self, probe: Probe) -> Subject:
        """Return the trial's own subject where it has one."""
        return self.own_subject or super().subject(probe)

    def _watch(self, subject: Subject, sizes: dict[str, Any], probe: Probe, depth: int) -> Stopwatch:
        if not self.first_call_counts:
            return super()._watch(subject, sizes, probe, depth)
        case = Case(subject, sizes, depth, probe.mode, probe.optimizer, probe.dtype, probe.seed)
        return FirstCallWatch(self.backend.block_program(case), depth)


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a trial changes beside the kernel.

    Args:
        kernel: name of the kernel.
        sizes: of the kernel.
        subject: a faulty kernel module in its place.
        first_call_counts: whether the timer takes the first call for a sample.
        neighbours: busy processes beside it.
        sensor: what tells the clock; None watches nothing.
        fewest: samples at least.
    """

    kernel: str = "matmul_chain"
    sizes: tuple[tuple[str, int], ...] = (("n", SIDE),)
    subject: ModuleType | None = None
    first_call_counts: bool = False
    neighbours: int = 0
    sensor: Sensor | None = None
    fewest: int = FEWEST


def try_kernel(
    backend: Any, runtime: str, fault: str, expected: tuple[str, ...], device: Device, conditions: Conditions | None = None
) -> Trial:
    """Measure a kernel as a probe would be and return which gates spoke.

    Args:
        backend: open, with or without a fault.
        runtime: its id.
        fault: name for the table.
        expected: gates of which one must speak.
        device: this machine's processor.
        conditions: what else is changed.
    """
    with_what = conditions or Conditions()
    module = with_what.subject or kernel_modules()[with_what.kernel]
    probe = Probe(with_what.kernel, "kernel", with_what.sizes, "fp32", runtime, device.id)
    sizes: dict[str, Any] = dict(with_what.sizes)
    flop, traffic = module.flop(sizes), module.traffic(sizes, 4.0)
    planned = Planned(probe, flop, traffic, large_aligned=flop > 0)
    worker = TrialWorker(backend=backend)
    worker.own_subject, worker.first_call_counts = with_what.subject, with_what.first_call_counts
    bystanders, watch = Bystanders(), Watch(with_what.sensor)
    try:
        worker.answer(Prepare(probe))
        assert worker.agreement is None or agrees(worker.agreement, "fp32")
        with busy_neighbours(with_what.neighbours), watch:
            before = usage(os.getpid())
            worker.answer(Sample(SAMPLE_S, with_what.fewest))
            bystanders.add(replace(before, own_s=before.own_s / 2), _halved(os.getpid()))
        reply = worker.answer(Finish())
    except TandemError as error:
        return Trial(runtime, fault, expected, (_stage_gate(str(error)),), (one_line(str(error)),))
    assert isinstance(reply, Finished)
    result = verdict(device, planned, reply, bystanders, watch.throttled, "")
    return Trial(runtime, fault, expected, tuple(dict.fromkeys(gate_of(w) for w in result.warnings)), result.warnings)


def _halved(worker: int) -> Any:
    """Return the usage of a worker that is this process: it stands in both terms of the sum, so it is counted once."""
    now = usage(worker)
    return replace(now, own_s=now.own_s / 2)


def try_platform(runtime: str, device_kind: str) -> Trial:
    """Ask a runtime that has only a processor for an accelerator, and return whether that is refused."""
    try:
        Worker().answer(Open(runtime, device_kind))
    except WorkerError as error:
        return Trial(runtime, "silent CPU fall-back", ("platform",), ("platform",), (one_line(str(error)),))
    return Trial(runtime, "silent CPU fall-back", ("platform",), (), ())


def _stage_gate(error: str) -> str:
    return "precision" if "arithmetic" in error else "agreement"


@contextmanager
def busy_neighbours(count: int) -> Iterator[None]:
    """Run processes that use one core each meanwhile, and end them by their ids."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def in_gibibytes(kernel: str) -> ModuleType:
    """Return a memory kernel that counts its traffic in GiB and calls it GB."""
    honest = kernel_modules()[kernel]
    faulty = ModuleType(kernel)
    faulty.__dict__.update({**vars(honest), "__name__": kernel})
    traffic: Callable[[Any, float], int] = honest.traffic
    faulty.__dict__["traffic"] = lambda sizes, element: int(traffic(sizes, element) / 2**30 * 1e9)
    return faulty
