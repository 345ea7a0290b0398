"""A model cut in two: activations go to the second side, their gradients come back. Pipelines, and operators placed apart.

A pipeline follows one forward, one backward: the first side keeps two micro-batches under way, the second ends each at once.
Operators placed apart are one micro-batch a step; `ahead` lets the first side send the next step's activations while the second
works on this one's. They are then one update old; the gradient of the first part is taken again at the weights of the moment,
since the activations that were kept for it would belong to weights that are gone.
"""

from math import prod
from typing import Any

from core.split import Check
from probes.model import Part, joined_shape, parameter_count
from probes.model_flat import Model
from probes.split.checks import apart, change_tolerance, finite, gradient_tolerance
from probes.split.laps import timed
from probes.split.modes.data_parallel import PROVEN_STEPS, run_turns, share
from probes.split.words import SplitTask
from probes.split.work import Work, depends_on_batch, parts_of, pieces_of, rows_of

UNDER_WAY = 2
"""Micro-batches that the first of two stages keeps between forward and backward."""


class Stages:
    """One side of a model that is cut.

    Args:
        work: of this side.
        task: to be run.
        fresh: open the part anew.
    """

    def __init__(self, work: Work, task: SplitTask, *, fresh: bool) -> None:
        self.work, self.task = work, task
        self.parts = parts_of(task)
        self.part = self.parts[work.index]
        self.model = work.model(self.part, task, fresh=fresh)
        self.own_parameters = self.model.parameter_count
        self.parameter_count = sum(parameter_count(part) for part in self.parts)
        self.activation_bytes = prod(activation_shape(self.parts[0], task.batch)) * (2 if task.dtype == "bf16" else 4)
        self.micro = micro_inputs(self.part, task)
        self.start = self.model.weights().copy()
        self.steps = 0
        self.first_gradient: Any = None
        self.proven: Any = None
        self.sent_ahead = False
        self.rehearsed: dict[int, tuple[dict[str, Any], Any]] = {}

    def step(self) -> tuple[float | None, float | None]:
        """Do one step."""
        loss: float | None = None
        if self.work.index == 1:
            loss = self._second()
        elif self.task.ahead:
            self._first_ahead()
        else:
            self._first()
        with self.work.laps.during("update", "update"):
            flat = self.model.gradients()
            if self.first_gradient is None:
                self.first_gradient = flat.copy()
            self.model.update(flat)
        self.steps += 1
        if self.steps == PROVEN_STEPS:
            self.proven = self.model.weights().copy()
        return loss, None

    def _first(self) -> None:
        count = len(self.micro)
        for key in range(min(UNDER_WAY, count)):
            self._forward_and_send(key)
        for key in range(count):
            self._receive_and_backward(key)
            if key + UNDER_WAY < count:
                self._forward_and_send(key + UNDER_WAY)

    def _first_ahead(self) -> None:
        if not self.sent_ahead:
            self._send_ahead()
        self._send_ahead()
        self.sent_ahead = True
        with self.work.laps.during("compute", "forward again"):
            self.model.forward(0, self.micro[0])
        self._receive_and_backward(0)

    def _send_ahead(self) -> None:
        with self.work.laps.during("compute", "forward, a step ahead"):
            values = looked_ahead(self.model, self.part, self.micro[0])
        self.work.send_activations("forward", values, self.task.dtype)

    def _forward_and_send(self, key: int) -> None:
        with self.work.laps.during("compute", f"forward {key + 1}"):
            values = self.model.forward(key, self.micro[key])
        self.work.send_activations("forward", values, self.task.dtype)

    def _receive_and_backward(self, key: int) -> None:
        cotangent = self.work.receive_activations("backward", f"gradients {key + 1}")
        with self.work.laps.during("compute", f"backward {key + 1}"):
            self.model.backward(key, cotangent, 1 / len(self.micro))

    def _second(self) -> float:
        """Do forward and backward of each micro-batch as it comes; return the mean loss."""
        losses: list[float] = []
        for key, own in enumerate(self.micro):
            x = self.work.receive_activations("forward", f"activations {key + 1}")
            with self.work.laps.during("compute", f"forward {key + 1}"):
                losses.append(self.model.forward(key, {**own, "x": x}))
            with self.work.laps.during("compute", f"backward {key + 1}"):
                cotangent = self.model.backward(key, None, 1 / len(self.micro))
            self.work.send_activations("backward", cotangent, self.task.dtype)
        return finite(sum(losses) / len(losses))

    def prove(self, last: bool) -> tuple[Check, ...]:
        """Compare gradients and weights of both parts with those of the whole model in one runtime."""
        if last or self.proven is None:
            return ()
        if self.work.index == 1:
            self.work.channel.send("proof", [self.first_gradient, self.start, self.proven])
            self.work.channel.flush()
            return ()
        import numpy as np

        other = self.work.channel.receive("proof").arrays
        gradient, start, proven = (
            np.concatenate(pair) for pair in zip((self.first_gradient, self.start, self.proven), other, strict=True)
        )
        expected, weights = self._parts_alone() if self.task.ahead else self._whole_alone()
        task, bits = self.task, self.work.sixteen_bit
        name = f"weights after {PROVEN_STEPS} steps against one runtime's, as a share of their change"
        return (
            Check("gradients of the first step against one runtime's", apart(gradient, expected), gradient_tolerance(task, bits)),
            Check(name, apart(proven - start, weights - start), change_tolerance(task, bits)),
        )

    def _whole_alone(self) -> tuple[Any, Any]:
        """Return the first gradient of the undivided model, and its weights after the proven steps."""
        task = self.task
        whole = Part(pieces_of(task))
        alone = self.work.open(whole, task)
        most = task.batch // task.micro_batches if depends_on_batch(whole) else 0
        turns = share(whole, task, 0, task.batch, most)
        gradients: list[Any] = []
        for _ in range(PROVEN_STEPS):
            run_turns(alone, turns, task.batch)
            gradients.append(alone.gradients().copy())
            alone.update(gradients[-1])
        return gradients[0], alone.weights()

    def _parts_alone(self) -> tuple[Any, Any]:
        """Play both sides in this runtime, the first a step ahead; return the same."""
        import numpy as np

        task = self.task
        models = [self.work.open(part, task) for part in self.parts]
        first, second = (micro_inputs(part, task)[0] for part in self.parts)
        waiting = [looked_ahead(models[0], self.parts[0], first)]
        gradients: list[Any] = []
        for _ in range(PROVEN_STEPS):
            waiting.append(looked_ahead(models[0], self.parts[0], first))
            models[0].forward(0, first)
            models[1].forward(0, {**second, "x": waiting.pop(0)})
            models[0].backward(0, models[1].backward(0, None, 1.0), 1.0)
            flats = [model.gradients().copy() for model in models]
            gradients.append(np.concatenate(flats))
            for model, flat in zip(models, flats, strict=True):
                model.update(flat)
        return gradients[0], np.concatenate([model.weights() for model in models])

    def rehearse(self, rows: int) -> tuple[tuple[str, float], ...]:
        """Do this part's work on a micro-batch of so many rows, with drawn numbers in place of what the other side sends.

        Returns:
            (`forward`, `backward`, `flatten`, `update`) with their seconds.
        """
        if rows not in self.rehearsed:
            self.rehearsed[rows] = rehearsal(self.parts, self.work.index, self.task, rows)
        inputs, cotangent = self.rehearsed[rows]
        forward_s, _ = timed(lambda: self.model.forward(0, inputs))
        backward_s, _ = timed(lambda: self.model.backward(0, cotangent, rows / self.task.batch))
        flatten_s, flat = timed(self.model.gradients)
        update_s, _ = timed(lambda: self.model.update(flat))
        return (("forward", forward_s), ("backward", backward_s), ("flatten", flatten_s), ("update", update_s))


