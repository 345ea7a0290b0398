"""ONNX operators that read and write by index tensors, sort, choose by value, and keep sequences of tensors."""

from collections.abc import Sequence
from itertools import product as places_of

from core.graph import Shape
from core.symbols import Extent, product
from intake.readers.draft import Done, Result, Value, Work
from intake.readers.onnx_layout import joined
from intake.readers.operations import along, elementwise, rows_of
from intake.readers.operator_step import Operator, Step, simple
from intake.readers.symbolic import Unclear, axis_of

_GATHERED = ("gather",)
_GREATEST = "results whose size depends on values are taken at their greatest"


def _gather(step: Step) -> Done:
    data, picked = step.first, step.value(1)
    axis = axis_of(step.whole("axis", 0), len(data.shape))
    shape = (*data.shape[:axis], *picked.shape, *data.shape[axis + 1 :])
    parameter = data.trained
    if picked.known is not None and not picked.shape and not parameter:  # one fixed place: a view
        return Done((Result(shape, data.dtype, view_of=0),))
    return simple(shape, data.dtype, rows_of(data.shape, axis, picked.shape, parameter))


def _gather_elements(step: Step) -> Done:
    shape = step.shape(1)
    return simple(shape, step.first.dtype, Work("gather", (product(shape), 1), _GATHERED))


def _gather_places(step: Step) -> Done:
    data, picked, batch = step.first.shape, step.shape(1), step.whole("batch_dims", 0)
    depth = picked[-1] if picked else 0
    if not isinstance(depth, int) or batch + depth > len(data):
        raise Unclear("places that are not in the data")
    width = product(data[batch + depth :])
    work = Work("gather", (product(picked[:-1]), width), _GATHERED)
    return simple((*picked[:-1], *data[batch + depth :]), step.first.dtype, work)


def _scatter_elements(step: Step) -> Done:
    rows = product(step.shape(2))
    return simple(step.first.shape, step.first.dtype, Work("scatter", (rows, 1), ("scatter",)))


def _scatter_places(step: Step) -> Done:
    data, picked = step.first.shape, step.shape(1)
    depth = picked[-1] if picked else 0
    if not isinstance(depth, int) or depth > len(data):
        raise Unclear("places that are not in the data")
    return simple(data, step.first.dtype, Work("scatter", (product(picked[:-1]), product(data[depth:])), ("scatter",)))


def _scatter_tensor(step: Step) -> Done:
    update = step.shape(1)
    return simple(step.first.shape, step.first.dtype, Work("scatter", (product(update[:-1]), update[-1]), ("scatter",)))


def _where_not_zero(step: Step) -> Done:
    most = product(step.first.shape)
    known, sizes = step.known(0), [one for one in step.first.shape if isinstance(one, int)]
    if known is not None and len(sizes) == len(step.first.shape) and all(isinstance(one, int | float) for one in known):
        found = [place for place, one in zip(places_in(sizes), known, strict=True) if one]
        flat = tuple(place[axis] for axis in range(max(len(sizes), 1)) for place in found) if sizes else (0,) * len(found)
        return Done((Result((max(len(sizes), 1), len(found)), "int64", flat),))
    step.extents.notes[_GREATEST] = None
    return simple((max(len(step.first.shape), 1), most), "int64", elementwise(step.first.shape, 1, 1, "dynamic_shape"))


