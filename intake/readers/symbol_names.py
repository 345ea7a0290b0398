"""Names of a file's open extents as Tandem's symbols: the batch, the length, and others by their own names."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from core.graph import Shape
from core.symbols import BATCH, LENGTH, Extent, product, symbol

Open: TypeAlias = tuple[int | str | None, ...]
"""Extents of an input: numbers, names, None where one is open and has no name."""
BATCH_VALUE, LENGTH_VALUE, IMAGE_VALUE, MOST_SYMBOLS = 1, 128, 224, 64
_LENGTHS = re.compile(r"(seq|length|tokens|time|frames|steps|^s$|^t$)", re.IGNORECASE)
_OTHERS = re.compile(r"past|total|kv|cache|encoder|decoder|context|memory", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_SUM = re.compile(r"[\w\s.*+-]{1,200}")


@dataclass(slots=True)
class Names:
    """Symbols of a file.

    Args:
        extents: by the file's own name.
        values: by Tandem's name.
        pinned: what was found that a symbol has to be, by Tandem's name.
    """

    extents: dict[str, Extent] = field(default_factory=dict[str, Extent])
    values: dict[str, int] = field(default_factory=dict[str, int])
    pinned: Mapping[str, Extent] = field(default_factory=dict[str, Extent])

    def add(self, own: str, wanted: str, value: int) -> Extent:
        """Return the extent of a name; a new symbol when it is a new name."""
        if own in self.extents:
            return self.extents[own]
        name = re.sub(r"[^a-z0-9_]", "_", wanted.lower()).strip("_")[:24] or "size"
        name = name if name[0].isalpha() else f"d_{name}"
        base, count = name, 2
        while name in self.values:
            name, count = f"{base}_{count}", count + 1
        self.values[name] = value
        self.extents[own] = self.resolved(symbol(name))
        return self.extents[own]

    def resolved(self, extent: Extent) -> Extent:
        """Return an extent with what was found of its symbols."""
        if isinstance(extent, int):
            return extent
        total: Extent = 0
        for monomial, factor in extent.terms:
            total = total + factor * product(self._one(name) for name in monomial)
        return total

    def _one(self, name: str) -> Extent:
        for _ in range(MOST_SYMBOLS):
            found = self.pinned.get(name)
            if found is None:
                return symbol(name)
            alone = found.terms[0][0] if not isinstance(found, int) and len(found.terms) == 1 else ()
            if isinstance(found, int) or len(alone) != 1:
                return found
            name = alone[0]
        return symbol(name)

    def declared(self, shape: Open | None) -> Shape | None:
        """Return a declared shape in these symbols; None when it has an extent that they do not tell."""
        if shape is None:
            return None
        found: list[Extent] = []
        for one in shape:
            extent = one if isinstance(one, int) else self.sum_of(one) if one else None
            if extent is None:
                return None
            found.append(extent)
        return tuple(found)

    def sum_of(self, text: str) -> Extent | None:
        """Return a name, or a sum of products of names and numbers, as exporters write it; None for anything else."""
        if text in self.extents:
            return self.extents[text]
        if not _SUM.fullmatch(text):
            return None
        total: Extent = 0
        for term in re.findall(r"[+-]?[^+-]+", text.replace(" ", "")):
            factors: list[Extent] = []
            for factor in term.lstrip("+-").split("*"):
                known = int(factor) if factor.isdigit() and len(factor) < 19 else self.extents.get(factor)
                if known is None:
                    return None
                factors.append(known)
            total = total + product(factors) * (-1 if term.startswith("-") else 1)
        return total


def symbols_of(inputs: Iterable[tuple[Open | None, str]], batch: int, length: int, pinned: Mapping[str, Extent]) -> Names:
    """Return the symbols of a model's inputs: the first open first axis is the batch, a sequence's axis the length.

    Args:
        inputs: shape and dtype of each, as declared.
        batch, length: values to take for them.
        pinned: what an earlier reading found.
    """
    names = Names(pinned=pinned)
    shapes = [(shape, dtype) for shape, dtype in inputs if shape is not None]
    for shape, _ in shapes:
        if shape and isinstance(shape[0], str) and _NAME.fullmatch(shape[0]) and not names.values:
            names.add(shape[0], BATCH, batch)
    own = [one for shape, _ in shapes for one in shape if isinstance(one, str) and _NAME.fullmatch(one)]
    likely = [one for one in own if _LENGTHS.search(one) and not _OTHERS.search(one)]
    second = [shape[1] for shape, dtype in shapes if len(shape) == 2 and dtype in {"int64", "int32"}]
    tokens = [one for one in second if isinstance(one, str) and _NAME.fullmatch(one)]
    for one in (*likely, *tokens):
        if one not in names.extents and LENGTH not in names.values:
            names.add(one, LENGTH, length)
    for shape, dtype in shapes:
        for axis, one in enumerate(shape):
            if isinstance(one, str) and _NAME.fullmatch(one) and len(names.values) < MOST_SYMBOLS:
                image = len(shape) == 4 and axis >= 1 and dtype not in {"int64", "int32"}
                image = image and not _OTHERS.search(one) and not _LENGTHS.search(one)
                names.add(one, one, IMAGE_VALUE if image else length if axis else batch)
    return names


def input_shape(name: str, declared: Open, dtype: str, names: Names, batch: int, length: int) -> Shape:
    """Return the shape of an input; open extents without a name get one."""
    found: list[Extent] = []
    for axis, one in enumerate(declared):
        if isinstance(one, int):
            found.append(one)
            continue
        known = names.sum_of(one) if one else None
        if known is None and axis == 0:
            known = names.extents.get("") or names.add(one or "", BATCH, batch)
        if known is None:
            tokens = len(declared) == 2 and dtype in {"int64", "int32"}
            wanted = LENGTH if tokens and LENGTH not in names.values else f"{name}_{axis}"
            value = IMAGE_VALUE if len(declared) == 4 and dtype.startswith(("fp", "uint")) else length
            known = names.add(one or f"{name} axis {axis}", wanted, value)
        found.append(known)
    return tuple(found)
