"""What every mode shares on one side: the model and its batch, the channel, and the laps of a step.

A collective begins when both sides have come to it, as it does between the hosts of a cluster: each says that it is ready, and
only then do gradients travel. So a step is the slower side's work, the exchange and the update, and no side runs ahead.
"""

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from core.errors import WorkerError
from core.split import Check
from probes.model import Part, Piece, batch_of, cut, model_of, slots_of, tables_first, untied
from probes.model_flat import Model, check_settings
from probes.split.channel import TensorChannel
from probes.split.checks import ADAPTIVE, apart
from probes.split.laps import Laps
from probes.split.rounding import from_sixteen, to_sixteen
from probes.split.words import SplitTask

MODEL_MODULES = {"jax": "jax", "torch": "torch", "tf": "tensorflow"}
"""First word of a runtime id and the file of its framework's models; `torch-xla` and `torch-tpu` have one of their own."""
XLA_RUNTIMES = ("torch-xla", "torch-tpu")


@dataclass
class Work:
    """One side's hands.

    Args:
        index: 0 or 1.
        backend: of its runtime.
        models: module that offers `open_model`.
        channel: to the other side.
        sixteen_bit: whether gradients travel as bfloat16.
    """

    index: int
    backend: Any
    models: Any
    channel: TensorChannel
    sixteen_bit: bool = False
    laps: Laps = field(default_factory=Laps)
    kept: dict[tuple[Part, str, str, int], Model] = field(default_factory=dict[tuple[Part, str, str, int], Model])

    def open(self, part: Part, task: SplitTask) -> Model:
        """Return a part of the model with the weights that the task's seed fixes."""
        model: Model = self.models.open_model(self.backend, part, task.optimizer, task.dtype, task.seed)
        return model

    def model(self, part: Part, task: SplitTask, *, fresh: bool) -> Model:
        """Return a part of the model, kept for tasks to come.

        Args:
            part: of the model.
            task: to be run.
            fresh: open it anew; else one that was opened for the same is gone on with, its programs compiled.
        """
        key = (part, task.optimizer, task.dtype, task.seed)
        if fresh or key not in self.kept:
            self.kept = {key: self.open(part, task)}
        return self.kept[key]

    def exchange(self, flat: Any, what: str = "gradients") -> Any:
        """Give the other side a vector and take its own; return their sum, the same on both sides to the last bit.

        Args:
            flat: float32.
            what: for the bars.
        """
        self.meet()
        start_s = self.laps.clock()
        mine = self.packed(flat)
        self.channel.send("exchange", [mine])
        message = self.channel.receive("exchange")
        self.channel.flush()
        self.laps.received(start_s, message.sent_s, f"{what} to and from the other side")
        with self.laps.during("update", f"sum of {what}"):
            return self.total(mine, message.arrays[0])

    def packed(self, flat: Any) -> Any:
        """Return a vector as it travels."""
        return to_sixteen(flat) if self.sixteen_bit else flat

    def total(self, mine: Any, other: Any) -> Any:
        """Return the sum of what this side sent and what it got."""
        return from_sixteen(mine) + from_sixteen(other) if self.sixteen_bit else mine + other

    def meet(self) -> None:
        """Wait until the other side has come here too."""
        with self.laps.during("wait", "waits for the other side"):
            self.channel.send("ready", [])
            self.channel.receive("ready")

    def send_activations(self, kind: str, values: Any, dtype: str) -> None:
        """Send activations or their gradients: in sixteen bits where the model computes in them, so that nothing is lost."""
        import numpy as np

        whole: Any = np.ascontiguousarray(values, np.float32)
        self.channel.send(kind, [to_sixteen(whole) if dtype == "bf16" else whole])

    def receive_activations(self, kind: str, what: str) -> Any:
        """Return what `send_activations` sent on the other side."""
        start_s = self.laps.clock()
        message = self.channel.receive(kind)
        self.laps.received(start_s, message.sent_s, what)
        values = message.arrays[0]
        return from_sixteen(values) if values.dtype.name == "uint16" else values


def is_side(runtime: str) -> bool:
    """Return whether a runtime can be a side of a split."""
    return runtime in XLA_RUNTIMES or runtime.split("-", maxsplit=1)[0] in MODEL_MODULES


def models_module(runtime: str, named: str) -> Any:
    """Return the module that opens models for a runtime.

    Args:
        runtime: a runtime id.
        named: the module to take instead; empty for none.

    Raises:
        WorkerError: there is none.
    """
    word = "torch_xla" if runtime in XLA_RUNTIMES else MODEL_MODULES.get(runtime.split("-", maxsplit=1)[0], "")
    if not named and not word:
        raise WorkerError(f"got {runtime} as a side of a split; expected jax, torch or TensorFlow; choose one of these")
    return import_module(named or f"probes.backends.{word}_model")


def pieces_of(task: SplitTask) -> tuple[Piece, ...]:
    """Return the whole model of a task in the order in which the sides hold it.

    A model is made divisible where a division asks for it: with an output layer of its own where the cut would part two uses of
    one table, and with its tables first where they stand beside its other layers.
    """
    pieces = model_of(task.layers, task.batch)
    if task.mode == "operators" and any(piece.source == "beside" for piece in pieces):
        pieces = tables_first(pieces)
    return untied(pieces) if task.mode in ("pipeline", "operators") else pieces


def check_task(task: SplitTask) -> None:
    """Refuse a task whose model cannot be run or cannot be cut so.

    Raises:
        BadInput: see `probes.model.model_of` and `probes.model.cut`.
    """
    if task.mode in ("pipeline", "operators"):
        parts_of(task)
    else:
        pieces_of(task)
    check_settings(task.optimizer, task.dtype)


def parts_of(task: SplitTask) -> tuple[Part, Part]:
    """Return the two parts of a model that is cut."""
    return cut(pieces_of(task), task.cut)


def rows_of(part: Part, task: SplitTask, first_row: int, count: int) -> dict[str, Any]:
    """Return rows of the data of a part; the same rows have the same values on every side."""
    return batch_of(part.pieces, count, task.seed, first_row)


def turns_of(rows: int, most: int) -> tuple[int, ...]:
    """Return how many samples each turn takes: as few turns as may be, as even as may be.

    Args:
        rows: of all turns.
        most: of one turn; 0 for no limit.
    """
    count = -(-rows // most) if most else min(rows, 1)
    return tuple(rows * (turn + 1) // count - rows * turn // count for turn in range(count))


def depends_on_batch(part: Part) -> bool:
    """Return whether what comes out for a sample depends on the others of its batch: batch norms make it so."""
    return any(slot.layer.kind == "batch_norm" for slot in slots_of(part.pieces))


def same_on_both_sides(work: Work, weights: Any, task: SplitTask, *, alike: bool) -> list[Check]:
    """Compare the weights of the two sides; the first side tells.

    Args:
        work: of this side.
        weights: of this side, flat.
        task: what is run.
        alike: whether both took the very same numbers, so that nothing may differ.
    """
    if work.index == 1:
        work.channel.send("weights", [weights])
        work.channel.flush()
        return []
    other = work.channel.receive("weights").arrays[0]
    allowed = 0.0 if alike else {"fp32": 1e-5, "bf16": 1e-2}[task.dtype]
    if not alike and task.optimizer in ADAPTIVE:
        allowed *= 10
    return [Check("weights of one side against the other's", apart(other, weights), allowed)]
