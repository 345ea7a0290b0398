"""Torch's own layers for each `Layer`, and the operations that blocks are written in."""

from math import sqrt
from typing import Any

from probes.backends.operators import Operators
from probes.case import Case, Materials
from probes.layers import Layer


def owned(array: Any) -> Any:
    """Return a contiguous tensor in torch's own memory, where that of its users lies.

    What numpy allocated must not be timed in its place: it lies on huge pages from 4 MiB on, which saves lookups of addresses,
    and at a multiple of 16 bytes where torch's is at one of 64. Passes over memory differ by up to a tenth for it.
    """
    import torch

    return torch.from_numpy(array).clone(memory_format=torch.contiguous_format)


def from_canonical(array: Any) -> Any:
    """Return a tensor; images go from NHWC to contiguous NCHW."""
    return owned(array.transpose(0, 3, 1, 2) if array.ndim == 4 else array)


def to_canonical(tensor: Any) -> Any:
    """Return a float32 numpy array; images go from NCHW to NHWC."""
    plain = tensor.float().cpu()
    return (plain.permute(0, 2, 3, 1) if plain.ndim == 4 else plain).numpy()


_TRANSPOSED = {"dense": (1, 0), "conv": (3, 2, 0, 1), "up_conv": (3, 2, 0, 1), "lstm": (1, 0), "attention": (1, 0)}


def _own_layout(layer: Layer, array: Any) -> Any:
    axes = _TRANSPOSED.get(layer.kind)
    return array.transpose(axes) if axes and array.ndim == len(axes) else array


def directional(modules: Any, along: dict[str, dict[str, Any]]) -> float:
    """Return the sum over all weights of gradient times direction; weights that got no gradient count zero."""
    total = 0.0
    for name, arrays in along.items():
        module = modules[name]
        for key, array in arrays.items():
            gradient = module.gradient_of(key)
            if gradient is not None:
                total += float((_own_layout(module.layer, array) * gradient.float().cpu().numpy()).sum(dtype="float64"))
    return total


def chain(case: Case, drawn: Materials) -> Any:
    """Return a module that runs `case.depth` copies, each feeding the next."""
    import torch

    class Chain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            specs = case.block.layers(case.sizes)
            self.copies = torch.nn.ModuleList(
                torch.nn.ModuleDict({name: _module(spec, weights[name]) for name, spec in specs.items()})
                for weights in drawn.weights
            )
            self.ops = TorchOps(case.training)
            self.block_forward, self.sizes = case.block.forward, case.sizes

        def forward(self, inputs: dict[str, Any]) -> Any:
            x = inputs["x"]
            for copy in self.copies:
                x = self.block_forward(self.ops, copy, {**inputs, "x": x}, self.sizes)
            return x

    return Chain()


