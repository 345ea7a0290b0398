"""Graphs as JSON: short rows, since a large model has tens of thousands; read with every field checked."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import cast

from core.errors import BadInput
from core.graph import DTYPE_BITS, MARKS, ROLES, VIEW, Compiled, Graph, Node, Parameters, SetAside, Tensor
from core.ops import DIMS
from core.symbols import MOST_VALUE, Extent, read, symbols_in, written

SCHEMA = 1
PHASES = ("forward", "backward", "update")


def graph_to_json(graph: Graph | Parameters) -> dict[str, object]:
    """Return a graph, or parameters, as plain values for JSON."""
    tensors = [[one.name, [written(extent) for extent in one.shape], one.dtype, one.role, one.storage,
                *([one.dies] if one.dies is not None else [])] for one in graph.tensors]  # fmt: skip
    common: dict[str, object] = {
        "schema": SCHEMA, "format": graph.format, "title": graph.title, "tensors": tensors, "notes": list(graph.notes),
    }  # fmt: skip
    if isinstance(graph, Parameters):
        guess = dict(graph.guess) if graph.guess is not None else None
        return {**common, "metadata": [list(pair) for pair in graph.metadata], "guess": guess, "reasons": list(graph.reasons)}
    nodes = [
        [one.op, one.kind, [written(extent) for extent in one.dims], one.dtype, list(one.inputs), list(one.outputs), one.scope,
         PHASES.index(one.phase), list(one.marks)]
        for one in graph.nodes
    ]  # fmt: skip
    symbols, facts = ([list(pair) for pair in pairs] for pairs in (graph.symbols, graph.facts))
    return {**common, "nodes": nodes, "outputs": list(graph.outputs), "symbols": symbols, "has_backward": graph.has_backward,
            "facts": facts, "compiled": compiled_to_json(graph.compiled)}  # fmt: skip


def compiled_to_json(compiled: Compiled | None) -> list[object] | None:
    """Return what a compiler would set aside as a short row."""
    if compiled is None:
        return None
    memory = compiled.memory
    row = None if memory is None else list(astuple(memory))
    return [compiled.compiler, compiled.arguments, row, compiled.silent, compiled.reused_bytes]


def compiled_from_json(row: object) -> Compiled | None:
    """Return what `compiled_to_json` gave.

    Raises:
        TypeError, ValueError: anything else.
    """
    if row is None:
        return None
    compiler, arguments, sizes, silent, *reused = _rows(row)
    memory = None if sizes is None else SetAside(*(_index(one, MOST_VALUE + 1) for one in _rows(sizes)))
    return Compiled(str(compiler)[:100], _whole(arguments), memory, str(silent)[:200], *map(_whole, reused[:1]))


def graph_from_json(plain: object) -> Graph | Parameters:
    """Return the graph, or the parameters, that `graph_to_json` gave.

    Raises:
        BadInput: anything else; one line that says which field.
    """
    try:
        values = _mapping(plain)
        if values.get("schema") != SCHEMA:
            raise ValueError(f"schema {values.get('schema')!r:.40}, not {SCHEMA}")  # noqa: TRY301  made one line below
        tensors = tuple(_tensor(row, len(_rows(values["tensors"]))) for row in _rows(values["tensors"]))
        texts = (str(values["format"])[:40], str(values["title"])[:200])
        notes = tuple(str(note)[:400] for note in _rows(values["notes"]))
        if "nodes" not in values:
            metadata = tuple((str(key)[:100], str(value)[:400]) for key, value in map(_pair, _rows(values["metadata"])))
            guess = _mapping(values["guess"]) if values["guess"] is not None else None
            return Parameters(*texts, tensors, metadata, guess, tuple(str(one)[:400] for one in _rows(values["reasons"])), notes)
        nodes = tuple(_node(row, len(tensors)) for row in _rows(values["nodes"]))
        outputs = tuple(_index(one, len(tensors)) for one in _rows(values["outputs"]))
        symbols, facts = (tuple((str(name)[:100], _whole(value)) for name, value in map(_pair, _rows(values.get(key, ()))))
                          for key in ("symbols", "facts"))  # fmt: skip
        graph = Graph(*texts, tensors, nodes, outputs, symbols, values["has_backward"] is True, notes, facts,
                      compiled_from_json(values.get("compiled")))  # fmt: skip
        _check(graph)
        return graph  # noqa: TRY300  what the checks raise is turned into one line below
    except (KeyError, TypeError, ValueError, IndexError) as error:
        got = f"no graph of a model ({str(error)[:160]})"
        raise BadInput(got, "what ./tandem capture writes", "capture the model again") from None


def _check(graph: Graph) -> None:
    """Check what is behind a graph's numbers: memory that is a tensor's own, symbols that have a value."""
    if strange := [one for one in graph.tensors if graph.tensors[one.storage].storage != one.storage]:
        raise ValueError(f"tensor {strange[0].name!r:.40} in the memory of one that has none of its own")
    used = symbols_in(extent for one in graph.tensors for extent in one.shape)
    used |= symbols_in(extent for one in graph.nodes for extent in one.dims)
    if unknown := sorted(used - {name for name, value in graph.symbols if value > 0}):
        raise ValueError(f"symbol {unknown[0]!r:.40} without a value")
    if graph.compiled is not None and not 0 <= graph.compiled.arguments <= len(graph.tensors):
        raise ValueError(f"{graph.compiled.arguments} arguments among {len(graph.tensors)} tensors")


def _extents(row: object) -> tuple[Extent, ...]:
    found = tuple(read(one) for one in _rows(row))
    if negative := [one for one in found if isinstance(one, int) and one < 0]:
        raise ValueError(f"size {negative[0]}")
    return found


def _tensor(row: object, count: int) -> Tensor:
    name, shape, dtype, role, storage, *dies = _rows(row)
    if dtype not in DTYPE_BITS or role not in ROLES:
        raise ValueError(f"tensor {name!r:.40} of dtype {dtype!r:.20} and role {role!r:.20}")
    until = _whole(*dies) if dies else None
    return Tensor(str(name)[:300], _extents(shape), str(dtype), str(role), _index(storage, count), until)


def _node(row: object, count: int) -> Node:
    op, kind, dims, dtype, inputs, outputs, scope, phase, marks = _rows(row)
    extents = _extents(dims)
    fits = (kind == VIEW and not extents) or (isinstance(kind, str) and kind in DIMS and len(extents) == len(DIMS[kind]))
    if not fits or dtype not in DTYPE_BITS:
        raise ValueError(f"operation {op!r:.40} of kind {kind!r:.20} with {len(extents)} dims and dtype {dtype!r:.20}")
    told = tuple(str(mark)[:100] for mark in _rows(marks))
    if strange := [mark for mark in told if mark.partition(":")[0] not in MARKS]:
        raise ValueError(f"operation {op!r:.40} with the mark {strange[0]!r:.40}")
    taken, made = (tuple(_index(one, count) for one in _rows(row)) for row in (inputs, outputs))
    when = PHASES[_index(phase, len(PHASES))]
    return Node(str(op)[:100], str(kind), extents, str(dtype), taken, made, str(scope)[:300], when, told)


def _rows(value: object) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r:.40} where a list was expected")
    return cast("Sequence[object]", value)


def _pair(value: object) -> tuple[object, object]:
    first, second = _rows(value)
    return first, second


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r:.40} where a mapping was expected")
    return cast("Mapping[str, object]", value)


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r:.40} where a whole number was expected")
    return value


def _index(value: object, count: int) -> int:
    at = _whole(value)
    if not 0 <= at < count:
        raise IndexError(f"number {at} of {count}")
    return at
