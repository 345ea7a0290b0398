"""A part of a model in torch: its own modules, whose weights lie in one flat vector in canonical layout.

A weight is a view of the flat vector, so the optimizer makes one pass over one vector, and taking weights costs no pass at all.
Dense kernels are views with their axes turned, which matrix products take as they are; kernels of convolutions would be copied
in each pass, so these alone are held in torch's own layout and turned after an update.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from probes.backends import torch_layers
from probes.model import Part, flat_weights, weights_of
from probes.model_flat import (
    LEARNING_RATE,
    MOMENTUM,
    WEIGHT_DECAY,
    Stretch,
    check_inputs,
    check_length,
    check_settings,
    no_optimizer,
    no_such_key,
    owned,
    stretches,
)
from probes.model_wiring import Wiring

TURNED = {"dense": (1, 0), "conv": (3, 2, 0, 1), "up_conv": (3, 2, 0, 1), "lstm": (1, 0), "attention": (1, 0)}
"""Axes of canonical kernels in the order of torch's."""


def open_model(
    backend: Any, part: Part, optimizer: str, dtype: str, seed: int, learning_rate: float = LEARNING_RATE
) -> "TorchModel":
    """Open a part; see `probes.model_flat.OpenModel`."""
    check_settings(optimizer, dtype)
    return TorchModel(backend, part, optimizer, dtype, seed, learning_rate)


