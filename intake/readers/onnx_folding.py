"""The small tensors that exporters compute shapes with, followed element by element so that shapes stay polynomials.

Only what exporters emit between `Shape` and the operator that takes the result; everything else stays unknown.
"""

from collections.abc import Callable
from math import isfinite, prod
from typing import TypeAlias

from intake.readers.draft import MOST_KNOWN, Done, Known
from intake.readers.onnx_arithmetic import ELEMENTS, Element, Unknown, add, greatest, least, times
from intake.readers.onnx_index import places_in
from intake.readers.operator_step import Step
from intake.readers.symbolic import Unclear, axis_of

_MOST_NUMBER = 1e18
_Move: TypeAlias = Callable[[Step, list[list[int]]], list[Known]]


def folded(step: Step, done: Done) -> tuple[Known | None, ...]:
    """Return the elements of each result, where they follow from those of the operands."""
    told = tuple(result.known for result in done.results)
    known = [one.known for place in _read(step) if (one := step.inputs[place]) is not None]
    if any(one is not None for one in told) or not known or any(one is None or len(one) > MOST_KNOWN for one in known):
        return told
    sizes = [[one for one in result.shape if isinstance(one, int)] for result in done.results]
    if any(len(size) != len(result.shape) or prod(size) > MOST_KNOWN for size, result in zip(sizes, done.results, strict=True)):
        return told
    try:
        if step.op in ELEMENTS:
            return (_each(step, sizes[0]),)
        if step.op in _MOVES:
            return tuple(_MOVES[step.op](step, sizes))
    except Unknown:
        pass
    return told


def _sizes(step: Step, place: int) -> list[int]:
    return [step.number_of(one) for one in step.shape(place)]


def _elements(step: Step, place: int) -> Known:
    known = step.known(place)
    if known is None:
        raise Unknown
    return known


def _read(step: Step) -> list[int]:
    """Return places of the operands whose elements count: of what another only lends its dtype to, the first alone."""
    return [place for place, one in enumerate(step.inputs) if one is not None and (place == 0 or step.op != "CastLike")]


def _each(step: Step, result: list[int]) -> Known:
    operands = [(_sizes(step, place), _elements(step, place)) for place in _read(step)]
    apply, found = ELEMENTS[step.op], list[Element]()
    for place in places_in(result):
        value = apply(step, tuple(known[_flat(place, sizes)] for sizes, known in operands))
        if isinstance(value, int | float) and not (isfinite(value) and abs(value) <= _MOST_NUMBER):
            raise Unknown
        found.append(value)
    return tuple(found)


def _flat(place: tuple[int, ...], sizes: list[int]) -> int:
    """Return where the element is that is broadcast to a place."""
    at = 0
    for index, size in zip(place[len(place) - len(sizes) :], sizes, strict=True):
        at = at * size + (index if size != 1 else 0)
    return at


def _taken(step: Step, sizes: list[list[int]]) -> list[Known]:
    data, known, picked = _sizes(step, 0), _elements(step, 0), step.numbers(1) or ()
    axis = axis_of(step.whole("axis", 0), len(data))
    inner = prod(data[axis + 1 :])
    found: list[Element] = []
    for outer in range(prod(data[:axis])):
        for at in picked:
            if not -data[axis] <= at < data[axis]:
                raise Unclear(f"element {at} of {data[axis]}")
            start = (outer * data[axis] + at % data[axis]) * inner
            found.extend(known[start : start + inner])
    if len(found) != prod(sizes[0]):
        raise Unknown
    return [tuple(found)]


def _cut(step: Step, sizes: list[list[int]]) -> list[Known]:
    data, known = _sizes(step, 0), _elements(step, 0)
    kept = [list(range(size)) for size in data]
    starts, stops = step.numbers(1, "starts") or (), step.numbers(2, "ends") or ()
    axes, strides = step.numbers(3, "axes") or tuple(range(len(starts))), step.numbers(4) or (1,) * len(starts)
    for start, stop, axis, stride in zip(starts, stops, axes, strides, strict=True):
        at = axis_of(axis, len(data))
        kept[at] = kept[at][start : (None if stride < 0 and stop < -data[at] else stop) : stride]
    if [len(one) for one in kept] != sizes[0]:
        raise Unknown
    return [tuple(known[_flat(tuple(kept[axis][one] for axis, one in enumerate(place)), data)] for place in places_in(sizes[0]))]


def _joined(step: Step, sizes: list[list[int]]) -> list[Known]:
    parts = [(_sizes(step, place), _elements(step, place)) for place in range(len(step.inputs))]
    axis = axis_of(step.whole("axis", 1), len(sizes[0]))
    found: list[Element] = []
    for outer in range(prod(sizes[0][:axis])):
        for shape, known in parts:
            width = prod(shape[axis:])
            found.extend(known[outer * width : (outer + 1) * width])
    return [tuple(found)]


def _parts(step: Step, sizes: list[list[int]]) -> list[Known]:
    known = _elements(step, 0)
    if len(step.shape(0)) != 1:
        raise Unknown
    found, at = list[Known](), 0
    for size in sizes:
        found.append(known[at : at + size[0]])
        at += size[0]
    return found


def _spread(step: Step, sizes: list[list[int]]) -> list[Known]:
    data, known = _sizes(step, 0), _elements(step, 0)
    return [tuple(known[_flat(place, data)] for place in places_in(sizes[0]))]


def _tiled(step: Step, sizes: list[list[int]]) -> list[Known]:
    data, known = _sizes(step, 0), _elements(step, 0)
    moved = (tuple(one % size for one, size in zip(place, data, strict=True)) for place in places_in(sizes[0]))
    return [tuple(known[_flat(place, data)] for place in moved)]


def _turned(step: Step, sizes: list[list[int]]) -> list[Known]:
    data, known = _sizes(step, 0), _elements(step, 0)
    order = step.wholes("perm") or tuple(reversed(range(len(data))))
    back = [order.index(axis) for axis in range(len(data))]
    return [tuple(known[_flat(tuple(place[at] for at in back), data)] for place in places_in(sizes[0]))]


def _reduced(step: Step, sizes: list[list[int]]) -> list[Known]:
    known = _elements(step, 0)
    if prod(sizes[0]) != 1 or not known:
        raise Unknown
    apply = {"ReduceProd": times, "ReduceSum": add, "ReduceMax": greatest, "ReduceMin": least}[step.op]
    found = known[0]
    for one in known[1:]:
        found = apply(step, found, one)
    return [(found,)]


def _passed(step: Step, _: list[list[int]]) -> list[Known]:
    return [_elements(step, 0)]


_MOVES: dict[str, _Move] = {
    "Gather": _taken, "Slice": _cut, "Concat": _joined, "Split": _parts, "Expand": _spread, "Tile": _tiled, "Transpose": _turned,
    "ReduceProd": _reduced, "ReduceSum": _reduced, "ReduceMax": _reduced, "ReduceMin": _reduced, "Flatten": _passed,
    "Identity": _passed,
}  # fmt: skip
