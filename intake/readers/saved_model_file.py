"""What a TensorFlow SavedModel's `saved_model.pb` (or a frozen GraphDef) says, as data: nodes, functions, signatures, variables.

The object graph is only looked at for names, shapes and which variables are trained; nothing in it is made. Checkpoints are not
opened: a variable's shape stands in the graph.

Source: tensorflow/core/protobuf/{saved_model,meta_graph,saved_object_graph}.proto, core/framework/{node_def,function}.proto
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from core.errors import BadInput
from core.graph import DTYPE_BITS
from intake.readers.draft import MOST_KNOWN, MOST_NAME, MOST_NODES
from intake.readers.onnx_file import Attribute, Stored
from intake.readers.protobuf import Fields, Message, malformed
from intake.readers.symbol_names import Open

DTYPES = {
    1: "fp32", 2: "fp64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64", 9: "int64", 10: "bool",
    11: "int8", 12: "uint8", 13: "int32", 14: "bf16", 15: "int16", 16: "uint16", 17: "uint16", 18: "complex128", 19: "fp16",
    20: "token", 21: "token", 22: "uint32", 23: "uint64", 24: "fp8", 25: "fp8", 26: "fp8", 27: "fp8", 28: "fp8", 29: "int4",
    30: "uint4", 31: "int2", 32: "int2", 33: "fp4",
}  # fmt: skip
"""Tandem's dtype by TensorFlow's number; handles of resources and variants hold nothing themselves."""
_RAW = {"fp32": "f", "fp64": "d", "int64": "q", "int32": "i", "int16": "h", "int8": "b", "uint8": "B", "uint16": "H",
        "uint32": "I", "uint64": "Q", "bool": "?", "fp16": "e"}  # fmt: skip
_WHOLES = {"int32": 7, "int16": 7, "int8": 7, "uint8": 7, "uint16": 7, "int64": 10, "bool": 11, "uint32": 16, "uint64": 17}
_MOST_RANK, _MOST_FUNCTIONS, _MOST_FRACTIONS = 32, 100_000, 64
_SHAPES = ("_output_shapes", "Sout", "output_shapes")


@dataclass(frozen=True, slots=True)
class TfNode:
    """One operation; `inputs` as the file names them, controls left out; `shapes` as the file knows them."""

    op: str
    name: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    shapes: tuple[Open | None, ...] = ()


@dataclass(frozen=True, slots=True)
class TfFunction:
    """A graph that is called: names of its arguments, and of what it answers by the name of each answer, in order."""

    arguments: tuple[str, ...]
    nodes: Mapping[str, TfNode]
    returns: tuple[str, ...]
    shapes: Mapping[int, Open] = field(default_factory=dict[int, Open])


@dataclass(frozen=True, slots=True)
class Signature:
    """How a model is called: tensor, shape and dtype of each input, tensors of the outputs."""

    inputs: tuple[tuple[str, Open | None, str], ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the object graph."""

    shape: Open
    dtype: str
    trained: bool


@dataclass(slots=True)
class TfModel:
    """The whole file. Functions are read when they are called first."""

    version: str
    nodes: Mapping[str, TfNode]
    signatures: Mapping[str, Signature]
    variables: Mapping[str, Variable]
    answers: Mapping[str, tuple[tuple[str, str], ...]]
    messages: dict[str, Message]
    functions: dict[str, TfFunction] = field(default_factory=dict[str, TfFunction])

    def function(self, name: str) -> TfFunction | None:
        """Return a function; None when there is none of this name."""
        if name not in self.functions:
            if name not in self.messages:
                return None
            self.functions[name] = _function(self.messages[name].fields())
        return self.functions[name]


