"""How a worker's answer travels: frames of a mark, a length and JSON; nothing else is ever taken from a worker.

The mark is drawn anew for each read, so that an answer to another question is refused. The length is looked at before anything
is waited for, and a frame is decoded only as JSON: a pickle, half a message or a lie about the length is no answer. What is
decoded is data of a stranger: finite numbers, text that can be written, and no deeper than Python can follow.
"""

import json
import math
import re
import struct
from typing import TypeAlias, cast

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

HEADER = struct.Struct("<16sQ")
MARK_BYTES = 16
STATUS = struct.Struct("<iQ")
"""How a child ended, as `waitpid` gives it, and its processor time in microseconds."""
SPARE_BYTES = 64 * 1024
"""Room in an answer for what is told beside the value."""
_HALF_OF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")


class Malformed(ValueError):
    """Bytes that are no frame; the text says in a few words why."""


def frame(mark: bytes, body: bytes) -> bytes:
    """Return a message ready to be sent."""
    return HEADER.pack(mark, len(body)) + body


def encode(value: object) -> bytes:
    """Return a value as JSON in UTF-8; half of a surrogate pair becomes a question mark.

    Raises:
        TypeError, ValueError, RecursionError: it holds what JSON cannot hold, an infinite number or itself.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


def decode(body: bytes) -> JSON:
    """Return what a frame holds.

    Raises:
        Malformed: it is not JSON, or not such as `encode` writes.
    """
    try:
        value = cast("JSON", json.loads(body.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite))
        if _HALF_OF_A_PAIR.search(body):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise Malformed(f"what it sent is not JSON ({type(error).__name__})") from None
    return value


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


class Frames:
    """Takes the bytes of a worker as they come, and gives them back as frames.

    Args:
        mark: of the read.
        limit_bytes: the longest body that is waited for.
    """

    def __init__(self, mark: bytes, limit_bytes: int) -> None:
        self._mark, self._limit_bytes = mark, limit_bytes
        self._held = bytearray()
        self.bodies: list[bytes] = []

    @property
    def whole(self) -> bool:
        """Whether nothing is left over that is not yet a frame."""
        return not self._held

    def take(self, part: bytes) -> None:
        """Take some bytes.

        Raises:
            Malformed: the mark or the length is none that was agreed.
        """
        self._held += part
        while len(self._held) >= HEADER.size:
            mark, length = HEADER.unpack_from(self._held)
            if mark != self._mark:
                raise Malformed("what it sent does not answer this question")
            if length > self._limit_bytes:
                raise Malformed(f"it announced an answer of {length} bytes")
            if len(self._held) < HEADER.size + length:
                return
            self.bodies.append(bytes(self._held[HEADER.size : HEADER.size + length]))
            del self._held[: HEADER.size + length]
