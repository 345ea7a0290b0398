"""Words for layers in a row over unlike pools: what a pool needs for each layer, what crosses between layers, and the plan.

Numbers only: whoever builds a problem has already divided by chips, padded and priced. A pool counts as one worker, a layer is
whatever may not be cut.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from advisor.split.data_parallel_exchange import check_links
from core.device import Link
from core.errors import BadInput
from core.split import Bar, Move

SCHEDULES = ("1f1b", "1f1b-eager", "gpipe")
"""Orders of forward and backward passes; see `advisor.split.pipeline_schedule`."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """What each layer takes on one pool when the batch is cut into so many micro-batches.

    Args:
        micro_batches: how many.
        forward_s, backward_s: of one micro-batch, by layer.
        kept_bytes: by layer, what one micro-batch keeps from its forward until its backward pass, in the unit of `memory_bytes`.
    """

    micro_batches: int
    forward_s: tuple[float, ...]
    backward_s: tuple[float, ...]
    kept_bytes: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StagePool:
    """One pool that may hold a stage.

    Args:
        name: its lane.
        sizings: one for each allowed number of micro-batches.
        state_bytes: by layer: weights, gradients and optimizer state, in the unit of `memory_bytes`.
        memory_bytes: of one chip, or of all: whatever the bytes by layer are of; None where there is no limit.
        update_s: by layer, of the optimizer once in a step; empty for none.
    """

    name: str
    sizings: tuple[Sizing, ...]
    state_bytes: tuple[float, ...]
    memory_bytes: float | None = None
    update_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Crossing:
    """What crosses after each layer but the last, of one micro-batch.

    Args:
        micro_batches: how many the batch is cut into.
        activation_bytes, gradient_bytes: forward and backward, one less than there are layers.
    """

    micro_batches: int
    activation_bytes: tuple[float, ...]
    gradient_bytes: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PipelineProblem:
    """Layers in a row, and the pools that may have a stretch of them each.

    Args:
        pools: at least one, in any order; equal names are refused.
        crossings: one for each number of micro-batches, the same numbers as in each pool's sizings.
        links: `links[a][b]` carries from pool a to pool b (through their hosts); None where there is no way, and on the diagonal.
        schedules: which of `SCHEDULES` may be used; without any backward work and gradients (inference) it is `forward`.
        least_pools: how many pools must have a stage at least; 2 tells what the split costs even where one pool is faster.

    Raises:
        BadInput: lengths or numbers that do not fit together.
    """

    pools: tuple[StagePool, ...]
    crossings: tuple[Crossing, ...]
    links: tuple[tuple[Link | None, ...], ...]
    schedules: tuple[str, ...] = ("1f1b",)
    least_pools: int = 1

    def __post_init__(self) -> None:
        counts = [crossing.micro_batches for crossing in self.crossings]
        if not self.pools or not counts or not self.layers:
            raise BadInput("no pools, no layers or no numbers of micro-batches", "at least one of each", "give them")
        names = [pool.name for pool in self.pools]
        if len(set(names)) < len(names):
            raise BadInput(f"pools named {', '.join(names)}", "different names", "number pools that are alike")
        if not self.schedules or set(self.schedules) - set(SCHEDULES):
            raise BadInput(f"schedules {self.schedules}", f"some of {', '.join(SCHEDULES)}", "name those")
        if not 1 <= self.least_pools <= min(len(self.pools), self.layers):
            got, most = f"least_pools {self.least_pools}", min(len(self.pools), self.layers)
            raise BadInput(got, f"1 to {most}: no more than pools and layers", "ask for fewer")
        check_links(self.links, len(names))
        if len(set(counts)) < len(counts) or min(counts) < 1:
            raise BadInput(f"micro-batches {counts}", "different numbers from 1", "name each once")
        for pool in self.pools:
            _check_pool(pool, counts, self.layers)
        for crossing in self.crossings:
            for sizes in (crossing.activation_bytes, crossing.gradient_bytes):
                _check(sizes, self.layers - 1, f"bytes that cross at {crossing.micro_batches} micro-batches")

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.pools[0].state_bytes)

    @property
    def micro_batches(self) -> tuple[int, ...]:
        """Allowed numbers of micro-batches, as given."""
        return tuple(crossing.micro_batches for crossing in self.crossings)


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of layers on one pool.

    Args:
        pool: its lane.
        first, stop: layers `first` to `stop - 1`, counted from 0.
        forward_s, backward_s: of one micro-batch.
        update_s: once in a step.
        busy_s, wait_s: of one step; together the step.
        memory_bytes: state, and what the micro-batches in flight keep.
        in_flight: most micro-batches that it keeps at once.
    """

    pool: str
    first: int
    stop: int
    forward_s: float
    backward_s: float
    update_s: float
    busy_s: float
    wait_s: float
    memory_bytes: float
    in_flight: int


