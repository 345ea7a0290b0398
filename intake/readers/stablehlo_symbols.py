"""Open extents of a program's arguments: which symbols they follow, and the sizes that JAX writes as expressions of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from core.errors import BadInput
from core.symbols import BATCH, LENGTH, Extent, Polynomial, symbol
from intake.readers.stablehlo_program import Function, Program, Region, Value
from intake.readers.symbolic import Extents, Unclear

_TOKEN = re.compile(r"\d{1,18}|[A-Za-z_]\w{0,60}|[-+*^(),]")
_SPECIFICATION = re.compile(r"\.shape = \(((?:[^()]|\([^()]*\))*)\)")
_MOST_DEPTH = 20
_VALUES = {BATCH: 1, LENGTH: 128}
_OTHER = 128


@dataclass(slots=True)
class Expressions:
    """Reads sizes such as `2*b + 1` or `floordiv(t, 2)`.

    Args:
        names: what each symbol of the file stands for; symbols that are not in it are added under their own names.
        extents: values of the symbols.
    """

    names: dict[str, Extent]
    extents: Extents

    def read(self, text: str) -> Extent:
        """Return the size that an expression stands for.

        Raises:
            Unclear: it is none.
        """
        tokens = _TOKEN.findall(text)
        if "".join(tokens) != re.sub(r"\s+", "", text) or not tokens:
            raise Unclear(f"a size {text[:60]!r}")
        value, rest = self._sum(tokens, 0)
        if rest:
            raise Unclear(f"a size {text[:60]!r}")
        return value

    def _sum(self, tokens: list[str], depth: int) -> tuple[Extent, list[str]]:
        if depth > _MOST_DEPTH:
            raise Unclear("a size of too many brackets")
        negative = tokens[:1] == ["-"]
        value, rest = self._product(tokens[1:] if negative else tokens, depth)
        value = -value if negative else value
        while rest[:1] in (["+"], ["-"]):
            sign = rest[0]
            other, rest = self._product(rest[1:], depth)
            value = value + other if sign == "+" else value - other
        return value, rest

    def _product(self, tokens: list[str], depth: int) -> tuple[Extent, list[str]]:
        value, rest = self._power(tokens, depth)
        while rest[:1] == ["*"]:
            other, rest = self._power(rest[1:], depth)
            value = value * other
        return value, rest

    def _power(self, tokens: list[str], depth: int) -> tuple[Extent, list[str]]:
        value, rest = self._atom(tokens, depth)
        if rest[:1] == ["^"]:
            if len(rest) < 2 or not rest[1].isdigit() or int(rest[1]) > 8:
                raise Unclear("a size of a power that is no small number")
            total: Extent = 1
            for _ in range(int(rest[1])):
                total = total * value
            return total, rest[2:]
        return value, rest

    def _atom(self, tokens: list[str], depth: int) -> tuple[Extent, list[str]]:
        if not tokens:
            raise Unclear("a size that ends early")
        first, rest = tokens[0], tokens[1:]
        if first.isdigit():
            return int(first), rest
        if first == "(":
            value, rest = self._sum(rest, depth + 1)
            return value, self._expect(rest, ")")
        if rest[:1] == ["("]:
            one, rest = self._sum(rest[1:], depth + 1)
            other, rest = self._sum(self._expect(rest, ","), depth + 1)
            return self._function(first, one, other), self._expect(rest, ")")
        if not first[0].isalpha() and first[0] != "_":
            raise Unclear(f"a size with {first!r}")
        return self.symbol(first), rest

    def symbol(self, name: str) -> Extent:
        """Return what a symbol of the file stands for."""
        if name not in self.names:
            own = name.lower().strip("_")[:30] or "size"
            own = own if own[0].isalpha() and own not in _VALUES and own not in self.extents.values else f"size_{len(self.names)}"
            self.extents.values[own] = _OTHER
            self.names[name] = symbol(own)
        return self.names[name]

    def _function(self, name: str, one: Extent, other: Extent) -> Extent:
        match name:
            case "floordiv":
                return self.extents.quotient(one, other)
            case "mod":
                return one - self.extents.quotient(one, other) * other
            case "max":
                return self.extents.greatest(one, other)
            case "min":
                return self.extents.least(one, other)
            case _:
                raise Unclear(f"a size computed with {name[:40]}")

    @staticmethod
    def _expect(tokens: list[str], token: str) -> list[str]:
        if tokens[:1] != [token]:
            raise Unclear(f"a size without {token!r}")
        return tokens[1:]


def name_symbols(shapes: Sequence[Sequence[str]], expressions: Expressions) -> None:
    """Call the symbol that is the first axis of the arguments the batch, and the first that is a second axis the length.

    Args:
        shapes: of the arguments, as the file writes each extent.
        expressions: gets the names.
    """
    for axis, name in ((0, BATCH), (1, LENGTH)):
        found = next((shape[axis] for shape in shapes if len(shape) > axis and re.fullmatch(r"[A-Za-z_]\w*", shape[axis])), None)
        if found is not None and found not in expressions.names:
            expressions.names[found] = symbol(name)
            expressions.extents.values.setdefault(name, _VALUES[name])


def close(program: Program, replacements: Mapping[str, Extent]) -> Program:
    """Return a program whose main function's arguments have no open extents.

    Args:
        program: as it was read.
        replacements: of symbols that must be numbers, or other symbols.
    """
    main = program.functions[program.main]
    opened = [value.type[0] for value in main.region.arguments if None in value.type[0]]
    if not opened:
        return program
    extents = Extents({})
    told = [_split(found) for found in _SPECIFICATION.findall(program.specification.partition("Obtained")[0])]
    rows = _specified(opened, told, extents) or [_by_axis(shape, extents, dict(program.bounds)) for shape in opened]
    turn = iter(rows)
    arguments = tuple(
        Value(one.number, (tuple(_replaced(size, replacements) for size in next(turn)), one.type[1]))
        if None in one.type[0]
        else one
        for one in main.region.arguments
    )
    functions: dict[str, Function] = dict(program.functions)
    functions[program.main] = replace(main, region=Region(arguments, main.region.body, main.region.returns))
    return replace(program, functions=functions, symbols=tuple(extents.values.items()))


def _split(text: str) -> list[str]:
    found: list[str] = []
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    return [one for one in (*found, text[start:].strip()) if one]


def _specified(
    opened: Sequence[Sequence[Extent | None]], told: Sequence[list[str]], extents: Extents
) -> list[tuple[Extent, ...]]:
    """Shapes as JAX's own message about them says; nothing when the message does not belong to these arguments."""
    if len(told) != len(opened) or any(len(said) != len(shape) for said, shape in zip(told, opened, strict=True)):
        return []
    expressions = Expressions({}, extents)
    name_symbols(told, expressions)
    try:
        rows = [tuple(expressions.read(one) for one in said) for said in told]
    except (Unclear, BadInput):
        return []
    pairs = (pair for shape, row in zip(opened, rows, strict=True) for pair in zip(shape, row, strict=True))
    return rows if all(size is None or size == read for size, read in pairs) else []


def _by_axis(shape: Sequence[Extent | None], extents: Extents, bounds: Mapping[int, int]) -> tuple[Extent, ...]:
    found: list[Extent] = []
    for axis, size in enumerate(shape):
        if size is not None:
            found.append(size)
            continue
        name = BATCH if axis == 0 else LENGTH if axis == 1 and len(shape) < 4 else f"axis_{axis}"
        extents.values.setdefault(name, bounds.get(axis, _VALUES.get(name, _OTHER)))
        found.append(symbol(name))
    return tuple(found)


def _replaced(extent: Extent | None, replacements: Mapping[str, Extent]) -> Extent:
    assert extent is not None
    if not isinstance(extent, Polynomial):
        return extent
    total: Extent = 0
    for monomial, factor in extent.terms:
        part: Extent = factor
        for name in monomial:
            part = part * replacements.get(name, symbol(name))
        total = total + part
    return total
