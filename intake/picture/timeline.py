"""When each piece of memory of a graph begins and ends to be needed, in a forward pass alone and in one with its backward.

A trace has seen when memory became free (`Tensor.dies`); what it did not see follows from the last use. Memory that is only a
view of another's is not counted again; parameters, constants and inputs are counted apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product as combinations

from core.graph import DTYPE_BITS, Graph, Node, Shape
from core.picture import WORD
from core.symbols import BATCH, LENGTH, Extent, product, symbol, total, value_of
from intake.picture.backward import Gradients

_SCALES: dict[str, tuple[float, ...]] = {BATCH: (0.1, 1, 32), LENGTH: (0.1, 1, 16)}
_WORDS = (1, 2, 4)


@dataclass(frozen=True, slots=True)
class Span:
    """One piece of memory that is needed from one moment to another.

    Args:
        size: bytes.
        born, dies: moments at whose operation it is first and last needed, both counted.
        storage: index of the tensor whose memory it is; a gradient has that of what it is the gradient of.
        left: whether it is the gradient of a parameter, which the backward pass leaves.
    """

    size: Extent
    born: int
    dies: int
    storage: int
    left: bool = False


def compute_dtype(graph: Graph) -> str:
    """Return the float dtype that most elements of the parameters have, else that of most operations, else fp32."""
    weights: dict[str, int] = {}
    for one in graph.tensors:
        if one.role == "parameter" and one.dtype.startswith(("fp", "bf")):
            elements = product(one.shape)
            weights[one.dtype] = weights.get(one.dtype, 0) + (elements if isinstance(elements, int) else 1)
    if not weights:
        for node in graph.nodes:
            if node.dtype.startswith(("fp", "bf")):
                weights[node.dtype] = weights.get(node.dtype, 0) + 1
    return max(weights, key=lambda name: weights[name], default="fp32")


def size_of(graph: Graph, at: int, dtype: str) -> Extent:
    """Return the bytes of a tensor; one of the compute dtype in words.

    Args:
        graph: that it is of.
        at: its index.
        dtype: the compute dtype.
    """
    one = graph.tensors[at]
    return _bytes_of(one.shape, 0 if one.dtype == dtype else max(1, DTYPE_BITS[one.dtype] // 8))


@lru_cache(maxsize=4096)
def _bytes_of(shape: Shape, width: int) -> Extent:
    """Return the bytes of a shape, of which a large graph has thousands of each; words for a width of 0."""
    return product(shape) * (width or symbol(WORD))


def forward_spans(graph: Graph, dtype: str) -> list[Span]:
    """Return what a forward pass without gradients holds: each result until it was seen to be free, else until its last use.

    What only a loss needs is left out, where something else is answered too: it is of training. So is what a trace of training
    saw of the life of results, since it keeps them for the backward pass.
    """
    needed = _inference(graph)
    steps = inference_steps(graph)
    places = {at: moment for moment, at in enumerate(sorted(needed))}
    born, last = _uses(graph, steps)
    answered = {graph.tensors[at].storage for at in graph.outputs}
    seen = not graph.has_backward and any(one.dies is not None for one in graph.tensors)
    spans: list[Span] = []
    for at, start in born.items():
        dies = graph.tensors[at].dies
        if graph.tensors[at].role != "value":
            continue
        end = last[at] if not seen else places.get(dies, last[at]) if dies is not None else len(steps)
        if end < start and at not in answered:
            continue  # it never reaches memory
        spans.append(Span(size_of(graph, at, dtype), start, len(steps) if at in answered else end, at))
    return spans


def inference_steps(graph: Graph) -> list[Node]:
    """Return the nodes of a forward pass without gradients, in order: the moments of `forward_spans`.

    Args:
        graph: of which.
    """
    needed = _inference(graph)
    return [node for at, node in enumerate(graph.nodes) if at in needed]


def _inference(graph: Graph) -> frozenset[int]:
    """Return the forward nodes that an answer other than a single number rests on; those of the loss where there is none."""
    forward = [at for at, node in enumerate(graph.nodes) if node.phase == "forward"]
    if not graph.has_backward:
        return frozenset(forward)
    shaped = [at for at in graph.outputs if graph.tensors[at].shape]
    # with the loss alone as an answer, what is made for the backward pass only is still left out
    return _leading_to(graph, forward, shaped) or _leading_to(graph, forward, graph.outputs) or frozenset(forward)


def _leading_to(graph: Graph, nodes: Sequence[int], answers: Sequence[int]) -> frozenset[int]:
    wanted = {graph.tensors[at].storage for at in answers}
    needed: set[int] = set()
    for at in reversed(nodes):
        node = graph.nodes[at]
        if any(graph.tensors[index].storage in wanted for index in node.outputs):
            needed.add(at)
            wanted.update(graph.tensors[index].storage for index in node.inputs)
    return frozenset(needed)


def traced_spans(graph: Graph, dtype: str) -> list[Span]:
    """Return what a traced forward and backward pass holds, gradients of parameters among it: what the backward pass leaves."""
    born, last = _uses(graph, graph.nodes)
    end = len(graph.nodes)
    spans: list[Span] = []
    answered = {graph.tensors[at].storage for at in graph.outputs}
    gradients = _left(graph, last)  # answered or not: a function may return them
    for at, start in born.items():
        one = graph.tensors[at]
        if one.role != "value":
            continue
        seen = one.dies
        left = seen is None and graph.nodes[start].phase == "backward" and (at in gradients or at not in answered)
        spans.append(Span(size_of(graph, at, dtype), start, max(seen, start) if seen is not None else end, at, left))
    if any(one.dies is not None for one in graph.tensors):
        return spans
    # nobody saw memory become free: what is not answered, and is no gradient that is left, ends with its last use
    return [
        replace(span, dies=end if span.storage in gradients | answered else last[span.storage], left=span.storage in gradients)
        for span in spans
    ]


def _left(graph: Graph, last: Mapping[int, int]) -> set[int]:
    """Return the storages that the backward pass makes in the shape of a parameter and does not use again: its gradients."""
    shapes = {graph.tensors[at].shape for at, one in enumerate(graph.tensors) if one.role == "parameter"}
    # the last that was made of it tells its shape: a gradient is often made turned round
    made = {graph.tensors[at].storage: (i, graph.tensors[at].shape)
            for i, node in enumerate(graph.nodes) if node.phase == "backward" for at in node.outputs}  # fmt: skip
    return {at for at, (i, shape) in made.items() if last[at] == i and shape in shapes}


def derived_spans(graph: Graph, found: Gradients, dtype: str) -> list[Span]:
    """Return what a forward pass and the backward pass behind it hold, the latter in reverse.

    What is kept lives until the backward part of the first operation that needs it; a gradient lives from the backward part of
    the last operation that used its tensor to that of the one that made it, and one of a parameter to the end.
    """
    steps = [node for node in graph.nodes if node.phase == "forward"]
    born, last = _uses(graph, steps)
    end = 2 * len(steps)
    answered = {graph.tensors[at].storage for at in graph.outputs}
    spans = [
        Span(size_of(graph, at, dtype), end - 1 - moment, end, at, left=True)
        for at, moment in last.items() if graph.tensors[at].role == "parameter" and found.needing[at]
    ]  # fmt: skip
    for at, start in born.items():
        one = graph.tensors[at]
        if one.role != "value":
            continue
        size = size_of(graph, at, dtype)
        ends = [last[at]]
        if at in found.kept:
            ends.append(end - 1 - found.kept[at])
        if at in answered:
            ends.append(end)
        spans.append(Span(size, start, max(ends), at))
        if found.needing[at]:
            spans.append(Span(size, end - 1 - max(last[at], start), end - 1 - start, at))
    return spans


def _uses(graph: Graph, steps: Sequence[Node]) -> tuple[dict[int, int], dict[int, int]]:
    """Return for each storage the moment at which it is first made, and the last at which it is used."""
    born: dict[int, int] = {}
    last: dict[int, int] = {}
    for moment, node in enumerate(steps):
        for at in node.outputs:
            storage = graph.tensors[at].storage
            born.setdefault(storage, moment)
            last[storage] = moment
        for at in node.inputs:
            last[graph.tensors[at].storage] = moment
    return born, last


def needed_until(steps: Sequence[Node]) -> dict[int, int]:
    """Return for each tensor, whatever memory it shares, the moment of the last of some steps that names it.

    Args:
        steps: in their order.
    """
    return {at: moment for moment, node in enumerate(steps) for at in (*node.outputs, *node.inputs)}


def peaks(spans: Sequence[Span], symbols: Mapping[str, int]) -> tuple[Extent, ...]:
    """Return the bytes held at the worst moments: for each of a grid of values of the symbols, those at its worst.

    Args:
        spans: all that is held.
        symbols: of the graph with the values around which the grid lies, from a tenth to tens of times as much.
    """
    grid = _grid(symbols)
    changes: dict[int, list[tuple[int, Span]]] = {}
    for span in spans:
        changes.setdefault(span.born, []).append((1, span))
        changes.setdefault(span.dies + 1, []).append((-1, span))
    sizes = {size: [value_of(size, values) for values in grid] for size in {span.size for span in spans}}
    running, worst, when = [0] * len(grid), [0] * len(grid), [-1] * len(grid)
    for moment in sorted(changes):
        for sign, span in changes[moment]:
            running = [now + sign * size for now, size in zip(running, sizes[span.size], strict=True)]
        for i, now in enumerate(running):
            if now > worst[i]:
                worst[i], when[i] = now, moment
    found: list[Extent] = []
    for moment in sorted(set(when) - {-1}):
        held = total(span.size for span in spans if span.born <= moment <= span.dies)
        if held not in found:
            found.append(held)
    return tuple(found)


def _grid(symbols: Mapping[str, int]) -> list[dict[str, int]]:
    """Return values of the symbols around those given, each with each word."""
    names = list(symbols)
    choices = [sorted({max(1, round(symbols[name] * scale)) for scale in _SCALES.get(name, (1,))}) for name in names]
    return [{**dict(zip(names, values, strict=True)), WORD: word} for values in combinations(*choices) for word in _WORDS]
