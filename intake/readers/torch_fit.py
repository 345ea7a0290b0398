"""Traces of one model over several batches and lengths become one graph whose extents follow both. Pure: no torch.

Each extent is solved for as a polynomial from as many traces as it has coefficients and checked against one more. Where the
traces do not run the same operations, or a check fails, that symbol is given up and stays at the value that was asked for.
"""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, cast

from core.errors import BadInput
from core.graph import Graph, Node, Shape, Tensor
from core.symbols import BATCH, LENGTH, Extent, symbol
from intake.readers.aten import works_of
from intake.readers.aten_call import Call, Shaped
from intake.readers.torch_record import At, Made, Trace

MOST_ELEMENTS = 2**62
Basis = tuple[tuple[str, ...], ...]
BOTH: Basis = ((), (BATCH,), (LENGTH,), (BATCH, LENGTH))
ONE: Basis = ((), (BATCH,))


class Point(NamedTuple):
    """A batch and a length at which a model is traced."""

    batch: int
    length: int


class Misfit(Exception):
    """Traces that do not agree, or an extent that no polynomial gives."""


FAILURES = (
    Misfit,
    BadInput,
    RuntimeError,
    ValueError,
    LookupError,
    TypeError,
    NotImplementedError,
    AssertionError,
    AttributeError,
    ArithmeticError,
)
"""What models raise at a batch or length that they are not made for."""


class Fitter:
    """Solves for polynomials from values at points; the last point checks.

    Args:
        basis: the monomials.
        points: as many as the basis has monomials, and one more.
    """

    def __init__(self, basis: Basis, points: Sequence[Point]) -> None:
        self._rows = [[_value(monomial, point) for monomial in basis] for point in points]
        self._inverse = _inverse([list(map(Fraction, row)) for row in self._rows[: len(basis)]])
        self._basis = basis
        self._known: dict[tuple[int, ...], Extent] = {}

    def extent(self, values: tuple[int, ...]) -> Extent:
        """Return the polynomial through values.

        Raises:
            Misfit: none with whole coefficients passes through all of them.
        """
        if values.count(values[0]) == len(values):
            return values[0]
        found = self._known.get(values)
        if found is None:
            found = self._known[values] = self._solve(values)
        return found

    def _solve(self, values: tuple[int, ...]) -> Extent:
        solved = [sum(factor * value for factor, value in zip(row, values, strict=False)) for row in self._inverse]
        if any(Fraction(one).denominator != 1 for one in solved):
            raise Misfit(f"sizes {values}")
        whole = [int(one) for one in solved]
        if any(
            sum(a * b for a, b in zip(row, whole, strict=True)) != value for row, value in zip(self._rows, values, strict=True)
        ):
            raise Misfit(f"sizes {values}")
        total: Extent = 0
        for factor, monomial in zip(whole, self._basis, strict=True):
            term: Extent = factor
            for name in monomial:
                term = term * symbol(name)
            total = total + term
        return total


def fitted(title: str, traces: Sequence[Trace], points: Sequence[Point], basis: Basis, names: Mapping[str, str]) -> Graph:
    """Return one graph of traces that run the same operations.

    Args:
        title: of the model.
        traces: one a point; deaths and names are those of the first.
        points: where they were made.
        basis: monomials of the extents; `((),)` of one trace leaves every extent a number.
        names: what operations of the trace are called in the graph.

    Raises:
        Misfit: they run different operations, or an extent is no polynomial.
        BadInput: a tensor that no machine could hold.
    """
    return _graph(title, traces[0], shapes_of(traces, Fitter(basis, points)), points[0], basis, names)


def likened(
    title: str, whole: Trace, parts: Sequence[Trace], points: Sequence[Point], basis: Basis, names: Mapping[str, str]
) -> Graph:
    """Return the graph of one trace, with the polynomials of a shortened model's traces.

    A call of the whole model takes the extents of the short one's call of the same operation, in the same kind of module, with
    the same shapes at the first point.

    Args:
        title, names, basis: as in `fitted`.
        whole: trace at the first point.
        parts: traces of the same model with fewer repeats, one a point.
        points: where they were made.

    Raises:
        Misfit: a call has no counterpart, or two that differ.
    """
    shapes = shapes_of(parts, Fitter(basis, points))
    known: dict[tuple[object, ...], tuple[Shape, ...]] = {}
    for made in parts[0].calls:
        found = tuple(shapes[at] for at in (*made.inputs, *made.outputs))
        if known.setdefault(_likeness(parts[0], made), found) != found:
            raise Misfit(f"two {made.op} that look alike")
    taken: list[Shape | None] = [None] * len(whole.tensors)
    for made in whole.calls:
        like = known.get(_likeness(whole, made))
        if like is None:
            raise Misfit(f"{made.op} that the shortened model lacks")
        for at, shape in zip((*made.inputs, *made.outputs), like, strict=True):
            if taken[at] not in (None, shape):
                raise Misfit(f"{made.op} of a tensor that others see otherwise")
            taken[at] = shape
    if any(shape is None and one.role in ("input", "value") for shape, one in zip(taken, whole.tensors, strict=True)):
        raise Misfit("an input that nothing reads")
    filled = [one.shape if shape is None else shape for shape, one in zip(taken, whole.tensors, strict=True)]
    return _graph(title, whole, filled, points[0], basis, names)


