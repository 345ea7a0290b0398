"""TensorFlow operations on each element, reductions, softmax, norms and random numbers."""

from core.graph import Shape
from core.symbols import product
from intake.readers.draft import Done, Result, Work
from intake.readers.operations import along, elementwise, reduced, reduction
from intake.readers.operator_step import Operator, Step, simple, view
from intake.readers.symbolic import Unclear

_UNARY = {
    "Abs": 1, "Neg": 1, "Sign": 1, "LogicalNot": 1, "Invert": 1, "Ceil": 1, "Floor": 1, "Round": 1, "Rint": 1, "Relu": 1,
    "Reciprocal": 1, "Inv": 1, "Square": 1, "Relu6": 2, "LeakyRelu": 2, "Softsign": 3, "Exp": 4, "Log": 4, "Sqrt": 4, "Rsqrt": 4,
    "Sin": 4, "Cos": 4, "Tan": 4, "Asin": 4, "Acos": 4, "Atan": 4, "Expm1": 4, "Log1p": 4, "Tanh": 5, "Sigmoid": 5, "Sinh": 5,
    "Cosh": 5, "Asinh": 5, "Acosh": 5, "Atanh": 5, "Softplus": 5, "Elu": 5, "Selu": 5, "Erf": 8, "Erfc": 8, "Erfinv": 8,
    "Lgamma": 8, "Digamma": 8, "ZerosLike": 0, "OnesLike": 0, "Bucketize": 1, "MatrixBandPart": 0, "Cumsum": 1, "Cumprod": 1,
    "CumulativeLogsumexp": 5, "CheckNumerics": 1, "CheckNumericsV2": 1, "Roll": 0, "ReverseV2": 0, "Reverse": 0, "Real": 0,
    "Imag": 0, "Conj": 1, "ComplexAbs": 4, "Angle": 4, "FakeQuantWithMinMaxVars": 4, "FakeQuantWithMinMaxArgs": 4,
    "FakeQuantWithMinMaxVarsPerChannel": 4, "QuantizeAndDequantizeV2": 4, "QuantizeAndDequantizeV3": 4,
    "QuantizeAndDequantizeV4": 4, "ClipByValue": 2, "LRN": 14,
}  # fmt: skip
_NARY = {
    "Add": 1, "AddV2": 1, "Sub": 1, "Mul": 1, "Div": 1, "RealDiv": 1, "DivNoNan": 1, "MulNoNan": 1, "Xdivy": 1, "FloorDiv": 1,
    "FloorMod": 1, "Mod": 1, "TruncateDiv": 1, "TruncateMod": 1, "Maximum": 1, "Minimum": 1, "SquaredDifference": 2, "Pow": 4,
    "Atan2": 5, "AddN": 1, "AccumulateNV2": 1, "BitwiseAnd": 1, "BitwiseOr": 1, "BitwiseXor": 1, "LeftShift": 1,
    "RightShift": 1, "Xlogy": 5, "Xlog1py": 5, "Complex": 0, "ReluGrad": 1, "Relu6Grad": 1, "LeakyReluGrad": 1, "EluGrad": 2,
    "TanhGrad": 3, "SigmoidGrad": 3, "SqrtGrad": 2, "RsqrtGrad": 3, "SoftplusGrad": 5, "NextAfter": 1, "Igamma": 8,
}  # fmt: skip
_QUESTIONS = ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "ApproximateEqual")
_TESTS = ("IsNan", "IsInf", "IsFinite")
_REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "Any", "All", "EuclideanNorm")
_RANDOM = (
    "RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt", "StatelessRandomUniform",
    "StatelessRandomNormal", "StatelessTruncatedNormal", "StatelessRandomUniformInt", "StatelessRandomUniformV2",
    "StatelessRandomNormalV2", "StatelessTruncatedNormalV2", "StatelessRandomUniformIntV2", "RandomGamma", "StatefulUniform",
    "StatefulStandardNormalV2", "StatefulTruncatedNormal", "StatefulUniformInt", "StatefulUniformFullInt",
    "StatelessRandomUniformFullIntV2",
)  # fmt: skip

SAME = (
    "Identity", "StopGradient", "PreventGradient", "Snapshot", "PlaceholderWithDefault", "ReadVariableOp", "EnsureShape", "Copy",
    "CopyHost", "LoopCond", "DebugIdentityV2",
)  # fmt: skip


def _unary(step: Step) -> Done:
    told = {"Real": step.text("Tout"), "Imag": step.text("Tout"), "ComplexAbs": step.text("Tout"), "Bucketize": "int32"}
    dtype = "bool" if step.op in _TESTS else told.get(step.op) or step.first.dtype
    return simple(step.first.shape, dtype, elementwise(step.first.shape, 1, _UNARY.get(step.op, 1)))


