"""One step in plain TensorFlow: the whole of it in one `tf.function`, with `jit_compile` for `tf-xla`.

Optimizers are TensorFlow's own fused update kernels, which is what its optimizer classes call; sparse gradients of lookups
stay sparse where the update allows it (plain SGD), as those classes do it.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from bench.native.cases import LEARNING_RATES, Case, random_batch
from bench.native.tf_models import BUILDERS


class Optimizer(tf.Module):
    """AdamW, Adam, momentum or plain SGD over a list of variables."""

    def __init__(self, name: str, variables: Sequence[tf.Variable]) -> None:
        super().__init__()
        self.kind, self.updated = name, tuple(variables)
        self.rate = LEARNING_RATES[name]
        slots = {"adamw": 2, "adam": 2, "momentum": 1, "sgd": 0}[name]
        self.slots = tuple(tuple(tf.Variable(tf.zeros_like(v), trainable=False) for v in self.updated) for _ in range(slots))
        self.powers = (tf.Variable(0.9, trainable=False), tf.Variable(0.999, trainable=False)) if slots == 2 else ()

    def apply(self, gradients: Sequence[Any]) -> None:
        """Update every variable by its gradient."""
        for index, (variable, gradient) in enumerate(zip(self.updated, gradients, strict=True)):
            if self.kind == "sgd" and isinstance(gradient, tf.IndexedSlices):
                variable.scatter_sub(tf.IndexedSlices(self.rate * gradient.values, gradient.indices))
                continue
            self._update(index, variable, tf.convert_to_tensor(gradient))
        if self.powers:
            self.powers[0].assign(self.powers[0] * 0.9)
            self.powers[1].assign(self.powers[1] * 0.999)

    def _update(self, index: int, variable: tf.Variable, gradient: tf.Tensor) -> None:
        handles = [slot[index].handle for slot in self.slots]
        match self.kind:
            case "sgd":
                tf.raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=self.rate, delta=gradient)
            case "momentum":
                tf.raw_ops.ResourceApplyMomentum(var=variable.handle, accum=handles[0], lr=self.rate, grad=gradient, momentum=0.9)
            case _:
                if self.kind == "adamw":
                    variable.assign_sub(self.rate * 0.01 * variable)
                tf.raw_ops.ResourceApplyAdam(
                    var=variable.handle, m=handles[0], v=handles[1], beta1_power=self.powers[0], beta2_power=self.powers[1],
                    lr=self.rate, beta1=0.9, beta2=0.999, epsilon=1e-8, grad=gradient,
                )


class TfNative:
    """A model, its batch and its optimizer."""

    def __init__(self, case: Case, xla: bool) -> None:
        self.case = case
        self.model: Any = BUILDERS[case.family](case)
        variables = self.model.trainable_variables
        self.parameter_count = sum(v.shape.num_elements() for v in variables)
        batch = random_batch(case)
        self.inputs = tuple(tf.constant(array) for array in batch.inputs)
        self.targets = tf.constant(batch.targets)
        self.optimizer = Optimizer(case.optimizer, variables) if case.trains else None
        self.run = tf.function(self._train if case.trains else self._infer, jit_compile=xla)

    def step(self) -> float:
        """Train on the batch and return the loss, or infer and return one output value."""
        if self.case.trains:
            return float(self.run(self.inputs, self.targets).numpy())
        return float(self.run(self.inputs).numpy().flat[-1])

    def _train(self, inputs: tuple[tf.Tensor, ...], targets: tf.Tensor) -> tf.Tensor:
        assert self.optimizer is not None
        with tf.GradientTape() as tape:
            outputs = self.model(*inputs, train=True)
            if self.case.family == "dlrm":
                losses = tf.nn.sigmoid_cross_entropy_with_logits(targets, outputs)
            else:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, outputs)
            loss = tf.reduce_mean(losses)
        self.optimizer.apply(tape.gradient(loss, self.optimizer.updated))
        return loss

    def _infer(self, inputs: tuple[tf.Tensor, ...]) -> tf.Tensor:
        return self.model(*inputs, train=False)


def prepare(case: Case, runtime: str) -> TfNative:
    """Return the native for `tf-graph` or `tf-xla`."""
    return TfNative(case, runtime == "tf-xla")
