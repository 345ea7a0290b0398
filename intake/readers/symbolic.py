"""Sizes of which some follow the batch or the length: the arithmetic of shapes that polynomials alone cannot answer.

Quotients that are no polynomial, and comparisons that depend on a symbol's value, are answered for the value that the symbol has
in the file. A quotient takes the symbol's freedom (`Pinned` makes a reader begin again with a number in its place); which of
two sizes is smaller is noted only, since the size itself still follows the symbol.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import gcd

from core.graph import Shape
from core.symbols import BATCH, Extent, Polynomial, divided, product, value_of

MOST_ELEMENTS = 1 << 62


class Pinned(Exception):
    """Symbols that must be numbers, or another symbol, from here on; the reader catches it and begins again."""

    def __init__(self, replacements: Mapping[str, Extent], why: str) -> None:
        self.replacements, self.why = dict(replacements), why
        super().__init__(why)


class Unclear(Exception):
    """A shape that a file does not tell; the reader turns it into one line."""


@dataclass(slots=True)
class Extents:
    """The symbols of a file and what was assumed of them.

    Args:
        values: of each symbol, as the file has it.
        notes: what was assumed, each once.
    """

    values: dict[str, int]
    notes: dict[str, None] = field(default_factory=dict[str, None])

    def at(self, extent: Extent) -> int:
        """Return an extent for the file's own values."""
        return extent if isinstance(extent, int) else value_of(extent, self.values)

    def pin(self, extents: Iterable[Extent], why: str) -> Pinned:
        """Return the error that makes every symbol of these extents a number."""
        followed = [one for one in extents if isinstance(one, Polynomial)]
        names = {name for one in followed for monomial, _ in one.terms for name in monomial}
        return Pinned({name: self.values[name] for name in sorted(names)}, why)

    def quotient(self, extent: Extent, by: Extent) -> Extent:
        """Return the quotient, rounded down; exact among polynomials where that can be."""
        if isinstance(extent, int) and isinstance(by, int):
            if by == 0:
                raise Unclear("a size is divided by 0")
            return extent // by
        if (exact := divided(extent, by)) is not None:
            return exact
        if isinstance(extent, Polynomial) and isinstance(by, int) and by > 0:
            whole, rest = 0, 0
            for monomial, factor in extent.terms:
                term = Polynomial(((monomial, factor),)) if monomial else factor
                if monomial and factor % by == 0:
                    whole = whole + (divided(term, by) or 0)
                else:
                    rest = rest + term
            if isinstance(rest, int):
                return whole + rest // by
        raise self.pin((extent, by), f"{extent} is divided by {by}")

    def rounded_up(self, extent: Extent, by: Extent) -> Extent:
        """Return the quotient, rounded up."""
        return -self.quotient(-extent, by)

    def sign(self, extent: Extent) -> int | None:
        """Return the sign of an extent (-1, 0, 1) where it is the same for all values of its symbols; None otherwise."""
        if isinstance(extent, int):
            return (extent > 0) - (extent < 0)
        factors = [(monomial, factor) for monomial, factor in extent.terms]
        least = sum(factor for _, factor in factors)  # symbols are 1 or more
        if all(factor > 0 for monomial, factor in factors if monomial) and least > 0:
            return 1
        if all(factor < 0 for monomial, factor in factors if monomial) and least < 0:
            return -1
        return None

    def compare(self, one: Extent, other: Extent) -> int:
        """Return -1, 0 or 1 as one extent is less than, equal to or above the other; noted where that depends on a symbol."""
        difference = one - other
        known = self.sign(difference)
        if known is not None:
            return known
        here = self.at(difference)
        if here == 0:
            raise self.pin((difference,), f"{one} is compared with {other}")
        self.notes[f"holds while {one} {'<' if here < 0 else '>'} {other}"] = None
        return 1 if here > 0 else -1

    def least(self, one: Extent, other: Extent) -> Extent:
        """Return the smaller one."""
        if one == other or self.at(one) == self.at(other):
            return one if isinstance(one, Polynomial) else other
        return one if self.compare(one, other) <= 0 else other

    def greatest(self, one: Extent, other: Extent) -> Extent:
        """Return the greater one."""
        if one == other or self.at(one) == self.at(other):
            return one if isinstance(one, Polynomial) else other
        return one if self.compare(one, other) >= 0 else other

    def same(self, one: Extent, other: Extent, what: str) -> Extent:
        """Return the extent that two are, where a model can only run when they are equal.

        Raises:
            Pinned: a symbol has to be something else for it.
            Unclear: two numbers that differ.
        """
        if one == other:
            return one
        if isinstance(one, int) and isinstance(other, int):
            raise Unclear(f"{what}: {one} where {other} is needed")
        for this, that in ((one, other), (other, one)):
            name = _alone(this)
            if name and not (isinstance(that, Polynomial) and any(name in monomial for monomial, _ in that.terms)):
                if isinstance(that, int) and that < 1:
                    continue
                raise Pinned({name: that}, f"{what}: {this} has to be {that}")
        raise self.pin((one, other), f"{what}: {one} has to be {other}")

    def broadcast(self, *shapes: Shape) -> Shape:
        """Return the shape that all of these are broadcast to."""
        result: list[Extent] = []
        for axis in range(-max((len(shape) for shape in shapes), default=0), 0):
            extent: Extent = 1
            for shape in shapes:
                other = shape[axis] if len(shape) >= -axis else 1
                if extent == 1:
                    extent = other
                elif other != 1:
                    extent = self.same(extent, other, "operands of different shape")
            result.append(extent)
        return tuple(result)

    def reshaped(self, shape: Shape, wanted: Iterable[Extent], zero_copies: bool = True) -> Shape:
        """Return the shape of a reshape.

        Args:
            shape: of the operand.
            wanted: extents, of which one may be -1, and 0 stands for the operand's own where `zero_copies`.
        """
        found: list[Extent] = []
        for axis, extent in enumerate(wanted):
            if extent == 0 and zero_copies and isinstance(extent, int):
                if axis >= len(shape):
                    raise Unclear("a reshape copies an axis that is not there")
                found.append(shape[axis])
            else:
                found.append(extent)
        total = product(shape)
        if -1 in found:
            at = found.index(-1)
            rest = product(found[:at] + found[at + 1 :])
            if rest == 0:
                found[at] = 0
                return tuple(found)
            exact = divided(total, rest)
            if exact is None:
                self._divisible(total, rest)
            found[at] = exact if exact is not None else self.quotient(total, rest)
        if any(isinstance(extent, int) and extent < 0 for extent in found):
            raise Unclear(f"a reshape to {shape_text(found)}")
        if product(found) != total:
            self.same(product(found), total, "a reshape")
        return tuple(found)

    def _divisible(self, total: Extent, rest: Extent) -> None:
        """Give a symbol the value that a reshape was traced with, where the file's own value cannot be."""
        if not isinstance(total, Polynomial) or len(total.terms) != 1 or not isinstance(rest, int) or self.at(total) % rest == 0:
            return
        monomial, factor = total.terms[0]
        name = max(monomial, key=lambda one: one != BATCH)
        raise Pinned({name: rest // gcd(rest, factor)}, f"{total} is reshaped in parts of {rest}")

    def check(self, shape: Shape, name: str) -> None:
        """Refuse a shape that nothing could hold."""
        total = 1
        for extent in shape:
            here = self.at(extent)
            if here < 0:
                raise Unclear(f"{name[:60]} of shape {shape_text(shape)}")
            total *= max(here, 1)
            if total > MOST_ELEMENTS:
                raise Unclear(f"{name[:60]} of over 2**62 elements")


def axis_of(axis: int, rank: int) -> int:
    """Return an axis as a number from 0 on.

    Raises:
        Unclear: there is no such axis.
    """
    if not -rank <= axis < max(rank, 1):
        raise Unclear(f"axis {axis} of {rank}")
    return axis % rank if rank else 0


def shape_text(shape: Iterable[Extent]) -> str:
    """Return a shape as people write it."""
    return "(" + ", ".join(map(str, shape)) + ")"


def _alone(extent: Extent) -> str:
    if isinstance(extent, Polynomial) and len(extent.terms) == 1 and extent.terms[0][1] == 1 and len(extent.terms[0][0]) == 1:
        return extent.terms[0][0][0]
    return ""
