"""Keras's normalisation layers, and `Normalization`, whose statistics are stored rather than computed."""

from core.graph import Shape
from core.symbols import product
from intake.readers.keras_layers_base import Call, Layer, Ref, Registry, Trace, one_input


def _width(layer: Layer, shape: Shape, axes: tuple[int, ...]) -> list[int]:
    sizes = [shape[at] for at in axes]
    if not all(isinstance(size, int) for size in sizes):
        raise layer.fault("axis", "axes of known size")
    return [size for size in sizes if isinstance(size, int)]


def _affine(trace: Trace, layer: Layer, sizes: list[int], scale: str = "gamma", shift: str = "beta") -> list[Ref]:
    found: list[Ref] = []
    if layer.flag("scale", True):
        found.append(trace.weight(layer, scale, sizes))
    if shift and layer.flag("center", True):
        found.append(trace.weight(layer, shift, sizes))
    return found


def batch_norm(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`BatchNormalization`: moving statistics are stored, not trained."""
    source = one_input(trace, layer, call, 2)
    shape = trace.shape(source)
    sizes = _width(layer, shape, layer.axes(layer.config.get("axis", -1), len(shape)))
    weights = [
        *_affine(trace, layer, sizes),
        trace.weight(layer, "moving_mean", sizes, False),
        trace.weight(layer, "moving_variance", sizes, False),
    ]
    if layer.flag("renorm"):
        trace.note("batch renormalisation is counted as batch normalisation")
    return trace.rowwise(layer, layer.kind, "norm", source, product(sizes), weights)


def layer_norm(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`LayerNormalization`."""
    source = one_input(trace, layer, call, 1)
    shape = trace.shape(source)
    sizes = _width(layer, shape, layer.axes(layer.config.get("axis", -1), len(shape)))
    weights = [trace.weight(layer, "gamma", sizes)] if layer.flag("rms_scaling") else _affine(trace, layer, sizes)
    return trace.rowwise(layer, layer.kind, "norm", source, product(sizes), weights)


def rms_norm(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`RMSNormalization`."""
    source = one_input(trace, layer, call, 1)
    shape = trace.shape(source)
    sizes = _width(layer, shape, layer.axes(layer.config.get("axis", -1), len(shape)))
    return trace.rowwise(layer, layer.kind, "norm", source, product(sizes), (trace.weight(layer, "scale", sizes),))


def group_norm(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`GroupNormalization`: statistics over a group of channels and all places."""
    source = one_input(trace, layer, call, 2)
    shape = trace.shape(source)
    at = layer.axes(layer.config.get("axis", -1), len(shape))[0]
    sizes = _width(layer, shape, (at,))
    groups = layer.whole("groups", 32, low=-1)
    groups = sizes[0] if groups == -1 else groups
    if groups < 1 or sizes[0] % groups:
        raise layer.fault("groups", f"a divisor of {sizes[0]} channels")
    places = product(extent for index, extent in enumerate(shape) if index not in (0, at))
    return trace.rowwise(layer, layer.kind, "norm", source, trace.ratio(places * sizes[0], groups), _affine(trace, layer, sizes))


def unit_norm(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`UnitNormalization`: a length of one, without weights."""
    source = one_input(trace, layer, call, 1)
    shape = trace.shape(source)
    axes = layer.axes(layer.config.get("axis", -1), len(shape))
    return trace.rowwise(layer, layer.kind, "norm", source, product(shape[at] for at in axes))


def normalization(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Normalization`: (x - mean) / deviation, with statistics from the config or from the weights."""
    source = one_input(trace, layer, call, 1)
    shape, axis = trace.shape(source), layer.config.get("axis", -1)
    axes = () if axis is None else layer.axes(axis, len(shape))
    weights: list[Ref] = []
    if layer.config.get("mean") is None:
        sizes = _width(layer, shape, axes)
        weights = [trace.weight(layer, "mean", sizes, False), trace.weight(layer, "variance", sizes, False)]
        trace.weight(layer, "count", (), False, "int32")
    return trace.elementwise(layer, layer.kind, (source, *weights), 2, shape)


TABLE: Registry = {
    "BatchNormalization": batch_norm, "BatchNormalizationV1": batch_norm, "BatchNormalizationV2": batch_norm,
    "SyncBatchNormalization": batch_norm, "LayerNormalization": layer_norm, "RMSNormalization": rms_norm,
    "GroupNormalization": group_norm, "UnitNormalization": unit_norm, "Normalization": normalization,
}  # fmt: skip
