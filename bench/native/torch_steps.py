"""One step in PyTorch, eager or compiled.

`torch-compile` is `torch.compile(model)` with every default: forward and backward are compiled, the loss where the model
computes it, while the optimizer is stepped as always, which is how its own tutorial does it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from bench.native.cases import LEARNING_RATES, Case, random_batch
from bench.native.torch_models import BUILDERS, FROM_TRANSFORMERS

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adamw": torch.optim.AdamW, "adam": torch.optim.Adam,
    "momentum": partial(torch.optim.SGD, momentum=0.9), "sgd": torch.optim.SGD,
}


class TorchNative:
    """A model, its batch and its optimizer."""

    def __init__(self, case: Case, compiled: bool) -> None:
        torch.manual_seed(0)
        self.case = case
        model = BUILDERS[case.family](case)
        model.train(case.trains)
        self.parameter_count = sum(p.numel() for p in model.parameters() if p.requires_grad)
        self.optimizer = optimizer_of(case.optimizer, model) if case.trains else None
        self.model: Any = torch.compile(model) if compiled else model
        batch = random_batch(case)
        self.inputs = [tensor_of(array) for array in batch.inputs]
        self.targets = tensor_of(batch.targets)

    def step(self) -> float:
        """Train on the batch and return the loss, or infer and return one output value."""
        if self.optimizer is None:
            with torch.inference_mode():
                return float(self._outputs().flatten()[-1])
        self.optimizer.zero_grad()
        loss = self._loss()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def _outputs(self) -> torch.Tensor:
        name = FROM_TRANSFORMERS.get(self.case.family)
        return self.model(**{name: self.inputs[0]}).logits if name else self.model(*self.inputs)

    def _loss(self) -> torch.Tensor:
        name = FROM_TRANSFORMERS.get(self.case.family)
        if name:
            return self.model(**{name: self.inputs[0]}, labels=self.targets).loss
        outputs = self.model(*self.inputs)
        if self.case.family == "dlrm":
            return functional.binary_cross_entropy_with_logits(outputs, self.targets)
        if self.case.family == "lstm":
            return functional.cross_entropy(outputs.flatten(0, 1), self.targets.flatten())
        return functional.cross_entropy(outputs, self.targets)


def optimizer_of(name: str, model: torch.nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer of a case over all weights of a model."""
    return OPTIMIZERS[name](model.parameters(), lr=LEARNING_RATES[name])


def tensor_of(array: Any) -> torch.Tensor:
    """Return PyTorch's usual layout: int64 integers, channels before height and width."""
    tensor = torch.from_numpy(array)
    if tensor.dtype == torch.int32:
        return tensor.long()
    return tensor.permute(0, 3, 1, 2).contiguous() if tensor.dim() == 4 else tensor


def prepare(case: Case, runtime: str) -> TorchNative:
    """Return the native for `torch-eager` or `torch-compile`."""
    return TorchNative(case, runtime == "torch-compile")
