"""The answer that every runtime is held to: the same operations in numpy, float64, written to be right and not fast."""

from math import erf, sqrt
from typing import Any

import numpy as np

from probes.backends.operators import Operators
from probes.case import Case, Materials, cotangent, direction, materials
from probes.layers import Layer


def answer(case: Case) -> tuple[Any, float | None]:
    """Return the output of one forward pass, and the directional derivative of the loss when training.

    The derivative is a central difference in float64 along `direction`, so it owes nothing to anyone's autograd.
    """
    drawn = _wide(materials(case))
    output = _run(case, drawn)
    if not case.training:
        return output, None
    along = direction(drawn.weights[0], case.seed)
    step = 1e-7

    def loss(sign: float) -> float:
        moved = {
            name: {key: array + sign * step * along[name][key] for key, array in arrays.items()}
            for name, arrays in drawn.weights[0].items()
        }
        result = _run(case, Materials((moved, *drawn.weights[1:]), drawn.inputs))
        return float(result if case.ends_in_loss else (result * cotangent(result.shape, case.seed)).sum())

    return output, (loss(1) - loss(-1)) / (2 * step)


def _wide(drawn: Materials) -> Materials:
    def widen(array: Any) -> Any:
        return array.astype(np.float64) if array.dtype == np.float32 else array

    weights = tuple({n: {k: widen(a) for k, a in arrays.items()} for n, arrays in copy.items()} for copy in drawn.weights)
    return Materials(weights, {name: widen(array) for name, array in drawn.inputs.items()})