def model_of(message: Message) -> TfModel:
    """Return the content of a SavedModel, or of a GraphDef alone.

    Raises:
        BadInput: it is neither, or damaged.
    """
    fields = message.fields()
    graphs = list(fields.messages(2)) if fields.has(2) else []
    if not graphs:
        if not fields.has(1):
            raise BadInput("a file without a TensorFlow graph", "saved_model.pb or a frozen GraphDef", "save the model again")
        return _model(fields, None)
    serving = [one for one in (graph.fields() for graph in graphs) if "serve" in one.inner(1).texts(4)]
    chosen = serving[0] if serving else graphs[0].fields()
    if not chosen.has(2):
        raise BadInput("a SavedModel without a graph", "saved_model.pb with a MetaGraphDef", "save the model again")
    return _model(chosen.inner(2), chosen)


def _model(graph: Fields, meta: Fields | None) -> TfModel:
    library = graph.inner(2)
    if library.count(1) > _MOST_FUNCTIONS:
        raise malformed(f"over {_MOST_FUNCTIONS} functions")
    messages = {one.fields().inner(1).text(1): one for one in library.messages(1)}
    nodes = _nodes(graph, 1)
    if meta is None:
        return TfModel("", nodes, {}, {}, {}, messages)
    signatures = {key: _signature(value) for key, value in _map(meta, 5).items()}
    variables = dict(_variables(meta.inner(7)))
    answers = {one.text(1): _answers(one) for one in (m.fields() for m in meta.inner(1).inner(2).messages(1))}
    return TfModel(meta.inner(1).text(5)[:40], nodes, signatures, variables, answers, messages)


def _map(fields: Fields, number: int) -> dict[str, Fields]:
    return {entry.text(1): entry.inner(2) for entry in (one.fields() for one in fields.messages(number))}


def _nodes(fields: Fields, number: int) -> dict[str, TfNode]:
    if fields.count(number) > MOST_NODES:
        raise malformed(f"over {MOST_NODES} operations")
    found: dict[str, TfNode] = {}
    for one in fields.messages(number):
        node = _node(one.fields())
        if node.name in found:
            raise malformed(f"two operations of the name {node.name!r:.60}")
        found[node.name] = node
    return found


def _node(fields: Fields) -> TfNode:
    attributes: dict[str, Attribute] = {}
    shapes: tuple[Open | None, ...] = ()
    for name, value in _map(fields, 5).items():
        if name in _SHAPES:
            shapes = tuple(_shape(one.fields()) for one in value.inner(1).messages(7))
            continue
        found = _attribute(value)
        if found is not None:
            attributes[name] = found
    inputs = tuple(name for name in fields.texts(3) if not name.startswith("^"))
    return TfNode(fields.text(2)[:100], fields.text(1)[:MOST_NAME], inputs, attributes, shapes)


def _attribute(fields: Fields) -> "Attribute | None":
    if fields.has(2):
        return fields.text(2) if fields.length(2) <= 65_536 else ""
    if fields.has(3):
        return fields.whole(3)
    if fields.has(4):
        return fields.real(4)
    if fields.has(5):
        return fields.whole(5)
    if fields.has(6):
        return DTYPES.get(fields.whole(6) % 100, "token")
    if fields.has(7):
        shape = _shape(fields.inner(7))
        return None if shape is None else tuple(-1 if not isinstance(one, int) else one for one in shape)
    if fields.has(8):
        return stored(fields.inner(8))
    if fields.has(10):
        return fields.inner(10).text(1)
    if fields.has(1):
        return _listed(fields.inner(1))
    return None


def _listed(fields: Fields) -> Attribute:
    if fields.has(3):
        return tuple(fields.wholes(3, 65_536))
    if fields.has(6):
        return tuple(DTYPES.get(one % 100, "token") for one in fields.wholes(6, 65_536))
    if fields.has(9):
        return tuple(one.fields().text(1) for one in fields.messages(9))
    if fields.has(2):
        return tuple(fields.texts(2))
    if fields.has(4):
        return tuple(fields.reals(4))
    return tuple(fields.wholes(5, 65_536))


def _shape(fields: Fields) -> Open | None:
    """Return a shape; None when not even its axes are known."""
    if fields.whole(3):
        return None
    dims = [one.fields().whole(1) for one in fields.messages(2)]
    if len(dims) > _MOST_RANK:
        raise malformed(f"a tensor of {len(dims)} axes")
    return tuple(one if one >= 0 else None for one in dims)


