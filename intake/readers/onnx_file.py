"""What an ONNX file says, as data: graphs, functions, weights' shapes. Weights themselves are stepped over.

Only integers and the few fractions that can fix a shape are kept of stored tensors. Files that tensors refer to are never opened.

Source: onnx.proto of ONNX 1.20 (field numbers)
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from core.errors import BadInput
from core.graph import DTYPE_BITS
from intake.readers.draft import MOST_KNOWN, MOST_NAME, MOST_NODES, MOST_TENSORS
from intake.readers.protobuf import Fields, Message, malformed

DTYPES = {
    1: "fp32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool", 10: "fp16",
    11: "fp64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bf16", 17: "fp8", 18: "fp8", 19: "fp8",
    20: "fp8", 21: "uint4", 22: "int4", 23: "fp4", 24: "fp8", 25: "int2", 26: "int2",
}  # fmt: skip
"""Tandem's dtype by ONNX's number."""
_RAW = {"fp32": "f", "fp64": "d", "int64": "q", "int32": "i", "int16": "h", "int8": "b", "uint8": "B", "uint16": "H",
        "uint32": "I", "uint64": "Q", "bool": "?", "fp16": "e"}  # fmt: skip
_MOST_RANK, _MOST_DEPTH, _MOST_FRACTIONS = 32, 16, 64
_SCOPES, _ROLE = "pkg.torch.onnx.name_scopes", "pkg.torch.export.graph_signature.InputSpec.kind"


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor that is stored with the model: shape and dtype; its elements only where they may fix a shape."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    known: tuple[int | float, ...] | None = None
    has_data: bool = True


@dataclass(frozen=True, slots=True)
class Declared:
    """What the file says of a value.

    Args:
        shape: numbers, names of symbols, None where an extent is left open; None when nothing is said.
        dtype: of it, or of a sequence's tensors.
        form: `tensor`, `sequence`, `optional` or another.
        kind: of parameter, when torch's exporter says it: `PARAMETER`, `BUFFER`.
    """

    shape: tuple[int | str | None, ...] | None
    dtype: str
    form: str = "tensor"
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """An attribute of a function's operator that takes the value of the function's own."""

    name: str


Attribute: TypeAlias = (
    "int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Stored | OnnxGraph | Reference"
)


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """One operator as the file has it."""

    op: str
    domain: str
    scope: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    name: str = ""
    overload: str = ""


@dataclass(frozen=True, slots=True)
class OnnxGraph:
    """A graph, or the body of a branch or a loop."""

    name: str
    nodes: tuple[OnnxNode, ...]
    stored: tuple[Stored, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    declared: Mapping[str, Declared]


@dataclass(frozen=True, slots=True)
class OnnxFunction:
    """An operator that the file defines by others."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[OnnxNode, ...]
    opsets: Mapping[str, int]
    defaults: Mapping[str, Attribute]


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """The whole file."""

    producer: str
    opsets: Mapping[str, int]
    graph: OnnxGraph
    functions: Mapping[tuple[str, str, str], OnnxFunction]


