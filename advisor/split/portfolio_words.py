"""Words for the portfolio of a team: workloads to be done, pools that it owns or may rent, and who goes where and when.

Numbers only. Several workloads share a pool as far as its chips reach; a workload keeps its chips from its start to its end.
A pool that is owned costs nothing more unless a price is given; a rented one is paid for by chip and second of use.
"""

from dataclasses import dataclass

from core.split import Bar


@dataclass(frozen=True, slots=True)
class TeamPool:
    """Chips that workloads share.

    Args:
        name: its lane; unique.
        chips: at once: what is owned, or the quota of a rented one.
        usd_per_chip_h: 0 when it is paid for already, None when not known.
        watts_per_chip: None when not known.
        windows: (start, stop) in seconds in which it may be used, ascending and apart; none: always.
        quota_chip_h: chip-hours in all; None: no limit.
        spot: may be taken away at any time: only for workloads that may be interrupted.
    """

    name: str
    chips: int
    usd_per_chip_h: float | None = None
    watts_per_chip: float | None = None
    windows: tuple[tuple[float, float], ...] = ()
    quota_chip_h: float | None = None
    spot: bool = False


@dataclass(frozen=True, slots=True)
class WorkOption:
    """One way to do a workload: that many chips of a pool; `seconds` is None where it cannot, and `missing` says why."""

    pool: str
    chips: int
    seconds: float | None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """A workload of the team.

    Args:
        name: unique.
        options: any number for each pool.
        release_s: from when on it can start.
        deadline_s: by when it must have ended; None: whenever.
        priority: whole number from 1; where not all can be placed, the sum of what is placed is greatest.
        interruptible: whether it may pause while a pool is closed, and run on spot.
    """

    name: str
    options: tuple[WorkOption, ...]
    release_s: float = 0.0
    deadline_s: float | None = None
    priority: int = 1
    interruptible: bool = False


@dataclass(frozen=True, slots=True)
class PortfolioProblem:
    """A team's workloads and pools.

    Args:
        works, pools: at least one of each.
        objective: `cost` or `energy`, and then the sum of priority x end; or `time`: the sum of priority x end.
        budget_usd: of all together; None: no limit.
    """

    works: tuple[Work, ...]
    pools: tuple[TeamPool, ...]
    objective: str = "cost"
    budget_usd: float | None = None


@dataclass(frozen=True, slots=True)
class PlacedWork:
    """Where and when a workload runs; with pauses, its seconds of work are fewer than `stop_s - start_s`."""

    work: str
    pool: str
    chips: int
    start_s: float
    stop_s: float
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A workload without a place, and why."""

    work: str
    why: str


@dataclass(frozen=True, slots=True)
class TeamUse:
    """What one pool does.

    Args:
        pool: by name.
        fraction: of all chip-seconds; those of a plan sum to one.
        works: how many.
        chip_s: chip-seconds.
        busy: part of the chip-seconds in which it is open, up to the end of the plan.
    """

    pool: str
    fraction: float
    works: int
    chip_s: float
    busy: float


@dataclass(frozen=True, slots=True)
class PortfolioPlan:
    """The answer.

    Args:
        objective: what was sought.
        placed: by start.
        unplaced: with reasons; none is dropped silently.
        cost_usd, energy_j: of all together; None where a used pool's are not known.
        weighted_s: sum of priority x end.
        end_s: of the last.
        bound: of the objective with what is placed; nothing is better.
        gap: (value - bound) / value; 0 when proven.
        uses: every pool in the order of the problem.
        timeline: a lane for each pool.
        alone: for each pool, how many of the workloads it could do alone, and for how much if all: (pool, count, USD or None).
    """

    objective: str
    placed: tuple[PlacedWork, ...]
    unplaced: tuple[Unplaced, ...]
    cost_usd: float | None
    energy_j: float | None
    weighted_s: float
    end_s: float
    bound: float
    gap: float
    uses: tuple[TeamUse, ...] = ()
    timeline: tuple[Bar, ...] = ()
    alone: tuple[tuple[str, int, float | None], ...] = ()

    @property
    def value(self) -> float | None:
        """What was sought: USD, joules, or the sum of priority x end."""
        return {"cost": self.cost_usd, "energy": self.energy_j, "time": self.weighted_s}[self.objective]
