"""Operators of the domain `com.microsoft` that optimised transformers and quantised models are made of.

Source: ONNX Runtime's docs/ContribOperators.md
"""

from core.graph import Shape
from core.symbols import Extent, product
from intake.readers.draft import Done, Result, Value, Work
from intake.readers.onnx_dense import mean_width, places
from intake.readers.operations import attention, convolution, elementwise, matmul, norm, pooling
from intake.readers.operator_step import Operator, Step, simple
from intake.readers.symbolic import Unclear


def _named(names: str) -> list[str]:
    return [f"com.microsoft.{name}" for name in names.split()]


def _attention(step: Step) -> Done:
    """Projection of queries, keys and values, and attention, as one operator."""
    data, weight = step.shape(0), step.shape(1)
    batch, length, width = _three(step.first)
    heads, sizes = step.whole("num_heads"), step.wholes("qkv_hidden_sizes")
    total = weight[1]
    third = step.extents.quotient(total, 3)
    query_width, value_width = (sizes[0], sizes[2]) if sizes and len(sizes) == 3 else (third, third)
    past = step.optional(8 if "QAttention" in step.op else 4)
    keys = length if past is None else past.shape[3] + length
    head, value_head = step.extents.quotient(query_width, heads), step.extents.quotient(value_width, heads)
    results = (Result((*data[:2], value_width), step.first.dtype if "Q" not in step.op else "fp32"),
               Result((2, batch, heads, keys, head), "fp32"))  # fmt: skip
    project = Work("matmul", (1, batch * length, total, width), between=(batch, length, total))
    attend = attention(batch, heads, heads, length, keys, mean_width(step, head, value_head))
    return Done(results[: step.count], (project, attend))


def _three(value: Value) -> tuple[Extent, Extent, Extent]:
    if len(value.shape) != 3:
        raise Unclear(f"attention over {len(value.shape)} axes")
    return value.shape[0], value.shape[1], value.shape[2]


def _multi_head(step: Step) -> Done:
    """Attention of queries, keys and values that are there already: apart, or packed as (batch, length, heads, 3, width)."""
    query, heads = step.shape(0), step.whole("num_heads")
    key, value = step.optional(1), step.optional(2)
    if len(query) == 5:
        batch, length, width = query[0], query[1], query[4]
        keys, value_width = length, width
    else:
        batch, length, total = _three(step.first)
        width = step.extents.quotient(total, heads)
        if key is None:
            raise Unclear("attention without keys")
        if len(key.shape) == 5:
            keys, value_width = key.shape[1], key.shape[4]
        elif len(key.shape) == 4:
            keys, value_width = key.shape[2], value.shape[3] if value is not None else key.shape[3]
        else:
            keys = key.shape[1]
            value_width = step.extents.quotient(value.shape[2], heads) if value is not None else width
    past = step.optional(6)
    keys = keys if past is None else keys + past.shape[2]
    cache = tuple(Result((batch, heads, keys, one), step.first.dtype) for one in (width, value_width))
    results = (Result((batch, length, value_width * heads), step.first.dtype), *cache, *cache)
    return Done(results[: step.count], (attention(batch, heads, heads, length, keys, mean_width(step, width, value_width)),))


def _grouped(step: Step) -> Done:
    """Grouped-query attention: keys and values apart or behind the queries, with the cache of what came before."""
    batch, length, total = _three(step.first)
    heads, kv_heads = step.whole("num_heads"), step.whole("kv_num_heads")
    packed = step.optional(1) is None
    width = step.extents.quotient(total, heads + 2 * kv_heads if packed else heads)
    past = step.optional(3)
    keys = length if past is None else past.shape[2] + length
    cache = Result((batch, kv_heads, keys, width), step.first.dtype)
    results = (Result((batch, length, heads * width), step.first.dtype), cache, cache)
    work: tuple[Work, ...] = (attention(batch, heads, kv_heads, length, keys, width),)
    if step.whole("do_rotary", 0):
        turned = (batch, length, heads * width)
        work = (Work("elementwise", (product(turned), 3, 3), between=turned), *work)
    return Done(results[: step.count], work)


def _skip_norm(step: Step) -> Done:
    data = step.first.shape
    rest = (*data[:-1], 1)
    bias = step.optional(3 if "Simplified" in step.op else 4) is not None
    results = (Result(data, step.first.dtype), Result(rest, "fp32"), Result(rest, "fp32"), Result(data, step.first.dtype))
    added = Work("elementwise", (product(data), 3 if bias else 2, 2 if bias else 1), between=data)
    return Done(results[: step.count], (added, norm(data, len(data) - 1)))


