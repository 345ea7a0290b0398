"""Torch operations that multiply matrices: products, convolutions, attention, recurrent layers. Pure: no torch.

FLOPs follow torch's FlopCounterMode (torch/utils/flop_counter.py), with one exception: the weight gradient of a grouped
convolution does the arithmetic of its forward pass, where that counter multiplies it by the number of groups.
"""

from collections.abc import Callable, Sequence

from core.graph import Shape
from core.symbols import Extent, divided, product
from intake.readers.aten_call import Call, Shaped, Work, axis, broadcast, elements


def product_of(left: Shaped, right: Shape) -> Work:
    """Return the matrix product of a left operand with a shape, by the rules of `torch.matmul`."""
    a, b = left.shape, right
    if len(a) < 1 or len(b) < 1:
        raise ValueError("a product of a tensor without axes")
    if len(b) == 1:
        return Work("matmul", (1, product(a[:-1]), 1, a[-1]), left.dtype)
    if len(a) == 1:
        return Work("matmul", (product(b[:-2]), 1, b[-1], a[0]), left.dtype)
    batch: Extent = 1
    rows: Extent = a[-2]
    for at in range(-max(len(a), len(b)), -2):
        of_left, of_right = (shape[at] if len(shape) >= -at else 1 for shape in (a, b))
        if of_right == 1:
            rows = rows * of_left
        else:
            batch = batch * of_right
    return Work("matmul", (batch, rows, b[-1], a[-1]), left.dtype)


def _pair(left: str, right: str) -> Callable[[Call], tuple[Work, ...]]:
    return lambda call: (product_of(call.tensor(left), call.tensor(right).shape),)


def _linear(call: Call) -> tuple[Work, ...]:
    given, weight = call.tensor("input"), call.tensor("weight")
    width = axis(weight.shape, 0) if len(weight.shape) > 1 else 1
    return (Work("matmul", (1, product(given.shape[:-1]), width, axis(weight.shape, -1)), given.dtype),)


def _linear_backward(call: Call) -> tuple[Work, ...]:
    given, weight = call.tensor("self"), call.tensor("weight")
    rows, (width, depth) = product(given.shape[:-1]), weight.shape
    return Work("matmul", (1, rows, depth, width), given.dtype), Work("matmul", (1, width, depth, rows), given.dtype)


def _outer(call: Call) -> tuple[Work, ...]:
    return (Work("elementwise", (elements(call.outputs[0]), 2, 1), call.outputs[0].dtype),)


def _grouped(call: Call) -> tuple[Work, ...]:
    """Rows, or the axis that is summed, are shared out among the groups: each row meets one matrix."""
    left, right = call.optional("self") or call.tensor("mat_a"), call.optional("mat2") or call.tensor("mat_b")
    if len(left.shape) == 3 and len(right.shape) == 3:
        return (Work("matmul", (left.shape[0], left.shape[1], right.shape[-1], left.shape[-1]), left.dtype),)
    return (Work("matmul", (1, left.shape[-2], right.shape[-1], left.shape[-1]), left.dtype),)


def _grouped_own(call: Call) -> tuple[Work, ...]:
    left, right = call.tensor("input"), call.tensor("weight")
    return (Work("matmul", (1, left.shape[0], right.shape[-1], left.shape[-1]), left.dtype),)


def _grouped_own_backward(call: Call) -> tuple[Work, ...]:
    left, right = call.tensor("input"), call.tensor("weight")
    (rows, depth), width = left.shape, right.shape[-1]
    return Work("matmul", (1, rows, depth, width), left.dtype), Work("matmul", (1, depth, width, rows), left.dtype)


