"""Words for reinforcement learning over unlike pools: actors that roll out, a learner that trains, environments, weights.

Numbers only: paces are measured or estimated elsewhere.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import exp, inf, isfinite, log, sqrt
from statistics import NormalDist

from advisor.split.pace import Pace
from core.device import Link
from core.errors import BadInput
from core.split import Bar, Move

MODES = ("synchronous", "one-step-off", "asynchronous", "together")
"""How actors and learner take turns: each waits for the other; the learner trains on what was rolled out a step before; rollouts
never stop and may be older; both share the same chips by turns."""
OBJECTIVES = ("time", "cost")


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long rollouts are, in tokens (or steps of an environment): log-normal, cut off at the longest that is allowed.

    Args:
        mean, deviation: before the cut; a deviation of 0 makes them all equal.
        longest: none goes on longer.
    """

    mean: float
    deviation: float = 0.0
    longest: float = inf

    def __post_init__(self) -> None:
        if not (0 < self.mean < inf and 0 <= self.deviation < inf and self.longest > 0):
            raise BadInput(f"lengths {self}", "a mean above 0, a deviation from 0", "correct them")

    def quantile(self, share: float) -> float:
        """Return the length below which a share of rollouts stays, strictly between 0 and 1."""
        spread = log(1 + (self.deviation / self.mean) ** 2)
        return min(self.mean * exp(sqrt(spread) * NormalDist().inv_cdf(share) - spread / 2), self.longest)

    def of(self, count: int) -> tuple[float, ...]:
        """Return what lengths that many rollouts have, as evenly spread as their distribution, ascending."""
        return _even(self, count)

    @property
    def cut_mean(self) -> float:
        """Mean after the cut."""
        return sum(self.of(1000)) / 1000


@lru_cache(maxsize=4096)
def _even(lengths: Lengths, count: int) -> tuple[float, ...]:
    return tuple(lengths.quantile((index + 0.5) / count) for index in range(count))


@dataclass(frozen=True, slots=True)
class ChipPool:
    """Chips that may be shared out between actors and learner.

    Args:
        name: its lane.
        chips: in all.
        price_usd_per_chip_h: 0 when owned.
    """

    name: str
    chips: int
    price_usd_per_chip_h: float = 0.0


@dataclass(frozen=True, slots=True)
class Actors:
    """One way of rolling out on some chips of a pool.

    Args:
        pool, chips: where.
        engines: equal copies of the model among which rollouts are dealt out.
        step: seconds of a step that gives each rollout in flight on one engine a token; its `most` is what fits in memory.
        load_s: that new weights take to be loaded once they are on the hosts; nothing is rolled out meanwhile.
        stack, dtype, kind: framework, number format and kind of chips; empty when not known.
    """

    pool: str
    chips: int
    engines: int
    step: Pace
    load_s: float = 0.0
    stack: str = ""
    dtype: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Learner:
    """One way of training on some chips of a pool.

    Args:
        pool, chips: where.
        pace: seconds of a training step by the number of rollouts in it.
        scoring: the same of passes of reference and reward models on the same chips before it; None for none.
        gather_s: that the weights take to the hosts; nothing is trained meanwhile.
        stack, dtype, kind: as `Actors` has them.
    """

    pool: str
    chips: int
    pace: Pace
    scoring: Pace | None = None
    gather_s: float = 0.0
    stack: str = ""
    dtype: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Environments:
    """Environments on processors, that answer every step of every rollout.

    Args:
        pool: its lane.
        steps_per_s: of all cores together.
        overlapped: whether one half of the rollouts is answered while the model works on the other (SEED RL, arXiv:1910.06591).
    """

    pool: str
    steps_per_s: float
    overlapped: bool = True


