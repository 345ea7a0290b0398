"""Actor and learner: one side samples with the weights that it was last given, the other trains on the samples and pushes them.

The actor samples from the model's own distribution: token by token behind a prompt for a causal language model, one answer a
sample for a classifier. The learner keeps the better half of each batch and trains on it. The reward is that of a sampled even
number: simple, known to nobody but the environment, and learnable.
How far the actor runs ahead is fixed beforehand, so that which weights a sample was drawn with does not depend on the clock.

Source: training on the best of what was sampled: Dong et al., RAFT, arXiv:2304.06767.
"""

from typing import Any

from core.errors import BadInput
from core.split import Check
from probes.model import Part, Piece
from probes.model_flat import Model
from probes.split.checks import apart, finite
from probes.split.laps import timed
from probes.split.words import SplitTask
from probes.split.work import Work, pieces_of, rows_of

ROLL_TOLERANCES = {"fp32": 1e-3, "bf16": 5e-2}
"""Of a log-probability, absolute, mean over what was sampled."""


class Actors:
    """One side of actor and learner.

    Args:
        work: of this side.
        task: to be run.
        fresh: open the model anew.
    """

    def __init__(self, work: Work, task: SplitTask, *, fresh: bool) -> None:
        self.work, self.task, self.acts = work, task, work.index == task.actor
        self.pieces = pieces_of(task)
        self.whole = Part(self.pieces)
        self.sampler = Sampler(self.pieces, task)
        self.model = work.model(self.whole, task, fresh=fresh)
        self.parameter_count = self.own_parameters = self.model.parameter_count
        self.activation_bytes = 0
        self.number = 0
        self.pushes = 0
        self.mismatches: list[float] = []

    def step(self) -> tuple[float | None, float | None]:
        """Do one rollout, or learn from one."""
        return self._act() if self.acts else self._learn()

    def _act(self) -> tuple[float | None, float | None]:
        """Sample with the weights that are due; return the mean reward as what is counted."""
        while self.pushes < pushes_due(self.number, self.task):
            self._take_weights()
        with self.work.laps.during("compute", f"rollout {self.number + 1}"):
            inputs, log_probabilities = self.sampler.rollout(self.model, self.number)
        names = sorted(inputs)
        version = str(self.pushes * self.task.push_every)
        self.work.channel.send("rollout", [*(inputs[name] for name in names), log_probabilities], {"version": version})
        self.number += 1
        return None, float(self.sampler.rewards(inputs).mean())

    def _take_weights(self) -> None:
        start_s = self.work.laps.clock()
        message = self.work.channel.receive("weights")
        self.work.laps.received(start_s, message.sent_s, "weights from the learner")
        with self.work.laps.during("update", "load weights"):
            self.model.load(message.arrays[0])
        self.pushes += 1

    def _learn(self) -> tuple[float | None, float | None]:
        """Train on the better half of one rollout; return the loss, and by how many updates its weights were old."""
        laps, work = self.work.laps, self.work
        start_s = laps.clock()
        message = work.channel.receive("rollout")
        laps.received(start_s, message.sent_s, "samples from the actor")
        inputs = dict(zip(self.sampler.names, message.arrays[:-1], strict=True))
        staleness = self.number - int(message.note["version"])
        if staleness == 0 and not self.mismatches:
            with laps.during("compute", "log-probabilities again"):
                self.mismatches.append(self._mismatch(inputs, message.arrays[-1]))
        with laps.during("compute", f"learn from rollout {self.number + 1}"):
            loss = self.model.run(self.sampler.better_half(inputs), 1.0)
            flat = self.model.gradients()
        with laps.during("update", "update"):
            self.model.update(flat)
        self.number += 1
        if self.number % self.task.push_every == 0:
            with laps.during("move", "weights to the actor"):
                work.channel.send("weights", [self.model.weights()])
                work.channel.flush()
        return finite(loss), float(staleness)

    def _mismatch(self, inputs: dict[str, Any], told: Any) -> float:
        """Return how far apart the log-probabilities of the same samples are under the same weights, in the mean."""
        import numpy as np

        return float(np.abs(self.sampler.log_probabilities(self.model, inputs) - told).mean())

    def prove(self, last: bool) -> tuple[Check, ...]:
        """Push once more and compare the weights; tell the mismatch of log-probabilities."""
        channel = self.work.channel
        if self.acts:
            while self.pushes < self.number // self.task.push_every:
                self._take_weights()
            self.model.load(channel.receive("proof").arrays[0])
            channel.send("proof", [self.model.weights()])
            channel.flush()
            return ()
        weights = self.model.weights()
        channel.send("proof", [weights])
        back = channel.receive("proof").arrays[0]
        pushed = Check("weights on the actor after a push against the learner's", apart(back, weights), 0.0)
        if last or not self.mismatches:
            return (pushed,)
        allowed = ROLL_TOLERANCES[self.task.dtype]
        return (pushed, Check("log-probabilities, actor against learner, mean difference", self.mismatches[0], allowed))

    def rehearse(self, rows: int) -> tuple[tuple[str, float], ...]:
        """Sample so many rows, or learn from the better half of as many.

        Returns:
            (`rollout`, `load`) of the actor, (`train`, `update`, `push`) of the learner, with their seconds.
        """
        if self.acts:
            rollout_s, _ = timed(lambda: self.sampler.sampled(self.model, rows_of(self.whole, self.task, 0, rows), 0))
            weights = self.model.weights()
            load_s, _ = timed(lambda: self.model.load(weights))
            return (("rollout", rollout_s), ("load", load_s))
        inputs = rows_of(self.whole, self.task, 0, rows)
        train_s, flat = timed(lambda: (self.model.run(self.sampler.better_half(inputs), 1.0), self.model.gradients())[1])
        update_s, _ = timed(lambda: self.model.update(flat))
        push_s, _ = timed(self.model.weights)
        return (("train", train_s), ("update", update_s), ("push", push_s))


