"""Words for a workflow of stages over pools: what there is to place, what moves between pools, and the plan that comes out.

Numbers only: no catalog, no workloads. Who makes the seconds of a stage on a pool (an estimate, a measurement, a person) is not
known here. A pool is paid for while a stage occupies it; a hand-over occupies no pool, and has its link or store for itself.
"""

from dataclasses import dataclass

from core.device import Link
from core.split import Bar, Move
from core.workflow import FormChange, WorkflowStore


@dataclass(frozen=True, slots=True)
class StagePool:
    """Chips that run one stage after the other.

    Args:
        name: its lane; unique.
        usd_per_h: of the whole pool while a stage occupies it; 0 when owned, None when not known.
        power_w: of the whole pool while a stage occupies it; None when not known.
        slots: stages that it runs at the same time without slowing each other.
        quota_h: hours that stages may occupy it in all, over all slots; None: no limit.
        host_of: the pool whose own host this is; stages that may run `anywhere` stay on it when that pool is tried alone.
        is_host: a CPU pool that any pool has beside it: the same for every pool.
    """

    name: str
    usd_per_h: float | None = None
    power_w: float | None = None
    slots: int = 1
    quota_h: float | None = None
    host_of: str = ""
    is_host: bool = False


@dataclass(frozen=True, slots=True)
class StageOption:
    """One pool for a stage.

    Args:
        pool: by name.
        seconds: that the stage takes there; None where it cannot run, and `missing` says why.
        reads: form of the input that it takes there (`torch/bf16`); empty takes any.
        writes: form of what it hands on from there; empty fits any.
    """

    pool: str
    seconds: float | None
    missing: str = ""
    reads: str = ""
    writes: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage; a pool without an option cannot run it.

    Args:
        name: unique.
        options: at most one for each pool.
        anywhere: whether it may stay on a host when a single pool is tried.
    """

    name: str
    options: tuple[StageOption, ...]
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """What one stage hands to another.

    Args:
        source, target: stages by name.
        size_bytes: that cross when their pools differ.
        streamed: the target starts with the source and both go at the pace of the slowest; otherwise it waits for the whole.
    """

    source: str
    target: str
    size_bytes: float = 0.0
    streamed: bool = False


@dataclass(frozen=True, slots=True)
class Wire:
    """A network between two pools, both ways; `usd_per_gb` (1e9 bytes) is what the clouds ask for crossing it."""

    pools: tuple[str, str]
    link: Link
    usd_per_gb: float = 0.0


@dataclass(frozen=True, slots=True)
class StagesProblem:
    """A workflow and where it may run.

    Args:
        stages, edges: a graph without cycles.
        pools: at least one.
        wires, store: ways between pools; pools without one cannot hand over to each other.
        conversions: between forms; forms that differ and are not listed do not fit.
        objective: one of `core.workload.OBJECTIVES`.
        deadline_s, budget_usd: of the whole; None: no limit.
        most_pools: that may be used, hosts not counted; None: all.
    """

    stages: tuple[Stage, ...]
    edges: tuple[Edge, ...]
    pools: tuple[StagePool, ...]
    wires: tuple[Wire, ...] = ()
    store: WorkflowStore | None = None
    conversions: tuple[FormChange, ...] = ()
    objective: str = "time"
    deadline_s: float | None = None
    budget_usd: float | None = None
    most_pools: int | None = None


@dataclass(frozen=True, slots=True)
class PlacedStage:
    """Where and when a stage runs; `busy_s` is its own work, less than `stop_s - start_s` where it is streamed and waits."""

    stage: str
    pool: str
    start_s: float
    stop_s: float
    busy_s: float


@dataclass(frozen=True, slots=True)
class PoolUse:
    """What one pool does.

    Args:
        pool: by name.
        fraction: of the work in seconds, over all pools; those of a plan sum to one.
        stages: how many.
        busy_s: work of its stages.
        held_s: that stages occupy it: what is paid for.
        wait_s: from the start to the end of the workflow without work.
    """

    pool: str
    fraction: float
    stages: int
    busy_s: float
    held_s: float
    wait_s: float


@dataclass(frozen=True, slots=True)
class OnePool:
    """All stages on one pool (with its host); `missing` says why there is no placement."""

    pool: str
    seconds: float | None
    cost_usd: float | None
    energy_j: float | None
    feasible: bool
    missing: str = ""


@dataclass(frozen=True, slots=True)
class StagesPlan:
    """The answer.

    Args:
        objective: what was sought.
        placed: each stage in the order of the problem; empty when nothing fits, and `barred` says why.
        seconds, cost_usd, energy_j: of the whole; cost and energy are None where a used pool's are not known.
        bound: nothing can be better than this, in the unit of the objective; None without a placement.
        gap: (value - bound) / value; 0 when proven.
        uses: every pool in the order of the problem.
        terms: (name, seconds) along the chain that decides the end; they add up to `seconds`.
        moves, timeline: as `core.split` has them.
        warnings: of the conversions that happen.
        singles: every pool alone, in the order of the problem; empty unless asked for.
        best_single: the name of the best of them; empty when none is feasible.
        barred: why there is no placement.
    """

    objective: str
    placed: tuple[PlacedStage, ...]
    seconds: float | None
    cost_usd: float | None
    energy_j: float | None
    bound: float | None
    gap: float | None
    uses: tuple[PoolUse, ...] = ()
    terms: tuple[tuple[str, float], ...] = ()
    moves: tuple[Move, ...] = ()
    timeline: tuple[Bar, ...] = ()
    warnings: tuple[str, ...] = ()
    singles: tuple[OnePool, ...] = ()
    best_single: str = ""
    barred: str = ""

    @property
    def value(self) -> float | None:
        """What was sought: seconds, USD or joules."""
        return {"time": self.seconds, "cost": self.cost_usd, "energy": self.energy_j}[self.objective]

    @property
    def proven(self) -> bool:
        """Whether nothing better exists, up to the rounding of times."""
        return self.gap is not None and self.gap <= 1e-6
