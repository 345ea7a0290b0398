"""Reads ONNX models: structure and shapes as data; weights are stepped over and external data is never opened."""

from collections.abc import Mapping
from pathlib import PurePosixPath

from core.errors import BadInput
from core.graph import Graph
from core.graph_json import graph_to_json
from intake.readers.onnx_file import FileReader, OnnxModel
from intake.readers.onnx_shapes import Walk
from intake.readers.protobuf import Message
from intake.readers.settled import settled
from intake.readers.symbol_names import Names
from intake.readers.symbolic import Extents
from intake.source import Source

TITLE = "ONNX"
SUFFIXES = (".onnx",)
NEEDS: tuple[str, ...] = ()
_REMEDY = "export it with static shapes"


def fits(name: str, head: bytes) -> bool:
    """Whether a file is an ONNX model: by its suffix, or by a protobuf head with ONNX's version and producer."""
    began = head[:1] == b"\x08" and head[1:2] < b"\x20" and head[2:3] in {b"\x12", b"\x1a", b"\x3a", b"\x42"}
    return name.lower().endswith(SUFFIXES) or (began and b"onnx" in head.lower())


def read(source: Source, options: Mapping[str, object]) -> dict[str, object]:
    """Return the graph of an ONNX file.

    Args:
        source: the file, or a folder that holds one beside its external data.
        options: `batch` and `length`, the values to take for these symbols.

    Raises:
        BadInput: it is damaged, no ONNX model, or has shapes that it does not tell.
    """
    name = _chosen(source)
    reader = FileReader()
    with source.open(name) as stream:
        model = reader.model(Message.of(stream))
    title = model.graph.name if model.graph.name not in {"", "main_graph", "torch_jit", "main", "graph"} else ""
    graph = _walked(model, title or PurePosixPath(name or source.name).stem, reader, options)
    return graph_to_json(graph)


def _chosen(source: Source) -> str:
    names = source.names()
    if not names:
        return ""
    found = [name for name in names if name.lower().endswith(SUFFIXES)]
    if len(found) != 1:
        raise BadInput(f"a folder with {len(found)} .onnx files", "a folder with one", "give the file itself")
    return found[0]


def _walked(model: OnnxModel, title: str, reader: FileReader, options: Mapping[str, object]) -> Graph:
    stored = {one.name for one in model.graph.stored}
    declared = [model.graph.declared[name] for name in model.graph.inputs if name not in stored]
    given = [(one.shape, one.dtype) for one in declared]

    def walk(names: Names, extents: Extents, batch: int, length: int) -> Graph:
        return Walk(model, names, extents, batch, length).graph(title)

    return settled(given, _notes(model, reader), options, walk, "an ONNX model", _REMEDY)


def _notes(model: OnnxModel, reader: FileReader) -> list[str]:
    notes: list[str] = []
    if reader.outside:
        notes.append(f"{reader.outside} tensors lie in files beside it, which were not opened; their shapes were counted")
    if reader.without_data:
        notes.append(f"{reader.without_data} tensors have a shape and no data")
    if model.functions:
        notes.append(f"{len(model.functions)} functions of the file were expanded")
    return notes
