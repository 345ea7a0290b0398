"""Which tensors that an ONNX file stores are trained: from what the exporter says, else from their use, else from their names."""

import re
from collections.abc import Iterable
from typing import TypeAlias

from intake.readers.aten import is_operator
from intake.readers.buffer_names import is_buffer_name
from intake.readers.draft import Value
from intake.readers.onnx_file import OnnxGraph, OnnxNode, Stored

_MADE = re.compile(
    r"^(onnx::|val_|_val|const|scalar_tensor|/|\d+$|_to_copy|arange|new_shape|shape|zero|one|ortshared)", re.IGNORECASE
)
_NUMBERED = re.compile(r"_\d+$")
"""What torch's exporter hangs on the name of an operation: `unsqueeze_14` is a result that it computed, not a parameter."""
_LAYOUT = ("Transpose", "Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze", "DequantizeLinear", "QuantizeLinear")
_WEIGHTS: dict[str, tuple[int, ...]] = {
    "MatMul": (0, 1), "Gemm": (1, 2), "Conv": (1, 2), "ConvTranspose": (1, 2), "DeformConv": (1, 3), "LSTM": (1, 2, 3, 7),
    "GRU": (1, 2, 3), "RNN": (1, 2, 3), "BatchNormalization": (1, 2), "LayerNormalization": (1, 2),
    "InstanceNormalization": (1, 2), "GroupNormalization": (1, 2), "RMSNormalization": (1,), "PRelu": (1,), "Einsum": (0, 1),
    "MatMulInteger": (1,), "ConvInteger": (1,), "QLinearConv": (3, 8), "QLinearMatMul": (3,), "QGemm": (3, 6),
    "MatMulNBits": (1,), "QAttention": (1, 2), "Attention": (1, 2), "DynamicQuantizeMatMul": (1, 4),
    "MatMulIntegerToFloat": (1, 6),
    "GatherBlockQuantized": (0,), "SkipLayerNormalization": (2, 3, 4), "SkipSimplifiedLayerNormalization": (2, 3),
    "SimplifiedLayerNormalization": (1,), "EmbedLayerNormalization": (2, 3, 4, 5, 6), "FusedMatMul": (1,), "FusedConv": (1, 2),
    "BiasGelu": (1,), "FastGelu": (1,), "MoE": (2, 3, 4, 5, 6, 7), "QMoE": (2, 5, 8), "NhwcConv": (1, 2),
}  # fmt: skip
"""Operands that are weights, by operator."""
_SCALES: dict[str, tuple[int, ...]] = {
    "QuantizeLinear": (1, 2), "DequantizeLinear": (1, 2), "QLinearConv": (1, 2, 4, 5, 6, 7), "QLinearMatMul": (1, 2, 4, 5, 6, 7),
    "MatMulNBits": (2, 3), "QGemm": (1, 2, 4, 5, 7, 8), "QLinearAdd": (1, 2, 4, 5, 6, 7), "QLinearMul": (1, 2, 4, 5, 6, 7),
    "BatchNormalization": (3, 4), "Clip": (1, 2), "Resize": (1, 2, 3), "Pad": (1, 2, 3), "OneHot": (1, 2), "Where": (0,),
    "MatMulIntegerToFloat": (2, 3, 4, 5), "DynamicQuantizeMatMul": (2, 3), "QAttention": (3, 4, 6, 7), "Pow": (1,),
    "GatherBlockQuantized": (2, 3), "RotaryEmbedding": (2, 3), "GroupQueryAttention": (7, 8), "Range": (0, 1, 2),
}  # fmt: skip
"""Operands that are never trained."""


Uses: TypeAlias = dict[str, set[tuple[str, int]]]


def uses_of(nodes: Iterable[OnnxNode], found: Uses | None = None) -> Uses:
    """Return, by name of a value, operator and place where it is used; through operators that only move it."""
    uses: Uses = {} if found is None else found
    for node in reversed(tuple(nodes)):
        for value in node.attributes.values():
            if isinstance(value, OnnxGraph):
                uses_of(value.nodes, uses)
        onward = uses.get(node.outputs[0], set()) if node.op in _LAYOUT and node.outputs else set[tuple[str, int]]()
        for place, name in enumerate(node.inputs):
            mine = uses.setdefault(name, set())
            if len(mine) < 32:
                mine.add((node.op, place))
                mine.update(onward if place == 0 else ())
                if node.op == "Gather" and place == 0:  # rows of it, such as the chosen experts
                    mine.update((f"gathered {op}", at) for op, at in uses.get(node.outputs[0], ()) if op in ("MatMul", "Gemm"))
    return uses


def role_of(stored: Stored, kind: str, uses: set[tuple[str, int]]) -> str:
    """Return whether a stored tensor is trained: from what the exporter says, else from its use, else from its name.

    Args:
        stored: the tensor.
        kind: what torch's exporter says of it; empty when nothing.
        uses: operators and places where it is used.
    """
    if kind:
        return "parameter" if kind == "PARAMETER" else "constant"
    if stored.dtype in {"string", "bool"}:
        return "constant"
    weight = any(place in _WEIGHTS.get(op, ()) for op, place in uses)
    total = 1
    for extent in stored.shape:
        total *= extent
    if stored.dtype.startswith(("int", "uint")):
        narrow = ("DequantizeLinear", 0) in uses and bool(stored.shape)
        table = ("Gather", 0) in uses and len(stored.shape) == 2 and stored.dtype in {"int8", "uint8", "int4", "uint4"}
        return "parameter" if total > 1 and (weight or narrow or table) else "constant"
    if is_buffer_name(stored.name) or (uses and all(place in _SCALES.get(op, ()) for op, place in uses)):
        return "constant"
    if _MADE.search(stored.name) or is_operator(_NUMBERED.sub("", stored.name)):
        table = ("Gather", 0) in uses and len(stored.shape) == 2
        table = table or (len(stored.shape) > 2 and any(op.startswith("gathered") for op, _ in uses))
        return "parameter" if total > 1 and (weight or table) else "constant"
    return "parameter" if total > 1 or "." in stored.name else "constant"


def stored_value(stored: Stored, role: str) -> Value:
    """Return a stored tensor as a value; elements of trained fractions are not looked at."""
    known = None if role == "parameter" else stored.known
    return Value(stored.name, stored.shape, stored.dtype, role, None, known, trained=role == "parameter")
