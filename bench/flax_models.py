"""Models as flax's users write them, each with the FLOPs of its products counted by hand.

Shared by `bench.architectures_flax` and `bench.compiled_memory`. Nothing is initialised: shapes alone are traced. Counts are of
multiply-adds in products and convolutions, two FLOPs each; what else a model does is not in them.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import nnx

from bench.flax_case import Case, linen, shape
from bench.flax_models_further import FURTHER


class Mlp(nn.Module):
    """Dense layers."""

    widths: tuple[int, ...] = (512, 512, 256, 10)

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        for width in self.widths[:-1]:
            x = nn.gelu(nn.Dense(width)(x))
        return nn.Dense(self.widths[-1])(x)


def mlp() -> Case:
    """MLP, batch 32; the first layer needs no gradient of its input."""
    sizes = (784, 512, 512, 256, 10)
    layers = [2 * 32 * a * b for a, b in pairwise(sizes)]
    return linen("mlp", Mlp(), (shape(32, 784),), sum(layers), 3 * sum(layers) - layers[0])


class Stage(nn.Module):
    """A residual stage."""

    channels: int
    stride: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        norm = lambda: nn.BatchNorm(use_running_average=True)  # noqa: E731
        rest = nn.Conv(self.channels, (1, 1), (self.stride, self.stride), use_bias=False)(x)
        x = nn.relu(norm()(nn.Conv(self.channels, (3, 3), (self.stride, self.stride), use_bias=False)(x)))
        x = norm()(nn.Conv(self.channels, (3, 3), feature_group_count=4, use_bias=False)(x))
        return nn.relu(x + rest)


class ResNet(nn.Module):
    """Stem, three stages with grouped convolutions, head."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        x = nn.relu(nn.Conv(16, (7, 7), (2, 2))(x))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        for channels, stride in ((16, 1), (32, 2), (64, 2)):
            x = Stage(channels, stride)(x)
        return nn.Dense(10)(x.mean(axis=(1, 2)))


def resnet() -> Case:
    """ResNet-like, 4 images of 64 x 64: convolutions by output places x window x channels in each group."""
    batch = 4
    stem = 2 * batch * 32 * 32 * 16 * 3 * 49
    total, inner, side = stem, 16, 16
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        side //= stride
        places = 2 * batch * side * side * channels
        total += places * inner + places * inner * 9 + places * channels // 4 * 9
        inner = channels
    head = 2 * batch * 64 * 10
    return linen("resnet with groups", ResNet(), (shape(batch, 64, 64, 3),), total + head, 3 * (total + head) - stem)


class Block(nn.Module):
    """A transformer's block."""

    width: int
    heads: int
    causal: bool

    @nn.compact
    def __call__(self, x: Any, _: Any = None) -> Any:
        """Apply it."""
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2])) if self.causal else None
        y = nn.MultiHeadDotProductAttention(self.heads)(nn.LayerNorm()(x), mask=mask)
        x = x + y
        y = nn.Dense(self.width)(nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(x))))
        return x + y


class Language(nn.Module):
    """A decoder with tied embeddings."""

    layers: int = 4
    width: int = 64
    vocabulary: int = 1000

    @nn.compact
    def __call__(self, ids: Any) -> Any:
        """Apply it."""
        table = nn.Embed(self.vocabulary, self.width)
        x = table(ids) + self.param("positions", nn.initializers.normal(), (ids.shape[1], self.width))
        for _ in range(self.layers):
            x = Block(self.width, 4, causal=True)(x)
        return table.attend(nn.LayerNorm()(x))


def _blocks(batch: int, time: int, width: int, layers: int) -> int:
    """Products of transformer blocks: 4 projections, 2 of attention, 2 of the MLP."""
    tokens = batch * time
    return layers * (2 * tokens * width * width * 12 + 4 * tokens * time * width)


def language() -> Case:
    """Decoder, 2 sequences of 32."""
    total = _blocks(2, 32, 64, 4) + 2 * 64 * 64 * 1000
    return linen("transformer, tied embeddings", Language(), (shape(2, 32, dtype=jnp.int32),), total, 3 * total)


class Vision(nn.Module):
    """A vision transformer with a class token."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        x = nn.Conv(96, (8, 8), (8, 8), padding="VALID")(x)
        x = x.reshape(x.shape[0], -1, 96)
        token = self.param("cls", nn.initializers.zeros, (1, 1, 96))
        x = jnp.concatenate([jnp.tile(token, (x.shape[0], 1, 1)), x], axis=1)
        for _ in range(3):
            x = Block(96, 3, causal=False)(x)
        return nn.Dense(100)(nn.LayerNorm()(x)[:, 0])


def vision() -> Case:
    """ViT, 2 images of 64 x 64 in patches of 8."""
    stem = 2 * 2 * 64 * 96 * 3 * 64
    total = stem + _blocks(2, 65, 96, 3) + 2 * 2 * 96 * 100
    return linen("vision transformer", Vision(), (shape(2, 64, 64, 3),), total, 3 * total - stem)


class Recurrent(nn.Module):
    """An LSTM over time, written with flax's scan."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        return nn.Dense(8)(nn.RNN(nn.OptimizedLSTMCell(48))(x))


