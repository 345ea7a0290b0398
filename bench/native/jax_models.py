"""The models in JAX: Flax linen modules, attention by `jax.nn.dot_product_attention`, recurrence by `jax.lax.scan`."""
# ruff: noqa: ARG002, D102 (every model is called with the same arguments; the class says what its call does)

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
from flax import linen as nn

from bench.native.cases import Case, Dense, Image, Recommender, Recurrent, Segmentation, Text, Vision


class SelfAttention(nn.Module):
    """Multi-head attention with biases; one fused projection or three."""

    heads: int
    causal: bool
    fused: bool

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        batch, length, width = x.shape
        if self.fused:
            query, key, value = jnp.split(nn.Dense(3 * width)(x), 3, axis=-1)
        else:
            query, key, value = nn.Dense(width)(x), nn.Dense(width)(x), nn.Dense(width)(x)
        parted = (a.reshape(batch, length, self.heads, width // self.heads) for a in (query, key, value))
        attended = jax.nn.dot_product_attention(*parted, is_causal=self.causal)
        return nn.Dense(width)(attended.reshape(batch, length, width))


class Block(nn.Module):
    """A transformer layer with a plain MLP, pre-norm or post-norm."""

    heads: int
    hidden: int
    causal: bool
    norm_first: bool
    fused: bool
    epsilon: float
    exact_gelu: bool

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        attention = SelfAttention(self.heads, self.causal, self.fused)
        norm = partial(nn.LayerNorm, epsilon=self.epsilon)
        if self.norm_first:
            x = x + attention(norm()(x))
            return x + self._mlp(norm()(x))
        x = norm()(x + attention(x))
        return norm()(x + self._mlp(x))

    def _mlp(self, x: jax.Array) -> jax.Array:
        hidden = nn.gelu(nn.Dense(self.hidden)(x), approximate=not self.exact_gelu)
        return nn.Dense(x.shape[-1])(hidden)


class Gpt2(nn.Module):
    """GPT-2 with its tied language model head."""

    shape: Text

    @nn.compact
    def __call__(self, tokens: jax.Array, train: bool) -> jax.Array:
        s = self.shape
        embed = nn.Embed(s.vocabulary, s.width)
        x = embed(tokens) + nn.Embed(s.positions, s.width)(jnp.arange(tokens.shape[1]))
        for _ in range(s.layers):
            x = Block(s.heads, s.hidden, causal=True, norm_first=True, fused=True, epsilon=1e-5, exact_gelu=False)(x)
        return embed.attend(nn.LayerNorm(epsilon=1e-5)(x))


class Bert(nn.Module):
    """BERT with its masked language model head."""

    shape: Text

    @nn.compact
    def __call__(self, tokens: jax.Array, train: bool) -> jax.Array:
        s = self.shape
        embed = nn.Embed(s.vocabulary, s.width)
        places = nn.Embed(s.positions, s.width)(jnp.arange(tokens.shape[1]))
        segments = nn.Embed(2, s.width)(jnp.zeros_like(tokens))
        x = nn.LayerNorm(epsilon=1e-12)(embed(tokens) + places + segments)
        for _ in range(s.layers):
            x = Block(s.heads, s.hidden, causal=False, norm_first=False, fused=False, epsilon=1e-12, exact_gelu=True)(x)
        x = nn.LayerNorm(epsilon=1e-12)(nn.gelu(nn.Dense(s.width)(x), approximate=False))
        return embed.attend(x) + self.param("head_bias", nn.initializers.zeros, (s.vocabulary,))


class Vit(nn.Module):
    """Vision transformer with a class token."""

    shape: Vision

    @nn.compact
    def __call__(self, images: jax.Array, train: bool) -> jax.Array:
        s = self.shape
        patches = nn.Conv(s.width, (s.patch, s.patch), strides=s.patch, padding="VALID")(images)
        patches = patches.reshape(images.shape[0], -1, s.width)
        start = self.param("class_token", nn.initializers.zeros, (1, 1, s.width))
        x = jnp.concatenate([jnp.tile(start, (images.shape[0], 1, 1)), patches], axis=1)
        x = x + self.param("positions", nn.initializers.normal(0.02), (1, x.shape[1], s.width))
        for _ in range(s.layers):
            x = Block(s.heads, s.hidden, causal=False, norm_first=True, fused=False, epsilon=1e-12, exact_gelu=True)(x)
        return nn.Dense(s.classes)(nn.LayerNorm(epsilon=1e-12)(x)[:, 0])


def rotate(x: jax.Array) -> jax.Array:
    """Apply rotary positions to batch x length x heads x head width, halves as in Llama."""
    half = x.shape[-1] // 2
    frequencies = 10000.0 ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angles = jnp.arange(x.shape[1], dtype=jnp.float32)[:, None, None] * frequencies
    low, high = x[..., :half], x[..., half:]
    cosine, sine = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([low * cosine - high * sine, high * cosine + low * sine], axis=-1)


class LlamaBlock(nn.Module):
    """A Llama layer: grouped heads, rotary positions, gated MLP, RMS norms, no biases."""

    shape: Text

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        s, (batch, length, width) = self.shape, x.shape
        head_width = width // s.heads
        dense = partial(nn.Dense, use_bias=False)
        y = nn.RMSNorm(epsilon=1e-6)(x)
        query = rotate(dense(width)(y).reshape(batch, length, s.heads, head_width))
        key = rotate(dense(s.kv_heads * head_width)(y).reshape(batch, length, s.kv_heads, head_width))
        value = dense(s.kv_heads * head_width)(y).reshape(batch, length, s.kv_heads, head_width)
        attended = jax.nn.dot_product_attention(query, key, value, is_causal=True)
        x = x + dense(width)(attended.reshape(batch, length, width))
        y = nn.RMSNorm(epsilon=1e-6)(x)
        return x + dense(width)(nn.silu(dense(s.hidden)(y)) * dense(s.hidden)(y))


class Llama(nn.Module):
    """Llama with an untied language model head."""

    shape: Text

    @nn.compact
    def __call__(self, tokens: jax.Array, train: bool) -> jax.Array:
        s = self.shape
        x = nn.Embed(s.vocabulary, s.width)(tokens)
        for _ in range(s.layers):
            x = LlamaBlock(s)(x)
        return nn.Dense(s.vocabulary, use_bias=False)(nn.RMSNorm(epsilon=1e-6)(x))


class Bottleneck(nn.Module):
    """ResNet bottleneck, version 1.5: the stride is in the 3x3."""

    middle: int
    outputs: int
    stride: int

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        conv, norm = partial(nn.Conv, use_bias=False), partial(nn.BatchNorm, use_running_average=not train)
        y = nn.relu(norm()(conv(self.middle, (1, 1))(x)))
        y = nn.relu(norm()(conv(self.middle, (3, 3), strides=self.stride, padding=1)(y)))
        y = norm()(conv(self.outputs, (1, 1))(y))
        if x.shape != y.shape:
            x = norm()(conv(self.outputs, (1, 1), strides=self.stride)(x))
        return nn.relu(x + y)


class ResNet50(nn.Module):
    """ResNet-50, version 1.5."""

    shape: Image

    @nn.compact
    def __call__(self, images: jax.Array, train: bool) -> jax.Array:
        x = nn.Conv(64, (7, 7), strides=2, padding=3, use_bias=False)(images)
        x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
        x = nn.max_pool(x, (3, 3), strides=(2, 2), padding=((1, 1), (1, 1)))
        for stage, count in enumerate((3, 4, 6, 3)):
            for index in range(count):
                stride = 2 if stage > 0 and index == 0 else 1
                x = Bottleneck(64 * 2**stage, 256 * 2**stage, stride)(x, train)
        return nn.Dense(self.shape.classes)(x.mean(axis=(1, 2)))


MOBILENET_V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, repeats, first stride. Source: Sandler et al. (2018), MobileNetV2, table 2."""


class InvertedResidual(nn.Module):
    """MobileNetV2's layer: expand, depthwise, project."""

    expansion: int
    outputs: int
    stride: int

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        conv, norm = partial(nn.Conv, use_bias=False), partial(nn.BatchNorm, use_running_average=not train)
        inputs = x.shape[-1]
        middle = inputs * self.expansion
        y = nn.relu6(norm()(conv(middle, (1, 1))(x))) if self.expansion > 1 else x
        y = conv(middle, (3, 3), strides=self.stride, padding=1, feature_group_count=middle)(y)
        y = norm()(conv(self.outputs, (1, 1))(nn.relu6(norm()(y))))
        return x + y if self.stride == 1 and inputs == self.outputs else y


class MobileNetV2(nn.Module):
    """MobileNetV2 of width 1.0."""

    shape: Image

    @nn.compact
    def __call__(self, images: jax.Array, train: bool) -> jax.Array:
        norm = partial(nn.BatchNorm, use_running_average=not train)
        x = nn.relu6(norm()(nn.Conv(32, (3, 3), strides=2, padding=1, use_bias=False)(images)))
        for expansion, channels, repeats, stride in MOBILENET_V2:
            for index in range(repeats):
                x = InvertedResidual(expansion, channels, stride if index == 0 else 1)(x, train)
        x = nn.relu6(norm()(nn.Conv(1280, (1, 1), use_bias=False)(x)))
        return nn.Dense(self.shape.classes)(x.mean(axis=(1, 2)))


class LstmLayer(nn.Module):
    """One LSTM layer: the input projection once for all steps, then a scan over time."""

    width: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        projected = nn.Dense(4 * self.width)(x)
        recurrent = self.param("recurrent", nn.initializers.orthogonal(), (self.width, 4 * self.width))

        def step(state: tuple[jax.Array, jax.Array], now: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
            hidden, cell = state
            into, forget, new, out = jnp.split(now + hidden @ recurrent, 4, axis=-1)
            cell = nn.sigmoid(forget) * cell + nn.sigmoid(into) * jnp.tanh(new)
            hidden = nn.sigmoid(out) * jnp.tanh(cell)
            return (hidden, cell), hidden

        zeros = jnp.zeros((x.shape[0], self.width), x.dtype)
        _, hidden = jax.lax.scan(step, (zeros, zeros), projected.swapaxes(0, 1))
        return hidden.swapaxes(0, 1)


class LanguageModel(nn.Module):
    """Embedding, LSTM layers, dense decoder."""

    shape: Recurrent

    @nn.compact
    def __call__(self, tokens: jax.Array, train: bool) -> jax.Array:
        x = nn.Embed(self.shape.vocabulary, self.shape.width)(tokens)
        for _ in range(self.shape.layers):
            x = LstmLayer(self.shape.width)(x)
        return nn.Dense(self.shape.vocabulary)(x)


class Tower(nn.Module):
    """Dense layers with relu between, and after the last one when asked."""

    widths: Sequence[int]
    last_activation: bool

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = False) -> jax.Array:
        for index, width in enumerate(self.widths):
            x = nn.Dense(width)(x)
            if self.last_activation or index < len(self.widths) - 1:
                x = nn.relu(x)
        return x


class Dlrm(nn.Module):
    """Deep learning recommendation model."""

    shape: Recommender

    @nn.compact
    def __call__(self, dense: jax.Array, ids: jax.Array, train: bool) -> jax.Array:
        s = self.shape
        first = Tower(s.bottom[1:], last_activation=True)(dense)
        bags = [nn.Embed(s.rows, s.width)(ids[:, i]).sum(axis=1) for i in range(s.tables)]
        vectors = jnp.stack([first, *bags], axis=1)
        products = jnp.einsum("bfw,bgw->bfg", vectors, vectors)
        rows, columns = jnp.tril_indices(s.tables + 1, k=-1)
        joined = jnp.concatenate([first, products[:, rows, columns]], axis=1)
        return Tower(s.top, last_activation=False)(joined).squeeze(1)


class DoubleConvolution(nn.Module):
    """Twice 3x3 convolution, batch norm, relu."""

    channels: int

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        for _ in range(2):
            x = nn.Conv(self.channels, (3, 3), padding=1, use_bias=False)(x)
            x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
        return x


class UNet(nn.Module):
    """U-Net with batch norm and transposed convolutions."""

    shape: Segmentation

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        widths = [self.shape.base * 2**i for i in range(5)]
        skips: list[jax.Array] = []
        for width in widths[:-1]:
            x = DoubleConvolution(width)(x, train)
            skips.append(x)
            x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = DoubleConvolution(widths[-1])(x, train)
        for width, skip in zip(widths[-2::-1], skips[::-1], strict=True):
            x = nn.ConvTranspose(width, (2, 2), strides=(2, 2))(x)
            x = DoubleConvolution(width)(jnp.concatenate([skip, x], axis=-1), train)
        return nn.Conv(self.shape.classes, (1, 1))(x)


def mlp(case: Case) -> nn.Module:
    """Return a multilayer perceptron."""
    assert isinstance(case.shape, Dense)
    return Tower(case.shape.widths[1:], last_activation=False)


BUILDERS: dict[str, Callable[[Case], nn.Module]] = {
    "gpt2": lambda c: Gpt2(c.shape), "bert": lambda c: Bert(c.shape), "llama": lambda c: Llama(c.shape),
    "vit": lambda c: Vit(c.shape), "resnet50": lambda c: ResNet50(c.shape), "mobilenet_v2": lambda c: MobileNetV2(c.shape),
    "lstm": lambda c: LanguageModel(c.shape), "dlrm": lambda c: Dlrm(c.shape), "mlp": mlp, "unet": lambda c: UNet(c.shape),
}
