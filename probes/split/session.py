"""Two sides that are kept for several tasks, a channel between them, leases while they are measured.

However a side ends, the other is ended
too, what was measured until then is told, and nothing is left: the channel has no name, and each side is a process group.
"""

import os
import selectors
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from secrets import token_hex
from types import TracebackType
from typing import Self, TypeVar

from core.errors import BadInput, Cancelled
from core.settings import Settings
from probes.lease import Lease, Place
from probes.split.clocks import ROUNDS
from probes.split.fleet import own_address, relay_environment
from probes.split.handle import SideHandle, SideLost, side_environment
from probes.split.messages import (
    Begin,
    Begun,
    Connect,
    Done,
    Faulted,
    Map,
    Open,
    Opened,
    Reply,
    Request,
    Serve,
    Served,
    Shape,
    Stepped,
    Tune,
)
from probes.split.side import HOST
from probes.split.streams import SharedMemory
from probes.split.words import LinkSpec, SideSpec, SideStep, SplitFailure, SplitTask
from probes.split.work import check_task

R = TypeVar("R", bound=Reply)

WATCH_S = 0.25
END = "end of the channel"
"""What a side says that fails because the other is gone."""
ENDED_S, FAR_ENDED_S = 1.0, 15.0
"""Seconds within which the end of a side is known, on this host and on another."""


@dataclass(frozen=True, slots=True)
class SplitLimits:
    """What the sides may use.

    Args:
        open_s: seconds for importing.
        quiet_s: seconds without a word of either side while it works; compiling counts.
        memory_bytes: resident size of each at most.
    """

    open_s: float = 120.0
    quiet_s: float = 300.0
    memory_bytes: int = 8 * 2**30


