"""Holds a Keras model's config against the weights that its file has: do both tell of the same model?"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from core.graph import Graph, Tensor
from core.symbols import Extent
from intake.readers.hdf5_groups import Dataset

_SEED = ("uint32", (2,))


def matched(graph: Graph, weights: Iterable[Dataset], notes: Sequence[str]) -> Graph:
    """Return a graph with notes where its weights are not those of the file.

    Weights that only the file has are added where the config has layers of somebody's own: they are theirs.

    Args:
        graph: from the config.
        weights: that the file has.
        notes: of the file.
    """
    kept = [one for one in weights if (one.dtype, one.shape) != _SEED]
    own = [
        tensor
        for tensor in graph.tensors
        if tensor.role == "parameter" or (tensor.role == "constant" and tensor.name != "stored")
    ]
    told: Counter[tuple[Extent, ...]] = Counter(tensor.shape for tensor in own)
    held: Counter[tuple[Extent, ...]] = Counter(one.shape for one in kept)
    missing, more = told - held, held - told
    if not kept:
        return replace(graph, notes=(*graph.notes, *notes, "the file has a config, but no weights"))
    if not missing and not more:
        return replace(graph, notes=(*graph.notes, *notes))
    custom = any(mark.startswith("custom:") for node in graph.nodes for mark in node.marks)
    if custom and not missing:
        tensors = list(graph.tensors)
        for one in kept:
            if more[one.shape] > 0:
                more[one.shape] -= 1
                whole = "parameter" if one.dtype.startswith(("fp", "bf")) else "constant"
                tensors.append(Tensor(one.path[:300], one.shape, one.dtype, whole, len(tensors)))
        added = len(tensors) - len(graph.tensors)
        note = f"{added} weights that only the file has are taken for those of the layers that are not Keras's own"
        return replace(graph, tensors=tuple(tensors), notes=(*graph.notes, *notes, note))
    note = f"the config and the weights disagree: {_shown('only the config has', missing)}{_shown('only the file has', more)}"
    return replace(graph, notes=(*graph.notes, *notes, note.rstrip("; ")))


def _shown(what: str, shapes: Counter[tuple[Extent, ...]]) -> str:
    if not shapes:
        return ""
    total = sum(number * prod(extent for extent in shape if isinstance(extent, int)) for shape, number in shapes.items())
    first = ", ".join("x".join(map(str, shape)) or "a number" for shape in list(shapes)[:3])
    return f"{what} {shapes.total()} ({total} elements: {first}{' ...' if len(shapes) > 3 else ''}); "