def _plain_norm(step: Step) -> Done:
    data = step.first.shape
    rest = (*data[:-1], 1)
    return Done((Result(data, step.first.dtype), *(Result(rest, "fp32"),) * (step.count - 1)), (norm(data, len(data) - 1),))


def _embed_norm(step: Step) -> Done:
    tokens, table = step.shape(0), step.value(2)
    shape = (*tokens, table.shape[1])
    rows = product(tokens)
    work = [Work("embedding", (rows, table.shape[1], table.shape[0]), ("gather",), between=shape)]
    for place in (3, 4):
        other = step.optional(place)
        if other is not None:
            work.append(Work("embedding", (rows, other.shape[1], other.shape[0]), ("gather",), between=shape))
            work.append(Work("elementwise", (product(shape), 2, 1), between=shape))
    results = (Result(shape, table.dtype), Result(tokens[:1], "int32"), Result(shape, table.dtype))
    return Done(results[: step.count], (*work, norm(shape, len(shape) - 1)))


def _biased(step: Step) -> Done:
    shape = step.first.shape
    operands = sum(one is not None for one in step.inputs)
    if step.op.endswith("BiasSplitGelu"):
        shape = (*shape[:-1], step.extents.quotient(shape[-1], 2))
    return simple(shape, step.first.dtype, elementwise(shape, operands, operands - 1 + (8 if "Gelu" in step.op else 0)))


def _fused_matmul(step: Step) -> Done:
    left, right = step.shape(0), step.shape(1)
    left = (*left[:-2], left[-1], left[-2]) if step.whole("transA", 0) and len(left) > 1 else left
    right = (*right[:-2], right[-1], right[-2]) if step.whole("transB", 0) and len(right) > 1 else right
    shape, work = matmul(step.extents, left, right)
    dtype = "fp32" if "Integer" in step.op or "Dynamic" in step.op else step.first.dtype
    return simple(shape, dtype, work)


def _narrow_matmul(step: Step) -> Done:
    """Weights of a few bits, in blocks with a scale each: n columns of k."""
    data = step.first.shape
    wide, deep = step.whole("N"), step.whole("K")
    step.extents.same(data[-1], deep, "a matrix product")
    return simple((*data[:-1], wide), step.first.dtype, Work("matmul", (1, product(data[:-1]), wide, deep)))


def _quantised_gemm(step: Step) -> Done:
    left, right = step.shape(0), step.shape(3)
    m, k = reversed(left) if step.whole("transA", 0) else left
    n = right[0] if step.whole("transB", 0) else right[1]
    dtype = step.value(8).dtype if step.optional(8) is not None else "fp32"
    return simple((m, n), dtype, Work("matmul", (1, m, n, k)))


def _quantised_two(step: Step) -> Done:
    shape = step.extents.broadcast(step.shape(0), step.shape(3))
    return simple(shape, step.first.dtype, elementwise(shape, 2, 5))


def _quantised_one(step: Step) -> Done:
    return simple(step.first.shape, step.first.dtype, elementwise(step.first.shape, 1, 7))


def _quantised_softmax(step: Step) -> Done:
    shape = step.first.shape
    return simple(shape, step.first.dtype, Work("softmax", (product(shape[:-1]), shape[-1])))


def _quantised_concat(step: Step) -> Done:
    axis, parts = step.whole("axis"), [step.shape(place) for place in range(2, len(step.inputs), 3)]
    shape = list(parts[0])
    shape[axis] = sum((one[axis] for one in parts), 0)
    return simple(tuple(shape), step.value(2).dtype, elementwise(tuple(shape), 1, 2))


def _quantised_pool(step: Step) -> Done:
    data = step.shape(0)
    last = bool(step.whole("channels_last", 0))
    inner = data[1:-1] if last else data[2:]
    kernel = step.wholes("kernel_shape") or tuple(step.number_of(one) for one in inner)
    places_of: Shape = tuple(1 for _ in inner) if "Global" in step.op else places(step, inner, kernel)
    shape = (data[0], *places_of, data[-1]) if last else (*data[:2], *places_of)
    return simple(shape, step.first.dtype, pooling(shape, kernel))


def _convolution(step: Step) -> Done:
    """Convolutions with what follows them; in `Nhwc` ones the channels are the last axis."""
    data, weight = step.shape(0), step.shape(1)
    last = "Nhwc" in step.op
    if len(data) < 3 or len(weight) != len(data):
        raise Unclear(f"a convolution of {len(data)} axes with weights of {len(weight)}")
    inner, channels = (data[1:-1], data[-1]) if last else (data[2:], data[1])
    kernel = tuple(step.number_of(one) for one in (weight[1:-1] if last else weight[2:]))
    outer = places(step, inner, kernel)
    work = convolution(data[0], inner, outer, (channels, weight[0]), kernel, step.whole("group", 1))
    return simple((data[0], *outer, weight[0]) if last else (data[0], weight[0], *outer), step.first.dtype, work)


