"""Turns the text of a Python file into syntax trees, whatever is wrong with it: never runs it, never gives up on the whole file.

First as it is; then with the statements of Python 2 put into the form of Python 3; then block by block and line by line, so
that only
what cannot be read is lost. How it was read is told.
"""

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

WHOLE, REPAIRED, IN_PARTS = "python", "python 2, repaired", "python, in parts"
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_UNTOKENIZABLE = (tokenize.TokenError, SyntaxError, IndexError, RecursionError)
_PART_LINES = 60
_MOST_LOST = 3000


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a file as a tree.

    Args:
        tree: of it.
        offset: lines before it.
    """

    tree: ast.Module
    offset: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file as trees.

    Args:
        parts: in the order of the file.
        how: `WHOLE`, `REPAIRED` or `IN_PARTS`.
        lost: lines that could not be read at all.
    """

    parts: tuple[Part, ...]
    how: str
    lost: int = 0


def parse(text: str, nesting: int) -> Parsed:
    """Return a file as syntax trees.

    Args:
        text: of the file, with line feeds.
        nesting: brackets in brackets up to which the parser is trusted.
    """
    text = text.replace("\0", " ")
    if deepest(text) <= nesting:
        tree = _tree(text)
        if tree is not None:
            return Parsed((Part(tree, 0),), WHOLE)
        repaired = _as_python_3(text)
        tree = _tree(repaired) if repaired is not None else None
        if tree is not None:
            return Parsed((Part(tree, 0),), REPAIRED)
        text = repaired or text
    return _in_parts(text, nesting)


def deepest(text: str) -> int:
    """Return how many brackets stand within brackets at most; brackets in strings count too, which errs on the safe side.

    Args:
        text: of any length.
    """
    depth = most = 0
    for found in re.finditer(r"[()\[\]{}]", text):
        depth = depth + 1 if found.group() in "([{" else max(depth - 1, 0)
        most = max(most, depth)
    return most


