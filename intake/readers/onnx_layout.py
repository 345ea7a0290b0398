"""ONNX operators that move or make data and compute nothing: reshapes, slices, concatenations, padding, constants, resizing.

What torch would do without a copy (reshape, transpose, slice, split, expand) is a view; the others are copies without arithmetic.
"""

from collections.abc import Sequence
from math import floor

from core.graph import Shape
from core.symbols import Extent, Polynomial, product
from intake.readers.draft import MOST_KNOWN, Done, Known, Result, Value, Work
from intake.readers.onnx_file import DTYPES
from intake.readers.operations import along, elementwise
from intake.readers.operator_step import Operator, Step, simple, view
from intake.readers.symbolic import Extents, Unclear, axis_of

_FAR = 1 << 30


def _copied(step: Step, shape: Shape) -> Done:
    return simple(shape, step.first.dtype, elementwise(shape, 1, 0))


def _reshape(step: Step) -> Done:
    declared = step.declared[0] if step.declared else None
    if step.known(1) is None and step.optional(1) is not None and declared is not None:
        wanted: tuple[Extent, ...] = declared
    else:
        wanted = step.extents_of(1, "shape") or ()
    shape = step.extents.reshaped(step.first.shape, wanted, not step.whole("allowzero", 0))
    return Done((Result(shape, step.first.dtype, step.first.known, view_of=0),))


def _flatten(step: Step) -> Done:
    shape, axis = step.first.shape, step.whole("axis", 1)
    at = axis if axis == len(shape) else axis_of(axis, len(shape))
    return view((product(shape[:at]), product(shape[at:])), step.first.dtype)


def _squeeze(step: Step) -> Done:
    axes = step.numbers(1, "axes")
    shape = step.first.shape
    gone = {axis_of(axis, len(shape)) for axis in axes} if axes else {axis for axis, one in enumerate(shape) if one == 1}
    for axis in gone:
        step.extents.same(shape[axis], 1, "a squeeze")
    left = tuple(one for axis, one in enumerate(shape) if axis not in gone)
    return Done((Result(left, step.first.dtype, step.first.known, view_of=0),))


def _unsqueeze(step: Step) -> Done:
    axes = step.numbers(1, "axes") or ()
    rank = len(step.first.shape) + len(axes)
    new = {axis_of(axis, rank) for axis in axes}
    rest = iter(step.first.shape)
    if len(new) != len(axes):
        raise Unclear("an axis is added twice")
    shape = tuple(1 if axis in new else next(rest) for axis in range(rank))
    return Done((Result(shape, step.first.dtype, step.first.known, view_of=0),))


def _transpose(step: Step) -> Done:
    shape = step.first.shape
    order = step.wholes("perm") or tuple(reversed(range(len(shape))))
    if sorted(order) != list(range(len(shape))):
        raise Unclear(f"a transpose of {len(shape)} axes by {order!s:.60}")
    return view(tuple(shape[axis] for axis in order), step.first.dtype)


def _expand(step: Step) -> Done:
    wanted = step.extents_of(1) or ()
    return view(step.extents.broadcast(step.first.shape, tuple(wanted)), step.first.dtype)


def sliced(extents: Extents, size: Extent, start: Extent, stop: Extent, step: int) -> Extent:
    """Return how many places a slice has, with Python's rules for negative and far ends."""

    def clamped(at: Extent, low: Extent, high: Extent) -> Extent:
        if isinstance(at, int) and abs(at) >= _FAR:
            return high if at > 0 else low
        if extents.at(at) < 0:
            at = at + size
        return extents.greatest(extents.least(at, high), low)

    if step == 0:
        raise Unclear("a slice with the step 0")
    if step > 0:
        distance = clamped(stop, 0, size) - clamped(start, 0, size)
        return extents.greatest(extents.rounded_up(distance, step), 0)
    first = clamped(start, 0, size - 1)
    last = clamped(stop, -1, size - 1) if not (isinstance(stop, int) and stop <= -_FAR) else -1
    return extents.greatest(extents.rounded_up(first - last, -step), 0)


def _slice(step: Step) -> Done:
    shape = list(step.first.shape)
    starts, stops = step.extents_of(1, "starts") or (), step.extents_of(2, "ends") or ()
    axes = step.numbers(3, "axes") or tuple(range(len(starts)))
    steps = step.numbers(4) or (1,) * len(starts)
    if not len(starts) == len(stops) == len(axes) == len(steps):
        raise Unclear("a slice with lists of different length")
    for start, stop, axis, stride in zip(starts, stops, axes, steps, strict=True):
        at = axis_of(axis, len(shape))
        shape[at] = sliced(step.extents, shape[at], start, stop, stride)
    return view(tuple(shape), step.first.dtype)


