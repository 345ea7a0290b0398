"""One side of a split: one framework in one process, told what to do over a private pipe, tensors over a channel.

`python -m probes.split.side PARENT READ_FD WRITE_FD`. As in `probes.worker`, the environment is complete before this starts, the
framework is imported on the first message and its platform asserted, and the outermost frame alone catches everything. It ends
with its parent: by the kernel's signal, and by the end of the pipe, which a thread of its own reads at all times.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from socket import gethostname
from typing import IO, Any

from core.errors import TandemError, WorkerError, one_line
from probes.backends import backend_module
from probes.platforms import assert_platform
from probes.process import die_with_parent, first_to_be_killed
from probes.split.channel import TensorChannel
from probes.split.clocks import HostClock, tune
from probes.split.laps import Laps
from probes.split.messages import (
    Begin,
    Begun,
    Connect,
    Done,
    Faulted,
    Map,
    Open,
    Opened,
    Prove,
    Proven,
    Rehearse,
    Reply,
    Request,
    Serve,
    Served,
    Shape,
    Stepped,
    Steps,
    Taken,
    Trade,
    Tune,
    read_request,
    write,
)
from probes.split.modes import Mode, open_mode
from probes.split.streams import MemoryStream, Stream
from probes.split.words import SideStep
from probes.split.work import Work, models_module

CORES = "TANDEM_SIDE_CORES"
"""Variable that names the logical cores of a side, with commas."""
HOST = "TANDEM_SIDE_HOST"
"""Variable that names the address by which other hosts reach this one."""
LOOPBACK = "127.0.0.1"


class Side:
    """The state of one side.

    Args:
        tell: sends a reply.
    """

    def __init__(self, tell: Callable[[Reply], None]) -> None:
        self.tell = tell
        self.stage = "open"
        self.opened: Open | None = None
        self.backend: Any = None
        self.models: Any = None
        self.server: Any = None
        self.clock = HostClock()
        self.work: Work | None = None
        self.mode: Mode | None = None

    def answer(self, request: Request) -> Reply:
        """Do what is asked and return the last reply."""
        match request:
            case Open():
                return self._open(request)
            case Map():
                return self._join(MemoryStream(self._index, request.ends, request.ring_bytes))
            case Serve() | Connect():
                return self._join_remote(request)
            case Tune():
                tune(self.clock, self._hands.channel, self._index, request.rounds)
                return Done(True)
            case Shape():
                self._hands.channel.shape(request.bytes_per_s, request.latency_s)
                self._hands.sixteen_bit = request.sixteen_bit
                return Done(True)
            case Begin():
                self.stage = "model"
                self.mode = None
                self._hands.channel.begin(request.number)
                self.mode = open_mode(self._hands, request.task, fresh=request.fresh)
                return Begun(self.mode.parameter_count, self.mode.own_parameters, self.mode.activation_bytes)
            case Steps():
                self.stage = "steps"
                return self._steps(request.count)
            case Prove():
                self.stage = "check"
                return Proven(self._task.prove(request.last))
            case Rehearse():
                self.stage = "pace"
                return self._rehearse(request)
            case Trade():
                self.stage = "pace"
                return self._trade(request)

    @property
    def _index(self) -> int:
        assert self.opened is not None
        return self.opened.index

    @property
    def _hands(self) -> Work:
        if self.work is None:
            raise WorkerError("got a task before a channel; expected the two sides to be joined; this is a fault of Tandem")
        return self.work

    @property
    def _task(self) -> Mode:
        if self.mode is None:
            raise WorkerError("got steps before a task; expected one that was begun; this is a fault of Tandem")
        return self.mode

    def _open(self, request: Open) -> Opened:
        self.opened, self.models = request, models_module(request.runtime, request.models)
        module = self.models if hasattr(self.models, "open_backend") else backend_module(request.runtime)
        try:
            self.backend = module.open_backend(request.runtime, request.device_kind)
        except ModuleNotFoundError as error:
            variable = f"TANDEM_PYTHON_{request.runtime.upper().replace('-', '_')}"
            expected = f"what {request.runtime} needs; install it there, or name another Python in {variable}"
            raise WorkerError(f"got no module {error.name} in {sys.executable} on {gethostname()}; expected {expected}") from None
        assert_platform(request.device_kind, self.backend)
        return Opened(self.backend.versions(), self.backend.describe())

    def _join_remote(self, request: Serve | Connect) -> Reply:
        from probes.split.remote import GrpcServer, connect

        if isinstance(request, Connect):
            return self._join(connect(request.address, request.key))
        host = os.environ.get(HOST, LOOPBACK)
        self.server = GrpcServer(host, request.secret)
        self._join(self.server.stream())
        return Served(f"{host}:{self.server.port}")

    def _join(self, stream: Stream) -> Done:
        channel = TensorChannel(stream, self.clock)
        self.work = Work(self._index, self.backend, self.models, channel, laps=Laps(self.clock))
        return Done(True)

    def _steps(self, count: int) -> Done:
        work, mode = self._hands, self._task
        work.laps.take()
        for _ in range(count):
            start_s, sent = work.laps.clock(), work.channel.sent_bytes
            loss, counted = mode.step()
            stop_s = work.laps.clock()
            self.tell(Stepped(SideStep(start_s, stop_s, work.laps.take(), loss, work.channel.sent_bytes - sent, counted)))
        return Done(True)

    def _rehearse(self, request: Rehearse) -> Taken:
        times: list[tuple[str, float]] = []
        end_s = time.perf_counter() + request.seconds
        while True:
            times += self._task.rehearse(request.rows)
            if time.perf_counter() >= end_s:
                return Taken(tuple(times))

    def _trade(self, request: Trade) -> Taken:
        import numpy as np

        work = self._hands
        values: Any = np.zeros(max(1, request.size_bytes // (2 if work.sixteen_bit else 4)), np.float32)
        trade = self._one_way if request.one_way else self._both_ways
        times = tuple(("trade", trade(values)) for _ in range(request.times))
        work.laps.take()
        return Taken(times)

    def _both_ways(self, values: Any) -> float:
        """Return the seconds from meeting to having what the other side sent, without the sum."""
        work = self._hands
        work.meet()
        work.laps.take()
        start_s = work.laps.clock()
        work.exchange(values)
        summing_s = sum(stop - start for kind, start, stop, _ in work.laps.take() if kind == "update")
        return work.laps.clock() - start_s - summing_s

    def _one_way(self, values: Any) -> float:
        """Return the seconds there and back of a vector one way and nothing the other."""
        channel, clock = self._hands.channel, self._hands.laps.clock
        start_s = clock()
        if self._index:
            channel.receive("there")
            channel.send("back", [])
        else:
            channel.send("there", [values])
            channel.receive("back")
        channel.flush()
        return clock() - start_s


def main(parent: int, read_fd: int, write_fd: int) -> None:
    """Do what is asked until the pipe closes."""
    die_with_parent(parent)
    first_to_be_killed()
    cores = os.environ.get(CORES)
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(read_fd, requests), daemon=True).start()
    with os.fdopen(write_fd, "wb", 0) as replies:

        def tell(reply: Reply) -> None:
            _tell(replies, reply)

        side = Side(tell)
        while True:
            line = requests.get()
            try:
                reply = side.answer(read_request(line))
            except Exception as error:  # noqa: BLE001 - outermost frame of a worker process: whatever a framework throws becomes data
                ours = isinstance(error, TandemError)
                reply = Faulted(side.stage, one_line(str(error) if ours else f"{type(error).__name__}: {error}"))
            tell(reply)


def _read(read_fd: int, requests: "SimpleQueue[bytes]") -> None:
    """Pass on each line; when the pipe ends there is nobody to work for, and all that is held goes with the process."""
    with os.fdopen(read_fd, "rb") as lines:
        for line in lines:
            requests.put(line)
    os._exit(0)


def _tell(replies: IO[bytes], reply: Reply) -> None:
    """Send one reply whole: the pipe takes large ones in parts."""
    rest = memoryview(write(reply))
    while rest:
        rest = rest[replies.write(rest) :]


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:4]))
