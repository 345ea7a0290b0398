"""What is advised: Plan, Candidate, Estimate, Verdict, Recommendation."""

from dataclasses import dataclass
from math import hypot, log
from statistics import NormalDist

from core.device import Pool
from core.probe import Probe
from core.quantity import Quantity

EFFECTS = ("exclude", "penalise", "warn", "suggest")
SURE = 0.9
"""Chance of a target or of fitting from which on nobody is warned, or told of something surer."""
ALL_BLOCKS = "all blocks"
"""Name in a breakdown of what no single block takes."""
BREAKDOWN_TERMS = ("compute", "memory traffic", "launch", "communication", "bubble", "input", "host")


@dataclass(frozen=True, slots=True)
class Plan:
    """How the work is divided over the chips of a pool."""

    data: int = 1
    fsdp: int = 1
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    context: int = 1
    micro_batch: int | None = None
    remat: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """One runtime on one or more pools with one plan.

    Args:
        requests: that it takes at once, where that was left open; None where the workload says it.
    """

    runtime: str
    pools: tuple[Pool, ...]
    plan: Plan
    requests: int | None = None

    @property
    def label(self) -> str:
        """One short line that names the candidate to a person: `jax on 8 x tpu-v6e`."""
        return f"{self.runtime} on {' + '.join(pool.label for pool in self.pools)}"


@dataclass(frozen=True, slots=True)
class Share:
    """One slice of a step: a block or an overhead, in one breakdown term."""

    term: str
    block: str
    seconds: Quantity


@dataclass(frozen=True, slots=True)
class Fed:
    """What a step takes of its chips, and of the input that is made ready meanwhile: it is as long as the longer.

    Args:
        chips_s: seconds without any wait for input.
        input_s: seconds in which the input of a step is read and decoded.
    """

    chips_s: Quantity
    input_s: Quantity

    @property
    def waits_s(self) -> float:
        """Seconds in which the chips wait, by middle values."""
        return max(0.0, self.input_s.mid - self.chips_s.mid)

    @property
    def chance_waiting(self) -> float:
        """Probability that the chips wait."""
        spread = hypot(self.chips_s.sigma, self.input_s.sigma)
        if spread <= 0 or self.chips_s.mid <= 0 or self.input_s.mid <= 0:
            return float(self.waits_s > 0)
        return NormalDist().cdf(log(self.input_s.mid / self.chips_s.mid) / spread)


@dataclass(frozen=True, slots=True)
class Served:
    """What requests meet at a rate of arrivals; the three latencies are empty where more comes than can be served.

    Args:
        requests_per_s: that come.
        limit_per_s: that can just not be served.
        first_token_s, per_token_s, total_s: percentiles 50, 95 and 99; a model that makes no tokens has `total_s` alone.
    """

    requests_per_s: float
    limit_per_s: float
    first_token_s: tuple[Quantity, ...] = ()
    per_token_s: tuple[Quantity, ...] = ()
    total_s: tuple[Quantity, ...] = ()

    @property
    def utilisation(self) -> float:
        """What comes over what can be served."""
        return self.requests_per_s / self.limit_per_s


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a candidate would do; None where it is not known, and `missing` says what would tell.

    Args:
        step_time_s, compile_s: seconds.
        throughput: units (tokens or samples, as the workload says) per second.
        memory_bytes_per_chip: peak of one chip.
        memory_parts: (name, bytes) that add up to it.
        capacity_bytes: of one chip.
        cost_usd, energy_j: of the whole job when a total is given, else of 1,000 steps.
        breakdown: where the step time goes.
        lower_s, upper_s: bounds of the step time: max of the terms, and their sum.
        fits: whether it fits in memory; None when unknown.
        probes: ids of measurements or sources that it rests on.
        missing: what is not known, one phrase each.
        penalty: factor of rules on the ranking score, 1 when none.
        job_s: expected seconds of the whole job when a total is given: compilation, steps, interruptions; None where the steps
            alone are reckoned with.
        served: what requests meet at the asked rate; None where none was asked, or no queue was reckoned.
        misses: targets that it misses, one phrase each with what it does instead.
        target_chance: probability that it meets every target that can be told of it; None without any.
        published_of: library whose published programs the step time stands on, tuned by their authors; empty where it is the
            runtime's own, or nothing published of it is.
        utilisation: model FLOPs of a training step (attention in full, nothing computed again) over what the chips' dense peak
            does in its time (MFU); None where it does not train, or its peak is not known.
        fed: of what the step is the longer: its chips' time and its input's; None where no input is reckoned with.
    """

    candidate: Candidate
    step_time_s: Quantity | None
    throughput: Quantity | None
    memory_bytes_per_chip: Quantity | None
    compile_s: Quantity | None
    cost_usd: Quantity | None
    energy_j: Quantity | None
    memory_parts: tuple[tuple[str, float], ...] = ()
    capacity_bytes: float | None = None
    breakdown: tuple[Share, ...] = ()
    lower_s: float | None = None
    upper_s: float | None = None
    fits: bool | None = None
    missing: tuple[str, ...] = ()
    penalty: float = 1.0
    job_s: Quantity | None = None
    served: Served | None = None
    misses: tuple[str, ...] = ()
    target_chance: float | None = None
    published_of: str = ""
    utilisation: Quantity | None = None
    fed: Fed | None = None

    def of(self, objective: str) -> Quantity | None:
        """Return its figure for an objective: step time, cost or energy; None where it is not known.

        Args:
            objective: one of `core.workload.OBJECTIVES`.
        """
        return {"time": self.step_time_s, "cost": self.cost_usd, "energy": self.energy_j}[objective]

    @property
    def fit_chance(self) -> float | None:
        """Probability that it fits in memory; None where either side is not known."""
        need, have = self.memory_bytes_per_chip, self.capacity_bytes
        return None if need is None or have is None else need.chance_within(have)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule says of one runtime on one accelerator (empty: of all)."""

    rule: str
    flag: str
    effect: str
    reason: str
    source: str
    as_of: str
    runtime: str = ""
    accelerator: str = ""
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A candidate that is out, and the rule that put it there."""

    runtime: str
    accelerator: str
    rule: str
    flag: str
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class Flip:
    """The smallest change of one thing that changes the choice."""

    what: str
    now: float
    at: float
    unit: str
    winner: str


@dataclass(frozen=True, slots=True)
class Gap:
    """A number that is not known and the probe that would fill it."""

    what: str
    probe: Probe | None
    seconds: float | None
    remedy: str


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure: probability that best is best, and what choosing it may cost against the true best, as a fraction."""

    p_best: float
    expected_regret: float


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The answer.

    Args:
        objective: what it was ranked for.
        best: the chosen estimate; None when nothing is feasible.
        ranked: all feasible estimates with a step time, best first.
        unranked: feasible ones that lack a number.
        equal: labels of candidates that cannot be told apart from the best.
        sentence, why, rests_on: what to do; why; what it rests on. One sentence each.
    """

    objective: str
    best: Estimate | None
    ranked: tuple[Estimate, ...]
    unranked: tuple[Estimate, ...]
    excluded: tuple[Exclusion, ...]
    verdicts: tuple[Verdict, ...]
    flips: tuple[Flip, ...]
    gaps: tuple[Gap, ...]
    confidence: Confidence | None
    equal: tuple[str, ...]
    sentence: str
    why: str
    rests_on: str