def _module(layer: Layer, weights: dict[str, Any]) -> Any:
    """Return torch's own module for a layer, holding the given weights."""
    from torch import nn

    class Base(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer
            for attribute, key in _attributes(layer).items():
                if key in weights:
                    target = self
                    *path, leaf = attribute.split(".")
                    own = owned(_own_layout(layer, weights[key]))
                    for part in path:
                        target = getattr(target, part)
                    setattr(target, leaf, nn.Parameter(own))
            if layer.kind == "lstm":
                nn.init.zeros_(self.bias_hh_l0)

        def gradient_of(self, key: str) -> Any:
            attribute = next(a for a, k in _attributes(layer).items() if k == key)
            target = self
            for part in attribute.split("."):
                target = getattr(target, part)
            return target.grad

    return type(layer.kind, (Base, _kind_class(layer)), {})()


def _attributes(layer: Layer) -> dict[str, str]:
    """Map torch's attribute names to canonical array names."""
    match layer.kind:
        case "norm" | "batch_norm":
            return {"weight": "scale", "bias": "offset"}
        case "embedding":
            return {"weight": "table"}
        case "bag":
            return {f"bags.{i}.weight": f"table_{i}" for i in range(layer.option("tables"))}
        case "lstm":
            return {"weight_ih_l0": "kernel", "weight_hh_l0": "recurrent", "bias_ih_l0": "bias"}
        case "table":
            return {"value": "value"}
        case "attention":
            names = ("qkv", "out") if layer.option("fused") else ("query", "key", "value", "out")
            return {f"{n}.weight": f"{n}_kernel" for n in names} | {
                f"{n}.bias": f"{n}_bias" for n in names if layer.option("bias")
            }
        case _:
            return {"weight": "kernel", "bias": "bias"}


def _kind_class(layer: Layer) -> type:
    from torch import nn

    o = dict(layer.options)

    def make(parent: type, *args: Any, **kwargs: Any) -> type:
        return type("Kind", (parent,), {"__init__": lambda self: parent.__init__(self, *args, **kwargs)})

    match layer.kind:
        case "dense":
            return make(nn.Linear, o["inputs"], o["outputs"], bias=o["bias"])
        case "norm":
            return make(nn.LayerNorm if o["kind"] == "layer" else nn.RMSNorm, o["width"])
        case "conv":
            pad = o["kernel"] // 2 if o["stride"] != o["kernel"] else 0
            return make(nn.Conv2d, o["inputs"], o["outputs"], o["kernel"], o["stride"], pad, groups=o["groups"], bias=o["bias"])
        case "batch_norm":
            return make(nn.BatchNorm2d, o["channels"])
        case "up_conv":
            return make(nn.ConvTranspose2d, o["inputs"], o["outputs"], 2, 2)
        case "embedding":
            return make(nn.Embedding, o["rows"], o["width"])
        case "lstm":
            return make(nn.LSTM, o["inputs"], o["hidden"], batch_first=True)
        case "bag":
            return _bag_class(o)
        case "attention":
            return _attention_class(o)
        case _:
            return nn.Module
    raise AssertionError(layer.kind)


def _bag_class(o: dict[str, Any]) -> type:
    from torch import nn

    class Bags(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bags = nn.ModuleList(nn.EmbeddingBag(o["rows"], o["width"], mode="sum") for _ in range(o["tables"]))

    return Bags


def _attention_class(o: dict[str, Any]) -> type:
    from torch import nn

    q, kv = o["heads"] * o["head_width"], o["kv_heads"] * o["head_width"]

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            if o["fused"]:
                self.qkv = nn.Linear(o["width"], q + 2 * kv, bias=o["bias"])
            else:
                self.query = nn.Linear(o["width"], q, bias=o["bias"])
                self.key = nn.Linear(o["width"], kv, bias=o["bias"])
                self.value = nn.Linear(o["width"], kv, bias=o["bias"])
            self.out = nn.Linear(q, o["width"], bias=o["bias"])

        def project(self, x: Any) -> tuple[Any, Any, Any]:
            parts = self.qkv(x).split((q, kv, kv), dim=-1) if o["fused"] else (self.query(x), self.key(x), self.value(x))
            return tuple(part.unflatten(-1, (-1, o["head_width"])).transpose(1, 2) for part in parts)

    return Attention


class TorchOps(Operators):
    """The operations that blocks are written in, over torch modules."""

    def __init__(self, training: bool) -> None:
        import torch
        import torch.nn.functional as functional

        self.training, self.torch, self.f = training, torch, functional

    def dense(self, layer: Any, x: Any) -> Any:
        return layer(x)

    norm = conv = batch_norm = up_conv = embedding = dense

    def activation(self, name: str, x: Any) -> Any:
        match name:
            case "gelu":
                return self.f.gelu(x)
            case "gelu_tanh":
                return self.f.gelu(x, approximate="tanh")
            case "gelu_new":
                return 0.5 * x * (1.0 + self.torch.tanh(sqrt(2.0 / 3.141592653589793) * (x + 0.044715 * self.torch.pow(x, 3.0))))
            case "silu":
                return self.f.silu(x)
            case "relu":
                return self.f.relu(x)
            case "relu6":
                return self.f.relu6(x)
            case "sigmoid":
                return self.torch.sigmoid(x)
            case "tanh":
                return self.torch.tanh(x)
            case _:
                return x

    def self_attention(self, layer: Any, x: Any, causal: bool, rotary: bool, cached: Any) -> Any:
        query, key, value = layer.project(x)
        if rotary:
            query, key = self._rotate(query, cached), self._rotate(key, cached)
        if cached is not None:
            key, value = self.torch.cat((cached[0], key), dim=2), self.torch.cat((cached[1], value), dim=2)
        o = layer.layer.options
        heads, kv_heads = dict(o)["heads"], dict(o)["kv_heads"]
        if kv_heads != heads:
            key, value = key.repeat_interleave(heads // kv_heads, dim=1), value.repeat_interleave(heads // kv_heads, dim=1)
        masked = causal and cached is None and x.shape[1] > 1
        attended = self.f.scaled_dot_product_attention(query, key, value, is_causal=masked)
        return layer.out(attended.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1))

    def _rotate(self, x: Any, cached: Any) -> Any:
        start = 0 if cached is None else cached[0].shape[2]
        width = x.shape[-1]
        frequency = 10000.0 ** (-self.torch.arange(0, width, 2, device=x.device, dtype=self.torch.float32) / width)
        angle = self.torch.outer(
            self.torch.arange(start, start + x.shape[2], device=x.device, dtype=self.torch.float32), frequency
        )
        angle = self.torch.cat((angle, angle), dim=-1)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        left, right = x[..., : width // 2], x[..., width // 2 :]
        return x * cos + self.torch.cat((-right, left), dim=-1) * sin

    def rows(self, layer: Any, count: int) -> Any:
        return layer.value[:count]

    def tied_head(self, layer: Any, x: Any) -> Any:
        return self.f.linear(x, layer.weight)

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        return self.f.cross_entropy(logits.reshape(-1, logits.shape[-1]).float(), labels.reshape(-1))

    def pixel_cross_entropy(self, logits: Any, labels: Any) -> Any:
        return self.f.cross_entropy(logits.float(), labels)

    def binary_cross_entropy(self, logits: Any, labels: Any) -> Any:
        return self.f.binary_cross_entropy_with_logits(logits[:, 0].float(), labels.float())

    def max_pool(self, x: Any, window: int, stride: int, padding: int) -> Any:
        return self.f.max_pool2d(x, window, stride, padding)

    def global_pool(self, x: Any) -> Any:
        return x.mean((2, 3))

    def join_channels(self, a: Any, b: Any) -> Any:
        return self.torch.cat((a, b), dim=1)

    def patches(self, layer: Any, x: Any) -> Any:
        return layer(x).flatten(2).transpose(1, 2)

    def prepend(self, layer: Any, x: Any) -> Any:
        return self.torch.cat((layer.value.expand(x.shape[0], -1, -1), x), dim=1)

    def join_vector(self, x: Any, vectors: Any) -> Any:
        return self.torch.cat((x[:, None], vectors), dim=1)

    def first_position(self, x: Any) -> Any:
        return x[:, 0]

    def bag(self, layer: Any, rows: Any) -> Any:
        return self.torch.stack([bag(rows[i]) for i, bag in enumerate(layer.bags)], dim=1)

    def lstm(self, layer: Any, x: Any) -> Any:
        return layer(x)[0]

    def interact(self, x: Any) -> Any:
        products = self.torch.bmm(x, x.transpose(1, 2))
        count = x.shape[1]
        low = self.torch.tril_indices(count, count, -1, device=x.device)
        return self.torch.cat((x[:, 0], products[:, low[0], low[1]]), dim=1)

    def scaled_matmul(self, x: Any, w: Any, scale: float) -> Any:
        return self.torch.matmul(x, w) * scale

    def scaled(self, a: Any, scale: float, into: Any) -> Any:
        return self.torch.mul(a, scale, out=into)

    def scaled_sum(self, a: Any, b: Any, scale: float, into: Any) -> Any:
        return self.torch.add(a, b, alpha=scale, out=into)

    def softmax(self, x: Any) -> Any:
        return self.f.softmax(x, dim=-1)

    def attention(self, query: Any, key: Any, value: Any, causal: bool) -> Any:
        heads_first = (each.transpose(1, 2) for each in (query, key, value))
        attended = self.f.scaled_dot_product_attention(*heads_first, is_causal=causal)
        return attended.transpose(1, 2).flatten(2)

    def multiply_add(self, x: Any, factor: Any, summand: Any) -> Any:
        return self.torch.addcmul(summand, x, factor)
