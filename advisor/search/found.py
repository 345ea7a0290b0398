"""What a search finds: the best plan of a runtime on a pool, the same at a glance, and the passes of its step."""

from dataclasses import dataclass

from core.advice import Plan


@dataclass(frozen=True, slots=True)
class Found:
    """The best plan of one runtime on one pool.

    Args:
        row: of the plan among all that were prepared.
        plan: as it is shown.
        library: whose published programs say how fast it is; empty where the runtime's own do, or none.
        share: samples that one replica takes in a step; of all together where each takes as many.
        seconds: of a step, middle of the band. sigma: of ln(truth / seconds). tier: `published` or `datasheet`.
        terms: (term of the breakdown, seconds) that add up to it.
        arithmetic_s: of the arithmetic at the dense peak. least_s: of that or of unavoidable memory traffic, whichever is
            longer in each pass; the step and its share of compute are never told below these.
        lower_s, upper_s: the longest of arithmetic and memory traffic at full rates, and of communication; their sum.
        memory: (name, bytes) of one chip. fits: whether that is within the capacity.
        considered, fitting: plans of this pool, and those of them that fit.
        others: next best plans that fit, (plan, seconds).
    """

    row: int
    plan: Plan
    library: str
    share: int
    seconds: float
    sigma: float
    tier: str
    terms: tuple[tuple[str, float], ...]
    arithmetic_s: float
    least_s: float
    lower_s: float
    upper_s: float
    memory: tuple[tuple[str, float], ...]
    fits: bool
    considered: int
    fitting: int
    others: tuple[tuple[Plan, float], ...]


@dataclass(frozen=True, slots=True)
class Glance:
    """What decides between plans: row as in `Found`, seconds, samples of all replicas, (name, bytes) of a chip, if it fits."""

    row: int
    seconds: float
    samples: float
    memory: tuple[tuple[str, float], ...]
    fits: bool


@dataclass(frozen=True, slots=True)
class PassTime:
    """One pass of the chosen plan, once.

    Args:
        regime: `forward`, `prefill`, `decode` or `training`.
        times: that a step has it.
        seconds: of one.
        terms: (term of the breakdown, seconds) that add up to it.
    """

    regime: str
    times: float
    seconds: float
    terms: tuple[tuple[str, float], ...]
