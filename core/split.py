"""Words for one workload over two or more unlike pools: who has which share, what moves, who waits, and when it is worth it."""

from dataclasses import dataclass

from core import format as fmt
from core.advice import Verdict
from core.device import Link, Pool
from core.quantity import Quantity

MODES = ("data", "local", "pipeline", "operators", "stages", "rl", "serving", "portfolio")
"""Ways of dividing: every step's batch; copies that meet every so many steps; layers in a row; parts of a layer's work by kind;
stages of a workflow; rollouts and learner; requests; whole workloads."""
VERDICTS = ("hybrid", "single")
BAR_KINDS = ("compute", "move", "wait", "update")
CURVE_KINDS = ("share", "bandwidth")
BREAK_EVENS = ("bandwidth", "price", "batch")
NO_DIFFERENCE = 0.005
"""Fraction by which two figures may differ and be called the same."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One stretch of a timeline.

    Args:
        lane: who: a pool, or the link between two; one line of the picture each.
        start_s, stop_s: from the start of the step (or of the job, for stages), `0 <= start_s <= stop_s`.
        kind: one of `BAR_KINDS`.
        what: for people: `forward 3`, `gradients to tpu-v6e`, `waits for the slower side`.
    """

    lane: str
    start_s: float
    stop_s: float
    kind: str
    what: str


@dataclass(frozen=True, slots=True)
class Share:
    """What one pool does.

    Args:
        pool, runtime: who; the runtime is empty where a stage decides it.
        fraction: of the divided thing; those of all pools sum to one. Zero is a pool that is left idle.
        amount, unit: the same in whole things: samples of a step, layers, stages, requests a second.
        busy_s, wait_s: of one step (of the job, for stages).
        memory_bytes: of one chip; None where it is not known.
        detail: one phrase: how it is done (`3 micro-batches of 16`, `layers 0 to 11`).
    """

    pool: Pool
    runtime: str
    fraction: float
    amount: float
    unit: str
    busy_s: float
    wait_s: float
    memory_bytes: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """What crosses between two pools in one step (in the job, for stages).

    Args:
        what: `gradients`, `activations`, `weights`, `checkpoint`, ...
        source, target: lanes.
        size_bytes: both ways together where it goes both ways.
        seconds: that it takes on the link.
        exposed_s: that somebody waits for it.
    """

    what: str
    source: str
    target: str
    size_bytes: float
    seconds: float
    exposed_s: float


@dataclass(frozen=True, slots=True)
class Curve:
    """Seconds of a step against one thing, all else as planned.

    Args:
        what: one of `CURVE_KINDS`: the first pool's share of the work, or the link's bytes a second.
        points: (x, seconds), x ascending.
        now, best, break_even: x of what is given or planned, of the fastest, and where it meets the best single pool; None where
            there is none.
        single_s: seconds of the best single pool.
    """

    what: str
    points: tuple[tuple[float, float], ...]
    now: float | None
    best: float | None
    break_even: float | None
    single_s: float


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Where the split stops (or starts) to be worth it.

    Args:
        what: one of `BREAK_EVENS`.
        unit: of `now` and `at`.
        now: as given; None where nothing is given.
        at: where the choice turns; None when it turns nowhere.
        words: for people, one sentence.
    """

    what: str
    unit: str
    now: float | None
    at: float | None
    words: str


@dataclass(frozen=True, slots=True)
class Single:
    """The same work on one pool alone; `missing` says why there is no number.

    Args:
        seconds: of a step (of the job, for stages).
        cost_usd: of the job, or of 1,000 steps; None where no price is known.
        energy_j: of the same.
        feasible: whether it fits in memory and meets what is asked for; None while its time is not known.
    """

    pool: Pool
    runtime: str
    seconds: Quantity | None
    cost_usd: Quantity | None
    energy_j: Quantity | None
    feasible: bool | None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """The answer to "these pools together, or one of them?".

    Args:
        mode: one of `MODES`; the best of those that were planned.
        objective: one of `core.workload.OBJECTIVES`: what `saving` is of.
        verdict: one of `VERDICTS`.
        saving: 1 - split / best single, of the objective; negative when the split loses; None where one of them is unknown.
        least_saving: from which on a split is recommended.
        link: between the pools; None for a mode that needs none.
        seconds, cost_usd, energy_j: of the split, as `Single` has them.
        terms: (name, seconds) of a step of the split; they add up to its middle.
        singles: every pool alone, in the order that was asked.
        best_single: the best of those that are feasible; None when none is.
        others: other ways of dividing that were planned, (mode, seconds or None, one phrase).
        sentence, why: for people.
    """

    mode: str
    objective: str
    verdict: str
    saving: float | None
    least_saving: float
    link: Link | None
    seconds: Quantity | None
    cost_usd: Quantity | None
    energy_j: Quantity | None
    terms: tuple[tuple[str, float], ...]
    shares: tuple[Share, ...]
    moves: tuple[Move, ...]
    timeline: tuple[Bar, ...]
    curves: tuple[Curve, ...]
    break_even: tuple[BreakEven, ...]
    singles: tuple[Single, ...]
    best_single: Single | None
    others: tuple[tuple[str, float | None, str], ...]
    verdicts: tuple[Verdict, ...]
    missing: tuple[str, ...]
    sentence: str
    why: str

    @property
    def label(self) -> str:
        """One short line that names the answer: `8 x h100-sxm + 16 x tpu-v6e (data)`, or the pool that is better alone."""
        if self.verdict == "single" and self.best_single is not None:
            return f"{self.best_single.runtime} on {pool_words(self.best_single.pool)} alone"
        return f"{' + '.join(pool_words(share.pool) for share in self.shares if share.fraction > 0)} ({self.mode})"


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """How a split was asked for.

    Args:
        pools: as typed, `KEY=N` or a device id, each perhaps with `@RUNTIME`; two or more.
        mode: one of `MODES`; empty plans all that the workload allows.
        link_bytes_per_s, link_latency_s: between the pools, one way; None takes what the catalog knows of their hosts.
        least_saving: fraction from which on two stacks are worth it.
        verify: whether the plan is run.
        budget_s: seconds of running at most.
    """

    pools: tuple[str, ...]
    mode: str = ""
    link_bytes_per_s: float | None = None
    link_latency_s: float | None = None
    least_saving: float = 0.2
    verify: bool = False
    budget_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison of a run split with the same on one side alone.

    Args:
        what: `gradients of the first step`, `weights after 3 steps`, ...
        difference: relative, of norms.
        tolerance: what was allowed.
    """

    what: str
    difference: float
    tolerance: float

    @property
    def holds(self) -> bool:
        """Whether the difference is within the tolerance; one that is no number is not."""
        return self.difference <= self.tolerance


