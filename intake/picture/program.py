"""What a program that a file holds keeps in memory when it is run as it is written: by the liveness analysis, for any target.

A compiler sets memory for all results aside before it starts, so they count throughout, and what lies beside them at the worst
moment is added.
"""

from collections.abc import Sequence
from math import prod

from core.graph import DTYPE_BITS, Graph, SetAside
from core.picture import WORD, greatest
from core.symbols import value_of
from intake.picture.timeline import Span, peaks


def program_of(graph: Graph, spans: Sequence[Span], dtype: str) -> SetAside | None:
    """Return the memory of a graph's program; None where the graph is of none, or its sizes are open.

    Args:
        graph: with fixed sizes.
        spans: of its run.
        dtype: its compute dtype.
    """
    if graph.compiled is None or graph.symbols:
        return None
    answered = {graph.tensors[at].storage for at in graph.outputs}
    beside = [span for span in spans if span.storage not in answered]
    given = sum(_bytes_of(graph, at) for at in range(graph.compiled.arguments))
    results = sum(_bytes_of(graph, at) for at in graph.outputs)
    temporary = greatest(peaks(beside, {}), {WORD: DTYPE_BITS[dtype] // 8})
    return SetAside(given, results, temporary, graph.compiled.reused_bytes)


def _bytes_of(graph: Graph, at: int) -> int:
    one = graph.tensors[at]
    return prod(value_of(extent, {}) for extent in one.shape) * DTYPE_BITS[one.dtype] // 8