def _likeness(trace: Trace, made: Made) -> tuple[object, ...]:
    sizes = tuple(trace.tensors[at].shape for at in (*made.inputs, *made.outputs))
    return (made.op, made.overload, made.backward, re.sub(r"\d+", "#", made.scope), sizes)


def shapes_of(traces: Sequence[Trace], fitter: Fitter) -> list[Shape]:
    """Return the shapes of tensors that traces agree on, as polynomials; raises Misfit where there are none."""
    first = traces[0]
    for other in traces[1:]:
        agree(first, other)
    return [
        tuple(map(fitter.extent, zip(*(trace.tensors[at].shape for trace in traces), strict=True)))
        for at in range(len(first.tensors))
    ]


def _graph(title: str, trace: Trace, shapes: Sequence[Shape], point: Point, basis: Basis, names: Mapping[str, str]) -> Graph:
    tensors = [Shaped(shape, one.dtype) for shape, one in zip(shapes, trace.tensors, strict=True)]
    nodes: list[Node] = []
    last: list[int] = []
    notes = dict(trace.notes)
    for made in trace.calls:
        nodes += _nodes(made, tensors, names, notes)
        last.append(len(nodes) - 1)
    _bounded(trace)
    dies = {owner: last[at] for owner, at in trace.deaths.items() if at >= 0}
    shown = tuple(
        Tensor(one.name or f"v{at}", shapes[at], one.dtype, one.role, one.storage, dies.get(at))
        for at, one in enumerate(trace.tensors)
    )
    asked = {BATCH: point.batch, LENGTH: point.length}
    used = tuple((name, asked[name]) for name in (BATCH, LENGTH) if any(name in monomial for monomial in basis))
    backward = any(made.backward for made in trace.calls)
    return Graph("torch", title, shown, tuple(nodes), tuple(dict.fromkeys(trace.outputs)), used, backward, tuple(notes))


def _bounded(trace: Trace) -> None:
    for one in trace.tensors:
        size = 1
        for extent in one.shape:
            size *= extent
        if size > MOST_ELEMENTS:
            raise BadInput(
                f"a tensor {one.name or 'of the model'} of {size:.2g} elements",
                "sizes that a machine can address",
                "check the sizes in the file",
            )


def agree(first: Trace, other: Trace) -> None:
    """Raise Misfit where two traces do not run the same operations on tensors of the same ranks."""
    if len(first.calls) != len(other.calls) or len(first.tensors) != len(other.tensors):
        raise Misfit(f"{len(first.calls)} and {len(other.calls)} operations")
    for a, b in zip(first.calls, other.calls, strict=True):
        if a.op != b.op or a.inputs != b.inputs or a.outputs != b.outputs:
            raise Misfit(f"{a.op} and {b.op}")
    for one, two in zip(first.tensors, other.tensors, strict=True):
        if len(one.shape) != len(two.shape) or one.dtype != two.dtype or one.storage != two.storage:
            raise Misfit("tensors of different ranks")


def _nodes(made: Made, tensors: Sequence[Shaped], names: Mapping[str, str], notes: dict[str, None]) -> list[Node]:
    arguments = {name: _filled(value, tensors) for name, value in made.arguments.items()}
    call = Call(made.op, made.overload, arguments, tuple(tensors[at] for at in made.outputs))
    try:
        works = works_of(call)
    except ValueError as error:
        notes[f"counted as nothing: {error}"[:300]] = None
        return []
    for work in works:
        if not work.known:
            notes[f"counted as elementwise: {made.op}"] = None
    phase = "backward" if made.backward else "forward"
    return [
        Node(
            names.get(made.op, made.op),
            work.kind,
            work.dims,
            work.dtype,
            made.inputs,
            made.outputs,
            made.scope,
            phase,
            tuple(dict.fromkeys((*work.marks, *made.marks))),
        )
        for work in works
    ]


def _filled(value: object, tensors: Sequence[Shaped]) -> object:
    if isinstance(value, At):
        return tensors[value.number]
    if isinstance(value, tuple):
        return tuple(_filled(one, tensors) for one in cast("tuple[object, ...]", value))
    return value


def _value(monomial: tuple[str, ...], point: Point) -> int:
    result = 1
    for name in monomial:
        result *= point.batch if name == BATCH else point.length
    return result


def _inverse(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    size = len(matrix)
    wide = [row + [Fraction(int(at == place)) for place in range(size)] for at, row in enumerate(matrix)]
    for at in range(size):
        pivot = next((row for row in range(at, size) if wide[row][at]), None)
        if pivot is None:
            raise Misfit("points that tell nothing")
        wide[at], wide[pivot] = wide[pivot], wide[at]
        lead = wide[at][at]
        wide[at] = [one / lead for one in wide[at]]
        for row in range(size):
            if row != at and wide[row][at]:
                factor = wide[row][at]
                wide[row] = [a - factor * b for a, b in zip(wide[row], wide[at], strict=True)]
    return [row[size:] for row in wide]
