"""What each of XLA's operations costs, by its name in StableHLO; names of other dialects and of JAX's primitives come translated.

FLOPs as torch's FlopCounterMode has them, so that one model gives the same figures from several formats: a convolution whose
operand is spread out with zeros, or padded to the full, is counted for the places that hold data.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.graph import Shape
from core.symbols import Extent, product
from intake.readers.draft import Work
from intake.readers.operations import custom, elementwise, reduction
from intake.readers.stablehlo_program import wholes
from intake.readers.symbolic import Extents, Unclear


@dataclass(frozen=True, slots=True)
class Step:
    """One operation with the shapes that it has here.

    Args:
        op: its name in StableHLO.
        operands, results: shape and dtype of each.
        attributes: of it.
        read: operands that are more than one number repeated.
        extents: the program's symbols.
    """

    op: str
    operands: tuple[tuple[Shape, str], ...]
    results: tuple[tuple[Shape, str], ...]
    attributes: Mapping[str, object]
    read: int
    extents: Extents

    def wholes(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Return an attribute that is a list of whole numbers, or one."""
        return wholes(self.attributes, name) or default

    @property
    def shape(self) -> Shape:
        """Shape of the first result."""
        return self.results[0][0] if self.results else ()


@dataclass(frozen=True, slots=True)
class Made:
    """What an operation does.

    Args:
        work: arithmetic and traffic; None for a view.
        in_place: operand that the result takes the memory of when nothing else needs it; None for none.
        note: what people should know of it; empty for nothing.
    """

    work: Work | None
    in_place: int | None = None
    note: str = ""


_FLOPS: dict[int, tuple[str, ...]] = {
    0: ("convert", "copy", "reverse", "concatenate", "pad", "dynamic_pad", "iota", "dynamic_iota", "real", "imag",
        "reduce_precision",         "dynamic_slice", "uniform_quantize", "uniform_dequantize", "partition_id",
        "replica_id"),
    1: ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "negate", "abs", "sign", "floor", "ceil",
        "round_nearest_afz", "round_nearest_even", "and", "or", "xor", "not", "shift_left", "shift_right_logical", "integer_pow",
        "shift_right_arithmetic", "compare", "select", "clamp", "is_finite", "popcnt", "count_leading_zeros", "complex", "conj",
        "square", "next_after", "is_inf", "is_pos_inf", "is_neg_inf"),
    4: ("exponential", "exponential_minus_one", "log", "log_plus_one", "sqrt", "rsqrt", "cbrt", "power", "exp2"),
    5: ("tanh", "logistic", "sine", "cosine", "tan", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
    8: ("erf", "erf_inv", "erfc", "atan2", "lgamma", "digamma", "polygamma", "zeta", "igamma", "igammac", "igamma_grad_a",
        "regularized_incomplete_beta", "bessel_i0e", "bessel_i1e", "bessel_i1", "random_gamma_grad"),
}  # fmt: skip
FLOPS: dict[str, int] = {name: flop for flop, names in _FLOPS.items() for name in names}
"""FLOPs of one element; 0 for copies."""
VIEWS = frozenset({
    "reshape", "dynamic_reshape", "transpose", "broadcast_in_dim", "dynamic_broadcast_in_dim", "broadcast", "slice",
    "real_dynamic_slice", "optimization_barrier", "bitcast_convert", "tuple", "get_tuple_element", "after_all", "create_token",
    "get_dimension_size", "set_dimension_size", "sharding_constraint", "mesh", "reshard", "propagation_barrier", "sharding_group",
})  # fmt: skip
"""Operations that XLA does without moving data, by a layout or inside what reads them."""
COLLECTIVES = frozenset({
    "all_reduce", "all_gather", "all_to_all", "reduce_scatter", "collective_permute", "collective_broadcast", "ragged_all_to_all",
})  # fmt: skip
_SAME = frozenset({"all_reduce", "collective_permute", "collective_broadcast"})
_HOST = frozenset({"infeed", "outfeed", "send", "recv", "host_callback"})


def made_of(step: Step) -> Made:
    """Return what an operation does.

    Raises:
        Unclear: its shapes do not go together.
    """
    if step.op in VIEWS:
        return Made(None)
    if step.op in FLOPS:
        return Made(elementwise(step.shape, step.read, FLOPS[step.op]))
    if step.op in COLLECTIVES:
        work = elementwise(step.shape, step.read, 0)
        note = f"a collective operation, {step.op}, that is not counted as communication"
        return Made(work, 0 if step.op in _SAME else None, note)
    rule = _RULES.get(step.op)
    if rule is not None:
        return rule(step)
    return Made(custom(step.op, [shape for shape, _ in step.operands], [shape for shape, _ in step.results]))