def stored(fields: Fields) -> Stored:
    """Return a tensor that is written in the graph: its elements only where they may fix a shape."""
    dtype, shape = DTYPES.get(fields.whole(1) % 100, "token"), _shape(fields.inner(2))
    sizes = tuple(one for one in shape or () if isinstance(one, int))
    if shape is None or len(sizes) != len(shape) or prod(sizes) >= 1 << 62:
        raise malformed(f"a stored tensor of shape {shape!s:.60}")
    total, known = prod(sizes), None
    if fields.length(4):
        if fields.length(4) * 8 != total * DTYPE_BITS[dtype] and dtype in _RAW:
            raise malformed(f"a tensor of {total} elements has {fields.length(4)} bytes")
        if dtype in _RAW and total <= (_MOST_FRACTIONS if dtype.startswith("fp") else MOST_KNOWN):
            known = struct.unpack(f"<{total}{_RAW[dtype]}", fields.data(4, 8 * MOST_KNOWN))
    elif total <= MOST_KNOWN:
        known = _filled(_listed_elements(fields, dtype), total) if dtype in (*_WHOLES, "fp32", "fp64") else None
    return Stored("", sizes, dtype, known)


def _listed_elements(fields: Fields, dtype: str) -> list[int | float]:
    if dtype in _WHOLES:
        return list(fields.wholes(_WHOLES[dtype], MOST_KNOWN))
    if dtype == "fp32":
        return list(fields.reals(5, MOST_KNOWN))
    return list(fields.reals(6, MOST_KNOWN, wide=True)) if dtype == "fp64" else []


def _filled(found: list[int | float], total: int) -> tuple[int | float, ...] | None:
    """Return a tensor's elements: the last one that is written stands for all that follow, none for zeros."""
    if len(found) > total:
        return None
    if not found:
        return (0,) * total
    return (*found, *(found[-1],) * (total - len(found)))


def _answers(fields: Fields) -> tuple[tuple[str, str], ...]:
    """Return an operation's answers: name, and the attribute that says how many tensors there are; empty for one."""
    found = [(one.text(1), one.text(5) or one.text(6)) for one in (m.fields() for m in fields.messages(3))]
    return tuple(found)


def _function(fields: Fields) -> TfFunction:
    signature = fields.inner(1)
    arguments = tuple(one.fields().text(1) for one in signature.messages(2))
    names = [one.fields().text(1) for one in signature.messages(3)]
    entries = (one.fields() for one in fields.messages(4))
    returned = {one.text(1): one.text(2) for one in entries}
    if missing := [name for name in names if name not in returned]:
        raise malformed(f"a function without its answer {missing[0]!r:.60}")
    shapes: dict[int, Open] = {}
    for entry in (one.fields() for one in fields.messages(7)):
        for one in _map(entry.inner(2), 1).get(_SHAPES[0], entry.inner(15)).inner(1).messages(7):
            shape = _shape(one.fields())
            if shape is not None:
                shapes[entry.whole(1)] = shape
    return TfFunction(arguments, _nodes(fields, 3), tuple(returned[name] for name in names), shapes)


def _signature(fields: Fields) -> Signature:
    inputs = [_tensor_info(one) for _, one in sorted(_map(fields, 1).items())]
    return Signature(tuple(inputs), tuple(one.text(1) for _, one in sorted(_map(fields, 2).items())))


def _tensor_info(fields: Fields) -> tuple[str, Open | None, str]:
    return fields.text(1), _shape(fields.inner(3)), DTYPES.get(fields.whole(2) % 100, "token")


def _variables(fields: Fields) -> list[tuple[str, Variable]]:
    found: list[tuple[str, Variable]] = []
    for one in fields.messages(1):
        node = one.fields()
        if not node.has(7):
            continue
        inner = node.inner(7)
        shape = _shape(inner.inner(2)) or ()
        dtype = DTYPES.get(inner.whole(1) % 100, "token")
        found.append((inner.text(6)[:MOST_NAME], Variable(shape, dtype, bool(inner.whole(3)))))
    return found
