"""A part of a model in PyTorch/XLA: as in eager torch, but recorded and run when a call ends, as one program.

Views share no memory here, so every weight is held apart from the flat vector and taken from it after an update, in the program
of the update; a forward pass is run before its backward pass is recorded, so that what it saved is there and not computed twice.
"""

from collections.abc import Sequence
from typing import Any

from probes.backends.torch_model import TURNED, TorchModel
from probes.model import Part
from probes.model_flat import LEARNING_RATE, Stretch, check_settings


def open_model(
    backend: Any, part: Part, optimizer: str, dtype: str, seed: int, learning_rate: float = LEARNING_RATE
) -> "TorchXlaModel":
    """Open a part; see `probes.model_flat.OpenModel`."""
    check_settings(optimizer, dtype)
    return TorchXlaModel(backend, part, optimizer, dtype, seed, learning_rate)


class TorchXlaModel(TorchModel):
    """See `probes.model_flat.Model`."""

    def __init__(self, backend: Any, part: Part, optimizer: str, dtype: str, seed: int, learning_rate: float) -> None:
        self.xla = backend.xla
        super().__init__(backend, part, optimizer, dtype, seed, learning_rate)
        self._wait()

    def _is_apart(self, stretch: Stretch) -> bool:
        return True

    def _apart(self, weight: Any) -> Any:
        return weight.to(self.dtype, copy=True)

    def _start_total(self) -> Any:
        if self.total is None:
            self.total = self.torch.zeros(self.parameter_count, device=self.device)
        return self.total

    def _accumulate(self, gradients: Sequence[Any]) -> None:
        flat = [_canonical(g, s).reshape(-1).float() for g, s in zip(gradients, self.layout, strict=True)]
        if flat:
            joined = self.torch.cat(flat)
            self.total = joined if self.is_fresh else self._start_total() + joined
        self.is_fresh = False
        self._wait()

    def _wait(self) -> None:
        self.xla.sync(wait=True)


def _canonical(gradient: Any, stretch: Stretch) -> Any:
    """Return the gradient of a weight of torch's own layout in canonical layout."""
    axes = TURNED.get(stretch.layer.kind, ())
    if gradient.ndim != len(axes):
        return gradient
    return gradient.permute([axes.index(axis) for axis in range(len(axes))])
