"""What a compiled program holds, asked of each framework after the first call: the count that the gates hold against the claim.

None wherever a framework's count is not exact (loops, library calls without a count): an unproven program is not a faulty one.
"""

import re
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from probes.case import Case, Facts

_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?(%[\w.-]+) = \w+\[([\d,]*)\]\S* ([\w-]+)\((.*)$", re.MULTILINE)
_CONTRACTED = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}")
_UNCOUNTED = re.compile(r"[\]})] (while|custom-call)\(")
"""A loop's body is counted once whatever its length, and calls of libraries have no count."""
_PRODUCTS = ("MatMul", "BatchMatMulV2", "_FusedMatMul", "_MklMatMul", "_MklFusedMatMul")


def xla_facts(jitted: Any, *arguments: Any) -> Facts:
    """Return what XLA compiled for these arguments, from the cache of the call that has run already.

    Args:
        jitted: of `jax.jit`.
        arguments: of shapes that it was called with.
    """
    compiled = jitted.lower(*arguments).compile()
    text = compiled.as_text()
    counted = compiled.cost_analysis()
    flop = None if _UNCOUNTED.search(text) or not counted else counted.get("flops")
    return Facts(flop, largest_constant(text))


def largest_constant(text: str) -> int:
    """Return the elements of the largest constant array in the text of a compiled program."""
    return max((_elements(shape) for _, shape, kind, _ in _INSTRUCTION.findall(text) if kind == "constant"), default=0)


def hlo_products(text: str) -> float | None:
    """Return the FLOPs of all matrix products in the text of a compiled program; None when it holds what cannot be counted."""
    if _UNCOUNTED.search(text) or " convolution(" in text:
        return None
    found = _INSTRUCTION.findall(text)
    shapes = {name: shape for name, shape, _, _ in found}
    total = 0
    for _, shape, kind, rest in found:
        if kind == "dot":
            left = [int(side) for side in shapes[rest.split(",")[0].strip()].split(",")]
            contracted = _CONTRACTED.search(rest)
            axes = [int(axis) for axis in contracted[1].split(",") if axis] if contracted else []
            total += 2 * _elements(shape) * prod(left[axis] for axis in axes)
    return float(total)


def _elements(shape: str) -> int:
    return prod(int(side) for side in shape.split(",") if side)


def tensorflow_facts(tf: Any, compiled: bool, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Facts:
    """Return what TensorFlow runs after its own rewriting: XLA's program, or the graph behind its optimizer.

    Args:
        tf: the module.
        compiled: whether XLA compiles it.
        function: plain, of one mapping of tensors.
        arguments: that it is called with.
    """
    traced = tf.function(function, jit_compile=compiled, autograph=False)
    if compiled:
        text = traced.experimental_get_compiler_ir(arguments)(stage="optimized_hlo")
        return Facts(hlo_products(text), largest_constant(text))
    from tensorflow.python.eager import context

    current: Any = context.context()
    current.enable_graph_collection()
    try:
        traced(arguments)
        seen = current.export_run_metadata()
    finally:
        current.disable_graph_collection()
    graph = traced.get_concrete_function(arguments).graph
    products = [operation for operation in graph.get_operations() if operation.type in _PRODUCTS]
    flop = sum(2 * prod(one.outputs[0].shape) * one.inputs[0].shape[-1] for one in products)
    nodes = [node for function_graph in seen.function_graphs for node in function_graph.post_optimization_graph.node]
    kept = sum(node.op in _PRODUCTS for node in nodes)
    constants = [prod(d.size for d in n.attr["value"].tensor.tensor_shape.dim) for n in nodes if n.op == "Const"]
    return Facts(flop * kept / len(products) if products else 0.0, max(constants, default=0))


def torch_facts(torch: Any, compiled: bool, call: Callable[[], Any]) -> Facts:
    """Return the FLOPs of the matrix products that one call of a forward program runs.

    Eager operations are counted as they are dispatched; compiled ones as the profiler sees them, since a dispatch mode would
    take the compiled code out of use.

    Args:
        torch: the module.
        compiled: whether the program is compiled.
        call: one call of it.
    """
    if compiled:
        with torch.autograd.profiler.profile(use_kineto=False, record_shapes=True, with_flops=True) as seen:
            call()
        events = seen.key_averages()
        hidden = any(word in event.key for event in events for word in ("conv", "lstm", "scaled_dot", "packed", "_out"))
        return Facts(None if hidden else float(sum(event.flops for event in events)))
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.flop, self.hidden = 0, False

        def __torch_dispatch__(self, operation: Any, types: Any, given: Any = (), named: Any = None) -> Any:
            name, result = operation.name(), operation(*given, **(named or {}))
            self.hidden = self.hidden or any(word in name for word in ("conv", "lstm", "scaled_dot"))
            factors = {"aten::matmul": 0, "aten::linear": 0, "aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}
            if name in factors:
                self.flop += 2 * result.numel() * given[factors[name]].shape[-1]
            return result

    with Count() as counter:
        call()
    return Facts(None if counter.hidden else float(counter.flop))


def is_kernel(case: Case) -> bool:
    """Whether a case is a kernel of products in forward mode, which every framework counts exactly and at little cost."""
    claimed = getattr(case.block, "flop", None)
    return not case.training and claimed is not None and claimed(case.sizes) > 0
