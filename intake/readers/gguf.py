"""Reads the header of GGUF files: what the model says of itself, and its tensors with the bits that each is stored in.

Its architecture keys name layers, widths and heads, so the guess is a strong one. Weights are never read.
Source: docs/gguf.md of ggml-org/ggml (layout, keys), and ggml.h of the same (blocks of each tensor type).
"""

from collections import Counter
from collections.abc import Mapping
from math import prod
from struct import Struct
from typing import BinaryIO

from core.errors import BadInput
from core.graph import Parameters, Tensor
from core.graph_json import graph_to_json
from intake.readers.gguf_config import Kept, config_of
from intake.source import Source

TITLE = "GGUF"
SUFFIXES = (".gguf",)
NEEDS: tuple[str, ...] = ()
MAGIC = b"GGUF"
MOST_KEYS, MOST_TENSORS, MOST_NAME, MOST_DEPTH, MOST_HEADER = 100_000, 400_000, 300, 4, 2**30
_REMEDY = "convert or load the model again"
_TYPES: dict[int, tuple[str, str, int, int]] = {
    0: ("F32", "fp32", 1, 4), 1: ("F16", "fp16", 1, 2), 2: ("Q4_0", "int4", 32, 18), 3: ("Q4_1", "int4", 32, 20),
    6: ("Q5_0", "int4", 32, 22), 7: ("Q5_1", "int4", 32, 24), 8: ("Q8_0", "int8", 32, 34), 9: ("Q8_1", "int8", 32, 36),
    10: ("Q2_K", "int2", 256, 84), 11: ("Q3_K", "int4", 256, 110), 12: ("Q4_K", "int4", 256, 144),
    13: ("Q5_K", "int4", 256, 176), 14: ("Q6_K", "int8", 256, 210), 15: ("Q8_K", "int8", 256, 292),
    16: ("IQ2_XXS", "int2", 256, 66), 17: ("IQ2_XS", "int2", 256, 74), 18: ("IQ3_XXS", "int4", 256, 98),
    19: ("IQ1_S", "int2", 256, 50), 20: ("IQ4_NL", "int4", 32, 18), 21: ("IQ3_S", "int4", 256, 110),
    22: ("IQ2_S", "int2", 256, 82), 23: ("IQ4_XS", "int4", 256, 136), 24: ("I8", "int8", 1, 1), 25: ("I16", "int16", 1, 2),
    26: ("I32", "int32", 1, 4), 27: ("I64", "int64", 1, 8), 28: ("F64", "fp64", 1, 8), 29: ("IQ1_M", "int2", 256, 56),
    30: ("BF16", "bf16", 1, 2), 34: ("TQ1_0", "int2", 256, 54), 35: ("TQ2_0", "int2", 256, 66), 39: ("MXFP4", "fp4", 32, 17),
}  # fmt: skip
"""Name, nearest dtype, elements and bytes of a block, by number of the type."""
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_HELD_ITEMS = 1024
"""Items of an array that are kept: per-layer settings, no vocabularies."""


class _Stream:
    """Reads a file from its front, never past its end."""

    def __init__(self, stream: BinaryIO, size: int, order: str) -> None:
        self.stream, self.size, self.order, self.at = stream, size, order, 4

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > min(self.size, MOST_HEADER):
            raise BadInput(
                f"GGUF with a header that runs past its {self.size} bytes", "a file that is whole", "load the file again in full"
            )
        found = self.stream.read(size)
        self.at += len(found)
        if len(found) != size:
            raise BadInput("GGUF that ends within its header", "a file that is whole", "load the file again in full")
        return found

    def skip(self, size: int) -> None:
        if size < 0 or self.at + size > min(self.size, MOST_HEADER):
            raise BadInput(
                f"GGUF with a header that runs past its {self.size} bytes", "a file that is whole", "load the file again in full"
            )
        self.at += size
        self.stream.seek(self.at)

    def scalar(self, code: str) -> int | float | bool:
        packed = Struct(self.order + code)
        value: int | float | bool = packed.unpack(self.take(packed.size))[0]
        return value

    def whole(self, code: str) -> int:
        return int(self.scalar(code))

    def text(self, most: int) -> str:
        length = self.whole("Q")
        if length > most:
            raise BadInput(f"GGUF with a text of {length} bytes", f"at most {most}", _REMEDY)
        return self.take(length).decode("utf-8", "replace")


