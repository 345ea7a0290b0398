"""Sizes by name: what a block kind or a model family needs, checked before anything is counted.

One description (`SizeSpec`) serves the check, the form and the documentation, so that they cannot disagree.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from core.workload import Size
from intake.wording import fault, unknown

MOST = 10**9
ACTIVATIONS = ("gelu", "gelu_tanh", "gelu_new", "silu", "relu")
NORMS = ("layer", "rms")


class Sizes:
    """Checked sizes with typed access; a size that was not declared raises KeyError."""

    def __init__(self, values: Mapping[str, Size]) -> None:
        """Keep the values by name."""
        self.values = dict(values)

    def whole(self, name: str) -> int:
        """Return a whole number."""
        value = self.values[name]
        if not isinstance(value, int):
            raise TypeError(f"got size {name} = {value!r}; expected a whole number")
        return value

    def flag(self, name: str) -> bool:
        """Return a flag that is stored as 0 or 1."""
        return bool(self.whole(name))

    def word(self, name: str) -> str:
        """Return a word such as an activation."""
        value = self.values[name]
        if not isinstance(value, str):
            raise TypeError(f"got size {name} = {value!r}; expected a word")
        return value

    def wholes(self, name: str) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        value = self.values[name]
        if not isinstance(value, tuple):
            raise TypeError(f"got size {name} = {value!r}; expected whole numbers")
        return value

    def sorted(self) -> tuple[tuple[str, Size], ...]:
        """Return (name, value) pairs sorted by name, as `Block.sizes` keeps them."""
        return tuple(sorted(self.values.items()))


@dataclass(frozen=True, slots=True)
class SizeSpec:
    """One size that a block kind or a family has.

    Args:
        name: key in a document.
        meaning: what it is, for people.
        form: `whole`, `flag`, `word` or `wholes`.
        default: used when the document says nothing; None when it must be said.
        low, high: bounds of a whole number or of each of several.
        words: what a word may be.
        follows: computes the default from the sizes before it; takes the place of `default`.
    """

    name: str
    meaning: str
    form: str = "whole"
    default: Size | None = None
    low: int = 1
    high: int = MOST
    words: tuple[str, ...] = ()
    follows: Callable[[Sizes], Size] | None = None


def whole(name: str, meaning: str, default: int | None = None, low: int = 1, high: int = MOST,
          follows: Callable[[Sizes], Size] | None = None) -> SizeSpec:
    """Return the spec of a whole number."""
    return SizeSpec(name, meaning, "whole", default, low, high, (), follows)


def flag(name: str, meaning: str, default: int | None = 0) -> SizeSpec:
    """Return the spec of a flag, 0 or 1."""
    return SizeSpec(name, meaning, "flag", default, 0, 1)


def word(name: str, meaning: str, words: tuple[str, ...], default: str | None = None) -> SizeSpec:
    """Return the spec of a word out of `words`."""
    return SizeSpec(name, meaning, "word", default, words=words)


def wholes(name: str, meaning: str, default: tuple[int, ...] | None = None, high: int = MOST) -> SizeSpec:
    """Return the spec of a list of 1 to 1,000 whole numbers."""
    return SizeSpec(name, meaning, "wholes", default, 1, high)


BATCH = whole("batch", "samples in one step", high=10**9)
LENGTH = whole("length", "positions of each sequence", high=10**7)
WIDTH = whole("width", "features of each position")


def read_sizes(where: str, specs: tuple[SizeSpec, ...], given: Mapping[str, object]) -> Sizes:
    """Check given sizes against their specs and fill in defaults.

    Args:
        where: what the sizes belong to, for messages ("model", "block 2 (conv_stem)").
        specs: every size there is, those that others follow first.
        given: by name; lists stand for tuples, true and false for flags.

    Raises:
        BadInput: an unknown, missing or unusable size; the message names it.
    """
    names = tuple(spec.name for spec in specs)
    for key in given:
        if key not in names:
            raise unknown(where, "key", str(key), names)
    sizes = Sizes({})
    for spec in specs:
        value = given.get(spec.name)
        if value is not None:
            sizes.values[spec.name] = _checked(f"{where}.{spec.name}", spec, value)
        elif spec.follows is not None:
            sizes.values[spec.name] = spec.follows(sizes)
        elif spec.default is not None:
            sizes.values[spec.name] = spec.default
        else:
            raise fault(where, sorted(map(str, given)), f"the size {spec.name!r} ({spec.meaning})", f"add {spec.name}: ...")
    return sizes


def _checked(path: str, spec: SizeSpec, value: object) -> Size:
    if spec.form == "word":
        if not isinstance(value, str):
            raise fault(path, value, f"one of {', '.join(spec.words)}")
        if value not in spec.words:
            raise unknown(path, "word", value, spec.words)
        return value
    if spec.form == "wholes":
        items = items_of(value)
        if not 1 <= len(items) <= 1000:
            raise fault(path, value, f"a list of whole numbers ({spec.meaning})")
        return tuple(whole_number(f"{path}[{i}]", item, spec.low, spec.high) for i, item in enumerate(items))
    if spec.form == "flag" and isinstance(value, bool):
        return int(value)
    return whole_number(path, value, spec.low, spec.high)


def items_of(value: object) -> tuple[object, ...]:
    """Return the items of a list or tuple; empty for anything else."""
    return tuple(cast("list[object]", value)) if isinstance(value, (list, tuple)) else ()


def whole_number(path: str, value: object, low: int, high: int) -> int:
    """Return a whole number within bounds; a float without fraction, such as 1e6, will do.

    Raises:
        BadInput: it is something else.
    """
    expected = f"a whole number from {low} to {high:.0e}".replace("e+0", "e").replace("e+", "e") if high >= 10**6 else (
        f"a whole number from {low} to {high}")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise fault(path, value, expected)
    if not low <= value <= high or value != int(value):
        raise fault(path, value, expected)
    return int(value)
