"""Keras's convolutions: plain, depthwise, separable and transposed, in one to three dimensions."""

from collections.abc import Sequence

from core.graph import Shape
from core.symbols import Extent, product
from intake.readers.keras_layers_base import Call, Layer, Ref, Registry, Trace, one_input
from intake.readers.keras_layers_core import activate, kernel_of


def rank_of(kind: str) -> int:
    """Return the spatial dimensions that a layer's name ends with or holds (`Conv2DTranspose`)."""
    return next((int(one) for one in kind if one in "123"), 2)


def split_shape(layer: Layer, shape: Shape) -> tuple[Extent, Shape, Extent]:
    """Return (batch, spatial extents, channels) of a tensor."""
    return (shape[0], shape[2:], shape[1]) if layer.first(len(shape)) else (shape[0], shape[1:-1], shape[-1])


def join_shape(layer: Layer, batch: Extent, spatial: Sequence[Extent], channels: Extent) -> Shape:
    """Return the shape of a tensor in the layer's own order."""
    return (batch, channels, *spatial) if layer.first(len(spatial) + 2) else (batch, *spatial, channels)


def windows(trace: Trace, size: Extent, window: int, stride: int, padding: str, dilation: int = 1) -> Extent:
    """Return how many windows fit along an axis.

    Args:
        trace: that knows the symbols.
        size: of the axis.
        window, stride, dilation: of the convolution or pool.
        padding: `valid`, `same` or `causal`.
    """
    if padding in ("same", "causal"):
        return trace.floor(size + (stride - 1), stride)
    return trace.floor(size + (stride - (window - 1) * dilation - 1), stride)


def spread(trace: Trace, layer: Layer, spatial: Shape, window: tuple[int, ...], stride: tuple[int, ...]) -> Shape:
    """Return the extents after a convolution with the layer's padding and dilation."""
    dilation, padding = layer.wholes("dilation_rate", len(window), 1), layer.text("padding", "valid")
    pairs = zip(spatial, window, stride, dilation, strict=True)
    return tuple(windows(trace, size, reach, step, padding, more) for size, reach, step, more in pairs)


def add_conv(trace: Trace, layer: Layer, op: str, inputs: Sequence[Ref], spatial: Shape, found: Shape,
    sizes: tuple[Extent, Extent],
             window: tuple[int, ...], groups: Extent, batch: Extent, marks: tuple[str, ...] = ()) -> Ref:  # fmt: skip
    """Add a convolution node, whatever its dimensions.

    Args:
        trace, layer, op, inputs: of the node.
        spatial, found: extents before and after.
        sizes: channels before and after.
        window: of the kernel.
        groups: of the channels.
        batch: of the input.
        marks: more than its own.
    """
    result = trace.value(layer, join_shape(layer, batch, found, sizes[1]))
    before, after, kernel = folded(spatial), folded(found), folded(window)
    dims = (batch, *before, sizes[0], *after, sizes[1], *kernel, groups)
    trace.node(layer, op, "conv", dims, inputs, (result,), (*marks, *(("conv3d",) if len(window) == 3 else ())))
    return result


def folded(extents: Sequence[Extent]) -> tuple[Extent, Extent]:
    """Return (height, width): one dimension has height 1, a depth is folded into the height."""
    return (product(extents[:-1]), extents[-1])