def pushes_due(number: int, task: SplitTask) -> int:
    """Return how many pushes of weights a rollout waits for: all up to `ahead` steps ago."""
    return max(0, number - task.ahead) // task.push_every


class Sampler:
    """Draws from a model's distribution, and knows what it drew.

    Args:
        pieces: of the whole model.
        task: for seed, rows and positions to be sampled.

    Raises:
        BadInput: a language model that sees what is to be sampled.
    """

    def __init__(self, pieces: tuple[Piece, ...], task: SplitTask) -> None:
        self.pieces, self.task = pieces, task
        self.labels = pieces[-1].key("labels")
        specs = {piece.key(name): spec for piece in pieces for name, spec in piece.data.items()}
        self.names = sorted(specs)
        self.writes_on = specs["x"].kind == "token" and specs["x"].shape == specs[self.labels].shape
        if self.writes_on and not all(dict(piece.sizes).get("causal", 1) for piece in pieces):
            got = "a language model that sees the tokens behind each position"
            raise BadInput(got, "a causal one, which can write on", "choose another model or another mode")
        self.count = min(task.generate, specs["x"].shape[1]) if self.writes_on else 0

    def rollout(self, model: Model, number: int) -> tuple[dict[str, Any], Any]:
        """Return inputs with what was sampled in place of the labels, and its log-probabilities."""
        rows = self.task.batch
        return self.sampled(model, rows_of(Part(self.pieces), self.task, number * rows, rows), number)

    def sampled(self, model: Model, inputs: dict[str, Any], number: int) -> tuple[dict[str, Any], Any]:
        """Sample for given inputs, which are not changed.

        Args:
            model: whole.
            inputs: of some rows; a prompt is what stands before the positions to be sampled.
            number: of the rollout, for the random numbers.
        """
        import numpy as np

        generator = np.random.Generator(np.random.PCG64((self.task.seed, 2, number)))
        result = {name: values.copy() for name, values in inputs.items()}
        if not self.writes_on:
            logits = log_softmax(model.infer(result))
            result[self.labels] = drawn(logits, generator)
            return result, picked(logits, result[self.labels])
        x, labels = result["x"], result[self.labels]
        labels[:, :-1] = x[:, 1:]
        told: list[Any] = []
        for position in range(x.shape[1] - self.count, x.shape[1]):
            logits = log_softmax(model.infer(result))[:, position]
            labels[:, position] = drawn(logits, generator)
            if position + 1 < x.shape[1]:
                x[:, position + 1] = labels[:, position]
            told.append(picked(logits, labels[:, position]))
        return result, np.stack(told, 1)

    def log_probabilities(self, model: Model, inputs: dict[str, Any]) -> Any:
        """Return the log-probabilities of what was sampled, in one pass."""
        logits = log_softmax(model.infer(inputs))
        found = picked(logits, inputs[self.labels])
        return found[:, -self.count :] if self.writes_on else found

    def rewards(self, inputs: dict[str, Any]) -> Any:
        """Return the reward of each row: the share of even numbers among what was sampled."""
        labels = inputs[self.labels]
        chosen = labels[:, -self.count :] if self.writes_on else labels
        return (chosen.reshape(len(chosen), -1) % 2 == 0).mean(1)

    def better_half(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the rows with the better rewards, always as many; the earlier of equal ones."""
        import numpy as np

        rewards = self.rewards(inputs)
        kept = np.sort(np.argsort(-rewards, kind="stable")[: max(1, len(rewards) // 2)])
        return {name: np.ascontiguousarray(values[kept]) for name, values in inputs.items()}


def log_softmax(logits: Any) -> Any:
    """Return log-probabilities over the last axis, float64; one logit is that of the second of two answers."""
    import numpy as np

    whole: Any = logits.astype(np.float64)
    if whole.shape[-1] == 1:
        whole = np.concatenate([np.zeros_like(whole), whole], -1)
    whole = whole - whole.max(-1, keepdims=True)
    return whole - np.log(np.exp(whole).sum(-1, keepdims=True))


def drawn(log_probabilities: Any, generator: Any) -> Any:
    """Return int32 numbers drawn from a distribution over the last axis.

    Source: Gumbel, Statistical Theory of Extreme Values (1954): the largest of log-probabilities with Gumbel noise is a draw.
    """
    import numpy as np

    return (log_probabilities + generator.gumbel(size=log_probabilities.shape)).argmax(-1).astype(np.int32)


def picked(log_probabilities: Any, chosen: Any) -> Any:
    """Return the log-probabilities of chosen numbers, float32."""
    import numpy as np

    return np.take_along_axis(log_probabilities, chosen[..., None].astype(np.int64), -1)[..., 0].astype(np.float32)
