"""Operations that XLA's CPU compiler writes out as others before it fuses: products, convolutions, reductions, pooling backwards.

Sources (github.com/openxla/xla): dot_decomposer.cc and transpose_folding.cc; cpu/conv_canonicalization.cc;
convolution_group_converter.cc; reduce_window_rewriter.cc;
tree_reduction_rewriter.cc with cpu/ynn_support.cc; select_and_scatter_expander.cc;
algebraic_simplifier.cc (a convolution of 1 x 1 is a product where no library takes it).
"""

from collections.abc import Mapping
from math import prod
from zlib import crc32

from intake.xla_cpu.hlo import Maker, Op, Sizes, spread
from intake.xla_cpu.library import takes_convolution, takes_reduction

WINDOW = 32
"""Axes longer than this are summed in windows of so many first (TreeReductionRewriter)."""
STRETCH = 16
"""Elements of which running sums are made first (ReduceWindowRewriter, `base_length`)."""
Numbers = Mapping[str, tuple[int, ...]]


def product(make: Maker, left: int, right: int, numbers: Numbers, shape: Sizes, dtype: str) -> int:
    """Add a product of matrices: rows first on the left, columns last on the right, each turned round where it is not so.

    A matrix that only has to be turned over is read so by the product; one of several axes is copied.
    """
    lead, below = numbers.get("lhs_batching_dimensions", ()), numbers.get("lhs_contracting_dimensions", ())
    other, over = numbers.get("rhs_batching_dimensions", ()), numbers.get("rhs_contracting_dimensions", ())
    rows = tuple(axis for axis in range(len(make[left].shape)) if axis not in {*lead, *below})
    columns = tuple(axis for axis in range(len(make[right].shape)) if axis not in {*other, *over})
    sizes = [make[left].shape[axis] for axis in lead]
    m, k, n = (prod(make[at].shape[axis] for axis in axes) for at, axes in ((left, rows), (left, below), (right, columns)))
    first, turned = _matrix(make, left, (lead, rows, below), (*sizes, m, k))
    second, over_turned = _matrix(make, right, (other, over, columns), (*sizes, k, n))
    flags = {"m": (m,), "k": (k,), "n": (n,), "turned": (int(turned), int(over_turned)), "lead": (len(lead),)}
    return make.reshape(make.add(Op("dot", (first, second), (*sizes, m, n), dtype, flags)), shape)


def _matrix(make: Maker, at: int, axes: tuple[Sizes, Sizes, Sizes], shape: Sizes) -> tuple[int, bool]:
    lead, rows, columns = axes
    order = (*lead, *rows, *columns)
    source = make[at].shape
    wide = [axis for axis in order if source[axis] != 1]
    straight = wide == sorted(wide)
    plain = len(rows) == len(columns) == 1 and (*lead, *columns, *rows) == tuple(range(len(source)))
    op = make[at]
    swap = (*range(len(lead)), len(lead) + 1, len(lead))
    over = op.name == "transpose" and op.attributes["permutation"] == swap
    if over and (straight or plain) and op.shape in {shape, tuple(shape[axis] for axis in swap)}:
        return op.operands[0], straight  # turned over once, or twice, which is not at all
    if not straight and plain:  # the product reads it turned over
        return at, True
    return make.reshape(make.transpose(at, order), shape), False


def folded(make: Maker, at: int, order: Sizes) -> int | None:
    """Return a product made the other way round in place of turning its result over; None where something else is turned.

    Args:
        make: where it is.
        at: what is turned.
        order: of its axes afterwards.
    """
    op = make[make.body.root(at)]
    lead = op.attributes.get("lead", (0,))[0] if op.name == "dot" else -1
    shape = make[at].shape
    if lead < 0 or op.shape != shape or order != (*range(lead), lead + 1, lead):
        return None
    left, right = op.attributes["turned"]
    flags = {**op.attributes, "m": op.attributes["n"], "n": op.attributes["m"], "turned": (1 - right, 1 - left)}
    return make.add(Op("dot", (op.operands[1], op.operands[0]), tuple(shape[axis] for axis in order), op.dtype, flags))