def places_in(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the places of a small tensor's elements, in order."""
    return list(places_of(*(range(size) for size in sizes)))


def _unique(step: Step) -> Done:
    data = step.first
    axis = step.attributes.get("axis")
    most: Extent = data.shape[axis_of(axis, len(data.shape))] if isinstance(axis, int) else product(data.shape)
    shape: Shape = (most,)
    if isinstance(axis, int):
        shape = data.shape
    step.extents.notes[_GREATEST] = None
    results = (Result(shape, data.dtype), *(Result((most,), "int64"),) * 3)
    return Done(results[: step.count], (Work("sort", (1, product(data.shape)), ("sort", "dynamic_shape")),))


def _compress(step: Step) -> Done:
    axis = step.attributes.get("axis")
    shape = step.first.shape if isinstance(axis, int) else (product(step.first.shape),)
    step.extents.notes[_GREATEST] = None
    return simple(shape, step.first.dtype, Work("gather", (product(shape), 1), ("gather", "dynamic_shape")))


def _top(step: Step) -> Done:
    shape = step.first.shape
    axis = axis_of(step.whole("axis", -1), len(shape))
    count = step.whole("k") if step.version < 10 else _count(step)
    kept = (*shape[:axis], count, *shape[axis + 1 :])
    return Done((Result(kept, step.first.dtype), Result(kept, "int64"))[: step.count], (along("sort", shape, axis, "sort"),))


def _count(step: Step) -> Extent:
    found = step.extents_of(1)
    if not found:
        raise Unclear("how many are wanted is not said")
    return found[0]


def _boxes(step: Step) -> Done:
    boxes, scores = step.first.shape, step.shape(1)
    most = step.known(2)
    each: Extent = int(most[0]) if most and isinstance(most[0], int | float) and most[0] > 0 else boxes[1]
    rows = scores[0] * scores[1] * step.extents.least(each, boxes[1])
    step.extents.notes[_GREATEST] = None
    return simple((rows, 3), "int64", Work("sort", (scores[0] * scores[1], scores[2]), ("sort", "dynamic_shape")))


def _sampled(step: Step) -> Done:
    data, grid = step.first.shape, step.shape(1)
    shape = (data[0], data[1], *grid[1:-1])
    each = {"nearest": 1, "cubic": 16, "bicubic": 16}.get(step.text("mode", "linear"), 4)
    return simple(shape, step.first.dtype, Work("gather", (product(shape) * each, 1), _GATHERED))


def _affine_grid(step: Step) -> Done:
    size = list(step.extents_of(1) or ())
    if len(size) not in {4, 5}:
        raise Unclear(f"a grid for {len(size)} axes")
    batch, _, *places = size
    width = len(places)
    return simple((batch, *places, width), step.first.dtype, Work("matmul", (batch, product(places), width, width + 1)))


def _regions(step: Step) -> Done:
    data, regions = step.first.shape, step.shape(1)
    pooled = step.wholes("pooled_shape") if step.op == "MaxRoiPool" else None
    height, width = pooled or (step.whole("output_height", 1), step.whole("output_width", 1))
    shape = (regions[0], data[1], height, width)
    samples = max(step.whole("sampling_ratio", 0), 2) ** 2 * 4 if step.op == "RoiAlign" else 1
    return simple(shape, step.first.dtype, Work("gather", (product(shape) * samples, 1), _GATHERED))


def _unpooled(step: Step) -> Done:
    wanted = step.extents_of(2)
    shape = step.first.shape
    if wanted is None:
        kernel = step.wholes("kernel_shape") or (1,) * (len(shape) - 2)
        strides, pads = step.wholes("strides") or (1,) * len(kernel), step.wholes("pads") or (0,) * (2 * len(kernel))
        rest = [(one - 1) * strides[at] + kernel[at] - pads[at] - pads[at + len(kernel)] for at, one in enumerate(shape[2:])]
        wanted = (*shape[:2], *rest)
    return simple(tuple(wanted), step.first.dtype, Work("scatter", (product(shape), 1), ("scatter",)))


def _items(step: Step, place: int = 0) -> tuple[Value, ...]:
    found = step.optional(place)
    if found is None or found.items is None:
        raise Unclear(f"operand {place} is no sequence of known tensors")
    return found.items


def _sequence(items: tuple[Value, ...], dtype: str) -> Done:
    return Done((Result((), dtype, items=items),))


def _place(step: Step, place: int, count: int) -> int:
    known = step.known(place)
    at = known[0] if known else None
    if not isinstance(at, int) or not -count <= at <= count:
        raise Unclear("a place in a sequence that is computed from data")
    return at


def _construct(step: Step) -> Done:
    items = tuple(one for one in step.inputs if one is not None)
    return _sequence(items, items[0].dtype if items else "fp32")


def _at(step: Step) -> Done:
    items = _items(step)
    if not items:
        raise Unclear("an item of an empty sequence")
    known = step.known(1)
    at = _place(step, 1, len(items)) if known is not None else 0
    if not -len(items) <= at < len(items):
        raise Unclear("an item that is not in its sequence")
    return Done((Result(items[at].shape, items[at].dtype, items[at].known, view_of=None),))


def _insert(step: Step) -> Done:
    items = list(_items(step))
    items.insert(_place(step, 2, len(items)) if step.optional(2) is not None else len(items), step.value(1))
    return _sequence(tuple(items), items[0].dtype)


def _erase(step: Step) -> Done:
    items = list(_items(step))
    if items:
        items.pop(min(_place(step, 1, len(items)), len(items) - 1) if step.optional(1) is not None else -1)
    return _sequence(tuple(items), "fp32")


def _length(step: Step) -> Done:
    return Done((Result((), "int64", (len(_items(step)),)),))


def _split_to_sequence(step: Step) -> Done:
    shape = step.first.shape
    axis, keep = axis_of(step.whole("axis", 0), len(shape)), step.whole("keepdims", 1)
    sizes = step.numbers(1) if step.optional(1) is not None else None
    total = step.number_of(shape[axis])
    if sizes is None:
        parts = (1,) * total
    elif step.shape(1):
        parts = sizes
    else:
        each = max(sizes[0], 1)
        parts = (each,) * (total // each) + ((total % each,) if total % each else ())
    if len(parts) > 4096:
        raise Unclear(f"a tensor in {len(parts)} parts")
    drop = sizes is None and not keep
    shapes = [(*shape[:axis], *(() if drop else (part,)), *shape[axis + 1 :]) for part in parts]
    dtype = step.first.dtype
    return _sequence(tuple(Value(f"{step.first.name}.{at}", one, dtype) for at, one in enumerate(shapes)), dtype)


def _join_sequence(step: Step) -> Done:
    items = _items(step)
    if not items:
        raise Unclear("an empty sequence is concatenated")
    shapes = [one.shape for one in items]
    axis = step.whole("axis")
    shape: Shape
    if step.whole("new_axis", 0):
        at = axis_of(axis, len(shapes[0]) + 1)
        shape = (*shapes[0][:at], len(shapes), *shapes[0][at:])
    else:
        shape = joined(step.extents, shapes, axis)
    return simple(shape, items[0].dtype, elementwise(shape, 1, 0))


def _optional(step: Step) -> Done:
    one = step.inputs[0] if step.inputs else None
    if one is None:
        return _sequence((), "fp32")
    return Done((Result(one.shape, one.dtype, one.known, None if one.items is not None else 0, one.items),))


def _has(step: Step) -> Done:
    return Done((Result((), "bool", (int(bool(step.inputs) and step.inputs[0] is not None),)),))


OPERATORS: dict[str, Operator] = {
    "Gather": _gather, "GatherElements": _gather_elements, "GatherND": _gather_places, "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements, "ScatterND": _scatter_places, "TensorScatter": _scatter_tensor,
    "NonZero": _where_not_zero, "Unique": _unique, "Compress": _compress, "TopK": _top, "NonMaxSuppression": _boxes,
    "GridSample": _sampled, "AffineGrid": _affine_grid, "RoiAlign": _regions, "MaxRoiPool": _regions, "MaxUnpool": _unpooled,
    "SequenceConstruct": _construct, "SequenceEmpty": _construct, "SequenceAt": _at, "SequenceInsert": _insert,
    "SequenceErase": _erase, "SequenceLength": _length, "SplitToSequence": _split_to_sequence,
    "ConcatFromSequence": _join_sequence, "Optional": _optional, "OptionalGetElement": _optional, "OptionalHasElement": _has,
}  # fmt: skip
