"""Keras's layers that move, cut, merge and pool: reshaping, padding, upsampling, merging and pooling."""

from core.errors import BadInput
from core.graph import Shape
from core.symbols import Extent, Polynomial, product
from intake.readers.keras_layers_base import Call, Layer, Ref, Registry, Trace, flat, one_input
from intake.readers.keras_layers_conv import join_shape, rank_of, split_shape, windows
from intake.readers.keras_layers_core import einsum_dims
from intake.readers.plain_json import sequence

RESIZE_FLOP = {
    "nearest": 0,
    "bilinear": 7,
    "bicubic": 31,
    "lanczos3": 71,
    "lanczos5": 199,
    "area": 4,
    "mitchellcubic": 31,
    "gaussian": 31,
}
"""Multiplications and additions of an element that 1, 4, 16, 36 or 100 neighbours give."""


def reshaped(trace: Trace, shape: Shape, wanted: tuple[object, ...]) -> Shape | None:
    """Return a shape with its one open extent found.

    Args:
        trace: that knows the symbols.
        shape: before.
        wanted: numbers and extents, with one -1 or None at most.

    Returns:
        None where the elements do not fit.
    """
    known = tuple(one for one in wanted if isinstance(one, int | Polynomial) and not isinstance(one, bool) and one != -1)
    open_at = [at for at, one in enumerate(wanted) if one is None or one == -1]
    total, part = product(shape), product(known)
    if len(open_at) > 1 or len(known) + len(open_at) != len(wanted) or trace.number(part) < (1 if open_at else 0):
        return None
    if not open_at:
        return tuple(known) if trace.number(part) == trace.number(total) else None
    if trace.number(total) % trace.number(part):
        return None
    rest = trace.ratio(total, part)
    return (*known[: open_at[0]], rest, *known[open_at[0] :])


