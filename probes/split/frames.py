"""How a message of tensors lies on a wire: the layout of a safetensors file, so that any reader of that format could read one.

Eight bytes of header length, little endian; a JSON header of names, dtypes, shapes and offsets; then the tensors end to end.
Everything is checked before memory is taken: what arrives may come from another host.

Source: the format of safetensors, https://github.com/huggingface/safetensors#format.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from core.errors import WorkerError, one_line

LENGTH = struct.Struct("<Q")
LONGEST_HEADER = 2**20
LARGEST_BYTES = 2**36
MOST_TENSORS = 2**10
_DTYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "BF16": "<u2", "U8": "|u1"}
"""bfloat16 travels as the upper halves of float32, numpy has no such type."""
_NAMES = {"float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64", "uint16": "BF16", "uint8": "U8"}


@dataclass(frozen=True)
class Message:
    """What was received.

    Args:
        kind: what it is about.
        arrays: numpy arrays of its own, in order.
        sent_s: when it was offered, on the clock of the host that sent it.
        note: (name, value) beside the arrays.
    """

    kind: str
    arrays: tuple[Any, ...]
    sent_s: float = 0.0
    note: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Slot:
    """One tensor of a frame: its dtype in numpy's letters and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes that it takes."""
        return prod(self.shape) * int(self.dtype[-1])


def header_of(kind: str, arrays: Sequence[Any], sent_s: float, note: Mapping[str, str]) -> bytes:
    """Return length and header of a frame; the tensors follow end to end.

    Args:
        kind: what it is about.
        arrays: contiguous numpy arrays.
        sent_s: seconds on this host's clock.
        note: beside the arrays.
    """
    content: dict[str, Any] = {"__metadata__": {"kind": kind, "sent_s": repr(sent_s), **note}}
    at = 0
    for index, array in enumerate(arrays):
        name = _NAMES[array.dtype.name]
        content[f"{index:04d}"] = {"dtype": name, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(content, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return LENGTH.pack(len(text)) + text


def header_bytes(length: bytes) -> int:
    """Return how long the header is; raises WorkerError for one that is too long."""
    (size,) = LENGTH.unpack(length)
    if not 2 <= size <= LONGEST_HEADER:
        raise WorkerError(f"got a header of {size} bytes; expected 2 to {LONGEST_HEADER}; run the split again")
    return int(size)


def read_header(text: bytes) -> tuple[Message, tuple[Slot, ...]]:
    """Return a message without its arrays, and what arrays follow.

    Raises:
        WorkerError: not such a header, gaps or overlaps between tensors, too many or too large ones.
    """
    try:
        content = json.loads(text)
        about = {str(key): str(value) for key, value in content.pop("__metadata__").items()}
        found = [(int(name), _slot(entry), entry["data_offsets"]) for name, entry in content.items()]
        message = Message(about.pop("kind"), (), float(about.pop("sent_s")), about)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _not_a_frame(f"{type(error).__name__}: {error}") from None
    if len(found) > MOST_TENSORS or [index for index, _, _ in found] != list(range(len(found))):
        raise _not_a_frame("tensors that are not numbered in order")
    at = 0
    for _, slot, offsets in found:
        if offsets != [at, at + slot.size_bytes]:
            raise _not_a_frame("tensors with gaps or overlaps")
        at += slot.size_bytes
    if at > LARGEST_BYTES:
        raise _not_a_frame(f"{at} bytes of tensors")
    return message, tuple(slot for _, slot, _ in found)


def _slot(entry: Any) -> Slot:
    shape = tuple(entry["shape"])
    if not all(isinstance(side, int) and 0 <= side <= LARGEST_BYTES for side in shape):
        raise ValueError("a shape that is not one")
    return Slot(_DTYPES[entry["dtype"]], shape)


def _not_a_frame(what: str) -> WorkerError:
    return WorkerError(one_line(f"got {what} on the channel; expected a frame of tensors; run the split again", 300))