def _tree(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except _UNREADABLE:
            return None


def _as_python_3(text: str) -> str | None:
    """Return Python 2 text with its statements as Python 3 has them, line by line; None when it has no tokens."""
    lines = text.split("\n")
    edits: list[tuple[int, int, int, str]] = []
    try:
        for statement in _statements(text):
            edits.extend(_edits(statement))
    except _UNTOKENIZABLE:
        if not edits:
            return None
    for row, start, end, new in sorted(edits, reverse=True):
        line = lines[row - 1]
        lines[row - 1] = line[:start] + new + line[end:]
    return "\n".join(line.replace("\t", "        ") if line[:1] in "\t " else line for line in lines)


def _statements(text: str) -> Iterator[list[tokenize.TokenInfo]]:
    """Yield the tokens of each statement, without line breaks, comments and indentation."""
    skipped = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    held: list[tokenize.TokenInfo] = []
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in skipped:
            continue
        depth += (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
        ends = token.type in (tokenize.NEWLINE, tokenize.ENDMARKER) or (depth == 0 and token.string == ";")
        opens = depth == 0 and token.string == ":" and bool(held)
        if not ends:
            held.append(token)
        if (ends or opens) and held:
            yield held
            held = []


def _edits(tokens: list[tokenize.TokenInfo]) -> Iterator[tuple[int, int, int, str]]:
    """Yield (row, start, end, new text) that turn one statement into Python 3."""
    first, last = tokens[0], tokens[-1]
    for one, after in pairwise(tokens):
        if one.type == tokenize.NUMBER and after.string in ("L", "l") and after.start == one.end:
            yield after.start[0], after.start[1], after.end[1], " "
        if one.string == "<" and after.string == ">" and after.start == one.end:
            yield one.start[0], one.start[1], after.end[1], "!="
    if first.type != tokenize.NAME or len(tokens) < 2:
        return
    if first.string in ("print", "exec") and not _is_call(tokens):
        yield first.end[0], first.end[1], first.end[1], "("
        yield last.end[0], last.end[1], last.end[1], ")"
        if tokens[1].string == ">>":
            yield tokens[1].start[0], tokens[1].start[1], tokens[1].end[1], ""
        if last.string == ",":
            yield last.start[0], last.start[1], last.end[1], " "
    comma = _outer_comma(tokens)
    if first.string == "except" and comma is not None and last.string == ":":
        yield comma.start[0], comma.start[1], comma.end[1], " as "
    if first.string == "raise" and comma is not None:
        yield comma.start[0], comma.start[1], comma.end[1], "("
        yield last.end[0], last.end[1], last.end[1], ")"


def _is_call(tokens: list[tokenize.TokenInfo]) -> bool:
    """Whether `print ...` is one call already, an assignment or an attribute."""
    if tokens[1].string in ("=", ".", ",", "[", ")"):
        return True
    if tokens[1].string != "(":
        return False
    depth = 0
    for index, token in enumerate(tokens[1:], 1):
        depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
        if depth == 0:
            return index == len(tokens) - 1
    return True


def _outer_comma(tokens: list[tokenize.TokenInfo]) -> tokenize.TokenInfo | None:
    depth = 0
    for token in tokens:
        if token.type == tokenize.OP:
            depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
            if depth == 0 and token.string == ",":
                return token
    return None


def _in_parts(text: str, nesting: int) -> Parsed:
    """Return what can be read of a file: its blocks from one unindented line to the next, and of others their lines."""
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if line[:1].strip() and not line.startswith(("#", ")", "]", "}"))]
    joined = ("else", "elif", "except", "finally")
    starts = [0, *[at for at in starts if at and not lines[at].startswith(joined) and not lines[at - 1].startswith("@")]]
    parts: list[Part] = []
    lost = 0
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        block = lines[start:end]
        if lost > _MOST_LOST:
            lost += len(block)
            continue
        joined_block = "\n".join(block)
        tree = _tree(joined_block) if deepest(joined_block) <= nesting else None
        if tree is not None:
            parts.append(Part(tree, start))
            continue
        found, missed = _by_line(block, start, nesting)
        parts.extend(found)
        lost += missed
    return Parsed(tuple(parts), IN_PARTS, lost)


def _by_line(block: list[str], start: int, nesting: int) -> tuple[list[Part], int]:
    """Return the lines of a block that can be read alone, statements over several lines put together, and how many cannot."""
    found: list[Part] = []
    lost = index = 0
    while index < len(block):
        line = block[index].strip()
        taken = 1
        if line and not line.startswith("#"):
            tree, taken = _statement(block, index, nesting)
            if tree is None:
                lost += 1
            else:
                found.append(Part(tree, start + index))
        index += taken
    return found, lost


def _statement(block: list[str], index: int, nesting: int) -> tuple[ast.Module | None, int]:
    most = min(len(block), index + _PART_LINES)
    end = index + 1
    depth = _open_brackets(block[index])
    while end < most and depth > 0:
        depth += _open_brackets(block[end])
        end += 1
    text = "\n".join((block[index].strip(), *block[index + 1 : end]))
    for candidate, count in ((text, end - index), (block[index].strip(), 1)):
        if len(candidate) > 100_000 or deepest(candidate) > nesting:
            continue
        for form in _forms(candidate):
            tree = _tree(form)
            if tree is not None:
                return tree, count
    return None, 1


def _open_brackets(line: str) -> int:
    text = line[:20_000]
    return sum((c in "([{") - (c in ")]}") for c in re.sub(r"'[^'\n]*'|\"[^\"\n]*\"|#[^\n]*", "", text))


def _forms(text: str) -> Iterator[str]:
    """Yield the ways in which a statement may be complete when it stands alone."""
    yield text
    if text.endswith(":"):
        for opener in ("", "if x: pass\n", "try: pass\n"):
            yield f"{opener}{text} pass"
    yield f"({text.rstrip(',')})"