def _split(step: Step) -> Done:
    shape = step.first.shape
    axis = axis_of(step.whole("axis", 0), len(shape))
    sizes = step.extents_of(1, "split")
    if not sizes:
        count = step.whole("num_outputs", step.count)
        each = step.extents.rounded_up(shape[axis], max(count, 1))
        sizes = (*(each,) * (count - 1), shape[axis] - each * (count - 1))
    parts = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]
    return Done(tuple(Result(part, step.first.dtype, view_of=0) for part in parts))


def joined(extents: Extents, shapes: Sequence[Shape], axis: int) -> Shape:
    """Return the shape of tensors that are concatenated along an axis."""
    at = axis_of(axis, len(shapes[0]))
    result = list(shapes[0])
    for shape in shapes[1:]:
        if len(shape) != len(result):
            raise Unclear("tensors of different rank are concatenated")
        for place, extent in enumerate(shape):
            result[place] = result[place] + extent if place == at else extents.same(result[place], extent, "a concatenation")
    return tuple(result)


def _concat(step: Step) -> Done:
    shapes = [step.shape(place) for place in range(len(step.inputs))]
    if not shapes or not shapes[0]:
        raise Unclear("scalars are concatenated")
    return _copied(step, joined(step.extents, shapes, step.whole("axis", 1)))


def _pad(step: Step) -> Done:
    shape = step.first.shape
    pads = step.extents_of(1, "pads") or step.extents_of(1, "paddings") or ()
    axes = tuple(axis_of(axis, len(shape)) for axis in step.numbers(3) or range(len(shape)))
    if len(pads) != 2 * len(axes):
        raise Unclear(f"{len(pads)} pads for {len(axes)} axes")
    result = list(shape)
    for place, axis in enumerate(axes):
        result[axis] = result[axis] + pads[place] + pads[place + len(axes)]
    return _copied(step, tuple(result))


def _tile(step: Step) -> Done:
    repeats = step.extents_of(1) or ()
    if len(repeats) != len(step.first.shape):
        raise Unclear(f"{len(repeats)} repeats for {len(step.first.shape)} axes")
    return _copied(step, tuple(one * times for one, times in zip(step.first.shape, repeats, strict=True)))


def _blocks(step: Step) -> Done:
    batch, channels, height, width = _four(step.first)
    size = step.whole("blocksize")
    if step.op == "DepthToSpace":
        return _copied(step, (batch, step.extents.quotient(channels, size * size), height * size, width * size))
    return _copied(step, (batch, channels * size * size, step.extents.quotient(height, size), step.extents.quotient(width, size)))


def _four(value: Value) -> tuple[Extent, Extent, Extent, Extent]:
    if len(value.shape) != 4:
        raise Unclear(f"an image of {len(value.shape)} axes")
    return value.shape[0], value.shape[1], value.shape[2], value.shape[3]


def _same(step: Step) -> Done:
    return _copied(step, step.first.shape)


def _shape_of(step: Step) -> Done:
    shape = step.first.shape
    start, end = step.whole("start", 0), step.whole("end", len(shape))
    part = shape[start:end] if step.version >= 15 else shape
    return Done((Result((len(part),), "int64", part),))


def _size(step: Step) -> Done:
    return Done((Result((), "int64", (product(step.first.shape),)),))


def _constant(step: Step) -> Done:
    stored = step.stored("value") or step.stored("sparse_value")
    if stored is not None:
        return Done((Result(stored.shape, stored.dtype, stored.known),))
    for name, dtype in (("value_int", "int64"), ("value_float", "fp32"), ("value_ints", "int64"), ("value_floats", "fp32")):
        value = step.attributes.get(name)
        if isinstance(value, int | float):
            return Done((Result((), dtype, (value,)),))
        if isinstance(value, tuple):
            numbers = tuple(one for one in value if isinstance(one, int | float))
            return Done((Result((len(numbers),), dtype, numbers if len(numbers) <= MOST_KNOWN else None),))
    strings = step.attributes.get("value_strings")
    return Done((Result((len(strings),) if isinstance(strings, tuple) else (), "string"),))


def _filled(step: Step) -> Done:
    shape = step.extents_of(0) or ()
    stored = step.stored("value")
    value = stored.known[0] if stored is not None and stored.known else 0.0
    dtype = stored.dtype if stored is not None else "fp32"
    total = product(shape)
    known: Known | None = (value,) * total if isinstance(total, int) and 0 <= total <= MOST_KNOWN else None
    return Done((Result(tuple(shape), dtype, known),), (elementwise(tuple(shape), 0, 0),))


