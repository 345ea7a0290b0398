"""TensorFlow operations that read and write by index tensors, sort, choose by value, and keep lists of tensors.

A list of tensors (what loops collect their steps in) is held as one tensor with the list's length as first axis.
"""

from core.graph import Shape
from core.symbols import Extent, product
from intake.readers.draft import Done, Result, Work
from intake.readers.operations import along, elementwise, rows_of
from intake.readers.operator_step import Operator, Step, simple, view
from intake.readers.symbolic import Unclear, axis_of

GREATEST = "results whose size depends on values are taken at their greatest"


def _gather(step: Step) -> Done:
    data, picked = step.first, step.value(1)
    axis = axis_of((step.numbers(2) or (0,))[0], len(data.shape)) if step.optional(2) is not None else 0
    batch = step.whole("batch_dims", 0)
    shape = (*data.shape[:axis], *picked.shape[batch:], *data.shape[axis + 1 :])
    if picked.known is not None and not picked.shape and not data.trained:
        place = step.numbers(1) or (0,)
        known = (data.known[place[0]],) if data.known is not None and len(data.shape) == 1 else None
        return Done((Result(shape, data.dtype, known, view_of=0),))
    if data.known is not None and picked.known is not None and len(data.shape) == 1 and len(picked.shape) == 1:
        known = tuple(data.known[place] for place in step.numbers(1) or ())
        return Done((Result(shape, data.dtype, known),))
    if batch:
        rows = product(data.shape[:batch]) * product(picked.shape[batch:])
        return simple(shape, data.dtype, Work("gather", (rows, product(data.shape[axis + 1 :])), ("gather",)))
    return simple(shape, data.dtype, rows_of(data.shape, axis, picked.shape, data.trained))


def _gather_places(step: Step) -> Done:
    data, picked = step.first.shape, step.shape(1)
    depth = picked[-1] if picked else 0
    if not isinstance(depth, int) or depth > len(data):
        raise Unclear("places that are not in the data")
    work = Work("gather", (product(picked[:-1]), product(data[depth:])), ("gather",))
    return simple((*picked[:-1], *data[depth:]), step.first.dtype, work)


def _scatter_new(step: Step) -> Done:
    shape, picked, update = tuple(step.extents_of(2) or ()), step.shape(0), step.shape(1)
    rows = product(picked[:-1])
    return simple(shape, step.value(1).dtype, Work("scatter", (rows, product(update[len(picked) - 1 :])), ("scatter",)))


def _scatter_into(step: Step) -> Done:
    update = step.shape(2)
    rows = product(step.shape(1)[:-1]) if "Nd" in step.op or "Tensor" in step.op else product(step.shape(1))
    whole = product(update)
    width = whole if rows in {1, 0} else step.extents.quotient(whole, rows)
    return simple(step.first.shape, step.first.dtype, Work("scatter", (rows, width), ("scatter",)))


def _segments(step: Step) -> Done:
    """Rows are summed by the segment that they belong to; how many there are is given, or depends on values."""
    data, width = step.first.shape, product(step.first.shape[len(step.shape(1)) :])
    known = step.extents_of(2) if step.op.startswith("Unsorted") else None
    marks = ("scatter",) if known else ("scatter", "dynamic_shape")
    if not known:
        step.extents.notes[GREATEST] = None
    count: Extent = known[0] if known else data[0]
    shape = (count, *data[len(step.shape(1)) :])
    return simple(shape, step.first.dtype, Work("scatter", (product(step.shape(1)), width), marks))


def _top(step: Step) -> Done:
    shape = step.first.shape
    count = (step.extents_of(1) or (1,))[0] if step.optional(1) is not None else step.whole("k", 1)
    kept = (*shape[:-1], count)
    results = (Result(kept, step.first.dtype), Result(kept, "int32"))
    return Done(results[: max(step.count, 1)], (along("sort", shape, -1, "sort"),))


def _unique(step: Step) -> Done:
    shape = step.first.shape
    step.extents.notes[GREATEST] = None
    results = (Result(shape, step.first.dtype), Result(shape[:1], "int32"), Result(shape[:1], "int32"))
    return Done(results[: max(step.count, 1)], (Work("sort", (1, product(shape)), ("sort", "dynamic_shape")),))


def _where(step: Step) -> Done:
    shape = step.first.shape
    step.extents.notes[GREATEST] = None
    return simple((product(shape), len(shape)), "int64", elementwise(shape, 1, 1, "dynamic_shape"))


def _boxes(step: Step) -> Done:
    count = (step.extents_of(2) or (1,))[0]
    step.extents.notes[GREATEST] = None
    results = (Result((count,), "int32"), Result((count,), step.first.dtype), Result((), "int32"))
    work = Work("sort", (1, step.first.shape[0]), ("sort", "dynamic_shape"))
    return Done(results[: max(step.count, 1)], (work,))


def _many_boxes(step: Step) -> Done:
    boxes, most = step.first.shape, (step.extents_of(3) or (1,))[0]
    batch = boxes[0]
    step.extents.notes[GREATEST] = None
    one = Result((batch, most), "fp32")
    results = (Result((batch, most, 4), "fp32"), one, one, Result((batch,), "int32"))
    return Done(results, (Work("sort", (batch * step.shape(1)[-1], boxes[1]), ("sort", "dynamic_shape")),))


def _crops(step: Step) -> Done:
    size = step.extents_of(3) or (1, 1)
    shape = (step.shape(1)[0], *size, step.first.shape[-1])
    return simple(shape, "fp32", Work("gather", (product(shape[:-1]) * 4, shape[-1]), ("gather",)))


