"""The worker: one framework in one process, asked over a private pipe.

`python -m probes.worker PARENT READ_FD WRITE_FD`. The environment is set by the launcher before this starts, the framework is
imported on the first message, and the platform is asserted. The outermost frame is the only place with a broad `except`:
whatever a framework throws becomes a `Broken` reply.
"""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.errors import one_line
from core.probe import Probe
from core.statistics import median
from probes.accounting import Laps, StageSeconds
from probes.agreed import Agreed, source_digest, surroundings
from probes.agreement import TOLERANCE, Agreement, check, worst
from probes.backends import backend_module
from probes.case import Case
from probes.depths import depths_of
from probes.environment import CPUS, hold_to_cpus
from probes.evidence import Examiner
from probes.kernels import kernel_modules
from probes.messages import (
    Broken,
    Finish,
    Finished,
    Open,
    Prepare,
    Prepared,
    Ready,
    Reply,
    Request,
    Sample,
    Sampled,
    read_request,
    write,
)
from probes.platforms import assert_platform
from probes.precision import assert_precision, cancellation
from probes.process import die_with_parent, first_to_be_killed, peak_resident_bytes
from probes.reduced import ReducedModel
from probes.rig import Rig, SystemBench
from probes.subjects import Subject, subject_of
from probes.system import system_modules
from probes.timer import Stopwatch, sample_in_turn

SMALL_COPIES = 2


