"""Two sides that are measured for a plan, piece by piece, and what comes of it: a task to run, and what it should take."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from core.device import Link
from core.split import Bar
from core.workload import Workload
from probes.model import Part, parameter_count
from probes.split.calibration import calibrate
from probes.split.modes.stages import activation_shape
from probes.split.session import SplitSession
from probes.split.words import Calibrated, SplitTask
from probes.split.work import parts_of, pieces_of

CALIBRATION_SHARE = 0.5
"""Part of the budget that measuring the pieces may take; the rest is for steps."""
SHORTEST_WINDOW_S, LONGEST_WINDOW_S, ROUNDS = 0.05, 1.0, 2
SMALL_BYTES, LARGER_BYTES = 2**12, 2**14


@dataclass(frozen=True, slots=True)
class Ready:
    """What is to be run, and what was planned of it.

    Args:
        task: to be run.
        seconds: of what a run counts as a step.
        timeline: of one such step.
        shares: part of the work of each side.
        single_s: of the same on each side alone; None where it was not measured.
        link: as measured.
        evidence: where the planned seconds come from, for people.
    """

    task: SplitTask
    seconds: float
    timeline: tuple[Bar, ...]
    shares: tuple[float, float]
    single_s: tuple[float | None, float | None]
    link: Link | None
    evidence: str


class Bench:
    """Two sides at work, which may change places.

    Args:
        open_session: starts two sides, in the order asked or (True) the other way round.
        names: of the sides as asked.
        workload: the job.
        budget_s: seconds of running at most.
        tell: hears of each stage.
    """

    def __init__(
        self, open_session: Callable[[bool], SplitSession], names: tuple[str, str], workload: Workload, budget_s: float,
        tell: Callable[[str], None],
    ) -> None:
        self.names, self.workload, self.budget_s, self.tell = names, workload, budget_s, tell
        self._open_session, self._swapped = open_session, False
        self.session = open_session(False)
        self._begun_s = time.monotonic()

    def swap(self) -> None:
        """Start both sides again, the second as the first."""
        self.tell("starting both sides the other way round")
        self.session.close()
        self._swapped = not self._swapped
        self.names = (self.names[1], self.names[0])
        self.session = self._open_session(self._swapped)

    def measure(
        self, task: SplitTask, together: list[tuple[int, int]], alone: tuple[tuple[int, ...], tuple[int, ...]], windows: int = 0,
        rounds: int = ROUNDS, sizes: tuple[int, ...] = (),
    ) -> Calibrated:
        """Measure pieces of a task.

        Args:
            task: whose mode says what each side does with its rows.
            together, alone: rows, as `calibrate` has them.
            windows: of the whole run, over which its time is spread; 0 for no more than these.
            rounds: of all windows.
            sizes: bytes that are traded; empty takes those that the task has.
        """
        count = max(windows, len(together) + len(alone[0]) + len(alone[1]))
        each_s = self.budget_s * CALIBRATION_SHARE / (count * rounds * 2)
        span_s = min(LONGEST_WINDOW_S, max(SHORTEST_WINDOW_S, each_s))
        return calibrate(self.session, task, together, alone, sizes or traded_bytes(task), seconds=span_s, rounds=rounds)

    @property
    def late(self) -> bool:
        """Whether measuring has taken its part of the budget."""
        return time.monotonic() - self._begun_s > self.budget_s * CALIBRATION_SHARE

    @property
    def running_s(self) -> float:
        """Seconds of timed steps."""
        return self.budget_s * (1.0 - CALIBRATION_SHARE)


def traded_bytes(task: SplitTask) -> tuple[int, ...]:
    """Return bytes to be traded: a small message, and what crosses in a step, in two sizes at least."""
    whole = 4 * parameter_count(Part(pieces_of(task)))
    if task.mode in ("pipeline", "operators"):
        whole = 4 * prod(activation_shape(parts_of(task)[0], task.batch))
    return tuple(sorted({SMALL_BYTES, max(SMALL_BYTES, whole // 4), max(LARGER_BYTES, whole)}))
