"""Faulty kernels in TensorFlow, as graphs with its own rewriting (grappler)."""

from typing import Any

import tensorflow as tf

from bench.faulty import factor, is_chain, returns_early, slows_down, zeroed
from probes.backends.proofs import tensorflow_facts
from probes.backends.tensorflow import TensorflowBackend
from probes.case import Case, Program, materials

RUNTIME = "tf-graph"
KINDS = (
    "honest",
    "constant folding",
    "dead code",
    "loop-invariant hoisting",
    "unsynchronised",
    "zeros for inputs",
    "bf16 for fp32",
    "throttled clock",
)


def open_faulty(kind: str) -> TensorflowBackend:
    """Return a backend whose chain of products makes one mistake; what is no mistake of a program gets an honest one."""
    return FaultyTensorflow(kind if kind in KINDS else "honest")


class FaultyTensorflow(TensorflowBackend):
    """TensorFlow with one mistake in the timed program."""

    def __init__(self, kind: str) -> None:
        super().__init__("tf-graph", "cpu")
        self.kind = kind

    def block_program(self, case: Case) -> Program:
        """Return the program with the mistake."""
        honest = super().block_program(case)
        if not is_chain(case) or self.kind == "honest":
            return honest
        drawn = materials(case).inputs
        inputs = {name: tf.constant(array) for name, array in drawn.items()}
        scale = factor(case)
        match self.kind:
            case "unsynchronised":
                return returns_early(honest)
            case "throttled clock":
                return slows_down(honest)
            case "constant folding":
                return self._of(
                    lambda given: self._chain(case, tf.constant(drawn["x"]), tf.constant(drawn["w"])) + given["x"], inputs
                )
            case "dead code":
                return self._of(lambda given: (self._chain(case, given["x"], given["w"]), given["x"] + given["w"])[1], inputs)
            case "loop-invariant hoisting":
                return self._of(
                    lambda given: tf.add_n([(given["x"] @ given["w"]) * scale for _ in range(case.depth)]) / case.depth, inputs
                )
            case "zeros for inputs":
                return self._of(lambda given: self._chain(case, given["x"], given["w"]), zeroed(inputs))
            case _:
                return self._of(lambda given: self._chain(case, given["x"], given["w"], rounds=True), inputs)

    def _of(self, function: Any, inputs: dict[str, Any]) -> Program:
        step = tf.function(function, autograph=False)

        def run() -> Any:
            output = step(inputs)
            output.numpy()
            return output

        return Program(run, True, arguments=lambda: inputs, facts=lambda: tensorflow_facts(tf, False, function, inputs))

    def _chain(self, case: Case, x: Any, w: Any, *, rounds: bool = False) -> Any:
        def rounded(array: Any) -> Any:
            return tf.cast(tf.cast(array, tf.bfloat16), tf.float32) if rounds else array

        for _ in range(case.depth):
            x = (rounded(x) @ rounded(w)) * factor(case)
        return x
