"""ONNX operators on each element, reductions, softmax, norms, random numbers and quantisation."""

from core.graph import Shape
from intake.readers.draft import Done, Result, Work
from intake.readers.onnx_file import DTYPES
from intake.readers.operations import along, elementwise, norm, reduced, reduction
from intake.readers.operator_step import Operator, Step, simple, view
from intake.readers.symbolic import Unclear, axis_of

_UNARY = {
    "Abs": 1, "Neg": 1, "Sign": 1, "Not": 1, "BitwiseNot": 1, "Ceil": 1, "Floor": 1, "Round": 1, "Relu": 1, "IsNaN": 1,
    "IsInf": 1, "Reciprocal": 1,
    "LeakyRelu": 2, "ThresholdedRelu": 2, "Shrink": 2, "HardSigmoid": 3, "Softsign": 3, "HardSwish": 4, "Exp": 4,
    "Log": 4, "Sqrt": 4, "Sin": 4, "Cos": 4, "Tan": 4, "Asin": 4, "Acos": 4, "Atan": 4, "Sinh": 5, "Cosh": 5, "Asinh": 5,
    "Acosh": 5, "Atanh": 5, "Tanh": 5, "Sigmoid": 5, "Swish": 5, "Softplus": 5, "Elu": 5, "Celu": 5, "Selu": 5, "Mish": 8,
    "Gelu": 8, "Erf": 8, "com.microsoft.Gelu": 8, "com.microsoft.QuickGelu": 5,
}  # fmt: skip
_NARY = {
    "Add": 1, "Sub": 1, "Mul": 1, "Div": 1, "Pow": 4, "Mod": 1, "Max": 1, "Min": 1, "Sum": 1, "Mean": 1, "PRelu": 2,
    "BitShift": 1, "BitwiseAnd": 1, "BitwiseOr": 1, "BitwiseXor": 1,
}  # fmt: skip
_QUESTIONS = ("And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
_REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
_RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial")


def _unary(step: Step) -> Done:
    dtype = "bool" if step.op in {"IsNaN", "IsInf"} else step.first.dtype
    return simple(step.first.shape, dtype, elementwise(step.first.shape, 1, _UNARY[step.op]))


def _nary(step: Step) -> Done:
    shape = step.extents.broadcast(*_operands(step))
    each = _NARY.get(step.op, 1) * max(1, len(step.inputs) - 1)
    if step.op == "Mean":
        each += 1
    dtype = "bool" if step.op in _QUESTIONS else step.first.dtype
    return simple(shape, dtype, elementwise(shape, len(step.inputs), each))


def _operands(step: Step) -> list[Shape]:
    """Return the operands' shapes; before set 7 the second one may stand from an `axis` on."""
    shapes = [step.shape(place) for place in range(len(step.inputs))]
    if step.version < 7 and len(shapes) == 2 and isinstance(step.attributes.get("axis"), int):
        behind = len(shapes[0]) - step.whole("axis") - len(shapes[1])
        shapes[1] = shapes[1] + (1,) * max(behind, 0)
    return shapes


def _where(step: Step) -> Done:
    shape = step.extents.broadcast(*(step.shape(place) for place in range(3)))
    return simple(shape, step.value(1).dtype, elementwise(shape, 3, 0))


def _clip(step: Step) -> Done:
    return simple(step.first.shape, step.first.dtype, elementwise(step.first.shape, 1, 2))


def _cast(step: Step) -> Done:
    wanted = step.attributes.get("to")
    names = {name.upper(): name for name in DTYPES.values()} | {"FLOAT": "fp32", "DOUBLE": "fp64", "FLOAT16": "fp16"}
    dtype = DTYPES.get(wanted, "") if isinstance(wanted, int) else names.get(str(wanted), "")
    if step.op == "CastLike":
        dtype = step.value(1).dtype
    if not dtype:
        raise Unclear(f"a cast to the data type {wanted!r:.20}")
    if dtype == step.first.dtype:
        return view(step.first.shape, dtype)
    return simple(step.first.shape, dtype, elementwise(step.first.shape, 1, 0))


def _dropout(step: Step) -> Done:
    shape, training = step.first.shape, step.known(2)
    if training is not None and training[:1] == (1,) and step.known(1) != (0.0,):
        mask = (Result(shape, "bool"),) * (step.count - 1)
        return Done((Result(shape, step.first.dtype), *mask), (elementwise(shape, 1, 2, "random"),))
    return Done((Result(shape, step.first.dtype, view_of=0), *(Result(shape, "bool"),) * (step.count - 1)))


def _softmax(step: Step) -> Done:
    shape = step.first.shape
    if step.version < 13:  # flattened to two axes, before and from the axis on
        work = norm(shape, axis_of(step.whole("axis", 1), len(shape)) if shape else 0)
        return simple(shape, step.first.dtype, Work("softmax", work.dims))
    return simple(shape, step.first.dtype, along("softmax", shape, step.whole("axis", -1)))


def _reduce(step: Step) -> Done:
    axes = step.numbers(1, "axes")
    if not axes and step.whole("noop_with_empty_axes", 0):
        return view(step.first.shape, step.first.dtype)
    shape = reduced(step.first.shape, axes or None, bool(step.whole("keepdims", 1)))
    return simple(shape, step.first.dtype, reduction(step.first.shape, shape))


def _extreme(step: Step) -> Done:
    shape = reduced(step.first.shape, (step.whole("axis", 0),), bool(step.whole("keepdims", 1)))
    return simple(shape, "int64", reduction(step.first.shape, shape))


def _cumulative(step: Step) -> Done:
    return simple(step.first.shape, step.first.dtype, elementwise(step.first.shape, 1, 1))


def _layer_norm(step: Step) -> Done:
    shape, first = step.first.shape, axis_of(step.whole("axis", -1), len(step.first.shape))
    rest = tuple(1 if axis >= first else extent for axis, extent in enumerate(shape))
    return Done((Result(shape, step.first.dtype), *(Result(rest, "fp32"),) * (step.count - 1)), (norm(shape, first),))


def _channel_norm(step: Step) -> Done:
    """Batch, instance and group normalisation, and those over given axes: over channels in the second axis."""
    shape, dtype = step.first.shape, step.first.dtype
    if len(shape) < 2:
        raise Unclear(f"a normalisation over {len(shape)} axes")
    if step.op == "GroupNormalization":
        rows = shape[0] * step.whole("num_groups")
    elif step.op == "InstanceNormalization":
        rows = shape[0] * shape[1]
    elif step.op == "BatchNormalization":
        rows = shape[1]
    else:
        every = step.op == "MeanVarianceNormalization"
        axes = (step.wholes("axes") or (0, *range(2, len(shape)))) if every else (step.whole("axis", -1),)
        rows = elementwise(reduced(shape, axes, keep=False), 1, 0).dims[0]
    total = elementwise(shape, 1, 0).dims[0]
    extra = tuple(Result(step.shape(place), step.value(place).dtype) for place in (3, 4, 3, 4)[: step.count - 1])
    return Done((Result(shape, dtype), *extra), (Work("norm", (rows, step.extents.quotient(total, rows))),))


def _local_norm(step: Step) -> Done:
    return simple(step.first.shape, step.first.dtype, elementwise(step.first.shape, 1, 2 * step.whole("size", 5) + 4))


def _random(step: Step) -> Done:
    wanted = step.attributes.get("dtype")
    like = step.optional(0)
    dtype = DTYPES.get(wanted, "fp32") if isinstance(wanted, int) else like.dtype if like is not None else "fp32"
    if step.op == "Multinomial":
        shape: Shape = (step.first.shape[0], step.whole("sample_size", 1))
        dtype = dtype if isinstance(wanted, int) else "int32"
    else:
        shape = like.shape if like is not None else step.wholes("shape") or ()
    return simple(shape, dtype, elementwise(shape, 0 if like is None else 1, 4, "random"))


def _quantize(step: Step) -> Done:
    wanted, zero = step.whole("output_dtype", 0), step.optional(2)
    dtype = DTYPES.get(wanted, "uint8") if wanted else zero.dtype if zero is not None else "uint8"
    return simple(step.first.shape, dtype, elementwise(step.first.shape, 1, 2))


def _dequantize(step: Step) -> Done:
    return simple(step.first.shape, step.value(1).dtype, elementwise(step.first.shape, 1, 2))


def _quantize_as_found(step: Step) -> Done:
    results = (Result(step.first.shape, "uint8"), Result((), step.first.dtype), Result((), "uint8"))
    return Done(results[: step.count], (elementwise(step.first.shape, 1, 4),))  # least, greatest, divided, rounded


def _hard_max(step: Step) -> Done:
    return simple(step.first.shape, step.first.dtype, along("softmax", step.first.shape, step.whole("axis", -1)))


def _loss(step: Step) -> Done:
    scores, target = step.first, step.value(1)
    shape = target.shape if step.text("reduction", "mean") == "none" else ()
    picked = Work("gather", (elementwise(target.shape, 1, 0).dims[0], 1), ("gather",))
    if step.op == "NegativeLogLikelihoodLoss":
        return simple(shape, scores.dtype, picked)
    softmax = along("softmax", scores.shape, 1)
    results = (Result(shape, scores.dtype), Result(scores.shape, scores.dtype))
    return Done(results[: step.count], (Work("softmax", softmax.dims, between=scores.shape), picked))


def _identity(step: Step) -> Done:
    one = step.optional(0)
    if one is not None and one.items is not None:
        return Done((Result((), one.dtype, items=one.items),))
    return view(step.first.shape, step.first.dtype)


OPERATORS: dict[str, Operator] = {
    **dict.fromkeys(_UNARY, _unary),
    **dict.fromkeys((*_NARY, *_QUESTIONS), _nary),
    **{f"Reduce{name}": _reduce for name in _REDUCTIONS},
    **dict.fromkeys(_RANDOM, _random),
    "Where": _where, "Clip": _clip, "Cast": _cast, "CastLike": _cast, "Dropout": _dropout, "Softmax": _softmax,
    "LogSoftmax": _softmax, "ArgMax": _extreme, "ArgMin": _extreme, "CumSum": _cumulative, "CumProd": _cumulative,
    "LayerNormalization": _layer_norm, "RMSNormalization": _layer_norm, "BatchNormalization": _channel_norm,
    "InstanceNormalization": _channel_norm, "GroupNormalization": _channel_norm, "LpNormalization": _channel_norm,
    "MeanVarianceNormalization": _channel_norm, "LRN": _local_norm, "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize, "DynamicQuantizeLinear": _quantize_as_found, "Hardmax": _hard_max,
    "SoftmaxCrossEntropyLoss": _loss, "NegativeLogLikelihoodLoss": _loss, "Identity": _identity,
    "com.microsoft.QuantizeLinear": _quantize, "com.microsoft.DequantizeLinear": _dequantize,
}  # fmt: skip