class SplitSession:
    """Two sides that are kept for several tasks; closed at the end of a `with`.

    Args:
        sides: two of different names.
        settings: for leases and caches.
        limits: of the sides.
        should_stop: asked several times a second.
        on_wait: hears of the place in the queue for a device.
    """

    def __init__(
        self,
        sides: tuple[SideSpec, SideSpec],
        settings: Settings,
        limits: SplitLimits | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        on_wait: Callable[[Place], None] = lambda _place: None,
    ) -> None:
        if sides[0].name == sides[1].name:
            raise BadInput(f"two sides named {sides[0].name}", "two names", "give each side a name of its own")
        self.sides, self.settings = sides, settings
        self.limits, self.should_stop, self.on_wait = limits or SplitLimits(), should_stop, on_wait
        self.steps: tuple[list[SideStep], list[SideStep]] = ([], [])
        self.versions: tuple[tuple[tuple[str, str], ...], ...] = ()
        self.stage = "start"
        self._tasks = 0
        self._handles: list[SideHandle] = []
        self._stack = ExitStack()
        self.link = LinkSpec()

    def __enter__(self) -> Self:
        """Return itself; nothing is started yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End both sides and give the devices back."""
        self.close()

    def close(self) -> None:
        """End both sides and give the devices back; may be called twice."""
        self._stack.close()
        self._handles = []

    def open(self, link: LinkSpec) -> None:
        """Hold the devices, start both sides and join them.

        Args:
            link: between them; `shape` may change all but its transport later.

        Raises:
            SideLost: a side could not be started or joined.
            Cancelled: stopped meanwhile.
        """
        self.stage = "lease"
        for uuid in sorted({side.device_uuid for side in self.sides if side.device_uuid}):
            lease = Lease(self.settings.leases, uuid, os.environ.get("TANDEM_RUN_ID", ""), self.settings.owner)
            self._stack.callback(lease.release)
            if not lease.acquire(self.on_wait, self.should_stop):
                raise Cancelled("stopped while waiting for the device")
        self.stage = "start"
        memory = SharedMemory()
        try:
            for index in (0, 1):
                self._start(index, memory)
            opens = {i: Open(side.runtime, side.device_kind, side.models, i) for i, side in enumerate(self.sides)}
            opened = self.ask(opens, Opened, "open", self.limits.open_s)
            self.versions = tuple(reply.versions for reply in opened)
            self._join(link, memory)
        finally:
            memory.close()
        self.shape(link)

    def _start(self, index: int, memory: SharedMemory) -> None:
        side = self.sides[index]
        run_id = os.environ.get("TANDEM_RUN_ID", "")
        if side.reach is not None:
            environment = relay_environment(os.environ, run_id)
        else:
            environment = side_environment(side, os.environ, str(self.settings.home), run_id)
            partner = self.sides[1 - index].reach
            environment |= {HOST: own_address(partner.address)} if partner is not None else {}
        handle = SideHandle(side, environment, memory.ends(index), self.limits.memory_bytes)
        self._handles.append(handle)
        self._stack.callback(handle.close)

    def _join(self, link: LinkSpec, memory: SharedMemory) -> None:
        if link.transport == "memory":
            self.ask({i: Map(memory.ends(i), memory.ring_bytes) for i in (0, 1)}, Done, "open", self.limits.open_s)
            return
        secret = token_hex(32)
        (served,) = self.ask({0: Serve(secret)}, Served, "open", self.limits.open_s)
        self.ask({1: Connect(served.served, secret)}, Done, "open", self.limits.open_s)
        if any(side.reach is not None for side in self.sides):
            self.ask({0: Tune(ROUNDS), 1: Tune(ROUNDS)}, Done, "open", self.limits.open_s)

    def shape(self, link: LinkSpec) -> None:
        """Hold both directions to another rate and latency; raises SideLost."""
        self.link = link
        asked = Shape(link.bytes_per_s, link.latency_s, link.sixteen_bit)
        self.ask({0: asked, 1: asked}, Done, "open")

    def begin(self, task: SplitTask, *, fresh: bool) -> Begun:
        """Make both sides ready for a task; raises SideLost.

        Args:
            task: to be run.
            fresh: open the models anew; else those of an earlier task of the same model are gone on with.

        Raises:
            BadInput: a model that cannot be run or cut.
        """
        check_task(task)
        for side in self.steps:
            side.clear()
        self._tasks += 1
        return self.ask({i: Begin(task, fresh, self._tasks) for i in (0, 1)}, Begun, "model")[0]

    def ask(self, asked: Mapping[int, Request], wanted: type[R], stage: str, limit_s: float | None = None) -> tuple[R, ...]:
        """Tell sides what to do and wait for all of them; steps that they tell meanwhile are kept.

        Raises:
            SideLost: one ended, failed, took too long or too much memory. A side that fails because the other is gone is not to
                blame.
            Cancelled: stopped meanwhile.
        """
        self.stage = stage
        for index, request in asked.items():
            self._handles[index].tell(request)
        got: dict[int, R] = {}
        quiet_s = limit_s or self.limits.quiet_s
        deadline = time.monotonic() + quiet_s
        with selectors.DefaultSelector() as selector:
            for index in asked:
                selector.register(self._handles[index].replies, selectors.EVENT_READ, index)
            while len(got) < len(asked):
                if self.should_stop():
                    raise Cancelled("stopped")
                if time.monotonic() > deadline:
                    late = ", ".join(self.sides[i].name for i in asked if i not in got)
                    raise SideLost(stage, f"no word of {late} within {quiet_s:.0f} s; both sides were ended", late)
                ready = [key.data for key, _ in selector.select(WATCH_S)]
                for index in ready:
                    deadline = time.monotonic() + quiet_s
                    got |= self._hear(index, wanted, stage)
                self._watch_memory(stage)
        return tuple(got[index] for index in asked)

    def _hear(self, index: int, wanted: type[R], stage: str) -> dict[int, R]:
        """Return the last reply of a side if it is there."""
        found: dict[int, R] = {}
        for reply in self._handles[index].heard(stage):
            if isinstance(reply, Stepped):
                self.steps[index].append(reply.step)
            elif isinstance(reply, Faulted):
                raise self._blame(index, reply)
            elif isinstance(reply, wanted):
                found[index] = reply
            else:
                raise SideLost(
                    stage, f"got {type(reply).__name__} from a side; expected {wanted.__name__}", self.sides[index].name
                )
        return found

    def _blame(self, index: int, fault: Faulted) -> SideLost:
        """Return the failure of a side, or that of the other where this one failed because that is gone."""
        other = self._handles[1 - index]
        end = time.monotonic() + (ENDED_S if other.spec.reach is None else FAR_ENDED_S)
        while END in fault.error and time.monotonic() < end:
            try:
                told = [reply for reply in other.heard(fault.stage) if isinstance(reply, Faulted) and END not in reply.error]
            except SideLost as lost:
                return lost
            if told:
                index, fault = 1 - index, told[0]
                break
            time.sleep(0.01)
        return SideLost(fault.stage or self.stage, fault.error, self.sides[index].name)

    def _watch_memory(self, stage: str) -> None:
        for handle in self._handles:
            resident = handle.resident_bytes()
            if resident > self.limits.memory_bytes:
                used, allowed = resident / 2**30, self.limits.memory_bytes / 2**30
                reason = f"out of memory: {used:.1f} GiB resident of {allowed:.1f} GiB allowed; both sides were ended"
                raise SideLost(stage, reason, handle.spec.name)

    def failure(self, error: SideLost | Cancelled) -> SplitFailure:
        """Return an error with what was measured until then."""
        steps = (tuple(self.steps[0]), tuple(self.steps[1]))
        if isinstance(error, Cancelled):
            return SplitFailure(self.stage, str(error), steps=steps)
        return SplitFailure(error.stage, str(error), error.side, error.exit_code, error.stderr_tail, steps)
