"""The operations that blocks are written in, over jax arrays."""

from typing import Any, NamedTuple

from probes.backends.operators import Operators
from probes.layers import Layer

_IMAGE = ("NHWC", "HWIO", "NHWC")


class Bound(NamedTuple):
    """A layer with its arrays and, for a batch norm, its running mean and variance."""

    name: str
    layer: Layer
    w: Any
    running: Any


class JaxOps(Operators):
    """One use of one copy; `updated` collects new running statistics while tracing."""

    def __init__(self, training: bool) -> None:
        import jax

        self.training, self.jax, self.np, self.nn = training, jax, jax.numpy, jax.nn
        self.updated: dict[str, Any] = {}

    def bind(self, name: str, layer: Layer, w: Any, running: Any) -> Bound:
        """Join a layer with its arrays."""
        return Bound(name, layer, w, running)

    def dense(self, b: Bound, x: Any) -> Any:
        y = x @ b.w["kernel"]
        return y + b.w["bias"] if "bias" in b.w else y

    def norm(self, b: Bound, x: Any) -> Any:
        if b.layer.option("kind") == "rms":
            return x * self.jax.lax.rsqrt(self.np.mean(x * x, -1, keepdims=True) + 1.1920929e-07) * b.w["scale"]
        mean = self.np.mean(x, -1, keepdims=True)
        variance = self.np.mean(self.np.square(x), -1, keepdims=True) - self.np.square(mean)
        return (x - mean) * self.jax.lax.rsqrt(variance + 1e-5) * b.w["scale"] + b.w["offset"]

    def conv(self, b: Bound, x: Any) -> Any:
        kernel, stride = b.layer.option("kernel"), b.layer.option("stride")
        pad = kernel // 2 if stride != kernel else 0
        y = self.jax.lax.conv_general_dilated(
            x,
            b.w["kernel"],
            (stride, stride),
            ((pad, pad), (pad, pad)),
            dimension_numbers=_IMAGE,
            feature_group_count=b.layer.option("groups"),
        )
        return y + b.w["bias"] if "bias" in b.w else y

    def batch_norm(self, b: Bound, x: Any) -> Any:
        mean, variance = b.running
        if self.training:
            old = b.running
            mean = self.np.mean(x, (0, 1, 2))
            variance = self.np.mean(self.np.square(x), (0, 1, 2)) - self.np.square(mean)
            self.updated[b.name] = (0.9 * old[0] + 0.1 * mean, 0.9 * old[1] + 0.1 * variance)
        return (x - mean) * (self.jax.lax.rsqrt(variance + 1e-5) * b.w["scale"]) + b.w["offset"]

    def up_conv(self, b: Bound, x: Any) -> Any:
        kernel = b.w["kernel"]
        y = self.jax.lax.conv_transpose(
            x,
            kernel,
            (2, 2),
            "VALID",
            dimension_numbers=_IMAGE,
            transpose_kernel=True,
        )
        return y + b.w["bias"]

    def embedding(self, b: Bound, tokens: Any) -> Any:
        return self.np.take(b.w["table"], tokens, axis=0)

    def activation(self, name: str, x: Any) -> Any:
        match name:
            case "gelu":
                return self.nn.gelu(x, approximate=False)
            case "gelu_tanh" | "gelu_new":
                return self.nn.gelu(x, approximate=True)
            case "silu":
                return self.nn.silu(x)
            case "relu":
                return self.nn.relu(x)
            case "relu6":
                return self.nn.relu6(x)
            case "sigmoid":
                return self.nn.sigmoid(x)
            case "tanh":
                return self.np.tanh(x)
            case _:
                return x

    def self_attention(self, b: Bound, x: Any, causal: bool, rotary: bool, cached: Any) -> Any:
        heads, kv_heads, width = (b.layer.option(n) for n in ("heads", "kv_heads", "head_width"))
        query, key, value = self._project(b, x, heads, kv_heads, width)
        if rotary:
            start = 0 if cached is None else cached[0].shape[2]
            query, key = self._rotate(query, start), self._rotate(key, start)
        if cached is not None:
            past_key, past_value = (self.np.swapaxes(c, 1, 2) for c in cached)
            key, value = self.np.concatenate((past_key, key), 1), self.np.concatenate((past_value, value), 1)
        masked = causal and cached is None and x.shape[1] > 1
        attended = self.nn.dot_product_attention(query, key, value, is_causal=masked)
        y = attended.reshape(*x.shape[:2], -1) @ b.w["out_kernel"]
        return y + b.w["out_bias"] if "out_bias" in b.w else y

    def _project(self, b: Bound, x: Any, heads: int, kv_heads: int, width: int) -> Any:
        def one(name: str) -> Any:
            y = x @ b.w[f"{name}_kernel"]
            return y + b.w[f"{name}_bias"] if f"{name}_bias" in b.w else y

        if b.layer.option("fused"):
            parts = self.np.split(one("qkv"), (heads * width, (heads + kv_heads) * width), axis=-1)
        else:
            parts = [one(name) for name in ("query", "key", "value")]
        return [part.reshape(*part.shape[:2], -1, width) for part in parts]

    def _rotate(self, x: Any, start: int) -> Any:
        width = x.shape[-1]
        frequency = 10000.0 ** (-self.np.arange(0, width, 2) / width)
        angle = self.np.outer(self.np.arange(start, start + x.shape[1]), frequency)
        angle = self.np.concatenate((angle, angle), -1)[:, None, :]
        left, right = x[..., : width // 2], x[..., width // 2 :]
        turned = self.np.concatenate((-right, left), -1)
        return (x * self.np.cos(angle) + turned * self.np.sin(angle)).astype(x.dtype)

    def rows(self, b: Bound, count: int) -> Any:
        return b.w["value"][:count]

    def tied_head(self, b: Bound, x: Any) -> Any:
        return x @ b.w["table"].T

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        logged = self.nn.log_softmax(logits.astype(self.np.float32))
        return -self.np.mean(self.np.take_along_axis(logged, labels[..., None], -1))

    pixel_cross_entropy = cross_entropy

    def binary_cross_entropy(self, logits: Any, labels: Any) -> Any:
        z = logits[:, 0].astype(self.np.float32)
        return self.np.mean(self.np.logaddexp(0.0, z) - z * labels)

    def max_pool(self, x: Any, window: int, stride: int, padding: int) -> Any:
        pads = ((0, 0), (padding, padding), (padding, padding), (0, 0))
        return self.jax.lax.reduce_window(
            x, -float("inf"), self.jax.lax.max, (1, window, window, 1), (1, stride, stride, 1), pads
        )

    def global_pool(self, x: Any) -> Any:
        return self.np.mean(x, (1, 2))

    def join_channels(self, a: Any, b: Any) -> Any:
        return self.np.concatenate((a, b), -1)

    def patches(self, b: Bound, x: Any) -> Any:
        y = self.conv(b, x)
        return y.reshape(y.shape[0], -1, y.shape[-1])

    def prepend(self, b: Bound, x: Any) -> Any:
        return self.np.concatenate((self.np.broadcast_to(b.w["value"], (x.shape[0], 1, x.shape[2])), x), 1)

    def join_vector(self, x: Any, vectors: Any) -> Any:
        return self.np.concatenate((x[:, None], vectors), 1)

    def first_position(self, x: Any) -> Any:
        return x[:, 0]

    def bag(self, b: Bound, rows: Any) -> Any:
        tables = range(b.layer.option("tables"))
        return self.np.stack([self.np.take(b.w[f"table_{i}"], rows[i], axis=0).sum(1) for i in tables], 1)

    def lstm(self, b: Bound, x: Any) -> Any:
        recurrent = b.w["recurrent"]
        projected = x @ b.w["kernel"] + b.w["bias"]

        def step(carry: Any, at: Any) -> Any:
            hidden, cell = carry
            i, f, g, o = self.np.split(at + hidden @ recurrent, 4, -1)
            cell = self.nn.sigmoid(f) * cell + self.nn.sigmoid(i) * self.np.tanh(g)
            hidden = self.nn.sigmoid(o) * self.np.tanh(cell)
            return (hidden, cell), hidden

        zero = self.np.zeros((x.shape[0], recurrent.shape[0]), x.dtype)
        _, outputs = self.jax.lax.scan(step, (zero, zero), self.np.swapaxes(projected, 0, 1))
        return self.np.swapaxes(outputs, 0, 1)

    def interact(self, x: Any) -> Any:
        products = self.np.einsum("bfw,bgw->bfg", x, x)
        rows, columns = self.np.tril_indices(x.shape[1], -1)
        return self.np.concatenate((x[:, 0], products[:, rows, columns]), 1)

    def scaled_matmul(self, x: Any, w: Any, scale: float) -> Any:
        return (x @ w) * scale

    def softmax(self, x: Any) -> Any:
        return self.nn.softmax(x, axis=-1)

    def attention(self, query: Any, key: Any, value: Any, causal: bool) -> Any:
        attended = self.nn.dot_product_attention(query, key, value, is_causal=causal)
        return attended.reshape(*query.shape[:2], -1)