def fits(name: str, head: bytes) -> bool:
    """Whether a file is GGUF, by its first bytes or its name."""
    return head.startswith(MAGIC) or name.lower().endswith(".gguf")


def read(source: Source, options: Mapping[str, object]) -> dict[str, object]:
    """Read a file, or a folder with the parts of a split one.

    Args:
        source: one file, or a folder.
        options: none are used.

    Raises:
        BadInput: no GGUF, or one that claims what is not there.
    """
    del options
    parts = [one for one in source.names() if one.lower().endswith(".gguf")] if source.names() else [""]
    if not parts:
        raise BadInput("a folder without .gguf files", "a GGUF file, or the parts of one", "hand in the file itself")
    metadata: dict[str, object] = {}
    tensors: list[Tensor] = []
    kinds: Counter[str] = Counter()
    notes: list[str] = []
    stored = 0
    for part in parts:
        with source.open(part) as stream:
            size = stream.seek(0, 2)
            stream.seek(0)
            held, found, taken, told = _file(stream, size, part or source.name)
        metadata = {**held, **metadata}
        stored += taken
        notes += told
        kinds.update(kind for _, _, kind in found)
        tensors += [Tensor(name, shape, _dtype(kind), "constant" if name.startswith("rope_") else "parameter", len(tensors) + at)
                    for at, (name, shape, kind) in enumerate(found)]  # fmt: skip
    if len({tensor.name for tensor in tensors}) < len(tensors):
        raise BadInput("GGUF with a tensor twice", "each tensor once", "hand in the parts of one model")
    return graph_to_json(_parameters(source.name, metadata, tensors, (kinds, stored), notes))


def _parameters(
    title: str, metadata: dict[str, object], tensors: list[Tensor], how: tuple[Counter[str], int], notes: list[str]
) -> Parameters:
    kinds, stored = how
    total = sum(prod(one for one in tensor.shape if isinstance(one, int)) for tensor in tensors)
    if not tensors:
        raise BadInput(
            f"{title:.80} without tensors", "weights of a model", "hand in the file that holds them, or all parts of it"
        )
    split = metadata.get("split.tensors.count")
    if isinstance(split, int) and split != len(tensors):
        notes.append(f"one part of several: {len(tensors)} of {split} tensors are here; hand in the folder with all parts")
    guess = config_of(metadata, tensors)
    shown = [(key, _short(value)) for key, value in metadata.items()]
    shown += [("stored bytes", str(stored)), ("bits of a parameter", f"{8 * stored / max(total, 1):.3f}"),
              ("tensor types", ", ".join(f"{kind} {number} ({bits_of(kind):g} bits)" for kind,
              number in kinds.most_common()))]  # fmt: skip
    uneven = sorted(kind for kind in kinds if kind not in ("F32", "F16", "BF16", "F64") and bits_of(kind) % 1)
    if uneven:
        notes.append(f"{', '.join(uneven)} are told as the nearest dtype; their true bits are in 'tensor types'"[:300])
    return Parameters("gguf", str(metadata.get("general.name") or title)[:200], tuple(tensors), tuple(shown[:2000]),
        guess.config, guess.reasons,
                      (*notes, *guess.notes))  # fmt: skip


def _short(value: object) -> str:
    if isinstance(value, Kept):
        return f"{value.length} items" + (f": {', '.join(map(str, value.items[:16]))}" if value.items else "")
    return str(value)[:400]


def bits_of(kind: str) -> float:
    """Return the bits of an element of a tensor type, its scales included.

    Args:
        kind: its name, such as `Q4_K`.
    """
    return next(8 * size / block for name, _, block, size in _TYPES.values() if name == kind)


def _dtype(kind: str) -> str:
    return next(dtype for name, dtype, _, _ in _TYPES.values() if name == kind)


