"""Keras's operations (`keras.ops`) that stand between layers: what `x + y` or `ops.mean(x)` leaves in a config.

An operation that is not in the table here keeps the shape that the file declares for it, or is refused.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from core.errors import BadInput
from core.symbols import Extent, Polynomial, product
from intake.readers.keras_layers_base import (
    Call,
    Layer,
    Ref,
    Registry,
    Trace,
    Writer,
    broadcast,
    dtype_of,
    one_input,
)
from intake.readers.keras_layers_core import activate, einsum_dims
from intake.readers.keras_layers_open import open_shape
from intake.readers.keras_layers_shape import join, reshaped
from intake.readers.plain_json import is_list, mapping, sequence

_BINARY = {
    "Add": 1, "Subtract": 1, "Multiply": 1, "Divide": 1, "TrueDivide": 1, "DivideNoNan": 2, "FloorDivide": 1, "Mod": 1,
    "Power": 8, "Maximum": 1, "Minimum": 1, "Arctan2": 8, "Hypot": 6, "Logaddexp": 10, "BitwiseAnd": 1, "BitwiseOr": 1,
    "BitwiseXor": 1, "Where": 1, "Clip": 2,
}  # fmt: skip
_COMPARING = ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "LogicalXor",
    "LogicalNot",
              "Isfinite", "Isinf", "Isnan")  # fmt: skip
_UNARY = {
    "Absolute": 1, "Abs": 1, "Negative": 1, "Square": 1, "Sqrt": 4, "Rsqrt": 4, "Exp": 4, "Expm1": 4, "Log": 4, "Log1p": 4,
    "Log2": 4, "Log10": 4, "Sin": 4, "Cos": 4, "Tan": 5, "Sinh": 5, "Cosh": 5, "Erf": 8, "Erfinv": 8, "Sign": 1, "Floor": 1,
    "Ceil": 1, "Round": 1, "Reciprocal": 1, "Arcsin": 8, "Arccos": 8, "Arctan": 8, "Cumsum": 1, "Cumprod": 1, "Flip": 0,
    "Roll": 0, "StopGradient": 0, "ZerosLike": 0, "OnesLike": 0, "Copy": 0, "Tril": 0, "Triu": 0, "NanToNum": 1,
    "Normalize": 4,
}  # fmt: skip
_REDUCING = ("Sum", "Mean", "Max", "Min", "Prod", "Any", "All", "Amax", "Amin", "Var", "Std", "Logsumexp", "Norm", "Argmax",
    "Argmin",
             "CountNonzero", "Average", "Median")  # fmt: skip
_FACTORING = ("Cholesky", "Inv", "Det", "Eig", "Eigh", "Qr", "SVD", "Solve", "SolveTriangular", "LuFactor", "Pinv", "Lstsq")
_ACTIVATIONS = {
    "Relu": "relu",
    "Relu6": "relu6",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Silu": "silu",
    "LogSigmoid": "log_sigmoid",
    "LeakyRelu": "leaky_relu",
    "HardSigmoid": "hard_sigmoid",
    "Elu": "elu",
    "HardSilu": "hard_silu",
    "Selu": "selu",
    "Gelu": "gelu",
    "Celu": "celu",
    "HardTanh": "hard_tanh",
    "Glu": "glu",
    "TanhShrink": "tanh_shrink",
    "SoftShrink": "soft_shrink",
    "HardShrink": "hard_shrink",
    "Squareplus": "squareplus",
}
_LEGACY = {
    "add": "Add", "subtract": "Subtract", "sub": "Subtract", "multiply": "Multiply", "mul": "Multiply", "truediv": "Divide",
    "divide": "Divide", "pow": "Power", "maximum": "Maximum", "minimum": "Minimum", "reduce_mean": "Mean", "reduce_sum": "Sum",
    "reduce_max": "Max", "reduce_min": "Min", "relu": "Relu", "relu6": "Relu6", "sigmoid": "Sigmoid", "tanh": "Tanh",
    "gelu": "Gelu", "silu": "Silu", "swish": "Silu", "softplus": "Softplus", "softmax": "Softmax", "concat": "Concatenate",
    "reshape": "Reshape", "expand_dims": "ExpandDims", "squeeze": "Squeeze", "cast": "Cast", "matmul": "Matmul",
    "sqrt": "Sqrt", "rsqrt": "Rsqrt", "exp": "Exp", "log": "Log", "square": "Square", "abs": "Absolute", "neg": "Negative",
    "negative": "Negative", "transpose": "Transpose", "stack": "Stack", "hard_swish": "HardSilu", "l2_normalize": "Normalize",
    "stop_gradient": "StopGradient", "einsum": "Einsum",
}  # fmt: skip
"""What a Keras 2 config calls a function of TensorFlow, by the last part of its name."""


def _name(layer: Layer) -> str:
    return layer.kind.removeprefix("ops.")


def setting(layer: Layer, call: Call, *names: str, position: int = -1) -> object:
    """Return an operation's setting, from its own config, the call's names or its place among the arguments."""
    for name in names:
        for held in (layer.config, call.kwargs):
            if held.get(name) is not None:
                return held[name]
    return call.args[position] if 0 <= position < len(call.args) else None


def binary(trace: Trace, layer: Layer, call: Call) -> Ref:
    """Arithmetic of two operands, of which one may be a number."""
    inputs = call.every()
    one_input(trace, layer, call)
    given = [trace.dtype(one) for one in inputs]
    dtype = given[0] if len(set(given)) == 1 or layer.compute not in given else layer.compute
    return trace.elementwise(layer, layer.kind, inputs, _BINARY[_name(layer)], None, dtype)


def compare(trace: Trace, layer: Layer, call: Call) -> Ref:
    """Comparisons: true or false."""
    one_input(trace, layer, call)
    return trace.elementwise(layer, layer.kind, call.every(), 1, None, "bool")


def unary(trace: Trace, layer: Layer, call: Call) -> Ref:
    """One operand, the same shape."""
    source = one_input(trace, layer, call)
    return trace.elementwise(layer, layer.kind, (source,), _UNARY[_name(layer)], trace.shape(source), trace.dtype(source))


def nonlinear(trace: Trace, layer: Layer, call: Call) -> Ref:
    """An activation."""
    return activate(trace, layer, one_input(trace, layer, call), _ACTIVATIONS[_name(layer)])


def softmax(trace: Trace, layer: Layer, call: Call) -> Ref:
    """A softmax over an axis."""
    source = one_input(trace, layer, call, 1)
    shape, axis = trace.shape(source), setting(layer, call, "axis")
    axes = layer.axes(-1 if axis is None else axis, len(shape))
    return trace.rowwise(layer, layer.kind, "softmax", source, product(shape[at] for at in axes))


def reduce(trace: Trace, layer: Layer, call: Call) -> Ref:
    """A sum, mean, maximum and the like over axes."""
    source = one_input(trace, layer, call)
    shape = trace.shape(source)
    axes = layer.axes(setting(layer, call, "axis", position=1), len(shape))
    keep = setting(layer, call, "keepdims") is True
    found = [1 if at in axes else extent for at, extent in enumerate(shape) if keep or at not in axes]
    name = _name(layer)
    return trace.reduce(
        layer,
        layer.kind,
        source,
        found,
        "int32" if name.startswith("Arg") else "bool" if name in ("Any", "All") else trace.dtype(source),
    )


def reshape(trace: Trace, layer: Layer, call: Call) -> Ref:
    """A reshape to numbers, with one open."""
    source = one_input(trace, layer, call)
    shape, wanted = trace.shape(source), tuple(sequence(setting(layer, call, "newshape", "shape", position=1)))
    # a None in front is the batch, which a config cannot say as a number
    if wanted and wanted[0] is None and shape:
        wanted = (shape[0], *wanted[1:])
    found = reshaped(trace, shape, wanted)
    if found is None and len([one for one in wanted if one is None]) > 1 and 0 in call.declared:
        found = open_shape(trace, list(call.declared[0][0]), layer.name, shape)
    if found is None:
        raise layer.fault("newshape", f"a shape of {trace.number(product(shape))} elements")
    return trace.view(layer, layer.kind, source, found)


def rearrange(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Transpose`, `Swapaxes`, `Moveaxis`."""
    source = one_input(trace, layer, call)
    shape = trace.shape(source)
    order = list(range(len(shape)))
    if _name(layer) == "Transpose":
        given = setting(layer, call, "axes", "perm", position=1)
        order = order[::-1] if given is None else [layer.axis(one, len(shape), "axes") for one in sequence(given)]
    elif _name(layer) == "Swapaxes":
        a, b = layer.axis(layer.config.get("axis1"), len(shape)), layer.axis(layer.config.get("axis2"), len(shape))
        order[a], order[b] = order[b], order[a]
    else:
        given = [layer.config.get("source"), layer.config.get("destination")]
        pairs = [[layer.axis(one, len(shape)) for one in ([some] if isinstance(some, int) else sequence(some))] for some in given]
        order = [at for at in order if at not in pairs[0]]
        for to, at in sorted(zip(pairs[1], pairs[0], strict=False)):
            order.insert(to, at)
    if sorted(order) != list(range(len(shape))):
        raise layer.fault("axes", f"every axis of {len(shape)} once")
    return trace.view(layer, layer.kind, source, [shape[at] for at in order])


