"""Messages of tensors between two sides: sent by one thread, received by another, on a link as fast as it is told to be.

Sending does not wait, so that two sides that send to each other never wait for each other's reading. A link is shaped by the
moment at which each packet has arrived: serialisation and latency are added to the moment at which its message was offered, not
to the moment at which a thread came to it, so that queued messages overlap in latency and never in serialisation.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol

from core.errors import WorkerError, one_line
from probes.split.frames import LENGTH, Message, header_bytes, header_of, read_header
from probes.split.streams import Stream, bytes_of, gone

PACKET_BYTES = 2**18
PACKET_S = 2e-3
TASK = "task"
"""Note that carries the number of the task that a message belongs to."""
SHORTEST_SLEEP_S = 5e-5
"""Below this a sleep takes longer than it should."""


class Channel(Protocol):
    """Tensors to and from the other side."""

    def send(self, kind: str, arrays: Sequence[Any], note: Mapping[str, str] | None = None) -> None:
        """Send a message; contiguous arrays must not be changed until `flush`."""
        ...

    def receive(self, kind: str, limit_s: float | None = None) -> Message:
        """Return the next message of a kind, waiting for it; raises WorkerError when there will be none."""
        ...


@dataclass
class Bucket:
    """A link of one direction: packets follow each other at its rate, each arrives its latency later.

    Args:
        bytes_per_s: None for no limit.
        latency_s: of each packet.
        free_s: when the link is free again.
    """

    bytes_per_s: float | None = None
    latency_s: float = 0.0
    free_s: float = float("-inf")

    def due(self, offered_s: float, size_bytes: int) -> float:
        """Return when a packet has arrived that was offered at a moment, and take its place on the link."""
        self.free_s = max(self.free_s, offered_s) + (size_bytes / self.bytes_per_s if self.bytes_per_s else 0.0)
        return self.free_s + self.latency_s

    @property
    def packet_bytes(self) -> int:
        """Bytes that are delivered together: few enough that the copying of all but the last hides behind the link."""
        if not self.bytes_per_s:
            return 2**62
        return max(1, min(PACKET_BYTES, int(self.bytes_per_s * PACKET_S)))


def deliver(
    stream: Stream,
    bucket: Bucket,
    parts: Sequence[memoryview],
    offered_s: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    """Write the parts of a message so that each packet arrives when the link would have brought it.

    Args:
        stream: to the other side.
        bucket: of this direction.
        parts: bytes, in order.
        offered_s: when the message was sent, on the clock.
        clock, sleep: seconds; given by tests.
    """
    for packet in _packets(parts, bucket.packet_bytes):
        left_s = bucket.due(offered_s, len(packet)) - clock()
        if left_s > SHORTEST_SLEEP_S:
            sleep(left_s)
        stream.write(packet)


def _packets(parts: Sequence[memoryview], size: int) -> Iterator[memoryview]:
    for part in parts:
        for at in range(0, len(part), size):
            yield part[at : at + size]


class TensorChannel:
    """A `Channel` over a stream.

    Args:
        stream: to the other side; closed with this.
        clock, sleep: seconds; given by tests.
    """

    def __init__(
        self, stream: Stream, clock: Callable[[], float] = time.perf_counter, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._stream, self._clock, self._sleep = stream, clock, sleep
        self._bucket = Bucket()
        self._outbox: SimpleQueue[tuple[tuple[memoryview, ...], float] | threading.Event | None] = SimpleQueue()
        self._inbox: dict[tuple[int, str], deque[Message]] = {}
        self._task = 0
        self._arrived = threading.Condition()
        self._fault: str = ""
        self.sent_bytes = 0
        self._threads = (
            threading.Thread(target=self._write_all, daemon=True),
            threading.Thread(target=self._read_all, daemon=True),
        )
        for thread in self._threads:
            thread.start()

    def shape(self, bytes_per_s: float | None, latency_s: float) -> None:
        """Hold what is sent from now on to a rate and a latency; nothing may be under way."""
        self._bucket = Bucket(bytes_per_s, latency_s)

    def begin(self, task: int) -> None:
        """Send and receive for a task from now on; what is still there or on its way of earlier ones is dropped.

        Args:
            task: its number, the same on both sides, greater than those before.
        """
        with self._arrived:
            self._task = task
            self._inbox = {key: messages for key, messages in self._inbox.items() if key[0] >= task}

    def send(self, kind: str, arrays: Sequence[Any], note: Mapping[str, str] | None = None) -> None:
        """Send a message; contiguous arrays must not be changed until `flush`."""
        self._raise_fault()
        offered_s = self._clock()
        parts = (
            memoryview(header_of(kind, arrays, offered_s, {**(note or {}), TASK: str(self._task)})),
            *(bytes_of(array) for array in arrays),
        )
        self.sent_bytes += sum(len(part) for part in parts)
        self._outbox.put((parts, offered_s))

    def flush(self) -> None:
        """Wait until everything is with the other side or on the way, so that sent arrays may be changed."""
        done = threading.Event()
        self._outbox.put(done)
        while not done.wait(0.5):
            self._raise_fault()
        self._raise_fault()

    def receive(self, kind: str, limit_s: float | None = None) -> Message:
        """Return the next message of a kind, waiting for it; raises WorkerError when there will be none."""
        key = (self._task, kind)
        with self._arrived:
            there = self._arrived.wait_for(lambda: bool(self._inbox.get(key)) or bool(self._fault), limit_s)
            if self._inbox.get(key):
                return self._inbox[key].popleft()
        self._raise_fault()
        assert not there
        raise WorkerError(f"got no {kind} within {limit_s} s; expected the other side to send some; run the split again")

    def close(self) -> None:
        """End both threads; may be called twice."""
        self._outbox.put(None)
        self._threads[0].join(timeout=1)
        self._stream.close()
        for thread in self._threads:
            thread.join(timeout=2)

    def _raise_fault(self) -> None:
        if self._fault:
            raise WorkerError(self._fault)

    def _fail(self, error: Exception) -> None:
        with self._arrived:
            self._fault = self._fault or one_line(str(error) or type(error).__name__)
            self._arrived.notify_all()

    def _write_all(self) -> None:
        while (item := self._outbox.get()) is not None:
            if isinstance(item, threading.Event):
                item.set()
                continue
            try:
                deliver(self._stream, self._bucket, item[0], item[1], self._clock, self._sleep)
            except (WorkerError, OSError, ValueError) as error:
                self._fail(error)
            del item

    def _read_all(self) -> None:
        while True:
            try:
                message = self._read_one()
            except (WorkerError, OSError, ValueError, MemoryError) as error:
                self._fail(error if isinstance(error, WorkerError) else gone())
                return
            task = int(message.note.get(TASK, 0))
            with self._arrived:
                if task >= self._task:
                    self._inbox.setdefault((task, message.kind), deque()).append(message)
                self._arrived.notify_all()
            del message

    def _read_one(self) -> Message:
        import numpy as np

        length = bytearray(LENGTH.size)
        self._stream.read_into(memoryview(length))
        text = bytearray(header_bytes(bytes(length)))
        self._stream.read_into(memoryview(text))
        message, slots = read_header(bytes(text))
        arrays: list[Any] = []
        for slot in slots:
            array: Any = np.empty(slot.shape, slot.dtype)
            self._stream.read_into(bytes_of(array))
            arrays.append(array)
        return Message(message.kind, tuple(arrays), message.sent_s, message.note)