def convolution(make: Maker, left: int, right: int, numbers: Numbers, shape: Sizes, dtype: str) -> int:
    """Add a convolution over images with channels last and kernels with filters last; what lies otherwise is copied so."""
    one = {name: value[0] for name, value in numbers.items() if len(value) == 1}
    place, kernel, out = (numbers[f"{name}_spatial_dimensions"] for name in ("input", "kernel", "output"))
    image, ends = make[left], (one["input_batch_dimension"], one["input_feature_dimension"])
    if image.name == "pad" and make.is_constant(image.operands[1]):  # the convolution pads by itself
        inner = make[image.operands[0]].shape
        if all(inner[axis] == image.shape[axis] for axis in ends):
            left, numbers = image.operands[0], {**numbers, "padding": (1,)}
    first = make.transpose(left, (one["input_batch_dimension"], *place, one["input_feature_dimension"]))
    second = make.transpose(right, (*kernel, one["kernel_input_feature_dimension"], one["kernel_output_feature_dimension"]))
    order = (one["output_batch_dimension"], *out, one["output_feature_dimension"])
    back = tuple(order.index(axis) for axis in range(len(order)))
    made = tuple(shape[axis] for axis in order)
    groups, batches = one.get("feature_group_count", 1), one.get("batch_group_count", 1)
    single = batches > 1 and make[first].shape[0] == batches
    if single:
        made = (batches, *made[1:])
    elif batches > 1:  # written without groups: both operands get one more axis
        first, second = (_regrouped(make, one_side, batches) for one_side in (first, second))
    ones = (1,) * len(place)
    dilated = numbers.get("lhs_dilation", ones) != ones or any(numbers.get("window_reversal", ())) or (batches > 1 and not single)
    op = Op("convolution", (first, second), made, dtype, {"dilated": (int(dilated),)})
    same = all(numbers.get(name, ones) == ones for name in ("window_strides", "rhs_dilation")) and not any(
        numbers.get("padding", ())
    )
    narrow = set(make[second].shape[: len(place)]) <= {1} and not takes_convolution(op, make[first].shape, make[second].shape)
    if same and narrow and not dilated and groups == batches == 1:
        k, n = make[second].shape[-2:]
        rows = prod(made[:-1])
        flags = {"m": (rows,), "k": (k,), "n": (n,), "turned": (0, 0), "lead": (0,)}
        flat = (make.reshape(first, (rows, k)), make.reshape(second, (k, n)))
        return make.transpose(make.reshape(make.add(Op("dot", flat, (rows, n), dtype, flags)), made), back)
    at = make.transpose(make.add(op), back)
    return _diagonal(make, at, order[0], order[-1], shape) if single else at


def _diagonal(make: Maker, at: int, axis: int, other: int, shape: Sizes) -> int:
    """Keep of what each channel makes of every other what it makes of its own: gradients of kernels of one channel each."""
    op = make[at]
    places = tuple(make.add(Op("iota", (), op.shape, "int32", {"axis": (one,)})) for one in (axis, other))
    zero = make.scalar(op.dtype)
    own = make.add(Op("compare", places, op.shape, "bool"))
    kept = make.add(Op("select", (own, at, make.broadcast(zero, op.shape, ())), op.shape, op.dtype))
    return make.reshape(reduction(make, kept, zero, (axis,), "add"), shape)


def _regrouped(make: Maker, at: int, groups: int) -> int:
    op = make[at]
    return make.add(Op("transpose", (at,), op.shape, op.dtype, {"permutation": (), "groups": (groups,)}))