@dataclass(frozen=True, slots=True)
class Verified:
    """What really happened when a plan was run.

    Args:
        mode: one of `MODES`.
        sides: names of the two sides, as in lanes of the timeline.
        planned_s: of a step, from what was measured of each side and of the link.
        step_s: of each timed step, in order.
        single_s: of a step on each side alone, in the order of `sides`; None where it was not measured.
        shares: fraction of the work of each side.
        timeline: of one step, measured.
        planned_timeline: of one step, as it was planned from what was measured of the pieces.
        places: which of the pools, in the order asked, each side is: the two may have changed places.
        runtimes: of the sides.
        checks: what was compared.
        losses: of the steps, first to last; empty where nothing is learned.
        link: as it was shaped or measured.
        ended: why it ended early; empty when it did not.
    """

    mode: str
    sides: tuple[str, ...]
    planned_s: Quantity | None
    step_s: tuple[float, ...]
    single_s: tuple[float | None, ...]
    shares: tuple[float, ...]
    timeline: tuple[Bar, ...]
    checks: tuple[Check, ...]
    losses: tuple[float, ...]
    link: Link | None
    ended: str = ""
    planned_timeline: tuple[Bar, ...] = ()
    places: tuple[int, ...] = (0, 1)
    runtimes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SplitRun:
    """A split as a run keeps it: the plan, and what came of it when it was run."""

    split: Split
    verified: Verified | None = None


def pool_words(pool: Pool) -> str:
    """Return how a pool is named to a person: `8 x h100-sxm`, `cpu:0`."""
    return pool.accelerator if pool.attached and pool.count == 1 else f"{pool.count} x {pool.accelerator}"


def other_side(objective: str, seconds: Quantity | None, cost_usd: Quantity | None, alone: Single | None) -> str:
    """Return what a saving does to what was not to be saved: `costs 20 % more`; empty where that is not known.

    Args:
        objective: what is saved; of `cost` the other side is time, of anything else cost.
        seconds, cost_usd: of the pools together.
        alone: the pool that they are held against.
    """
    of_cost = objective == "cost"
    ours, theirs = (seconds, alone and alone.seconds) if of_cost else (cost_usd, alone and alone.cost_usd)
    if ours is None or theirs is None or theirs.mid <= 0:
        return ""
    more = ours.mid / theirs.mid - 1
    verb, words = ("takes", ("longer", "less time")) if of_cost else ("costs", ("more", "less"))
    return f"{verb} the same" if abs(more) < NO_DIFFERENCE else f"{verb} {fmt.percent(abs(more))} {words[more < 0]}"