@dataclass(frozen=True, slots=True)
class LearningProblem:
    """What is rolled out and trained, and on what.

    Args:
        pools: chips; none is named twice.
        actors, learners: ways to use them.
        samples: rollouts of one training step.
        lengths: of rollouts.
        weights_bytes: that are pushed after every training step.
        sample_bytes: of one rollout on its way to the learner.
        links: (pool, pool, link), one direction each; a pool to itself needs none.
        store: an object store that every pool reaches: its rate each for writing and reading; None for none.
        environments: None where the model answers itself.
        most_stale: by how many training steps the weights of a rollout may be behind.
        objective: one of `OBJECTIVES`.
        least_pools: how many pools must act or learn at least; 2 tells what the split costs even where one pool is better.

    Raises:
        BadInput: names or numbers that do not fit together.
    """

    pools: tuple[ChipPool, ...]
    actors: tuple[Actors, ...]
    learners: tuple[Learner, ...]
    samples: int
    lengths: Lengths
    weights_bytes: float
    sample_bytes: float = 0.0
    links: tuple[tuple[str, str, Link], ...] = ()
    store: Link | None = None
    environments: Environments | None = None
    most_stale: int = 1
    objective: str = "time"
    least_pools: int = 1

    def __post_init__(self) -> None:
        names = [pool.name for pool in self.pools]
        if not names or len(set(names)) < len(names) or not self.actors or not self.learners:
            raise BadInput(f"pools {names}, {len(self.actors)} ways to act, {len(self.learners)} to learn",
                           "at least one of each, no name twice", "name them")
        for one in (*self.actors, *self.learners):
            if one.pool not in names or one.chips < 1:
                raise BadInput(f"{one.chips} chips of {one.pool!r}", f"some of {', '.join(names)}", "name a pool and its chips")
        if any(one.engines < 1 for one in self.actors) or self.samples < 1 or self.most_stale < 0:
            raise BadInput("no engines, no samples or staleness below 0", "whole numbers from 1 (staleness from 0)", "correct it")
        if not all(isfinite(size) and size >= 0 for size in (self.weights_bytes, self.sample_bytes)):
            raise BadInput(f"bytes {self.weights_bytes}, {self.sample_bytes}", "finite numbers from 0", "correct them")
        if self.environments is not None and not 0 < self.environments.steps_per_s < inf:
            raise BadInput(f"{self.environments.steps_per_s} steps a second", "a number above 0", "measure the environments")
        if not 1 <= self.least_pools <= len(names):
            raise BadInput(f"least_pools {self.least_pools}", f"1 to {len(names)}: no more than pools", "ask for fewer")
        if self.objective not in OBJECTIVES:
            raise BadInput(f"objective {self.objective!r}", f"one of {', '.join(OBJECTIVES)}", "choose one")

    def way_s(self, size_bytes: float, source: str, target: str) -> float | None:
        """Return seconds from pool to pool by the link or through the store, whichever is faster; None where there is no way."""
        if source == target or size_bytes <= 0:
            return 0.0
        direct = [link.latency_s + size_bytes / link.bytes_per_s for a, b, link in self.links if (a, b) == (source, target)]
        stored = [] if self.store is None else [2 * (self.store.latency_s + size_bytes / self.store.bytes_per_s)]
        return min([*direct, *stored], default=None)


@dataclass(frozen=True, slots=True)
class Draft:
    """One way that was tried.

    Args:
        mode, seconds, usd_per_step, staleness, push_s: as `LearningPlan` has them.
        learner, crew: who.
        samples, in_flight, crew_s: of each of the crew.
        rollout_s, learn_s: of one step.
        transfer_s: of the push.
    """

    mode: str
    seconds: float
    usd_per_step: float
    learner: Learner
    crew: tuple[Actors, ...]
    samples: tuple[float, ...]
    in_flight: tuple[int, ...]
    crew_s: tuple[float, ...]
    rollout_s: float
    learn_s: float
    transfer_s: float
    push_s: float
    staleness: int


@dataclass(frozen=True, slots=True)
class Crew:
    """Actors of a plan.

    Args:
        actors: how they work.
        samples: rollouts of a step that are theirs; where rollouts never stop, in the mean.
        in_flight: rollouts on one engine at once, at most.
        seconds: that their rollouts of a step take.
    """

    actors: Actors
    samples: float
    in_flight: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LearningAlone:
    """The best plan on one pool alone; `missing` says why there is none."""

    pool: str
    seconds: float | None
    usd_per_step: float | None = None
    mode: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class LearningPlan:
    """Who rolls out, who learns, and how they take turns.

    Args:
        mode: one of `MODES`.
        seconds: from one training step to the next.
        usd_per_step: of the chips that are used.
        learner, crews: who.
        staleness: by how many training steps the weights of a rollout are behind, at most.
        push_s: that new weights take from the learner to the last actor.
        fractions: (pool, part of the busy chip-seconds); they sum to one.
        terms: (name, seconds); they add up to `seconds`.
        moves: weights, and rollouts the other way.
        timeline: of one training step.
        singles: each pool alone.
        warnings: what to know of log-probabilities, one sentence each.
    """

    mode: str
    seconds: float
    usd_per_step: float
    learner: Learner
    crews: tuple[Crew, ...]
    staleness: int
    push_s: float
    fractions: tuple[tuple[str, float], ...]
    terms: tuple[tuple[str, float], ...]
    moves: tuple[Move, ...]
    timeline: tuple[Bar, ...]
    singles: tuple[LearningAlone, ...]
    warnings: tuple[str, ...]

    @property
    def samples_per_s(self) -> float:
        """Rollouts that are trained on in a second."""
        return sum(crew.samples for crew in self.crews) / self.seconds


@dataclass(frozen=True, slots=True)
class NoLearning:
    """No way of acting and learning goes together; `missing` says why."""

    missing: tuple[str, ...]
    singles: tuple[LearningAlone, ...] = ()
