"""A part of a model in jax: jitted functions over a list of arrays, gradients accumulated in one flat vector.

What a backward pass needs leaves the jitted forward pass as data, so nothing is computed twice; weights among it are left out and
handed in again, because they would be copied.
"""

from collections.abc import Mapping
from typing import Any

from probes.backends.jax_ops import JaxOps
from probes.model import Part, weights_of
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


def open_model(
    backend: Any, part: Part, optimizer: str, dtype: str, seed: int, learning_rate: float = LEARNING_RATE
) -> "JaxModel":
    """Open a part; see `probes.model_flat.OpenModel`."""
    check_settings(optimizer, dtype)
    return JaxModel(backend.jax, part, optimizer, dtype, seed, learning_rate)


class JaxModel:
    """See `probes.model_flat.Model`."""

    def __init__(self, jax: Any, part: Part, optimizer: str, dtype: str, seed: int, learning_rate: float) -> None:
        self.jax, self.part, self.wiring = jax, part, Wiring(part)
        self.dtype = {"fp32": jax.numpy.float32, "bf16": jax.numpy.bfloat16}[dtype]
        self.layout = stretches(self.wiring.slots)
        self.parameter_count = self.layout[-1].stop if self.layout else 0
        self.arrays = [jax.numpy.array(array) for _, array in weights_of(part, seed)]
        self.optimizer = _optimizer(optimizer, learning_rate)
        self.memory = self.optimizer.init(self.arrays) if self.optimizer else None
        self.running = {
            slot.key: (jax.numpy.zeros(width), jax.numpy.ones(width))
            for slot in self.wiring.slots
            if slot.layer.kind == "batch_norm" and (width := slot.layer.option("channels"))
        }
        self.total: Any = None
        self.is_fresh = True
        self.kept: dict[int, tuple[Any, Any]] = {}
        self._compile()

    def _compile(self) -> None:
        jit = self.jax.jit
        self._run = jit(self._run_once, donate_argnums=4, static_argnums=5, keep_unused=True)
        self._forward = jit(self._forward_kept)
        self._backward = jit(self._backward_once, donate_argnums=5, static_argnums=6, keep_unused=True)
        self._infer = jit(lambda a, r, i: self._call(a, r, i, training=False)[0].astype("float32"))
        self._update = jit(self._updated, donate_argnums=(0, 1))
        self._join = jit(self._flat)
        self._split = jit(self._unflat)

    def weights(self) -> Any:
        """Return the flat weights, float32."""
        import numpy as np

        return np.asarray(self._join(self.arrays))

    def load(self, flat: Any) -> None:
        """Take flat weights."""
        check_length(flat, self.parameter_count)
        self.arrays = self.jax.block_until_ready(self._split(flat))

    def run(self, inputs: Mapping[str, Any], weight: float) -> float:
        """Run forward and backward, accumulate, return the loss."""
        given = self._place(inputs)
        loss, self.total, self.running = self._run(self.arrays, self.running, given, weight, self._start_total(), self.is_fresh)
        self.is_fresh = False
        self.jax.block_until_ready(self.total)
        return float(loss)

    def forward(self, key: int, inputs: Mapping[str, Any]) -> Any:
        """Run forward and keep what the backward pass needs."""
        import numpy as np

        given = self._place(owned(inputs))
        output, pull, self.running = self._forward(self.arrays, self.running, given)
        self.kept[key] = (pull, given.get("x"))
        return float(output) if self.part.ends else np.asarray(output)

    def backward(self, key: int, cotangent: Any, weight: float) -> Any:
        """Run backward, accumulate, return the gradient at `x`."""
        import numpy as np

        if key not in self.kept:
            raise no_such_key(key)
        pull, x = self.kept.pop(key)
        to_input, self.total = self._backward(pull, self.arrays, x, cotangent, weight, self._start_total(), self.is_fresh)
        self.is_fresh = False
        self.jax.block_until_ready(self.total)
        return None if self.part.starts else np.asarray(to_input)

    def gradients(self, out: Any = None) -> Any:
        """Return what was accumulated and start anew."""
        import numpy as np

        total = self.jax.numpy.zeros(self.parameter_count) if self.is_fresh else self.total
        self.is_fresh = True
        if out is None:
            self.total = None
            return np.asarray(total)
        check_length(out, self.parameter_count)
        np.copyto(out, np.asarray(total))
        return out

    def update(self, flat: Any) -> None:
        """Make one step of the optimizer."""
        if self.optimizer is None:
            raise no_optimizer()
        check_length(flat, self.parameter_count)
        self.arrays, self.memory = self.jax.block_until_ready(self._update(self.arrays, self.memory, flat))

    def infer(self, inputs: Mapping[str, Any]) -> Any:
        """Return the output without gradients."""
        import numpy as np

        return np.asarray(self._infer(self.arrays, self.running, self._place(inputs)))

    def _start_total(self) -> Any:
        """Return the flat vector whose place the next one takes, made where the last one was handed out."""
        return self.jax.numpy.zeros(self.parameter_count) if self.total is None else self.total

    def _place(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        check_inputs(inputs, self.wiring.wanted)
        place = self.jax.numpy.asarray
        return {
            name: place(inputs[name], None if name in self.wiring.tokens else self.dtype) for name in sorted(self.wiring.wanted)
        }

    def _call(self, arrays: Any, running: Any, inputs: Any, training: bool) -> tuple[Any, Any]:
        ops = JaxOps(training)
        own: dict[str, dict[str, Any]] = {slot.key: {} for slot in self.wiring.slots}
        for stretch, array in zip(self.layout, arrays, strict=True):
            own[stretch.slot.key][stretch.array] = array.astype(self.dtype)
        bound = {s.key: ops.bind(s.key, s.layer, own[s.key], running.get(s.key)) for s in self.wiring.slots}
        output = self.wiring.forward(ops, bound, inputs)
        return output, running | ops.updated

    def _run_once(self, arrays: Any, running: Any, inputs: Any, weight: Any, total: Any, fresh: bool) -> tuple[Any, Any, Any]:
        def loss_of(own: Any) -> Any:
            return self._call(own, running, inputs, training=True)

        (loss, running), gradients = self.jax.value_and_grad(loss_of, has_aux=True)(arrays)
        flat = weight * self._flat(gradients)
        return loss, flat if fresh else total + flat, running

    def _forward_kept(self, arrays: Any, running: Any, inputs: Any) -> tuple[Any, Any, Any]:
        rest = {name: value for name, value in inputs.items() if name != "x"}
        x = inputs.get("x")

        def output_of(own: Any, x: Any) -> Any:
            given = rest if x is None else {**rest, "x": x}
            output, after = self._call(own, running, given, training=True)
            return output.astype("float32"), after

        if self.part.starts:
            output, pull, running = self.jax.vjp(lambda own: output_of(own, x), arrays, has_aux=True)
        else:
            output, pull, running = self.jax.vjp(output_of, arrays, x, has_aux=True)
        return output, _without_arguments(pull), running

    def _backward_once(
        self, pull: Any, arrays: Any, x: Any, cotangent: Any, weight: Any, total: Any, fresh: bool
    ) -> tuple[Any, Any]:
        whole = _with_arguments(pull, (arrays,) if self.part.starts else (arrays, x))
        gradients, *to_input = whole(self.jax.numpy.ones(()) if cotangent is None else cotangent)
        flat = weight * self._flat(gradients)
        return (to_input[0].astype("float32") if to_input else None), flat if fresh else total + flat

    def _updated(self, arrays: Any, memory: Any, flat: Any) -> tuple[Any, Any]:
        assert self.optimizer is not None
        changes, memory = self.optimizer.update(self._unflat(flat), memory, arrays)
        return [array + change for array, change in zip(arrays, changes, strict=True)], memory

    def _flat(self, arrays: Any) -> Any:
        numpy = self.jax.numpy
        return numpy.concatenate([numpy.zeros(0), *(array.reshape(-1) for array in arrays)])

    def _unflat(self, flat: Any) -> list[Any]:
        return [flat[s.start : s.stop].reshape(s.shape) for s in self.layout]


def _optimizer(name: str, rate: float) -> Any:
    import optax

    match name:
        case "adamw":
            return optax.adamw(rate, weight_decay=WEIGHT_DECAY)
        case "adam":
            return optax.adam(rate)
        case "momentum":
            return optax.sgd(rate, momentum=MOMENTUM)
        case "sgd":
            return optax.sgd(rate)
        case _:
            return None


def _without_arguments(pull: Any) -> Any:
    """Return a backward pass without the weights and inputs that it needs, where this jax tells which they are."""
    if hasattr(pull, "args_res"):
        pull.args_res = []
    return pull


def _with_arguments(pull: Any, arguments: tuple[Any, ...]) -> Any:
    """Return a backward pass with its weights and inputs in their places again."""
    if hasattr(pull, "args_res"):
        pull.args_res = list(arguments)
    return pull
