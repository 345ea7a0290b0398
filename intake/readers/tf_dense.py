"""TensorFlow operations that multiply: matrix products, convolutions, recurrent layers; and pooling."""

from core.graph import Shape
from core.symbols import Extent
from intake.readers.draft import Done, Result, Work
from intake.readers.einsum import einsum
from intake.readers.operations import convolution, elementwise, matmul, pooling, window
from intake.readers.operator_step import Operator, Step, simple
from intake.readers.symbolic import Unclear


def _matmul(step: Step) -> Done:
    left, right = step.shape(0), step.shape(1)
    if len(left) < 2 or len(right) < 2:
        raise Unclear(f"a matrix product of {len(left)} and {len(right)} axes")
    if step.whole("transpose_a", 0) or step.whole("adj_x", 0):
        left = (*left[:-2], left[-1], left[-2])
    if step.whole("transpose_b", 0) or step.whole("adj_y", 0):
        right = (*right[:-2], right[-1], right[-2])
    shape, work = matmul(step.extents, left, right)
    return simple(shape, step.text("Tout") or step.first.dtype, work)


def _sparse(step: Step) -> Done:
    """A sparse matrix times a dense one: rows of the dense one are gathered."""
    places, values, right = step.shape(0), step.shape(1), step.shape(3)
    rows = (step.extents_of(2) or (0,))[0] if step.known(2) is not None else places[0]
    n = right[0] if step.whole("adjoint_b", 0) else right[1]
    return simple((rows, n), step.value(3).dtype, Work("matmul", (1, values[0], n, 1), ("gather",)))


def _einsum(step: Step) -> Done:
    shape, work = einsum(step.extents, step.text("equation"), [step.shape(place) for place in range(len(step.inputs))])
    return Done((Result(shape, step.first.dtype, view_of=None if work else 0),), work)


def _first(step: Step) -> bool:
    """Whether channels are the second axis."""
    return step.text("data_format", "NHWC").startswith("NC")


def _inner(step: Step, shape: Shape | tuple[int, ...]) -> Shape:
    return tuple(shape[2:]) if _first(step) else tuple(shape[1:-1])


def _whole_inner(step: Step, name: str, rank: int) -> tuple[int, ...]:
    found = step.wholes(name) or (1,) * (rank + 2)
    if len(found) != rank + 2:
        raise Unclear(f"{len(found)} {name} for {rank} dimensions")
    return found[2:] if _first(step) else found[1:-1]


def _joined(step: Step, batch: Extent, inner: Shape, channels: Extent) -> Shape:
    return (batch, channels, *inner) if _first(step) else (batch, *inner, channels)


def _places(step: Step, sizes: Shape, kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]) -> Shape:
    padding = step.text("padding", "VALID")
    if padding == "SAME":
        return tuple(step.extents.rounded_up(size, max(stride, 1)) for size, stride in zip(sizes, strides, strict=True))
    around = [0] * len(sizes)
    if padding == "EXPLICIT":
        pads = step.wholes("explicit_paddings") or (0,) * (2 * len(sizes) + 4)
        start = 2 if not _first(step) else 4
        around = [pads[start + 2 * at] + pads[start + 2 * at + 1] for at in range(len(sizes))]
    return tuple(window(step.extents, size, kernel[at], strides[at], dilations[at], around[at]) for at, size in enumerate(sizes))


def _convolution(step: Step) -> Done:
    """Weights are (places, channels in of one group, channels out)."""
    data, weight = step.first.shape, step.shape(1)
    if len(data) not in {3, 4, 5} or len(weight) != len(data):
        raise Unclear(f"a convolution of {len(data)} axes with weights of {len(weight)}")
    rank = len(data) - 2
    kernel = tuple(step.number_of(one) for one in weight[:rank])
    channels = data[1] if _first(step) else data[-1]
    strides, dilations = _whole_inner(step, "strides", rank), _whole_inner(step, "dilations", rank)
    outer = _places(step, _inner(step, data), kernel, strides, dilations)
    depthwise = step.op == "DepthwiseConv2dNative"
    made = weight[-2] * weight[-1] if depthwise else weight[-1]
    groups = step.number_of(channels) if depthwise else step.number_of(step.extents.quotient(channels, weight[-2]))
    work = convolution(data[0], _inner(step, data), outer, (channels, made), kernel, groups)
    return simple(_joined(step, data[0], outer, made), step.first.dtype, work)


