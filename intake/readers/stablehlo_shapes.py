"""Shapes of results whose extents the file leaves open (`tensor<?x128xf32>`): they follow from those of the operands.

Numbers that the file does give are kept; only what is open is filled in.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.graph import Shape
from core.symbols import Extent
from intake.readers.stablehlo_program import Instruction, wholes
from intake.readers.symbolic import Extents, Unclear


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an operation's operands.

    Args:
        shapes: of each.
        elements: of each, None where they are not known.
        attributes: of the operation.
        extents: the program's symbols.
    """

    shapes: Sequence[Shape]
    elements: Sequence[tuple[Extent, ...] | None]
    attributes: Mapping[str, object]
    extents: Extents

    def wholes(self, name: str) -> tuple[int, ...]:
        """Return an attribute that is a list of whole numbers, or one."""
        return wholes(self.attributes, name)

    def sizes(self, at: int) -> Shape:
        """Return the elements of an operand that says a size."""
        found = self.elements[at] if at < len(self.elements) else None
        if found is None:
            raise Unclear("a size that the program computes from values")
        return found


def result_shapes(instruction: Instruction, known: Known) -> tuple[Shape, ...]:
    """Return the shape of each result of an operation.

    Raises:
        Unclear: it cannot be told.
        Pinned: a symbol must be a number for it.
    """
    written = [result.type[0] for result in instruction.results]
    if all(extent is not None for shape in written for extent in shape):
        return tuple(tuple(extent for extent in shape if extent is not None) for shape in written)
    rule = _RULES.get(instruction.op)
    made = rule(known) if rule is not None else _alike(known)
    return tuple(_filled(shape, made[min(at, len(made) - 1)], instruction.op) for at, shape in enumerate(written))


def _filled(written: Sequence[Extent | None], made: Shape, op: str) -> Shape:
    if len(written) != len(made):
        raise Unclear(f"{op} whose result has {len(written)} axes where its operands make {len(made)}")
    return tuple(found if extent is None else extent for extent, found in zip(written, made, strict=True))


def _alike(known: Known) -> list[Shape]:
    """Elementwise operations, sorts and the like: operands have the result's shape, or are scalars."""
    rank = max(map(len, known.shapes), default=0)
    full = [shape for shape in known.shapes if len(shape) == rank]
    if not full:
        raise Unclear("an operation without operands whose shape is open")
    return [full[0]]


def _dot(known: Known) -> list[Shape]:
    left, right = known.shapes[:2]
    batches, contracted = known.wholes("lhs_batching_dimensions"), known.wholes("lhs_contracting_dimensions")
    gone = {*known.wholes("rhs_batching_dimensions"), *known.wholes("rhs_contracting_dimensions")}
    rows = [extent for at, extent in enumerate(left) if at not in {*batches, *contracted}]
    columns = [extent for at, extent in enumerate(right) if at not in gone]
    return [(*(left[at] for at in batches), *rows, *columns)]


def _reduce(known: Known) -> list[Shape]:
    gone = set(known.wholes("dimensions"))
    return [tuple(extent for at, extent in enumerate(known.shapes[0]) if at not in gone)]


def _transpose(known: Known) -> list[Shape]:
    return [tuple(known.shapes[0][at] for at in known.wholes("permutation"))]


def _concatenate(known: Known) -> list[Shape]:
    (axis,) = known.wholes("dimension") or (0,)
    total: Extent = 0
    for shape in known.shapes:
        total = total + shape[axis]
    first = known.shapes[0]
    return [(*first[:axis], total, *first[axis + 1 :])]


