"""Copies that meet every so many steps: each side trains alone on its own rows, then the changes of the weights are averaged.

The average counts each side by the samples that it saw. It is taken as the gradient of an outer optimizer, SGD with Nesterov
momentum, from the weights of the last meeting; both sides go on from there. The inner optimizer's memory stays on its side.

Source: Douillard et al., DiLoCo, arXiv:2311.08105, algorithm 1; outer learning rate 0.7 and momentum 0.9 from its section 3.
"""

from dataclasses import dataclass
from typing import Any

from core.split import Check
from probes.model import Part
from probes.model_flat import Model
from probes.split.checks import apart, change_tolerance, finite
from probes.split.laps import timed
from probes.split.modes.data_parallel import run_turns, share
from probes.split.words import SplitTask
from probes.split.work import Work, pieces_of, same_on_both_sides

OUTER_RATE = 0.7
OUTER_MOMENTUM = 0.9
PROVEN_ROUNDS = 2


@dataclass
class Outer:
    """The outer optimizer.

    Args:
        weights: of the last meeting, flat.
        speed: its momentum.
    """

    weights: Any
    speed: Any = 0.0

    def meet(self, change: Any) -> Any:
        """Take the averaged change of the weights (before less after); return the weights to go on from."""
        import numpy as np

        self.speed = np.float32(OUTER_MOMENTUM) * self.speed + change
        self.weights = self.weights - np.float32(OUTER_RATE) * (change + np.float32(OUTER_MOMENTUM) * self.speed)
        return self.weights


class LocalSteps:
    """One side of local SGD with an outer optimizer; a step is a round of inner steps and their meeting.

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
        self.turns = tuple(
            share(self.whole, task, first, rows, most)
            for first, rows, most in zip((0, task.rows[0]), task.rows, task.most, strict=True)
        )
        samples = [rows * steps for rows, steps in zip(task.rows, task.inner_steps, strict=True)]
        self.weights_of_sides = tuple(count / sum(samples) for count in samples)
        self.start = self.model.weights().copy()
        self.outer = Outer(self.start)
        self.rounds = 0
        self.proven: Any = None
        self.rehearsed: dict[int, list[tuple[int, dict[str, Any]]]] = {}

    def step(self) -> tuple[float | None, float | None]:
        """Do one round."""
        index, laps, task = self.work.index, self.work.laps, self.task
        with laps.during("compute", f"{task.inner_steps[index]} steps of {task.rows[index]} samples"):
            loss = inner(self.model, self.turns[index], task.rows[index], task.inner_steps[index])
        with laps.during("update", "change of the weights"):
            change = self._change()
        change = self.work.exchange(change, "changes")
        with laps.during("update", "outer update"):
            self.model.load(self.outer.meet(change))
        self.rounds += 1
        if self.rounds == PROVEN_ROUNDS:
            self.proven = self.model.weights().copy()
        return finite(loss) * task.rows[index] / task.batch, None

    def _change(self) -> Any:
        import numpy as np

        return (self.outer.weights - self.model.weights()) * np.float32(self.weights_of_sides[self.work.index])

    def prove(self, last: bool) -> tuple[Check, ...]:
        """Compare the sides, and with one runtime that plays both sides."""
        found = same_on_both_sides(self.work, self.model.weights(), self.task, alike=True)
        if not last and self.work.index == 0 and self.proven is not None:
            moved = apart(self.proven - self.start, self._alone() - self.start)
            name = f"weights after {PROVEN_ROUNDS} rounds against one runtime's, as a share of their change"
            found.append(Check(name, moved, change_tolerance(self.task, self.work.sixteen_bit)))
        return tuple(found)

    def _alone(self) -> Any:
        """Play both sides in this runtime; return the weights."""
        import numpy as np

        task = self.task
        copies = [self.work.open(self.whole, task) for _ in task.rows]
        outer = Outer(copies[0].weights().copy())
        for _ in range(PROVEN_ROUNDS):
            change: Any = 0.0
            for side, copy in enumerate(copies):
                inner(copy, self.turns[side], task.rows[side], task.inner_steps[side])
                change = change + (outer.weights - copy.weights()) * np.float32(self.weights_of_sides[side])
            weights = outer.meet(change)
            for copy in copies:
                copy.load(weights)
        return outer.weights

    def rehearse(self, rows: int) -> tuple[tuple[str, float], ...]:
        """Do one inner step on so many rows, and an outer one with this side's own change in place of the other's.

        Returns:
            (`compute`, `flatten`, `change`, `reduce`, `load`): compute and flatten with the inner update.
        """
        task, work = self.task, self.work
        if rows not in self.rehearsed:
            self.rehearsed[rows] = share(self.whole, task, 0, rows, task.most[work.index])
        turns = self.rehearsed[rows]
        compute_s, _ = timed(lambda: run_turns(self.model, turns, rows))
        flatten_s, flat = timed(self.model.gradients)
        update_s, _ = timed(lambda: self.model.update(flat))
        change_s, change = timed(self._change)
        reduce_s, _ = timed(lambda: work.total(work.packed(change), work.packed(change)))
        nothing = change * 0  # an outer step that goes nowhere takes as long
        load_s, _ = timed(lambda: self.model.load(self.outer.meet(nothing)))
        return (
            ("compute", compute_s),
            ("flatten", flatten_s),
            ("update", update_s),
            ("change", change_s),
            ("reduce", reduce_s),
            ("load", load_s),
        )


def inner(model: Model, turns: list[tuple[int, dict[str, Any]]], rows: int, steps: int) -> float:
    """Do inner steps; return the loss of the last."""
    loss = 0.0
    for _ in range(steps):
        loss = run_turns(model, turns, rows)
        model.update(model.gradients())
    return loss
