"""Arithmetic of single elements of the small tensors that shapes are computed with: numbers, or polynomials of symbols.

What has no answer among polynomials is either pinned (a size that is scaled) or stays unknown (its square root, say).
"""

from collections.abc import Callable
from math import ceil, exp, floor, log, sqrt, trunc
from typing import TypeAlias

from core.symbols import Extent, Polynomial
from intake.readers.operator_step import Step
from intake.readers.symbolic import Extents

Element: TypeAlias = Extent | float
Apply: TypeAlias = Callable[[Step, tuple[Element, ...]], Element]


class Unknown(Exception):
    """An element that is not followed."""


def _one(apply: Callable[[Step, Element], Element]) -> Apply:
    return lambda step, taken: apply(step, taken[0])


def _two(apply: Callable[[Step, Element, Element], Element]) -> Apply:
    return lambda step, taken: apply(step, taken[0], taken[1])


def _many(apply: Callable[[Step, Element, Element], Element]) -> Apply:
    def every(step: Step, taken: tuple[Element, ...]) -> Element:
        found = taken[0]
        for one in taken[1:]:
            found = apply(step, found, one)
        return found

    return every


def _fraction(value: Element) -> float:
    if isinstance(value, Polynomial):
        raise Unknown
    return float(value)


def _extent(value: Element) -> Extent:
    if isinstance(value, float):
        if not value.is_integer():
            raise Unknown
        return int(value)
    return value


def _both(a: Element, b: Element, whole: Callable[[Extent, Extent], Extent], real: Callable[[float, float], float]) -> Element:
    """Apply to sizes where one is a polynomial or both are whole, else to fractions."""
    if isinstance(a, Polynomial) or isinstance(b, Polynomial):
        return whole(_extent(a), _extent(b))
    if isinstance(a, float) or isinstance(b, float):
        return real(float(a), float(b))
    return whole(a, b)


def add(_: Step, a: Element, b: Element) -> Element:
    """Return the sum."""
    return _both(a, b, lambda x, y: x + y, lambda x, y: x + y)


def _subtract(_: Step, a: Element, b: Element) -> Element:
    return _both(a, b, lambda x, y: x - y, lambda x, y: x - y)