def _data_gradient(step: Step) -> Done:
    """The gradient of a convolution towards its operand, which is also what a transposed convolution is."""
    weight, data = step.shape(1), step.shape(2)
    rank = len(data) - 2
    kernel = tuple(step.number_of(one) for one in weight[:rank])
    depthwise = "Depthwise" in step.op
    channels, made = (data[1] if _first(step) else data[-1]), weight[-2]
    shape = _sizes(step, data, kernel, rank, made)
    outer = _inner(step, shape)
    groups = step.number_of(made) if depthwise else 1
    work = convolution(data[0], _inner(step, data), outer, (channels, made), kernel, groups, transposed=True)
    return simple(shape, step.value(2).dtype, work)


def _sizes(step: Step, data: Shape, kernel: tuple[int, ...], rank: int, made: Extent) -> Shape:
    sizes = tuple(step.extents_of(0) or ()) if step.known(0) is not None else ()
    if len(sizes) == rank + 2:
        return (data[0], *sizes[1:])
    strides, same = _whole_inner(step, "strides", rank), step.text("padding") == "SAME"
    grown = (one * strides[at] if same else (one - 1) * strides[at] + kernel[at] for at, one in enumerate(_inner(step, data)))
    inner = sizes if len(sizes) == rank else tuple(grown)
    return _joined(step, data[0], inner, made)


def _weight_gradient(step: Step) -> Done:
    data, gradient = step.first.shape, step.shape(2)
    shape = tuple(step.extents_of(1) or ())
    rank = len(data) - 2
    kernel = tuple(step.number_of(one) for one in shape[:rank])
    channels = data[1] if _first(step) else data[-1]
    groups = step.number_of(channels) if "Depthwise" in step.op else 1
    made = gradient[1] if _first(step) else gradient[-1]
    work = convolution(data[0], _inner(step, data), _inner(step, gradient), (channels, made), kernel, groups)
    return simple(shape, step.first.dtype, work)


def _pool(step: Step) -> Done:
    data = step.first.shape
    rank = len(data) - 2
    kernel, strides = _whole_inner(step, "ksize", rank), _whole_inner(step, "strides", rank)
    outer = _places(step, _inner(step, data), kernel, strides, (1,) * rank)
    shape = _joined(step, data[0], outer, data[1] if _first(step) else data[-1])
    results = (Result(shape, step.first.dtype), Result(shape, "int64"))
    return Done(results[: max(step.count, 1)], (pooling(shape, kernel),))


def _same_as(place: int) -> Operator:
    def gradient(step: Step) -> Done:
        shape = step.shape(place)
        return simple(shape, step.value(place).dtype, elementwise(shape, 2, 2))

    return gradient


def _sequence(step: Step) -> Done:
    """A whole recurrent layer as one operation: (steps, batch, inputs)."""
    at = 1 if step.op.startswith("BlockLSTM") else 0
    data = step.shape(at)
    if step.op.startswith("BlockLSTM"):
        hidden = step.extents.quotient(step.shape(4)[1], 4)
        every = (data[0], data[1], hidden)
        results = (Result(every, step.value(at).dtype),) * 7
        gates = 4
    else:
        hidden = step.shape(1)[-1]
        gates = {"lstm": 4, "gru": 3}.get(step.text("rnn_mode", "lstm"), 1)
        ways = 2 if step.text("direction") == "bidirectional" else 1
        every = (data[0], data[1], hidden * ways)
        last = Result(step.shape(1), step.first.dtype)
        results = (Result(every, step.first.dtype), last, last, Result((), step.first.dtype), Result((), "int8"))
        if ways == 2:
            one_way = Work("rnn", (data[0], data[1], data[2], hidden, gates), ("serial_scan",), between=every)
            return Done(results, (one_way, Work("rnn", one_way.dims, ("serial_scan",))))
    return Done(results, (Work("rnn", (data[0], data[1], data[2], hidden, gates), ("serial_scan",)),))


OPERATORS: dict[str, Operator] = {
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "_FusedMatMul", "SparseMatMul"), _matmul),
    **dict.fromkeys(("Conv2D", "Conv3D", "Conv", "_FusedConv2D", "DepthwiseConv2dNative"), _convolution),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput"), _data_gradient),
    **dict.fromkeys(("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter"), _weight_gradient),
    **dict.fromkeys(("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "MaxPoolWithArgmax"), _pool),
    **dict.fromkeys(("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3", "BlockLSTM", "BlockLSTMV2"), _sequence),
    "SparseTensorDenseMatMul": _sparse, "Einsum": _einsum, "XlaEinsum": _einsum, "MaxPoolGrad": _same_as(0),
    "SoftmaxGrad": _same_as(0), "SelectGrad": _same_as(0),
}  # fmt: skip