def _letters(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    given, _, result = equation.replace(" ", "").partition("->")
    terms = given.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"einsum {equation!r:.60} of {len(ranks)} operands")
    free = [letter for letter in map(chr, range(0x3B1, 0x3B1 + 24)) if letter not in equation]
    filled: list[str] = []
    for term, rank in zip(terms, ranks, strict=True):
        count = rank - len(term.replace("...", ""))
        filled.append(term.replace("...", "".join(free[len(free) - count:]) if count else ""))
        if len(filled[-1]) != rank:
            raise ValueError(f"einsum {equation!r:.60} with an operand of {rank} axes")
    dotted = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True) if "..." in term]
    longest = max(dotted, default=0)
    if "->" in equation:
        return filled, result.replace("...", "".join(free[len(free) - longest:]) if longest else "")
    joined = "".join(filled)
    return filled, "".join(sorted(letter for letter in set(joined) if joined.count(letter) == 1 or letter in free))


def _einsum(call: Call) -> tuple[Work, ...]:
    equation, operands = call.arguments.get("equation"), call.tensors()
    if not isinstance(equation, str) or not operands or len(operands) > 16:
        raise ValueError("einsum without its equation")
    terms, result = _letters(equation, [len(operand.shape) for operand in operands])
    sizes: dict[str, Extent] = {}
    for term, operand in zip(terms, operands, strict=True):
        sizes.update({letter: extent for letter, extent in zip(term, operand.shape, strict=True)
                      if extent != 1 or letter not in sizes})
    if len(operands) == 1:
        return (Work("reduce", (elements(operands[0]), elements(call.outputs[0])), operands[0].dtype),)
    found: list[Work] = []
    left, dtype = terms[0], next(iter(operands)).dtype
    for at, right in enumerate(terms[1:], 2):
        later = set(result).union(*terms[at:])
        both, kept = set(left) & set(right), [letter for letter in dict.fromkeys(left + right) if letter in later]
        shared, rows, columns, summed = both & later, (set(left) - both) & later, (set(right) - both) & later, both - later
        batch, m, n, k = (product(sizes[letter] for letter in sorted(group)) for group in (shared, rows, columns, summed))
        found.append(Work("matmul", (batch, m, n, k), dtype) if summed else Work("elementwise", (batch * m * n, 2, 1), dtype))
        left = "".join(kept)
    return tuple(found)


def _spatial(shape: Shape) -> tuple[Extent, Extent]:
    """Return height and width; a missing height is 1, a depth is folded into the height."""
    inner = shape[2:]
    return (product(inner[:-1]), inner[-1]) if inner else (1, 1)


def _conv(given: Shape, weight: Shape, result: Shape, groups: int, transposed: bool, dtype: str) -> Work:
    ends = (result, given) if transposed else (given, result)
    (in_height, in_width), (out_height, out_width) = map(_spatial, ends)
    kernel = _spatial(weight)
    dims = (given[0], in_height, in_width, ends[0][1], out_height, out_width, ends[1][1], *kernel, groups)
    return Work("conv", dims, dtype, ("conv3d",) if len(weight) == 5 else ())


def _unbatched(shape: Shape, rank: int) -> Shape:
    return (1, *shape) if len(shape) == rank - 1 else shape


def _convolution(call: Call) -> tuple[Work, ...]:
    given = call.optional("input") or call.tensor("self")
    weight, result = call.tensor("weight"), call.outputs[0]
    transposed = call.flag("transposed") or "transpose" in call.name
    shapes = (_unbatched(shape, len(weight.shape)) for shape in (given.shape, result.shape))
    return (_conv(next(shapes), weight.shape, next(shapes), call.whole("groups", 1), transposed, given.dtype),)


def _convolution_backward(call: Call) -> tuple[Work, ...]:
    gradient, given, weight = call.tensor("grad_output"), call.tensor("input"), call.tensor("weight")
    mask = call.several("output_mask") or (True, True, False)
    one = _conv(given.shape, weight.shape, gradient.shape, call.whole("groups", 1), call.flag("transposed"), given.dtype)
    sums = (Work("reduce", (elements(gradient), gradient.shape[1]), given.dtype),) if len(mask) > 2 and mask[2] is True else ()
    return (one,) * sum(flag is True for flag in mask[:2]) + sums


