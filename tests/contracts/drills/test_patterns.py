"""Drill F23: the worst text for every pattern that sees input costs time in proportion to its length, not to its square or worse.

The worst text is made from the pattern itself: what one of its repeats takes, many times, behind the least that comes before it,
and then something that lets the match fail at its end.
"""

import ast
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_parse

Parts = list[tuple[Any, Any]]
"""Of a pattern, as Python parses it: kinds and what they hold."""
ROOT = Path(__file__).parents[3]
ROOMS = ("intake", "core", "services", "catalog", "cli")
CALLS = {"compile", "match", "search", "fullmatch", "sub", "findall", "finditer", "split"}
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
NOTICED_S = 0.02
MOST_GROWTH = 3.0
"""From one length to the next, of what takes time that can be noticed: 2 is proportion, 4 the square."""
SHORT = {"catalog/names.py": 160}
"""Characters of the longest text that is not refused before patterns of a file see it."""
TAILS = ("", "\0", "a")


def patterns() -> Iterator[tuple[str, str, int, str]]:
    """Yield place, text, flags and use (search, match or fullmatch) of each pattern that the source states."""
    for path in sorted(one for room in ROOMS for one in (ROOT / room).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        named = {node.value: target.id for node in ast.walk(tree) if isinstance(node, ast.Assign)
                 for target in node.targets if isinstance(target, ast.Name)}  # fmt: skip
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            text = node.args[0]
            if node.func.attr not in CALLS or not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re"):
                continue
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                flags = sum(int(getattr(re, one.attr)) for one in ast.walk(node) if isinstance(one, ast.Attribute)
                            and one.attr.isupper())  # fmt: skip
                uses = re.findall(rf"\b{named[node]}\.(\w+)\(", source) if node in named else [node.func.attr]
                use = next((one for one in ("search", "match", "fullmatch") if one in uses and set(uses) <= {one}), "search")
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text.value, flags, use


FOUND = list(patterns())


def least(parts: Parts) -> str:
    """Return a short text that parts of a pattern take, or nearly."""
    return "".join(one_of(kind, value) for kind, value in parts)


def one_of(kind: Any, value: Any) -> str:
    name = str(kind)
    match name:
        case "LITERAL":
            return chr(int(str(value)))
        case "NOT_LITERAL":
            return "b" if value == ord("a") else "a"
        case "ANY":
            return "a"
        case "IN":
            return member(list(value))
        case "BRANCH":
            return least(list(value[1][0]))
        case "SUBPATTERN":
            return least(list(value[3]))
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return least(list(value[2])) * max(1, min(int(value[0]), 4))
        case _:
            return ""


def member(items: Parts) -> str:
    """Return a character of a set."""
    negated = any(str(kind) == "NEGATE" for kind, _ in items)
    for one in "a 0_-.x=('\"#\t":
        if re.match(re.compile(shown(items)), one):
            return one
    return "\u00e9" if negated else chr(first(items))


def first(items: Parts) -> int:
    kind, value = items[0]
    return int(value[0]) if str(kind) == "RANGE" else int(str(value)) if str(kind) == "LITERAL" else ord("a")


CATEGORIES = {"CATEGORY_DIGIT": r"\d", "CATEGORY_NOT_DIGIT": r"\D", "CATEGORY_SPACE": r"\s", "CATEGORY_NOT_SPACE": r"\S",
              "CATEGORY_WORD": r"\w", "CATEGORY_NOT_WORD": r"\W"}  # fmt: skip


def shown(items: Parts) -> str:
    """Return a set as a pattern of its own."""
    body = ""
    for kind, value in items:
        match str(kind):
            case "NEGATE":
                body = "^" + body
            case "LITERAL":
                body += re.escape(chr(int(str(value))))
            case "RANGE":
                body += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
            case _:
                body += CATEGORIES[str(value)]
    return f"[{body}]"


def repeats(parts: Parts, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield what comes before each repeat without a bound, and what it takes once."""
    for kind, value in parts:
        name = str(kind)
        if name in {"MAX_REPEAT", "MIN_REPEAT"}:
            inner = list(value[2])
            if int(value[1]) > 100:
                yield before, least(inner)
            yield from repeats(inner, before)
        elif name == "SUBPATTERN":
            yield from repeats(list(value[3]), before)
        elif name == "BRANCH":
            for side in value[1]:
                yield from repeats(list(side), before)
        before += one_of(kind, value)


def seconds(find: Callable[[str], object], text: str) -> float:
    """Return the processor's time for a search."""
    began = time.process_time()
    find(text)
    return time.process_time() - began


def grows(find: Callable[[str], object], start: str, unit: str, tail: str, most: int) -> bool:
    """Whether the time of a text of at most so many characters grows out of proportion to its length."""
    before = 0.0
    for length in (one for one in (*LENGTHS, most) if one <= most):
        text = start + unit * (length // len(unit)) + tail
        took = seconds(find, text)
        if took > NOTICED_S:  # once more, as anything may have come between
            took = min(took, seconds(find, text))
        if took > NOTICED_S:
            return took > MOST_GROWTH * before
        before = took
    return False


def test_the_source_states_its_patterns_where_they_are_found() -> None:
    assert len(FOUND) > 60


@pytest.mark.parametrize(("place", "text", "flags", "use"), FOUND, ids=[one[0] for one in FOUND])
def test_the_worst_text_for_a_pattern_costs_time_in_proportion(place: str, text: str, flags: int, use: str) -> None:
    most = SHORT.get(place.partition(":")[0], LENGTHS[-1])
    find = getattr(re.compile(text, flags), use)
    parts = cast("Parts", sre_parse.parse(text, flags).data)
    pumps = {(start, unit or "a") for before, unit in repeats(parts) for start in (before, "")}
    assert [(start, unit, tail) for start, unit in sorted(pumps) for tail in TAILS if grows(find, start, unit, tail, most)] == []