def _partition(step: Step) -> Done:
    step.extents.notes[GREATEST] = None
    work = Work("gather", (product(step.shape(1)), product(step.first.shape[len(step.shape(1)) :])), ("gather", "dynamic_shape"))
    return Done((Result(step.first.shape, step.first.dtype),) * step.whole("num_partitions", 1), (work,))


def _counted(step: Step) -> Done:
    size = (step.extents_of(1) or (0,))[0]
    return simple((size,), step.text("T", "int32"), Work("scatter", (product(step.first.shape), 1), ("scatter",)))


def _decomposed(step: Step) -> Done:
    """Factorisations, inverses, eigenproblems and solutions of linear systems, over the last two axes."""
    shape, dtype = step.first.shape, step.first.dtype
    lead, rows, columns = shape[:-2], shape[-2], shape[-1]
    short = rows if rows == columns else step.extents.least(rows, columns)
    square = Result(shape, dtype)
    results = {
        "MatrixDeterminant": (Result(lead, dtype),),
        "Svd": (Result((*lead, short), dtype), Result((*lead, rows, short), dtype), Result((*lead, columns, short), dtype)),
        "Qr": (Result((*lead, rows, short), dtype), Result((*lead, short, columns), dtype)),
        "SelfAdjointEigV2": (Result((*lead, rows), dtype), square),
        "LogMatrixDeterminant": (Result(lead, dtype), Result(lead, dtype)),
    }.get(step.op, (Result(step.shape(1), dtype) if "Solve" in step.op else square,))
    return Done(results, (Work("linalg", (product(lead), short), ("linalg",)),))


def _fourier(step: Step) -> Done:
    rank = 2 if step.op.endswith("2D") else 3 if step.op.endswith("3D") else 1
    shape = list(step.first.shape)
    length = step.extents_of(1) if "RFFT" in step.op else None
    if length:
        shape[-rank:] = length
    work = Work("fft", (product(shape[:-rank]), product(shape[-rank:])), ("fft", "complex"))
    if step.op.startswith("RFFT"):
        shape[-1] = step.extents.quotient(shape[-1], 2) + 1
    dtype = "fp32" if step.op.startswith("IRFFT") else "complex64"
    return simple(tuple(shape), dtype, work)


def _element(step: Step, place: int) -> Shape:
    """Return the shape of a list's elements where it is given in full; nothing otherwise."""
    known = step.known(place)
    if known is None:
        return ()
    found = step.extents_of(place) or ()
    return () if any(isinstance(one, int) and one < 0 for one in found) else found


def _reserved(step: Step) -> Done:
    count = (step.extents_of(1) or (0,))[0]
    return Done((Result((count, *_element(step, 0)), step.text("element_dtype", "fp32")),))


def _list_read(step: Step) -> Done:
    given = _element(step, 2)
    return view(step.first.shape[1:] or given, step.text("element_dtype", step.first.dtype))


def _list_written(step: Step) -> Done:
    item = step.value(2)
    return simple((step.first.shape[0], *item.shape), item.dtype, elementwise(item.shape, 1, 0))


def _list_pushed(step: Step) -> Done:
    item = step.value(1)
    return simple((step.first.shape[0] + 1, *item.shape), item.dtype, elementwise(item.shape, 1, 0))


def _list_whole(step: Step) -> Done:
    shape = step.first.shape
    return view(shape if len(shape) > 1 else (*shape, *_element(step, 1)), step.text("element_dtype", step.first.dtype))


def _list_length(step: Step) -> Done:
    return Done((Result((), "int32", step.first.shape[:1]),))


OPERATORS: dict[str, Operator] = {
    **dict.fromkeys(("Gather", "GatherV2", "ResourceGather"), _gather),
    **dict.fromkeys(("GatherNd", "ResourceGatherNd"), _gather_places),
    **dict.fromkeys(("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin",
                     "ScatterUpdate", "ScatterAdd", "ScatterNdUpdate", "ScatterNdAdd", "ResourceScatterUpdate",
                     "ResourceScatterAdd", "ResourceScatterNdUpdate", "ResourceScatterNdAdd"), _scatter_into),
    **dict.fromkeys(("SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "UnsortedSegmentSum", "UnsortedSegmentMax",
                     "UnsortedSegmentMin", "UnsortedSegmentProd", "SegmentSumV2", "SegmentMaxV2"), _segments),
    **dict.fromkeys(("TopK", "TopKV2", "ApproxTopK"), _top),
    **dict.fromkeys(("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"), _unique),
    **dict.fromkeys(("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4",
                     "NonMaxSuppressionV5"), _boxes),
    **dict.fromkeys(("Bincount", "DenseBincount"), _counted),
    **dict.fromkeys(("Cholesky", "MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant", "MatrixSolve", "CholeskyGrad",
                     "MatrixTriangularSolve", "MatrixSolveLs", "Svd", "Qr", "SelfAdjointEigV2", "MatrixExponential",
                     "MatrixSquareRoot", "MatrixLogarithm"), _decomposed),
    **dict.fromkeys(("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D", "RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D",
                     "IRFFT3D"), _fourier),
    "ScatterNd": _scatter_new, "Where": _where, "CombinedNonMaxSuppression": _many_boxes, "CropAndResize": _crops,
    "DynamicPartition": _partition, "TensorListReserve": _reserved, "EmptyTensorList": _reserved, "TensorListGetItem": _list_read,
    "TensorListSetItem": _list_written, "TensorListPushBack": _list_pushed, "TensorListStack": _list_whole,
    "TensorListFromTensor": _list_whole, "TensorListLength": _list_length,
}  # fmt: skip
