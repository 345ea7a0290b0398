"""A measuring session: one worker a runtime, one device held, every probe ends in an outcome.

Order of work: all workers import at once (nothing is timed then); after that one thing at a time. For each subject the runtimes
agree, compile and warm up in turn: side by side they would stretch each other's compilations, which are told, and threads that
wait for each other's cores take longer than one after the other. Then they are sampled in several rounds of random order, so that
a drift of the machine falls on all of them alike. A worker that dies costs its own probe; a fresh one takes the rest, three times
at most.
"""

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import TypeAlias

from core.device import Device
from core.errors import BadInput
from core.probe import NOT_BEGUN, Measurement, Outcome, Probe, ProbeFailure, Runtime
from core.settings import Settings
from probes.accounting import Account, Spent
from probes.contention import Bystanders, usage
from probes.environment import Setting
from probes.gates import GateResult
from probes.launcher import Limits, WorkerGone
from probes.lease import Lease, Place
from probes.messages import Broken, Finish, Finished, Prepare, Prepared, Ready, Sample
from probes.plan import Planned
from probes.proof import digest_doubts
from probes.system import setting_of, system_modules
from probes.team import Bench, Team
from probes.verdict import verdict
from probes.watch import Watch, sensor_for

ROUNDS = 3
SAMPLE_S = {
    ("block", "quick"): 1.0,
    ("block", "full"): 6.0,
    ("model", "quick"): 1.5,
    ("model", "full"): 6.0,
    ("kernel", "quick"): 0.5,
    ("kernel", "full"): 3.0,
}
"""Seconds of timed samples for one probe, over all rounds, by its family and tier; a system probe says its own."""
HELD_SHARE = 0.4
"""Share of the device's memory that prepared programs of all runtimes may hold together."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What the session does now."""

    text: str


@dataclass(frozen=True, slots=True)
class Started:
    """A probe is being worked on."""

    probe: Probe


