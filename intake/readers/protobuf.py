"""A bounded reader of protobuf's wire format: what is in a message is looked up by field number, without a schema compiler.

A message is a stretch of a file. Only what is asked for is read; long stretches (weights) are stepped over by seeking, so a file
of ten gigabytes costs no more memory than its structure. Lengths are checked against the stretch that they lie in before anything
is made of them. Groups, which nobody has written since proto2, are refused.

Source: https://protobuf.dev/programming-guides/encoding/
"""

import struct
from collections.abc import Iterator
from io import SEEK_END
from typing import BinaryIO, TypeAlias

from core.errors import BadInput

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MOST_FIELDS, MOST_DEPTH, MOST_TEXT = 2_000_000, 48, 65_536
_IN_MEMORY = 1 << 20
_HEAD = 20
Place: TypeAlias = tuple[int, int, int]
"""Wire type, and either (value, 0) or (start, end) in the file."""


def malformed(why: str) -> BadInput:
    """Return the error for a file whose bytes are no protobuf message of the expected kind."""
    return BadInput(f"a damaged protobuf file ({why})", "a whole message", "save or copy the model again")


class Message:
    """One message: a stretch of a file."""

    __slots__ = ("_data", "_origin", "_stream", "depth", "end", "start")

    def __init__(self, stream: BinaryIO, start: int, end: int, depth: int = 0, data: bytes = b"", origin: int = 0) -> None:
        if depth > MOST_DEPTH:
            raise malformed(f"messages nested over {MOST_DEPTH} deep")
        self._stream, self.start, self.end, self.depth = stream, start, end, depth
        self._data, self._origin = data, origin

    @classmethod
    def of(cls, stream: BinaryIO) -> "Message":
        """Return the message that a whole file is."""
        return cls(stream, 0, stream.seek(0, SEEK_END))

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.end - self.start

    def bytes(self, start: int, end: int) -> bytes:
        """Return bytes of the file between two places within this message."""
        if self._data:
            return self._data[start - self._origin : end - self._origin]
        self._stream.seek(start)
        found = self._stream.read(end - start)
        if len(found) != end - start:
            raise malformed("it ends early")
        return found

    def within(self, start: int, end: int) -> "Message":
        """Return the message that lies between two places within this one."""
        return Message(self._stream, start, end, self.depth + 1, self._data, self._origin)

    def places(self) -> Iterator[tuple[int, Place]]:
        """Yield number and place of each field, in order."""
        if not self._data and self.size <= _IN_MEMORY:
            self._data, self._origin = self.bytes(self.start, self.end), self.start
        at, base, whole = self.start, self._origin, self._data
        while at < self.end:
            head, offset = (whole, at - base) if whole else (self.bytes(at, min(at + _HEAD, self.end)), 0)
            last = self.end - base if whole else len(head)
            tag, after = _varint(head, offset, last)
            number, wire = tag >> 3, tag & 7
            if not 0 < number < 1 << 29:
                raise malformed(f"field number {number}")
            value, after = _varint(head, after, last) if wire in {VARINT, BYTES} else (0, after)
            at += after - offset
            if wire == VARINT:
                yield number, (VARINT, value, 0)
                continue
            length = {BYTES: value, FIXED32: 4, FIXED64: 8}.get(wire, -1)
            if length < 0:
                raise malformed(f"wire type {wire}")
            if length > self.end - at:
                raise malformed(f"a field of {length} bytes where {self.end - at} are left")
            yield number, (wire, at, at + length)
            at += length

    def fields(self) -> "Fields":
        """Return its fields by number."""
        return Fields(self)


