"""Typed reading of one mapping of a document: every value is checked where it is read, and a fault is one line with its path.

Null stands for absent, so that a form may keep every key.
"""

import math
from collections.abc import Iterable, Mapping
from typing import cast

from intake.sizes import whole_number
from intake.wording import fault, unknown

_LONGEST_TEXT = 200
_LONGEST_LIST = 200


class Section:
    """One mapping of a document with the keys it may have."""

    def __init__(self, path: str, value: object, keys: Iterable[str]) -> None:
        """Check that it is a mapping of known keys.

        Args:
            path: where it stands; empty for the document itself.
            value: what was found there.
            keys: the keys that there are.

        Raises:
            BadInput: not a mapping, a key that is not text, or an unknown key.
        """
        self.path = path
        if not isinstance(value, Mapping):
            raise fault(path or "document", value, f"a mapping of {', '.join(keys)}", "write it as key: value lines")
        plain = cast("Mapping[object, object]", value)
        known = tuple(keys)
        self.values: dict[str, object] = {}
        for key, item in plain.items():
            if not isinstance(key, str) or key not in known:
                raise unknown(path, "key", str(key), known)
            if item is not None:
                self.values[key] = item

    def has(self, key: str) -> bool:
        """Return whether the key is there and not null."""
        return key in self.values

    def at(self, key: str) -> str:
        """Return the path of one key."""
        return f"{self.path}.{key}" if self.path else key

    def text(self, key: str) -> str | None:
        """Return one line of text, or None."""
        value = self.values.get(key)
        if value is None:
            return None
        return _text(self.at(key), value)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return lines of text; empty when absent."""
        return tuple(_text(f"{self.at(key)}[{i}]", item) for i, item in enumerate(self.items(key, "a list of texts")))

    def choice(self, key: str, words: tuple[str, ...]) -> str | None:
        """Return one of `words`, or None."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise fault(self.at(key), value, f"one of {', '.join(words)}")
        if value not in words:
            raise unknown(self.path, key, value, words)
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """Return true or false."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise fault(self.at(key), value, "true or false")
        return value

    def whole(self, key: str, low: int, high: int) -> int | None:
        """Return a whole number within bounds, or None."""
        value = self.values.get(key)
        return None if value is None else whole_number(self.at(key), value, low, high)

    def number(self, key: str, low: float, high: float) -> float | None:
        """Return a number within bounds, or None."""
        value = self.values.get(key)
        if value is None:
            return None
        finite = (
            isinstance(value, (int, float)) and not isinstance(value, bool) and (isinstance(value, int) or math.isfinite(value))
        )
        if not finite or not low <= cast("float", value) <= high:
            raise fault(self.at(key), value, f"a number from {low:g} to {high:g}")
        return float(cast("float", value))

    def items(self, key: str, expected: str) -> tuple[object, ...]:
        """Return the items of a list; empty when absent."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, (list, tuple)):
            raise fault(self.at(key), value, expected, "write it as a list: [..., ...]")
        items = cast("list[object] | tuple[object, ...]", value)
        if len(items) > _LONGEST_LIST:
            raise fault(self.at(key), f"{len(items)} items", f"at most {_LONGEST_LIST} items", "shorten the list")
        return tuple(items)

    def section(self, key: str, keys: Iterable[str]) -> "Section | None":
        """Return a mapping below this one, or None."""
        value = self.values.get(key)
        return None if value is None else Section(self.at(key), value, keys)


def _text(path: str, value: object) -> str:
    if not isinstance(value, str):
        raise fault(path, value, "text", "put it in quotes")
    text = value.strip()
    if not text or len(text) > _LONGEST_TEXT or not text.isprintable():
        raise fault(path, value, f"one line of 1 to {_LONGEST_TEXT} printable characters", "shorten or correct it")
    return text
