"""TensorFlow without Keras: one `tf.function` a step over `tf.Variable`s, with XLA (`tf-xla`) or without (`tf-graph`).

The optimizers are TensorFlow's own fused update kernels; images are NHWC.
"""

from functools import partial
from typing import Any

from core.errors import WorkerError
from probes.backends.proofs import is_kernel, tensorflow_facts
from probes.backends.tensorflow_ops import TensorflowOps
from probes.case import LEARNING_RATE, Case, Program, cotangent, direction, materials

RUNTIMES = ("tf-graph", "tf-xla")


def open_backend(runtime: str, device_kind: str) -> "TensorflowBackend":
    """Import tensorflow and assert the device.

    Raises:
        WorkerError: tensorflow does not see a device of that kind.
    """
    return TensorflowBackend(runtime, device_kind)


class TensorflowBackend:
    """One tensorflow process."""

    def __init__(self, runtime: str, device_kind: str) -> None:
        import tensorflow as tf

        self.tf = tf
        self.xla = runtime == "tf-xla"
        gpus = tf.config.list_physical_devices("GPU")
        if device_kind == "gpu" and not gpus:
            raise WorkerError(f"got tensorflow {tf.__version__} without a GPU; expected one; install tensorflow[and-cuda]")
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)
        tf.config.experimental.enable_tensor_float_32_execution(False)

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Return (distribution, version) pairs."""
        return (("tensorflow", self.tf.__version__),)

    def platform(self) -> str:
        """Return where arrays lie."""
        return self.tf.constant(0.0).device.split(":")[-2]

    def describe(self) -> str:
        """Return one line on the devices."""
        return ", ".join(device.name for device in self.tf.config.list_physical_devices())

    def block_program(self, case: Case) -> Program:
        """Return a step of a chain of blocks."""
        chain = TensorflowChain(self.tf, case)
        step = self.tf.function(chain.step if case.training else chain.infer, jit_compile=self.xla, autograph=False)
        inputs = chain.inputs()
        grown = chain.cotangent(inputs) if case.training and not case.ends_in_loss else self.tf.constant(1.0)

        def run() -> Any:
            outputs = step(inputs, grown) if case.training else step(inputs)
            for output in outputs:
                output.numpy()
            return outputs[0]

        facts = partial(tensorflow_facts, self.tf, self.xla, chain.infer, inputs) if is_kernel(case) else None
        return Program(run, True, arguments=lambda: inputs, facts=facts)

    def answer(self, case: Case) -> tuple[Any, float | None]:
        """Return the output of one forward pass, and the directional derivative when training."""
        import numpy as np

        tf = self.tf
        chain = TensorflowChain(tf, case)
        inputs = chain.inputs()

        def both() -> Any:
            with tf.GradientTape() as tape:
                output = chain.forward(inputs)
            grown = None if case.ends_in_loss else tf.constant(cotangent(tuple(output.shape), case.seed), output.dtype)
            return output, tape.gradient(output, chain.copies[0], grown) if case.training else None

        output, gradients = tf.function(both, jit_compile=self.xla, autograph=False)()
        if not case.training:
            return output.numpy().astype(np.float32), None
        along = direction(materials(case).weights[0], case.seed)
        total = 0.0
        for name, arrays in along.items():
            for key, array in arrays.items():
                total += float((tf.convert_to_tensor(gradients[name][key]).numpy().astype(np.float64) * array).sum())
        return output.numpy().astype(np.float32), total


class TensorflowChain:
    """The variables of all copies, their running statistics and their optimizer state."""

    def __init__(self, tf: Any, case: Case) -> None:
        self.tf, self.case = tf, case
        self.dtype = {"fp32": tf.float32, "bf16": tf.bfloat16}[case.dtype]
        self.drawn = materials(case)
        self.specs = case.block.layers(case.sizes)
        self.copies = [
            {name: {key: tf.Variable(tf.cast(a, self.dtype)) for key, a in arrays.items()} for name, arrays in copy.items()}
            for copy in self.drawn.weights
        ]
        norms = {name: spec.option("channels") for name, spec in self.specs.items() if spec.kind == "batch_norm"}
        self.running = [
            {
                name: (tf.Variable(tf.zeros(width), trainable=False), tf.Variable(tf.ones(width), trainable=False))
                for name, width in norms.items()
            }
            for _ in self.copies
        ]
        self.variables = [v for copy in self.copies for arrays in copy.values() for v in arrays.values()]
        self.optimizer = TensorflowOptimizer(tf, case.optimizer, self.variables) if case.training else None

    def inputs(self) -> dict[str, Any]:
        """Return the inputs as tensors."""
        return {
            name: self.tf.constant(array) if array.dtype.kind == "i" else self.tf.cast(array, self.dtype)
            for name, array in self.drawn.inputs.items()
        }

    def cotangent(self, inputs: dict[str, Any]) -> Any:
        """Return the gradient that arrives at the output."""
        shape = self.tf.function(self.forward, autograph=False).get_concrete_function(inputs).output_shapes
        return self.tf.cast(cotangent(tuple(shape), self.case.seed), self.dtype)

    def forward(self, inputs: dict[str, Any]) -> Any:
        """Return the output of all copies in a row."""
        x = inputs["x"]
        for copy, running in zip(self.copies, self.running, strict=True):
            ops = TensorflowOps(self.case.training)
            bound = {name: ops.bind(spec, copy.get(name, {}), running.get(name)) for name, spec in self.specs.items()}
            x = self.case.block.forward(ops, bound, {**inputs, "x": x}, self.case.sizes)
        return x

    def infer(self, inputs: dict[str, Any]) -> Any:
        """Return the output, whole, so that XLA cannot drop a part of it."""
        return (self.forward(inputs),)

    def step(self, inputs: dict[str, Any], grown: Any) -> Any:
        """Run forward, backward and update, and return the output and the gradient at the input."""
        tf, case = self.tf, self.case
        assert self.optimizer is not None
        with tf.GradientTape() as tape:
            if case.needs_input_gradient:
                tape.watch(inputs["x"])
            output = self.forward(inputs)
        sources = [*self.variables, inputs["x"]] if case.needs_input_gradient else self.variables
        gradients = tape.gradient(output, sources, None if case.ends_in_loss else grown)
        self.optimizer.apply(gradients[: len(self.variables)])
        return (output, gradients[-1]) if case.needs_input_gradient else (output,)


class TensorflowOptimizer:
    """TensorFlow's update kernels, one call a variable."""

    def __init__(self, tf: Any, name: str, variables: list[Any]) -> None:
        self.tf, self.name, self.variables = tf, name, variables
        states = {"adamw": 2, "adam": 2, "momentum": 1}.get(name, 0)
        self.states = [tuple(tf.Variable(tf.zeros_like(v), trainable=False) for _ in range(states)) for v in variables]
        self.powers = (tf.Variable(0.9), tf.Variable(0.999))

    def apply(self, gradients: list[Any]) -> None:
        """Update every variable by its gradient."""
        tf, rate = self.tf, LEARNING_RATE
        for variable, gradient, state in zip(self.variables, gradients, self.states, strict=True):
            if gradient is None:
                continue
            if self.name == "sgd" and isinstance(gradient, tf.IndexedSlices):
                variable.scatter_sub(tf.IndexedSlices(tf.cast(rate, gradient.values.dtype) * gradient.values, gradient.indices))
                continue
            dense = tf.convert_to_tensor(gradient)
            if self.name in ("adam", "adamw"):
                self._adam(variable, dense, state)
            elif self.name == "momentum":
                tf.raw_ops.ResourceApplyMomentum(
                    var=variable.handle,
                    accum=state[0].handle,
                    lr=tf.cast(rate, variable.dtype),
                    grad=dense,
                    momentum=tf.cast(0.9, variable.dtype),
                )
            else:
                tf.raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=tf.cast(rate, variable.dtype), delta=dense)
        self.powers[0].assign(self.powers[0] * 0.9)
        self.powers[1].assign(self.powers[1] * 0.999)

    def _adam(self, variable: Any, gradient: Any, state: tuple[Any, ...]) -> None:
        tf = self.tf

        def cast(value: Any) -> Any:
            return tf.cast(value, variable.dtype)

        if self.name == "adamw":
            variable.assign_sub(cast(LEARNING_RATE * 0.01) * variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=state[0].handle,
            v=state[1].handle,
            beta1_power=cast(self.powers[0]),
            beta2_power=cast(self.powers[1]),
            lr=cast(LEARNING_RATE),
            beta1=cast(0.9),
            beta2=cast(0.999),
            epsilon=cast(1e-8),
            grad=gradient,
        )
