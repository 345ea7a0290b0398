"""Reads back what `./tandem capture` wrote: a graph as JSON, plain or compressed, that holds no weights and no code."""

import gzip
import json
import zlib
from collections.abc import Mapping
from typing import cast

from core.errors import BadInput, one_line
from core.graph import Graph, Parameters
from core.graph_json import graph_from_json, graph_to_json
from intake.readers.plain_json import read_json
from intake.source import Source

TITLE = "Tandem's captured graph"
SUFFIXES = (".tandem.json",)
NEEDS: tuple[str, ...] = ()
MOST_BYTES, MOST_NODES, MOST_TENSORS = 200_000_000, 200_000, 400_000
REMEDY = "capture the model again with ./tandem capture"
_GZIP = b"\x1f\x8b"


def fits(name: str, head: bytes) -> bool:
    """Whether a file is a captured graph: by its name, or by how its JSON begins."""
    return name.lower().endswith(SUFFIXES) and head[:1] in (b"{", b"\x1f")


def read(source: Source, options: Mapping[str, object]) -> dict[str, object]:
    """Return the graph, every field of it checked.

    Args:
        source: the file.
        options: none are used.

    Raises:
        BadInput: it is no graph, or larger than any that a capture writes.
    """
    del options
    with source.open() as file:
        data = file.read(MOST_BYTES + 1)
    if data[:2] == _GZIP:
        data = _unpacked(data)
    if len(data) > MOST_BYTES:
        raise BadInput(f"a captured graph of over {MOST_BYTES} bytes", "a smaller one", REMEDY)
    plain = read_json(data, "a captured graph", REMEDY)
    nothing: Mapping[str, object] = {}
    values = cast("Mapping[str, object]", plain) if isinstance(plain, Mapping) else nothing
    for key, most in (("nodes", MOST_NODES), ("tensors", MOST_TENSORS)):
        found = values.get(key)
        if isinstance(found, list) and len(cast("list[object]", found)) > most:
            raise BadInput(f"a captured graph of over {most} {key}", "a smaller one", REMEDY)
    graph = graph_from_json(values)
    if isinstance(graph, Parameters):
        raise BadInput("parameters without operations", "a captured graph", REMEDY)
    _check_order(graph)
    return graph_to_json(graph)


def _check_order(graph: Graph) -> None:
    """Raise BadInput for an operation that reads what only a later one makes: a circle, or another order than they ran in.

    What no operation makes may be read, and so may what one changes in place: traces do not see every value being made.
    """
    makers: dict[int, int] = {}
    for number, node in enumerate(graph.nodes):
        for at in node.outputs:
            makers.setdefault(at, number)
    for number, node in enumerate(graph.nodes):
        if early := [at for at in node.inputs if graph.tensors[at].role == "value" and makers.get(at, number) > number]:
            got = f"a captured graph whose operation {node.op[:60]} reads {graph.tensors[early[0]].name[:60]!r} before it is made"
            raise BadInput(one_line(got, 200), "operations in their order", REMEDY)


def written(graph: Graph) -> bytes:
    """Return the bytes of a graph's file, compressed, the same for the same graph."""
    return gzip.compress(json.dumps(graph_to_json(graph), separators=(",", ":")).encode(), mtime=0)


def _unpacked(data: bytes) -> bytes:
    try:
        worker = zlib.decompressobj(wbits=31)
        return worker.decompress(data, MOST_BYTES + 1)
    except zlib.error as error:
        raise BadInput(f"a captured graph whose compression is broken ({str(error)[:60]})", "a whole file", REMEDY) from None