def _dot(step: Step) -> Made:
    (left, _), (right, _) = step.operands[:2]
    batches, contracted = step.wholes("lhs_batching_dimensions"), step.wholes("lhs_contracting_dimensions")
    gone = {*step.wholes("rhs_batching_dimensions"), *step.wholes("rhs_contracting_dimensions")}
    rows = product(extent for at, extent in enumerate(left) if at not in {*batches, *contracted})
    columns = product(extent for at, extent in enumerate(right) if at not in gone)
    dims = (product(left[at] for at in batches), rows, columns, product(left[at] for at in contracted))
    return Made(Work("matmul", dims))


def _plain_dot(step: Step) -> Made:
    (left, _), (right, _) = step.operands[:2]
    rows, columns = product(left[:-1]), product(right[1:])
    return Made(Work("matmul", (1, rows, columns, left[-1] if left else 1)))


def _ragged_dot(step: Step) -> Made:
    """Rows are shared out among groups: each is multiplied with the matrix of its own group alone."""
    (left, _), (right, _) = step.operands[:2]
    return Made(Work("matmul", (1, product(left[:-1]), right[-1], left[-1])))


def _convolution(step: Step) -> Made:
    """A multiplication that takes part is told by any two of its places: in the operand, in the window, in the result.

    So no more are made than the least of the three products of two of them, however much is padded or spread with zeros. Padding
    of a plain convolution is counted nevertheless, as FlopCounterMode does. Source: github.com/pytorch/pytorch,
    torch/utils/flop_counter.py, conv_flop_count and conv_backward_flop.
    """
    (left, _), (right, _) = step.operands[:2]
    inner = tuple(left[at] for at in step.wholes("input_spatial_dimensions"))
    outer = tuple(step.shape[at] for at in step.wholes("output_spatial_dimensions"))
    kernel = tuple(right[at] for at in step.wholes("kernel_spatial_dimensions"))
    (groups,) = step.wholes("feature_group_count", (1,))
    each = right[step.wholes("kernel_input_feature_dimension")[0]]
    channels = right[step.wholes("kernel_output_feature_dimension")[0]]
    batch = step.shape[step.wholes("output_batch_dimension")[0]]
    if not inner:
        return Made(Work("matmul", (groups, batch, step.extents.quotient(channels, groups), each)))
    marks = ("conv3d",) if len(inner) == 3 else ()
    result, window, operand = (step.extents.at(product(sizes)) for sizes in (outer, kernel, inner))
    spread = any(one > 1 for one in step.wholes("lhs_dilation"))
    if spread and operand * result < min(result * window, operand * window):  # gradient of a transposed convolution's weights
        dims = (channels, *_plane(kernel), each * groups, *_plane(outer), batch, *_plane(inner), groups)
    elif result > operand and (spread or window < operand):  # transposed, or the gradient of an operand
        dims = (batch, *_plane(outer), channels, *_plane(inner), each * groups, *_plane(kernel), groups)
    else:
        dims = (batch, *_plane(inner), each * groups, *_plane(outer), channels, *_plane(kernel), groups)
    return Made(Work("conv", dims, marks))


def _plane(sizes: Shape) -> tuple[Extent, Extent]:
    return product(sizes[:-1]), sizes[-1]


