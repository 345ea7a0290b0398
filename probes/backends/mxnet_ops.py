"""The operations that blocks are written in, over Gluon blocks; `F` is `mx.nd` or, while a graph is made, `mx.sym`.

A graph is made without shapes, so nothing here asks for one: reshapes use MXNet's own codes (0 keeps a dimension, -1 takes the
rest, -3 joins two, -4 parts one), and what depends on a length is made like an array that has it.
"""

from math import log, sqrt
from typing import Any

from probes.backends.mxnet_layers import Bound
from probes.backends.operators import Operators

HIDDEN = 1e9
"""Taken from the scores of positions that a mask hides."""


class MxnetOps(Operators):
    """One use of one copy, over arrays or over symbols."""

    def __init__(self, f: Any, is_symbol: bool, training: bool) -> None:
        self.f, self.is_symbol, self.training = f, is_symbol, training

    def _value(self, bound: Bound, key: str) -> Any:
        parameter = bound.parameters[key]
        return parameter.var() if self.is_symbol else parameter.data()

    def dense(self, bound: Bound, x: Any) -> Any:
        (block,) = bound.blocks.values()
        return block(x)

    conv = batch_norm = up_conv = embedding = lstm = dense

    def norm(self, bound: Bound, x: Any) -> Any:
        if bound.layer.option("kind") == "layer":
            return self.dense(bound, x)
        mean = self.f.mean(self.f.square(x), axis=-1, keepdims=True)
        return self.f.broadcast_mul(self.f.broadcast_mul(x, self.f.rsqrt(mean + 1.1920929e-07)), self._value(bound, "scale"))

    def activation(self, name: str, x: Any) -> Any:
        f = self.f
        match name:
            case "gelu":
                return f.LeakyReLU(x, act_type="gelu")
            case "gelu_tanh" | "gelu_new":
                return 0.5 * x * (1.0 + f.tanh(sqrt(2.0 / 3.141592653589793) * (x + 0.044715 * x * x * x)))
            case "silu":
                return x * f.sigmoid(x)
            case "relu":
                return f.relu(x)
            case "relu6":
                return f.clip(x, 0, 6)
            case "sigmoid":
                return f.sigmoid(x)
            case "tanh":
                return f.tanh(x)
            case _:
                return x

    def self_attention(self, bound: Bound, x: Any, causal: bool, rotary: bool, cached: Any) -> Any:
        f, layer = self.f, bound.layer
        heads, kv_heads, width = layer.option("heads"), layer.option("kv_heads"), layer.option("head_width")
        query, key, value = (self._heads(part, width) for part in self._project(bound, x))
        if rotary:
            query, key = self._rotate(query, width, cached), self._rotate(key, width, cached)
        if cached is not None:
            key, value = f.concat(cached[0], key, dim=2), f.concat(cached[1], value, dim=2)
        if kv_heads != heads:
            key, value = f.repeat(key, heads // kv_heads, axis=1), f.repeat(value, heads // kv_heads, axis=1)
        query, key, value = (f.reshape(part, shape=(-3, 0, 0)) for part in (query, key, value))
        scores = f.batch_dot(query, key, transpose_b=True) * (1 / sqrt(width))
        if causal and cached is None:
            scores = self._causal(scores)
        attended = f.reshape(f.batch_dot(f.softmax(scores, axis=-1), value), shape=(-4, -1, heads, 0, 0))
        return bound.blocks[self._named(bound, "out")](f.reshape(f.transpose(attended, axes=(0, 2, 1, 3)), shape=(0, 0, -1)))

    def _named(self, bound: Bound, part: str) -> str:
        return next(name for name in bound.blocks if name.endswith(f"_{part}"))

    def _project(self, bound: Bound, x: Any) -> list[Any]:
        layer = bound.layer
        if not layer.option("fused"):
            return [bound.blocks[self._named(bound, part)](x) for part in ("query", "key", "value")]
        joint = bound.blocks[self._named(bound, "qkv")](x)
        q, kv = (layer.option(name) * layer.option("head_width") for name in ("heads", "kv_heads"))
        ends = ((0, q), (q, q + kv), (q + kv, q + 2 * kv))
        return [self.f.slice_axis(joint, axis=-1, begin=begin, end=end) for begin, end in ends]

    def _heads(self, x: Any, width: int) -> Any:
        return self.f.transpose(self.f.reshape(x, shape=(0, 0, -1, width)), axes=(0, 2, 1, 3))

    def _causal(self, scores: Any) -> Any:
        f = self.f
        rows = f.expand_dims(f.contrib.arange_like(scores, axis=1), axis=1)
        columns = f.expand_dims(f.contrib.arange_like(scores, axis=2), axis=0)
        hidden = f.broadcast_lesser(rows, columns) * -HIDDEN
        return f.broadcast_add(scores, f.expand_dims(hidden, axis=0))

    def _rotate(self, x: Any, width: int, cached: Any) -> Any:
        f = self.f
        position = f.contrib.arange_like(x, axis=2)
        if cached is not None:
            position = f.broadcast_add(position, f.sum(f.ones_like(f.contrib.arange_like(cached[0], axis=2))))
        frequency = f.exp(f.arange(0, width, 2) * (-log(10000.0) / width))
        angle = f.broadcast_mul(f.expand_dims(position, axis=1), f.expand_dims(frequency, axis=0))
        angle = f.expand_dims(f.expand_dims(f.concat(angle, angle, dim=1), axis=0), axis=0)
        left = f.slice_axis(x, axis=3, begin=0, end=width // 2)
        right = f.slice_axis(x, axis=3, begin=width // 2, end=width)
        turned = f.concat(-right, left, dim=3)
        return f.broadcast_mul(x, f.cos(angle)) + f.broadcast_mul(turned, f.sin(angle))

    def rows(self, bound: Bound, count: int) -> Any:
        return self.f.slice_axis(self._value(bound, "value"), axis=0, begin=0, end=count)

    def add(self, a: Any, b: Any) -> Any:
        return self.f.broadcast_add(a, b)

    def multiply(self, a: Any, b: Any) -> Any:
        return self.f.broadcast_mul(a, b)

    def tied_head(self, bound: Bound, x: Any) -> Any:
        table = self._value(bound, "table")
        return self.f.FullyConnected(x, table, no_bias=True, num_hidden=bound.layer.option("rows"), flatten=False)

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        return self._cross_entropy(logits, labels, -1)

    def pixel_cross_entropy(self, logits: Any, labels: Any) -> Any:
        return self._cross_entropy(logits, labels, 1)

    def _cross_entropy(self, logits: Any, labels: Any, axis: int) -> Any:
        return self.f.mean(-self.f.pick(self.f.log_softmax(logits, axis=axis), labels, axis=axis))

    def binary_cross_entropy(self, logits: Any, labels: Any) -> Any:
        f = self.f
        z = f.squeeze(f.slice_axis(logits, axis=1, begin=0, end=1), axis=1)
        return f.mean(f.relu(z) - z * f.cast(labels, dtype="float32") + f.Activation(-f.abs(z), act_type="softrelu"))

    def max_pool(self, x: Any, window: int, stride: int, padding: int) -> Any:
        sizes = {"kernel": (window, window), "stride": (stride, stride), "pad": (padding, padding)}
        return self.f.Pooling(x, pool_type="max", **sizes)

    def global_pool(self, x: Any) -> Any:
        return self.f.mean(x, axis=(2, 3))

    def join_channels(self, a: Any, b: Any) -> Any:
        return self.f.concat(a, b, dim=1)

    def patches(self, bound: Bound, x: Any) -> Any:
        return self.f.transpose(self.f.reshape(self.conv(bound, x), shape=(0, 0, -1)), axes=(0, 2, 1))

    def prepend(self, bound: Bound, x: Any) -> Any:
        f = self.f
        first = f.expand_dims(self._value(bound, "value"), axis=0)
        return f.concat(f.broadcast_like(first, x, lhs_axes=(0,), rhs_axes=(0,)), x, dim=1)

    def join_vector(self, x: Any, vectors: Any) -> Any:
        return self.f.concat(self.f.expand_dims(x, axis=1), vectors, dim=1)

    def first_position(self, x: Any) -> Any:
        return self.f.squeeze(self.f.slice_axis(x, axis=1, begin=0, end=1), axis=1)

    def bag(self, bound: Bound, rows: Any) -> Any:
        f = self.f
        sums = []
        for i, table in enumerate(bound.blocks.values()):
            own = f.squeeze(f.slice_axis(rows, axis=0, begin=i, end=i + 1), axis=0)
            sums.append(f.sum(table(own), axis=1))
        return f.stack(*sums, axis=1)

    def interact(self, x: Any) -> Any:
        products = self.f.batch_dot(x, x, transpose_b=True)
        return self.f.concat(self.first_position(x), self.f.linalg.extracttrian(products, offset=-1), dim=1)

    def scaled_matmul(self, x: Any, w: Any, scale: float) -> Any:
        return self.f.linalg.gemm2(x, w) * scale

    def softmax(self, x: Any) -> Any:
        return self.f.softmax(x, axis=-1)

    def attention(self, query: Any, key: Any, value: Any, causal: bool) -> Any:
        f, width = self.f, self.f.contrib.arange_like(query, axis=3)
        query, key, value = (f.transpose(each, axes=(0, 2, 1, 3)) for each in (query, key, value))
        scores = f.linalg.gemm2(query, key, transpose_b=True)
        scores = f.broadcast_mul(scores, f.rsqrt(f.reshape(f.sum(f.ones_like(width)), shape=(1, 1, 1, 1))))
        if causal:
            rows = f.expand_dims(f.contrib.arange_like(scores, axis=2), axis=1)
            columns = f.expand_dims(f.contrib.arange_like(scores, axis=3), axis=0)
            hidden = f.broadcast_lesser(rows, columns) * -HIDDEN
            scores = f.broadcast_add(scores, f.expand_dims(f.expand_dims(hidden, axis=0), axis=0))
        attended = f.linalg.gemm2(f.softmax(scores, axis=-1), value)
        return f.reshape(f.transpose(attended, axes=(0, 2, 1, 3)), shape=(0, 0, -1))

    def multiply_add(self, x: Any, factor: Any, summand: Any) -> Any:
        return self.f.broadcast_add(self.f.broadcast_mul(x, factor), summand)

    def gather(self, x: Any, places: Any) -> Any:
        return self.f.take(x, places)
