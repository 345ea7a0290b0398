"""Words for one batch over unlike pools: every pool has the whole model, each step a share of the samples, then gradients meet.

No collective spans two kinds of pool: each reduces its own gradients first, the hosts exchange the sums in host memory, and each
pool spreads the result to its chips. The average that is applied weighs each pool's mean gradient by its part of the batch, so
that a step is the same as that of one pool with the whole batch.
"""

from dataclasses import dataclass
from math import gcd, isfinite

from advisor.split.data_parallel_exchange import check_links
from advisor.split.pace import Pace
from core.device import Link
from core.errors import BadInput
from core.split import Bar, Move

BACKWARD_SHARE = 2 / 3
"""Part of a step's compute that is the backward pass: two products for each of the forward pass (weights and inputs).

Source: Kaplan et al., arXiv 2001.08361, section 2.1: a backward pass takes about twice the forward pass.
"""


@dataclass(frozen=True, slots=True)
class DataPool:
    """One pool with a copy of the model.

    Args:
        name: its lane.
        pace: seconds of forward and backward passes by samples.
        reduce_s: of summing all gradients inside the pool, up to its hosts.
        spread_s: of bringing the average back to its chips.
        update_s: of the optimizer.
        backward_share: part of a pass that is its backward pass.
    """

    name: str
    pace: Pace
    reduce_s: float = 0.0
    spread_s: float = 0.0
    update_s: float = 0.0
    backward_share: float = BACKWARD_SHARE


@dataclass(frozen=True, slots=True)
class DataProblem:
    """One batch, and the pools that may have shares of it.

    Args:
        pools: at least one, in any order; equal names are refused.
        batch: samples of a step, over all pools.
        gradient_bytes: of the whole model as it goes over the link: 4 a parameter in fp32, 2 in bf16, 1 in 8 bits.
        links: `links[a][b]` carries from the hosts of pool a to those of pool b; None where there is no way.
        buckets: parts of the gradients that are sent as soon as they are there; 1 overlaps nothing.
        least_pools: how many pools must have a share at least; 2 tells what the split costs even where one pool is faster.
        lane: of what is between the pools.

    Raises:
        BadInput: numbers that do not fit together.
    """

    pools: tuple[DataPool, ...]
    batch: int
    gradient_bytes: float
    links: tuple[tuple[Link | None, ...], ...]
    buckets: int = 8
    least_pools: int = 1
    lane: str = "between pools"

    def __post_init__(self) -> None:
        names = [pool.name for pool in self.pools]
        if not names or len(set(names)) < len(names):
            raise BadInput(
                f"pools named {', '.join(names) or 'nothing'}", "different names, one at least", "number pools that are alike"
            )
        if self.batch < 1 or self.buckets < 1:
            raise BadInput(f"batch {self.batch}, buckets {self.buckets}", "whole numbers from 1", "correct them")
        if not 1 <= self.least_pools <= len(names):
            raise BadInput(f"least_pools {self.least_pools}", f"1 to {len(names)}", "ask for fewer")
        if not (isfinite(self.gradient_bytes) and self.gradient_bytes >= 0):
            raise BadInput(f"gradient_bytes {self.gradient_bytes}", "a finite number from 0", "correct it")
        check_links(self.links, len(names))
        for pool in self.pools:
            own = (pool.reduce_s, pool.spread_s, pool.update_s)
            if not all(isfinite(value) and value >= 0 for value in own) or not 0 <= pool.backward_share <= 1:
                raise BadInput(
                    f"{pool.name} with {own}, backward share {pool.backward_share}",
                    "seconds from 0, a share of 0 to 1",
                    "correct them",
                )

    @property
    def unit(self) -> int:
        """Largest number of samples of which every pool's share is a multiple."""
        return gcd(*(pool.pace.grain for pool in self.pools))


@dataclass(frozen=True, slots=True)
class DataShare:
    """What one pool does in a step.

    Args:
        pool: its lane.
        samples: its share of the batch; 0 for a pool that is left out.
        weight: of its mean gradient in the average: samples over batch.
        turns: of gradient accumulation.
        compute_s: forward and backward passes.
        busy_s, wait_s: with reducing, spreading and the update, and the rest of the step.
    """

    pool: str
    samples: int
    weight: float
    turns: int
    compute_s: float
    busy_s: float
    wait_s: float


@dataclass(frozen=True, slots=True)
class CopyAlone:
    """The whole batch on one pool; `missing` says why there is no number."""

    pool: str
    seconds: float | None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class DataPlan:
    """The fastest way of sharing the batch.

    Args:
        seconds: of one step.
        shares: of all pools, as they were given.
        terms: (name, seconds): `compute` of the pool that computes longest, `reduce` inside pools that is not hidden, `exchange`
            that the link adds, `update`; they add up to `seconds`.
        moves: gradients between hosts, one for each neighbour in the ring.
        timeline: of one step.
        singles: each pool alone, as they were given.
        ideal_s: of a step if exchanging cost nothing and no pool waited for another's end.
        bound_s: no plan takes less, as far as is proven.
        proved: whether all sets of pools were tried, so that no plan is faster.
    """

    seconds: float
    shares: tuple[DataShare, ...]
    terms: tuple[tuple[str, float], ...]
    moves: tuple[Move, ...]
    timeline: tuple[Bar, ...]
    singles: tuple[CopyAlone, ...]
    ideal_s: float
    bound_s: float
    proved: bool

    @property
    def gap(self) -> float:
        """By what fraction of it the step might be shorter at most."""
        return 0.0 if self.proved else max(0.0, 1 - self.bound_s / self.seconds)

    @property
    def best_single(self) -> CopyAlone | None:
        """The fastest pool alone; None when none can have the whole batch."""
        able = [(one.seconds, one.pool, one) for one in self.singles if one.seconds is not None]
        return min(able)[2] if able else None
