"""What the tiles of a TPU make of arrays: the two axes that lie innermost are filled up to 8 x 128.

Which axes lie innermost is the compiler's choice. What is counted here is the order in which the array is written, with the two
last axes innermost, which is what programs that failed for memory had; around convolutions XLA lays the batch and the channels
innermost, so that the better of those orders counts there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from core.graph import DTYPE_BITS, VIEW, Graph, Shape
from core.picture import WORD
from core.symbols import Extent, product, symbol, value_of
from intake.picture.timeline import Span, inference_steps, needed_until

LANES, ROWS = 128, 8
"""Lanes and rows of a TPU's vector registers."""
INFLATED = 1.5
"""Times its logical size from which on a padded array, or what a pass holds of them, is told."""


def tiled_bytes(shape: Sequence[int], dtype: str) -> int:
    """Return the bytes of a tensor in the tiles of a TPU: the last axis up to 128, the one before it up to 8.

    XLA takes a tile of 2 or 4 rows where there are no more; narrower elements share words of 32 bits, of which a tile has two
    rows at least, so that bf16 has 4 rows at least. One axis alone lies along the lanes.

    Source: XLA, "Tiled layout"; what its reports of memory print: bf16 of a unit axis in T(4,128)(2,1), fourfold
    (github.com/pytorch/xla/issues/6674), fp32 in T(2,128) (issues/3041), a last axis of one in T(8,128), 128-fold (issues/1965).
    """
    return value_of(_filled(tuple(shape), dtype, -2, -1), {}) * max(4, DTYPE_BITS[dtype]) // 8


def _lanes(side: int) -> int:
    return -(-side // LANES) * LANES


def _rows(side: int, dtype: str) -> int:
    least = 2 * max(1, 32 // max(4, DTYPE_BITS[dtype]))
    rows = min(ROWS, max(least, 1 << (max(1, side) - 1).bit_length()))
    return -(-side // rows) * rows


class Tiles:
    """Sizes of one graph's arrays in tiles."""

    def __init__(self, graph: Graph, dtype: str) -> None:
        """Prepare.

        Args:
            graph: whose arrays are meant.
            dtype: its compute dtype; sizes of arrays of it are in words.
        """
        self.graph, self.dtype, self.values = graph, dtype, dict(graph.symbols)
        self.channels = {
            value_of(node.dims[at], self.values) for node in graph.nodes if node.kind == "conv" for at in (3, 6)
        }  # fmt: skip
        self.statistics = {at for node in graph.nodes if node.kind == "norm" for at in node.outputs}
        self.known: dict[tuple[Shape, str], Extent] = {}

    def size_of(self, at: int) -> Extent:
        """Return the bytes of a tensor in tiles; an axis that follows a symbol is taken to fill them.

        Args:
            at: its index.
        """
        shape, dtype = self._laid(at), self.graph.tensors[at].dtype
        if (shape, dtype) not in self.known:
            width = symbol(WORD) if dtype == self.dtype else max(1, DTYPE_BITS[dtype] // 8)
            self.known[shape, dtype] = self._elements(shape, dtype) * width
        return self.known[shape, dtype]

    def _laid(self, at: int) -> Shape:
        """Return the shape of a tensor; of what a normalisation keeps of each row without the axis that it sums over."""
        shape = self.graph.tensors[at].shape
        return shape[:-1] if at in self.statistics and shape[-1:] == (1,) else shape

    def _elements(self, shape: Shape, dtype: str) -> Extent:
        orders = [_filled(shape, dtype, -2, -1), *(_filled(shape, dtype, *axes) for axes in self._around_convolutions(shape))]
        return min(orders, key=lambda elements: value_of(elements, self.values))

    def numbers_of(self, at: int) -> tuple[tuple[int, ...], int, int]:
        """Return the shape of a tensor for the values of the symbols, its bytes, and those in tiles.

        Args:
            at: its index.
        """
        one = self.graph.tensors[at]
        shape, bits = tuple(value_of(side, self.values) for side in one.shape), max(4, DTYPE_BITS[one.dtype])
        laid = shape[: len(self._laid(at))]
        return shape, prod(shape) * bits // 8, value_of(self._elements(laid, one.dtype), {}) * bits // 8

    def _around_convolutions(self, shape: Shape) -> Iterator[tuple[int, int]]:
        """Yield the pairs of axes that may lie innermost where an array has a batch and channels of a convolution."""
        if len(shape) > 3:
            for axis in (1, len(shape) - 1):
                if value_of(shape[axis], self.values) in self.channels:
                    yield from ((0, axis), (axis, 0))

    def spans(self, spans: Sequence[Span]) -> list[Span]:
        """Return what a pass holds with its sizes in tiles.

        Args:
            spans: the same with their logical sizes.
        """
        return [replace(span, size=self.size_of(span.storage)) for span in spans]

    def turned(self) -> Iterator[Span]:
        """Yield what a forward pass holds of views that turn an array so that tiles inflate it: they are written out."""
        steps = inference_steps(self.graph)
        ends = needed_until(steps)
        for moment, node in enumerate(steps):
            for at in node.outputs if node.kind == VIEW else ():
                one, base = self.graph.tensors[at], self.graph.tensors[self.graph.tensors[at].storage]
                if one.shape == base.shape or sorted(map(str, one.shape)) != sorted(map(str, base.shape)):
                    continue
                if self._of(at) >= INFLATED * self._of(one.storage):
                    yield Span(self.size_of(at), moment, ends[at], at)

    def _of(self, at: int) -> int:
        return value_of(self.size_of(at), {**self.values, WORD: DTYPE_BITS[self.dtype] // 8})


def inflated(tiled: tuple[Extent, ...], plain: tuple[Extent, ...], values: Mapping[str, int]) -> tuple[Extent, ...]:
    """Return what a pass holds in tiles where that is much more than without them, and nothing where it is not.

    Args:
        tiled: bytes at the worst moments, in tiles.
        plain: the same without them.
        values: of all symbols.
    """
    worst, logical = (max((value_of(one, values) for one in extents), default=0) for extents in (tiled, plain))
    return tiled if worst >= INFLATED * logical > 0 else ()


def _filled(shape: Shape, dtype: str, rows: int, lanes: int) -> Extent:
    """Return the elements of a shape with two of its axes filled up; one that follows a symbol is taken to fill its tiles."""
    sides: list[Extent] = list(shape) or [1]
    lane = sides[lanes]
    sides[lanes] = _lanes(lane) if isinstance(lane, int) else lane
    row = sides[rows] if len(sides) > 1 else None
    if isinstance(row, int):
        sides[rows] = _rows(row, dtype)
    return product(sides)
