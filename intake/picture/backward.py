"""The backward pass of a graph that has the forward one alone, and what it needs kept.

Follows what automatic differentiation does in torch and jax: an operation gets a backward part when anything that is trained
stands behind one of its operands; a product has one product for each operand that needs a gradient. Counts follow
`intake.counting`: fused attention has twice its forward FLOPs behind it.

Source: torch/csrc/autograd derivatives.yaml of PyTorch 2.13 (what each operation saves).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from core.graph import VIEW, Graph, Node
from core.symbols import Extent

_FLOATS = ("fp", "bf", "complex")
_SAVES_NOTHING = (
    "add", "sub", "neg", "cast", "convert", "copy", "concat", "cat", "pad", "transpose", "contiguous", "clone", "where",
    "select", "slice", "identity", "mean", "sum", "expand", "broadcast", "rsub", "fill", "full", "stack", "repeat",
    "to_copy", "permute", "reshape", "split", "tile", "zeros", "ones", "arange", "iota", "masked_fill", "upsample",
    "resize", "avg", "pool2d_mean",
)  # fmt: skip
_SAVES_RESULT = ("relu", "sigmoid", "tanh", "exp", "softmax", "sqrt", "rsqrt", "reciprocal", "logistic", "dropout")
_SAVES_BOTH = ("mul", "div", "pow", "addcmul", "prod", "maximum", "minimum", "atan2", "dot")


@dataclass(frozen=True, slots=True)
class Gradients:
    """What training adds to a graph.

    Args:
        needing: for each tensor, whether a gradient flows through it.
        kept: indices of the tensors that the backward pass reads, their own memory meant, each with the number among the
            forward nodes of the first one whose backward part reads it: that part is the last to need it.
    """

    needing: tuple[bool, ...]
    kept: Mapping[int, int]


def gradients_of(graph: Graph, frozen: frozenset[int] = frozenset()) -> Gradients:
    """Return through which tensors gradients flow, and what is kept for them.

    Args:
        graph: with its forward nodes.
        frozen: indices of parameters that are not trained.
    """
    needing = [one.role == "parameter" and at not in frozen and _float(one.dtype) for at, one in enumerate(graph.tensors)]
    kept: dict[int, int] = {}
    for moment, node in enumerate(node for node in graph.nodes if node.phase == "forward"):
        flows = any(needing[at] for at in node.inputs)
        for at in node.outputs:
            needing[at] = flows and _float(graph.tensors[at].dtype)
        if flows and any(needing[at] for at in node.outputs):
            for at in _kept_by(node, needing):
                kept.setdefault(graph.tensors[at].storage, moment)
    return Gradients(tuple(needing), kept)


def backward_nodes(graph: Graph, found: Gradients) -> Iterator[tuple[int, Node]]:
    """Yield the nodes of the backward pass, in its order, each with the index of the forward node that it belongs to.

    Their tensors are those of the forward pass that they stand for.
    """
    needs = found.needing.__getitem__
    for at in reversed(range(len(graph.nodes))):
        node = graph.nodes[at]
        if node.phase != "forward" or node.kind == VIEW or not any(map(needs, node.inputs)):
            continue
        if not any(map(needs, node.outputs)):  # indices, comparisons, what goes to the host
            continue
        for dims, kind in _mirrored(node, found.needing):
            yield at, Node(node.op, kind, dims, node.dtype, node.outputs, node.inputs, node.scope, "backward")


def _mirrored(node: Node, needing: tuple[bool, ...]) -> Iterator[tuple[tuple[Extent, ...], str]]:
    """Yield dims and kind of each backward operation of one forward one."""
    operands = [at for at in node.inputs[:2] if needing[at]]
    match node.kind:
        case "matmul":
            batch, m, n, k = node.dims
            if needing[node.inputs[0]]:
                yield (batch, m, k, n), "matmul"
            if len(node.inputs) > 1 and needing[node.inputs[1]]:
                yield (batch, k, n, m), "matmul"
        case "conv":
            yield from ((node.dims, "conv") for _ in operands)
        case "attention":
            yield from ((node.dims, "attention") for _ in range(2))
        case "rnn":
            yield from ((node.dims, "rnn") for _ in range(2))
        case "gather" | "embedding":
            yield node.dims[:2], "scatter"
        case "scatter":
            yield node.dims, "gather"
        case "reduce":
            elements, _ = node.dims
            yield (elements, 1, 1), "elementwise"
        case "elementwise":
            elements, _, each = node.dims
            yield from (((elements, 2 if each else 1, each), "elementwise") for _ in operands)
        case "host_sync" | "sort":
            return
        case _:
            yield node.dims, node.kind


def _kept_by(node: Node, needing: list[bool]) -> tuple[int, ...]:
    """Return the tensors that the backward pass of a node reads."""
    first, rest = node.inputs[:1], node.inputs[1:]
    match node.kind:
        case "matmul":
            pair = node.inputs[:2]
            return tuple(at for at, other in zip(pair, reversed(pair), strict=True) if needing[other])
        case "conv":
            return tuple(at for at, other in zip(node.inputs[:2], reversed(node.inputs[:2]), strict=True) if needing[other])
        case "attention":
            return (*node.inputs, *node.outputs)
        case "norm" | "linalg" | "custom" | "rnn" | "fft":
            return (*node.inputs, *(node.outputs if node.kind in {"linalg", "rnn"} else ()))
        case "softmax":
            return node.outputs[:1]
        case "gather" | "scatter":
            return rest
        case "embedding":
            return rest or first
        case "elementwise":
            return _kept_by_elementwise(node, needing)
        case "reduce":
            return node.inputs if any(word in node.op.lower() for word in ("max", "min", "prod", "var", "std", "norm")) else ()
        case _:
            return ()


def _kept_by_elementwise(node: Node, needing: list[bool]) -> tuple[int, ...]:
    name = node.op.lower().rpartition(".")[2] if node.op.lower().startswith(("stablehlo", "chlo")) else node.op.lower()
    if any(word in name for word in _SAVES_BOTH):
        pair = node.inputs[:2]
        if len(pair) == 1:
            return pair if "pow" in name or "square" in name else ()
        return tuple(at for at, other in zip(pair, reversed(pair), strict=True) if needing[other])
    if "silu" in name or "swish" in name or "gelu" in name:
        return node.inputs[:1]
    if any(word in name for word in _SAVES_RESULT):
        return node.outputs[:1]
    if any(word in name for word in _SAVES_NOTHING) or not node.dims[2]:
        return ()
    return node.inputs[:1]


def _float(dtype: str) -> bool:
    return dtype.startswith(_FLOATS)
