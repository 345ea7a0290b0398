"""One visit to the question: a Run keeps what was asked, measured and said, so that it can be held to it."""

from dataclasses import dataclass

from core.advice import Recommendation
from core.device import Device
from core.probe import Outcome
from core.split import SplitOptions, SplitRun
from core.workload import Workload

RUN_STATES = ("queued", "running", "done", "failed", "cancelled", "interrupted")
FINAL_STATES = ("done", "failed", "cancelled", "interrupted")


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run is doing now; written by the run, read by the page.

    Args:
        stage: `queued`, `starting runtimes`, `agreeing`, `measuring`, `advising`, `finished`.
        done, total: probes answered and planned.
        current: what is being measured, one line.
        last: what was just measured, with its figure, one line.
        elapsed_s, remaining_s: seconds; remaining is None until something was measured.
        place: place in the queue for the device, 0 when it holds it.
    """

    stage: str
    done: int = 0
    total: int = 0
    current: str = ""
    last: str = ""
    elapsed_s: float = 0.0
    remaining_s: float | None = None
    place: int = 0


@dataclass(frozen=True, slots=True)
class Identity:
    """A process that cannot be mistaken for another: host, boot, process id and its start time."""

    host: str
    boot_id: str
    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run was asked for.

    Args:
        probe: `settle`, `quick` or `none`.
        budget_s: seconds of probing at most.
        runtimes: ids to probe; empty means all that are installed.
        pools: `attached`, `all`, or `KEY=N,...` as typed.
        objective: None leaves the workload's own.
        split: how two or more pools are to work together; None compares each alone.
    """

    probe: str = "quick"
    budget_s: float = 300.0
    runtimes: tuple[str, ...] = ()
    pools: str = "all"
    objective: str | None = None
    split: SplitOptions | None = None


@dataclass(frozen=True, slots=True)
class Actual:
    """What really happened, entered or measured later."""

    run_id: str
    runtime: str
    accelerator: str
    step_time_s: float
    entered_at: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """Everything about one question; `document` is the workload file as it was given, canonical JSON.

    Args:
        id: 12 characters of a random token.
        created_at, finished_at: UTC, ISO 8601.
        state: one of `RUN_STATES`.
        error: one line when it failed or was interrupted.
        versions: (name, version) of Tandem and the runtimes.
        split: what was planned over several pools, and what came of it; None when that was not asked.
    """

    id: str
    created_at: str
    finished_at: str | None
    state: str
    document: str
    options: RunOptions
    workload: Workload
    devices: tuple[Device, ...]
    outcomes: tuple[Outcome, ...]
    recommendation: Recommendation | None
    progress: Progress
    versions: tuple[tuple[str, str], ...]
    host: str
    owner: str
    error: str = ""
    note: str = ""
    actuals: tuple[Actual, ...] = ()
    split: SplitRun | None = None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One row of the history."""

    id: str
    created_at: str
    state: str
    name: str
    task: str
    best: str
    step_time_s: float | None
    owner: str
    note: str
