"""HDF5 as bytes: superblock, object headers and their messages, read with every address and length checked against the file.

Nothing is allocated that the file only claims; what is read in all is limited. No filter, no external file, no virtual dataset.
Source: HDF5 File Format Specification, version 3 (The HDF Group), sections II.A, III and IV.A.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from core.errors import BadInput

SIGNATURE = b"\x89HDF\r\n\x1a\n"
MOST_READ, MOST_MESSAGES, MOST_BLOCKS = 256 * 2**20, 2_000_000, 4096
EXPECTED, REMEDY = "an HDF5 file that is whole", "save the file again with h5py or Keras"


def broken(got: str) -> BadInput:
    """Return the error for a file that does not hold what it says."""
    return BadInput(f"HDF5 with {got}", EXPECTED, REMEDY)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of an object header: its type, whether it is shared, and its bytes."""

    kind: int
    shared: bool
    body: bytes


class Cursor:
    """Reads numbers from bytes, one after the other."""

    def __init__(self, body: bytes, offset_size: int, length_size: int) -> None:
        self.body, self.at, self.offset_size, self.length_size = body, 0, offset_size, length_size

    def take(self, size: int) -> bytes:
        """Return the next bytes.

        Raises:
            BadInput: fewer are there.
        """
        found = self.body[self.at : self.at + size]
        if size < 0 or len(found) != size:
            raise broken(f"a part of {len(self.body)} bytes that should be longer")
        self.at += size
        return found

    def number(self, size: int) -> int:
        """Return the next unsigned number of so many bytes."""
        return int.from_bytes(self.take(size), "little")

    def address(self) -> int:
        """Return the next address."""
        return self.number(self.offset_size)

    def length(self) -> int:
        """Return the next length."""
        return self.number(self.length_size)


class Hdf5:
    """An open file: where its root is, and what its objects say."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        """Find the superblock.

        Args:
            stream: seekable.
            size: of the file in bytes.

        Raises:
            BadInput: none, or one that cannot be read.
        """
        self.stream, self.size, self.taken, self.messages_seen = stream, size, 0, 0
        self.offset_size = self.length_size = 8
        start = next(
            (at for at in (0, *(512 << step for step in range(24))) if at + 8 <= size and self.read(at, 8) == SIGNATURE), None
        )
        if start is None:
            raise broken("no signature")
        self.base = 0
        head = self.read(start, min(128, size - start))
        version = head[8] if len(head) > 8 else -1
        cursor = Cursor(head, 8, 8)
        cursor.take(9)
        if version in (0, 1):
            cursor.take(4)
            self._sizes(cursor.number(1), cursor.number(1), cursor)
            cursor.take(1 + 4 + 4 + (4 if version else 0))
            self.base = cursor.address()
            cursor.take(4 * self.offset_size)
            self.root = cursor.address()
        elif version in (2, 3):
            self._sizes(cursor.number(1), cursor.number(1), cursor)
            cursor.take(1)
            self.base = cursor.address()
            cursor.take(2 * self.offset_size)
            self.root = cursor.address()
        else:
            raise broken(f"a superblock of version {version}")

    def _sizes(self, offset_size: int, length_size: int, cursor: Cursor) -> None:
        if offset_size not in (4, 8) or length_size not in (4, 8):
            raise broken(f"addresses of {offset_size} and lengths of {length_size} bytes")
        self.offset_size = cursor.offset_size = offset_size
        self.length_size = cursor.length_size = length_size

    def read(self, at: int, size: int) -> bytes:
        """Return bytes of the file.

        Raises:
            BadInput: they are not all there, or more was read than `MOST_READ`.
        """
        self.taken += size
        if at < 0 or size < 0 or at + size > self.size:
            raise broken(f"a part at {at} of {size} bytes beyond its {self.size}")
        if self.taken > MOST_READ:
            raise broken(f"more than {MOST_READ >> 20} MiB of structure")
        self.stream.seek(at)
        found = self.stream.read(size)
        if len(found) != size:
            raise broken(f"{len(found)} bytes at {at} where {size} should be")
        return found

    def at(self, address: int, size: int) -> Cursor:
        """Return a cursor over bytes at an address of the file's own counting."""
        return Cursor(self.read(self.base + address, size), self.offset_size, self.length_size)

    def cursor(self, body: bytes) -> Cursor:
        """Return a cursor over bytes that are here already."""
        return Cursor(body, self.offset_size, self.length_size)

    def undefined(self, address: int) -> bool:
        """Whether an address stands for none."""
        return address == (1 << 8 * self.offset_size) - 1

    def messages(self, address: int) -> list[Message]:
        """Return the messages of an object's header, in order.

        Raises:
            BadInput: it cannot be read.
        """
        head = self.at(address, min(16, self.size - self.base - address)).body
        found = list(self._second(address, head) if head[:4] == b"OHDR" else self._first(address, head))
        self.messages_seen += len(found)
        if self.messages_seen > MOST_MESSAGES:
            raise broken(f"more than {MOST_MESSAGES} messages")
        return found

    def _first(self, address: int, head: bytes) -> Iterator[Message]:
        if len(head) < 16 or head[0] != 1:
            raise broken(f"no object header at {address}")
        blocks = [(address + 16, int.from_bytes(head[8:12], "little"))]
        for number, (at, size) in enumerate(blocks):
            body = self.at(at, size)
            while len(body.body) - body.at >= 8:
                kind, length, flags = body.number(2), body.number(2), body.number(1)
                body.take(3)
                message = Message(kind, bool(flags & 2), body.take(min(length, len(body.body) - body.at)))
                if kind == 0x10:
                    self._continue(blocks, message)
                yield message
            if number >= MOST_BLOCKS:
                raise broken("a header in too many blocks")

    def _second(self, address: int, head: bytes) -> Iterator[Message]:
        flags = head[5] if len(head) > 5 else 0
        start = 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
        width = 1 << (flags & 3)
        size = self.at(address + start, width).number(width)
        blocks = [(address + start + width, size)]
        for number, (at, length) in enumerate(blocks):
            body = self.at(at, length) if number == 0 else self.at(at, length - 4)
            if number and body.take(4) != b"OCHK":
                raise broken(f"no continuation at {at}")
            while len(body.body) - body.at >= 4 + (2 if flags & 4 else 0):
                kind, span, own = body.number(1), body.number(2), body.number(1)
                body.take(2 if flags & 4 else 0)
                message = Message(kind, bool(own & 2), body.take(span))
                if kind == 0x10:
                    self._continue(blocks, message)
                yield message
            if number >= MOST_BLOCKS:
                raise broken("a header in too many blocks")

    def _continue(self, blocks: list[tuple[int, int]], message: Message) -> None:
        cursor = self.cursor(message.body)
        block = cursor.address(), cursor.length()
        if block in blocks or block[1] < 8:
            raise broken("a header that continues in itself")
        blocks.append(block)


