"""Low-rank adapters: what is trained, and what the backward pass leaves out, where the weights of a model are frozen.

Each weight matrix of the layers gets a pair of factors of a small rank, which alone are trained. Gradients still flow through
the frozen weights to what lies before them, and adapters need the inputs that full training saves, so only the products that
make gradients of weights, and what gradients and optimizers keep of them, fall away.

Source: Hu et al., LoRA, arXiv:2106.09685, section 4; Dettmers et al., arXiv:2305.14314, section 4 (adapters on every layer).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from core.ops import Op


@dataclass(frozen=True, slots=True)
class LowRank:
    """Adapters of a job.

    Args:
        rank: of each pair of factors.
        parameter_count: of all adapters, which alone are trained.
        experts: whether what experts hold in one array has them too.
    """

    rank: int
    parameter_count: int
    experts: bool = False


Matrix = tuple[tuple[int, ...], int]
"""(rows, columns) of a weight matrix, and how often it occurs."""


class _Repeated(Protocol):
    @property
    def repeats(self) -> int: ...


class _Layer(_Repeated, Protocol):
    @property
    def ops_forward(self) -> tuple[Op, ...]: ...


_Part = TypeVar("_Part", bound=_Repeated)


def layers_of(blocks: Iterable[_Part]) -> tuple[_Part, ...]:
    """Return the layers that get adapters: blocks that repeat, all where none does."""
    every = tuple(blocks)
    return tuple(block for block in every if block.repeats > 1) or every


def matrices_of(blocks: Iterable[_Layer]) -> tuple[Matrix, ...]:
    """Return the weight matrices of the layers of a model whose products are known."""
    layers = layers_of(blocks)
    return tuple((sides, op.count * one.repeats) for one in layers for op in one.ops_forward if (sides := _sides(op)))


def adapter_parameters(matrices: Iterable[Matrix], rank: int) -> int:
    """Return the parameters of adapters: rank x (rows + columns) for each weight matrix.

    Args:
        matrices: of the layers.
        rank: of the adapters.
    """
    return sum(rank * sum(sides) * times for sides, times in matrices)


def through_frozen(forward: Iterable[Op], backward: Iterable[Op]) -> tuple[Op, ...]:
    """Return the operations of a backward pass that remain when the weights are frozen.

    Args:
        forward, backward: of one block; a product of m x k with weights of k x n has one of k x m with m x n for these, or
            of the same turned over.
    """
    spared = Counter[tuple[int, ...]]()
    for op in forward:
        if _sides(op):
            _, m, n, k = op.dims
            spared[_gradient(k, n, m)] += op.count
    kept: list[Op] = []
    for op in backward:
        made = _gradient(op.dims[1], op.dims[2], op.dims[3]) if op.kind == "matmul" and op.dims[0] == 1 else ()
        less = min(op.count, spared[made])
        spared[made] -= less
        if op.count > less:
            kept.append(Op(op.kind, op.dims, op.dtype, op.count - less, op.phase))
    return tuple(kept)


def _gradient(rows: int, columns: int, depth: int) -> tuple[int, ...]:
    return (*sorted((rows, columns)), depth)


def _sides(op: Op) -> tuple[int, ...]:
    """Return (columns, depth) of the weights of a linear layer; nothing for what is none, such as products of many pairs."""
    return (op.dims[2], op.dims[3]) if op.kind == "matmul" and op.dims[0] == 1 else ()
