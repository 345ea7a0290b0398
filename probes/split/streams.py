"""Bytes between two sides of one host: a ring of shared memory for each direction, and a pair of sockets that wakes the other.

The memory is an unnamed file that both map and the sockets have no address: when both processes are gone, nothing is left,
however they ended. The sockets carry counts of bytes only: written ones one way, freed ones back; the kernel's ordering of
these calls is what makes the bytes of the ring visible. A side that died shows as the end of its socket.
"""

import contextlib
import mmap
import os
import socket
import struct
import tempfile
from pathlib import Path
from typing import Any, Protocol

from core.errors import WorkerError

RING_BYTES = 2**23
CHUNK_BYTES = 2**19
"""Copied at one go: the reader copies one out while the writer copies the next in."""
CREDITS = 4
"""Freed bytes are told in so many lumps a ring: the writer looks only when its ring is full, and a socket that nobody reads would
fill with one for each small message."""
_COUNT = struct.Struct("<I")


class Stream(Protocol):
    """Bytes in both directions, in order. One thread writes, one reads; both may at once."""

    def write(self, data: memoryview) -> None:
        """Send all bytes; raises WorkerError when the other side is gone."""
        ...

    def read_into(self, target: memoryview) -> None:
        """Fill `target`; raises WorkerError when the other side is gone."""
        ...

    def close(self) -> None:
        """Wake whoever waits, here and there; may be called twice."""
        ...


class SharedMemory:
    """The file and the sockets of one channel, made by whoever starts the two sides.

    Args:
        ring_bytes: of each direction.
    """

    def __init__(self, ring_bytes: int = RING_BYTES) -> None:
        self.ring_bytes = ring_bytes
        place = Path("/dev/shm")  # noqa: S108 - the system's place for shared memory; the file has no name there
        self._file = tempfile.TemporaryFile(dir=place if place.is_dir() else None)  # noqa: SIM115 - lives as long as this
        self._file.truncate(2 * ring_bytes)
        self._pairs = (socket.socketpair(), socket.socketpair())

    def ends(self, side: int) -> tuple[int, int, int]:
        """Return the descriptors of a side: file, socket of what it writes, socket of what it reads."""
        return self._file.fileno(), self._pairs[side][0].fileno(), self._pairs[1 - side][1].fileno()

    def close(self) -> None:
        """Let go of all; the sides keep theirs."""
        self._file.close()
        for pair in self._pairs:
            for end in pair:
                end.close()


class MemoryStream:
    """One side's end of a `SharedMemory`.

    Args:
        side: 0 or 1.
        ends: descriptors, as `SharedMemory.ends` gives them; they are taken over.
        ring_bytes: of each direction.
    """

    def __init__(self, side: int, ends: tuple[int, int, int], ring_bytes: int = RING_BYTES) -> None:
        file, out, into = ends
        self._map = mmap.mmap(file, 2 * ring_bytes)
        os.close(file)
        whole, self._size = memoryview(self._map), ring_bytes
        self._out_ring = whole[side * ring_bytes : (side + 1) * ring_bytes]
        self._in_ring = whole[(1 - side) * ring_bytes : (2 - side) * ring_bytes]
        self._out, self._in = socket.socket(fileno=out), socket.socket(fileno=into)
        self._wrote = self._read = 0
        self._used = self._there = self._freed = 0

    def write(self, data: memoryview) -> None:
        """Send all bytes; raises WorkerError when the other side is gone."""
        at = 0
        while at < len(data):
            if self._used == self._size:
                self._used -= _counts(self._out)
            begin = self._wrote % self._size
            part = min(CHUNK_BYTES, len(data) - at, self._size - self._used, self._size - begin)
            _copy(self._out_ring[begin : begin + part], data[at : at + part])
            self._wrote, self._used, at = self._wrote + part, self._used + part, at + part
            _tell(self._out, part)

    def read_into(self, target: memoryview) -> None:
        """Fill `target`; raises WorkerError when the other side is gone."""
        at = 0
        while at < len(target):
            if not self._there:
                self._there = _counts(self._in)
            begin = self._read % self._size
            part = min(self._there, len(target) - at, self._size - begin)
            _copy(target[at : at + part], self._in_ring[begin : begin + part])
            self._read, self._there, at = self._read + part, self._there - part, at + part
            self._freed += part
            if self._freed >= self._size // CREDITS:
                _tell(self._in, self._freed)
                self._freed = 0

    def close(self) -> None:
        """Wake whoever waits, here and there; may be called twice. The memory goes with the process."""
        for end in (self._out, self._in):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def _copy(target: memoryview, source: memoryview) -> None:
    """Copy without the interpreter's lock, which a slice assignment of memory views would hold."""
    import numpy as np

    np.copyto(np.frombuffer(target, np.uint8), np.frombuffer(source, np.uint8))


def _tell(end: socket.socket, count: int) -> None:
    try:
        end.sendall(_COUNT.pack(count))
    except OSError:
        raise gone() from None


def _counts(end: socket.socket) -> int:
    """Return the sum of the counts that wait, at least one."""
    try:
        data = end.recv(_COUNT.size * 256)
        while data and len(data) % _COUNT.size:
            data += end.recv(_COUNT.size - len(data) % _COUNT.size)
    except OSError:
        data = b""
    if not data:
        raise gone()
    return sum(count for (count,) in _COUNT.iter_unpack(data))


def gone() -> WorkerError:
    """Return what is said when the other side is not there any more."""
    return WorkerError("got the end of the channel; expected the other side to live; see how it ended")


def bytes_of(array: Any) -> memoryview:
    """Return the bytes of a contiguous array, without a copy; nothing for an empty one."""
    return memoryview(array).cast("B") if array.size else memoryview(b"")
