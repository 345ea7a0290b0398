"""Layers in plain TensorFlow: `tf.Module`s over `tf.nn`, channels last, as one writes them without Keras."""
# ruff: noqa: D102 (every model is called with the same arguments; the class says what its call does)

from collections.abc import Callable, Sequence

import tensorflow as tf

_random = tf.random.Generator.from_seed(0)


def weight(shape: Sequence[int], deviation: float) -> tf.Variable:
    """Return a trainable variable of normal values."""
    return tf.Variable(_random.normal(tuple(shape), stddev=deviation))


class Dense(tf.Module):
    """Matrix product over the last axis, with a bias when asked."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__()
        self.kernel = weight((inputs, outputs), inputs**-0.5)
        self.bias = tf.Variable(tf.zeros(outputs)) if bias else None

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        y = tf.matmul(x, self.kernel) if x.shape.rank == 2 else tf.tensordot(x, self.kernel, 1)
        return y if self.bias is None else tf.nn.bias_add(y, self.bias)


class LayerNorm(tf.Module):
    """Layer norm over the last axis."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.scale, self.offset = tf.Variable(tf.ones(width)), tf.Variable(tf.zeros(width))
        self.epsilon = epsilon

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        mean, variance = tf.nn.moments(x, axes=-1, keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, self.offset, self.scale, self.epsilon)


class RmsNorm(tf.Module):
    """Root mean square norm over the last axis."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.scale = tf.Variable(tf.ones(width))
        self.epsilon = epsilon

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), axis=-1, keepdims=True) + self.epsilon) * self.scale


class Conv(tf.Module):
    """Two-dimensional convolution, SAME padding."""

    def __init__(self, kernel: int, inputs: int, outputs: int, stride: int = 1, bias: bool = False) -> None:
        super().__init__()
        self.kernel = weight((kernel, kernel, inputs, outputs), (kernel * kernel * inputs) ** -0.5)
        self.bias = tf.Variable(tf.zeros(outputs)) if bias else None
        self.stride = stride

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        y = tf.nn.conv2d(x, self.kernel, self.stride, "SAME")
        return y if self.bias is None else tf.nn.bias_add(y, self.bias)


class DepthwiseConv(tf.Module):
    """3x3 convolution of each channel by itself, SAME padding."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.kernel = weight((3, 3, channels, 1), 1 / 3)
        self.stride = stride

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return tf.nn.depthwise_conv2d(x, self.kernel, [1, self.stride, self.stride, 1], "SAME")


class UpConv(tf.Module):
    """2x2 stride-2 transposed convolution with bias."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.kernel = weight((2, 2, outputs, inputs), inputs**-0.5)
        self.bias = tf.Variable(tf.zeros(outputs))

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        batch, height, width, _ = x.shape
        shape = (batch, 2 * height, 2 * width, self.bias.shape[0])
        return tf.nn.bias_add(tf.nn.conv2d_transpose(x, self.kernel, shape, 2), self.bias)


class BatchNorm(tf.Module):
    """Fused batch norm that keeps moving statistics when it trains."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale, self.offset = tf.Variable(tf.ones(channels)), tf.Variable(tf.zeros(channels))
        self.mean = tf.Variable(tf.zeros(channels), trainable=False)
        self.variance = tf.Variable(tf.ones(channels), trainable=False)

    def __call__(self, x: tf.Tensor, train: bool) -> tf.Tensor:
        y, mean, variance = tf.compat.v1.nn.fused_batch_norm(
            x, self.scale, self.offset, self.mean, self.variance, is_training=train,
            exponential_avg_factor=0.01 if train else 1.0,
        )
        if train:
            self.mean.assign(mean)
            self.variance.assign(variance)
        return y


class Attention(tf.Module):
    """Self-attention: fused or separate projections, grouped key and value heads, rotary positions when asked."""

    def __init__(self, width: int, heads: int, kv_heads: int, causal: bool, fused: bool, bias: bool, rotary: bool) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_width = heads, kv_heads, width // heads
        self.causal, self.rotary = causal, rotary
        kv_width = kv_heads * self.head_width
        self.fused = Dense(width, 3 * width, bias) if fused else None
        self.projections = () if fused else tuple(Dense(width, w, bias) for w in (width, kv_width, kv_width))
        self.output = Dense(width, width, bias)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        batch, length, width = x.shape
        query, key, value = tf.split(self.fused(x), 3, axis=-1) if self.fused else (p(x) for p in self.projections)
        query, key, value = self._part(query, self.heads), self._part(key, self.kv_heads), self._part(value, self.kv_heads)
        if self.rotary:
            query, key = rotate(query), rotate(key)
        if self.kv_heads < self.heads:
            key, value = (tf.repeat(a, self.heads // self.kv_heads, axis=1) for a in (key, value))
        scores = tf.matmul(query, key, transpose_b=True) * self.head_width**-0.5
        if self.causal:
            allowed = tf.linalg.band_part(tf.ones((length, length), tf.bool), -1, 0)
            scores = tf.where(allowed, scores, scores.dtype.min)
        attended = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), (0, 2, 1, 3))
        return self.output(tf.reshape(attended, (batch, length, width)))

    def _part(self, x: tf.Tensor, heads: int) -> tf.Tensor:
        return tf.transpose(tf.reshape(x, (*x.shape[:2], heads, self.head_width)), (0, 2, 1, 3))


def rotate(x: tf.Tensor) -> tf.Tensor:
    """Apply rotary positions to batch x heads x length x head width, halves as in Llama."""
    length, half = x.shape[2], x.shape[3] // 2
    frequencies = 10000.0 ** (-tf.range(half, dtype=tf.float32) / half)
    angles = tf.range(length, dtype=tf.float32)[:, None] * frequencies
    low, high = tf.split(x, 2, axis=-1)
    cosine, sine = tf.cos(angles), tf.sin(angles)
    return tf.concat([low * cosine - high * sine, high * cosine + low * sine], axis=-1)


class Mlp(tf.Module):
    """Two dense layers with an activation between."""

    def __init__(self, width: int, hidden: int, activation: Callable[[tf.Tensor], tf.Tensor]) -> None:
        super().__init__()
        self.up, self.down, self.activation = Dense(width, hidden), Dense(hidden, width), activation

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return self.down(self.activation(self.up(x)))


class Lstm(tf.Module):
    """One LSTM layer: the input projection once for all steps, then a `tf.while_loop` over time."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.inputs = Dense(width, 4 * width)
        self.recurrent = weight((width, 4 * width), width**-0.5)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        batch, length, _ = x.shape
        projected = tf.transpose(self.inputs(x), (1, 0, 2))
        hidden = cell = tf.zeros((batch, self.width))
        outputs = tf.TensorArray(tf.float32, length, element_shape=(batch, self.width))

        def step(now: tf.Tensor, hidden: tf.Tensor, cell: tf.Tensor, outputs: tf.TensorArray) -> tuple[object, ...]:
            gates = projected[now] + tf.matmul(hidden, self.recurrent)
            into, forget, new, out = tf.split(gates, 4, axis=-1)
            cell = tf.sigmoid(forget) * cell + tf.sigmoid(into) * tf.tanh(new)
            hidden = tf.sigmoid(out) * tf.tanh(cell)
            return now + 1, hidden, cell, outputs.write(now, hidden)

        state = (tf.constant(0), hidden, cell, outputs)
        *_, outputs = tf.while_loop(lambda now, *_: now < length, step, state, maximum_iterations=length)
        return tf.transpose(outputs.stack(), (1, 0, 2))
