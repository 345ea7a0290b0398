"""What a call of a torch operation looks like to the code that classifies it, and what it becomes. Pure: no torch.

The same words serve a trace, a `.pt2` file and a captured graph, so that one model gives the same figures from each.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from core.graph import Shape
from core.symbols import Extent, product

FLOATS = ("fp64", "fp32", "bf16", "fp16", "fp8", "fp4")
COMPLEX = ("complex64", "complex128")


class Shaped(NamedTuple):
    """A tensor as classification sees it: extents and a key of `core.graph.DTYPE_BITS`."""

    shape: Shape
    dtype: str


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operation.

    Args:
        op: namespace and name, such as `aten.mm`.
        overload: such as `default`, `Tensor`, `dim`.
        arguments: by the schema's names; tensors are `Shaped`, lists are tuples; what has its default may be absent.
        outputs: the tensors that it gives, in order.
    """

    op: str
    overload: str
    arguments: Mapping[str, object]
    outputs: tuple[Shaped, ...]

    @property
    def name(self) -> str:
        """Name without the namespace and without the underscore of an operation in place."""
        bare = self.op.partition(".")[2]
        return bare[:-1] if bare.endswith("_") and not bare.endswith("__") else bare

    def tensors(self) -> tuple[Shaped, ...]:
        """Every tensor that it is given, those in lists too."""
        return tuple(tensors_in(tuple(self.arguments.values())))

    def tensor(self, name: str) -> Shaped:
        """Return one tensor argument; raises ValueError without it."""
        found = self.arguments.get(name)
        if not isinstance(found, Shaped):
            raise ValueError(f"{self.op} without {name}")  # noqa: TRY004 - a malformed file, not a wrong type of ours
        return found

    def optional(self, name: str) -> Shaped | None:
        """Return one tensor argument; None where it was left out."""
        found = self.arguments.get(name)
        return found if isinstance(found, Shaped) else None

    def whole(self, name: str, default: int) -> int:
        """Return one whole number."""
        found = self.arguments.get(name)
        return found if isinstance(found, int) and not isinstance(found, bool) else default

    def flag(self, name: str, default: bool = False) -> bool:
        """Return one flag."""
        found = self.arguments.get(name)
        return found if isinstance(found, bool) else default

    def several(self, name: str) -> tuple[object, ...]:
        """Return a list of anything; empty where it was left out, one number as a list of it."""
        found = self.arguments.get(name)
        if isinstance(found, list | tuple) and not isinstance(found, Shaped):
            return tuple(cast("Sequence[object]", found))
        return () if found is None or isinstance(found, Shaped) else (found,)

    def axes(self, name: str, rank: int) -> tuple[int, ...]:
        """Return axes that are counted from the front; all of them where none is named."""
        given = self.several(name)
        named = tuple(axis % rank for axis in given if isinstance(axis, int) and -rank <= axis < rank)
        return tuple(dict.fromkeys(named)) or tuple(range(rank))


@dataclass(frozen=True, slots=True)
class Work:
    """What a call is in Tandem's own kinds.

    Args:
        kind: a key of `core.ops.DIMS`, or `core.graph.VIEW`.
        dims: as the kind names them.
        dtype: of the arithmetic.
        marks: keys of `core.graph.MARKS`, with a detail after a colon.
        known: False where the operation is not in the tables and was taken for an elementwise one.
    """

    kind: str
    dims: tuple[Extent, ...]
    dtype: str
    marks: tuple[str, ...] = ()
    known: bool = True


def tensors_in(values: object) -> Iterator[Shaped]:
    """Yield the tensors of nested lists, in order."""
    if isinstance(values, Shaped):
        yield values
    elif isinstance(values, tuple | list):
        for value in cast("Sequence[object]", values):
            yield from tensors_in(value)


def axis(shape: Shape, at: int) -> Extent:
    """Return one extent; raises IndexError where the tensor has no such axis."""
    return shape[at]


def elements(shaped: Shaped) -> Extent:
    """Return how many elements a tensor has."""
    return product(shaped.shape)


def broadcast(*shapes: Shape) -> Shape:
    """Return the common shape of several, aligned at their ends; an extent of 1 follows the other."""
    rank = max(map(len, shapes), default=0)
    result: list[Extent] = []
    for at in range(-rank, 0):
        found = [shape[at] for shape in shapes if len(shape) >= -at and shape[at] != 1]
        result.append(found[0] if found else 1)
    return tuple(result)


def whole(extent: Extent) -> int | None:
    """Return a known extent; None for one that follows symbols."""
    return extent if isinstance(extent, int) else None