def unit_axes(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`ExpandDims` and `Squeeze`."""
    source = one_input(trace, layer, call)
    shape, axis = trace.shape(source), setting(layer, call, "axis", position=1)
    if _name(layer) == "Squeeze":
        axes = {at for at, extent in enumerate(shape) if extent == 1} if axis is None else set(layer.axes(axis, len(shape)))
        return trace.view(layer, layer.kind, source, [extent for at, extent in enumerate(shape) if at not in axes or extent != 1])
    found = list(shape)
    given = [axis] if isinstance(axis, int) else sequence(axis)
    for at in sorted(layer.axis(one, len(shape) + len(given)) for one in given):
        found.insert(at, 1)
    return trace.view(layer, layer.kind, source, found)


def concatenate(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Concatenate` and `Stack`."""
    one_input(trace, layer, call)
    inputs, axis = call.every(), setting(layer, call, "axis", position=1)
    rank = len(trace.shape(inputs[0]))
    at = layer.axis(0 if axis is None else axis, rank + (_name(layer) == "Stack"))
    if _name(layer) == "Concatenate":
        return join(trace, layer, inputs, at, layer.kind)
    shape = trace.shape(inputs[0])
    return trace.elementwise(layer, layer.kind, inputs, 0, (*shape[:at], len(inputs), *shape[at:]), trace.dtype(inputs[0]))


def split(trace: Trace, layer: Layer, call: Call) -> object:
    """`Split`: into equal parts, or at places."""
    source = one_input(trace, layer, call, 1)
    shape, axis = trace.shape(source), setting(layer, call, "axis", position=2)
    at, parts = layer.axis(0 if axis is None else axis, len(shape)), setting(layer, call, "indices_or_sections", position=1)
    if isinstance(parts, int) and 0 < parts <= 10_000:
        sizes: list[Extent] = [trace.floor(shape[at], parts)] * parts
    else:
        cuts: list[Extent] = [0, *(one for one in sequence(parts) if isinstance(one, int)), shape[at]]
        sizes = [b - a for a, b in pairwise(cuts)]
    return [trace.view(layer, layer.kind, source, (*shape[:at], size, *shape[at + 1 :])) for size in sizes]


def matmul(trace: Trace, layer: Layer, call: Call) -> Ref:
    """A matrix product; leading axes of the left alone are rows."""
    inputs = call.every()
    if len(inputs) != 2 or min(len(trace.shape(one)) for one in inputs) < 1:
        raise layer.fault("name", "two tensors")
    left, right = list(trace.shape(inputs[0])), list(trace.shape(inputs[1]))
    inner, rows, columns = left.pop(), left[-1:], right[-1:] if len(right) > 1 else []
    if trace.number(inner) != trace.number(right[-2] if len(right) > 1 else right[0]):
        raise BadInput(f"layer {layer.name:.60} with a product over {inner} and {right[-2:]}"[:200], "inner sizes that agree",
                       "save the model again with Keras")  # fmt: skip
    width = product(columns)
    if len(right) <= 2:
        return trace.matmul(layer, layer.kind, inputs, (1, product(left), width, inner), (*left, *columns))
    lead = broadcast([tuple(left[:-1]), tuple(right[:-2])])
    return trace.matmul(layer, layer.kind, inputs, (product(lead), product(rows), width, inner), (*lead, *rows, *columns))


def einsum(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Einsum` of two tensors."""
    inputs = call.every()
    equation = str(setting(layer, call, "subscripts", "equation") or next((one for one in call.args if isinstance(one, str)), ""))
    terms, arrow, result = equation.replace(" ", "").partition("->")
    sides = terms.split(",")
    plain = arrow and len(sides) == len(inputs) == 2 and all(part.isalpha() or not part for part in (*sides, result))
    if not plain or any(len(side) != len(trace.shape(one)) for side, one in zip(sides, inputs, strict=True)):
        raise layer.fault("subscripts", "an equation of two tensors such as 'abc,cd->abd'")
    sizes = {
        letter: extent
        for side, one in zip(sides, inputs, strict=True)
        for letter, extent in zip(side, trace.shape(one), strict=True)
    }
    if any(letter not in sizes for letter in result):
        raise layer.fault("subscripts", "a result of axes that the operands have")
    return trace.matmul(
        layer, layer.kind, inputs, einsum_dims(sides[0], sides[1], result, sizes), [sizes[letter] for letter in result]
    )


def cast(trace: Trace, layer: Layer, call: Call) -> Ref:
    """A change of dtype."""
    source = one_input(trace, layer, call)
    found = dtype_of(setting(layer, call, "dtype", position=1))
    return trace.elementwise(layer, layer.kind, (source,), 0, trace.shape(source), found)


def _cut(trace: Trace, extent: Extent, part: Mapping[str, object]) -> Extent:
    values = [part.get(name) if isinstance(part.get(name), int) else None for name in ("start", "stop", "step")]
    start, stop, step = (one if isinstance(one, int) else None for one in values)
    if start is None and stop is None and step in (None, 1, -1):
        return extent
    if isinstance(extent, Polynomial) and step in (None, 1):
        low, high = start or 0, stop
        begin: Extent = low if low >= 0 else extent + low
        end: Extent = extent if high is None else high if high >= 0 else extent + high
        if trace.number(end) <= trace.number(extent):
            return end - begin
    return len(range(*slice(start, stop, step or 1).indices(min(trace.number(extent), 2**40))))


def get_item(trace: Trace, layer: Layer, call: Call) -> Ref:
    """Indexing: slices are views, whole numbers take an axis away, tensors gather, masks have a size that values decide."""
    source = one_input(trace, layer, call)
    shape, key = trace.shape(source), call.args[1] if len(call.args) > 1 else call.kwargs.get("key")
    parts: Sequence[object] = sequence(key) if is_list(key) else [key]
    used = len([one for one in parts if one is not None and not _is(one, "__ellipsis__")])
    found: list[Extent] = []
    at, moved = 0, list[Ref]()
    for part in parts:
        if part is None:
            found.append(1)
        elif _is(part, "__ellipsis__"):
            found += shape[at : at + max(len(shape) - used, 0)]
            at += max(len(shape) - used, 0)
        elif at >= len(shape):
            raise layer.fault("key", f"an index of at most {len(shape)} axes")
        elif isinstance(part, Ref):
            moved.append(part)
            found += trace.shape(part) if trace.dtype(part) != "bool" else [product(trace.shape(part))]
            at += 1 if trace.dtype(part) != "bool" else len(trace.shape(part))
        else:
            if not isinstance(part, int):
                found.append(_cut(trace, shape[at], mapping(mapping(part).get("config", part))))
            at += 1
    found += shape[at:]
    if not moved:
        return trace.view(layer, layer.kind, source, found)
    masks = any(trace.dtype(one) == "bool" for one in moved)
    if masks:
        trace.note(f"{layer.name:.60} keeps what a mask says: its greatest size is counted")
    result = trace.value(layer, found, trace.dtype(source))
    width = product(shape[len(moved) :])
    marks = ("gather", "dynamic_shape") if masks else ("gather",)
    trace.node(layer, layer.kind, "gather", (trace.ratio(product(found), width), width), (source, *moved), (result,), marks)
    return result


def _is(value: object, name: str) -> bool:
    return value is Ellipsis or mapping(value).get("class_name") == name


def legacy(trace: Trace, layer: Layer, call: Call) -> object:
    """`TFOpLambda` of Keras 2: a function of TensorFlow, by its name."""
    name = _LEGACY.get(layer.text("function").rpartition(".")[2], "")
    if f"ops.{name}" not in trace.registry:
        raise layer.fault("function", "a function of TensorFlow that is known here; save the model with Keras 3, or capture it")
    inner = Layer(layer.name, f"ops.{name}", {}, layer.scope, layer.compute, layer.variable)
    return trace.apply(inner, call)


def declared_only(trace: Trace, layer: Layer, call: Call, kind: str, marks: tuple[str, ...]) -> object:
    """Add an operation whose shape the file declares.

    Raises:
        BadInput: none is declared.
    """
    if not call.declared:
        raise BadInput(f"layer {layer.name:.60} ({layer.kind:.40}), whose shape the file does not say",
            "a shape that a later layer states",
                       "capture the model where it runs: ./tandem capture script.py:make_model")  # fmt: skip
    inputs = call.every()
    like = trace.shape(inputs[0]) if inputs else ()
    outputs = [trace.value(layer, open_shape(trace, list(shape), layer.name, like), dtype)
               for _, (shape, dtype) in sorted(call.declared.items())]  # fmt: skip
    read, written = ([trace.shape(one) for one in group] for group in (inputs, outputs))
    rows = [product(shape) for shape in (read or [()])]
    last = read[0][-1] if read and read[0] else 1
    dims: tuple[Extent, ...] = (product(written[0]), 1)
    if kind == "custom":
        dims = (0, sum(rows[1:], rows[0]), sum((product(one) for one in written[1:]), product(written[0])))
    elif kind == "linalg":
        dims = (trace.ratio(rows[0], last * last), last)
    elif kind in ("sort", "fft"):
        dims = (trace.ratio(rows[0], last), last)
    elif kind == "elementwise":
        dims = (product(written[0]), len(inputs), 1)
    trace.node(layer, layer.kind, kind, dims, inputs, outputs, marks)
    return outputs[0] if len(outputs) == 1 else outputs


def _as(kind: str, *marks: str) -> Writer:
    def write(trace: Trace, layer: Layer, call: Call) -> object:
        return declared_only(trace, layer, call, kind, marks)

    return write


_OPS: Registry = {
    **dict.fromkeys(_BINARY, binary), **dict.fromkeys(_COMPARING, compare), **dict.fromkeys(_UNARY, unary),
    **dict.fromkeys(_REDUCING, reduce), **dict.fromkeys(_ACTIVATIONS, nonlinear), "Softmax": softmax, "LogSoftmax": softmax,
    "Reshape": reshape, **dict.fromkeys(("Transpose", "Swapaxes", "Moveaxis"), rearrange), "ExpandDims": unit_axes,
    "Squeeze": unit_axes, "Concatenate": concatenate, "Stack": concatenate, "Split": split, "Matmul": matmul, "Einsum": einsum,
    "Cast": cast, "GetItem": get_item, **dict.fromkeys(("TopK", "Sort", "Argsort", "Median", "Quantile"), _as("sort", "sort")),
    **dict.fromkeys(("Take", "TakeAlongAxis"), _as("gather", "gather")),
    **dict.fromkeys(("Scatter", "ScatterUpdate", "SegmentSum", "SegmentMax"), _as("scatter", "scatter")),
    **dict.fromkeys(("FFT", "FFT2", "IFFT2", "RFFT", "IRFFT", "STFT", "ISTFT"), _as("fft", "fft")),
    **dict.fromkeys(_FACTORING, _as("linalg", "linalg")),
    **dict.fromkeys(("Nonzero", "Unique"), _as("custom", "dynamic_shape")),
    **dict.fromkeys(("Tile", "Repeat", "Pad", "BroadcastTo", "OneHot", "Resize"), _as("elementwise")),
}  # fmt: skip
TABLE: Registry = {**{f"ops.{name}": write for name, write in _OPS.items()}, "TFOpLambda": legacy}
