"""Reads TensorFlow SavedModels (and frozen GraphDefs): the graph as data; no checkpoint is opened and no object is made."""

from collections.abc import Mapping

from core.errors import BadInput
from core.graph import Graph
from core.graph_json import graph_to_json
from intake.readers.protobuf import Message
from intake.readers.saved_model_file import Signature, TfModel, model_of
from intake.readers.saved_model_graph import TfWalk
from intake.readers.settled import settled
from intake.readers.symbol_names import Names
from intake.readers.symbolic import Extents
from intake.source import Source

TITLE = "TensorFlow SavedModel"
SUFFIXES = (".pb",)
NEEDS: tuple[str, ...] = ()
_FILE, _MOST_BYTES = "saved_model.pb", 1 << 31
_REMEDY = "save it with a fixed input signature"
_HELPERS = (
    "save", "Save", "Restore", "MergeV2Checkpoints", "StaticRegex", "ShardedFilename", "Assign", "Const", "NoOp", "Placeholder",
)  # fmt: skip


def fits(name: str, head: bytes) -> bool:
    """Whether a file is a SavedModel's graph, or a frozen one."""
    return name.lower().endswith(SUFFIXES) or head[:3] == b"\x08\x01\x12"


def read(source: Source, options: Mapping[str, object]) -> dict[str, object]:
    """Return the graph of a SavedModel.

    Args:
        source: its folder, or `saved_model.pb` alone, or a frozen GraphDef.
        options: `batch` and `length`, the values to take for these symbols; `signature`, its name.

    Raises:
        BadInput: it is damaged, no SavedModel, or has shapes that it does not tell.
    """
    name = _chosen(source)
    with source.open(name) as stream:
        message = Message.of(stream)
        if message.size > _MOST_BYTES:
            raise BadInput(f"a graph of {message.size} bytes", f"at most {_MOST_BYTES}", "save the weights beside the graph")
        model = model_of(message)
        return graph_to_json(_walked(model, source.name.removesuffix(".pb"), options))


def _chosen(source: Source) -> str:
    names = source.names()
    if not names:
        return ""
    found = [name for name in names if name.rsplit("/", 1)[-1] == _FILE] or [name for name in names if name.endswith(".pb")]
    if len(found) != 1:
        raise BadInput(f"a folder with {len(found)} files {_FILE}", "a SavedModel's folder", "give the model's own folder")
    return found[0]


def _walked(model: TfModel, title: str, options: Mapping[str, object]) -> Graph:
    signature, notes = _signature(model, options)
    given = [(shape, dtype) for _, shape, dtype in signature.inputs]

    def walk(names: Names, extents: Extents, batch: int, length: int) -> Graph:
        return TfWalk(model, names, extents, batch, length).graph(title, signature)

    return settled(given, notes, options, walk, "a SavedModel", _REMEDY)


def _signature(model: TfModel, options: Mapping[str, object]) -> tuple[Signature, list[str]]:
    """Return the signature to read: the one that is asked for, else the usual one, else the first; else the graph's own ends."""
    wanted = options.get("signature")
    usable = {name: one for name, one in model.signatures.items() if one.outputs and not name.startswith("__saved_model")}
    if isinstance(wanted, str) and wanted not in usable:
        raise BadInput(f"the signature {wanted!r:.60}", f"one of {', '.join(sorted(usable))[:200]}", "choose one of them")
    usual = "serving_default" if "serving_default" in usable else next(iter(sorted(usable)), "")
    name = wanted if isinstance(wanted, str) else usual
    if name:
        others = [] if len(usable) == 1 else [f"signature {name!r:.60} of {len(usable)} was read"]
        return usable[name], others
    used = {one.split(":")[0] for node in model.nodes.values() for one in node.inputs}
    ends = [node.name for node in model.nodes.values() if node.name not in used and not node.name.startswith(_HELPERS)
            and not node.op.startswith(_HELPERS) and node.op != "VarHandleOp"]  # fmt: skip
    if not ends:
        raise BadInput("a graph without a signature and without an end", "a SavedModel with a signature", _REMEDY)
    return Signature((), tuple(ends)), ["without a signature, everything that nothing uses is taken as an answer"]
