"""Keras 3 on each of its backends: `keras.layers`, `compile`, and Keras' own `train_on_batch` and `predict_on_batch`.

Using Keras' trainer keeps what its users pay: per-layer Python on torch, state kept in variables on jax, metrics everywhere.
"""

from functools import partial
from typing import Any

from core.errors import WorkerError
from probes.backends.keras_layers import build, unfused
from probes.backends.keras_ops import KerasOps
from probes.case import LEARNING_RATE, Case, Materials, Program, cotangent, direction, materials

RUNTIMES = ("keras-jax", "keras-tensorflow", "keras-torch")
GRADIENT_RATE = 2.0**-20
"""Rate of the step whose velocities hold the gradients. On TensorFlow's graph a step now and then goes back through a weight
that it has updated already, an error in proportion to the rate; a power of two costs no digit."""


def open_backend(runtime: str, device_kind: str) -> "KerasBackend":
    """Import keras and assert its backend and the device.

    Raises:
        WorkerError: KERAS_BACKEND was not set before import, or the backend lacks the device.
    """
    return KerasBackend(runtime, device_kind)


class KerasBackend:
    """One keras process."""

    def __init__(self, runtime: str, device_kind: str) -> None:
        import keras

        self.keras = keras
        expected = runtime.removeprefix("keras-")
        if keras.backend.backend() != expected:
            raise WorkerError(f"got keras on {keras.backend.backend()}; expected {expected}; set KERAS_BACKEND before the import")
        kinds = {device.split(":")[0].lower() for device in keras.distribution.list_devices()} if expected != "torch" else set()
        if device_kind != "cpu" and expected != "torch" and not kinds & {device_kind, "cuda"}:
            raise WorkerError(f"got {expected} without a {device_kind}; expected one; install the build for it")

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Return (distribution, version) pairs of keras and of its backend."""
        from importlib import import_module

        name = self.keras.backend.backend()
        return (("keras", self.keras.__version__), (name, import_module(name).__version__))

    def platform(self) -> str:
        """Return where arrays lie."""
        array = self.keras.ops.zeros(1)
        name = str(next(iter(array.devices())).platform if hasattr(array, "devices") else array.device).lower()
        return next((kind for kind in ("gpu", "cuda", "tpu", "cpu") if kind in name), name)

    def describe(self) -> str:
        """Return one line on the backend."""
        return f"keras on {self.keras.backend.backend()}"

    def block_program(self, case: Case) -> Program:
        """Return a step of a chain of blocks."""
        model, inputs, target = self._model(case, LEARNING_RATE)
        if case.training:
            return Program(partial(model.train_on_batch, inputs, target), True, arguments=lambda: inputs)
        return Program(partial(model.predict_on_batch, inputs), True, arguments=lambda: inputs)

    def answer(self, case: Case) -> tuple[Any, float | None]:
        """Return the output of one forward pass, and the directional derivative when training.

        The derivative is read off the velocities after one step of descent with momentum, through Keras' own trainer.
        """
        import numpy as np

        plain_case = Case(
            case.block, case.sizes, case.depth, case.mode, "momentum" if case.training else "none", case.dtype, case.seed
        )
        model, inputs, target = self._model(plain_case, GRADIENT_RATE)
        output = self.keras.ops.convert_to_numpy(model(inputs, training=case.training)).astype(np.float32)
        if not case.training:
            return output, None
        model.stop_statistics()
        model.train_on_batch(inputs, target)
        velocities = zip(model.trainable_variables, model.optimizer.momentums, strict=True)
        moved = {id(variable): self.keras.ops.convert_to_numpy(velocity) for variable, velocity in velocities}
        along = direction(materials(case).weights[0], case.seed)
        total = 0.0
        for name, arrays in along.items():
            own = model.copies[0][name]
            variables = dict(zip(own.tandem_names, own.weights, strict=False))
            for key, array in unfused(own.tandem_layer, arrays).items():
                gradient = moved[id(variables[key])].astype(np.float64) / -GRADIENT_RATE
                total += float((gradient * array.reshape(gradient.shape)).sum())
        return output, total

    def _model(self, case: Case, rate: float) -> tuple[Any, dict[str, Any], Any]:
        import numpy as np

        self.keras.config.set_dtype_policy({"fp32": "float32", "bf16": "bfloat16"}[case.dtype])
        drawn = materials(case)
        model = _chain(self.keras, case, drawn)
        for layer in model._flatten_layers():
            layer.built = True  # every weight is there; what Keras holds unbuilt it runs eagerly at each call to build it
        batch = next(iter(drawn.inputs.values())).shape[0]
        target = np.zeros((batch,), np.float32) if case.ends_in_loss or not case.training else self._cotangent(case, model, drawn)
        model.compile(optimizer=self._optimizer(case.optimizer, rate) if case.training else None)
        return model, drawn.inputs, target

    def _cotangent(self, case: Case, model: Any, drawn: Materials) -> Any:
        """Draw the gradient that arrives at the output; a chain's output has the shape of its input."""
        if case.block.chains(case.sizes):
            return cotangent(drawn.inputs["x"].shape, case.seed)
        symbols = {name: self.keras.KerasTensor(array.shape, str(array.dtype)) for name, array in drawn.inputs.items()}
        return cotangent(tuple(model.compute_output_spec(symbols, training=True).shape), case.seed)

    def _optimizer(self, name: str, rate: float) -> Any:
        optimizers = self.keras.optimizers
        match name:
            case "adamw":
                return optimizers.AdamW(rate)
            case "adam":
                return optimizers.Adam(rate)
            case "momentum":
                return optimizers.SGD(rate, momentum=0.9)
            case _:
                return optimizers.SGD(rate)


def _chain(keras: Any, case: Case, drawn: Any) -> Any:
    """Return a `keras.Model` that runs `case.depth` copies, each feeding the next."""
    ops = keras.ops
    specs = case.block.layers(case.sizes)
    shifts = case.needs_input_gradient and not case.block.chains(case.sizes)

    class Chain(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.copies = [{name: build(keras, spec, copy[name]) for name, spec in specs.items()} for copy in drawn.weights]
            if shifts:
                width = drawn.inputs["x"].shape[-1]
                self.shift = self.add_weight(shape=(width,), initializer="zeros", name="shift")

        def call(self, inputs: dict[str, Any], training: bool = False) -> Any:
            x = inputs["x"] + self.shift if shifts else inputs["x"]
            block_ops = KerasOps(keras, training)
            for copy in self.copies:
                x = case.block.forward(block_ops, copy, {**inputs, "x": x}, case.sizes)
            return x

        def compute_loss(
            self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
        ) -> Any:
            return y_pred if case.ends_in_loss else ops.sum(y_pred * ops.cast(y, y_pred.dtype))

        def stop_statistics(self) -> None:
            for copy in self.copies:
                for layer in copy.values():
                    if hasattr(layer, "momentum"):
                        layer.momentum = 1.0

    return Chain()
