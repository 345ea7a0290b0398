"""The operations that blocks are written in, over plain TensorFlow."""

from math import sqrt
from typing import Any, NamedTuple

from probes.backends.operators import Operators
from probes.layers import Layer


class Bound(NamedTuple):
    """A layer with its variables and, for a batch norm, its running mean and variance."""

    layer: Layer
    w: Any
    running: Any


class TensorflowOps(Operators):
    """One use of one copy."""

    def __init__(self, training: bool) -> None:
        import tensorflow as tf

        self.training, self.tf = training, tf

    def bind(self, layer: Layer, w: Any, running: Any) -> Bound:
        """Join a layer with its variables."""
        return Bound(layer, w, running)

    def dense(self, b: Bound, x: Any) -> Any:
        y = self._matmul(x, b.w["kernel"])
        return self.tf.nn.bias_add(y, b.w["bias"]) if "bias" in b.w else y

    def _matmul(self, x: Any, kernel: Any) -> Any:
        if len(x.shape) == 2:
            return self.tf.matmul(x, kernel)
        flat = self.tf.matmul(self.tf.reshape(x, (-1, x.shape[-1])), kernel)
        return self.tf.reshape(flat, (*x.shape[:-1], kernel.shape[-1]))

    def norm(self, b: Bound, x: Any) -> Any:
        tf = self.tf
        if b.layer.option("kind") == "rms":
            return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1.1920929e-07) * b.w["scale"]
        mean, variance = tf.nn.moments(x, -1, keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, b.w["offset"], b.w["scale"], 1e-5)

    def conv(self, b: Bound, x: Any) -> Any:
        tf = self.tf
        kernel, stride, groups = (b.layer.option(n) for n in ("kernel", "stride", "groups"))
        pad = kernel // 2 if stride != kernel else 0
        if groups > 1:
            return self._depthwise(b, x, stride, pad)
        y = tf.nn.conv2d(x, b.w["kernel"], stride, [[0, 0], [pad, pad], [pad, pad], [0, 0]])
        return tf.nn.bias_add(y, b.w["bias"]) if "bias" in b.w else y

    def _depthwise(self, b: Bound, x: Any, stride: int, pad: int) -> Any:
        kernel = self.tf.transpose(b.w["kernel"], (0, 1, 3, 2))
        if stride == 1:
            return self.tf.nn.depthwise_conv2d(x, kernel, (1, 1, 1, 1), "SAME")
        x = self.tf.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        return self.tf.nn.depthwise_conv2d(x, kernel, (1, stride, stride, 1), "VALID")

    def batch_norm(self, b: Bound, x: Any) -> Any:
        tf = self.tf
        mean, variance = b.running
        if not self.training:
            return tf.compat.v1.nn.fused_batch_norm(x, b.w["scale"], b.w["offset"], mean, variance, 1e-5, is_training=False)[0]
        y, batch_mean, batch_variance = tf.compat.v1.nn.fused_batch_norm(
            x, b.w["scale"], b.w["offset"], epsilon=1e-5, is_training=True
        )
        mean.assign(0.9 * mean + 0.1 * batch_mean)
        variance.assign(0.9 * variance + 0.1 * batch_variance)
        return y

    def up_conv(self, b: Bound, x: Any) -> Any:
        batch, height, width, _ = x.shape
        shape = (batch, 2 * height, 2 * width, b.layer.option("outputs"))
        return self.tf.nn.bias_add(self.tf.nn.conv2d_transpose(x, b.w["kernel"], shape, 2, "VALID"), b.w["bias"])

    def embedding(self, b: Bound, tokens: Any) -> Any:
        return self.tf.nn.embedding_lookup(b.w["table"], tokens)

    def activation(self, name: str, x: Any) -> Any:
        nn = self.tf.nn
        match name:
            case "gelu":
                return nn.gelu(x)
            case "gelu_tanh" | "gelu_new":
                return nn.gelu(x, approximate=True)
            case "silu":
                return nn.silu(x)
            case "relu":
                return nn.relu(x)
            case "relu6":
                return nn.relu6(x)
            case "sigmoid":
                return nn.sigmoid(x)
            case "tanh":
                return self.tf.tanh(x)
            case _:
                return x

    def self_attention(self, b: Bound, x: Any, causal: bool, rotary: bool, cached: Any) -> Any:
        tf = self.tf
        heads, kv_heads, width = (b.layer.option(n) for n in ("heads", "kv_heads", "head_width"))
        query, key, value = self._project(b, x, heads, kv_heads, width)
        if rotary:
            start = 0 if cached is None else cached[0].shape[2]
            query, key = self._rotate(query, start), self._rotate(key, start)
        if cached is not None:
            key, value = tf.concat((cached[0], key), 2), tf.concat((cached[1], value), 2)
        if kv_heads != heads:
            key, value = tf.repeat(key, heads // kv_heads, 1), tf.repeat(value, heads // kv_heads, 1)
        scores = tf.matmul(query, key, transpose_b=True) * (1 / sqrt(width))
        if causal and cached is None and x.shape[1] > 1:
            allowed = tf.linalg.band_part(tf.ones(scores.shape[-2:], tf.bool), -1, 0)
            scores = tf.where(allowed, scores, tf.cast(-1e9, scores.dtype))
        attended = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), (0, 2, 1, 3))
        y = self._matmul(tf.reshape(attended, (*x.shape[:2], heads * width)), b.w["out_kernel"])
        return tf.nn.bias_add(y, b.w["out_bias"]) if "out_bias" in b.w else y

    def _project(self, b: Bound, x: Any, heads: int, kv_heads: int, width: int) -> list[Any]:
        tf = self.tf

        def one(name: str) -> Any:
            y = self._matmul(x, b.w[f"{name}_kernel"])
            return tf.nn.bias_add(y, b.w[f"{name}_bias"]) if f"{name}_bias" in b.w else y

        if b.layer.option("fused"):
            parts = tf.split(one("qkv"), (heads * width, kv_heads * width, kv_heads * width), axis=-1)
        else:
            parts = [one(name) for name in ("query", "key", "value")]
        return [tf.transpose(tf.reshape(p, (*p.shape[:2], p.shape[-1] // width, width)), (0, 2, 1, 3)) for p in parts]

    def _rotate(self, x: Any, start: int) -> Any:
        tf = self.tf
        width = x.shape[-1]
        frequency = 10000.0 ** (-tf.range(0, width, 2, dtype=tf.float32) / width)
        angle = tf.tensordot(tf.range(start, start + x.shape[2], dtype=tf.float32), frequency, 0)
        angle = tf.concat((angle, angle), -1)
        left, right = x[..., : width // 2], x[..., width // 2 :]
        return x * tf.cast(tf.cos(angle), x.dtype) + tf.concat((-right, left), -1) * tf.cast(tf.sin(angle), x.dtype)

    def rows(self, b: Bound, count: int) -> Any:
        return b.w["value"][:count]

    def tied_head(self, b: Bound, x: Any) -> Any:
        flat = self.tf.matmul(self.tf.reshape(x, (-1, x.shape[-1])), b.w["table"], transpose_b=True)
        return self.tf.reshape(flat, (*x.shape[:-1], flat.shape[-1]))

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        tf = self.tf
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(logits, tf.float32)))

    pixel_cross_entropy = cross_entropy

    def binary_cross_entropy(self, logits: Any, labels: Any) -> Any:
        tf = self.tf
        return tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(labels, tf.float32), tf.cast(logits[:, 0], tf.float32))
        )

    def max_pool(self, x: Any, window: int, stride: int, padding: int) -> Any:
        if padding:
            x = self.tf.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)), constant_values=x.dtype.min)
        return self.tf.nn.max_pool2d(x, window, stride, "VALID")

    def global_pool(self, x: Any) -> Any:
        return self.tf.reduce_mean(x, (1, 2))

    def join_channels(self, a: Any, b: Any) -> Any:
        return self.tf.concat((a, b), -1)

    def patches(self, b: Bound, x: Any) -> Any:
        y = self.conv(b, x)
        return self.tf.reshape(y, (y.shape[0], -1, y.shape[-1]))

    def prepend(self, b: Bound, x: Any) -> Any:
        first = self.tf.broadcast_to(b.w["value"], (x.shape[0], 1, x.shape[2]))
        return self.tf.concat((first, x), 1)

    def join_vector(self, x: Any, vectors: Any) -> Any:
        return self.tf.concat((x[:, None], vectors), 1)

    def first_position(self, x: Any) -> Any:
        return x[:, 0]

    def bag(self, b: Bound, rows: Any) -> Any:
        tf = self.tf
        tables = range(b.layer.option("tables"))
        return tf.stack([tf.reduce_sum(tf.nn.embedding_lookup(b.w[f"table_{i}"], rows[i]), 1) for i in tables], 1)

    def lstm(self, b: Bound, x: Any) -> Any:
        tf = self.tf
        recurrent = b.w["recurrent"]
        hidden_width, length = recurrent.shape[0], x.shape[1]
        projected = tf.transpose(tf.nn.bias_add(self._matmul(x, b.w["kernel"]), b.w["bias"]), (1, 0, 2))
        zero = tf.zeros((x.shape[0], hidden_width), x.dtype)

        def step(at: Any, hidden: Any, cell: Any, outputs: Any) -> Any:
            i, f, g, o = tf.split(projected[at] + tf.matmul(hidden, recurrent), 4, -1)
            cell = tf.sigmoid(f) * cell + tf.sigmoid(i) * tf.tanh(g)
            hidden = tf.sigmoid(o) * tf.tanh(cell)
            return at + 1, hidden, cell, outputs.write(at, hidden)

        outputs = tf.TensorArray(x.dtype, length, element_shape=zero.shape)
        *_, outputs = tf.while_loop(lambda at, *_: at < length, step, (0, zero, zero, outputs), maximum_iterations=length)
        return tf.transpose(outputs.stack(), (1, 0, 2))

    def interact(self, x: Any) -> Any:
        tf = self.tf
        products = tf.matmul(x, x, transpose_b=True)
        count = x.shape[1]
        flat = [i * count + j for i in range(count) for j in range(i)]
        low = tf.gather(tf.reshape(products, (-1, count * count)), flat, axis=1)
        return tf.concat((x[:, 0], low), 1)

    def scaled_matmul(self, x: Any, w: Any, scale: float) -> Any:
        return self.tf.matmul(x, w) * scale

    def softmax(self, x: Any) -> Any:
        return self.tf.nn.softmax(x, axis=-1)

    def attention(self, query: Any, key: Any, value: Any, causal: bool) -> Any:
        tf = self.tf
        query, key, value = (tf.transpose(each, (0, 2, 1, 3)) for each in (query, key, value))
        scores = tf.matmul(query, key, transpose_b=True) * (1 / sqrt(query.shape[-1]))
        if causal:
            allowed = tf.linalg.band_part(tf.ones(scores.shape[-2:], tf.bool), -1, 0)
            scores = tf.where(allowed, scores, tf.cast(-1e9, scores.dtype))
        attended = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), (0, 2, 1, 3))
        return tf.reshape(attended, (*attended.shape[:2], attended.shape[2] * attended.shape[3]))

    def gather(self, x: Any, places: Any) -> Any:
        return self.tf.gather(x, places)