class FileReader:
    """Reads one file; counts what it has read, so that no file unfolds without end."""

    def __init__(self) -> None:
        self.nodes = self.tensors = 0
        self.outside = self.without_data = 0

    def model(self, message: Message) -> OnnxModel:
        """Return the file's content.

        Raises:
            BadInput: it is no ONNX model, or a damaged one.
        """
        fields = message.fields()
        inner = fields.message(7)
        if inner is None or not fields.has(1):
            raise BadInput("a file without an ONNX graph", "an ONNX ModelProto", "export the model again")
        functions: dict[tuple[str, str, str], OnnxFunction] = {}
        for one in fields.messages(25):
            named = one.fields()
            functions[_domain(named.text(10)), named.text(1), named.text(13)] = self._function(named)
        return OnnxModel(fields.text(2)[:MOST_NAME], _opsets(fields, 8), self.graph(inner, 0), functions)

    def graph(self, message: Message, depth: int) -> OnnxGraph:
        """Return a graph."""
        if depth > _MOST_DEPTH:
            raise malformed(f"graphs nested over {_MOST_DEPTH} deep")
        fields = message.fields()
        declared: dict[str, Declared] = {}
        names: dict[int, list[str]] = {11: [], 12: [], 13: []}
        for number, found in names.items():
            for one in fields.messages(number):
                name, what = _declared(one.fields())
                found.append(name)
                if name not in declared or declared[name].shape is None:
                    declared[name] = what
                self._count_tensor()
        stored = [self.stored(one.fields()) for one in fields.messages(5)]
        for one in fields.messages(15):
            sparse = one.fields()
            values = self.stored(sparse.inner(1))
            stored.append(Stored(values.name, _shape(sparse.wholes(3, _MOST_RANK)), values.dtype))
        nodes = tuple(self._node(one.fields(), depth) for one in fields.messages(1))
        return OnnxGraph(fields.text(2)[:MOST_NAME], nodes, tuple(stored), tuple(names[11]), tuple(names[12]), declared)

    def stored(self, fields: Fields) -> Stored:
        """Return a stored tensor; its size is held against the bytes that are there."""
        self._count_tensor()
        shape, dtype = _shape(fields.wholes(1, _MOST_RANK)), _dtype(fields.whole(2))
        total, name = prod(shape), fields.text(8)[:MOST_NAME]
        if fields.whole(14) == 1 or fields.has(13):
            self.outside += 1
            return Stored(name, shape, dtype, has_data=False)
        if fields.has(9):
            if (need := (total * DTYPE_BITS[dtype] + 7) // 8) != fields.length(9):
                raise malformed(f"tensor {name[:60]} of {need} bytes has {fields.length(9)}")
            known = _raw(fields, dtype, total)
        else:
            lengths = {number: fields.length(number) for number in (4, 5, 6, 7, 10, 11)}
            if total and not any(lengths.values()):
                self.without_data += 1
                return Stored(name, shape, dtype, has_data=False)
            if total > 4 * sum(lengths.values()) and total > 16:
                raise malformed(f"tensor {name[:60]} of {total} elements has {sum(lengths.values())} bytes")
            known = _typed(fields, dtype, total)
        return Stored(name, shape, dtype, known)

    def _count_tensor(self) -> None:
        self.tensors += 1
        if self.tensors > MOST_TENSORS:
            raise malformed(f"over {MOST_TENSORS} tensors")

    def _function(self, fields: Fields) -> OnnxFunction:
        defaults = {one.text(1): self._attribute(one, 1) for one in (m.fields() for m in fields.messages(11))}
        nodes = tuple(self._node(one.fields(), 1) for one in fields.messages(7))
        return OnnxFunction(tuple(fields.texts(4)), tuple(fields.texts(5)), nodes, _opsets(fields, 9), defaults)

    def _node(self, fields: Fields, depth: int) -> OnnxNode:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise malformed(f"over {MOST_NODES} operations")
        attributes = {one.text(1): self._attribute(one, depth) for one in (m.fields() for m in fields.messages(5))}
        name = fields.text(3)[:MOST_NAME]
        scopes = _metadata(fields, 9).get(_SCOPES, "")
        return OnnxNode(fields.text(4)[:100], _domain(fields.text(7)[:100]), _scope(name, scopes), tuple(fields.texts(1)),
                        tuple(fields.texts(2)), attributes, name, fields.text(8))  # fmt: skip

    def _attribute(self, fields: Fields, depth: int) -> Attribute:
        if fields.has(21) and fields.text(21):
            return Reference(fields.text(21))
        kind = fields.whole(20)
        if kind == 5 or (not kind and fields.has(6)):
            message = fields.message(6)
            if message is None:
                raise malformed("an attribute without its graph")
            return self.graph(message, depth + 1)
        if kind == 4 or (not kind and fields.has(5)):
            return self.stored(fields.inner(5))
        if kind == 11 or (not kind and fields.has(22)):
            sparse = fields.inner(22)
            return Stored("", _shape(sparse.wholes(3, _MOST_RANK)), self.stored(sparse.inner(1)).dtype)
        if kind == 6 or (not kind and fields.has(7)):
            return tuple(fields.reals(7))
        if kind == 7 or (not kind and fields.has(8)):
            return tuple(fields.wholes(8, 65_536))
        if kind == 8 or (not kind and fields.has(9)):
            return tuple(fields.texts(9))
        if kind == 1 or (not kind and fields.has(2)):
            return fields.real(2)
        if kind == 2 or (not kind and fields.has(3)):
            return fields.whole(3)
        return fields.text(4) if fields.length(4) <= 65_536 else ""


def _raw(fields: Fields, dtype: str, total: int) -> tuple[int | float, ...] | None:
    letter = _RAW.get(dtype)
    if letter is None or total > (_MOST_FRACTIONS if dtype.startswith("fp") else MOST_KNOWN):
        return None
    return struct.unpack(f"<{total}{letter}", fields.data(9, 8 * MOST_KNOWN))


def _typed(fields: Fields, dtype: str, total: int) -> tuple[int | float, ...] | None:
    if total > (_MOST_FRACTIONS if dtype.startswith(("fp", "bf")) else MOST_KNOWN):
        return None
    found: list[int | float] = []
    if dtype in {"fp32", "fp64"}:
        found.extend(fields.reals(4) if dtype == "fp32" else fields.reals(10, wide=True))
    elif dtype == "int64":
        found.extend(fields.wholes(7, MOST_KNOWN))
    elif dtype in {"uint32", "uint64"}:
        found.extend(fields.wholes(11, MOST_KNOWN))
    elif dtype in {"int32", "int16", "int8", "uint16", "uint8", "bool"}:
        found.extend(fields.wholes(5, MOST_KNOWN))
    else:
        return None
    if len(found) != total:
        raise malformed(f"a tensor of {total} elements has {len(found)}")
    return tuple(found)


def _dtype(number: int) -> str:
    if number not in DTYPES:
        raise BadInput(f"a tensor of ONNX's data type {number}", f"one of 1 to {max(DTYPES)}", "export the model again")
    return DTYPES[number]


def _shape(dims: list[int]) -> tuple[int, ...]:
    if any(extent < 0 for extent in dims) or prod(dims) >= 1 << 62:
        raise malformed(f"a tensor of shape {tuple(dims)!s:.80}")
    return tuple(dims)


def _declared(fields: Fields) -> tuple[str, Declared]:
    name, kind = fields.text(1), _metadata(fields, 4).get(_ROLE, "")
    outer = fields.inner(2)
    for number, form in ((1, "tensor"), (4, "sequence"), (9, "optional"), (8, "sparse"), (5, "map")):
        if not outer.has(number):
            continue
        inner = outer.inner(number)
        if form in {"sequence", "optional"}:
            return name, Declared(None, "fp32", form, kind)
        if form == "map":
            return name, Declared(None, "string", form, kind)
        shape = inner.message(2)
        dims = None if shape is None else tuple(_dim(one.fields()) for one in shape.fields().messages(1))
        if dims is not None and len(dims) > _MOST_RANK:
            raise malformed(f"a value of {len(dims)} axes")
        return name, Declared(dims, DTYPES.get(inner.whole(1), ""), "tensor", kind)
    return name, Declared(None, "", "tensor", kind)


def _dim(fields: Fields) -> int | str | None:
    if fields.has(1):
        value = fields.whole(1)
        return value if value >= 0 else None
    return fields.text(2)[:MOST_NAME] or None


def _metadata(fields: Fields, number: int) -> dict[str, str]:
    if not fields.has(number):
        return {}
    return {one.text(1): one.text(2) for one in (m.fields() for m in fields.messages(number))}


def _opsets(fields: Fields, number: int) -> dict[str, int]:
    return {_domain(one.text(1)): one.whole(2) for one in (m.fields() for m in fields.messages(number))}


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _scope(name: str, scopes: str) -> str:
    """Return the module's path from torch's list of scopes, or from a name such as `/model/layers.3/mlp/MatMul`."""
    if scopes:
        parts = [part.strip(" '\"") for part in scopes.strip("[] ").split(",")]
        return parts[-2] if len(parts) > 1 else ""
    parts = [part for part in name.split("/") if part]
    return ".".join(parts[:-1])
