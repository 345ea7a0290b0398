"""Extents that follow the batch and the sequence length: polynomials with whole coefficients over named symbols.

A reader traces a model once; what it found is kept as polynomials, so that another batch or length needs no new trace. Symbols
stand for positive whole numbers.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

BATCH, LENGTH = "batch", "length"
Monomial: TypeAlias = tuple[str, ...]
"""Symbols of a product, sorted; one that occurs twice stands twice."""
_PRODUCT = r"[a-z][a-z0-9_]{0,30}(?:\s*\*\s*[a-z][a-z0-9_]{0,30}){0,8}"
_TERM = re.compile(rf"\s*([+-]?)\s*(?:(\d{{1,40}})(?:\s*\*\s*(?=[a-z])|(?!\s*[a-z*])))?({_PRODUCT})?\s*")
MOST_TERMS, MOST_DEGREE, MOST_VALUE = 64, 8, 2**80


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of products of symbols.

    Args:
        terms: monomial and coefficient, sorted, no coefficient 0.
    """

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: "Extent") -> "Extent":
        """Return the sum."""
        return _sum((*self.terms, *_terms(other)))

    __radd__ = __add__

    def __neg__(self) -> "Extent":
        """Return the negative."""
        return _sum((monomial, -factor) for monomial, factor in self.terms)

    def __sub__(self, other: "Extent") -> "Extent":
        """Return the difference."""
        return self + -other

    def __rsub__(self, other: int) -> "Extent":
        """Return the difference from a number."""
        return -self + other

    def __mul__(self, other: "Extent") -> "Extent":
        """Return the product."""
        pairs = ((a, b) for a in self.terms for b in _terms(other))
        return _sum((tuple(sorted((*a[0], *b[0]))), a[1] * b[1]) for a, b in pairs)

    __rmul__ = __mul__

    def __str__(self) -> str:
        """Return it as people write it: `2*batch*length + 4`."""
        written = " + ".join("*".join((*([str(factor)] if factor != 1 or not monomial else []), *monomial))
                             for monomial, factor in reversed(self.terms))
        return written.replace("+ -", "- ")


Extent: TypeAlias = int | Polynomial
"""A whole number that is known, or one that follows symbols."""


def symbol(name: str) -> Polynomial:
    """Return a symbol alone."""
    return Polynomial((((name,), 1),))


def value_of(extent: Extent, values: Mapping[str, int]) -> int:
    """Return an extent as a number.

    Args:
        extent: what is asked for.
        values: of every symbol in it; raises KeyError when one is missing.
    """
    if isinstance(extent, int):
        return extent
    total = 0
    for monomial, factor in extent.terms:
        total += factor * prod(values[name] for name in monomial)
    return total


def product(extents: Iterable[Extent]) -> Extent:
    """Return the product; 1 of none."""
    result: Extent = 1
    for extent in extents:
        result = result * extent
    return result


def total(extents: Iterable[Extent]) -> Extent:
    """Return the sum; 0 of none."""
    return _sum(term for extent in extents for term in _terms(extent))


def divided(extent: Extent, by: Extent) -> Extent | None:
    """Return the exact quotient; None where there is none among polynomials.

    Args:
        extent: what is divided.
        by: a number or a polynomial of one term (what reshapes divide by), or one that is equal to `extent`.
    """
    if extent == by:
        return 1
    parts = _terms(by)
    if len(parts) != 1 or parts[0][1] == 0:
        return None
    monomial, factor = parts[0]
    found: list[tuple[Monomial, int]] = []
    for names, coefficient in _terms(extent):
        rest = list(names)
        for name in monomial:
            if name not in rest:
                return None
            rest.remove(name)
        if coefficient % factor:
            return None
        found.append((tuple(rest), coefficient // factor))
    return _sum(found)


def symbols_in(extents: Iterable[Extent]) -> frozenset[str]:
    """Return the names of the symbols that some extents follow."""
    return frozenset(name for one in extents if isinstance(one, Polynomial) for monomial, _ in one.terms for name in monomial)


def written(extent: Extent) -> int | str:
    """Return an extent for JSON: a number, or the polynomial as text."""
    return extent if isinstance(extent, int) else str(extent)


def read(value: object) -> Extent:
    """Return the extent that `written` gave.

    Raises:
        ValueError: anything else.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > MOST_VALUE:
            raise ValueError(f"got a size of {value.bit_length()} bits; expected less")
        return value
    if not isinstance(value, str) or not value.strip() or len(value) > 4096:
        raise ValueError(f"got {value!r:.60}; expected a whole number or a polynomial such as '2*batch*length + 4'")
    found: list[tuple[Monomial, int]] = []
    at = 0
    while at < len(value):
        term = _TERM.match(value, at)
        if term is None or not (term[2] or term[3]) or term.end() == at or (found and not term[1]) or len(found) > MOST_TERMS:
            raise ValueError(f"got {value!r:.60}; expected a whole number or a polynomial such as '2*batch*length + 4'")
        names = tuple(sorted(part.strip() for part in term[3].split("*"))) if term[3] else ()
        found.append((names, int(term[2] or 1) * (-1 if term[1] == "-" else 1)))
        at = term.end()
    return _sum(found)


def _terms(extent: Extent) -> tuple[tuple[Monomial, int], ...]:
    return ((((), extent),) if extent else ()) if isinstance(extent, int) else extent.terms


def _sum(terms: Iterable[tuple[Monomial, int]]) -> Extent:
    found: dict[Monomial, int] = {}
    for monomial, factor in terms:
        found[monomial] = found.get(monomial, 0) + factor
    kept = sorted((monomial, factor) for monomial, factor in found.items() if factor)
    if len(kept) > MOST_TERMS or any(len(monomial) > MOST_DEGREE for monomial, _ in kept):
        raise ValueError(f"got a size of {len(kept)} terms; expected at most {MOST_TERMS} of degree {MOST_DEGREE}")
    if not kept:
        return 0
    return kept[0][1] if len(kept) == 1 and not kept[0][0] else Polynomial(tuple(kept))
