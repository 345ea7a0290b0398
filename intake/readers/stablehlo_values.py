"""Whole numbers that a program computes with: bounds of loops, and sizes where shapes follow symbols.

JAX computes sizes in the program itself (`get_dimension_size`, `multiply`, `concatenate`); here they become polynomials. Only
small tensors are followed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from core.symbols import Extent
from intake.readers.stablehlo_program import wholes
from intake.readers.symbolic import Extents

Elements: TypeAlias = tuple[Extent, ...]
MOST_ELEMENTS, MOST_VALUE = 16, 1 << 64


def _quotient(extents: Extents, one: Extent, other: Extent) -> Extent | None:
    if extents.at(other) == 0:
        return None
    if extents.at(one) * extents.at(other) < 0:  # towards zero, not down
        return -extents.quotient(-one, other)
    return extents.quotient(one, other)


def _remainder(extents: Extents, one: Extent, other: Extent) -> Extent | None:
    whole = _quotient(extents, one, other)
    return None if whole is None else one - whole * other


_BINARY: dict[str, Callable[[Extents, Extent, Extent], Extent | None]] = {
    "add": lambda _, one, other: one + other,
    "subtract": lambda _, one, other: one - other,
    "multiply": lambda _, one, other: one * other,
    "divide": _quotient,
    "remainder": _remainder,
    "maximum": lambda extents, one, other: extents.greatest(one, other),
    "minimum": lambda extents, one, other: extents.least(one, other),
    "and": lambda extents, one, other: _logic(extents, one, other, "and"),
    "or": lambda extents, one, other: _logic(extents, one, other, "or"),
}
_UNARY = frozenset({"convert", "reshape", "copy", "optimization_barrier", "bitcast_convert", "dynamic_reshape"})


def _logic(extents: Extents, one: Extent, other: Extent, how: str) -> Extent | None:
    values = (extents.at(one), extents.at(other))
    if not set(values) <= {0, 1}:
        return None
    return int(all(values)) if how == "and" else int(any(values))


def compare(direction: str, one: int, other: int) -> bool:
    """Whether a comparison of two numbers holds; its direction as StableHLO writes it."""
    sides = {"LT": one < other, "LE": one <= other, "GT": one > other, "GE": one >= other, "EQ": one == other, "NE": one != other}
    return sides[direction]


def evaluate(
    op: str, attributes: Mapping[str, object], operands: Sequence[Elements | None], count: Extent, extents: Extents
) -> Elements | None:
    """Return the elements of an operation's result.

    Args:
        op: its name in StableHLO.
        attributes: of it.
        operands: elements of each, None where they are not known.
        count: elements that the result has.
        extents: the program's symbols.

    Returns:
        The elements; None where they are not known or are too many.
    """
    if not isinstance(count, int) or count > MOST_ELEMENTS or not operands or any(one is None for one in operands):
        return None
    known = [one for one in operands if one is not None]
    if op in _UNARY:
        return known[0]
    if op in _BINARY and len(known) == 2:
        made = [_BINARY[op](extents, one, other) for one, other in zip(*_widened(known), strict=False)]
        return _all(made, count)
    match op:
        case "compare":
            sides = zip(*_widened(known), strict=False)
            direction = str(attributes.get("comparison_direction", ""))
            return _all([int(compare(direction, extents.at(one), extents.at(other))) for one, other in sides], count)
        case "concatenate":
            return _all([one for part in known for one in part], count)
        case "broadcast_in_dim" | "dynamic_broadcast_in_dim" if len(known[0]) in {1, count}:
            return known[0] * count if len(known[0]) == 1 else known[0]
        case "select" if len(known) == 3:
            choice, yes, no = _widened(known)
            return _all([one if extents.at(way) else other for way, one, other in zip(choice, yes, no, strict=False)], count)
        case "clamp" if len(known) == 3:
            low, value, high = _widened(known)
            rows = zip(low, value, high, strict=False)
            return _all([extents.least(extents.greatest(one, floor), top) for floor, one, top in rows], count)
        case "negate":
            return _all([-one for one in known[0]], count)
        case "not":
            return _all([1 - extents.at(one) for one in known[0]], count) if set(known[0]) <= {0, 1} else None
        case "slice":
            return _sliced(attributes, known[0], count)
        case _:
            return None


def _widened(parts: Sequence[Elements]) -> list[Elements]:
    width = max(map(len, parts))
    return [part * width if len(part) == 1 else part for part in parts]


def _all(made: Sequence[Extent | None], count: int) -> Elements | None:
    found = tuple(one for one in made if one is not None)
    small = all(not isinstance(one, int) or abs(one) < MOST_VALUE for one in found)
    return found if small and len(found) == len(made) == count else None


def _sliced(attributes: Mapping[str, object], elements: Elements, count: int) -> Elements | None:
    starts, strides = wholes(attributes, "start_indices"), wholes(attributes, "strides")
    if len(starts) != 1:
        return None
    found = elements[starts[0] :: max(1, *strides)][:count]
    return found if len(found) == count else None
