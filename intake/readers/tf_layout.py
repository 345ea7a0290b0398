"""TensorFlow operations that move or make data and compute nothing."""

from math import ceil

from core.graph import Shape
from core.symbols import Extent, Polynomial, product
from intake.readers.draft import MOST_KNOWN, Done, Known, Result
from intake.readers.onnx_layout import joined, sliced
from intake.readers.operations import elementwise
from intake.readers.operator_step import Operator, Step, simple, view
from intake.readers.symbolic import Unclear, axis_of


def _copied(step: Step, shape: Shape) -> Done:
    return simple(shape, step.first.dtype, elementwise(shape, 1, 0))


def _passed(step: Step, shape: Shape) -> Done:
    return Done((Result(shape, step.first.dtype, step.first.known, view_of=0),))


def _reshape(step: Step) -> Done:
    return _passed(step, step.extents.reshaped(step.first.shape, step.extents_of(1) or (), zero_copies=False))


def _squeeze(step: Step) -> Done:
    shape, axes = step.first.shape, step.wholes("squeeze_dims") or step.wholes("axis")
    gone = {axis_of(axis, len(shape)) for axis in axes} if axes else {axis for axis, one in enumerate(shape) if one == 1}
    return _passed(step, tuple(one for axis, one in enumerate(shape) if axis not in gone))


def _expand(step: Step) -> Done:
    shape = step.first.shape
    axis = axis_of((step.numbers(1) or (0,))[0], len(shape) + 1)
    return _passed(step, (*shape[:axis], 1, *shape[axis:]))


def _transpose(step: Step) -> Done:
    shape, order = step.first.shape, step.numbers(1) or ()
    if sorted(order) != list(range(len(shape))):
        raise Unclear(f"a transpose of {len(shape)} axes by {order!s:.60}")
    return view(tuple(shape[axis] for axis in order), step.first.dtype)


def _cut(step: Step) -> Done:
    shape, starts, sizes = step.first.shape, step.extents_of(1) or (), step.extents_of(2) or ()
    if not len(shape) == len(starts) == len(sizes):
        raise Unclear("a slice with lists of different length")
    found = [one - start if size == -1 else size for one, start, size in zip(shape, starts, sizes, strict=True)]
    return view(tuple(found), step.first.dtype)


