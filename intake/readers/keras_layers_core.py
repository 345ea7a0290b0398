"""Keras's core layers and activations: Dense, EinsumDense, Embedding, Activation and what only passes through."""

from collections.abc import Mapping

from core.errors import BadInput
from core.symbols import Extent, product
from intake.readers.keras_layers_base import Call, Layer, Ref, Registry, Trace, Writer, flat, one_input
from intake.readers.plain_json import is_mapping, mapping, sequence

ACTIVATION_FLOP: dict[str, int] = {
    "linear": 0, "relu": 1, "relu6": 2, "leaky_relu": 2, "elu": 5, "selu": 5, "celu": 5, "gelu": 8, "silu": 5, "swish": 5,
    "sigmoid": 5, "tanh": 5, "exponential": 4, "softplus": 8, "softsign": 3, "hard_sigmoid": 3, "hard_silu": 4,
    "hard_swish": 4, "hard_tanh": 2, "hard_shrink": 2, "soft_shrink": 3, "tanh_shrink": 6, "log_sigmoid": 8, "mish": 12,
    "squareplus": 7, "sparse_plus": 4, "sparse_sigmoid": 3, "threshold": 2, "glu": 6, "swiglu": 6,
}  # fmt: skip
"""FLOPs of one element of each activation that Keras has."""


def activation_name(value: object) -> str:
    """Return the name of an activation as Keras serialises it: a text, a function or a layer."""
    if value is None:
        return "linear"
    if is_mapping(value):
        held = mapping(value)
        inner = held.get("config")
        return inner if isinstance(inner, str) else str(held.get("class_name"))
    return str(value)


def activate(trace: Trace, layer: Layer, source: Ref, value: object) -> Ref:
    """Add an activation; one that Keras does not have itself is `custom`."""
    name = activation_name(value)
    if name == "linear":
        return source
    if name in ("softmax", "log_softmax", "sparsemax"):
        return trace.rowwise(layer, name, "softmax", source, trace.shape(source)[-1] if trace.shape(source) else 1)
    if name == "glu":
        shape = trace.shape(source)
        return trace.elementwise(layer, name, (source,), 6, (*shape[:-1], trace.floor(shape[-1], 2)))
    if name in ACTIVATION_FLOP:
        return trace.elementwise(layer, name, (source,), ACTIVATION_FLOP[name])
    held = mapping(value)
    part = layer.parts.get("activation")
    if part is None and is_mapping(held.get("config")) and name in trace.registry:
        part = layer.parts["activation"] = Layer(name, name, mapping(held.get("config")), f"{layer.scope}.{name}", layer.compute,
                                                 layer.variable, layer.trained)  # fmt: skip
    if part is not None:
        return flat(trace.registry[name](trace, part, Call((source,))))[0]
    result = trace.value(layer, trace.shape(source))
    size = product(trace.shape(source))
    trace.note(f"activation {name:.60} of layer {layer.name:.60} is not Keras's own: it is not run, its FLOPs are not counted")
    trace.node(layer, name, "custom", (0, size, size), (source,), (result,), (f"custom:{name:.60}",))
    return result


def kernel_of(trace: Trace, layer: Layer, shape: tuple[Extent, ...], name: str = "kernel") -> Ref:
    """Return a kernel, with its low-rank update and its scales where the config says that it has them."""
    policy = mapping(layer.config.get("dtype"))
    mode = str(mapping(policy.get("config")).get("mode", "")) if policy else ""
    rank = layer.config.get("lora_rank")
    if mode in ("int4", "gptq", "awq"):
        trace.note(f"{mode} weights of layer {layer.name:.60} are counted as int4 without their scales")
    stored = {"int8": "int8", "int4": "int4", "gptq": "int4", "awq": "int4", "float8": ""}.get(mode, "")
    kernel = trace.weight(layer, name, shape, not rank, stored)
    if mode == "int8":
        trace.weight(layer, f"{name}_scale", shape[-1:], False)
    if rank is None:
        return kernel
    width = layer.whole("lora_rank")
    down = trace.weight(layer, f"lora_{name}_a", (*shape[:-1], width))
    up = trace.weight(layer, f"lora_{name}_b", (width, shape[-1]))
    update = trace.matmul(layer, "lora", (down, up), (1, product(shape[:-1]), shape[-1], width), shape)
    return trace.elementwise(layer, "lora_add", (kernel, update), 2)


