"""Words for copies that meet every so many steps: local SGD, DiLoCo, and its streaming and decoupled forms.

Each pool trains its own copy with its own optimizer; every H steps the copies' changes are averaged over the hosts' link, an
outer optimizer applies the average, and all go on from there. Between meetings nothing crosses. This is not the same training as
the synchronous one: `local_published` says what is known of the difference.
"""

from dataclasses import dataclass
from math import isfinite

from advisor.split.data_parallel_exchange import check_links
from advisor.split.local_published import VARIANTS, Published
from advisor.split.pace import Pace
from core.device import Link
from core.errors import BadInput
from core.split import Bar, Move

STYLES = ("shares", "steps", "own")
"""How unlike pools are kept level: as many steps of unlike batches; unlike numbers of steps of equal batches; not at all."""


@dataclass(frozen=True, slots=True)
class LocalPool:
    """One pool with a copy.

    Args:
        name: its lane.
        pace: seconds of forward and backward passes by samples.
        inner_s: of each inner step besides: gradients inside the pool, the inner optimizer.
        outer_s: of each meeting besides the link: parameters to the hosts and back, the outer optimizer.
    """

    name: str
    pace: Pace
    inner_s: float = 0.0
    outer_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LocalProblem:
    """One training job, and the pools that may have a copy.

    Args:
        pools: at least one, in any order; equal names are refused.
        batch: samples that all copies take together in what counts as one step.
        delta_bytes: of all parameters' changes as they go over the link: bits / 8 for each parameter.
        bits: of an exchanged value.
        links: `links[a][b]` carries from the hosts of pool a to those of pool b; None where there is no way.
        inner_steps: allowed steps between two meetings.
        variants: which of `VARIANTS` may be used.
        fragments: into which the parameters are cut when they are streamed.
        overlap_steps: for which a fragment may be on its way before somebody waits.
        most_exposed: part of the time that meetings may cost; the fewest steps that keep to it are taken.
        least_pools: how many pools must have a copy at least.
        total_steps: of the job; None where it is not known.
        lane: of what is between the pools.

    Raises:
        BadInput: numbers that do not fit together.
    """

    pools: tuple[LocalPool, ...]
    batch: int
    delta_bytes: float
    bits: int
    links: tuple[tuple[Link | None, ...], ...]
    inner_steps: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100, 200, 500)
    variants: tuple[str, ...] = ("plain", "streaming")
    fragments: int = 8
    overlap_steps: int = 1
    most_exposed: float = 0.05
    least_pools: int = 1
    total_steps: int | None = None
    lane: str = "between pools"

    def __post_init__(self) -> None:
        names = [pool.name for pool in self.pools]
        if not names or len(set(names)) < len(names):
            given = ", ".join(names) or "nothing"
            raise BadInput(f"pools named {given}", "different names, one at least", "number pools that are alike")
        counts = (self.batch, self.bits, self.fragments, self.overlap_steps, *self.inner_steps)
        if not self.inner_steps or min(counts) < 1:
            raise BadInput(f"batch, bits, fragments, overlap and steps {counts}", "whole numbers from 1", "correct them")
        if not self.variants or set(self.variants) - set(VARIANTS):
            raise BadInput(f"variants {self.variants}", f"some of {', '.join(VARIANTS)}", "name those")
        if not 1 <= self.least_pools <= len(names):
            raise BadInput(f"least_pools {self.least_pools}", f"1 to {len(names)}", "ask for fewer")
        if not (isfinite(self.delta_bytes) and self.delta_bytes >= 0) or not 0 <= self.most_exposed <= 1:
            got = f"delta_bytes {self.delta_bytes}, most_exposed {self.most_exposed}"
            raise BadInput(got, "a finite number from 0, a share of 0 to 1", "correct them")
        check_links(self.links, len(names))
        for pool in self.pools:
            if not all(isfinite(value) and value >= 0 for value in (pool.inner_s, pool.outer_s)):
                raise BadInput(f"{pool.name} with {pool.inner_s} and {pool.outer_s} s", "seconds from 0", "correct them")


@dataclass(frozen=True, slots=True)
class LocalShare:
    """What one pool does between two meetings.

    Args:
        pool: its lane.
        samples: of each of its steps; 0 for a pool that is left out.
        steps: that it takes, not whole where it keeps its own pace.
        weight: of its change in the average: its samples over all.
        busy_s, wait_s: of a round.
    """

    pool: str
    samples: int
    steps: float
    weight: float
    busy_s: float
    wait_s: float


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """The fastest way of meeting seldom enough.

    Args:
        seconds: of a step of the whole batch, the meetings spread over the steps.
        variant, style, inner_steps: as chosen; steps are those of the whole batch.
        round_s, compute_s, exposed_s: of a round: all of it; the longest pool's compute; what meetings add.
        shares: of all pools, as they were given.
        meetings: of the whole job; None where its steps are not known.
        mean_bytes_per_s: that each pool sends, over a round.
        terms: (name, seconds) of a step: `compute`, `exchange`, `outer`; they add up to `seconds`.
        moves: changes of one round, one for each neighbour in the ring.
        timeline: of one round.
        singles: (pool, seconds of the whole batch or None).
        within: whether meetings cost no more than was allowed.
        note: what is published about the quality.
        published: the reports.
    """

    seconds: float
    variant: str
    style: str
    inner_steps: int
    round_s: float
    compute_s: float
    exposed_s: float
    shares: tuple[LocalShare, ...]
    meetings: int | None
    mean_bytes_per_s: float
    terms: tuple[tuple[str, float], ...]
    moves: tuple[Move, ...]
    timeline: tuple[Bar, ...]
    singles: tuple[tuple[str, float | None], ...]
    within: bool
    note: str
    published: tuple[Published, ...]

    @property
    def utilisation(self) -> float:
        """Part of the time that is not lost to meetings."""
        return self.compute_s / self.round_s if self.round_s > 0 else 1.0

    @property
    def best_single(self) -> tuple[str, float] | None:
        """The fastest pool alone; None when none can have the whole batch."""
        able = [(seconds, name) for name, seconds in self.singles if seconds is not None]
        return (min(able)[1], min(able)[0]) if able else None