def conv(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Conv1D` to `Conv3D`."""
    rank = rank_of(layer.kind)
    source = one_input(trace, layer, call, rank + 2)
    batch, spatial, channels = split_shape(layer, trace.shape(source))
    window, stride = layer.wholes("kernel_size", rank), layer.wholes("strides", rank, 1)
    filters, groups = layer.whole("filters"), layer.whole("groups", 1)
    if len(spatial) != rank or not isinstance(channels, int) or channels % groups or filters % groups:
        raise layer.fault("filters", f"an input of {rank + 2} axes whose channels, as the filters, are a multiple of its groups")
    found = spread(trace, layer, spatial, window, stride)
    kernel = kernel_of(trace, layer, (*window, channels // groups, filters))
    bias = [trace.weight(layer, "bias", (filters,))] if layer.flag("use_bias", True) else []
    inputs = (source, kernel, *bias)
    result = add_conv(trace, layer, layer.kind, inputs, spatial, found, (channels, filters), window, groups, batch)
    return activate(trace, layer, result, layer.config.get("activation"))


def depthwise(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`DepthwiseConv1D` and `DepthwiseConv2D`: a filter for each channel."""
    source = one_input(trace, layer, call, rank_of(layer.kind) + 2)
    result = _depthwise(trace, layer, source, "kernel", layer.flag("use_bias", True))
    return activate(trace, layer, result, layer.config.get("activation"))


def _depthwise(trace: Trace, layer: Layer, source: Ref, name: str, biased: bool) -> Ref:
    rank = rank_of(layer.kind)
    batch, spatial, channels = split_shape(layer, trace.shape(source))
    window, stride, each = layer.wholes("kernel_size", rank), layer.wholes("strides", rank, 1), layer.whole("depth_multiplier", 1)
    if len(spatial) != rank or not isinstance(channels, int):
        raise layer.fault("kernel_size", f"an input of {rank + 2} axes with known channels")
    found = spread(trace, layer, spatial, window, stride)
    inputs = [source, trace.weight(layer, name, (*window, channels, each))]
    inputs += [trace.weight(layer, "bias", (channels * each,))] if biased else []
    return add_conv(trace, layer, layer.kind, inputs, spatial, found, (channels, channels * each), window, channels, batch)


def separable(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`SeparableConv1D` and `SeparableConv2D`: a depthwise convolution, then one of window 1."""
    rank = rank_of(layer.kind)
    inner = _depthwise(trace, layer, one_input(trace, layer, call, rank + 2), "depthwise_kernel", False)
    batch, spatial, channels = split_shape(layer, trace.shape(inner))
    filters, ones = layer.whole("filters"), (1,) * rank
    inputs = [inner, trace.weight(layer, "pointwise_kernel", (*ones, channels, filters))]
    inputs += [trace.weight(layer, "bias", (filters,))] if layer.flag("use_bias", True) else []
    result = add_conv(trace, layer, layer.kind, inputs, spatial, spatial, (channels, filters), ones, 1, batch)
    return activate(trace, layer, result, layer.config.get("activation"))


def transposed(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Conv1DTranspose` to `Conv3DTranspose`: the gradient of a convolution, so in and out change places."""
    rank = rank_of(layer.kind)
    source = one_input(trace, layer, call, rank + 2)
    batch, spatial, channels = split_shape(layer, trace.shape(source))
    window, stride, filters = layer.wholes("kernel_size", rank), layer.wholes("strides", rank, 1), layer.whole("filters")
    dilation = layer.wholes("dilation_rate", rank, 1)
    given = layer.config.get("output_padding")
    extra = (None,) * rank if given is None else layer.wholes("output_padding", rank, low=0)
    if len(spatial) != rank or not isinstance(channels, int):
        raise layer.fault("kernel_size", f"an input of {rank + 2} axes with known channels")
    same = layer.text("padding", "valid") == "same"
    found: list[Extent] = []
    for size, reach, step, wider, more in zip(spatial, window, stride, dilation, extra, strict=True):
        wide = wider * (reach - 1) + 1
        if more is None:
            found.append(size * step if same else size * step + max(wide - step, 0))
        else:
            found.append((size - 1) * step + (1 if same and wide % 2 else 0 if same else wide) + more)
    inputs = [source, trace.weight(layer, "kernel", (*window, filters, channels))]
    inputs += [trace.weight(layer, "bias", (filters,))] if layer.flag("use_bias", True) else []
    result = trace.value(layer, join_shape(layer, batch, found, filters))
    dims = (batch, *folded(found), filters, *folded(spatial), channels, *folded(window), 1)
    trace.node(layer, layer.kind, "conv", dims, inputs, (result,), ("conv3d",) if rank == 3 else ())
    return activate(trace, layer, result, layer.config.get("activation"))


TABLE: Registry = {
    **{name: conv for rank in "123" for name in (f"Conv{rank}D", f"Convolution{rank}D")},
    **{name: transposed for rank in "123" for name in (f"Conv{rank}DTranspose", f"Convolution{rank}DTranspose")},
    **{name: separable for rank in "12" for name in (f"SeparableConv{rank}D", f"SeparableConvolution{rank}D")},
    "DepthwiseConv1D": depthwise, "DepthwiseConv2D": depthwise,
}  # fmt: skip