def dense(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Dense`: the last axis times a kernel."""
    source = one_input(trace, layer, call, 1)
    shape, units = trace.shape(source), layer.whole("units")
    kernel = kernel_of(trace, layer, (shape[-1], units))
    operands = [source, kernel]
    if layer.flag("use_bias", True):
        operands.append(trace.weight(layer, "bias", (units,)))
    result = trace.matmul(layer, "Dense", operands, (1, product(shape[:-1]), units, shape[-1]), (*shape[:-1], units))
    return activate(trace, layer, result, layer.config.get("activation"))


def einsum_dims(left: str, right: str, result: str, sizes: Mapping[str, Extent]) -> tuple[Extent, Extent, Extent, Extent]:
    """Return (batch, m, n, k) of a product of two tensors.

    Args:
        left, right, result: letters of each; letters of one operand alone are summed before.
        sizes: extent of each letter.
    """
    both = set(left) & set(right)
    batch = product(sizes[letter] for letter in dict.fromkeys(left) if letter in both and letter in result)
    inner = product(sizes[letter] for letter in dict.fromkeys(left) if letter in both and letter not in result)
    rows = product(sizes[letter] for letter in dict.fromkeys(left) if letter not in both)
    columns = product(sizes[letter] for letter in dict.fromkeys(right) if letter not in both)
    return batch, rows, columns, inner


def einsum_dense(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`EinsumDense`: an equation with a kernel whose letters the input and the output size."""
    source = one_input(trace, layer, call, 1)
    shape, equation = trace.shape(source), layer.text("equation").replace(" ", "")
    left, _, rest = equation.partition(",")
    right, arrow, result = rest.partition("->")
    declared = layer.config.get("output_shape")
    partial = [declared] if isinstance(declared, int) else list(sequence(declared))
    plain = [text.replace("...", "") for text in (left, right, result)]
    if not arrow or not all(text.isalpha() or not text for text in plain) or len(plain[0]) > len(shape) or len(plain[0]) < 1:
        raise layer.fault("equation", "an equation such as 'abc,cd->abd' that fits the input")
    spread = len(shape) - len(plain[0])
    free = "".join(chr(0x2460 + at) for at in range(spread)) if "..." in left else ""
    left, result = left.replace("...", free), result.replace("...", free)
    if len(left) != len(shape) or "..." in right or not 0 < len(partial) <= len(result):
        raise layer.fault("equation", "an equation such as 'abc,cd->abd' that fits the input")
    sizes: dict[str, Extent] = dict(zip(left, shape, strict=True))
    for letter, size in zip(result[len(result) - len(partial) :], partial, strict=True):
        if letter not in sizes and (not isinstance(size, int) or size < 1):
            raise layer.fault("output_shape", f"the size of axis {letter}")
        sizes.setdefault(letter, size if isinstance(size, int) else 0)
    if unknown := [letter for letter in right + result if letter not in sizes]:
        raise layer.fault("equation", f"an axis {unknown[0]} that the input or the output has")
    operands = [source, kernel_of(trace, layer, tuple(sizes[letter] for letter in right))]
    if axes := layer.text("bias_axes"):
        if any(letter not in sizes for letter in axes):
            raise layer.fault("bias_axes", "axes of the result")
        first = min(result.find(letter) for letter in axes)
        operands.append(trace.weight(layer, "bias", [sizes[one] if one in axes else 1 for one in result[first:]]))
    dims = einsum_dims(left, right, result, sizes)
    found = trace.matmul(layer, "EinsumDense", operands, dims, tuple(sizes[letter] for letter in result))
    return activate(trace, layer, found, layer.config.get("activation"))


def embedding(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Embedding`, and `ReversibleEmbedding` with its way back to the vocabulary."""
    source = one_input(trace, layer, call)
    rows, width, shape = layer.whole("input_dim"), layer.whole("output_dim"), trace.shape(source)
    table = kernel_of(trace, layer, (rows, width), "embeddings")
    tied = layer.kind != "ReversibleEmbedding" or layer.flag("tie_weights", True)
    other = None if tied else trace.weight(layer, "reverse_embeddings", (width, rows))
    if call.kwargs.get("reverse") is True or (len(call.args) > 1 and call.args[1] is True):
        dims = (1, product(shape[:-1]), rows, width)
        logits = trace.matmul(layer, f"{layer.kind}.reverse", (source, other or table), dims, (*shape[:-1], rows))
        return logits if layer.config.get("logit_soft_cap") is None else trace.elementwise(layer, "soft_cap", (logits,), 7)
    result = trace.value(layer, (*shape, width))
    trace.node(layer, layer.kind, "embedding", (product(shape), width, rows), (source, table), (result,), ("gather",))
    return result


def identity(trace: Trace, layer: Layer, call: Call) -> Ref:
    """What gives its input back outside training."""
    return trace.view(layer, layer.kind, one_input(trace, layer, call), trace.shape(one_input(trace, layer, call)))


def dropout(trace: Trace, layer: Layer, call: Call) -> Ref:
    """Dropout and noise: nothing outside training, a random mask within it."""
    source = one_input(trace, layer, call)
    result = trace.view(layer, layer.kind, source, trace.shape(source))
    trace.note("dropout and noise are left out: they do nothing outside training")
    return result


def activation(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Activation`, by its name."""
    return activate(trace, layer, one_input(trace, layer, call), layer.config.get("activation"))


def softmax(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Softmax`, over one axis or several."""
    source = one_input(trace, layer, call, 1)
    shape, axis = trace.shape(source), layer.config.get("axis")
    axes = layer.axes(-1 if axis is None else axis, len(shape))
    return trace.rowwise(layer, layer.kind, "softmax", source, product(shape[at] for at in axes))


def prelu(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`PReLU`, with a slope for each place that it does not share."""
    source = one_input(trace, layer, call, 1)
    shape = trace.shape(source)
    given = layer.config.get("shared_axes")
    shared = {layer.axis(one, len(shape), "shared_axes") for one in ([given] if isinstance(given, int) else sequence(given))}
    slope = trace.weight(layer, "alpha", [1 if at in shared else extent for at, extent in enumerate(shape) if at])
    return trace.elementwise(layer, layer.kind, (source, slope), 3, shape)


def _simple(flop: int) -> Writer:
    def write(trace: Trace, layer: Layer, call: Call) -> Ref:
        return trace.elementwise(layer, layer.kind, (one_input(trace, layer, call),), flop)

    return write


def spectral(trace: Trace, layer: Layer, call: Call) -> object:
    """`SpectralNormalization`: a layer whose kernel is divided by an estimate of its greatest singular value."""
    part = layer.parts.get("layer")
    if part is None:
        raise layer.fault("layer", "a layer that it wraps")
    result = trace.apply(part, call)
    kernel = part.weights.get("kernel") or part.weights.get("embeddings")
    if kernel is None:
        raise BadInput(
            f"layer {layer.name:.60} around {part.kind:.40}", "a layer with a kernel", "save the model again with Keras"
        )
    trace.weight(layer, "vector_u", (1, trace.shape(kernel)[-1]), False)
    return result


def layer_scale(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`LayerScale` of keras.applications' ConvNeXt: a factor for each channel."""
    source = one_input(trace, layer, call, 1)
    scale = trace.weight(layer, "gamma", (layer.whole("projection_dim"),))
    return trace.elementwise(layer, layer.kind, (source, scale), 1)


TABLE: Registry = {
    "Dense": dense, "EinsumDense": einsum_dense, "Embedding": embedding, "ReversibleEmbedding": embedding,
    "Identity": identity, "ActivityRegularization": identity, "Dropout": dropout, "AlphaDropout": dropout,
    "GaussianDropout": dropout, "GaussianNoise": dropout, "SpatialDropout1D": dropout, "SpatialDropout2D": dropout,
    "SpatialDropout3D": dropout, "Activation": activation, "Softmax": softmax, "PReLU": prelu,
    "SpectralNormalization": spectral, "LayerScale": layer_scale, "StochasticDepth": dropout,
    **{name: _simple(flop) for name, flop in (("ReLU", 1), ("LeakyReLU", 2), ("ELU", 5), ("ThresholdedReLU", 2), ("Masking", 2))},
}  # fmt: skip
