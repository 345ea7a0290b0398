"""Which batches and lengths a model is traced at, and what is given up where its traces do not agree. Pure: no torch.

A model whose layers repeat is traced whole once; the polynomials come from a shortened one. Modules that run more operations
when the sequence is longer loop over its steps: their operations are marked.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from core.errors import BadInput
from core.graph import VIEW, Graph
from core.symbols import BATCH, LENGTH
from intake.readers.torch_fit import BOTH, FAILURES, ONE, Basis, Fitter, Point, agree, fitted, likened, shapes_of
from intake.readers.torch_record import Trace

LOOP = 8
"""Operations more or less in one module that make a loop of it: a longer sequence alone changes a few."""


def follow(
    title: str,
    asked: Point,
    run: Callable[[Point], Trace],
    names: Mapping[str, str],
    *,
    lengths: Sequence[int] = (),
    batches: Sequence[int] = (11, 13, 7),
    short: Callable[[Point], Trace] | None = None,
) -> Graph:
    """Trace a model where it has to be traced, and return its graph with as many symbols as the traces bear.

    Args:
        title: of the model.
        asked: the batch and the length to fall back on.
        run: makes a trace at a point; whatever it raises at another point than `asked` gives that symbol up.
        names: what operations of the trace are called in the graph.
        lengths: three, the first of them the asked one if it can be; empty where the model has none.
        batches: three batches; empty where only one is possible.
        short: traces the model with fewer repeats; None where nothing in it repeats.

    Raises:
        BadInput: what `run` raises at the asked point.
    """
    growing: set[str] = set()
    for basis, points in _plans(asked, lengths, batches):
        graph = _fitting(title, points, basis, run, names, short, growing)
        if graph is not None:
            return _told(graph, asked, basis, lengths, batches, growing)
    try:
        return _told(fitted(title, [run(asked)], [asked], ((),), names), asked, ((),), lengths, batches, growing)
    except BadInput:
        raise
    except FAILURES as error:
        raise BadInput(
            f"{title} that cannot be traced over shapes ({type(error).__name__}: {' '.join(str(error).split())[:120]})",
            "steps that follow from shapes",
            "export the model with torch.export or to ONNX, or run ./tandem capture",
        ) from None


def _fitting(title: str, points: Sequence[Point], basis: Basis, run: Callable[[Point], Trace], names: Mapping[str, str],
             short: Callable[[Point], Trace] | None, growing: set[str]) -> Graph | None:
    """Return the graph with the symbols of a basis; None where the traces do not bear them."""
    if short is not None:
        try:
            parts = [short(point) for point in points]
        except FAILURES:
            parts = []  # what the short model does not bear may be its shortness: U-shaped ones count their layers
        if parts and basis == BOTH and (found := _growing(parts[0], parts[2])):
            growing |= found
            return None
        try:
            if parts:
                shapes_of(parts, Fitter(basis, points))  # before the whole model is traced for nothing
                return likened(title, run(points[0]), parts, points, basis, names)
        except FAILURES:
            pass
    try:
        first, last = run(points[0]), run(points[-1])
        if basis == BOTH:
            growing |= _growing(first, last)
        agree(first, last)  # before three more traces: most models that change with a size differ here already
        return fitted(title, [first, *map(run, points[1:-1]), last], points, basis, names)
    except FAILURES:
        return None


def _growing(first: Trace, other: Trace) -> set[str]:
    """Return the modules, layers' numbers left out, whose operations become more with the length: a loop over the steps."""
    counts = [Counter(re.sub(r"\d+", "#", made.scope) for made in trace.calls) for trace in (first, other)]
    return {scope for scope in counts[0].keys() | counts[1].keys() if abs(counts[0][scope] - counts[1][scope]) >= LOOP}


def _plans(asked: Point, lengths: Sequence[int], batches: Sequence[int]) -> list[tuple[Basis, list[Point]]]:
    plans: list[tuple[Basis, list[Point]]] = []
    if batches and lengths:
        (one, two, check), (base, far, between) = batches, lengths
        plans.append((BOTH, [Point(one, base), Point(two, base), Point(one, far), Point(two, far), Point(check, between)]))
    if batches:
        plans.append((ONE, [Point(batch, asked.length) for batch in batches]))
    return plans


def _told(graph: Graph, asked: Point, basis: Basis, lengths: Sequence[int], batches: Sequence[int], growing: set[str]) -> Graph:
    """Return a graph with the asked values of its symbols, and a note on each that was given up."""
    values = {BATCH: asked.batch, LENGTH: asked.length}
    named = {name for monomial in basis for name in monomial}
    notes = [
        f"{name} is fixed at {values[name]}: the operations, or their sizes, change with it"
        for name, wanted in ((BATCH, batches), (LENGTH, lengths))
        if wanted and name not in named
    ]
    symbols = tuple((name, values[name]) for name, _ in graph.symbols)
    nodes = tuple(replace(one, marks=(*one.marks, "serial_scan")) if re.sub(r"\d+", "#", one.scope) in growing
                  and one.kind != VIEW and "serial_scan" not in one.marks else one for one in graph.nodes)  # fmt: skip
    return replace(graph, nodes=nodes, symbols=symbols, notes=(*graph.notes, *notes))