def reduction(make: Maker, at: int, start: int, axes: Sizes, kind: str) -> int:
    """Add a reduction; one over long axes that no library takes is done in windows first, whose sums are stored."""
    op = make[at]
    kept = tuple(size for axis, size in enumerate(op.shape) if axis not in axes)
    if all(op.shape[axis] == 1 for axis in axes):
        return make.reshape(at, kept)
    flags = {"axes": axes, "kind": (crc32(kind.encode()),)}
    if max(op.shape[axis] for axis in axes) > WINDOW and not takes_reduction(make, at, kind):
        windows = tuple(-(-size // WINDOW) if axis in axes and size > WINDOW else 1 if axis in axes else size
                        for axis, size in enumerate(op.shape))  # fmt: skip
        at = make.add(Op("reduce_window", (at, start), windows, op.dtype, flags))
    return make.add(Op("reduce", (at, start), kept, op.dtype, flags))


def running_sum(make: Maker, at: int, start: int, axis: int, *, before: bool = False) -> int:
    """Add running sums: within stretches of 16, then of the stretches' ends, which are added to all that comes after.

    Args:
        make: where it is.
        at: what is summed.
        start: where sums begin.
        axis: along which.
        before: whether sums begin with none, so that there is one more than there are elements.
    """
    op = make[at]
    size, lead, rest = op.shape[axis], op.shape[:axis], op.shape[axis + 1 :]
    ends = {"window_dimensions": (size,), "window_strides": (), "axis": (axis,), "more": (int(before),)}
    if size <= STRETCH:
        return make.add(Op("reduce_window", (at, start), (*lead, size + before, *rest), op.dtype, ends))
    count = -(-size // STRETCH)
    padded = (*lead, count * STRETCH, *rest)
    wide = at if padded == op.shape else make.add(Op("pad", (at, start), padded, op.dtype, {"axis": (axis,)}))
    split, tails = (*lead, count, STRETCH, *rest), (*lead, count, *rest)
    inner = make.add(Op("reduce_window", (make.reshape(wide, split), start), split, op.dtype, {**ends, "axis": (axis + 1,)}))
    last = make.reshape(make.add(Op("slice", (inner,), (*lead, count, 1, *rest), op.dtype, {"from": (STRETCH - 1,)})), tails)
    outer = running_sum(make, last, start, axis, before=True)
    shifted = make.add(Op("slice", (outer,), tails, op.dtype, {"from": (0,)}))
    axes = tuple(one for one in range(len(split)) if one != axis + 1)
    added = make.reshape(make.add(Op("add", (inner, make.broadcast(shifted, split, axes)), split, op.dtype)), padded)
    if padded != op.shape:
        added = make.add(Op("slice", (added,), op.shape, op.dtype, {"from": (0,)}))
    if not before:
        return added
    return make.add(Op("pad", (added, start), (*lead, size + 1, *rest), op.dtype, {"axis": (axis,), "from": (1,)}))


def select_and_scatter(make: Maker, source: int, updates: int, start: int, numbers: Numbers) -> int:
    """Add pooling backwards: the place of each window's greatest is found beside its value, then scattered to."""
    op, small = make[source], make[updates]
    padding = spread(numbers.get("padding", ()) or (0,) * 2 * len(op.shape))
    wide = tuple(size + low + high for size, (low, high) in zip(op.shape, padding, strict=True))
    padded = source if wide == op.shape else make.add(Op("pad", (source, start), wide, op.dtype))
    places = tuple(make.add(Op("iota", (), wide, "int32", {"axis": (axis,)})) for axis in range(len(wide)))
    found = make.add(
        Op(
            "reduce_window",
            (padded, *places, start),
            small.shape,
            op.dtype,
            {"window_dimensions": numbers.get("window_dimensions", ()), "window_strides": ()},
            ((small.shape, "int32"),) * len(wide),
        )
    )
    rows = (small.elements, len(wide))
    columns = tuple(
        make.reshape(make.add(Op("part", (found,), small.shape, "int32", {"index": (1 + axis,)})), (small.elements, 1))
        for axis in range(len(wide))
    )
    indices = make.add(Op("concatenate", columns, rows, "int32", {"dimension": (1,)}))
    empty = make.broadcast(start, wide, ())
    flat = make.reshape(updates, (small.elements, *(1,) * len(wide)))
    made = make.add(Op("scatter", (empty, indices, flat), wide, op.dtype))
    return (
        made
        if padded == source
        else make.add(Op("slice", (made,), op.shape, op.dtype, {"from": tuple(low for low, _ in padding)}))
    )