@dataclass
class Worker:
    """The state of one worker process."""

    backend: Any = None
    watches: tuple[Stopwatch, ...] = ()
    agreement: Agreement | None = None
    agreed: Agreed = field(default_factory=lambda: Agreed(None, ()))
    frames: dict[tuple[str, str, str], Stopwatch] = field(default_factory=dict[tuple[str, str, str], Stopwatch])
    rig: Rig | None = None
    links: Any = None
    device_kind: str = ""
    examiner: Examiner = field(default_factory=Examiner)
    stage: str = "start"
    laps: Laps = field(default_factory=Laps)

    def answer(self, request: Request) -> Reply:
        """Do what is asked and return the reply."""
        match request:
            case Open():
                return self._open(request)
            case Prepare():
                return self._prepare(request.probe)
            case Sample():
                return self._sample(request)
            case Finish():
                return self._finish()

    def _open(self, request: Open) -> Ready:
        self.stage = "import"
        module = backend_module(request.runtime)
        self.backend, self.device_kind = module.open_backend(request.runtime, request.device_kind), request.device_kind
        assert_platform(request.device_kind, self.backend)
        versions, device = self.backend.versions(), self.backend.describe()
        if request.agreed:
            named = tuple(f"{name} {version}" for name, version in versions)
            about = (request.runtime, *named, device, source_digest(), *surroundings(os.environ))
            self.agreed = Agreed(Path(request.agreed), about)
        return Ready(versions, device)

    def _prepare(self, probe: Probe) -> Prepared:
        self.laps, self.examiner = Laps(), Examiner()
        if probe.family == "system":
            return self._prepare_system(probe)
        subject = self.subject(probe)
        sizes = dict(probe.sizes)
        self.stage = "agree"
        self._assert_precision(probe.dtype)
        self.agreement = self._agree(subject, sizes, probe)
        self.laps.lap("agree")
        self.stage = "compile"
        self.watches = tuple(self._watch(subject, sizes, probe, depth) for depth in depths_of(subject, sizes, probe))
        self.laps.lap("compile")
        self.stage = "warm-up"
        for watch in self.watches:
            watch.warm_up()
            self.examiner.warmed(watch)
        self.laps.lap("warm-up")
        spent, self.laps = self.laps.seconds(), Laps()
        return Prepared(median(self.watches[-1].warm) * 1e-9, spent)

    def _prepare_system(self, probe: Probe) -> Prepared:
        """Let a system probe build its rig, which draws data and checks its own answers; only first calls count as compiling."""
        self.stage = "agree"
        bench = SystemBench(self.backend, self.device_kind, probe, self._prove, self.links)
        rig: Rig = system_modules()[probe.subject].prepare(bench, dict(probe.sizes))
        self.rig, self.links, self.watches = rig, bench.kept, rig.watches
        self.laps.lap("agree")
        self.laps.move("agree", "compile", sum(watch.first_ns for watch in rig.watches) * 1e-9)
        self.stage = "warm-up"
        for watch in rig.watches:
            watch.warm_up()
        self.laps.lap("warm-up")
        spent, self.laps = self.laps.seconds(), Laps()
        return Prepared(sum(watch.warm[-1] for watch in rig.watches) * 1e-9, spent)

    def _prove(self, probe: Probe) -> Agreement:
        return self._agree(subject_of(probe), dict(probe.sizes), probe)

    def _sample(self, request: Sample) -> Sampled:
        self.stage = "measure"
        for watch in self.watches if request.again else ():
            watch.start_again()
        before = tuple((_timed_s(watch.samples, watch.loops), sum(watch.warm) * 1e-9) for watch in self.watches)
        sample_in_turn(self.watches, request.budget_s, request.fewest)
        timed_s = sum(_timed_s(w.samples, w.loops) - b[0] for w, b in zip(self.watches, before, strict=True))
        warm_s = sum(sum(w.warm) * 1e-9 - b[1] for w, b in zip(self.watches, before, strict=True))
        return Sampled(len(self.watches[0].samples), (("warm-up", warm_s), ("samples", timed_s)))

    def subject(self, probe: Probe) -> Subject:
        """Return what a probe names."""
        return subject_of(probe)

    def _agree(self, subject: Subject, sizes: dict[str, Any], probe: Probe) -> Agreement:
        """Compare a subject with the reference on small sizes, once; a model as a whole if it is small, else part by part."""
        if isinstance(subject, ReducedModel) and not subject.is_small:
            return worst([self._agree(part.module, part.sizes, probe) for part in subject.parts])
        small = subject.small(sizes)
        copies = SMALL_COPIES if subject.chains(small) else 1
        case = Case(subject, small, copies, probe.mode, probe.optimizer, probe.dtype, probe.seed)
        found = self.agreed.find(case)
        if found is None:
            found = check(self.backend, case)
            self.agreed.keep(case, found)
        return found

    def _assert_precision(self, dtype: str) -> None:
        """Hold the arithmetic to the name of the dtype, once for each of them."""
        case = Case(cancellation(), {}, 1, "forward", "none", dtype)
        if dtype in TOLERANCE and self.agreed.find(case) is None:
            assert_precision(self.backend, case)
            self.agreed.keep(case, Agreement(0.0, None))

    def _watch(self, subject: Subject, sizes: dict[str, Any], probe: Probe, depth: int) -> Stopwatch:
        if depth == 0:
            return self._frame(probe)
        case = Case(subject, sizes, depth, probe.mode, probe.optimizer, probe.dtype, probe.seed)
        watch = Stopwatch(self.backend.block_program(case), depth)
        output = watch.first_call()
        self.examiner.see(case, watch.program, output)
        return watch

    def _frame(self, probe: Probe) -> Stopwatch:
        """Return the bare step as depth 0; it is compiled once and kept."""
        key = (probe.mode, probe.optimizer, probe.dtype)
        if key not in self.frames:
            frame = kernel_modules()["step_frame"]
            case = Case(frame, {"batch": 1}, 1, probe.mode, probe.optimizer, probe.dtype, probe.seed)
            watch = Stopwatch(self.backend.block_program(case), 0)
            watch.first_call()
            self.frames[key] = watch
        kept = self.frames[key]
        return Stopwatch(kept.program, 0, first_ns=kept.first_ns)

    def _finish(self) -> Finished:
        timings = tuple(watch.timing() for watch in self.watches)
        error = self.agreement.output_error if self.agreement else None
        kept = {id(watch.program) for watch in self.frames.values()}
        for watch in self.watches:
            if id(watch.program) not in kept:
                watch.program.close()
        counts = self.rig.counts if self.rig else ()
        self.watches, self.agreement = (), None
        self._put_away()
        return Finished(timings, peak_resident_bytes(), error, self.examiner.evidence(), counts=counts)

    def _put_away(self) -> None:
        """Close the rig of a system probe, if any."""
        rig, self.rig = self.rig, None
        if rig is not None:
            rig.close()

    def given_up(self) -> StageSeconds:
        """Drop what is prepared, and return what a preparation had cost until it failed."""
        self.watches = ()
        self._put_away()
        if self.stage in ("agree", "compile", "warm-up"):
            self.laps.lap(self.stage)
        spent, self.laps = self.laps.seconds(), Laps()
        return spent


def _timed_s(samples: list[int], loops: int) -> float:
    """Return the seconds that samples took, each being nanoseconds a call."""
    return sum(samples) * loops * 1e-9



def main(parent: int, read_fd: int, write_fd: int) -> None:
    """Answer requests until the pipe closes."""
    die_with_parent(parent)
    first_to_be_killed()
    hold_to_cpus(os.environ.get(CPUS))
    worker = Worker()
    with os.fdopen(read_fd, "rb") as requests, os.fdopen(write_fd, "wb") as replies:
        for line in requests:
            try:
                reply: Reply = worker.answer(read_request(line))
            except Exception as error:  # noqa: BLE001 - the one place: whatever a framework throws becomes data
                reply = Broken(worker.stage, one_line(f"{type(error).__name__}: {error}"), worker.given_up())
            replies.write(write(reply))
            replies.flush()


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:4]))