def attention_of(query: Shaped, key: Shaped, value: Shaped) -> Work:
    """Return attention as one operation; widths of keys and values that differ count with their mean."""
    if len(query.shape) < 3:
        one = attention_of(*(Shaped((1, 1, *shaped.shape), shaped.dtype) for shaped in (query, key, value)))
        return one if len(query.shape) == 2 else Work("attention", one.dims, one.dtype)
    batch, heads, kv_heads = product(query.shape[:-3]), query.shape[-3], key.shape[-3]
    width = query.shape[-1]
    if value.shape[-1] != width:
        width = divided(width + value.shape[-1], 2) or width
    return Work("attention", (batch, heads, kv_heads, query.shape[-2], key.shape[-2], width), query.dtype)


def _attention(call: Call) -> tuple[Work, ...]:
    return (attention_of(call.tensor("query"), call.tensor("key"), call.tensor("value")),)


def _attention_backward(call: Call) -> tuple[Work, ...]:
    """Four products where the forward pass has two; what a kernel computes again is not counted."""
    return _attention(call) * 2


def _recurrent(call: Call) -> tuple[Work, ...]:
    """One node a layer and direction; weights come as (input, recurrent[, bias, bias][, projection]) for each."""
    given = call.tensor("input")
    if "data" in call.overload or len(given.shape) < 2:
        raise ValueError(f"{call.op} over packed sequences")
    first = call.flag("batch_first")
    shape = given.shape if len(given.shape) == 3 else (given.shape[0], 1, given.shape[1])
    steps, batch = (shape[1], shape[0]) if first and len(given.shape) == 3 else (shape[0], shape[1])
    mode = str(call.arguments.get("mode", call.name))
    gates = {"lstm": 4, "gru": 3}.get(mode, 1)
    matrices = [weight for weight in call.several("params") if isinstance(weight, Shaped) and len(weight.shape) == 2]
    projected = mode == "lstm" and len(matrices) > 2 and matrices[2].shape[0] == matrices[1].shape[1]
    stride = 3 if projected else 2
    found: list[Work] = []
    for at in range(0, len(matrices) - 1, stride):
        hidden = divided(matrices[at].shape[0], gates)
        if hidden is None:
            raise ValueError(f"{call.op} with weights of {matrices[at].shape[0]} rows")
        found.append(Work("rnn", (steps, batch, matrices[at].shape[1], hidden, gates), given.dtype, ("serial_scan",)))
    return tuple(found)


def _recurrent_backward(call: Call) -> tuple[Work, ...]:
    return _recurrent(call) * 2


def _scan(call: Call) -> tuple[Work, ...]:
    """A selective scan: the state of each channel moves on with each step, and is read out by a product."""
    given, states = call.tensor("input"), call.tensor("a").shape[-1]
    batch, channels, steps = given.shape
    moved = Work("elementwise", (elements(given) * states, 3, 6), given.dtype, ("serial_scan",))
    return moved, Work("matmul", (batch * steps, channels, 1, states), given.dtype, ("serial_scan",))


def _scan_backward(call: Call) -> tuple[Work, ...]:
    return _scan(call) * 2


def _cell(call: Call) -> tuple[Work, ...]:
    given, weight = call.tensor("input"), call.tensor("w_ih")
    gates = {"lstm_cell": 4, "gru_cell": 3}.get(call.name, 1)
    hidden = divided(weight.shape[0], gates)
    if hidden is None:
        raise ValueError(f"{call.op} with weights of {weight.shape[0]} rows")
    return (Work("rnn", (1, product(given.shape[:-1]), weight.shape[1], hidden, gates), given.dtype, ("serial_scan",)),)


def _bilinear(call: Call) -> tuple[Work, ...]:
    left, weight = call.tensor("input1"), call.tensor("weight")
    rows, (out, in_left, in_right) = product(left.shape[:-1]), weight.shape
    return Work("matmul", (out, rows, in_right, in_left), left.dtype), Work("matmul", (out, rows, 1, in_right), left.dtype)


