"""The operations and shapes of a graph that decide whether, and how well, a model moves to another accelerator."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from core.graph import DTYPE_BITS, VIEW, Graph, Node, Tensor
from core.picture import PRODUCT, Portability
from core.symbols import Extent, value_of
from intake.picture.parts import Part
from intake.picture.tiles import INFLATED, LANES, Tiles, tiled_bytes

LEAST_BYTES = 65_536
"""Bytes below which the padding of a tensor is not told."""

BY_ELEMENT = ("aten.", "GatherElements", "ScatterElements")
"""Formats in which one index stands for a whole place; in XLA's own the coordinates are there already."""


def portability_of(graph: Graph, parts: Sequence[Part], dtype: str) -> tuple[Portability, ...]:
    """Return what decides portability, the marks of operations first, then shapes that tiles would pad, the largest first.

    Args:
        graph: with marks.
        parts: of it, for the places.
        dtype: its compute dtype; shapes are judged as they are.
    """
    where = {at: part.name for part in parts for _, nodes in part.members for at in nodes}
    values = dict(graph.symbols)
    marks: dict[tuple[str, str], Portability] = {}
    for at, node in enumerate(graph.nodes):
        for one in _marks_of(graph, node, values, where.get(at, "the backward pass")):
            known = marks.get((one.mark, one.detail))
            marks[one.mark, one.detail] = one if known is None else _joined(known, one)
    return (*marks.values(), *_padded(graph, where, Tiles(graph, dtype)), *_off_tile(graph, where, values, dtype))


def _joined(known: Portability, one: Portability) -> Portability:
    """Return both as one; of sizes the larger."""
    larger = max(known, one, key=lambda found: found.padded)
    return replace(known, count=known.count + one.count, extent=larger.extent, padded=larger.padded)


def _marks_of(graph: Graph, node: Node, values: dict[str, int], where: str) -> Iterator[Portability]:
    for mark in node.marks:
        name, _, detail = mark.partition(":")
        extent, padded = 0, 0
        if name in {"gather", "scatter"}:
            extent, padded = _index_bytes(graph, node, values)
        yield Portability(name, detail, 1, where, extent, padded)


def _index_bytes(graph: Graph, node: Node, values: dict[str, int]) -> tuple[int, int]:
    """Return the bytes of the index tensor of a gather or scatter, and those of it in tiles.

    One that picks single elements out of several axes is lowered to coordinates: each index becomes as many as there are axes.

    Source: what XLA asks for of take_along_axis (github.com/jax-ml/jax/issues/7502).
    """
    indices = [graph.tensors[at] for at in node.inputs if graph.tensors[at].dtype.startswith(("int", "uint"))]
    axes = len(graph.tensors[node.inputs[0]].shape) if node.inputs else 0
    if node.op.startswith(BY_ELEMENT) and node.dims[1:2] == (1,):
        indices = [one if len(one.shape) != axes or axes < 2 else replace(one, shape=(*one.shape, axes), dtype="int32")
                   for one in indices]  # fmt: skip
    sizes = [_sizes(one, values) for one in indices]
    return max(sizes, key=lambda pair: pair[1], default=(0, 0))


def _padded(graph: Graph, where: dict[int, str], tiles: Tiles) -> list[Portability]:
    """Return tensors that tiles would inflate, equal shapes together."""
    found: dict[tuple[tuple[int, ...], str], Portability] = {}
    for at, node in enumerate(graph.nodes):
        if node.kind == VIEW or node.phase != "forward":
            continue
        for index in node.outputs:
            one = graph.tensors[index]
            shape, logical, padded = tiles.numbers_of(index)
            if padded < max(LEAST_BYTES, INFLATED * logical):
                continue
            known = found.get((shape, one.dtype))
            told = Portability("unit_axis" if 1 in shape[-2:] else "off_tile", f"{_written(shape)} {one.dtype}", 1,
                               where.get(at, ""), logical, padded)  # fmt: skip
            found[shape, one.dtype] = told if known is None else replace(known, count=known.count + 1)
    return sorted(found.values(), key=lambda one: -one.padded)[:12]


def _off_tile(graph: Graph, where: dict[int, str], values: dict[str, int], dtype: str) -> list[Portability]:
    """Return products of which a side of weights is off 128 (or 8 for a narrow one), with the FLOPs that padding adds."""
    found: dict[str, Portability] = {}
    for at, node in enumerate(graph.nodes):
        if node.kind != "matmul" or node.phase != "forward" or node.dtype != dtype:
            continue
        batch, m, n, k = (value_of(side, values) for side in node.dims)
        wide = [-(-side // LANES) * LANES if side > 8 else 8 for side in (n, k)]
        flop, padded = 2 * batch * m * n * k, 2 * batch * m * prod(wide)
        if padded <= flop * 1.02:
            continue
        name = f"{PRODUCT}{_written((n, k))}"
        known = found.get(name)
        told = Portability("off_tile", name, 1, where.get(at, ""), flop, padded)
        found[name] = told if known is None else replace(known, count=known.count + 1)
    return sorted(found.values(), key=lambda one: -one.padded)[:12]


def _sizes(one: Tensor, values: dict[str, int]) -> tuple[int, int]:
    shape = [value_of(side, values) for side in one.shape]
    return prod(shape) * max(4, DTYPE_BITS[one.dtype]) // 8, tiled_bytes(shape, one.dtype)


def _written(shape: Sequence[Extent]) -> str:
    return " x ".join(str(side) for side in shape) or "scalar"