def _file(
    stream: BinaryIO, size: int, shown: str
) -> tuple[dict[str, object], list[tuple[str, tuple[int, ...], str]], int, list[str]]:
    """Return metadata, tensors as (name, shape, type), bytes of data, and notes of one file."""
    head = stream.read(8)
    if head[:4] != MAGIC or len(head) < 8:
        raise BadInput(f"{shown:.80} that does not begin with GGUF", "a GGUF file", _REMEDY)
    order = "<" if int.from_bytes(head[4:8], "little") < 2**16 else ">"
    version = int.from_bytes(head[4:8], "little" if order == "<" else "big")
    if version not in (2, 3):
        raise BadInput(f"{shown:.80} of GGUF version {version}", "version 2 or 3", "convert the model again with today's tools")
    file = _Stream(stream, size, order)
    file.at = 8
    count, keys = file.whole("Q"), file.whole("Q")
    # the least that a tensor or a key takes bounds how many there can be
    if count > min(MOST_TENSORS, size // 24) or keys > min(MOST_KEYS, size // 13):
        raise BadInput(
            f"{shown:.80} of {size} bytes that claims {count} tensors and {keys} keys", "as many as fit into it", _REMEDY
        )
    metadata: dict[str, object] = {}
    for _ in range(keys):
        key = file.text(65535)
        if key in metadata:
            raise BadInput(f"GGUF with the key {key:.80} twice", "each key once", _REMEDY)
        metadata[key[:100]] = _value(file, file.whole("I"), 0)
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= 2**20 or alignment % 8:
        raise BadInput(f"GGUF with general.alignment {alignment!r:.40}", "a multiple of 8", _REMEDY)
    found: list[tuple[str, tuple[int, ...], str]] = []
    spans: list[tuple[int, int, str]] = []
    for _ in range(count):
        name, shape, kind, offset, taken = _tensor(file, alignment)
        found.append((name, shape, kind))
        spans.append((offset, taken, name))
    start = file.at + -file.at % alignment
    end = max((offset + taken for offset, taken, _ in spans), default=0)
    for (offset, taken, name), (after, _, _) in zip(sorted(spans), sorted(spans)[1:], strict=False):
        if offset + taken > after:
            raise BadInput(f"GGUF whose tensor {name:.80} overlaps the next", "tensors one behind the other", _REMEDY)
    alone = size <= start and bool(count)
    if count and not alone and start + end > size:
        raise BadInput(
            f"{shown:.80} of {size} bytes, whose tensors claim {start + end}", "all of the data", "load the file again in full"
        )
    return metadata, found, sum(taken for _, taken, _ in spans), ["a header alone: the data is not in the file"] if alone else []


def _value(file: _Stream, kind: int, depth: int) -> object:
    if kind in _SCALARS:
        return file.scalar(_SCALARS[kind])
    if kind == _STRING:
        return file.text(2**28)[:400]
    if kind != _ARRAY or depth >= MOST_DEPTH:
        raise BadInput(
            f"GGUF with a value of type {kind}, {depth} arrays deep", f"types 0 to 12, at most {MOST_DEPTH} deep", _REMEDY
        )
    inner, length = file.whole("I"), file.whole("Q")
    if length > file.size:
        raise BadInput(f"GGUF with an array of {length} items in {file.size} bytes", "as many as fit into it", _REMEDY)
    if inner in _SCALARS:
        width = Struct(f"<{_SCALARS[inner]}").size
        kept = min(length, _HELD_ITEMS) if length <= _HELD_ITEMS else 0
        items = tuple(file.scalar(_SCALARS[inner]) for _ in range(kept))
        file.skip((length - kept) * width)
        return Kept(length, items)
    if inner == _STRING:
        for _ in range(length):
            file.skip(file.whole("Q"))
        return Kept(length, ())
    for _ in range(length):
        _value(file, inner, depth + 1)
    return Kept(length, ())


def _tensor(file: _Stream, alignment: int) -> tuple[str, tuple[int, ...], str, int, int]:
    """Return name, shape (outermost first), type, offset and bytes of a tensor."""
    name, rank = file.text(4096), file.whole("I")
    if rank > 8:
        raise BadInput(f"tensor {name:.80} of {rank} axes", "at most 8", _REMEDY)
    extents = [file.whole("Q") for _ in range(rank)]
    number, offset = file.whole("I"), file.whole("Q")
    if number not in _TYPES:
        raise BadInput(f"tensor {name:.80} of type {number}", f"one of {', '.join(str(one) for one in _TYPES)}", _REMEDY)
    kind, _, block, size = _TYPES[number]
    total = prod(extents)
    if total >= 2**62 or (extents and extents[0] % block) or offset % alignment or offset >= 2**62:
        raise BadInput(f"tensor {name:.60} of {kind} and shape {extents[::-1]!r:.80} at {offset}",
            f"rows of a multiple of {block}, at {alignment}s",
                       _REMEDY)  # fmt: skip
    return name[:MOST_NAME], tuple(reversed(extents)), kind, offset, total // block * size
