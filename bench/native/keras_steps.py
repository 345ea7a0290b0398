"""One step in Keras 3 by its public way: `compile` with defaults (`jit_compile="auto"`), `train_on_batch`, `predict_on_batch`.

Both give numbers back on the host, so they return only when the step is done.
"""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import keras

from bench.native.cases import LEARNING_RATES, Case, random_batch
from bench.native.keras_models import BUILDERS

OPTIMIZERS: dict[str, Callable[[float], keras.optimizers.Optimizer]] = {
    "adamw": keras.optimizers.AdamW, "adam": keras.optimizers.Adam,
    "momentum": partial(keras.optimizers.SGD, momentum=0.9), "sgd": keras.optimizers.SGD,
}


class KerasNative:
    """A compiled model and its batch."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.model = BUILDERS[case.family](case)
        self.parameter_count = sum(prod(v.shape) for v in self.model.trainable_variables)
        batch = random_batch(case)
        self.inputs: Any = batch.inputs[0] if len(batch.inputs) == 1 else list(batch.inputs)
        self.targets: Any = batch.targets
        if case.trains:
            if case.family == "dlrm":
                self.targets = batch.targets[:, None]
                loss: keras.losses.Loss = keras.losses.BinaryCrossentropy(from_logits=True)
            else:
                loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            self.model.compile(OPTIMIZERS[case.optimizer](LEARNING_RATES[case.optimizer]), loss)

    def step(self) -> float:
        """Train on the batch and return the loss, or infer and return one output value."""
        if self.case.trains:
            return float(self.model.train_on_batch(self.inputs, self.targets))
        return float(self.model.predict_on_batch(self.inputs).flat[-1])


def prepare(case: Case, runtime: str) -> KerasNative:
    """Return the native for `keras-jax`, `keras-tensorflow` or `keras-torch`; the backend was set before the import."""
    assert keras.backend.backend() == runtime.removeprefix("keras-")
    return KerasNative(case)