def reshape(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Reshape`: what follows the batch in another shape."""
    source = one_input(trace, layer, call, 1)
    shape, wanted = trace.shape(source), tuple(sequence(layer.config.get("target_shape")))
    found = reshaped(trace, shape[1:], wanted)
    if found is None:
        raise layer.fault("target_shape", f"a shape of {trace.number(product(shape[1:]))} elements")
    return trace.view(layer, layer.kind, source, (shape[0], *found))


def flatten(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Flatten`: one axis after the batch."""
    source = one_input(trace, layer, call, 1)
    shape = trace.shape(source)
    return trace.view(layer, layer.kind, source, (shape[0], product(shape[1:])))


def permute(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Permute`: axes after the batch in another order."""
    source = one_input(trace, layer, call, 2)
    shape, order = trace.shape(source), sequence(layer.config.get("dims"))
    if sorted(one for one in order if isinstance(one, int)) != list(range(1, len(shape))):
        raise layer.fault("dims", f"the numbers 1 to {len(shape) - 1} in some order")
    return trace.view(layer, layer.kind, source, (shape[0], *(shape[one] for one in order if isinstance(one, int))))


def repeat(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`RepeatVector`: n copies."""
    source = one_input(trace, layer, call, 2)
    shape = trace.shape(source)
    return trace.elementwise(layer, layer.kind, (source,), 0, (shape[0], layer.whole("n"), *shape[1:]))


def _pairs(layer: Layer, key: str, rank: int) -> tuple[tuple[int, int], ...]:
    value = layer.config.get(key)
    items = [value] * rank if isinstance(value, int) else list(sequence(value))
    if rank == 1 and len(items) == 2:
        items = [items]
    pairs = [(one, one) if isinstance(one, int) else tuple(sequence(one)) for one in items]
    if len(pairs) != rank or any(
        len(pair) != 2 or not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**31 for n in pair)
        for pair in pairs
    ):
        raise layer.fault(key, f"whole numbers for {rank} axes")
    return tuple((int(str(a)), int(str(b))) for a, b in pairs)


def pad(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`ZeroPadding1D` to `3D`."""
    rank = rank_of(layer.kind)
    source = one_input(trace, layer, call, rank + 2)
    batch, spatial, channels = split_shape(layer, trace.shape(source))
    found = [size + (a + b) for size, (a, b) in zip(spatial, _pairs(layer, "padding", rank), strict=True)]
    return trace.elementwise(layer, layer.kind, (source,), 0, join_shape(layer, batch, found, channels))


def crop(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Cropping1D` to `3D`."""
    rank = rank_of(layer.kind)
    source = one_input(trace, layer, call, rank + 2)
    batch, spatial, channels = split_shape(layer, trace.shape(source))
    found = [size - (a + b) for size, (a, b) in zip(spatial, _pairs(layer, "cropping", rank), strict=True)]
    return trace.view(layer, layer.kind, source, join_shape(layer, batch, found, channels))


def upsample(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`UpSampling1D` to `3D`."""
    rank = rank_of(layer.kind)
    source = one_input(trace, layer, call, rank + 2)
    batch, spatial, channels = split_shape(layer, trace.shape(source))
    found = [size * by for size, by in zip(spatial, layer.wholes("size", rank, 2), strict=True)]
    flop = RESIZE_FLOP.get(layer.text("interpolation", "nearest"), 31)
    return trace.elementwise(layer, layer.kind, (source,), flop, join_shape(layer, batch, found, channels))


def pool(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`MaxPooling` and `AveragePooling`: a window that moves."""
    rank = rank_of(layer.kind)
    source = one_input(trace, layer, call, rank + 2)
    batch, spatial, channels = split_shape(layer, trace.shape(source))
    window = layer.wholes("pool_size", rank, 2)
    stride = window if layer.config.get("strides") is None else layer.wholes("strides", rank)
    if len(spatial) != rank:
        raise layer.fault("pool_size", f"an input of {rank + 2} axes")
    padding = layer.text("padding", "valid")
    found = [windows(trace, size, reach, step, padding) for size, reach, step in zip(spatial, window, stride, strict=True)]
    return trace.reduce(layer, layer.kind, source, join_shape(layer, batch, found, channels))


def pool_all(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`GlobalMaxPooling` and `GlobalAveragePooling`."""
    rank = rank_of(layer.kind)
    source = one_input(trace, layer, call, rank + 2)
    batch, _, channels = split_shape(layer, trace.shape(source))
    return trace.reduce(layer, layer.kind, source, join_shape(layer, batch, (1,) * rank if layer.flag("keepdims") else (),
        channels)
                        if layer.flag("keepdims") else (batch, channels))  # fmt: skip


def pool_to(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`AdaptiveAveragePooling` and `AdaptiveMaxPooling`: to a size that is given."""
    rank = rank_of(layer.kind)
    source = one_input(trace, layer, call, rank + 2)
    batch, _, channels = split_shape(layer, trace.shape(source))
    return trace.reduce(layer, layer.kind, source, join_shape(layer, batch, layer.wholes("output_size", rank), channels))


def merge(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Add`, `Multiply`, `Average`, `Maximum`, `Minimum`, `Subtract`: all inputs, element by element."""
    inputs = call.every()
    if not inputs:
        raise BadInput(f"layer {layer.name:.60} ({layer.kind:.40}) without inputs", "tensors", "save the model again with Keras")
    # each input after the first is one more operation; an average divides besides
    return trace.elementwise(layer, layer.kind, inputs, max(len(inputs) - 1, 0) + (layer.kind == "Average"))


def join(trace: Trace, layer: Layer, inputs: tuple[Ref, ...], axis: int, op: str) -> Ref:
    """Add a concatenation along an axis.

    Raises:
        BadInput: shapes that differ elsewhere.
    """
    shapes = [trace.shape(one) for one in inputs]
    total: Extent = 0
    for shape in shapes:
        if len(shape) != len(shapes[0]):
            raise BadInput(f"layer {layer.name:.60} ({op:.40}) over tensors of {len(shapes[0])} and {len(shape)} axes",
                "as many axes",
                           "save the model again with Keras")  # fmt: skip
        total = total + shape[axis]
    return trace.elementwise(layer, op, inputs, 0, (*shapes[0][:axis], total, *shapes[0][axis + 1 :]), trace.dtype(inputs[0]))


def concatenate(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Concatenate` along an axis."""
    one_input(trace, layer, call, 1)
    inputs = call.every()
    axis = layer.config.get("axis")
    return join(trace, layer, inputs, layer.axis(-1 if axis is None else axis, len(trace.shape(inputs[0]))), layer.kind)


def dot(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Dot`: a product over one axis of each of two tensors."""
    inputs = flat(call.args)
    if len(inputs) != 2 or min(len(trace.shape(one)) for one in inputs) < 2:
        raise layer.fault("axes", "two tensors of two axes or more")
    left, right = (trace.shape(one) for one in inputs)
    given = sequence(layer.config.get("axes"))
    over = given if len(given) == 2 else (layer.config.get("axes"),) * 2
    a, b = layer.axis(over[0], len(left), "axes"), layer.axis(over[1], len(right), "axes")
    if 0 in (a, b) or trace.number(left[a]) != trace.number(right[b]):
        raise layer.fault("axes", "axes of one size behind the batch")
    names_left = "".join(chr(97 + at) for at in range(len(left)))
    names_right = "".join("a" if at == 0 else names_left[a] if at == b else chr(65 + at) for at in range(len(right)))
    out = [one for one in names_left if one != names_left[a]] + [one for one in names_right[1:] if one != names_left[a]]
    sizes: dict[str, Extent] = {**dict(zip(names_right, right, strict=True)), **dict(zip(names_left, left, strict=True))}
    shape = [sizes[one] for one in out]
    return trace.matmul(
        layer, "Dot", inputs, einsum_dims(names_left, names_right, "".join(out), sizes), shape if len(shape) > 1 else [*shape, 1]
    )


_DIMENSIONS = ("1D", "2D", "3D")
_POOLS = ("MaxPooling", "MaxPool", "AveragePooling", "AvgPool")
TABLE: Registry = {
    "Reshape": reshape, "Flatten": flatten, "Permute": permute, "RepeatVector": repeat, "Concatenate": concatenate, "Dot": dot,
    **dict.fromkeys(("Add", "Multiply", "Average", "Maximum", "Minimum", "Subtract"), merge),
    **{f"ZeroPadding{rank}": pad for rank in _DIMENSIONS}, **{f"Cropping{rank}": crop for rank in _DIMENSIONS},
    **{f"UpSampling{rank}": upsample for rank in _DIMENSIONS},
    **{f"{name}{rank}": pool for name in _POOLS for rank in _DIMENSIONS},
    **{f"Global{name}{rank}": pool_all for name in _POOLS for rank in _DIMENSIONS},
    **{f"Adaptive{name}{rank}": pool_to for name in ("MaxPooling", "AveragePooling") for rank in _DIMENSIONS},
}  # fmt: skip