@dataclass(frozen=True, slots=True)
class PoolAlone:
    """All layers on one pool.

    Args:
        pool: its lane.
        seconds, micro_batches: the fastest that fits; None where none does.
        missing: why not; empty where one fits.
    """

    pool: str
    seconds: float | None
    micro_batches: int | None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """The fastest found way of cutting the layers.

    Args:
        seconds: of one step, by the simulated schedule.
        micro_batches, schedule: as chosen.
        stages: in the order of the layers; pools without one are left out.
        terms: (name, seconds): `compute` and `update` of the busiest stage, `bubble` that it would wait with a free link, `link`
            that it waits more because of the links; they add up to `seconds`.
        moves: activations and gradients of each boundary.
        timeline: of one step.
        singles: each pool alone, as they were given.
        bound_s: no plan takes less, as far as is proven.
        proved: whether none is faster than this one.
    """

    seconds: float
    micro_batches: int
    schedule: str
    stages: tuple[Stage, ...]
    terms: tuple[tuple[str, float], ...]
    moves: tuple[Move, ...]
    timeline: tuple[Bar, ...]
    singles: tuple[PoolAlone, ...]
    bound_s: float
    proved: bool

    @property
    def gap(self) -> float:
        """By what fraction of it the step might be shorter at most."""
        return 0.0 if self.proved or self.seconds <= 0 else max(0.0, 1 - self.bound_s / self.seconds)

    @property
    def fractions(self) -> tuple[tuple[str, float], ...]:
        """(pool, part of the layers) of those with a stage; they sum to one."""
        layers = self.stages[-1].stop
        return tuple((stage.pool, (stage.stop - stage.first) / layers) for stage in self.stages)

    @property
    def best_single(self) -> PoolAlone | None:
        """The fastest pool alone; None when the layers fit on none."""
        able = [(one.seconds, one.pool, one) for one in self.singles if one.seconds is not None]
        return min(able)[2] if able else None


def every_way(count: int, link: Link) -> tuple[tuple[Link | None, ...], ...]:
    """Return links of `count` pools that are all joined alike."""
    return tuple(tuple(None if a == b else link for b in range(count)) for a in range(count))


def _check_pool(pool: StagePool, counts: list[int], layers: int) -> None:
    own = [sizing.micro_batches for sizing in pool.sizings]
    if sorted(own) != sorted(counts):
        raise BadInput(f"{pool.name} with micro-batches {own}", f"{counts} as what crosses has", "give a sizing for each")
    if pool.memory_bytes is not None and not pool.memory_bytes >= 0:
        raise BadInput(f"memory of {pool.name} {pool.memory_bytes}", "bytes from 0, or none for no limit", "correct it")
    _check(pool.state_bytes, layers, f"state of {pool.name}")
    _check(pool.update_s or (0.0,) * layers, layers, f"update of {pool.name}")
    for sizing in pool.sizings:
        for values in (sizing.forward_s, sizing.backward_s, sizing.kept_bytes):
            _check(values, layers, f"sizing of {pool.name} at {sizing.micro_batches} micro-batches")


def _check(values: Iterable[float], length: int, what: str) -> None:
    given = tuple(values)
    if len(given) != length:
        raise BadInput(f"{what} of {len(given)} values", f"{length}", "give one for each layer (boundary)")
    if not all(isfinite(value) for value in given) or (given and min(given) < 0):
        raise BadInput(f"{what} with a value below zero or without end", "finite numbers from 0", "correct it")
