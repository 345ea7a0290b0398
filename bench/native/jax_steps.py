"""One step in JAX: the whole of it under one `jax.jit`, the state donated, optimizers of optax."""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import jax
import numpy as np
import optax

from bench.native.cases import LEARNING_RATES, Case, random_batch
from bench.native.jax_models import BUILDERS

OPTIMIZERS: dict[str, Callable[[float], optax.GradientTransformation]] = {
    "adamw": optax.adamw, "adam": optax.adam, "momentum": partial(optax.sgd, momentum=0.9), "sgd": optax.sgd,
}


class JaxNative:
    """A model, its batch and its state."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.model = BUILDERS[case.family](case)
        batch = random_batch(case)
        self.inputs = tuple(jax.device_put(array) for array in batch.inputs)
        self.targets = jax.device_put(batch.targets)
        shapes = jax.eval_shape(lambda key, *inputs: self.model.init(key, *inputs, train=False), jax.random.key(0), *self.inputs)
        variables = _random_variables(shapes)
        parameters, statistics = variables["params"], variables.get("batch_stats", {})
        self.parameter_count = sum(leaf.size for leaf in jax.tree.leaves(parameters))
        if case.trains:
            self.optimizer = OPTIMIZERS[case.optimizer](LEARNING_RATES[case.optimizer])
            self.state: Any = (parameters, statistics, self.optimizer.init(parameters))
            self.run = jax.jit(self._train, donate_argnums=0)
        else:
            self.state = (parameters, statistics)
            self.run = jax.jit(self._infer)

    def step(self) -> float:
        """Train on the batch and return the loss, or infer and return one output value."""
        if self.case.trains:
            self.state, loss = self.run(self.state, self.inputs, self.targets)
            return float(jax.block_until_ready((self.state, loss))[1])
        outputs = jax.block_until_ready(self.run(self.state, self.inputs))
        return float(outputs.reshape(-1)[-1]) if outputs.size < 1000 else float(outputs[(-1,) * outputs.ndim])

    def _train(self, state: Any, inputs: tuple[jax.Array, ...], targets: jax.Array) -> Any:
        parameters, statistics, optimizer_state = state

        def loss_of(parameters: Any) -> Any:
            variables = {"params": parameters, "batch_stats": statistics}
            outputs, changed = self.model.apply(variables, *inputs, train=True, mutable=["batch_stats"])
            if self.case.family == "dlrm":
                losses = optax.sigmoid_binary_cross_entropy(outputs, targets)
            else:
                losses = optax.softmax_cross_entropy_with_integer_labels(outputs, targets)
            return losses.mean(), changed.get("batch_stats", {})

        (loss, statistics), gradients = jax.value_and_grad(loss_of, has_aux=True)(parameters)
        updates, optimizer_state = self.optimizer.update(gradients, optimizer_state, parameters)
        return (optax.apply_updates(parameters, updates), statistics, optimizer_state), loss

    def _infer(self, state: Any, inputs: tuple[jax.Array, ...]) -> jax.Array:
        parameters, statistics = state
        outputs: jax.Array = self.model.apply({"params": parameters, "batch_stats": statistics}, *inputs, train=False)
        return outputs


def _random_variables(shapes: Any) -> Any:
    """Fill a tree of shapes: scales and variances 1, biases and means 0, the rest normal by fan-in.

    Why not the modules' own initializers: compiling them takes longer than the bench itself, and no time depends on them.
    """
    random = np.random.default_rng(1)

    def fill(path: Any, leaf: Any) -> jax.Array:
        name = path[-1].key
        if name in ("scale", "var"):
            return jax.numpy.ones(leaf.shape)
        if name in ("bias", "mean"):
            return jax.numpy.zeros(leaf.shape)
        deviation = 0.02 if name == "embedding" else prod(leaf.shape[:-1]) ** -0.5
        return jax.device_put(deviation * random.standard_normal(leaf.shape, dtype=np.float32))

    return jax.tree_util.tree_map_with_path(fill, shapes)


def prepare(case: Case, runtime: str) -> JaxNative:
    """Return the native for `jax`."""
    assert runtime == "jax"
    return JaxNative(case)
