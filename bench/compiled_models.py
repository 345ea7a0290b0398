"""Models of further kinds for `bench.compiled_memory`, other than those that its model of the compiler was made on.

Only shapes are traced; FLOPs are not counted here.
"""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from bench.flax_case import Case, shape


def _linen(name: str, module: nn.Module, *inputs: Any) -> Case:
    variables = jax.eval_shape(module.init, jax.random.key(0), *inputs)
    return Case(name, variables, variables["params"], inputs, module.apply, 0, 0)


class _Gru(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.RNN(nn.GRUCell(96))(x)
        return nn.Dense(12)(nn.RNN(nn.GRUCell(64))(x)[:, -1])


def gru() -> Case:
    """Two GRU layers over 24 steps, the last state read."""
    return _linen("gru, two layers", _Gru(), shape(8, 24, 32))


class _Unet(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        kept: list[Any] = []
        for channels in (16, 32):
            x = nn.relu(nn.GroupNorm(4)(nn.Conv(channels, (3, 3))(x)))
            kept.append(x)
            x = nn.max_pool(x, (2, 2), (2, 2))
        x = nn.relu(nn.Conv(64, (3, 3))(x))
        for channels, skip in ((32, kept[1]), (16, kept[0])):
            x = nn.ConvTranspose(channels, (2, 2), (2, 2))(x)
            x = nn.relu(nn.Conv(channels, (3, 3))(jnp.concatenate([x, skip], axis=-1)))
        return nn.Conv(3, (1, 1))(x)


def unet() -> Case:
    """U-Net with group norm and pooling, 2 images of 48 x 48."""
    return _linen("u-net", _Unet(), shape(2, 48, 48, 3))


class _Mobile(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.swish(nn.Conv(24, (3, 3), (2, 2))(x))
        for channels, stride in ((24, 1), (48, 2), (48, 1)):
            inner = 4 * x.shape[-1]
            y = nn.swish(nn.LayerNorm()(nn.Conv(inner, (1, 1))(x)))
            y = nn.swish(nn.Conv(inner, (3, 3), (stride, stride), feature_group_count=inner)(y))
            y = y * nn.sigmoid(nn.Dense(inner)(y.mean(axis=(1, 2), keepdims=True)))
            y = nn.Conv(channels, (1, 1))(y)
            x = x + y if x.shape == y.shape else y
        return nn.Dense(20)(x.mean(axis=(1, 2)))


def mobile() -> Case:
    """Depthwise convolutions with squeeze and excitation, 3 images of 40 x 40."""
    return _linen("depthwise, squeeze-excite", _Mobile(), shape(3, 40, 40, 3))


class _Rms(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        scale = self.param("scale", nn.initializers.ones, (x.shape[-1],))
        return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


class _GqaBlock(nn.Module):
    width: int = 96
    heads: int = 6
    groups: int = 2

    @nn.compact
    def __call__(self, x: Any, _: Any) -> Any:
        batch, time, _ = x.shape
        each = self.width // self.heads
        y = _Rms()(x)
        q = nn.Dense(self.width, use_bias=False)(y).reshape(batch, time, self.groups, self.heads // self.groups, each)
        k = nn.Dense(self.groups * each, use_bias=False)(y).reshape(batch, time, self.groups, each)
        v = nn.Dense(self.groups * each, use_bias=False)(y).reshape(batch, time, self.groups, each)
        score = jnp.einsum("btgre,bsge->bgrts", q, k) / jnp.sqrt(float(each))
        score = jnp.where(jnp.tril(jnp.ones((time, time), bool)), score, -1e9)
        y = jnp.einsum("bgrts,bsge->btgre", nn.softmax(score), v).reshape(batch, time, self.width)
        x = x + nn.Dense(self.width, use_bias=False)(y)
        y = _Rms()(x)
        y = nn.silu(nn.Dense(256, use_bias=False)(y)) * nn.Dense(256, use_bias=False)(y)
        return x + nn.Dense(self.width, use_bias=False)(y), None


class _Gqa(nn.Module):
    @nn.compact
    def __call__(self, ids: Any) -> Any:
        x = nn.Embed(700, 96)(ids)
        stack = nn.scan(_GqaBlock, variable_axes={"params": 0}, split_rngs={"params": True}, length=5)
        x, _ = stack()(x, None)
        return nn.Dense(700, use_bias=False)(_Rms()(x))


def gqa() -> Case:
    """Decoder with grouped queries, RMS norm and SwiGLU, 5 scanned layers without remat, 2 sequences of 48."""
    return _linen("grouped-query decoder by scan", _Gqa(), shape(2, 48, dtype=jnp.int32))


class _Routed(nn.Module):
    """Experts by gather and scatter: tokens are sorted by expert, each expert takes an equal share."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        experts, width, hidden = 4, x.shape[-1], 128
        gates = nn.softmax(nn.Dense(experts)(x))
        order = jnp.argsort(gates.argmax(-1))
        up = self.param("up", nn.initializers.normal(), (experts, width, hidden))
        down = self.param("down", nn.initializers.normal(), (experts, hidden, width))
        y = x[order].reshape(experts, -1, width)
        y = jnp.einsum("ecf,efd->ecd", nn.gelu(jnp.einsum("ecd,edf->ecf", y, up)), down).reshape(x.shape)
        return x + jnp.zeros_like(x).at[order].set(y) * gates.max(-1, keepdims=True)


def routed() -> Case:
    """Experts by gather and scatter, 128 tokens."""
    return _linen("experts by gather and scatter", _Routed(), shape(128, 64))


class _Dit(nn.Module):
    @nn.compact
    def __call__(self, x: Any, step: Any) -> Any:
        width, heads = 64, 4
        angle = step[:, None] * jnp.exp(-jnp.arange(16.0))
        seen = nn.Dense(width)(nn.silu(nn.Dense(width)(jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1))))
        batch, side, _, channels = x.shape
        h = nn.Conv(width, (4, 4), (4, 4), padding="VALID")(x).reshape(batch, -1, width)
        h = h + self.param("places", nn.initializers.normal(), (h.shape[1], width))
        for _ in range(3):
            shift, scale, gate, shift2, scale2, gate2 = jnp.split(nn.Dense(6 * width)(nn.silu(seen))[:, None], 6, -1)
            y = nn.LayerNorm(use_bias=False, use_scale=False)(h) * (1 + scale) + shift
            h = h + gate * nn.MultiHeadDotProductAttention(heads)(y, y)
            y = nn.LayerNorm(use_bias=False, use_scale=False)(h) * (1 + scale2) + shift2
            h = h + gate2 * nn.Dense(width)(nn.gelu(nn.Dense(4 * width)(y)))
        out = nn.Dense(16 * channels)(h).reshape(batch, side // 4, side // 4, 4, 4, channels)
        return out.transpose(0, 1, 3, 2, 4, 5).reshape(x.shape)


def dit() -> Case:
    """Diffusion transformer with adaptive norms, 2 latents of 32 x 32."""
    return _linen("diffusion transformer", _Dit(), shape(2, 32, 32, 4), shape(2))


class _Messages(nn.Module):
    @nn.compact
    def __call__(self, nodes: Any, edges: Any) -> Any:
        x = nn.Dense(64)(nodes)
        for _ in range(3):
            sent = nn.relu(nn.Dense(64)(jnp.concatenate([x[edges[0]], x[edges[1]]], -1)))
            x = x + nn.Dense(64)(jax.ops.segment_sum(sent, edges[1], num_segments=nodes.shape[0]))
        return nn.Dense(5)(nn.LayerNorm()(x))


def messages() -> Case:
    """Message passing, 100 nodes with 400 edges."""
    return _linen("message passing", _Messages(), shape(100, 24), shape(2, 400, dtype=jnp.int32))


class _Wave(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(32, (1,))(x)
        whole = 0.0
        for dilation in (1, 2, 4, 8):
            y = nn.Conv(64, (2,), kernel_dilation=(dilation,), padding="CAUSAL")(x)
            y = jnp.tanh(y[..., :32]) * nn.sigmoid(y[..., 32:])
            whole = whole + nn.Conv(48, (1,))(y)
            x = x + nn.Conv(32, (1,))(y)
        return nn.Conv(16, (1,))(nn.relu(whole))


def wave() -> Case:
    """Dilated causal convolutions with gates, 2 sequences of 256."""
    return _linen("dilated convolutions", _Wave(), shape(2, 256, 16))


class _Translator(nn.Module):
    @nn.compact
    def __call__(self, source: Any, target: Any) -> Any:
        table = nn.Embed(600, 64)
        x = table(source)
        for _ in range(2):
            x = nn.LayerNorm()(x + nn.MultiHeadDotProductAttention(4)(x, x))
            x = nn.LayerNorm()(x + nn.Dense(64)(nn.relu(nn.Dense(192)(x))))
        y = table(target)
        for _ in range(2):
            y = nn.LayerNorm()(y + nn.MultiHeadDotProductAttention(4)(y, y, mask=nn.make_causal_mask(target)))
            y = nn.LayerNorm()(y + nn.MultiHeadDotProductAttention(4)(y, x))
            y = nn.LayerNorm()(y + nn.Dense(64)(nn.relu(nn.Dense(192)(y))))
        return nn.Dense(600)(y)


def translator() -> Case:
    """Encoder and decoder with cross attention, post-norm, 2 pairs of 40 and 30 tokens."""
    return _linen("encoder-decoder", _Translator(), shape(2, 40, dtype=jnp.int32), shape(2, 30, dtype=jnp.int32))


FURTHER: tuple[Callable[[], Case], ...] = (gru, unet, mobile, gqa, routed, dit, messages, wave, translator)
"""Each model, made when it is called."""