class Fields:
    """The fields of one message, by number; those that are missing have protobuf's defaults."""

    __slots__ = ("_found", "_message")

    def __init__(self, message: Message) -> None:
        found: dict[int, list[Place]] = {}
        for count, (number, place) in enumerate(message.places()):
            if count >= MOST_FIELDS:
                raise malformed(f"over {MOST_FIELDS} fields in one message")
            found.setdefault(number, []).append(place)
        self._found, self._message = found, message

    def has(self, number: int) -> bool:
        """Whether a field is there."""
        return number in self._found

    def wholes(self, number: int, most: int = MOST_FIELDS) -> list[int]:
        """Return a repeated field of whole numbers, packed or not, as signed 64-bit numbers; at most `most` of them."""
        found: list[int] = []
        for wire, start, end in self._found.get(number, ()):
            if wire == VARINT:
                found.append(_signed(start))
                continue
            if wire != BYTES:
                raise malformed(f"field {number} is no whole number")
            if end - start > 10 * most:
                raise malformed(f"field {number} has over {most} numbers")
            data, at = self._message.bytes(start, end), 0
            while at < len(data):
                value, at = _varint(data, at, len(data))
                found.append(_signed(value))
        if len(found) > most:
            raise malformed(f"field {number} has over {most} numbers")
        return found

    def whole(self, number: int, default: int = 0) -> int:
        """Return a whole number, signed."""
        places = self._found.get(number)
        if not places:
            return default
        wire, value, _ = places[-1]
        if wire != VARINT:
            raise malformed(f"field {number} is no whole number")
        return _signed(value)

    def reals(self, number: int, most: int = 65_536, wide: bool = False) -> list[float]:
        """Return a repeated field of fp32 numbers (fp64 when `wide`), packed or not; at most `most` of them."""
        size, letter, single = (8, "d", FIXED64) if wide else (4, "f", FIXED32)
        found: list[float] = []
        for wire, start, end in self._found.get(number, ()):
            if wire not in {BYTES, single} or (end - start) % size or (end - start) // size > most:
                raise malformed(f"field {number} is no list of at most {most} fractions")
            found.extend(struct.unpack(f"<{(end - start) // size}{letter}", self._message.bytes(start, end)))
        return found

    def real(self, number: int, default: float = 0.0) -> float:
        """Return one fp32 number."""
        found = self.reals(number)
        return found[-1] if found else default

    def texts(self, number: int) -> list[str]:
        """Return a repeated field of texts."""
        return [self._text(number, place) for place in self._found.get(number, ())]

    def text(self, number: int, default: str = "") -> str:
        """Return a text."""
        places = self._found.get(number)
        return self._text(number, places[-1]) if places else default

    def messages(self, number: int) -> Iterator[Message]:
        """Yield the messages of a repeated field."""
        for wire, start, end in self._found.get(number, ()):
            if wire != BYTES:
                raise malformed(f"field {number} is no message")
            yield self._message.within(start, end)

    def message(self, number: int) -> Message | None:
        """Return a message; None when it is missing."""
        places = self._found.get(number)
        if not places:
            return None
        wire, start, end = places[-1]
        if wire != BYTES:
            raise malformed(f"field {number} is no message")
        return self._message.within(start, end)

    def inner(self, number: int) -> "Fields":
        """Return the fields of a message; of an empty one when it is missing."""
        message = self.message(number)
        return message.fields() if message else Fields(self._message.within(self._message.end, self._message.end))

    def count(self, number: int) -> int:
        """Return how often a field occurs."""
        return len(self._found.get(number, ()))

    def length(self, number: int) -> int:
        """Return the bytes of a field, however often it occurs; 10 at most for each number that is not packed."""
        return sum(end - start if wire != VARINT else 1 for wire, start, end in self._found.get(number, ()))

    def data(self, number: int, most: int) -> bytes:
        """Return bytes, at most `most` of them."""
        places = self._found.get(number)
        if not places:
            return b""
        wire, start, end = places[-1]
        if wire != BYTES or end - start > most:
            raise malformed(f"field {number} is not at most {most} bytes")
        return self._message.bytes(start, end)

    def _text(self, number: int, place: Place) -> str:
        wire, start, end = place
        if wire != BYTES or end - start > MOST_TEXT:
            raise malformed(f"field {number} is no text of at most {MOST_TEXT} bytes")
        return self._message.bytes(start, end).decode("utf-8", "replace")


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    raise malformed("a number without an end")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