def _nary(step: Step) -> Done:
    shape = step.extents.broadcast(*(step.shape(place) for place in range(len(step.inputs))))
    dtype = "bool" if step.op in _QUESTIONS else step.text("Tout", "complex64") if step.op == "Complex" else step.first.dtype
    each = _NARY.get(step.op, 1) * max(1, len(step.inputs) - 1)
    return simple(shape, dtype, elementwise(shape, len(step.inputs), each))


def _bias(step: Step) -> Done:
    return simple(step.first.shape, step.first.dtype, elementwise(step.first.shape, 2, 1))


def _select(step: Step) -> Done:
    shapes = [step.shape(1), step.shape(2)] if step.op == "Select" else [step.shape(place) for place in range(3)]
    shape = step.extents.broadcast(*shapes)
    return simple(shape, step.value(1).dtype, elementwise(shape, 3, 0))


def _cast(step: Step) -> Done:
    dtype = step.text("DstT") or step.text("type")
    if dtype == step.first.dtype:
        return view(step.first.shape, dtype)
    return simple(step.first.shape, dtype, elementwise(step.first.shape, 1, 0))


def _softmax(step: Step) -> Done:
    return simple(step.first.shape, step.first.dtype, along("softmax", step.first.shape, -1))


def _cross_entropy(step: Step) -> Done:
    shape = step.first.shape
    results = (Result(shape[:-1], step.first.dtype), Result(shape, step.first.dtype))
    return Done(results[: step.count], (along("softmax", shape, -1),))


def _reduce(step: Step) -> Done:
    axes = step.numbers(1)
    if axes is not None and not axes:
        return view(step.first.shape, step.first.dtype)
    shape = reduced(step.first.shape, axes, bool(step.attributes.get("keep_dims") or step.attributes.get("keepdims")))
    return simple(shape, step.first.dtype, reduction(step.first.shape, shape))


def _extreme(step: Step) -> Done:
    shape = reduced(step.first.shape, step.numbers(1) or (0,), keep=False)
    return simple(shape, step.text("output_type", "int64"), reduction(step.first.shape, shape))


def _to_scalar(step: Step) -> Done:
    return simple((), step.first.dtype, reduction(step.first.shape, ()))


def _bias_gradient(step: Step) -> Done:
    channels = step.first.shape[1 if step.text("data_format", "NHWC") == "NCHW" else -1]
    return simple((channels,), step.first.dtype, reduction(step.first.shape, (channels,)))


def _batch_norm(step: Step) -> Done:
    shape = step.first.shape
    if len(shape) < 2:
        raise Unclear(f"a normalisation over {len(shape)} axes")
    channels = shape[1] if step.text("data_format", "NHWC").startswith("NC") else shape[-1]
    total = product(shape)
    extra = (Result((channels,), step.value(1).dtype),) * (step.count - 1)
    work = Work("norm", (channels, step.extents.quotient(total, channels)))
    return Done((Result(shape, step.first.dtype), *extra), (work,))


def _random(step: Step) -> Done:
    place = 2 if step.op.startswith("Stateful") else 0
    shape: Shape = tuple(step.extents_of(place) or ())
    return simple(shape, step.text("dtype") or step.text("Tout") or "fp32", elementwise(shape, 0, 4, "random"))


def _drawn(step: Step) -> Done:
    count = (step.extents_of(1) or (1,))[0]
    shape = (step.first.shape[0], count)
    return simple(shape, step.text("output_dtype", "int64"), elementwise(shape, 1, 4, "random"))


def _same(step: Step) -> Done:
    first = step.inputs[0] if step.inputs else None
    if first is not None and first.items is not None:
        return Done((Result((), first.dtype, items=first.items),))
    return view(step.first.shape, step.first.dtype)


OPERATORS: dict[str, Operator] = {
    **dict.fromkeys((*_UNARY, *_TESTS), _unary),
    **dict.fromkeys((*_NARY, *_QUESTIONS), _nary),
    **dict.fromkeys(_REDUCTIONS, _reduce),
    **dict.fromkeys(_RANDOM, _random),
    **dict.fromkeys(("Select", "SelectV2"), _select),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    **dict.fromkeys(("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"), _cross_entropy),
    **dict.fromkeys(("ArgMax", "ArgMin"), _extreme),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _batch_norm),
    **dict.fromkeys(SAME, _same),
    "BiasAdd": _bias, "BiasAddV1": _bias, "BiasAddGrad": _bias_gradient, "Cast": _cast, "Bitcast": _cast, "L2Loss": _to_scalar,
    "Multinomial": _drawn, "StatelessMultinomial": _drawn,
}  # fmt: skip
