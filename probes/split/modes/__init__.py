"""Ways of dividing one model's steps between two sides: one file a mode, the same code on both.

A mode offers, for one side: `step()`, one step together with the other side; `prove(last)`, what it compared; `rehearse(rows)`,
its own work of a step without the other side, timed piece by piece.
"""

from typing import Protocol

from core.split import Check
from probes.split.modes.actors import Actors
from probes.split.modes.data_parallel import DataParallel
from probes.split.modes.local_steps import LocalSteps
from probes.split.modes.stages import Stages
from probes.split.words import SplitTask
from probes.split.work import Work

Times = tuple[tuple[str, float], ...]


class Mode(Protocol):
    """One side of one way of dividing."""

    parameter_count: int
    own_parameters: int
    activation_bytes: int

    def step(self) -> tuple[float | None, float | None]:
        """Do one step; return this side's part of the loss, and what the mode counts."""
        ...

    def prove(self, last: bool) -> tuple[Check, ...]:
        """Compare with one runtime alone and with the other side, which is asked at the same time.

        Args:
            last: leave out what only the first steps can show.
        """
        ...

    def rehearse(self, rows: int) -> Times:
        """Do this side's work on so many rows without the other side; return the seconds of each piece of it."""
        ...


def open_mode(work: Work, task: SplitTask, *, fresh: bool) -> Mode:
    """Return this side of a task.

    Args:
        work: of this side.
        task: to be run.
        fresh: open the model anew; else one that an earlier task opened is gone on with.
    """
    match task.mode:
        case "data":
            return DataParallel(work, task, fresh=fresh)
        case "local":
            return LocalSteps(work, task, fresh=fresh)
        case "rl":
            return Actors(work, task, fresh=fresh)
        case _:
            return Stages(work, task, fresh=fresh)
