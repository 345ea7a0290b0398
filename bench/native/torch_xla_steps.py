"""One step in PyTorch/XLA: the same models on an XLA device, each step cut off by `torch_xla.sync`, as its own guide writes it.

Nothing runs before that call, and moving a model to the device parts tied weights, which are tied again. The first two training
steps compile, since the second is the first to have the optimizer's state.
"""

from typing import Any

import torch
import torch_xla

from bench.native.cases import Case, random_batch
from bench.native.torch_models import BUILDERS
from bench.native.torch_steps import TorchNative, optimizer_of, tensor_of


class TorchXlaNative(TorchNative):
    """A model, its batch and its optimizer on the XLA device."""

    def __init__(self, case: Case) -> None:
        torch.manual_seed(0)
        self.case = case
        device = torch_xla.device()
        model = BUILDERS[case.family](case).to(device)
        if hasattr(model, "tie_weights"):
            model.tie_weights()
        model.train(case.trains)
        self.parameter_count = sum(p.numel() for p in model.parameters() if p.requires_grad)
        self.optimizer = optimizer_of(case.optimizer, model) if case.trains else None
        self.model: Any = model
        batch = random_batch(case)
        self.inputs = [tensor_of(array).to(device) for array in batch.inputs]
        self.targets = tensor_of(batch.targets).to(device)

    def step(self) -> float:
        """Train on the batch and return the loss, or infer and return one output value."""
        if self.optimizer is None:
            with torch.no_grad():
                output = self._outputs().flatten()[-1]
            torch_xla.sync(wait=True)
            return float(output)
        self.optimizer.zero_grad()
        loss = self._loss()
        loss.backward()
        self.optimizer.step()
        torch_xla.sync(wait=True)
        return float(loss.detach())


def prepare(case: Case, runtime: str) -> TorchXlaNative:  # noqa: ARG001 - the signature of others
    """Return the native."""
    return TorchXlaNative(case)
