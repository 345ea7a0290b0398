"""Names and shapes of parameters, asked by pattern: what every guess of an architecture rests on."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from core.graph import Tensor

_PREFIX = re.compile(r"^(?:base_model\.model\.|module\.|_orig_mod\.|model\.(?=diffusion_model\.))+")


@dataclass(frozen=True, slots=True)
class Guess:
    """What the names and shapes speak for.

    Args:
        config: Hugging Face's keys; None where nothing is known by them.
        reasons: what it rests on.
        notes: what was assumed, since shapes do not say it.
    """

    config: dict[str, object] | None
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Names:
    """Parameters by name.

    Args:
        shapes: of each.
        notes: what was assumed until now.
    """

    shapes: dict[str, tuple[int, ...]]
    notes: list[str] = field(default_factory=list[str])

    def first(self, pattern: str, rank: int = 0) -> tuple[int, ...] | None:
        """Return the shape of the first name that a pattern is found in; None without one, or with another rank."""
        search = re.compile(pattern).search
        found = next((shape for name, shape in self.shapes.items() if search(name) and (not rank or len(shape) == rank)), None)
        return found if found is None or not rank or len(found) == rank else None

    def has(self, pattern: str) -> bool:
        """Whether a name has a pattern."""
        search = re.compile(pattern).search
        return any(search(name) for name in self.shapes)

    def count(self, pattern: str) -> int:
        """Return how many there are of what a pattern numbers in its first group: the greatest number and one."""
        search = re.compile(pattern).search
        return max((int(found[1]) + 1 for name in self.shapes if (found := search(name))), default=0)

    def rows(self, pattern: str, default: int = 0) -> int:
        """Return the first extent of a tensor's shape."""
        found = self.first(pattern)
        return found[0] if found else default

    def columns(self, pattern: str, default: int = 0) -> int:
        """Return the second extent of a tensor's shape."""
        found = self.first(pattern)
        return found[1] if found and len(found) > 1 else default

    def heads(self, width: int, head_width: int = 64) -> int:
        """Return heads of an assumed width, with a note.

        Args:
            width: of all of them together, or what each must divide.
            head_width: that is tried first.
        """
        for each in (head_width, 64, 128, 80, 96, 72, 32, 48, 40, 16, 8):
            if width and width % each == 0:
                self.notes.append(f"heads: assumed to be {each} wide; shapes do not say it")
                return width // each
        self.notes.append("heads: assumed to be one; shapes do not say it")
        return 1


def names_of(tensors: Iterable[Tensor]) -> Names:
    """Return parameters by name, without the prefixes that wrappers add."""
    found: dict[str, tuple[int, ...]] = {}
    for tensor in tensors:
        name = _PREFIX.sub("", tensor.name)
        found[name] = tuple(extent for extent in tensor.shape if isinstance(extent, int))
    return Names(found)