def _pad(known: Known) -> list[Shape]:
    parts = [known.wholes(name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")]
    return [_padded(known.shapes[0], *parts)]


def _dynamic_pad(known: Known) -> list[Shape]:
    return [_padded(known.shapes[0], *(known.sizes(at) for at in (2, 3, 4)))]


def _padded(shape: Shape, low: Sequence[Extent], high: Sequence[Extent], inner: Sequence[Extent]) -> Shape:
    rows = zip(shape, low, high, inner, strict=True)
    return tuple(extent + a + b + (0 if i == 0 else (extent - 1) * i) for extent, a, b, i in rows)


def _slice(known: Known) -> list[Shape]:
    """An axis that is cut from 0 to its end in a file with open extents is cut to the extent that the file was made with."""
    rows = zip(*(known.wholes(name) for name in ("start_indices", "limit_indices", "strides")), strict=True)
    return [tuple(known.extents.rounded_up(limit - start, stride) for start, limit, stride in rows)]


def _real_slice(known: Known) -> list[Shape]:
    rows = zip(known.sizes(1), known.sizes(2), known.sizes(3), strict=True)
    return [tuple(known.extents.rounded_up(limit - start, stride) for start, limit, stride in rows)]


def _gather(known: Known) -> list[Shape]:
    sizes: Shape = known.sizes(2) if len(known.shapes) > 2 else known.wholes("slice_sizes")
    gone = {*known.wholes("collapsed_slice_dims"), *known.wholes("operand_batching_dims")}
    width = [extent for at, extent in enumerate(sizes) if at not in gone]
    (vector,) = known.wholes("index_vector_dim") or (len(known.shapes[1]),)
    rows = [extent for at, extent in enumerate(known.shapes[1]) if at != vector]
    offsets = known.wholes("offset_dims")
    turns = (iter(width), iter(rows))
    return [tuple(next(turns[0] if at in offsets else turns[1]) for at in range(len(width) + len(rows)))]


def _convolution(known: Known) -> list[Shape]:
    left, right = known.shapes[:2]
    names = ("input_spatial_dimensions", "kernel_spatial_dimensions", "output_spatial_dimensions")
    inputs, kernels, outputs = (known.wholes(name) for name in names)
    count = len(inputs)
    strides = known.wholes("window_strides") or (1,) * count
    spread, apart = known.wholes("lhs_dilation") or (1,) * count, known.wholes("rhs_dilation") or (1,) * count
    padding: Shape = known.sizes(2) if len(known.shapes) > 2 else known.wholes("padding") or (0,) * (2 * count)
    made: dict[int, Extent] = {}
    for at in range(count):
        size = (left[inputs[at]] - 1) * spread[at] + 1 + padding[2 * at] + padding[2 * at + 1]
        window = (right[kernels[at]] - 1) * apart[at] + 1
        made[outputs[at]] = known.extents.quotient(size - window, strides[at]) + 1
    groups = (known.wholes("batch_group_count") or (1,))[0]
    (batch,) = known.wholes("input_batch_dimension")
    made[known.wholes("output_batch_dimension")[0]] = known.extents.quotient(left[batch], groups)
    made[known.wholes("output_feature_dimension")[0]] = right[known.wholes("kernel_output_feature_dimension")[0]]
    return [tuple(made[at] for at in range(len(made)))]


def _reduce_window(known: Known) -> list[Shape]:
    shape = known.shapes[0]
    window = known.wholes("window_dimensions")
    ones = (1,) * len(shape)
    strides, apart = known.wholes("window_strides") or ones, known.wholes("window_dilations") or ones
    spread, padding = known.wholes("base_dilations") or ones, known.wholes("padding") or (0,) * (2 * len(shape))
    made: list[Extent] = []
    for at, extent in enumerate(shape):
        size = (extent - 1) * spread[at] + 1 + padding[2 * at] + padding[2 * at + 1]
        made.append(known.extents.quotient(size - (window[at] - 1) * apart[at] - 1, strides[at]) + 1)
    return [tuple(made)]


def _reshape(_: Known) -> list[Shape]:
    raise Unclear("a reshape to an open shape")


def _top_k(known: Known) -> list[Shape]:
    shape = known.shapes[0]
    return [(*shape[:-1], *(known.wholes("k") or shape[-1:]))]


def _custom(known: Known) -> list[Shape]:
    said = known.wholes("indices_of_shape_operands")
    return [known.sizes(at) for at in said] or _alike(known)


_RULES: dict[str, Callable[[Known], list[Shape]]] = {
    "dot_general": _dot, "reduce": _reduce, "transpose": _transpose, "concatenate": _concatenate, "pad": _pad,
    "dynamic_pad": _dynamic_pad, "slice": _slice, "real_dynamic_slice": _real_slice, "gather": _gather,
    "dynamic_gather": _gather, "convolution": _convolution, "dynamic_conv": _convolution, "reduce_window": _reduce_window,
    "reshape": _reshape, "top_k": _top_k, "custom_call": _custom,
    "dynamic_reshape": lambda known: [known.sizes(1)],
    "dynamic_broadcast_in_dim": lambda known: [known.sizes(1)],
    "dynamic_iota": lambda known: [known.sizes(0)],
    "select": lambda known: [known.shapes[1]],
    "clamp": lambda known: [known.shapes[1]],
    "dynamic_update_slice": lambda known: [known.shapes[0]],
    "scatter": lambda known: [known.shapes[0]],
    "select_and_scatter": lambda known: [known.shapes[0]],
    "get_dimension_size": lambda _: [()],
}  # fmt: skip
