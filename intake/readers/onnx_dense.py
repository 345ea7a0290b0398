"""ONNX operators that multiply: matrix products, convolutions, recurrent layers, attention, transforms; and pooling."""

from core.graph import Shape
from core.symbols import Extent, product
from intake.readers.draft import Done, Result, Work
from intake.readers.einsum import einsum
from intake.readers.operations import attention, convolution, elementwise, matmul, pooling, window
from intake.readers.operator_step import Operator, Step, simple
from intake.readers.symbolic import Unclear, axis_of

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _matmul(step: Step) -> Done:
    right = 3 if step.op == "QLinearMatMul" else 1
    shape, work = matmul(step.extents, step.shape(0), step.shape(right))
    dtype = {"MatMulInteger": "int32", "QLinearMatMul": step.value(right).dtype}.get(step.op, step.first.dtype)
    return simple(shape, dtype, work)


def _general(step: Step) -> Done:
    left, right = step.shape(0), step.shape(1)
    if len(left) != 2 or len(right) != 2:
        raise Unclear(f"a Gemm of {len(left)} and {len(right)} axes")
    m, k = reversed(left) if step.whole("transA", 0) else left
    n, k2 = right if step.whole("transB", 0) else reversed(right)
    k = step.extents.same(k, k2, "a Gemm")
    return simple((m, n), step.first.dtype, Work("matmul", (1, m, n, k)))


def pads_of(step: Step, rank: int) -> tuple[int, ...] | None:
    """Return padding before and after together along each axis; None where the result keeps the size.

    Args:
        step: a convolution or pooling.
        rank: axes that the window runs along.
    """
    kind = step.text("auto_pad", "NOTSET")
    if kind.startswith("SAME"):
        return None
    pads = step.wholes("pads") or (0,) * (2 * rank) if kind != "VALID" else (0,) * (2 * rank)
    if len(pads) != 2 * rank:
        raise Unclear(f"{len(pads)} pads for {rank} axes")
    return tuple(pads[at] + pads[at + rank] for at in range(rank))


def _per_axis(step: Step, name: str, rank: int) -> tuple[int, ...]:
    found = step.wholes(name) or (1,) * rank
    if len(found) != rank:
        raise Unclear(f"{len(found)} {name} for {rank} axes")
    return found


def places(step: Step, sizes: Shape, kernel: tuple[int, ...]) -> Shape:
    """Return how many places a window takes along each axis."""
    rank = len(sizes)
    strides, dilations = _per_axis(step, "strides", rank), _per_axis(step, "dilations", rank)
    pads = pads_of(step, rank)
    if len(kernel) != rank:
        raise Unclear(f"a window of {len(kernel)} axes over {rank}")
    if pads is None:
        return tuple(step.extents.rounded_up(size, max(stride, 1)) for size, stride in zip(sizes, strides, strict=True))
    up = bool(step.whole("ceil_mode", 0))
    found: list[Extent] = []
    for at, size in enumerate(sizes):
        count = window(step.extents, size, kernel[at], strides[at], dilations[at], pads[at], up)
        half = (step.wholes("pads") or (0,) * (2 * rank))[at]
        if up and isinstance(count, int) and isinstance(size, int) and (count - 1) * strides[at] >= size + half:
            count -= 1  # the last window would begin in the padding behind the data
        found.append(count)
    return tuple(found)


def _kernel(step: Step, weight: Shape) -> tuple[int, ...]:
    return tuple(step.number_of(extent) for extent in weight[2:])


def _conv(step: Step) -> Done:
    at = 3 if step.op == "QLinearConv" else 1
    data, weight = step.shape(0), step.shape(at)
    if len(data) < 3 or len(weight) != len(data):
        raise Unclear(f"a convolution of {len(data)} axes with weights of {len(weight)}")
    groups, kernel = step.whole("group", 1), _kernel(step, weight)
    step.extents.same(data[1], weight[1] * groups, "a convolution's channels")
    outer = places(step, data[2:], kernel)
    dtype = "int32" if step.op == "ConvInteger" else step.value(at).dtype if step.op == "QLinearConv" else step.first.dtype
    work = convolution(data[0], data[2:], outer, (data[1], weight[0]), kernel, groups)
    shape = (data[0], weight[0], *outer)
    if step.op == "DeformConv":  # each tap is read at a place of its own, between four pixels
        taps = data[0] * product(outer) * product(kernel) * 4
        return simple(shape, dtype, Work("gather", (taps, data[1]), ("gather",), between=data), work)
    return simple(shape, dtype, work)


