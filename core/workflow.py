"""Words for what a person writes of a workflow of stages, or of a team's portfolio: what is known, and what Tandem must estimate.

Where a stage or a workload says how long it takes on a pool, that stands; where it names a workload (a preset or a file), its
seconds are to be estimated by whoever plans.
"""

from dataclasses import dataclass, field

from core.workload import PoolRequest, Total


@dataclass(frozen=True, slots=True)
class WorkflowPool:
    """A pool of a workflow.

    Args:
        name: as stages call it; `tpu-v6e=16` unless given.
        request: accelerator, chips, price of one chip for an hour, terms.
        hours: that stages may occupy it in all; None: no limit.
        slots: stages at the same time.
        host: whether it is the CPU of a host that is there beside whichever pool is used; `host_of` names the one that it belongs
            to, or is empty when it is the same for all.
    """

    name: str
    request: PoolRequest
    hours: float | None = None
    slots: int = 1
    host: bool = False
    host_of: str = ""


@dataclass(frozen=True, slots=True)
class Hand:
    """What a stage takes from one before it: bytes that cross, and whether it takes them while the other still runs."""

    source: str
    size_bytes: float = 0.0
    streams: bool = False


@dataclass(frozen=True, slots=True)
class StageForm:
    """Forms in which a stage takes its input and hands on its output on one pool; an empty one fits any."""

    pool: str
    reads: str
    writes: str


@dataclass(frozen=True, slots=True)
class WorkflowStage:
    """A stage as it was written.

    Args:
        name: unique.
        workload: preset or path of a workload that is to be estimated where `seconds` has no pool; empty: nothing to estimate.
        total: how much of that workload.
        seconds: (pool, seconds).
        cannot: (pool, reason).
        after: what it takes from stages before it.
        forms: of each pool, where there are any.
        anywhere: whether it may run on a host when a single pool is compared.
    """

    name: str
    workload: str = ""
    total: Total = field(default_factory=Total)
    seconds: tuple[tuple[str, float], ...] = ()
    cannot: tuple[tuple[str, str], ...] = ()
    after: tuple[Hand, ...] = ()
    forms: tuple[StageForm, ...] = ()
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class WorkflowLink:
    """A network between two pools; `usd_per_gb` of 1e9 bytes."""

    pools: tuple[str, str]
    bytes_per_s: float
    latency_s: float = 0.0
    usd_per_gb: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkflowStore:
    """An object store between pools.

    Args:
        up_bytes_per_s, down_bytes_per_s: of one pool; first everything is written, then it is read.
        usd_per_gb: of 1e9 bytes, reading (egress) and keeping together.
        latency_s: of one hand-over.
        pools: that reach it; empty: all.
    """

    up_bytes_per_s: float
    down_bytes_per_s: float
    usd_per_gb: float = 0.0
    latency_s: float = 0.0
    pools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FormChange:
    """A form into another, on a host that is there anyway.

    Args:
        source, target: forms.
        seconds: for any size.
        bytes_per_s: beside that; None: only `seconds`.
        usd: for each.
        warning: what is lost or must be checked, one sentence; empty for nothing.
    """

    source: str
    target: str
    seconds: float = 0.0
    bytes_per_s: float | None = None
    usd: float = 0.0
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow as it was written; `assumptions` is what Tandem filled in."""

    name: str
    stages: tuple[WorkflowStage, ...]
    pools: tuple[WorkflowPool, ...]
    links: tuple[WorkflowLink, ...] = ()
    store: WorkflowStore | None = None
    conversions: tuple[FormChange, ...] = ()
    objective: str = "time"
    deadline_h: float | None = None
    budget_usd: float | None = None
    most_pools: int | None = None
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TeamPoolRequest:
    """Chips that a team owns or may rent.

    Args:
        name: as workloads call it.
        request: accelerator, chips at once, price of one chip for an hour, terms.
        owned: whether it is paid for already; its price is then 0 unless given.
        windows_h: (start, stop) in which it may be used; none: always.
        chip_hours: in all; None: no limit.
        spot: may be taken away at any time.
    """

    name: str
    request: PoolRequest
    owned: bool
    windows_h: tuple[tuple[float, float], ...] = ()
    chip_hours: float | None = None
    spot: bool = False


@dataclass(frozen=True, slots=True)
class TeamOption:
    """A way to do a workload: chips of a pool, and hours where they are known; None: to be estimated."""

    pool: str
    chips: int
    hours: float | None


@dataclass(frozen=True, slots=True)
class TeamWork:
    """A workload of a team as it was written; without options, every pool with all of its chips is to be estimated."""

    name: str
    workload: str = ""
    total: Total = field(default_factory=Total)
    options: tuple[TeamOption, ...] = ()
    release_h: float = 0.0
    deadline_h: float | None = None
    priority: int = 1
    interruptible: bool = False


@dataclass(frozen=True, slots=True)
class Portfolio:
    """A team's portfolio as it was written; `assumptions` is what Tandem filled in."""

    name: str
    works: tuple[TeamWork, ...]
    pools: tuple[TeamPoolRequest, ...]
    objective: str = "cost"
    budget_usd: float | None = None
    assumptions: tuple[str, ...] = ()
