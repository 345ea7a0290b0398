"""Legal ways to divide one workload over a number of chips, as arrays.

Tensor parallelism stays inside the fast link's domain and divides heads; pipeline stages divide layers and are left to GPUs,
since programs on TPUs shard instead; context parallelism is for long sequences; experts are spread over replicas. Weights are
either held whole by each replica or sharded over all of them. A replica takes its share at once or in parts.

A step of training needs all its chips, and its batch in equal parts. Replicas that answer requests have nothing to say to each
other: each takes its share, rounded up, and chips that make no whole replica, or that no request is left for, are idle.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from advisor.cost.columns import Numbers

_MOST_TENSOR, _MOST_PIPELINE, _MOST_CONTEXT = 16, 32, 16
_LEAST_CONTEXT_POSITIONS = 4096
_LEAST_STAGED_LAYERS = 16
"""A stack of equal layers shorter than this is not cut into stages."""
_PARTS = 6
"""Sizes of micro-batch that are tried for each division: halves of a replica's share."""


@dataclass(frozen=True, slots=True)
class Divisible:
    """What of a workload may be divided, and into what.

    Args:
        batch: samples of a global step. heads, layers, experts: 0 or 1 where there is nothing to divide.
        length: positions of a sample.
        trains: whether there is a backward pass; without one nothing is recomputed or sharded in parts.
        each: whether `batch` is what every replica takes, however many there are.
    """

    batch: int
    heads: int
    layers: int
    experts: int
    length: int
    trains: bool
    each: bool = False


@dataclass(frozen=True, slots=True)
class Chips:
    """Chips of a pool as plans see them: how many, how many the fast link joins, and whether stages are usual.

    `apart` says that nothing is known of a link beyond the fast one, so that replicas stay within it and share nothing.
    """

    count: int
    domain: int
    stages: bool
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """Plans side by side; arrays of shape (plans,)."""

    data: Numbers
    tensor: Numbers
    pipeline: Numbers
    context: Numbers
    expert: Numbers
    virtual: Numbers
    sharded: Numbers
    micro: Numbers
    recompute: Numbers

    def __len__(self) -> int:
        """Return the number of plans."""
        return len(self.data)


_FIELDS = ("data", "tensor", "pipeline", "context", "expert", "virtual", "sharded", "micro", "recompute")


def grid_of(work: Divisible, chips: Chips) -> Grid:
    """Return every legal plan of a workload on a number of chips; none when it trains and its batch cannot be divided.

    Args:
        work: what may be divided.
        chips: of the pool.
    """
    rows = list(_plans(work, chips))
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(_FIELDS))
    return Grid(**{name: table[:, position] for position, name in enumerate(_FIELDS)})


def joined(grids: Sequence[Grid]) -> Grid:
    """Return plans of several pools one after the other."""
    return Grid(**{name: np.concatenate([getattr(grid, name) for grid in grids]) for name in _FIELDS})


def _plans(work: Divisible, chips: Chips) -> Iterator[tuple[float, ...]]:
    for tensor in _powers(min(_MOST_TENSOR, chips.domain, chips.count)):
        if tensor > 1 and (work.heads < 2 or work.heads % tensor):
            continue
        staged = chips.stages and work.trains and work.heads > 1 and work.layers >= _LEAST_STAGED_LAYERS
        for pipeline in _powers(min(_MOST_PIPELINE, chips.count // tensor, work.layers) if staged else 1):
            for context in _powers(
                min(_MOST_CONTEXT, chips.count // (tensor * pipeline), work.length // _LEAST_CONTEXT_POSITIONS)
            ):
                if chips.apart and tensor * context > chips.domain:
                    continue
                data, idle = divmod(chips.count, tensor * pipeline * context)
                if work.trains and (idle or work.batch % data):
                    continue
                yield from _replicas(work, _busy(work, data), tensor, pipeline, context, chips.apart)


def _busy(work: Divisible, data: int) -> int:
    """Return how many replicas get work: all, unless as many requests are taken in as long a time by fewer."""
    return data if work.trains or work.each else -(-work.batch // -(-work.batch // data))


def _replicas(
    work: Divisible, data: int, tensor: int, pipeline: int, context: int, apart: bool
) -> Iterator[tuple[float, ...]]:
    share = work.batch if work.each else -(-work.batch // data)
    experts = _powers(min(work.experts, data)) if work.experts > 1 and not apart else (1,)
    virtual = 2 if pipeline > 1 and work.layers >= 4 * pipeline else 1
    for expert in experts:
        if expert > 1 and (work.experts % expert or data % expert):
            continue
        for sharded in {1} if apart else {1, data}:
            if sharded > 1 and pipeline > 1:
                continue  # gathered weights of every stage for every micro-batch: not done in practice
            for micro in _micro_batches(share) if work.trains else (share,):
                for recompute in (0, 1) if work.trains else (0,):
                    yield data, tensor, pipeline, context, expert, virtual, sharded, micro, recompute


def _micro_batches(share: int) -> tuple[int, ...]:
    """Return a replica's share and its halves, and one sample at a time."""
    found = [share]
    while found[-1] % 2 == 0 and len(found) < _PARTS:
        found.append(found[-1] // 2)
    return tuple(dict.fromkeys((*found, 1)))


def _powers(most: int) -> tuple[int, ...]:
    found = [1]
    while found[-1] * 2 <= most:
        found.append(found[-1] * 2)
    return tuple(found)


def undivided(batch: int, count: int) -> str:
    """Return that a batch is not divided over chips that train, and which batches and counts next to these are.

    Args:
        batch: samples of a step, which the chips do not divide.
        count: chips.
    """
    below, above = batch // count * count, -(-batch // count) * count
    batches = " or ".join(f"{near:,}" for near in (below, above) if near)
    fewer = next(chips for chips in range(min(count, batch), 0, -1) if batch % chips == 0)
    more = next((chips for chips in range(count, batch + 1) if batch % chips == 0), 0)
    counts = " or ".join(str(near) for near in (fewer, more) if near)
    return f"a batch of {batch} does not divide over {count} chips: a batch of {batches} would, or {counts} chips"
