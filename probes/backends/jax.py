"""JAX: one jitted step over a pytree of arrays, state donated, images NHWC, optimizer from optax.

Weights and inputs are arguments, never captured, so that XLA cannot fold them; everything computed is returned, so that it
cannot drop work; the step waits for its own output.
"""

from functools import partial
from typing import Any

from core.errors import WorkerError
from probes.backends.jax_ops import JaxOps
from probes.backends.proofs import xla_facts
from probes.case import LEARNING_RATE, Case, Program, cotangent, direction, materials

RUNTIMES = ("jax",)


def open_backend(runtime: str, device_kind: str) -> "JaxBackend":
    """Import jax and assert the platform.

    Raises:
        WorkerError: jax fell back to another platform.
    """
    return JaxBackend(device_kind)


class JaxBackend:
    """One jax process."""

    def __init__(self, device_kind: str) -> None:
        import jax

        self.jax = jax
        platform = jax.devices()[0].platform
        expected = {"cpu": ("cpu",), "gpu": ("gpu", "cuda", "rocm"), "tpu": ("tpu",)}[device_kind]
        if platform not in expected:
            raise WorkerError(f"got jax on {platform}; expected {device_kind}; install the build for it")
        jax.config.update("jax_default_matmul_precision", "highest")

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Return (distribution, version) pairs."""
        import jaxlib
        import optax

        return (("jax", self.jax.__version__), ("jaxlib", jaxlib.__version__), ("optax", optax.__version__))

    def platform(self) -> str:
        """Return where arrays lie."""
        return next(iter(self.jax.numpy.zeros(1).devices())).platform

    def describe(self) -> str:
        """Return one line on the device."""
        device = self.jax.devices()[0]
        return f"{device.platform}, {device.device_kind}"

    def block_program(self, case: Case) -> Program:
        """Return a step of a chain of blocks."""
        jax = self.jax
        weights, inputs = self._arrays(case)
        state = initial_state(case)
        if not case.training:
            if case.reuses_result:
                return self._reusing(case, weights, inputs)
            infer = jax.jit(lambda w, s, i: chain(case, w, s, i)[0])
            return Program(
                lambda: jax.block_until_ready(infer(weights, state, inputs)),
                True,
                arguments=lambda: inputs,
                facts=lambda: xla_facts(infer, weights, state, inputs),
            )
        optimizer = self._optimizer(case.optimizer)
        shape = jax.eval_shape(lambda w, s, i: chain(case, w, s, i)[0], weights, state, inputs).shape
        grown = None if case.ends_in_loss else jax.numpy.asarray(cotangent(shape, case.seed), self._dtype(case))
        step = jax.jit(partial(_step, jax, case, optimizer), donate_argnums=(0, 1, 2))
        held = [weights, optimizer.init(weights), state]

        def run() -> Any:
            *held[:], produced = step(*held, inputs, grown)
            jax.block_until_ready((held, produced))
            return produced[0]

        return Program(run, True, held.clear, lambda: inputs, lambda: xla_facts(step, *held, inputs, grown))

    def _reusing(self, case: Case, weights: Any, inputs: Any) -> Program:
        """Return a step whose result takes the place of the last one, which is donated, unread, for it."""
        jax = self.jax
        state = initial_state(case)
        infer = jax.jit(lambda w, s, i, into: chain(case, w, s, i)[0], donate_argnums=3, keep_unused=True)
        held = [jax.numpy.empty_like(inputs["x"])]

        def run() -> Any:
            held[0] = jax.block_until_ready(infer(weights, state, inputs, held[0]))
            return held[0]

        return Program(run, True, held.clear, lambda: inputs, lambda: xla_facts(infer, weights, state, inputs, held[0]))

    def answer(self, case: Case) -> tuple[Any, float | None]:
        """Return the output of one forward pass, and the directional derivative when training."""
        import numpy as np

        jax = self.jax
        weights, inputs = self._arrays(case)
        state = initial_state(case)
        output, pull = jax.vjp(jax.jit(lambda w: chain(case, w, state, inputs)[0]), weights)
        plain = np.asarray(output, np.float32)
        if not case.training:
            return plain, None
        grown = 1.0 if case.ends_in_loss else cotangent(plain.shape, case.seed)
        (gradients,) = pull(jax.numpy.asarray(grown, output.dtype))
        along = direction(materials(case).weights[0], case.seed)
        total = sum(
            float((np.asarray(gradients[0][n][k], np.float64) * a).sum())
            for n, arrays in along.items()
            for k, a in arrays.items()
        )
        return plain, total

    def _dtype(self, case: Case) -> Any:
        return {"fp32": self.jax.numpy.float32, "bf16": self.jax.numpy.bfloat16}[case.dtype]

    def _arrays(self, case: Case) -> tuple[Any, Any]:
        numpy, dtype = self.jax.numpy, self._dtype(case)
        drawn = materials(case)

        def place(array: Any) -> Any:
            return numpy.asarray(array, None if array.dtype.kind == "i" else dtype)

        weights = [{n: {k: place(a) for k, a in arrays.items()} for n, arrays in copy.items()} for copy in drawn.weights]
        return weights, {name: place(array) for name, array in drawn.inputs.items()}

    def _optimizer(self, name: str) -> Any:
        import optax

        match name:
            case "adamw":
                return optax.adamw(LEARNING_RATE)
            case "adam":
                return optax.adam(LEARNING_RATE)
            case "momentum":
                return optax.sgd(LEARNING_RATE, momentum=0.9)
            case _:
                return optax.sgd(LEARNING_RATE)


def initial_state(case: Case) -> list[dict[str, Any]]:
    """Return running statistics (mean 0, variance 1) of every batch norm of every copy."""
    import jax.numpy as numpy

    specs = case.block.layers(case.sizes)
    norms = {name: spec.option("channels") for name, spec in specs.items() if spec.kind == "batch_norm"}
    return [{name: (numpy.zeros(width), numpy.ones(width)) for name, width in norms.items()} for _ in range(case.depth)]


def chain(case: Case, weights: Any, state: Any, inputs: Any) -> tuple[Any, Any]:
    """Return the output of all copies in a row and their new running statistics."""
    specs = case.block.layers(case.sizes)
    x, statistics = inputs["x"], []
    for own, running in zip(weights, state, strict=True):
        ops = JaxOps(case.training)
        bound = {name: ops.bind(name, spec, own[name], running.get(name)) for name, spec in specs.items()}
        x = case.block.forward(ops, bound, {**inputs, "x": x}, case.sizes)
        statistics.append(ops.updated)
    return x, statistics


def _step(jax: Any, case: Case, optimizer: Any, weights: Any, memory: Any, state: Any, inputs: Any, grown: Any) -> Any:
    def forward(w: Any, x: Any) -> Any:
        return chain(case, w, state, {**inputs, "x": x})

    if case.needs_input_gradient:
        output, pull, statistics = jax.vjp(forward, weights, inputs["x"], has_aux=True)
    else:
        output, pull, statistics = jax.vjp(lambda w: forward(w, inputs["x"]), weights, has_aux=True)
    gradients, *to_input = pull(jax.numpy.ones((), output.dtype) if grown is None else grown)
    changes, memory = optimizer.update(gradients, memory, weights)
    weights = jax.tree.map(lambda w, c: w + c, weights, changes)
    return weights, memory, statistics, (output, to_input)
