"""Faulty kernels in JAX."""

from typing import Any

import jax
from jax import lax

from bench.faulty import factor, is_chain, slows_down, zeroed
from probes.backends.jax import JaxBackend
from probes.backends.proofs import xla_facts
from probes.case import Case, Program

RUNTIME = "jax"
KINDS = (
    "honest",
    "constant folding",
    "dead code",
    "loop-invariant hoisting",
    "unsynchronised",
    "zeros for inputs",
    "constant inputs",
    "bf16 for fp32",
    "tf32 for fp32",
    "throttled clock",
)


def open_faulty(kind: str) -> JaxBackend:
    """Return a backend whose chain of products makes one mistake; what is no mistake of a program gets an honest one."""
    return FaultyJax(kind if kind in KINDS else "honest")


class FaultyJax(JaxBackend):
    """JAX with one mistake in the timed program."""

    def __init__(self, kind: str) -> None:
        super().__init__("cpu")
        self.kind = kind

    def block_program(self, case: Case) -> Program:
        """Return the program with the mistake."""
        honest = super().block_program(case)
        if not is_chain(case) or self.kind == "honest":
            return honest
        _, inputs = self._arrays(case)
        scale = factor(case)
        match self.kind:
            case "throttled clock":
                return slows_down(honest)
            case "unsynchronised":
                return self._unsynchronised(case, inputs)
            case "constant folding":
                return self._of(lambda x, w: self._chain(case, inputs["x"], inputs["w"], scale) + x[0, 0] * w[0, 0], inputs)
            case "dead code":
                return self._of(lambda x, w: (self._chain(case, x, w, scale), x + w)[1], inputs)
            case "loop-invariant hoisting":
                return self._of(lambda x, w: sum((x @ w) * scale for _ in range(case.depth)) / case.depth, inputs)
            case "zeros for inputs":
                return self._of(lambda x, w: self._chain(case, x, w, scale), zeroed(inputs))
            case "constant inputs":
                ones = {name: array * 0 + 0.5 for name, array in inputs.items()}
                return self._of(lambda x, w: self._chain(case, x, w, scale), ones)
            case "bf16 for fp32":
                return self._of(lambda x, w: self._chain(case, x, w, scale, _bf16), inputs)
            case _:
                return self._of(lambda x, w: self._chain(case, x, w, scale, _tf32), inputs)

    def _unsynchronised(self, case: Case, inputs: Any) -> Program:
        step = jax.jit(lambda x, w: self._chain(case, x, w, factor(case)))
        given = dict(inputs)
        return Program(lambda: step(**given), True, arguments=lambda: given)

    def _of(self, function: Any, inputs: Any) -> Program:
        step = jax.jit(function)
        return Program(
            lambda: jax.block_until_ready(step(inputs["x"], inputs["w"])),
            True,
            arguments=lambda: inputs,
            facts=lambda: xla_facts(step, inputs["x"], inputs["w"]),
        )

    def _chain(self, case: Case, x: Any, w: Any, scale: float, rounded: Any = lambda array: array) -> Any:
        for _ in range(case.depth):
            x = (rounded(x) @ rounded(w)) * scale
        return x


def _bf16(array: Any) -> Any:
    return array.astype(jax.numpy.bfloat16).astype(jax.numpy.float32)


def _tf32(array: Any) -> Any:
    """Keep the ten bits behind the point that tf32 keeps."""
    bits = lax.bitcast_convert_type(array, jax.numpy.uint32) & jax.numpy.uint32(0xFFFFE000)
    return lax.bitcast_convert_type(bits, jax.numpy.float32)
