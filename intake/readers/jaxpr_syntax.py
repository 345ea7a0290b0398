"""Tokens of a jaxpr's text, with the bracket that belongs to each, and the values that stand in brackets.

The text is that of `jax.make_jaxpr`, of any version that prints types: `{ lambda ; a:f32[8,128]. let b:f32[8] =
reduce_sum[axes=(1,)] a in (b,) }`. Nothing is evaluated; what is in brackets is looked at only where an operation needs it.
"""

import re
from array import array

from intake.readers.symbolic import Unclear

_TOKEN = re.compile(
    r"#[^\n]*|[A-Za-z_]\w*(?:-[a-z]\w*)*|<-|-?(?:\d[\w.]*(?:(?<=[eE])[+-]\d+)?|\.\d+|inf\b|nan\b)"
    r"|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|\S"
)
_OPEN, _CLOSE = {"(": ")", "[": "]", "{": "}"}, frozenset(")]}")
_STACK = re.compile(r"#\s*\[(.*)\]\s*$")
_FIELD = re.compile(r"\b(\w++)=\(([^()]*)\)")
MOST_TOKENS, MOST_NESTING = 24_000_000, 200


class Tokens:
    """A text as tokens.

    Args:
        text: the whole of it.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts, self.ends, self.mates = array("q"), array("q"), array("q")
        self.stacks: list[tuple[int, str]] = []
        open_: list[int] = []
        for found in _TOKEN.finditer(text):
            first = text[found.start()]
            if first == "#":
                if stack := _STACK.match(found[0]):
                    self.stacks.append((found.start(), stack[1][:600]))
                continue
            at = len(self.starts)
            if at >= MOST_TOKENS:
                raise Unclear(f"over {MOST_TOKENS} words")
            self.starts.append(found.start())
            self.ends.append(found.end())
            self.mates.append(-1)
            if first in _OPEN:
                open_.append(at)
                if len(open_) > MOST_NESTING:
                    raise Unclear(f"brackets over {MOST_NESTING} deep")
            elif first in _CLOSE and found.end() - found.start() == 1:
                if not open_ or _OPEN[self.word(open_[-1])] != first:
                    raise Unclear(f"a bracket that closes nothing at {self.where(at)}")
                self.mates[open_[-1]] = at
                open_.pop()
        if open_:
            raise Unclear(f"a bracket that is never closed at {self.where(open_[-1])}")

    def __len__(self) -> int:
        return len(self.starts)

    def word(self, at: int) -> str:
        """Return a token; empty behind the end."""
        return self.text[self.starts[at] : self.ends[at]] if 0 <= at < len(self.starts) else ""

    def between(self, first: int, last: int) -> str:
        """Return the text from the token `first` up to, not including, the token `last`."""
        if first >= last:
            return ""
        return self.text[self.starts[first] : self.ends[last - 1]]

    def after(self, at: int) -> int:
        """Return the next token behind this one, or behind the bracket that it opens."""
        return (self.mates[at] if self.mates[at] >= 0 else at) + 1

    def touching(self, at: int) -> bool:
        """Whether nothing stands between this token and the one before it."""
        return 0 < at < len(self.starts) and self.starts[at] == self.ends[at - 1]

    def where(self, at: int) -> str:
        """Return where a token stands, for people."""
        start = self.starts[at] if at < len(self.starts) else len(self.text)
        return f"line {self.text.count(chr(10), 0, start) + 1}"

    def parameters(self, open_: int) -> dict[str, tuple[int, int]]:
        """Return what stands in a primitive's brackets: names, and where their values begin and end."""
        found: dict[str, tuple[int, int]] = {}
        close = self.mates[open_]
        at = open_ + 1
        name, start = "", at
        while at < close:
            word = self.word(at)
            apart = at == open_ + 1 or not self.touching(at)
            if apart and (word[0].isalpha() or word[0] == "_") and self.word(at + 1) == "=" and self.word(at + 2) != "=":
                if name:
                    found[name] = (start, at)
                name, start = word, at + 2
                at += 2
            else:
                at = self.after(at)
        if name:
            found[name] = (start, close)
        return found


def pieces(text: str) -> list[str]:
    """Return what commas divide, outside of brackets; without the brackets around all of it."""
    inner = text.strip()
    if inner[:1] in {"(", "["} and inner[-1:] in {")", "]"}:
        inner = inner[1:-1]
    found: list[str] = []
    depth, start = 0, 0
    for at, letter in enumerate(inner):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append(inner[start:at].strip())
            start = at + 1
    return [one for one in (*found, inner[start:].strip()) if one]


def whole_numbers(text: str) -> tuple[int, ...]:
    """Return all whole numbers of a text in order, whatever brackets stand around them."""
    return tuple(int(one) for one in re.findall(r"(?<![\w.])-?\d{1,18}(?![\w.])", text))


def fields_of(text: str) -> dict[str, tuple[int, ...]]:
    """Return the fields of something such as `GatherDimensionNumbers(offset_dims=(0, 1), ...)`."""
    return {found[1]: whole_numbers(found[2]) for found in _FIELD.finditer(text)}
