"""A part of a model in TensorFlow: graph functions over a list of tensors that are cut from one flat variable.

The optimizer makes one pass over one variable with TensorFlow's own update kernels. Weights are handed to each function, so that
a tape outside can ask for their gradients: the backward pass of a function is a function too, and what it needs is kept.
"""

from collections.abc import Mapping
from typing import Any

from probes.backends.tensorflow_ops import TensorflowOps
from probes.model import Part, flat_weights
from probes.model_flat import (
    LEARNING_RATE,
    MOMENTUM,
    WEIGHT_DECAY,
    check_inputs,
    check_length,
    check_settings,
    no_optimizer,
    no_such_key,
    owned,
    stretches,
)
from probes.model_wiring import Wiring

_BETAS, _EPSILON = (0.9, 0.999), 1e-8


def open_model(
    backend: Any, part: Part, optimizer: str, dtype: str, seed: int, learning_rate: float = LEARNING_RATE
) -> "TensorflowModel":
    """Open a part; see `probes.model_flat.OpenModel`."""
    check_settings(optimizer, dtype)
    return TensorflowModel(backend, part, optimizer, dtype, seed, learning_rate)


class TensorflowModel:
    """See `probes.model_flat.Model`."""

    def __init__(self, backend: Any, part: Part, optimizer: str, dtype: str, seed: int, learning_rate: float) -> None:
        tf = self.tf = backend.tf
        self.part, self.wiring = part, Wiring(part)
        self.dtype = {"fp32": tf.float32, "bf16": tf.bfloat16}[dtype]
        self.layout = stretches(self.wiring.slots)
        self.parameter_count = self.layout[-1].stop if self.layout else 0
        self.flat = tf.Variable(flat_weights(part, seed))
        self.total = tf.Variable(tf.zeros(self.parameter_count))
        self.is_fresh = True
        self.running = {
            slot.key: tuple(tf.Variable(fill(slot.layer.option("channels")), trainable=False) for fill in (tf.zeros, tf.ones))
            for slot in self.wiring.slots
            if slot.layer.kind == "batch_norm"
        }
        self.optimizer = None if optimizer == "none" else FlatOptimizer(tf, optimizer, self.flat, learning_rate)
        self.kept: dict[int, tuple[Any, Any, Any]] = {}
        self._compile(backend.xla)
        self.arrays = self._cut(self.flat)

    def _compile(self, xla: bool) -> None:
        def graph(call: Any, compiled: bool = xla) -> Any:
            return self.tf.function(call, jit_compile=compiled, autograph=False, reduce_retracing=False)

        self._run = graph(self._run_once)
        self._forward = graph(lambda arrays, inputs: self._call(arrays, inputs, training=True))
        self._infer = graph(lambda arrays, inputs: self._call(arrays, inputs, training=False))
        self._join = graph(self._joined, compiled=False)
        self._cut = graph(self._arrays_of, compiled=False)
        self._update = graph(self._updated, compiled=False)

    def weights(self) -> Any:
        """Return the flat weights, float32."""
        return self.flat.numpy()

    def load(self, flat: Any) -> None:
        """Take flat weights."""
        check_length(flat, self.parameter_count)
        self.flat.assign(self.tf.constant(flat))
        self.arrays = self._cut(self.flat)

    def run(self, inputs: Mapping[str, Any], weight: float) -> float:
        """Run forward and backward, accumulate, return the loss."""
        loss, flat = self._run(self.arrays, self._place(inputs), self.tf.constant(weight))
        self._accumulate(flat)
        return float(loss)

    def forward(self, key: int, inputs: Mapping[str, Any]) -> Any:
        """Run forward and keep what the backward pass needs."""
        given = self._place(owned(inputs))
        sources = self.arrays if self.part.starts else [*self.arrays, given["x"]]
        with self.tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            output = self._forward(self.arrays, given)
        self.kept[key] = (tape, sources, output)
        return float(output) if self.part.ends else output.numpy()

    def backward(self, key: int, cotangent: Any, weight: float) -> Any:
        """Run backward, accumulate, return the gradient at `x`."""
        if key not in self.kept:
            raise no_such_key(key)
        tape, sources, output = self.kept.pop(key)
        grown = self.tf.ones_like(output) if cotangent is None else self.tf.constant(cotangent)
        gradients = tape.gradient(output, sources, grown, unconnected_gradients="zero")
        self._accumulate(self._join(gradients[: len(self.arrays)], self.tf.constant(weight)))
        return None if self.part.starts else self.tf.cast(gradients[-1], self.tf.float32).numpy()

    def gradients(self, out: Any = None) -> Any:
        """Return what was accumulated and start anew."""
        import numpy as np

        if out is not None:
            check_length(out, self.parameter_count)
        if self.is_fresh:
            self.total.assign(self.tf.zeros(self.parameter_count))
        self.is_fresh = True
        if out is None:
            return self.total.numpy()
        np.copyto(out, np.asarray(memoryview(self.total.read_value())))
        return out

    def update(self, flat: Any) -> None:
        """Make one step of the optimizer."""
        if self.optimizer is None:
            raise no_optimizer()
        check_length(flat, self.parameter_count)
        self.arrays = self._update(self.tf.constant(flat))
        self._wait()

    def infer(self, inputs: Mapping[str, Any]) -> Any:
        """Return the output without gradients."""
        return self._infer(self.arrays, self._place(inputs)).numpy()

    def _accumulate(self, flat: Any) -> None:
        if self.is_fresh:
            self.total.assign(flat)
        else:
            self.total.assign_add(flat)
        self.is_fresh = False
        self._wait()

    def _wait(self) -> None:
        self.tf.test.experimental.sync_devices()

    def _place(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        check_inputs(inputs, self.wiring.wanted)
        return {
            name: self.tf.constant(inputs[name])
            if name in self.wiring.tokens
            else self.tf.cast(self.tf.constant(inputs[name]), self.dtype)
            for name in sorted(self.wiring.wanted)
        }

    def _call(self, arrays: Any, inputs: Any, training: bool) -> Any:
        ops = TensorflowOps(training)
        own: dict[str, dict[str, Any]] = {slot.key: {} for slot in self.wiring.slots}
        for stretch, array in zip(self.layout, arrays, strict=True):
            own[stretch.slot.key][stretch.array] = array
        bound = {s.key: ops.bind(s.layer, own[s.key], self.running.get(s.key)) for s in self.wiring.slots}
        return self.tf.cast(self.wiring.forward(ops, bound, inputs), self.tf.float32)

    def _run_once(self, arrays: Any, inputs: Any, weight: Any) -> tuple[Any, Any]:
        with self.tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(arrays)
            loss = self._call(arrays, inputs, training=True)
        return loss, self._joined(tape.gradient(loss, arrays, unconnected_gradients="zero"), weight)

    def _joined(self, arrays: Any, weight: Any) -> Any:
        """Return arrays end to end, float32, times a weight; sparse gradients of tables are made dense."""
        tf = self.tf
        dense = [tf.reshape(tf.cast(tf.convert_to_tensor(array), tf.float32), (-1,)) for array in arrays]
        return weight * tf.concat(dense, 0) if dense else tf.zeros(0)

    def _arrays_of(self, flat: Any) -> list[Any]:
        return [self.tf.cast(self.tf.reshape(flat[s.start : s.stop], s.shape), self.dtype) for s in self.layout]

    def _updated(self, flat: Any) -> list[Any]:
        assert self.optimizer is not None
        self.optimizer.apply(flat)
        return self._arrays_of(self.flat.read_value())


class FlatOptimizer:
    """TensorFlow's update kernels over one flat variable.

    Args:
        tf: the module.
        name: `sgd`, `momentum`, `adam` or `adamw`.
        variable: to be updated.
        rate: learning rate.
    """

    def __init__(self, tf: Any, name: str, variable: Any, rate: float) -> None:
        self.tf, self.name, self.variable, self.rate = tf, name, variable, rate
        count = {"adamw": 2, "adam": 2, "momentum": 1}.get(name, 0)
        self.states = [tf.Variable(tf.zeros_like(variable), trainable=False) for _ in range(count)]
        self.powers = tuple(tf.Variable(beta, trainable=False) for beta in _BETAS)

    def apply(self, gradient: Any) -> None:
        """Update the variable by its gradient."""
        tf, handle = self.tf, self.variable.handle
        if self.name in ("adam", "adamw"):
            self._adam(gradient)
        elif self.name == "momentum":
            tf.raw_ops.ResourceApplyMomentum(
                var=handle,
                accum=self.states[0].handle,
                lr=self.tf.constant(self.rate),
                grad=gradient,
                momentum=self.tf.constant(MOMENTUM),
            )
        else:
            tf.raw_ops.ResourceApplyGradientDescent(var=handle, alpha=self.tf.constant(self.rate), delta=gradient)

    def _adam(self, gradient: Any) -> None:
        """Update by Adam; its kernel adds epsilon before it corrects the second moment, so epsilon is corrected alike."""
        if self.name == "adamw":
            self.variable.assign_sub(self.tf.constant(self.rate * WEIGHT_DECAY) * self.variable)
        epsilon = _EPSILON * self.tf.sqrt(1 - self.powers[1])
        self.tf.raw_ops.ResourceApplyAdam(
            var=self.variable.handle,
            m=self.states[0].handle,
            v=self.states[1].handle,
            beta1_power=self.powers[0],
            beta2_power=self.powers[1],
            lr=self.tf.constant(self.rate),
            beta1=self.tf.constant(_BETAS[0]),
            beta2=self.tf.constant(_BETAS[1]),
            epsilon=epsilon,
            grad=gradient,
        )
        for power, beta in zip(self.powers, _BETAS, strict=True):
            power.assign(power * beta)