def _range(step: Step) -> Done:
    dtype = step.first.dtype
    if all(step.known(place) is not None for place in range(3)):
        start, stop, delta = ((step.known(place) or (0,))[0] for place in range(3))
        if isinstance(delta, float) or isinstance(start, float) or isinstance(stop, float):
            count: Extent = _steps(start, stop, delta)
        elif isinstance(delta, int) and delta:
            count = step.extents.greatest(step.extents.rounded_up((stop - start) * (1 if delta > 0 else -1), abs(delta)), 0)
        else:
            raise Unclear("a range with the step 0")
        known = None
        if isinstance(count, int) and count <= MOST_KNOWN and not isinstance(start, float) and not isinstance(delta, float):
            known = tuple(start + delta * place for place in range(count))
        return Done((Result((count,), dtype, known),), (elementwise((count,), 0, 0),))
    declared = step.declared[0] if step.declared else None
    if declared is None or len(declared) != 1:
        raise Unclear("a range whose end is computed from data")
    return simple(declared, dtype, elementwise(declared, 0, 0, "dynamic_shape"))


def _steps(start: Extent | float, stop: Extent | float, delta: Extent | float) -> int:
    if isinstance(start, Polynomial) or isinstance(stop, Polynomial) or isinstance(delta, Polynomial) or not delta:
        raise Unclear("a range of fractions that follows a symbol")
    steps = -floor(-(stop - start) / delta)
    if steps > _FAR:
        raise Unclear(f"a range of {steps:.3g} steps")
    return max(steps, 0)


def _eye(step: Step) -> Done:
    wanted = step.whole("dtype", 0)
    return simple(step.first.shape, DTYPES.get(wanted, step.first.dtype), elementwise(step.first.shape, 0, 0))


def _one_hot(step: Step) -> Done:
    depth = (step.extents_of(1) or (0,))[0]
    axis = axis_of(step.whole("axis", -1), len(step.first.shape) + 1)
    shape = (*step.first.shape[:axis], depth, *step.first.shape[axis:])
    return simple(shape, step.value(2).dtype, elementwise(shape, 1, 1))


def _crop(step: Step) -> Done:
    shape = list(step.first.shape)
    wanted = step.extents_of(1) or ()
    axes = step.wholes("axes") or tuple(range(len(wanted)))
    for axis, extent in zip(axes, wanted, strict=False):
        shape[axis_of(axis, len(shape))] = extent
    return _copied(step, tuple(shape))


def _resize(step: Step) -> Done:
    shape = step.first.shape
    places = (None, 1) if step.op == "Upsample" else (3, 2) if step.version >= 11 else (None, 1)
    axes = tuple(axis_of(axis, len(shape)) for axis in step.wholes("axes") or range(len(shape)))
    sizes = step.extents_of(places[0]) if places[0] is not None else None
    result = list(shape)
    if sizes:
        for axis, size in zip(axes, sizes, strict=False):
            result[axis] = size
    else:
        scales = step.attributes.get("scales") or step.known(places[1])
        if not isinstance(scales, tuple) or len(scales) != len(axes):
            raise Unclear("a resize whose scales are computed from data")
        for axis, scale in zip(axes, scales, strict=True):
            result[axis] = _scaled(step.extents, shape[axis], scale)
    spatial = sum(one != other for one, other in zip(result, shape, strict=True))
    each = {"nearest": 0, "cubic": 8}.get(step.text("mode", "nearest"), 4) * max(spatial, 1)
    return simple(tuple(result), step.first.dtype, elementwise(tuple(result), 1, each))


def _scaled(extents: Extents, size: Extent, scale: object) -> Extent:
    if isinstance(scale, int | float) and float(scale).is_integer() and scale > 0:
        return size * int(scale)
    if not isinstance(scale, float) or not 0 < scale < _FAR:
        raise Unclear(f"a resize by {scale!s:.20}")
    if isinstance(size, Polynomial) and (1 / scale).is_integer():
        return extents.quotient(size, round(1 / scale))
    if isinstance(size, Polynomial):
        raise extents.pin((size,), f"{size} is scaled by {scale:.4g}")
    return floor(size * scale)


def _columns_to_image(step: Step) -> Done:
    image, block = step.extents_of(1) or (), step.numbers(2) or ()
    columns = step.first.shape
    area = product(block)
    channels = step.extents.quotient(columns[1], area)
    shape = (columns[0], channels, *image)
    return simple(shape, step.first.dtype, Work("reduce", (product(columns), product(shape))))


def _reverse(step: Step) -> Done:
    return Done((Result(step.first.shape, step.first.dtype),), (along("gather", step.first.shape, -1, "gather"),))


OPERATORS: dict[str, Operator] = {
    "Reshape": _reshape, "Flatten": _flatten, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Transpose": _transpose,
    "Expand": _expand, "Slice": _slice, "Split": _split, "Concat": _concat, "Pad": _pad, "Tile": _tile, "DepthToSpace": _blocks,
    "SpaceToDepth": _blocks, "Shape": _shape_of, "Size": _size, "Constant": _constant, "ConstantOfShape": _filled,
    "Range": _range, "EyeLike": _eye, "OneHot": _one_hot, "CenterCropPad": _crop, "Resize": _resize, "Upsample": _resize,
    "Col2Im": _columns_to_image, "Trilu": _same, "com.microsoft.Trilu": _same, "ReverseSequence": _reverse,
}  # fmt: skip
