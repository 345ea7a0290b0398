"""Faulty kernels in PyTorch, compiled where the mistake is the compiler's chance."""

from collections.abc import Callable
from typing import Any

import torch

from bench.faulty import factor, is_chain, returns_early, slows_down, zeroed
from probes.backends.proofs import torch_facts
from probes.backends.torch import TorchBackend
from probes.case import Case, Program, materials

RUNTIME = "torch-eager"
KINDS = (
    "honest",
    "dead code",
    "loop-invariant hoisting",
    "unsynchronised",
    "zeros for inputs",
    "bf16 for fp32",
    "tf32 for fp32",
    "one core for two",
    "throttled clock",
    "neighbour noise",
    "hot cache",
    "GiB for GB",
)
COMPILED = ("dead code", "loop-invariant hoisting")


def open_faulty(kind: str) -> TorchBackend:
    """Return a backend whose chain of products makes one mistake; a first call that costs anything needs the compiler."""
    return TorchBackend("torch-compile", "cpu") if kind == "first call counted" else FaultyTorch(kind)


class _Wrong(torch.nn.Module):
    """A module with a mistake that only a compiler turns into less work."""

    def __init__(self, kind: str, case: Case) -> None:
        super().__init__()
        self.kind, self.depth, self.scale = kind, case.depth, factor(case)

    def forward(self, x: Any, w: Any) -> Any:
        """Return the input when the work is dead, else the mean of equal products."""
        if self.kind == "dead code":
            y = x
            for _ in range(self.depth):
                y = (y @ w) * self.scale
            return x + w
        return sum((x @ w) * self.scale for _ in range(self.depth)) / self.depth


class FaultyTorch(TorchBackend):
    """PyTorch with one mistake in the timed program."""

    def __init__(self, kind: str) -> None:
        super().__init__("torch-eager", "cpu")
        self.kind = kind
        torch.set_num_threads(1 if kind == "one core for two" else max(2, torch.get_num_threads()))

    def block_program(self, case: Case) -> Program:
        """Return the program with the mistake."""
        honest = super().block_program(case)
        if not is_chain(case):
            return honest
        inputs = {name: torch.from_numpy(array) for name, array in materials(case).inputs.items()}
        match self.kind:
            case "unsynchronised":
                return returns_early(honest)
            case "throttled clock":
                return slows_down(honest)
            case "zeros for inputs":
                return self._of(self._chain(case, lambda array: array), zeroed(inputs))
            case "bf16 for fp32":
                return self._of(self._chain(case, lambda array: array.bfloat16().float()), inputs)
            case "tf32 for fp32":
                return self._of(self._chain(case, _tf32), inputs)
            case kind if kind in COMPILED:
                return self._of(torch.compile(_Wrong(kind, case), dynamic=False), inputs, compiled=True)
            case _:
                return honest

    def _of(self, function: Any, inputs: dict[str, Any], *, compiled: bool = False) -> Program:
        def run() -> Any:
            with torch.inference_mode():
                return function(inputs["x"], inputs["w"])

        return Program(run, compiled, arguments=lambda: inputs, facts=lambda: torch_facts(torch, compiled, run))

    def _chain(self, case: Case, rounded: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
        def chain(x: Any, w: Any) -> Any:
            for _ in range(case.depth):
                x = (rounded(x) @ rounded(w)) * factor(case)
            return x

        return chain


def _tf32(array: Any) -> Any:
    """Keep the ten bits behind the point that tf32 keeps."""
    return (array.contiguous().view(torch.int32) & -8192).view(torch.float32)