def _run(case: Case, drawn: Materials) -> Any:
    specs = case.block.layers(case.sizes)
    x = drawn.inputs["x"]
    for copy in drawn.weights:
        bound = {name: (spec, copy[name]) for name, spec in specs.items()}
        x = case.block.forward(ReferenceOps(case.training), bound, {**drawn.inputs, "x": x}, case.sizes)
    return np.asarray(x)


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class ReferenceOps(Operators):
    """Operations over (Layer, arrays) pairs."""

    def __init__(self, training: bool) -> None:
        self.training = training

    def dense(self, bound: tuple[Layer, Any], x: Any) -> Any:
        _, w = bound
        return x @ w["kernel"] + w.get("bias", 0.0)

    def norm(self, bound: tuple[Layer, Any], x: Any) -> Any:
        layer, w = bound
        if layer.option("kind") == "rms":
            return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.finfo(np.float32).eps) * w["scale"]
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w["scale"] + w["offset"]

    def conv(self, bound: tuple[Layer, Any], x: Any) -> Any:
        layer, w = bound
        kernel, stride, groups = layer.option("kernel"), layer.option("stride"), layer.option("groups")
        pad = kernel // 2 if stride != kernel else 0
        x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        height, width = (x.shape[1] - kernel) // stride + 1, (x.shape[2] - kernel) // stride + 1
        per_in, per_out = x.shape[3] // groups, layer.option("outputs") // groups
        out = np.zeros((x.shape[0], height, width, layer.option("outputs")))
        for i in range(kernel):
            for j in range(kernel):
                patch = x[:, i : i + stride * (height - 1) + 1 : stride, j : j + stride * (width - 1) + 1 : stride]
                for g in range(groups):
                    part = patch[..., g * per_in : (g + 1) * per_in]
                    out[..., g * per_out : (g + 1) * per_out] += part @ w["kernel"][i, j, :, g * per_out : (g + 1) * per_out]
        return out + w.get("bias", 0.0)

    def batch_norm(self, bound: tuple[Layer, Any], x: Any) -> Any:
        _, w = bound
        mean, variance = (x.mean((0, 1, 2)), x.var((0, 1, 2))) if self.training else (0.0, 1.0)
        return (x - mean) / np.sqrt(variance + 1e-5) * w["scale"] + w["offset"]

    def up_conv(self, bound: tuple[Layer, Any], x: Any) -> Any:
        _, w = bound
        batch, height, width, _ = x.shape
        grown = np.einsum("bhwi,kloi->bhkwlo", x, w["kernel"])
        return grown.reshape(batch, 2 * height, 2 * width, -1) + w["bias"]

    def embedding(self, bound: tuple[Layer, Any], tokens: Any) -> Any:
        return bound[1]["table"][tokens]

    def activation(self, name: str, x: Any) -> Any:
        match name:
            case "gelu":
                return 0.5 * x * (1 + np.vectorize(erf)(x / sqrt(2)))
            case "gelu_tanh" | "gelu_new":
                return 0.5 * x * (1 + np.tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
            case "silu":
                return x / (1 + np.exp(-x))
            case "relu":
                return np.maximum(x, 0)
            case "relu6":
                return np.clip(x, 0, 6)
            case "sigmoid":
                return 1 / (1 + np.exp(-x))
            case "tanh":
                return np.tanh(x)
            case _:
                return x

    def self_attention(self, bound: tuple[Layer, Any], x: Any, causal: bool, rotary: bool, cached: Any) -> Any:
        layer, w = bound
        heads, kv_heads, width = layer.option("heads"), layer.option("kv_heads"), layer.option("head_width")
        if layer.option("fused"):
            joint = x @ w["qkv_kernel"] + w.get("qkv_bias", 0.0)
            parts = np.split(joint, (heads * width, (heads + kv_heads) * width), axis=-1)
        else:
            parts = [x @ w[f"{n}_kernel"] + w.get(f"{n}_bias", 0.0) for n in ("query", "key", "value")]
        query, key, value = (p.reshape(*p.shape[:2], -1, width).transpose(0, 2, 1, 3) for p in parts)
        if rotary:
            start = 0 if cached is None else cached[0].shape[2]
            query, key = _rotate(query, start), _rotate(key, start)
        if cached is not None:
            key, value = np.concatenate((cached[0], key), 2), np.concatenate((cached[1], value), 2)
        key, value = np.repeat(key, heads // kv_heads, 1), np.repeat(value, heads // kv_heads, 1)
        scores = query @ key.transpose(0, 1, 3, 2) / sqrt(width)
        if causal and cached is None:
            scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
        attended = (_softmax(scores) @ value).transpose(0, 2, 1, 3).reshape(*x.shape[:2], -1)
        return attended @ w["out_kernel"] + w.get("out_bias", 0.0)

    def rows(self, bound: tuple[Layer, Any], count: int) -> Any:
        return bound[1]["value"][:count]

    def tied_head(self, bound: tuple[Layer, Any], x: Any) -> Any:
        return x @ bound[1]["table"].T

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        flat = _softmax(logits.reshape(-1, logits.shape[-1]))
        return -np.log(flat[np.arange(flat.shape[0]), labels.reshape(-1)]).mean()

    pixel_cross_entropy = cross_entropy

    def binary_cross_entropy(self, logits: Any, labels: Any) -> Any:
        z = logits[:, 0]
        return (np.logaddexp(0, z) - z * labels).mean()

    def max_pool(self, x: Any, window: int, stride: int, padding: int) -> Any:
        x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)), constant_values=-np.inf)
        height, width = (x.shape[1] - window) // stride + 1, (x.shape[2] - window) // stride + 1
        views = [
            x[:, i : i + stride * (height - 1) + 1 : stride, j : j + stride * (width - 1) + 1 : stride]
            for i in range(window)
            for j in range(window)
        ]
        return np.max(views, axis=0)

    def global_pool(self, x: Any) -> Any:
        return x.mean((1, 2))

    def join_channels(self, a: Any, b: Any) -> Any:
        return np.concatenate((a, b), -1)

    def patches(self, bound: tuple[Layer, Any], x: Any) -> Any:
        y = self.conv(bound, x)
        return y.reshape(y.shape[0], -1, y.shape[-1])

    def prepend(self, bound: tuple[Layer, Any], x: Any) -> Any:
        return np.concatenate((np.broadcast_to(bound[1]["value"], (x.shape[0], 1, x.shape[2])), x), 1)

    def join_vector(self, x: Any, vectors: Any) -> Any:
        return np.concatenate((x[:, None], vectors), 1)

    def first_position(self, x: Any) -> Any:
        return x[:, 0]

    def bag(self, bound: tuple[Layer, Any], rows: Any) -> Any:
        layer, w = bound
        return np.stack([w[f"table_{i}"][rows[i]].sum(1) for i in range(layer.option("tables"))], 1)

    def lstm(self, bound: tuple[Layer, Any], x: Any) -> Any:
        _, w = bound
        hidden = cell = np.zeros((x.shape[0], w["recurrent"].shape[0]))
        outputs = []
        for step in range(x.shape[1]):
            i, f, g, o = np.split(x[:, step] @ w["kernel"] + hidden @ w["recurrent"] + w["bias"], 4, -1)
            cell = cell / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
            hidden = np.tanh(cell) / (1 + np.exp(-o))
            outputs.append(hidden)
        return np.stack(outputs, 1)

    def interact(self, x: Any) -> Any:
        low = np.tril_indices(x.shape[1], -1)
        return np.concatenate((x[:, 0], (x @ x.transpose(0, 2, 1))[:, low[0], low[1]]), 1)

    def scaled_matmul(self, x: Any, w: Any, scale: float) -> Any:
        return x @ w * scale

    def softmax(self, x: Any) -> Any:
        return _softmax(x)

    def attention(self, query: Any, key: Any, value: Any, causal: bool) -> Any:
        query, key, value = (each.transpose(0, 2, 1, 3) for each in (query, key, value))
        scores = query @ key.transpose(0, 1, 3, 2) / sqrt(query.shape[-1])
        if causal:
            scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
        attended = (_softmax(scores) @ value).transpose(0, 2, 1, 3)
        return attended.reshape(*attended.shape[:2], -1)


def _rotate(x: Any, start: int) -> Any:
    width = x.shape[-1]
    frequency = 10000.0 ** (-np.arange(0, width, 2) / width)
    angle = np.outer(np.arange(start, start + x.shape[2]), frequency)
    angle = np.concatenate((angle, angle), -1)
    left, right = x[..., : width // 2], x[..., width // 2 :]
    return x * np.cos(angle) + np.concatenate((-right, left), -1) * np.sin(angle)