def shape_of(cursor: Cursor) -> tuple[int, ...] | None:
    """Return the extents that a dataspace message says; None for one without elements."""
    version, rank, flags = cursor.number(1), cursor.number(1), cursor.number(1)
    if version == 1:
        cursor.take(5)
        kind = 1
    elif version == 2:
        kind = cursor.number(1)
    else:
        raise broken(f"a dataspace of version {version}")
    if rank > 32 or flags > 3:
        raise broken(f"a dataspace of {rank} axes")
    return None if kind == 2 else tuple(cursor.length() for _ in range(rank))


@dataclass(frozen=True, slots=True)
class Datatype:
    """What a datatype message says: Tandem's name for it (empty where it has none), bytes of an element, and what a text is."""

    dtype: str
    size: int
    text: str = ""


def datatype_of(body: bytes) -> Datatype:
    """Return the datatype that a message says."""
    if len(body) < 8:
        raise broken("a datatype of fewer than 8 bytes")
    kind, bits, size = body[0] & 15, int.from_bytes(body[1:4], "little"), int.from_bytes(body[4:8], "little")
    if kind == 0:
        sign = "" if bits & 8 else "u"
        return Datatype(f"{sign}int{8 * size}" if size in (1, 2, 4, 8) else "", size)
    if kind == 1:
        half = "bf16" if len(body) > 13 and body[13] == 8 else "fp16"
        return Datatype({1: "fp8", 2: half, 4: "fp32", 8: "fp64"}.get(size, ""), size)
    if kind == 3:
        return Datatype("string", size, "fixed")
    if kind == 9:
        return Datatype("string", size, "varying" if bits & 15 == 1 else "")
    if kind == 8:
        return Datatype("bool" if size == 1 else f"int{8 * size}" if size in (2, 4, 8) else "", size)
    if kind == 6:
        return Datatype({8: "complex64", 16: "complex128"}.get(size, ""), size)
    return Datatype({1: "uint8", 2: "bf16"}.get(size, "") if kind == 5 else "", size)


def joined(parts: Sequence[str]) -> str:
    """Return a path, with `/`."""
    return "/".join(part for part in parts if part)