def micro_inputs(part: Part, task: SplitTask) -> list[dict[str, Any]]:
    """Return what a part takes from the data for each micro-batch."""
    size = task.batch // task.micro_batches
    return [rows_of(part, task, at * size, size) for at in range(task.micro_batches)]


def looked_ahead(model: Model, part: Part, inputs: dict[str, Any]) -> Any:
    """Return the activations of a part without keeping what a backward pass needs, as training gives them."""
    return model.forward(-1, inputs) if depends_on_batch(part) else model.infer(inputs)


def activation_shape(part: Part, rows: int) -> tuple[int, ...]:
    """Return the shape of what a part gives to the next for so many samples."""
    shape: tuple[int, ...] = ()
    for piece in part.pieces:
        shape = joined_shape(shape, piece.output) if piece.source == "beside" else piece.output
    return (rows, *shape[1:])


def rehearsal(parts: tuple[Part, Part], index: int, task: SplitTask, rows: int) -> tuple[dict[str, Any], Any]:
    """Return inputs of a part and the gradient that arrives at its output (None for the second part), of so many samples."""
    import numpy as np

    inputs = rows_of(parts[index], task, 0, rows)
    drawn = np.random.Generator(np.random.PCG64(task.seed)).standard_normal(activation_shape(parts[0], rows), dtype=np.float32)
    return ({**inputs, "x": drawn}, None) if index else (inputs, drawn * np.float32(1e-3))