def _reduce(step: Step) -> Made:
    operands = max(1, len(step.operands) // 2)
    return Made(Work("reduce", (product(step.operands[0][0]) * operands, product(step.shape))))


def _reduce_window(step: Step) -> Made:
    """A window as wide as its axis is a running sum, for which there is a better way than to add up every window."""
    shape, window = step.operands[0][0], step.wholes("window_dimensions")
    if shape == step.shape and any(size == extent and size > 1 for size, extent in zip(window, shape, strict=False)):
        return Made(reduction(shape, shape))
    return Made(Work("reduce", (product(step.shape) * product(window), product(step.shape))))


def _select_and_scatter(step: Step) -> Made:
    source = product(step.operands[1][0])
    return Made(Work("reduce", (source * product(step.wholes("window_dimensions")), product(step.shape))))


def _gather(step: Step) -> Made:
    offsets = step.wholes("offset_dims")
    width = product(step.shape[at] for at in offsets)
    rows = product(extent for at, extent in enumerate(step.shape) if at not in offsets)
    return Made(Work("gather", (rows, width), ("gather",)))


def _scatter(step: Step) -> Made:
    count = len(step.results)
    updates = step.operands[count + 1][0]
    window = step.wholes("update_window_dims")
    rows = product(extent for at, extent in enumerate(updates) if at not in window)
    return Made(Work("scatter", (rows, product(updates[at] for at in window)), ("scatter",)), in_place=0)


def _update_slice(step: Step) -> Made:
    return Made(elementwise(step.operands[1][0], 1, 0), in_place=0)


def _sort(step: Step) -> Made:
    shape = step.operands[0][0]
    (axis,) = step.wholes("dimension", (-1,))
    width = shape[axis] if shape else 1
    rows = product(extent for at, extent in enumerate(shape) if at != axis % max(len(shape), 1))
    return Made(Work("sort", (rows, width), ("sort",)))


def _fft(step: Step) -> Made:
    lengths = step.wholes("fft_length")
    shape = step.operands[0][0]
    width: Extent = product(lengths) if lengths else shape[-1]
    return Made(Work("fft", (product(shape[: len(shape) - max(len(lengths), 1)]), width), ("fft",)))


def linalg(shape: Shape) -> Made:
    """Return the work of a factorisation of matrices of a shape."""
    if len(shape) < 2:
        raise Unclear("linear algebra on something that is no matrix")
    rows, columns = shape[-2:]
    both_known = isinstance(rows, int) and isinstance(columns, int)
    least = min(rows, columns) if both_known and isinstance(rows, int) and isinstance(columns, int) else columns
    return Made(Work("linalg", (product(shape[:-2]), least), ("linalg",)))


def _norm(step: Step) -> Made:
    shape = step.operands[0][0]
    (feature,) = step.wholes("feature_index", (-1,))
    return Made(Work("norm", (product(extent for at, extent in enumerate(shape) if at != feature % len(shape)), shape[feature])))


def _random(step: Step) -> Made:
    shape = step.results[-1][0] if step.results else ()
    return Made(elementwise(shape, 0, 1, "random"))


def _host(step: Step) -> Made:
    moved = sum((product(shape) for shape, dtype in (*step.operands, *step.results) if dtype != "token"), 0)
    return Made(Work("host_sync", (moved,), ("host_read",)))


def _map(step: Step) -> Made:
    (each,) = step.wholes("operations", (1,))
    return Made(elementwise(step.shape, step.read, each))


def attention(queries: Shape, keys: Shape, result: Shape) -> Made:
    """Return the work of fused attention, from operands (batch, time, heads, width), or with time and heads the other way round.

    Args:
        queries, keys: shapes.
        result: (batch, heads, time, width), as cuDNN gives it.
    """
    if len(queries) != 4 or len(keys) != 4 or len(result) != 4:
        raise Unclear("fused attention on other than four axes")
    time, heads = (2, 1) if queries[1:3] == result[1:3] else (1, 2)
    return Made(Work("attention", (queries[0], queries[heads], keys[heads], queries[time], keys[time], queries[3])))


def _rnn(step: Step) -> Made:
    """An LSTM of cuDNN as JAX calls it: operand (batch, steps, inputs), sizes among the attributes."""
    (hidden,) = step.wholes("hidden_size")
    batch, steps, inputs = step.operands[0][0]
    (layers,) = step.wholes("num_layers", (1,))
    ways = 2 if step.attributes.get("bidirectional") == 1 else 1
    return Made(Work("rnn", (steps * layers * ways, batch, inputs, hidden, 4), ("serial_scan",)))


def _linalg(step: Step) -> Made:
    return linalg(step.operands[0][0])


_RULES: dict[str, Callable[[Step], Made]] = {
    "dot_general": _dot, "dot": _plain_dot, "ragged_dot": _ragged_dot, "convolution": _convolution, "dynamic_conv": _convolution,
    "reduce": _reduce, "reduce_window": _reduce_window, "select_and_scatter": _select_and_scatter, "gather": _gather,
    "dynamic_gather": _gather, "torch_index_select": _gather, "scatter": _scatter, "dynamic_update_slice": _update_slice,
    "sort": _sort, "top_k": _sort, "fft": _fft, "cholesky": _linalg, "triangular_solve": _linalg, "linalg": _linalg,
    "batch_norm_training": _norm, "batch_norm_inference": _norm, "batch_norm_grad": _norm, "rng_bit_generator": _random,
    "rng": _random, "map": _map, "rnn": _rnn,
    **dict.fromkeys(_HOST, _host),
    "cumulative": lambda step: Made(reduction(step.shape, step.shape)),
}  # fmt: skip


def shapes(items: Sequence[tuple[Shape, str]]) -> list[Shape]:
    """Return the shapes alone."""
    return [shape for shape, _ in items]
