"""One ONNX operator with its operands, and where the operators' meanings are found by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from core.graph import Shape
from core.symbols import Extent, Polynomial
from intake.readers.draft import Done, Known, Result, Value, Work
from intake.readers.onnx_file import Attribute, Stored
from intake.readers.symbolic import Extents, Unclear


@dataclass(frozen=True, slots=True)
class Step:
    """One operator.

    Args:
        op: its name, behind its domain and a dot where that is not ONNX's own.
        inputs: operands; None where an optional one is left out.
        attributes: of the file.
        count: of results that are asked for.
        version: of the operator set.
        extents: the file's symbols.
        declared: shapes of the results where the file says them in numbers and symbols.
    """

    op: str
    inputs: tuple[Value | None, ...]
    attributes: Mapping[str, Attribute]
    count: int
    version: int
    extents: Extents
    declared: tuple[Shape | None, ...] = ()

    def optional(self, place: int) -> Value | None:
        """Return an operand; None when it is left out."""
        return self.inputs[place] if place < len(self.inputs) else None

    def value(self, place: int) -> Value:
        """Return an operand that has to be there."""
        found = self.optional(place)
        if found is None:
            raise Unclear(f"no operand {place}")
        if found.items is not None:
            raise Unclear(f"operand {place} is a sequence")
        return found

    def shape(self, place: int) -> Shape:
        """Return the shape of an operand."""
        return self.value(place).shape

    @property
    def first(self) -> Value:
        """The first operand."""
        return self.value(0)

    @property
    def shapes(self) -> list[Shape]:
        """Shapes of all operands that are there."""
        return [one.shape for one in self.inputs if one is not None]

    def known(self, place: int) -> Known | None:
        """Return an operand's elements, where they are known."""
        found = self.optional(place)
        return None if found is None else found.known

    def whole(self, name: str, default: int | None = None) -> int:
        """Return an attribute that is a whole number."""
        value = self.attributes.get(name, default)
        if not isinstance(value, int):
            raise Unclear(f"no whole number {name!r}")
        return value

    def real(self, name: str, default: float) -> float:
        """Return an attribute that is a fraction."""
        value = self.attributes.get(name, default)
        return float(value) if isinstance(value, int | float) else default

    def text(self, name: str, default: str = "") -> str:
        """Return an attribute that is a text."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, str) else default

    def wholes(self, name: str) -> tuple[int, ...] | None:
        """Return an attribute that is a list of whole numbers; None when it is missing."""
        value = self.attributes.get(name)
        if value is None:
            return None
        if not isinstance(value, tuple):
            raise Unclear(f"no whole numbers {name!r}")
        return tuple(one for one in value if isinstance(one, int))

    def extents_of(self, place: int, name: str = "") -> tuple[Extent, ...] | None:
        """Return the sizes that an operand holds, or in older sets an attribute; None when neither is there.

        Raises:
            Unclear: the operand is there, but its elements are not known.
        """
        found = self.optional(place)
        if found is None:
            return self.wholes(name) if name else None
        if found.known is None:
            raise Unclear(f"operand {place} is computed from data")
        return tuple(one if isinstance(one, Polynomial) else int(one) for one in found.known)

    def numbers(self, place: int, name: str = "") -> tuple[int, ...] | None:
        """Return the same as plain numbers."""
        found = self.extents_of(place, name)
        if found is None:
            return None
        if followed := [one for one in found if isinstance(one, Polynomial)]:
            raise self.extents.pin(followed, f"{self.op} takes {followed[0]} as a number")
        return tuple(one for one in found if isinstance(one, int))

    def number_of(self, extent: Extent) -> int:
        """Return an extent as a plain number."""
        if isinstance(extent, Polynomial):
            raise self.extents.pin((extent,), f"{self.op} takes {extent} as a number")
        return extent

    def stored(self, name: str) -> Stored | None:
        """Return an attribute that is a tensor."""
        value = self.attributes.get(name)
        return value if isinstance(value, Stored) else None


Operator: TypeAlias = Callable[[Step], Done]


def simple(shape: Shape, dtype: str, *work: Work) -> Done:
    """Return one result that has its own memory."""
    return Done((Result(shape, dtype),), work)


def view(shape: Shape, dtype: str, of: int = 0) -> Done:
    """Return one result that shares an operand's memory."""
    return Done((Result(shape, dtype, view_of=of),))