def recurrent() -> Case:
    """LSTM, 4 sequences of 20 steps: 4 gates of (inputs + hidden) a step."""
    inputs, states, head = 2 * 4 * 20 * 4 * 48 * 24, 2 * 4 * 20 * 4 * 48 * 48, 2 * 4 * 20 * 48 * 8
    total = inputs + states + head
    return linen("lstm by scan", Recurrent(), (shape(4, 20, 24),), total, 3 * total - inputs)


class Experts(nn.Module):
    """A layer of experts, each token to the best two, dispatched by one-hot products as GShard does."""

    experts: int = 4
    width: int = 32
    capacity: int = 16

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        gates = nn.softmax(nn.Dense(self.experts, use_bias=False)(x))
        values, chosen = jax.lax.top_k(gates, 2)
        taken = nn.one_hot(chosen, self.experts)
        place = jnp.cumsum(taken.sum(1), axis=0) - 1
        slots = nn.one_hot(place.astype(jnp.int32), self.capacity) * taken.sum(1)[..., None]
        first = self.param("up", nn.initializers.normal(), (self.experts, self.width, 4 * self.width))
        second = self.param("down", nn.initializers.normal(), (self.experts, 4 * self.width, self.width))
        sent = jnp.einsum("tec,td->ecd", slots, x)
        done = jnp.einsum("ecf,efd->ecd", nn.gelu(jnp.einsum("ecd,edf->ecf", sent, first)), second)
        weights = slots * (values[:, :, None] * taken).sum(1)[..., None]
        return jnp.einsum("tec,ecd->td", weights, done)


def experts() -> Case:
    """MoE, 32 tokens, capacity 16; nothing needs the gradient of the dispatch's one-hot numbers or of the input."""
    router, send, layer = 2 * 32 * 32 * 4, 2 * 32 * 4 * 16 * 32, 2 * 4 * 16 * 32 * 128
    total = router + 2 * send + 2 * layer
    # backward: the router's weights, both operands of the combine, of `down`, and of `up` the weights alone
    return linen("mixture of experts", Experts(), (shape(32, 32),), total, total + router + 2 * send + 2 * layer + layer)


class Stacked(nn.Module):
    """Blocks under flax's scan, each computed again in the backward pass."""

    @nn.compact
    def __call__(self, ids: Any) -> Any:
        """Apply it."""
        x = nn.Embed(500, 32)(ids)
        body = nn.remat(_ScanBlock)
        stack = nn.scan(body, variable_axes={"params": 0}, split_rngs={"params": True}, length=6)
        x, _ = stack()(x, None)
        return nn.Dense(500)(x)


class _ScanBlock(nn.Module):
    @nn.compact
    def __call__(self, x: Any, _: Any) -> Any:
        return Block(32, 2, causal=True)(x), None


def stacked() -> Case:
    """Decoder of 6 scanned layers with remat: forward twice, less the last product, whose result nothing needs again."""
    layers, head = _blocks(2, 16, 32, 6), 2 * 2 * 16 * 32 * 500
    last = 6 * 2 * 2 * 16 * 32 * 32 * 4
    return linen(
        "transformer by scan, remat",
        Stacked(),
        (shape(2, 16, dtype=jnp.int32),),
        layers + head,
        3 * (layers + head) + layers - last,
    )


class Upwards(nn.Module):
    """An autoencoder whose second half has transposed convolutions."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        """Apply it."""
        x = nn.relu(nn.Conv(16, (3, 3), (2, 2))(x))
        x = nn.relu(nn.Conv(32, (3, 3), (2, 2))(x))
        x = nn.relu(nn.ConvTranspose(16, (4, 4), (2, 2))(x))
        return nn.ConvTranspose(3, (4, 4), (2, 2))(x)


def upwards() -> Case:
    """Autoencoder, 2 images of 32 x 32; a transposed convolution counts its input's places."""
    first = 2 * 2 * 16 * 16 * 16 * 3 * 9
    rest = 2 * 2 * 8 * 8 * 32 * 16 * 9 + 2 * 2 * 8 * 8 * 32 * 16 * 16 + 2 * 2 * 16 * 16 * 16 * 3 * 16
    return linen("autoencoder, transposed", Upwards(), (shape(2, 32, 32, 3),), first + rest, 3 * (first + rest) - first)


class _Perceptron(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first, self.norm, self.second = (
            nnx.Linear(64, 128, rngs=rngs),
            nnx.LayerNorm(128, rngs=rngs),
            nnx.Linear(128, 16, rngs=rngs),
        )

    def __call__(self, x: Any) -> Any:
        return self.second(nnx.gelu(self.norm(self.first(x))))


def perceptron() -> Case:
    """nnx, batch 8."""
    model = nnx.eval_shape(lambda: _Perceptron(nnx.Rngs(0)))
    definition, state = nnx.split(model)

    def apply(parameters: Any, x: Any) -> Any:
        return nnx.merge(definition, parameters)(x)

    first, second = 2 * 8 * 64 * 128, 2 * 8 * 128 * 16
    return Case("nnx perceptron", state, state, (shape(8, 64),), apply, first + second, 3 * (first + second) - first)


CASES: tuple[Callable[[], Case], ...] = (
    mlp, resnet, language, vision, recurrent, experts, stacked, upwards, perceptron, *FURTHER,
)  # fmt: skip
"""Each model, made when it is called."""
