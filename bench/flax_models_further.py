"""Further kinds of models as flax's users write them, added to see whether what held for the first ones holds for others."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from bench.flax_case import Case, linen, shape


def _turned(x: Any) -> Any:
    """Rotary positions of (batch, time, heads, width): halves turned against each other."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] / 10_000 ** (jnp.arange(half) / half)
    sine, cosine = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


class _Grouped(nn.Module):
    """A decoder's block as Llama has it: grouped queries, rotary positions, gated MLP, norms without means."""

    heads: int = 8
    shared: int = 2
    hidden: int = 160

    @nn.compact
    def __call__(self, x: Any, _: Any = None) -> Any:
        """Apply it."""
        width = x.shape[-1] // self.heads
        dense = lambda *to: nn.DenseGeneral(to, use_bias=False)  # noqa: E731
        y = nn.RMSNorm()(x)
        queries, keys, values = (
            _turned(dense(self.heads, width)(y)),
            _turned(dense(self.shared, width)(y)),
            dense(self.shared, width)(y),
        )
        queries = queries.reshape(*queries.shape[:2], self.shared, self.heads // self.shared, width)
        scores = jnp.einsum("btgrd,bsgd->bgrts", queries, keys) / width**0.5
        seen = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
        weights = nn.softmax(jnp.where(seen, scores, -1e9), axis=-1)
        y = jnp.einsum("bgrts,bsgd->btgrd", weights, values).reshape(x.shape)
        x = x + dense(x.shape[-1])(y)
        y = nn.RMSNorm()(x)
        return x + dense(x.shape[-1])(nn.silu(dense(self.hidden)(y)) * dense(self.hidden)(y)), None


class GroupedQueries(nn.Module):
    """Blocks under flax's scan, nothing computed again."""

    layers: int = 5

    @nn.compact
    def __call__(self, ids: Any) -> Any:
        """Apply it."""
        x = nn.Embed(600, 64)(ids)
        x, _ = nn.scan(_Grouped, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.layers)()(x, None)
        return nn.Dense(600, use_bias=False)(nn.RMSNorm()(x))


def grouped_queries() -> Case:
    """Decoder of 5 scanned layers, 3 sequences of 24: projections of 64 to 64, 16, 16, and back; MLP of three matrices."""
    tokens = 3 * 24
    layer = 2 * tokens * 64 * (64 + 16 + 16 + 64 + 3 * 160) + 4 * tokens * 24 * 64
    total = 5 * layer + 2 * tokens * 64 * 600
    return linen("grouped queries by scan", GroupedQueries(), (shape(3, 24, dtype=jnp.int32),), total, 3 * total)


class _Inverted(nn.Module):
    """A residual block that widens, convolves each channel by itself, and narrows."""

    channels: int
    stride: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        wide = 4 * x.shape[-1]
        norm = lambda: nn.BatchNorm(use_running_average=True)  # noqa: E731
        y = nn.relu6(norm()(nn.Conv(wide, (1, 1), use_bias=False)(x)))
        y = nn.relu6(norm()(nn.Conv(wide, (3, 3), (self.stride, self.stride), feature_group_count=wide, use_bias=False)(y)))
        y = norm()(nn.Conv(self.channels, (1, 1), use_bias=False)(y))
        return x + y if x.shape == y.shape else y


class Depthwise(nn.Module):
    """A small MobileNet."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        x = nn.relu6(nn.Conv(12, (3, 3), (2, 2))(x))
        for channels, stride in ((12, 1), (24, 2), (24, 1), (40, 2)):
            x = _Inverted(channels, stride)(x)
        return nn.Dense(20)(x.mean(axis=(1, 2)))


def depthwise() -> Case:
    """MobileNet-like, 3 images of 48 x 48: 1 x 1 up, 3 x 3 of each channel, 1 x 1 down."""
    stem = 2 * 3 * 24 * 24 * 12 * 3 * 9
    total, inner, side = stem, 12, 24
    for channels, stride in ((12, 1), (24, 2), (24, 1), (40, 2)):
        total += 2 * 3 * side * side * inner * 4 * inner
        side //= stride
        total += 2 * 3 * side * side * 4 * inner * (9 + channels)
        inner = channels
    total += 2 * 3 * 40 * 20
    return linen("depthwise convolutions", Depthwise(), (shape(3, 48, 48, 3),), total, 3 * total - stem)


class _Pair(nn.Module):
    channels: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(2):
            x = nn.silu(nn.GroupNorm(num_groups=4)(nn.Conv(self.channels, (3, 3))(x)))
        return x


class UNet(nn.Module):
    """Two levels down by pooling, two up by repeating, joined across."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        kept = []
        for channels in (8, 16):
            x = _Pair(channels)(x)
            kept.append(x)
            x = nn.avg_pool(x, (2, 2), (2, 2))
        x = _Pair(32)(x)
        for channels, other in zip((16, 8), reversed(kept), strict=True):
            batch, height, width, last = x.shape
            x = jax.image.resize(x, (batch, 2 * height, 2 * width, last), "nearest")
            x = _Pair(channels)(jnp.concatenate([x, other], axis=-1))
        return nn.Conv(2, (1, 1))(x)


def u_net() -> Case:
    """U-Net, 2 images of 32 x 32, one channel: pairs of 3 x 3 convolutions on sides of 32, 16, 8, 16 and 32."""
    pair = lambda side, first, last: 2 * 2 * side * side * 9 * last * (first + last)  # noqa: E731
    stem = 2 * 2 * 32 * 32 * 9 * 8
    total = pair(32, 1, 8) + pair(16, 8, 16) + pair(8, 16, 32) + pair(16, 48, 16) + pair(32, 24, 8) + 2 * 2 * 32 * 32 * 8 * 2
    return linen("u-net by resizing", UNet(), (shape(2, 32, 32, 1),), total, 3 * total - stem)


class Gated(nn.Module):
    """Two layers of GRU over time, the second one backwards."""

    @nn.compact
    def __call__(self, ids: Any) -> Any:
        """Apply it."""
        x = nn.Embed(200, 32)(ids)
        x = nn.RNN(nn.GRUCell(40))(x)
        x = nn.RNN(nn.GRUCell(56), reverse=True, keep_order=True)(x)
        return nn.Dense(200)(x)


def gated() -> Case:
    """GRU, 6 sequences of 16 steps: 3 gates of (inputs + hidden) a step."""
    steps = 2 * 6 * 16
    total = steps * 3 * 40 * (32 + 40) + steps * 3 * 56 * (40 + 56) + steps * 56 * 200
    return linen("gru by scan", Gated(), (shape(6, 16, dtype=jnp.int32),), total, 3 * total)


class Mixer(nn.Module):
    """An MLP-Mixer: MLPs over places and over channels in turn."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        x = nn.Conv(64, (8, 8), (8, 8))(x)
        x = x.reshape(x.shape[0], -1, 64)
        for _ in range(3):
            y = nn.LayerNorm()(x).swapaxes(1, 2)
            y = nn.Dense(x.shape[1])(nn.gelu(nn.Dense(48)(y)))
            x = x + y.swapaxes(1, 2)
            x = x + nn.Dense(64)(nn.gelu(nn.Dense(160)(nn.LayerNorm()(x))))
        return nn.Dense(30)(nn.LayerNorm()(x).mean(axis=1))


def mixer() -> Case:
    """MLP-Mixer, 4 images of 56 x 56 in 49 patches."""
    stem = 2 * 4 * 49 * 64 * 3 * 64
    total = stem + 3 * (2 * 2 * 4 * 64 * 49 * 48 + 2 * 2 * 4 * 49 * 64 * 160) + 2 * 4 * 64 * 30
    return linen("mlp-mixer", Mixer(), (shape(4, 56, 56, 3),), total, 3 * total - stem)


FURTHER: tuple[Callable[[], Case], ...] = (grouped_queries, depthwise, u_net, gated, mixer)
"""Each model, made when it is called."""
