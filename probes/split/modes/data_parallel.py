"""Every step's batch is divided: each side does its rows, gradients are exchanged, both update.

The gradient of the whole batch is the mean over its samples, so each side's counts with its share of them. A side that has no
rows is idle: the other works alone, without an exchange.
"""

from itertools import accumulate
from typing import Any

from core.split import Check
from probes.model import Part
from probes.model_flat import Model
from probes.split.checks import apart, change_tolerance, finite, gradient_tolerance
from probes.split.laps import timed
from probes.split.words import SplitTask
from probes.split.work import Work, depends_on_batch, pieces_of, rows_of, same_on_both_sides, turns_of

PROVEN_STEPS = 2


class DataParallel:
    """One side of uneven data parallelism.

    Args:
        work: of this side.
        task: to be run.
        fresh: open the model anew.
    """

    def __init__(self, work: Work, task: SplitTask, *, fresh: bool) -> None:
        self.work, self.task = work, task
        self.whole = Part(pieces_of(task))
        self.model = work.model(self.whole, task, fresh=fresh)
        self.parameter_count = self.own_parameters = self.model.parameter_count
        self.activation_bytes = 0
        self.together = min(task.rows) > 0
        first = task.rows[0] if work.index else 0
        self.turns = share(self.whole, task, first, task.rows[work.index], task.most[work.index])
        self.rehearsed: dict[int, list[tuple[int, dict[str, Any]]]] = {}
        self.steps = 0
        self.start = self.model.weights().copy() if fresh else None
        self.first_gradient: Any = None
        self.proven_weights: Any = None

    def step(self) -> tuple[float | None, float | None]:
        """Do one step."""
        laps = self.work.laps
        with laps.during("compute", f"{sum(rows for rows, _ in self.turns)} samples forward and backward"):
            loss = run_turns(self.model, self.turns, self.task.batch)
        with laps.during("compute", "gradients in one piece"):
            flat = self.model.gradients()
        if self.together:
            flat = self.work.exchange(flat)
        if self.start is not None and self.first_gradient is None:
            self.first_gradient = flat.copy()
        with laps.during("update", "update"):
            self.model.update(flat)
        self.steps += 1
        if self.start is not None and self.steps == PROVEN_STEPS:
            self.proven_weights = self.model.weights().copy()
        return finite(loss), None

    def prove(self, last: bool) -> tuple[Check, ...]:
        """Compare with one runtime that does the whole batch alone."""
        found: list[Check] = []
        if self.together:
            found += same_on_both_sides(self.work, self.model.weights(), self.task, alike=False)
        if not last and self.work.index == 0 and self.proven_weights is not None:
            found += self._against_one()
        return tuple(found)

    def _against_one(self) -> list[Check]:
        """Do the same steps alone, from the same weights."""
        task, bits = self.task, self.work.sixteen_bit
        alone = self.work.open(self.whole, task)
        turns = self._undivided()
        gradients: list[Any] = []
        for _ in range(PROVEN_STEPS):
            run_turns(alone, turns, task.batch)
            gradients.append(alone.gradients().copy())
            alone.update(gradients[-1])
        first = apart(self.first_gradient, gradients[0])
        moved = apart(self.proven_weights - self.start, alone.weights() - self.start)
        return [
            Check("gradients of the first step against one runtime's", first, gradient_tolerance(task, bits)),
            Check(
                f"weights after {PROVEN_STEPS} steps against one runtime's, as a share of their change",
                moved,
                change_tolerance(task, bits),
            ),
        ]

    def _undivided(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the whole batch at one go; where batch norms tie samples together, in the same turns as it was divided in."""
        task = self.task
        if not depends_on_batch(self.whole):
            return share(self.whole, task, 0, task.batch, 0)
        return [
            turn
            for side, first in enumerate((0, task.rows[0]))
            for turn in share(self.whole, task, first, task.rows[side], task.most[side])
        ]

    def rehearse(self, rows: int) -> tuple[tuple[str, float], ...]:
        """Do one step's work on so many rows, with this side's own gradient in place of the other's."""
        most = self.task.most[self.work.index]
        if rows not in self.rehearsed:
            self.rehearsed[rows] = share(self.whole, self.task, 0, rows, most)
        return rehearse_step(self.work, self.model, self.rehearsed[rows], self.task.batch)


def share(whole: Part, task: SplitTask, first: int, rows: int, most: int) -> list[tuple[int, dict[str, Any]]]:
    """Return (samples, inputs) of each turn of a side's rows.

    Args:
        whole: the model.
        task: to be run.
        first: row of the side's first sample.
        rows: of the side.
        most: samples at one go; 0 for all.
    """
    sizes = turns_of(rows, most)
    starts = accumulate(sizes, initial=first)
    return [(size, rows_of(whole, task, start, size)) for size, start in zip(sizes, starts, strict=False)]


def run_turns(model: Model, turns: list[tuple[int, dict[str, Any]]], batch: int) -> float:
    """Accumulate the gradient of some rows of a batch; return their part of its loss."""
    return sum(model.run(inputs, rows / batch) * rows / batch for rows, inputs in turns)


def rehearse_step(work: Work, model: Model, turns: list[tuple[int, dict[str, Any]]], batch: int) -> tuple[tuple[str, float], ...]:
    """Do one step's work without the other side.

    Args:
        work: of this side.
        model: whole.
        turns: of this side.
        batch: of the step.

    Returns:
        (`compute`, `flatten`, `reduce`, `update`) with their seconds.
    """
    compute_s, _ = timed(lambda: run_turns(model, turns, batch))
    flatten_s, flat = timed(model.gradients)
    reduce_s, total = timed(lambda: work.total(work.packed(flat), work.packed(flat)))
    update_s, _ = timed(lambda: model.update(total))
    return (("compute", compute_s), ("flatten", flatten_s), ("reduce", reduce_s), ("update", update_s))