def _group_norm(step: Step) -> Done:
    data, groups = step.first.shape, step.whole("groups")
    rows = data[0] * groups
    results = (Result(data, step.first.dtype), Result(data, step.first.dtype))
    work = Work("norm", (rows, step.extents.quotient(product(data), rows)))
    skip = (Work("elementwise", (product(data), 2, 1), between=data),) if "Skip" in step.op else ()
    return Done(results[: step.count], (*skip, work))


def _experts(step: Step) -> Done:
    """Each row is multiplied by the weights of its `k` experts alone."""
    data, router, inner = step.first.shape, step.shape(1), step.shape(2)
    rows, chosen, width = product(data[:-1]), step.whole("k", 1), data[-1]
    experts = router[-1]
    packed = 8 // step.whole("expert_weight_bits", 8) if "QMoE" in step.op else 1
    hidden = inner[1] if inner[2] * packed == width else inner[2] * packed
    paired = step.text("activation_type") == "swiglu" and step.whole("swiglu_fusion", 0)
    narrow = step.extents.quotient(hidden, 2) if paired else hidden
    route = Work("sort", (rows, experts), ("sort",), between=(rows, chosen))
    up = Work("matmul", (1, rows * chosen, hidden, width), ("gather",), between=(rows, chosen, hidden))
    act = Work("elementwise", (rows * chosen * narrow, 1, 5), between=(rows, chosen, narrow))
    gate = (Work("matmul", (1, rows * chosen, hidden, width), between=(rows, chosen, hidden)),)
    third = gate if step.optional(6 if "QMoE" not in step.op else 8) is not None else ()
    down = Work("matmul", (1, rows * chosen, width, narrow))
    return simple(data, step.first.dtype, route, up, *third, act, down)


def _position_bias(step: Step) -> Done:
    table, queries, keys = step.shape(0), step.extents_of(1) or (0,), step.extents_of(2) or (0,)
    shape = (1, table[1], queries[0], keys[0])
    return simple(shape, step.first.dtype, Work("gather", (queries[0] * keys[0], table[1]), ("gather",)))


def _quantised_columns(step: Step) -> Done:
    table, picked = step.first, step.value(1)
    width = table.shape[-1] * (8 // step.whole("bits", 4)) if table.dtype in {"uint8", "int8"} else table.shape[-1]
    work = Work("embedding", (product(picked.shape), width, table.shape[0]), ("gather",))
    return simple((*picked.shape, width), step.value(2).dtype, work)


OPERATORS: dict[str, Operator] = {
    **dict.fromkeys(_named("Attention QAttention"), _attention),
    **dict.fromkeys(_named("MultiHeadAttention DecoderMaskedMultiHeadAttention"), _multi_head),
    **dict.fromkeys(_named("GroupQueryAttention SparseAttention"), _grouped),
    **dict.fromkeys(_named("SkipLayerNormalization SkipSimplifiedLayerNormalization"), _skip_norm),
    **dict.fromkeys(["SimplifiedLayerNormalization", *_named("SimplifiedLayerNormalization LayerNormalization")], _plain_norm),
    **dict.fromkeys(_named("EmbedLayerNormalization"), _embed_norm),
    **dict.fromkeys(_named("FastGelu BiasGelu BiasAdd BiasSplitGelu"), _biased),
    **dict.fromkeys(_named("FusedMatMul TransposeMatMul MatMulIntegerToFloat DynamicQuantizeMatMul"), _fused_matmul),
    **dict.fromkeys(_named("FusedGemm"), _fused_matmul),
    **dict.fromkeys(_named("MatMulNBits MatMulBnb4 MatMulFpQ4"), _narrow_matmul),
    **dict.fromkeys(_named("QGemm"), _quantised_gemm),
    **dict.fromkeys(_named("QLinearAdd QLinearMul"), _quantised_two),
    **dict.fromkeys(_named("QLinearSigmoid QLinearLeakyRelu"), _quantised_one),
    **dict.fromkeys(_named("QLinearSoftmax"), _quantised_softmax),
    **dict.fromkeys(_named("QLinearConcat"), _quantised_concat),
    **dict.fromkeys(_named("QLinearAveragePool QLinearGlobalAveragePool"), _quantised_pool),
    **dict.fromkeys(_named("FusedConv NhwcFusedConv NhwcConv"), _convolution),
    **dict.fromkeys(_named("GroupNorm SkipGroupNorm"), _group_norm),
    **dict.fromkeys(_named("MoE QMoE"), _experts),
    **dict.fromkeys(_named("RelativePositionBias"), _position_bias),
    **dict.fromkeys(_named("GatherBlockQuantized"), _quantised_columns),
}
