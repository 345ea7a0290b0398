"""The operations that blocks are written in, over keras layers and `keras.ops`."""

from typing import Any

from probes.backends.operators import Operators


class KerasOps(Operators):
    """One call of one copy."""

    def __init__(self, keras: Any, training: bool) -> None:
        self.training, self.keras, self.ops = training, keras, keras.ops

    def dense(self, layer: Any, x: Any) -> Any:
        return layer(x)

    norm = up_conv = embedding = bag = lstm = dense

    def conv(self, layer: Any, x: Any) -> Any:
        return layer(layer.tandem_pad(x) if layer.tandem_pad is not None else x)

    def batch_norm(self, layer: Any, x: Any) -> Any:
        return layer(x, training=self.training)

    def activation(self, name: str, x: Any) -> Any:
        activations = self.keras.activations
        match name:
            case "gelu":
                return activations.gelu(x, approximate=False)
            case "gelu_tanh" | "gelu_new":
                return activations.gelu(x, approximate=True)
            case "none":
                return x
            case _:
                return activations.get(name)(x)

    def self_attention(self, layer: Any, x: Any, causal: bool, rotary: bool, cached: Any) -> Any:
        if not rotary and cached is None:
            return layer(x, x, use_causal_mask=causal)
        ops, o = self.ops, dict(layer.tandem_layer.options)
        query, key, value = layer._query_dense(x), layer._key_dense(x), layer._value_dense(x)
        if rotary:
            start = 0 if cached is None else cached[0].shape[2]
            query, key = self._rotate(query, start), self._rotate(key, start)
        if cached is not None:
            past = [ops.transpose(c, (0, 2, 1, 3)) for c in cached]
            key, value = ops.concatenate((past[0], key), 1), ops.concatenate((past[1], value), 1)
        if o["kv_heads"] != o["heads"]:
            groups = o["heads"] // o["kv_heads"]
            key, value = ops.repeat(key, groups, 2), ops.repeat(value, groups, 2)
        masked = causal and cached is None and x.shape[1] > 1
        return layer._output_dense(ops.dot_product_attention(query, key, value, is_causal=masked))

    def _rotate(self, x: Any, start: int) -> Any:
        ops, width = self.ops, x.shape[-1]
        frequency = 10000.0 ** (-ops.arange(0, width, 2, dtype="float32") / width)
        angle = ops.outer(ops.arange(start, start + x.shape[1], dtype="float32"), frequency)
        angle = ops.concatenate((angle, angle), -1)[:, None, :]
        left, right = x[..., : width // 2], x[..., width // 2 :]
        return x * ops.cast(ops.cos(angle), x.dtype) + ops.concatenate((-right, left), -1) * ops.cast(ops.sin(angle), x.dtype)

    def rows(self, layer: Any, count: int) -> Any:
        return layer.value[:count]

    def tied_head(self, layer: Any, x: Any) -> Any:
        return self.ops.matmul(x, self.ops.transpose(layer.embeddings))

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        return self.ops.mean(self.keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True))

    pixel_cross_entropy = cross_entropy

    def binary_cross_entropy(self, logits: Any, labels: Any) -> Any:
        return self.ops.mean(self.keras.losses.binary_crossentropy(labels[:, None], logits, from_logits=True))

    def max_pool(self, x: Any, window: int, stride: int, padding: int) -> Any:
        if padding:
            x = self.ops.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)), constant_values=-3e38)
        return self.ops.max_pool(x, window, stride, "valid")

    def global_pool(self, x: Any) -> Any:
        return self.ops.mean(x, (1, 2))

    def join_channels(self, a: Any, b: Any) -> Any:
        return self.ops.concatenate((a, b), -1)

    def patches(self, layer: Any, x: Any) -> Any:
        y = self.conv(layer, x)
        return self.ops.reshape(y, (y.shape[0], -1, y.shape[-1]))

    def prepend(self, layer: Any, x: Any) -> Any:
        first = self.ops.broadcast_to(layer.value, (x.shape[0], 1, x.shape[2]))
        return self.ops.concatenate((first, x), 1)

    def join_vector(self, x: Any, vectors: Any) -> Any:
        return self.ops.concatenate((x[:, None], vectors), 1)

    def first_position(self, x: Any) -> Any:
        return x[:, 0]

    def interact(self, x: Any) -> Any:
        ops = self.ops
        products = ops.matmul(x, ops.transpose(x, (0, 2, 1)))
        count = x.shape[1]
        flat = [i * count + j for i in range(count) for j in range(i)]
        low = ops.take(ops.reshape(products, (-1, count * count)), flat, axis=1)
        return ops.concatenate((x[:, 0], low), 1)

    def scaled_matmul(self, x: Any, w: Any, scale: float) -> Any:
        return self.ops.matmul(x, w) * scale

    def softmax(self, x: Any) -> Any:
        return self.keras.activations.softmax(x)

    def attention(self, query: Any, key: Any, value: Any, causal: bool) -> Any:
        attended = self.ops.dot_product_attention(query, key, value, is_causal=causal)
        return self.ops.reshape(attended, (*query.shape[:2], query.shape[2] * query.shape[3]))

    def gather(self, x: Any, places: Any) -> Any:
        return self.ops.take(x, places, axis=0)