def times(step: Step, a: Element, b: Element) -> Element:
    """Return the product; a size that is scaled by the inverse of a whole number is divided by it."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Polynomial) and isinstance(other, float) and not other.is_integer():
            if other > 0 and abs(1 / other - round(1 / other)) < 1e-9:
                return step.extents.quotient(one, round(1 / other))
            raise step.extents.pin((one,), f"{one} is scaled by {other:.4g}")
    return _both(a, b, lambda x, y: x * y, lambda x, y: x * y)


def _divide(step: Step, a: Element, b: Element) -> Element:
    if isinstance(a, Polynomial) or isinstance(b, Polynomial):
        return step.extents.quotient(_extent(a), _extent(b))
    if b == 0:
        raise Unknown
    if isinstance(a, float) or isinstance(b, float) or not step.first.dtype.startswith(("int", "uint")):
        return a / b
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _modulo(step: Step, a: Element, b: Element) -> Element:
    whole, by = _extent(a), _extent(b)
    if by == 0:
        raise Unknown
    return whole - step.extents.quotient(whole, by) * by


def _power(_: Step, a: Element, b: Element) -> Element:
    if isinstance(a, Polynomial) and b == 2:
        return a * a
    base, exponent = _fraction(a), _fraction(b)
    if abs(exponent) > 32 or abs(base) > 1e6 or (base == 0 and exponent < 0) or (base < 0 and not exponent.is_integer()):
        raise Unknown
    found = float(base**exponent)
    return int(found) if isinstance(a, int) and found.is_integer() else found


def least(step: Step, a: Element, b: Element) -> Element:
    """Return the smaller one."""
    return _both(a, b, step.extents.least, min)


def greatest(step: Step, a: Element, b: Element) -> Element:
    """Return the greater one."""
    return _both(a, b, step.extents.greatest, max)


def _equal(step: Step, a: Element, b: Element) -> Element:
    if not isinstance(a, Polynomial) and not isinstance(b, Polynomial):
        return int(a == b)
    return int(_order(step.extents, _extent(a), _extent(b), only_equal=True) == 0)


def _order(extents: Extents, a: Extent, b: Extent, only_equal: bool = False) -> int:
    sign = extents.sign(a - b)
    if sign is None and only_equal and extents.at(a - b) != 0:
        return 1  # a size that follows a symbol is not that one number
    return extents.compare(a, b) if sign is None else sign


def _ordered(*wanted: int) -> Apply:
    def compare(step: Step, a: Element, b: Element) -> Element:
        if isinstance(a, Polynomial) or isinstance(b, Polynomial):
            return int(_order(step.extents, _extent(a), _extent(b)) in wanted)
        return int(((a > b) - (a < b)) in wanted)

    return _two(compare)


def _logic(apply: Callable[[bool, bool], bool]) -> Apply:
    return lambda _, taken: int(apply(taken[0] != 0, taken[1] != 0))


def _cast(step: Step, value: Element) -> Element:
    if isinstance(value, Polynomial):
        return value
    if step.op == "CastLike":
        like = step.inputs[1].dtype if len(step.inputs) > 1 and step.inputs[1] is not None else ""
        truth, fraction = like == "bool", like.startswith(("fp", "bf"))
    else:
        to = step.whole("to", 1)
        truth, fraction = to == 9, to in {1, 10, 11, 16}
    return int(value != 0) if truth else float(value) if fraction else trunc(value)


def _clip(step: Step, taken: tuple[Element, ...]) -> Element:
    low = taken[1] if step.optional(1) is not None else None
    high = taken[-1] if step.optional(2) is not None else None
    found = taken[0] if low is None else greatest(step, taken[0], low)
    return found if high is None else least(step, found, high)


def _real(apply: Callable[[float], float]) -> Apply:
    def one(_: Step, value: Element) -> Element:
        try:
            return apply(_fraction(value))
        except (ValueError, OverflowError, ZeroDivisionError):
            raise Unknown from None

    return _one(one)


def _rounded(apply: Callable[[float], int]) -> Apply:
    return _one(lambda _, value: value if isinstance(value, Polynomial) else float(apply(value)))


def _absolute(step: Step, value: Element) -> Element:
    if isinstance(value, Polynomial):
        return value if step.extents.at(value) >= 0 else -value
    return abs(value)


ELEMENTS: dict[str, Apply] = {
    "Add": _two(add), "Sum": _many(add), "Sub": _two(_subtract), "Mul": _two(times), "Div": _two(_divide),
    "Mod": _two(_modulo), "Pow": _two(_power), "Min": _many(least), "Max": _many(greatest), "Equal": _two(_equal),
    "Greater": _ordered(1), "GreaterOrEqual": _ordered(0, 1), "Less": _ordered(-1), "LessOrEqual": _ordered(-1, 0),
    "And": _logic(lambda a, b: a and b), "Or": _logic(lambda a, b: a or b), "Xor": _logic(lambda a, b: a != b),
    "Not": _one(lambda _, value: int(value == 0)), "Where": lambda _, taken: taken[1] if taken[0] != 0 else taken[2],
    "Cast": _one(_cast), "CastLike": _one(_cast), "Clip": _clip, "Neg": _one(lambda _, value: -value), "Abs": _one(_absolute),
    "Sqrt": _real(sqrt), "Exp": _real(exp), "Log": _real(log), "Reciprocal": _real(lambda value: 1 / value),
    "Floor": _rounded(floor), "Ceil": _rounded(ceil), "Round": _rounded(round),
}  # fmt: skip
"""What an operator does with one element of each operand."""
