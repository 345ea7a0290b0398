"""PyTorch/XLA: the same modules as eager torch on a lazy device; a step ends with `torch_xla.sync(wait=True)`.

Nothing runs before that call: each step records its operations anew, and the graph is compiled when it has not been seen before.
The platform is chosen by `PJRT_DEVICE`, which is set before the interpreter starts.
"""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from probes.backends.torch import TorchBackend
from probes.case import Case, Program

RUNTIMES = ("torch-xla",)


def open_backend(runtime: str, device_kind: str) -> "TorchXlaBackend":
    """Import torch_xla; its platform is asserted by the worker."""
    return TorchXlaBackend()


class TorchXlaBackend(TorchBackend):
    """One torch_xla process."""

    def __init__(self) -> None:
        import torch
        import torch_xla
        from torch_xla.core import xla_model

        self.torch, self.xla, self.model = torch, torch_xla, xla_model
        self.compiled, self.first_call_compiles = False, True
        self.device = torch_xla.device()
        torch.set_float32_matmul_precision("highest")

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Return (distribution, version) pairs."""
        return (("torch", version("torch")), ("torch_xla", version("torch_xla")))

    def platform(self) -> str:
        """Return where arrays lie."""
        return str(self.model.xla_device_hw(self.device))

    def describe(self) -> str:
        """Return one line on the device."""
        return f"{self.device}, {self.model.xla_device_hw(self.device)}"

    def block_program(self, case: Case) -> Program:
        """Return a step of a chain of blocks; an optimizer with a state compiles in its first two steps, one call here."""
        program = super().block_program(case)
        if case.training and case.optimizer != "sgd":
            program.run = _first_twice(program.run)
        return program

    def synchronise(self, output: Any) -> None:
        """Run what was recorded and wait for it."""
        self.xla.sync(wait=True)
        self.model.wait_device_ops()

    def _infer(self, forward: Any, inputs: dict[str, Any]) -> Any:
        with self.torch.no_grad():
            output = forward(inputs)
            self.synchronise(output)
        return output


def _first_twice(step: Callable[[], object]) -> Callable[[], object]:
    """Return a function that makes two steps when it is first called: one that makes the optimizer's state, one that has it."""
    due = [step]

    def run() -> object:
        if due:
            due.pop()()
        return step()

    return run
