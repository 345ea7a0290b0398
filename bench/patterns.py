"""The worst text for every regular expression that sees input: does it cost time in proportion to its length, or to its square?

The worst text is made from the pattern itself: what one of its repeats takes, many times, behind the least that comes before it,
and then something that lets the match fail at its end. The processor's time is told, not the wall's, the less of two.

Bound for exit 0: of no pattern does the time grow by more than three from one length to the next, twice as long, once it can be
noticed, up to the longest text that the pattern is let see.

Run: `python -m bench.patterns [--json]`.
"""

import argparse
import ast
import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_parse

Parts = list[tuple[Any, Any]]
"""Of a pattern, as Python parses it: kinds and what they hold."""
ROOT = Path(__file__).parents[1]
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


def least(parts: Parts) -> str:
    """Return a short text that parts of a pattern take, or nearly."""
    return "".join(one_of(kind, value) for kind, value in parts)


def one_of(kind: Any, value: Any) -> str:
    """Return a short text that one part of a pattern takes."""
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
    """Return the first character of a set."""
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


def worst_texts(text: str, flags: int) -> tuple[tuple[str, str], ...]:
    """Return (start, what is repeated) of the texts that a pattern may find hardest."""
    parts = cast("Parts", sre_parse.parse(text, flags).data)
    return tuple(sorted({(start, unit or "a") for before, unit in repeats(parts) for start in (before, "")}))


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all, print those that grow, return the exit code."""
    parser = argparse.ArgumentParser(prog="bench.patterns", description="Patterns and the worst text for each.")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    bad: list[str] = []
    count = tried = 0
    for place, text, flags, use in patterns():
        count += 1
        most = SHORT.get(place.partition(":")[0], LENGTHS[-1])
        find = getattr(re.compile(text, flags), use)
        for start, unit in worst_texts(text, flags):
            tried += len(TAILS)
            bad += [f"{place}: {start!r} and {unit!r} repeated, then {tail!r}"
                    for tail in TAILS if grows(find, start, unit, tail, most)]  # fmt: skip
    holds = "FALLS SHORT" if bad or not count else "HOLDS"
    said = f"{holds}: {len(bad)} of {tried:,} worst texts of {count} patterns cost more than in proportion to their length"
    if asked.json:
        print(json.dumps({"schema_version": 1, "holds": bool(count) and not bad, "grows": bad, "verdict": said}))
    else:
        print("\n".join((*bad, said)))
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main())