class TorchModel:
    """See `probes.model_flat.Model`."""

    def __init__(self, backend: Any, part: Part, optimizer: str, dtype: str, seed: int, learning_rate: float) -> None:
        torch = self.torch = backend.torch
        self.part, self.device, self.wiring = part, backend.device, Wiring(part)
        self.dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
        self.layout = stretches(self.wiring.slots)
        self.parameter_count = self.layout[-1].stop if self.layout else 0
        self.modules = _modules(self.wiring, part, seed).to(self.device, self.dtype)
        self.flat = torch_layers.owned(flat_weights(part, seed)).to(self.device)
        self.parameters = [self._bind(stretch) for stretch in self.layout]
        self.turned = [i for i, stretch in enumerate(self.layout) if self._is_apart(stretch)]
        self.train_net = backend._callable(_net(self.wiring, self.modules, training=True))
        self.infer_net = backend._callable(_net(self.wiring, self.modules, training=False))
        self.whole = torch.nn.Parameter(self.flat)
        self.optimizer = _optimizer(torch, optimizer, self.whole, learning_rate)
        self.total: Any = None
        self.views: list[Any] = []
        self.is_fresh = True
        self.kept: dict[int, tuple[Any, Any]] = {}

    def weights(self) -> Any:
        """Return the flat weights, float32."""
        return self.flat.cpu().numpy().copy()

    def load(self, flat: Any) -> None:
        """Take flat weights."""
        check_length(flat, self.parameter_count)
        self.flat.copy_(self._lent(flat))
        self._turn()

    def run(self, inputs: Mapping[str, Any], weight: float) -> float:
        """Run forward and backward, accumulate, return the loss."""
        self.modules.train()
        loss = self.train_net(self._place(inputs))
        self._accumulate(self._gradients(loss, self.parameters, self._scalar(weight, loss.dtype)))
        return loss.item()

    def forward(self, key: int, inputs: Mapping[str, Any]) -> Any:
        """Run forward and keep what the backward pass needs."""
        self.modules.train()
        given = self._place(owned(inputs))
        if not self.part.starts:
            given["x"].requires_grad_(True)
        output = self.train_net(given)
        self.kept[key] = (output, given.get("x"))
        self._wait()
        return output.item() if self.part.ends else self._canonical(output.detach())

    def backward(self, key: int, cotangent: Any, weight: float) -> Any:
        """Run backward, accumulate, return the gradient at `x`."""
        if key not in self.kept:
            raise no_such_key(key)
        output, x = self.kept.pop(key)
        grown = self.torch.ones_like(output) if cotangent is None else self._activations(cotangent, output.dtype)
        sources = self.parameters if self.part.starts else [*self.parameters, x]
        scale = weight or 1.0
        gradients = self._gradients(output, sources, grown * self._scalar(scale, output.dtype))
        if weight:
            self._accumulate(gradients[: len(self.parameters)])
        return None if self.part.starts else self._canonical(gradients[-1] / scale)

    def gradients(self, out: Any = None) -> Any:
        """Return what was accumulated and start anew."""
        if out is not None:
            check_length(out, self.parameter_count)
        if self.is_fresh:
            self._start_total().zero_()
        total, self.is_fresh = self.total, True
        if out is not None:
            self.torch.from_numpy(out).copy_(total)
            return out
        self.total = None
        return total.cpu().numpy()

    def update(self, flat: Any) -> None:
        """Make one step of the optimizer."""
        if self.optimizer is None:
            raise no_optimizer()
        check_length(flat, self.parameter_count)
        self.whole.grad = self._lent(flat).to(self.device)
        self.optimizer.step()
        self.whole.grad = None
        self._turn()
        self._wait()

    def infer(self, inputs: Mapping[str, Any]) -> Any:
        """Return the output without gradients."""
        self.modules.eval()
        with self.torch.no_grad():
            return self._canonical(self.infer_net(self._place(inputs)))

    def _bind(self, stretch: Stretch) -> Any:
        """Put a weight's place in the flat vector into its module and return the parameter."""
        view = self._own(self.flat, stretch)
        parameter = self.torch.nn.Parameter(self._apart(view) if self._is_apart(stretch) else view)
        target = self.modules[stretch.slot.key]
        attribute = next(a for a, key in torch_layers._attributes(stretch.layer).items() if key == stretch.array)
        *path, leaf = attribute.split(".")
        for name in path:
            target = getattr(target, name)
        setattr(target, leaf, parameter)
        return parameter

    def _is_apart(self, stretch: Stretch) -> bool:
        """Whether a weight is held beside the flat vector: in a layout or a dtype of its own."""
        return len(stretch.shape) == 4 or self.dtype != self.torch.float32

    def _apart(self, weight: Any) -> Any:
        """Return a copy; kernels (outputs, inputs, height, width) have their inputs last in memory, as images their channels."""
        layout = self.torch.channels_last if weight.ndim == 4 else self.torch.preserve_format
        return weight.to(self.dtype, memory_format=layout, copy=True)

    def _scalar(self, value: float, dtype: Any) -> Any:
        """Return a number on the device: as part of a program it would have to be compiled for each value."""
        return self.torch.tensor(value, dtype=dtype).to(self.device)

    def _own(self, flat: Any, stretch: Stretch) -> Any:
        """Return a view of a flat vector in the shape that torch's module has."""
        view = flat[stretch.start : stretch.stop].view(stretch.shape)
        axes = TURNED.get(stretch.layer.kind, ())
        return view.permute(axes) if view.ndim == len(axes) else view

    def _turn(self) -> None:
        """Take the flat weights into the kernels that have a layout of their own."""
        with self.torch.no_grad():
            for index in self.turned:
                self.parameters[index].copy_(self._own(self.flat, self.layout[index]))

    def _gradients(self, output: Any, sources: Sequence[Any], grown: Any) -> Sequence[Any]:
        return self.torch.autograd.grad(output, sources, grown, allow_unused=True, materialize_grads=True)

    def _start_total(self) -> Any:
        """Return the flat vector that gradients go into, made where the last one was handed out."""
        if self.total is None:
            self.total = self.torch.empty(self.parameter_count, device=self.device)
            self.views = [self._own(self.total, stretch) for stretch in self.layout]
        return self.total

    def _accumulate(self, gradients: Sequence[Any]) -> None:
        self._start_total()
        join = self.torch._foreach_copy_ if self.is_fresh else self.torch._foreach_add_
        if self.views:
            join(self.views, list(gradients))
        self.is_fresh = False
        self._wait()

    def _wait(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def _place(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        check_inputs(inputs, self.wiring.wanted)
        return {
            name: self._lent(inputs[name]).long().to(self.device)
            if name in self.wiring.tokens
            else self._activations(inputs[name], self.dtype)
            for name in self.wiring.wanted
        }

    def _activations(self, array: Any, dtype: Any) -> Any:
        """Return a tensor in torch's order of axes; images keep their place in memory, channels last."""
        tensor = self._lent(array).to(self.device, dtype)
        return tensor.permute(0, 3, 1, 2) if tensor.ndim == 4 else tensor

    def _canonical(self, tensor: Any) -> Any:
        plain = tensor.permute(0, 2, 3, 1) if tensor.ndim == 4 else tensor
        return plain.float().cpu().contiguous().numpy()

    def _lent(self, array: Any) -> Any:
        """Return a tensor over a numpy array's own memory, which is only read; torch warns of arrays that may not be written."""
        import numpy as np

        plain = np.ascontiguousarray(array)
        return self.torch.from_numpy(plain if plain.flags.writeable else np.asarray(_Lent(plain)))


class _Lent:
    """A read-only array under another name, for a reader that asks for a writable one."""

    def __init__(self, array: Any) -> None:
        self.array = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def _modules(wiring: Wiring, part: Part, seed: int) -> Any:
    """Return torch's own module of every layer, by its name in the model."""
    import torch

    drawn = dict(weights_of(part, seed))
    return torch.nn.ModuleDict(
        {s.key: torch_layers._module(s.layer, {n: drawn[f"{s.key}_{n}"] for n, _, _ in s.layer.arrays}) for s in wiring.slots}
    ).requires_grad_(False)


def _net(wiring: Wiring, modules: Any, training: bool) -> Any:
    """Return a module that runs a part; two of them share their layers."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.ops, self.wiring = modules, torch_layers.TorchOps(training), wiring

        def forward(self, inputs: dict[str, Any]) -> Any:
            return self.wiring.forward(self.ops, self.layers, inputs)

    return Net()


def _optimizer(torch: Any, name: str, whole: Any, rate: float) -> Any:
    match name:
        case "adamw":
            return torch.optim.AdamW([whole], lr=rate, weight_decay=WEIGHT_DECAY)
        case "adam":
            return torch.optim.Adam([whole], lr=rate)
        case "momentum":
            return torch.optim.SGD([whole], lr=rate, momentum=MOMENTUM)
        case "sgd":
            return torch.optim.SGD([whole], lr=rate)
        case _:
            return None
