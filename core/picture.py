"""A model as Tandem understood it: blocks with their operations, and bytes over time, for any batch, length and dtype.

Bytes are polynomials in `batch`, `length` and `word`, the bytes of one element of the compute dtype, so that changing any of
them needs no new trace. What is greatest over a pass is kept as the few polynomials of which one is the greatest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from core.graph import Compiled, SetAside
from core.low_rank import Matrix, layers_of
from core.symbols import Extent, value_of

PRODUCT = "product of "
"""What the detail of an `off_tile` mark begins with where a matrix product is meant, rather than an array."""
WORD = "word"
"""Symbol: bytes of one element of the compute dtype."""
FIXED_LENGTH = "fixed_length"
"""Fact of a model whose operations change with the length of its sequences: the one that it was read for."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Equal operations of one block.

    Args:
        kind: a key of `core.ops.DIMS`.
        dims: as named there.
        dtype: of the arithmetic, a key of `core.graph.DTYPE_BITS`; empty where it is the compute dtype.
        count: in one repeat of the block.
        phase: `forward` or `backward`.
        source: name of the operation in the format.
    """

    kind: str
    dims: tuple[Extent, ...]
    dtype: str
    count: int
    phase: str
    source: str


@dataclass(frozen=True, slots=True)
class ParameterShape:
    """Parameters of one shape.

    Args:
        shape: whole numbers.
        dtype: a key of `core.graph.DTYPE_BITS`; empty where it is the compute dtype.
        count: in one repeat of the block.
        trained: False for buffers and tables.
    """

    shape: tuple[int, ...]
    dtype: str
    count: int
    trained: bool = True


@dataclass(frozen=True, slots=True)
class PictureBlock:
    """A part of the model, `repeats` times.

    Args:
        name: path of the module, with `*` for the number of a repeated one, or what stands for it.
        repeats: how many equal ones there are.
        operations: of one repeat.
        parameters: of one repeat.
        saved: bytes kept from its forward to its backward pass, one repeat.
        given: bytes of what it takes from the blocks before it, all that remat keeps of one repeat.
        parts: paths of the modules that stand behind it, a few.
    """

    name: str
    repeats: int
    operations: tuple[Operation, ...]
    parameters: tuple[ParameterShape, ...]
    saved: Extent
    given: Extent
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Portability:
    """One kind of operation that decides whether and how a model moves.

    Args:
        mark: a key of `core.graph.MARKS`, or `unit_axis`, `off_tile`.
        detail: which one, such as the name of a custom operation; empty where the mark says all.
        count: occurrences in the model.
        where: the first block that has it.
        extent: bytes of the tensor, or FLOPs of the product, for the values of the symbols; 0 where the mark says all.
        padded: the same in tiles of a TPU.
    """

    mark: str
    detail: str
    count: int
    where: str
    extent: int = 0
    padded: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """A model as it was understood.

    Args:
        title, format: as in `core.graph.Graph`.
        blocks: in the order of their first operation.
        symbols: name and value for which the picture was taken, `word` among them.
        peak_forward: bytes beside parameters at the worst moment of a forward pass without gradients; the greatest counts.
        peak_training: the same from the first operation to the last of the backward pass, gradients of parameters left out.
        peak_step: the same with the gradients of parameters, from the moment at which each is made.
        inputs: bytes of what one call is given.
        cache: bytes of keys and values of one sequence of `length`; 0 where the model keeps none or none is known.
        operations: what decides portability.
        facts: whole numbers that no operation shows (`active_parameters`).
        notes: what was assumed, guessed or left out.
        derived: whether the backward pass was derived from the forward one.
        tiled_forward: as `peak_forward`, with the inputs, where arrays lie in the tiles of a TPU as they are written; empty
            where that is not much more.
        tiled_training: the same as `peak_training`.
        compiled: what a compiler would set aside for the program that the file holds; None where it holds none.
        program: the same by the liveness analysis, which knows no compiler; None where sizes are open as well.
    """

    title: str
    format: str
    blocks: tuple[PictureBlock, ...]
    symbols: tuple[tuple[str, int], ...]
    peak_forward: tuple[Extent, ...]
    peak_training: tuple[Extent, ...]
    peak_step: tuple[Extent, ...]
    inputs: Extent
    cache: Extent
    operations: tuple[Portability, ...]
    facts: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    derived: bool = True
    tiled_forward: tuple[Extent, ...] = ()
    tiled_training: tuple[Extent, ...] = ()
    compiled: Compiled | None = None
    program: SetAside | None = None

    @property
    def parameter_count(self) -> int:
        """Trained parameters."""
        shapes = ((block.repeats, one) for block in self.blocks for one in block.parameters if one.trained)
        return sum(repeats * one.count * prod(one.shape) for repeats, one in shapes)

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """Trained weight matrices of the layers, without experts' arrays of three axes and the router, as for PEFT."""
        experts = dict(self.facts).get("experts", 0)
        return tuple(
            (one.shape, one.count * block.repeats)
            for block in layers_of(self.blocks)
            for one in block.parameters if one.trained and len(one.shape) == 2 and one.shape[0] != experts
        )  # fmt: skip

    @property
    def expert_matrices(self) -> tuple[Matrix, ...]:
        """Trained weight matrices of experts that are held in one array of three axes, one for each expert."""
        experts = dict(self.facts).get("experts", 0)
        return tuple(
            (one.shape[1:], experts * one.count * block.repeats)
            for block in layers_of(self.blocks)
            for one in block.parameters if one.trained and len(one.shape) == 3 and one.shape[0] == experts
        )  # fmt: skip

    def values(self, **asked: int) -> dict[str, int]:
        """Return values of all symbols, with some replaced."""
        return {**dict(self.symbols), **{name: value for name, value in asked.items() if name in dict(self.symbols)}}


def greatest(extents: tuple[Extent, ...], values: Mapping[str, int]) -> int:
    """Return the greatest of some extents for values of their symbols; 0 of none."""
    return max((value_of(extent, values) for extent in extents), default=0)