@dataclass(frozen=True, slots=True)
class Answered:
    """A probe has its outcome."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Waiting:
    """Another run holds the device; `words` say the place in the queue, and who holds it since when.

    Args:
        place: 1 for the next; None when there is none to tell.
    """

    device: str
    place: int | None
    words: str


Event: TypeAlias = Stage | Started | Answered | Waiting | Spent


def run_probes(
    planned: Sequence[Planned],
    devices: Sequence[Device],
    runtimes: Sequence[Runtime],
    settings: Settings,
    on_event: Callable[[Event], None],
    should_stop: Callable[[], bool],
    budget_s: float,
    limits: Limits | None = None,
    seed: int = 0,
) -> None:
    """Measure everything that is planned; every probe gets exactly one `Answered`, unless the run is stopped.

    Args:
        planned: probes with their work; those of equal subject and sizes should stand together.
        devices: attached ones that the probes name.
        runtimes: installed ones that the probes name.
        settings: for leases and caches.
        on_event: called in this thread.
        should_stop: asked between steps; when true the session ends with what it has.
        budget_s: seconds; probes that have not begun when it is used up fail with that reason.
        limits: of each worker; by default half of the device's memory.
        seed: of the order of rounds.
    """
    for device_id, group in groupby(sorted(planned, key=lambda p: p.probe.device), key=lambda p: p.probe.device):
        device = next((d for d in devices if d.id == device_id), None)
        if device is None:
            raise BadInput(f"probes for {device_id}", f"one of {', '.join(d.id for d in devices)}", "choose an attached device")
        own = limits or Limits(memory_bytes=device.memory_bytes // 2)
        session = Session(device, {r.id: Bench(r) for r in runtimes}, settings, on_event, should_stop, own, random.Random(seed))
        with ExitStack() as stack:
            if not session.lease(stack):
                return
            session.account.start()
            stack.callback(session.account.close)
            stack.callback(session.team.close)
            session.run(list(group), time.monotonic() + budget_s)


class Session:
    """All workers on one device."""

    def __init__(
        self,
        device: Device,
        benches: dict[str, Bench],
        settings: Settings,
        on_event: Callable[[Event], None],
        should_stop: Callable[[], bool],
        limits: Limits,
        order: random.Random,
    ) -> None:
        self.device, self.settings = device, settings
        self.on_event, self.should_stop, self.limits, self.order = on_event, should_stop, limits, order
        self.account = Account(on_event)
        """Begins when the device is held: waiting for others is not this session's time."""
        self.team = Team(device, benches, settings, limits, self.account)

    def lease(self, stack: ExitStack) -> bool:
        """Hold the device, waiting for whoever has it; False when stopped while waiting."""
        lease = Lease(self.settings.leases, self.device.uuid, os.environ.get("TANDEM_RUN_ID", ""), self.settings.owner)

        def tell(place: Place) -> None:
            self.on_event(Waiting(self.device.id, place.number, place.words))

        stack.callback(lease.release)
        return lease.acquire(tell, self.should_stop)

    def run(self, planned: list[Planned], deadline: float) -> None:
        """Measure subject by subject until done, stopped or out of time."""
        self.on_event(Stage("starting runtimes"))
        benches = self.team.benches
        wanted = dict.fromkeys(p.probe.runtime for p in planned if setting_of(p.probe) == Setting())
        self.team.start([benches[name] for name in wanted if name in benches])
        groups = [list(g) for _, g in groupby(planned, lambda p: (p.probe.subject, p.probe.sizes, p.probe.dtype, p.probe.mode))]
        for at, together in enumerate(groups):
            self.team.retire({(p.probe.runtime, setting_of(p.probe)) for group in groups[at:] for p in group})
            if self.should_stop():
                return
            if time.monotonic() > deadline:
                for one in together:
                    self._fail(one.probe, "start", f"{NOT_BEGUN}: the time budget was used up; run again or give --budget-s more")
                continue
            for part in self._in_memory(together):
                self._measure(part)

    def _in_memory(self, together: list[Planned]) -> Iterator[list[Planned]]:
        """Yield as many probes at a time as may be held at once, one at least: large layers are measured runtime by runtime."""
        room = HELD_SHARE * self.device.memory_bytes
        part: list[Planned] = []
        for one in together:
            if part and sum(p.held_bytes for p in part) + one.held_bytes > room:
                yield part
                part = []
            part.append(one)
        yield part

    def _measure(self, together: list[Planned]) -> None:
        """Prepare one subject in every runtime, sample in rounds, and hand over."""
        prepared: list[Planned] = []
        calls: dict[str, float] = {}
        for one in together:
            if self.should_stop():
                return
            if not self._asked_to_prepare(one.probe):
                continue
            reply = self._hear(one.probe, self.limits.prepare_s)
            if isinstance(reply, Prepared):
                prepared.append(one)
                calls[one.probe.runtime] = reply.call_s
        self.on_event(Stage("measuring"))
        watch = Watch(sensor_for(self.device))
        bystanders = self._rounds(prepared, calls, watch)
        if bystanders is not None and watch.throttled:
            watch.cool_down(self.should_stop)
            watch = Watch(sensor_for(self.device))
            bystanders = self._rounds(prepared, calls, watch, again=True)
        if bystanders is None:
            return
        replies: list[tuple[Planned, Finished]] = []
        for one in together:
            if one in prepared:
                reply = self._ask(one.probe, Finish(), self.limits.sample_extra_s)
                if isinstance(reply, Finished):
                    replies.append((one, reply))
        differs = digest_doubts({one.probe.runtime: reply.evidence.digest for one, reply in replies}, together[0].probe.dtype)
        for one, reply in replies:
            name = one.probe.runtime
            said = verdict(self.device, one, reply, bystanders.get(name, Bystanders()), watch.throttled, differs.get(name, ""))
            self._answer(one, reply, said)

    def _rounds(
        self, prepared: list[Planned], calls: dict[str, float], watch: Watch, *, again: bool = False
    ) -> dict[str, Bystanders] | None:
        """Sample in rounds of random order under watch; None when stopped. `again` begins with new samples."""
        bystanders: dict[str, Bystanders] = {}
        for turn in range(rounds_of(prepared[0].probe) if prepared else 0):
            self.order.shuffle(prepared)
            for one in list(prepared):
                if self.should_stop():
                    return None
                budget_s = sample_s(one.probe)
                fewest = fewest_samples(calls[one.probe.runtime], budget_s)
                request = Sample(budget_s / rounds_of(one.probe), fewest, again=again and turn == 0)
                pid = self._worker_pid(one.probe)
                before = usage(pid)
                with watch:
                    if self._ask(one.probe, request, budget_s + self.limits.sample_extra_s) is None:
                        prepared.remove(one)
                bystanders.setdefault(one.probe.runtime, Bystanders()).add(before, usage(pid))
        return bystanders

    def _worker_pid(self, probe: Probe) -> int:
        bench = self.team.bench(probe)
        assert bench is not None
        assert bench.worker is not None
        return bench.worker.process.pid

    def _asked_to_prepare(self, probe: Probe) -> bool:
        """Ask a worker to prepare, starting one when there is none; False after the failure was stored."""
        self.on_event(Started(probe))
        bench = self.team.bench(probe)
        if bench is None:
            self._fail(probe, "start", f"runtime {probe.runtime} is not installed; see ./tandem runtimes list")
            return False
        if bench.worker is None and not bench.held:
            self.team.start([bench])
        if bench.worker is None:
            gone = bench.last_gone
            reason = bench.held or (gone.reason if gone else "the worker did not start")
            self._fail(probe, "import", reason, gone.exit_code if gone else None, gone.stderr_tail if gone else "")
            return False
        return self._tell(probe, Prepare(probe))

    def _ask(self, probe: Probe, request: Sample | Finish, limit_s: float) -> object | None:
        """Return the reply, or None after the failure was stored."""
        return self._hear(probe, limit_s) if self._tell(probe, request) else None

    def _tell(self, probe: Probe, request: Prepare | Sample | Finish) -> bool:
        """Send a request; False after the failure was stored."""
        bench = self.team.bench(probe)
        assert bench is not None
        assert bench.worker is not None
        try:
            bench.worker.tell(request)
        except WorkerGone as gone:
            self._gone(bench, probe, gone)
            return False
        return True

    def _gone(self, bench: Bench, probe: Probe, gone: WorkerGone) -> None:
        self.team.lost(bench, gone)
        self._fail(probe, "lost", gone.reason, gone.exit_code, gone.stderr_tail)

    def _hear(self, probe: Probe, limit_s: float) -> object | None:
        """Wait for a reply, or return None after the failure was stored."""
        bench = self.team.bench(probe)
        assert bench is not None
        assert bench.worker is not None
        try:
            reply = bench.worker.hear(limit_s)
        except WorkerGone as gone:
            self._gone(bench, probe, gone)
            return None
        if not isinstance(reply, Ready):
            self.account.add(reply.spent, probe.runtime)
        if isinstance(reply, Broken):
            self._fail(probe, reply.stage, reply.error)
            return None
        return reply

    def _answer(self, one: Planned, reply: Finished, result: GateResult) -> None:
        bench = self.team.bench(one.probe)
        assert bench is not None
        assert bench.ready is not None
        depths = tuple(timing.depth for timing in reply.timings if not timing.part)
        method = "direct" if len(depths) == 1 else "difference" if depths[0] == 0 else "slope"
        self.on_event(
            Answered(
                Measurement(
                    one.probe,
                    reply.timings,
                    method,
                    one.flop,
                    one.traffic_bytes,
                    reply.peak_memory_bytes,
                    result.warnings,
                    result.trusted,
                    bench.ready.versions,
                    self.device.uuid,
                    now(),
                    reply.counts,
                )
            )
        )

    def _fail(self, probe: Probe, stage: str, error: str, exit_code: int | None = None, stderr_tail: str = "") -> None:
        self.on_event(Answered(ProbeFailure(probe, stage, error, exit_code, stderr_tail, now())))


def sample_s(probe: Probe) -> float:
    """Return the seconds of timed samples for one probe, over all rounds."""
    if probe.family == "system":
        return system_modules()[probe.subject].seconds(dict(probe.sizes), probe.tier)
    return SAMPLE_S[probe.family, probe.tier]


def rounds_of(probe: Probe) -> int:
    """Return the rounds that the samples of a probe are taken in."""
    return system_modules()[probe.subject].ROUNDS if probe.family == "system" else ROUNDS


def fewest_samples(call_s: float, budget_s: float) -> int:
    """Return the rounds of samples that one request takes at least: four, fewer when a call is long against the budget.

    Args:
        call_s: seconds of one call of the deepest program.
        budget_s: seconds for all rounds.
    """
    return max(1, min(4, round(budget_s / ROUNDS / max(call_s, 1e-9))))


def now() -> str:
    """Return the time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