def _tensordot(call: Call) -> tuple[Work, ...]:
    left, right = call.tensor("self"), call.tensor("other")
    of_left, of_right = (call.axes(name, len(one.shape)) for name, one in (("dims_self", left), ("dims_other", right)))
    rows = product(extent for at, extent in enumerate(left.shape) if at not in of_left)
    columns = product(extent for at, extent in enumerate(right.shape) if at not in of_right)
    return (Work("matmul", (1, rows, columns, product(left.shape[at] for at in of_left)), left.dtype),)


def _distances(call: Call) -> tuple[Work, ...]:
    left, right = call.optional("x1") or call.tensor("x"), call.optional("x2") or call.tensor("y")
    batch = product(broadcast(left.shape[:-2], right.shape[:-2]))
    return (Work("elementwise", (batch * left.shape[-2] * right.shape[-2] * left.shape[-1], 2, 3), left.dtype),)


_KERNELS = ("flash_attention", "efficient_attention", "cudnn_attention", "flash_attention_for_cpu",
            "fused_attention_overrideable")  # fmt: skip
PRODUCTS: dict[str, Callable[[Call], tuple[Work, ...]]] = {
    "mm": _pair("self", "mat2"), "bmm": _pair("self", "mat2"), "addmm": _pair("mat1", "mat2"), "matmul": _pair("self", "other"),
    "baddbmm": _pair("batch1", "batch2"), "addbmm": _pair("batch1", "batch2"), "mv": _pair("self", "vec"),
    "addmv": _pair("mat", "vec"), "dot": _pair("self", "tensor"), "vdot": _pair("self", "other"), "inner": _pair("self", "other"),
    "__matmul__": _pair("self", "other"), "_int_mm": _pair("self", "mat2"), "_scaled_mm": _pair("self", "mat2"),
    "_addmm_activation": _pair("mat1", "mat2"), "_sparse_mm": _pair("sparse", "dense"), "outer": _outer, "ger": _outer,
    "linear": _linear, "linear_backward": _linear_backward, "mkldnn_linear": _linear, "_grouped_mm": _grouped,
    "_scaled_grouped_mm": _grouped, "grouped_mm": _grouped, "einsum": _einsum, "bilinear": _bilinear, "tensordot": _tensordot,
    "cdist": _distances, "_cdist_forward": _distances, "_euclidean_dist": _distances,
    "grouped_matmul": _grouped_own, "grouped_matmul_backward": _grouped_own_backward,
    "attention": _attention, "attention_backward": _attention_backward, "scaled_dot_product_attention": _attention,
    "lstm": _recurrent, "gru": _recurrent, "rnn_tanh": _recurrent, "rnn_relu": _recurrent,
    "lstm_cell": _cell, "gru_cell": _cell, "rnn_tanh_cell": _cell, "rnn_relu_cell": _cell,
    "recurrent": _recurrent, "recurrent_backward": _recurrent_backward,
    "selective_scan": _scan, "selective_scan_backward": _scan_backward,
    "convolution_backward": _convolution_backward, "_scaled_dot_product_attention_math": _attention,
    **{f"conv{rank}d": _convolution for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d": _convolution for rank in (1, 2, 3)},
    **dict.fromkeys((
        "convolution", "_convolution", "convolution_overrideable", "cudnn_convolution", "mkldnn_convolution",
        "miopen_convolution", "_conv_depthwise2d", "slow_conv3d",
        "cudnn_convolution_transpose", "thnn_conv2d", "conv_depthwise3d"), _convolution),
    **{f"_scaled_dot_product_{kernel}": _attention for kernel in _KERNELS},
    **{f"_scaled_dot_product_{kernel}_backward": _attention_backward for kernel in _KERNELS},
}  # fmt: skip
"""By the name of the operation; each raises ValueError where the call lacks what it needs."""