def _conv_transposed(step: Step) -> Done:
    data, weight = step.shape(0), step.shape(1)
    if len(data) < 3 or len(weight) != len(data):
        raise Unclear(f"a convolution of {len(data)} axes with weights of {len(weight)}")
    rank, groups, kernel = len(data) - 2, step.whole("group", 1), _kernel(step, weight)
    strides, dilations = _per_axis(step, "strides", rank), _per_axis(step, "dilations", rank)
    extra = step.wholes("output_padding") or (0,) * rank
    pads, wanted = pads_of(step, rank), step.wholes("output_shape")
    if wanted:
        outer: Shape = wanted[-rank:]
    elif pads is None:
        outer = tuple(size * stride for size, stride in zip(data[2:], strides, strict=True))
    else:
        outer = tuple(
            (size - 1) * strides[at] + dilations[at] * (kernel[at] - 1) + 1 + extra[at] - pads[at]
            for at, size in enumerate(data[2:])
        )
    channels = weight[1] * groups
    work = convolution(data[0], data[2:], outer, (data[1], channels), kernel, groups, transposed=True)
    return simple((data[0], channels, *outer), step.first.dtype, work)


def _pool(step: Step) -> Done:
    data, kernel = step.shape(0), step.wholes("kernel_shape") or ()
    shape = (*data[:2], *places(step, data[2:], kernel))
    results = (Result(shape, step.first.dtype), Result(shape, "int64"))
    return Done(results[: step.count], (pooling(shape, kernel),))


def _pool_all(step: Step) -> Done:
    data = step.shape(0)
    shape = (*data[:2], *(1 for _ in data[2:]))
    return simple(shape, step.first.dtype, Work("reduce", (product(data), product(shape))))


def _recurrent(step: Step) -> Done:
    data, weight, again = step.shape(0), step.shape(1), step.shape(2)
    if len(data) != 3 or len(weight) != 3 or len(again) != 3:
        raise Unclear(f"a recurrent layer of {len(data)} axes")
    first = bool(step.whole("layout", 0))
    batch, steps = (data[0], data[1]) if first else (data[1], data[0])
    hidden, directions = again[2], step.number_of(weight[0])
    if directions not in {1, 2}:
        raise Unclear(f"a recurrent layer of {directions} directions")
    every = (batch, steps, directions, hidden) if first else (steps, directions, batch, hidden)
    last = (batch, directions, hidden) if first else (directions, batch, hidden)
    results = (Result(every, step.first.dtype), Result(last, step.first.dtype), Result(last, step.first.dtype))
    dims = (steps, batch, data[2], hidden, _GATES[step.op])
    one_way = Work("rnn", dims, ("serial_scan",), between=(steps, batch, hidden))
    work = Work("rnn", dims, ("serial_scan",))
    return Done(results[: step.count], (one_way, work)[2 - directions :])


def _einsum(step: Step) -> Done:
    shape, work = einsum(step.extents, step.text("equation"), [step.shape(place) for place in range(len(step.inputs))])
    return Done((Result(shape, step.first.dtype, view_of=None if work else 0),), work)


def _attention(step: Step) -> Done:
    """Attention of set 23: heads as an axis of their own, or side by side in the last one."""
    query, key, value = step.shape(0), step.shape(1), step.shape(2)
    if len(query) == 4:
        batch, heads, queries, width = query
        kv_heads, keys, value_width = key[1], key[2], value[3]
    else:
        heads, kv_heads = step.whole("q_num_heads"), step.whole("kv_num_heads")
        batch, queries, keys = query[0], query[1], key[1]
        width, value_width = step.extents.quotient(query[2], heads), step.extents.quotient(value[2], kv_heads)
    past = step.optional(4)
    total = keys if past is None else past.shape[2] + keys
    shape = (batch, heads, queries, value_width) if len(query) == 4 else (batch, queries, value_width * heads)
    dtype = step.first.dtype
    cache = tuple(Result((batch, kv_heads, total, one), dtype) for one in (width, value_width))
    scores = Result((batch, heads, queries, total), dtype)
    results = (Result(shape, dtype), *cache, scores)
    mean = mean_width(step, width, value_width)
    return Done(results[: step.count], (attention(batch, heads, kv_heads, queries, total, mean),))