def _strided(step: Step) -> Done:
    """A slice as Python writes it: new axes, an ellipsis, ends left out, and single places that lose their axis."""
    shape = step.first.shape
    starts, stops, strides = (step.extents_of(place) or () for place in (1, 2, 3))
    if not len(starts) == len(stops) == len(strides):
        raise Unclear("a slice with lists of different length")
    masks = {name: step.whole(f"{name}_mask", 0) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    count, new = len(starts), sum(masks["new_axis"] >> place & 1 for place in range(len(starts)))
    dots = masks["ellipsis"] != 0
    found: list[Extent] = []
    axis = 0
    for place in range(count):
        if masks["ellipsis"] >> place & 1:
            hidden = len(shape) - (count - new - 1)
            found.extend(shape[axis : axis + hidden])
            axis += hidden
        elif masks["new_axis"] >> place & 1:
            found.append(1)
        elif masks["shrink_axis"] >> place & 1:
            axis += 1
        else:
            stride = step.number_of(strides[place])
            start = (0 if stride > 0 else 1 << 40) if masks["begin"] >> place & 1 else starts[place]
            stop = (1 if stride > 0 else -1) * (1 << 40) if masks["end"] >> place & 1 else stops[place]
            found.append(sliced(step.extents, shape[axis], start, stop, stride))
            axis += 1
    if not dots:
        found.extend(shape[axis:])
    return Done((Result(tuple(found), step.first.dtype, _elements(step, starts, stops, strides, masks), view_of=0),))


def _elements(step: Step, starts: Shape, stops: Shape, strides: Shape, masks: dict[str, int]) -> Known | None:
    """Return the elements of a slice of one axis, such as of a shape."""
    known = step.first.known
    if known is None or len(step.first.shape) != 1 or len(starts) != 1 or masks["ellipsis"] or masks["new_axis"]:
        return None
    start, stop, stride = (step.number_of(one[0]) for one in (starts, stops, strides))
    if masks["shrink_axis"]:
        return (known[start],)
    return known[(None if masks["begin"] else start) : (None if masks["end"] else stop) : stride]


def _pack(step: Step) -> Done:
    first = step.first.shape
    axis = axis_of(step.whole("axis", 0), len(first) + 1)
    shape = (*first[:axis], len(step.inputs), *first[axis:])
    parts = [step.known(place) for place in range(len(step.inputs))]
    known = None
    if not first and all(part is not None for part in parts):
        known = tuple(part[0] for part in parts if part)
    return Done((Result(shape, step.first.dtype, known),), (elementwise(shape, 1, 0),))


def _unpack(step: Step) -> Done:
    shape = step.first.shape
    axis = axis_of(step.whole("axis", 0), len(shape))
    part = (*shape[:axis], *shape[axis + 1 :])
    known = step.first.known
    single = known is not None and len(shape) == 1
    results = [Result(part, step.first.dtype, (known[place],) if single and known else None, view_of=0)
               for place in range(step.number_of(shape[axis]))]  # fmt: skip
    return Done(tuple(results))


def _concat(step: Step) -> Done:
    first = step.op == "Concat"
    axis = (step.numbers(0 if first else len(step.inputs) - 1) or (0,))[0]
    places = range(1, len(step.inputs)) if first else range(len(step.inputs) - 1)
    shapes = [step.shape(place) for place in places]
    shape = joined(step.extents, shapes, axis)
    parts = [step.known(place) for place in places]
    known: list[Extent | float] = []
    for part in parts:
        known.extend(part or ())
    whole = len(shape) == 1 and all(part is not None for part in parts)
    result = Result(shape, step.value(places[0]).dtype, tuple(known) if whole else None)
    return Done((result,), (elementwise(shape, 1, 0),))


def _split(step: Step) -> Done:
    """`Split` has the axis first; `SplitV` has the data, the sizes, the axis."""
    at = 0 if step.op == "SplitV" else 1
    shape, dtype = step.shape(at), step.value(at).dtype
    axis = axis_of((step.numbers(2 if at == 0 else 0) or (0,))[0], len(shape))
    if at == 0:
        sizes = list(step.extents_of(1) or ())
        if -1 in sizes:
            open_at = sizes.index(-1)
            sizes[open_at] = shape[axis] - sum((one for place, one in enumerate(sizes) if place != open_at), 0)
    else:
        count = step.whole("num_split", step.count)
        sizes = [step.extents.quotient(shape[axis], count)] * count
    return Done(tuple(Result((*shape[:axis], size, *shape[axis + 1 :]), dtype, view_of=at) for size in sizes))


def _tile(step: Step) -> Done:
    repeats = step.extents_of(1) or ()
    if len(repeats) != len(step.first.shape):
        raise Unclear(f"{len(repeats)} repeats for {len(step.first.shape)} axes")
    return _copied(step, tuple(one * times for one, times in zip(step.first.shape, repeats, strict=True)))


def _broadcast(step: Step) -> Done:
    return view(step.extents.broadcast(step.first.shape, tuple(step.extents_of(1) or ())), step.first.dtype)


def _pad(step: Step) -> Done:
    pads, shape = step.extents_of(1) or (), step.first.shape
    if len(pads) != 2 * len(shape):
        raise Unclear(f"{len(pads)} pads for {len(shape)} axes")
    return _copied(step, tuple(one + pads[2 * at] + pads[2 * at + 1] for at, one in enumerate(shape)))


def _fill(step: Step) -> Done:
    shape, value = tuple(step.extents_of(0) or ()), step.known(1)
    total = product(shape)
    known = value * total if value is not None and isinstance(total, int) and 0 <= total <= MOST_KNOWN else None
    return Done((Result(shape, step.value(1).dtype, known),), (elementwise(shape, 0, 0),))


def _range(step: Step) -> Done:
    start, stop, delta = ((step.known(place) or (None,))[0] for place in range(3))
    if start is None or stop is None or delta is None:
        raise Unclear("a range whose end is computed from data")
    if isinstance(start, float) or isinstance(stop, float) or isinstance(delta, float):
        if isinstance(start, Polynomial) or isinstance(stop, Polynomial) or isinstance(delta, Polynomial) or not delta:
            raise Unclear("a range of fractions that follows a symbol")
        count: Extent = max(0, ceil((stop - start) / delta))
    else:
        by = step.number_of(delta)
        count = step.extents.greatest(step.extents.rounded_up((stop - start) * (1 if by > 0 else -1), abs(by)), 0)
    known = None
    if isinstance(count, int) and count <= MOST_KNOWN and not isinstance(start, float) and not isinstance(delta, float):
        known = tuple(start + delta * place for place in range(count))
    return Done((Result((count,), step.first.dtype, known),), (elementwise((count,), 0, 0),))


def _shape_of(step: Step) -> Done:
    dtype = step.text("out_type", "int32")
    return Done(tuple(Result((len(step.shape(at)),), dtype, step.shape(at)) for at in range(len(step.inputs))))


def _size(step: Step) -> Done:
    return Done((Result((), step.text("out_type", "int32"), (product(step.first.shape),)),))


def _rank(step: Step) -> Done:
    return Done((Result((), "int32", (len(step.first.shape),)),))


def _blocks(step: Step) -> Done:
    shape, size = step.first.shape, step.whole("block_size")
    first = step.text("data_format", "NHWC") == "NCHW"
    batch, channels, height, width = shape if first else (shape[0], shape[3], shape[1], shape[2])
    if step.op == "DepthToSpace":
        channels, height, width = step.extents.quotient(channels, size * size), height * size, width * size
    else:
        channels, height, width = channels * size * size, step.extents.quotient(height, size), step.extents.quotient(width, size)
    return _copied(step, (batch, channels, height, width) if first else (batch, height, width, channels))


def _spread(step: Step) -> Done:
    """Move blocks of space into the batch, as dilated convolutions do, or back."""
    shape, blocks, pads = list(step.first.shape), step.numbers(1) or (), step.extents_of(2) or ()
    area = 1
    for at, block in enumerate(blocks):
        area *= block
        around = pads[2 * at] + pads[2 * at + 1]
        if step.op == "SpaceToBatchND":
            shape[at + 1] = step.extents.quotient(shape[at + 1] + around, block)
        else:
            shape[at + 1] = shape[at + 1] * block - around
    shape[0] = shape[0] * area if step.op == "SpaceToBatchND" else step.extents.quotient(shape[0], area)
    return _copied(step, tuple(shape))


def _resize(step: Step) -> Done:
    size = step.extents_of(1) or ()
    shape = (step.first.shape[0], *size, step.first.shape[-1])
    each = {"ResizeNearestNeighbor": 0, "ResizeBicubic": 32, "ResizeArea": 8}.get(step.op, 8)
    dtype = step.first.dtype if step.op == "ResizeNearestNeighbor" or step.first.dtype == "fp16" else "fp32"
    return simple(shape, dtype, elementwise(shape, 1, each))


def _one_hot(step: Step) -> Done:
    depth, shape = (step.extents_of(1) or (0,))[0], step.first.shape
    axis = axis_of(step.whole("axis", -1), len(shape) + 1)
    made = (*shape[:axis], depth, *shape[axis:])
    return simple(made, step.value(2).dtype, elementwise(made, 1, 1))


def _linear(step: Step) -> Done:
    count = (step.extents_of(2) or (0,))[0]
    return simple((count,), step.first.dtype, elementwise((count,), 0, 2))


def _diagonal(step: Step) -> Done:
    shape = step.first.shape
    made = shape[:-1] if "Part" in step.op else (*shape, shape[-1])
    return _copied(step, made)


def _permuted(step: Step) -> Done:
    return _copied(step, step.first.shape)


OPERATORS: dict[str, Operator] = {
    "Reshape": _reshape, "Squeeze": _squeeze, "ExpandDims": _expand, "Transpose": _transpose, "Slice": _cut,
    "StridedSlice": _strided, "Pack": _pack, "Unpack": _unpack, "ConcatV2": _concat, "Concat": _concat, "Split": _split,
    "SplitV": _split, "Tile": _tile, "BroadcastTo": _broadcast, "Pad": _pad, "PadV2": _pad, "MirrorPad": _pad, "Fill": _fill,
    "Range": _range, "Shape": _shape_of, "ShapeN": _shape_of, "Size": _size, "Rank": _rank, "SpaceToDepth": _blocks,
    "DepthToSpace": _blocks, "SpaceToBatchND": _spread, "BatchToSpaceND": _spread, "ResizeBilinear": _resize,
    "ResizeNearestNeighbor": _resize, "ResizeBicubic": _resize, "ResizeArea": _resize, "OneHot": _one_hot, "LinSpace": _linear,
    "MatrixDiag": _diagonal, "MatrixDiagV3": _diagonal, "MatrixDiagPart": _diagonal, "MatrixDiagPartV3": _diagonal,
    "InvertPermutation": _permuted,
}  # fmt: skip
