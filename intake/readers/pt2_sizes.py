"""Sizes of a `.pt2` file: expressions over its symbols, parsed as data into polynomials.

Two spellings are known: sympy's own (`Add(Symbol('s0', integer=True), Integer(1))`) and plain Python (`2*s0 + 1`). Whatever is no
polynomial (a floor division, a maximum) is evaluated at the value of the trace, and its symbols are fixed there.
"""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from core.symbols import Extent, Polynomial, divided, product, symbol, value_of

MOST_TEXT, MOST_SIZE = 4096, 2**62


class Fixed(Exception):
    """Symbols in an expression that is no polynomial."""

    def __init__(self, names: frozenset[str], expression: str) -> None:
        super().__init__(expression)
        self.names, self.expression = names, expression


@dataclass(slots=True)
class Sizes:
    """The symbols of a file.

    Args:
        named: what a symbol of the file stands for: a symbol of a graph, or a number or polynomial that bounds it.
        values: of the symbols of the graph.
    """

    named: dict[str, Extent] = field(default_factory=dict[str, Extent])
    values: dict[str, int] = field(default_factory=dict[str, int])

    def extent(self, size: object) -> Extent:
        """Return a size as the file writes it: a number, or an expression with its hint.

        Raises:
            Fixed: it is no polynomial.
            ValueError: it is no size.
        """
        if isinstance(size, Mapping):
            plain = cast("Mapping[str, object]", size)
            if isinstance(whole := plain.get("as_int"), int) and not isinstance(whole, bool):
                return self._checked(whole)
            expression = plain.get("as_expr")
            if isinstance(expression, Mapping):
                text = cast("Mapping[str, object]", expression).get("expr_str")
                if isinstance(text, str):
                    return self._checked(self.parsed(text))
        raise ValueError("a size that is neither a number nor an expression")

    def parsed(self, text: str) -> Extent:
        """Return an expression as a polynomial over the symbols of the graph."""
        if len(text) > MOST_TEXT:
            raise ValueError(f"a size of {len(text)} characters")
        try:
            return self._node(ast.parse(text.strip(), mode="eval").body, text)
        except (SyntaxError, RecursionError, MemoryError):
            raise ValueError(f"a size {text[:60]!r}") from None

    def _checked(self, extent: Extent) -> Extent:
        if not -MOST_SIZE < self._number(extent) < MOST_SIZE:
            raise ValueError(f"a size {extent!s:.60}")
        return extent

    def _number(self, extent: Extent) -> int:
        return value_of(extent, self.values)

    def _node(self, node: ast.expr, text: str) -> Extent:
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
            return node.value
        if isinstance(node, ast.Name):
            return self._symbol(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._node(node.operand, text)
        if isinstance(node, ast.BinOp):
            return self._operation(type(node.op).__name__, [self._node(node.left, text), self._node(node.right, text)], text)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name == "Symbol" and node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
                return self._symbol(node.args[0].value)
            return self._operation(name, [self._node(one, text) for one in node.args], text)
        raise ValueError(f"a size {text[:60]!r}")

    def _symbol(self, name: str) -> Extent:
        if name in ("Zero", "One", "NegativeOne"):
            return {"Zero": 0, "One": 1, "NegativeOne": -1}[name]
        if name not in self.named:
            raise ValueError(f"a size of the unknown symbol {name[:40]!r}")
        return self.named[name]

    def _operation(self, name: str, parts: list[Extent], text: str) -> Extent:
        if name == "Integer" and len(parts) == 1:
            return parts[0]
        if name in ("Add", "Sub", "Mult", "Mul") and parts:
            if name == "Sub":
                return parts[0] - parts[1]
            return sum(parts, start=0) if name == "Add" else product(parts)
        if name == "Pow" and len(parts) == 2 and isinstance(parts[1], int) and 0 <= parts[1] <= 8:
            return product([parts[0]] * parts[1])
        if name in ("FloorDiv", "CleanDiv", "Div", "IntTrueDiv") and len(parts) == 2 and parts[1] != 0:
            exact = divided(parts[0], parts[1])
            if exact is not None:
                return exact
        return self._evaluated(name, parts, text)

    def _evaluated(self, name: str, parts: list[Extent], text: str) -> Extent:
        free = frozenset(one for part in parts if isinstance(part, Polynomial) for names, _ in part.terms for one in names)
        if free:
            raise Fixed(free, text)
        numbers = [part for part in parts if isinstance(part, int)]
        found = _NUMERIC.get(name)
        bad = ValueError(f"a size {text[:60]!r}")
        if found is None or not numbers or any(abs(one) > MOST_SIZE for one in numbers):
            raise bad
        try:
            return found(numbers)
        except (ValueError, ZeroDivisionError, IndexError, OverflowError):
            raise bad from None


_NUMERIC: dict[str, Callable[[list[int]], int]] = {
    "FloorDiv": lambda n: n[0] // n[1], "CleanDiv": lambda n: n[0] // n[1], "Div": lambda n: n[0] // n[1],
    "IntTrueDiv": lambda n: n[0] // n[1], "floor": lambda n: n[0], "ceiling": lambda n: n[0], "CeilToInt": lambda n: n[0],
    "FloorToInt": lambda n: n[0], "TruncToInt": lambda n: n[0], "ToFloat": lambda n: n[0], "Identity": lambda n: n[0],
    "CeilDiv": lambda n: -(-n[0] // n[1]), "Max": max, "Min": min, "Mod": lambda n: n[0] % n[1],
    "PythonMod": lambda n: n[0] % n[1],
    "Abs": lambda n: abs(n[0]), "ModularIndexing": lambda n: n[0] // n[1] % n[2],
    "LShift": lambda n: n[0] << min(n[1], 64), "RShift": lambda n: n[0] >> n[1], "PowByNatural": lambda n: n[0] ** min(n[1], 62),
}  # fmt: skip
_PLAIN = re.compile(r"^\s*(?:Symbol\(\s*'([^']{1,60})'[^)]*\)|([A-Za-z_][A-Za-z0-9_]{0,60}))\s*$")


def plain_symbol(size: object) -> tuple[str, int | None] | None:
    """Return the symbol that a size is alone, and the value that the trace had for it; None for anything else."""
    expression = cast("Mapping[str, object]", size).get("as_expr") if isinstance(size, Mapping) else None
    if not isinstance(expression, Mapping):
        return None
    values = cast("Mapping[str, object]", expression)
    text, hint = values.get("expr_str"), values.get("hint")
    found = _PLAIN.match(text) if isinstance(text, str) and len(text) < 200 else None
    if found is None:
        return None
    value = cast("Mapping[str, object]", hint).get("as_int") if isinstance(hint, Mapping) else None
    return found[1] or found[2], value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def free_symbols(text: str) -> set[str]:
    """Return the names of symbols in an expression, of either spelling."""
    quoted = set(re.findall(r"Symbol\(\s*'([^']{1,60})'", text[:MOST_TEXT]))
    return quoted or set(re.findall(r"\b[a-z]{1,3}\d+\b", text[:MOST_TEXT]))


def graph_name(name: str) -> str:
    """Return a symbol's own name in the words of a graph."""
    return re.sub(r"[^a-z0-9_]", "_", name.lower())[:30].lstrip("_0123456789") or "size"


def named(name: str) -> Extent:
    """Return a symbol of a graph."""
    return symbol(name)