def mean_width(step: Step, width: Extent, value_width: Extent) -> Extent:
    """Return the width that gives attention's count when values are of another width than keys."""
    return width if width == value_width else step.extents.quotient(width + value_width, 2)


def _rotary(step: Step) -> Done:
    return simple(step.first.shape, step.first.dtype, elementwise(step.first.shape, 3, 3))


def _determinant(step: Step) -> Done:
    shape = step.first.shape
    return simple(shape[:-2], step.first.dtype, Work("linalg", (product(shape[:-2]), shape[-1]), ("linalg",)))


def _inverse(step: Step) -> Done:
    shape = step.first.shape
    return simple(shape, step.first.dtype, Work("linalg", (product(shape[:-2]), shape[-1]), ("linalg",)))


def _fourier(step: Step) -> Done:
    """The parts of a complex number are the last axis of ONNX's transforms."""
    shape = list(step.first.shape)
    axis = step.whole("axis", 1) if step.version < 20 else (step.numbers(2) or (-2,))[0]
    at, length = axis_of(axis, len(shape)), step.extents_of(1)
    shape[at] = length[0] if length else shape[at]
    rows = product(shape[:-1][:at] + shape[:-1][at + 1 :])
    work = Work("fft", (rows, shape[at]), ("fft", "complex"))
    if step.whole("onesided", 0):
        inverse = bool(step.whole("inverse", 0))
        shape[at] = shape[at] if inverse else step.extents.quotient(shape[at], 2) + 1
    return simple((*shape[:-1], 1 if step.whole("onesided", 0) and step.whole("inverse", 0) else 2), step.first.dtype, work)


def _short_fourier(step: Step) -> Done:
    signal, hop = step.first.shape, (step.extents_of(1) or (1,))[0]
    window_of = step.optional(2)
    frame = (step.extents_of(3) or (window_of.shape[0] if window_of is not None else signal[1],))[0]
    frames = step.extents.quotient(signal[1] - frame, hop) + 1
    bins = step.extents.quotient(frame, 2) + 1 if step.whole("onesided", 1) else frame
    work = Work("fft", (signal[0] * frames, frame), ("fft", "complex"))
    return simple((signal[0], frames, bins, 2), step.first.dtype, work)


def _taper(step: Step) -> Done:
    shape = (step.extents_of(0) or (0,))[:1]
    return simple(tuple(shape), "fp32", elementwise(tuple(shape), 0, 5))


def _mel(step: Step) -> Done:
    bands, length = (step.extents_of(0) or (0,))[0], (step.extents_of(1) or (0,))[0]
    shape = (step.extents.quotient(length, 2) + 1, bands)
    return simple(shape, "fp32", elementwise(shape, 0, 8))


OPERATORS: dict[str, Operator] = {
    "MatMul": _matmul, "MatMulInteger": _matmul, "QLinearMatMul": _matmul, "Gemm": _general, "Conv": _conv,
    "ConvInteger": _conv, "QLinearConv": _conv, "DeformConv": _conv, "ConvTranspose": _conv_transposed, "MaxPool": _pool,
    "AveragePool": _pool, "LpPool": _pool, "GlobalMaxPool": _pool_all, "GlobalAveragePool": _pool_all,
    "GlobalLpPool": _pool_all, "RNN": _recurrent, "GRU": _recurrent, "LSTM": _recurrent, "Einsum": _einsum,
    "Attention": _attention, "RotaryEmbedding": _rotary, "com.microsoft.RotaryEmbedding": _rotary, "Det": _determinant,
    "com.microsoft.Inverse": _inverse, "DFT": _fourier, "STFT": _short_fourier, "HannWindow": _taper,
    "HammingWindow": _taper, "BlackmanWindow": _taper, "MelWeightMatrix": _mel,
}  # fmt: skip
