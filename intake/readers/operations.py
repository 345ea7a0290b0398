"""The work of operations that several graph formats share, from the shapes of their operands.

Counts follow torch's FlopCounterMode: two FLOPs for a multiply-add, a bias that is fused is not counted.
"""

from collections.abc import Sequence
from math import prod

from core.graph import Shape
from core.symbols import Extent, product
from intake.readers.draft import Work
from intake.readers.symbolic import Extents, Unclear, axis_of


def elementwise(shape: Shape, operands: int, flop_each: int, *marks: str) -> Work:
    """Return the work of an operation on each element.

    Args:
        shape: of the result.
        operands: tensors that are read.
        flop_each: for one element; 0 for copies.
        marks: as in `core.graph.Node`.
    """
    return Work("elementwise", (product(shape), operands, flop_each), marks)


def matmul(extents: Extents, left: Shape, right: Shape) -> tuple[Shape, Work]:
    """Return shape and work of a matrix product as numpy defines it.

    Args:
        extents: the file's symbols.
        left: (..., m, k), or (k,).
        right: (..., k, n), or (k,).
    """
    if not left or not right:
        raise Unclear("a matrix product with a scalar")
    a = (1, *left) if len(left) == 1 else left
    b = (*right, 1) if len(right) == 1 else right
    k = extents.same(a[-1], b[-2], "a matrix product")
    lead = extents.broadcast(a[:-2], b[:-2])
    shape = (*lead, *(() if len(left) == 1 else (a[-2],)), *(() if len(right) == 1 else (b[-1],)))
    right_lead = (1,) * (len(lead) - len(b) + 2) + b[:-2]
    batch = product(extent for extent, own in zip(lead, right_lead, strict=True) if own != 1)
    rows = product(extent for extent, own in zip(lead, right_lead, strict=True) if own == 1)
    return shape, Work("matmul", (batch, rows * a[-2], b[-1], k))


def window(extents: Extents, size: Extent, kernel: int, stride: int, dilation: int, padding: int, up: bool = False) -> Extent:
    """Return how many places a window takes along one axis.

    Args:
        extents: the file's symbols.
        size: of the axis.
        kernel, stride, dilation: of the window.
        padding: before and after together.
        up: whether a last window that is not full counts.
    """
    if min(kernel, stride, dilation) < 1:
        raise Unclear(f"a window of {kernel} with stride {stride} and dilation {dilation}")
    span = size + padding - dilation * (kernel - 1) - 1
    if extents.at(span) < 0:
        raise Unclear(f"a window of {dilation * (kernel - 1) + 1} over {extents.at(size) + padding} places")
    return (extents.rounded_up(span, stride) if up else extents.quotient(span, stride)) + 1


def convolution(batch: Extent, inner: Shape, outer: Shape, channels: tuple[Extent, Extent], kernel: Sequence[int],
                groups: int, transposed: bool = False) -> Work:
    """Return the work of a convolution over one, two or three dimensions.

    Args:
        batch: images.
        inner, outer: places of the operand and of the result along each dimension.
        channels: of the operand and of the result.
        kernel: along each dimension.
        groups: of channels.
        transposed: whether it is the gradient of one: each place of the operand is spread over the kernel.
    """
    if len(inner) not in {1, 2, 3} or len(kernel) != len(inner) or groups < 1:
        raise Unclear(f"a convolution over {len(inner)} dimensions in {groups} groups")
    if transposed:
        inner, outer, channels = outer, inner, (channels[1], channels[0])
    ih, iw = _plane(inner)
    oh, ow = _plane(outer)
    kh, kw = _plane(tuple(kernel))
    marks = ("conv3d",) if len(inner) == 3 else ()
    return Work("conv", (batch, ih, iw, channels[0], oh, ow, channels[1], kh, kw, groups), marks)


def _plane(sizes: Shape) -> tuple[Extent, Extent]:
    return (product(sizes[:-1]), sizes[-1])


def pooling(shape: Shape, kernel: Sequence[int]) -> Work:
    """Return the work of pooling: each result is reduced from a window.

    Args:
        shape: of the result.
        kernel: of the window.
    """
    return Work("reduce", (product(shape) * prod(kernel), product(shape)))


def reduction(shape: Shape, result: Shape, *marks: str) -> Work:
    """Return the work of a reduction."""
    return Work("reduce", (product(shape), product(result)), marks)


def reduced(shape: Shape, axes: Sequence[int] | None, keep: bool) -> Shape:
    """Return the shape after a reduction.

    Args:
        shape: of the operand.
        axes: that are reduced; None for all.
        keep: whether they stay with the extent 1.
    """
    gone = set(range(len(shape))) if axes is None else {axis_of(axis, len(shape)) for axis in axes}
    return tuple(1 if axis in gone else extent for axis, extent in enumerate(shape) if keep or axis not in gone)


def along(kind: str, shape: Shape, axis: int, *marks: str) -> Work:
    """Return work of (rows, width) along one axis: softmax, sort, norm, fft.

    Args:
        kind: of the operation.
        shape: of the operand.
        axis: along which it runs.
        marks: as in `core.graph.Node`.
    """
    if not shape:
        return Work(kind, (1, 1), marks)
    at = axis_of(axis, len(shape))
    return Work(kind, (product(shape[:at] + shape[at + 1 :]), shape[at]), marks)


def norm(shape: Shape, first: int) -> Work:
    """Return the work of a normalisation over the axes from `first` on."""
    return Work("norm", (product(shape[:first]), product(shape[first:])))


def rows_of(data: Shape, axis: int, picked: Shape, parameter: bool) -> Work:
    """Return the work of taking rows by an index tensor: an embedding when the rows are a parameter's.

    Args:
        data: that is taken from.
        axis: along which.
        picked: shape of the index tensor.
        parameter: whether the data are trained.
    """
    width = product(data[axis + 1 :])
    rows = product(data[:axis]) * product(picked)
    if parameter and axis == 0 and len(data) == 2:
        return Work("embedding", (rows, width, data[0]), ("gather",))
    return Work("gather", (rows, width), ("gather",))


def attention(batch: Extent, heads: Extent, kv_heads: Extent, queries: Extent, keys: Extent, width: Extent) -> Work:
    """Return the work of fused attention."""
    return Work("attention", (batch, heads, kv_heads, queries, keys, width))


def custom(name: str, taken: Sequence[Shape], made: Sequence[Shape]) -> Work:
    """Return the work of an operation that the format's framework does not have itself: its arithmetic is not known."""
    read, wrote = (sum((product(shape) for shape in shapes), 0) for shapes in (taken, made))
    return Work("custom", (0, read, wrote), (f"custom:{name[:80]}",))
