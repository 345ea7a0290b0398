"""The models in plain TensorFlow, built of the layers in `tf_layers.py`; each is called with its inputs and `train`."""
# ruff: noqa: ARG002, D102 (every model is called with the same arguments; the class says what its call does)

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import tensorflow as tf

from bench.native.cases import Case, Image, Recommender, Recurrent, Segmentation, Text, Vision
from bench.native.cases import Dense as DenseShape
from bench.native.tf_layers import (
    Attention,
    BatchNorm,
    Conv,
    Dense,
    DepthwiseConv,
    LayerNorm,
    Lstm,
    Mlp,
    RmsNorm,
    UpConv,
    weight,
)

exact_gelu = partial(tf.nn.gelu, approximate=False)
tanh_gelu = partial(tf.nn.gelu, approximate=True)


class Block(tf.Module):
    """A transformer layer with a plain MLP, pre-norm or post-norm."""

    def __init__(self, shape: Text | Vision, causal: bool, norm_first: bool, epsilon: float) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attention = Attention(shape.width, shape.heads, shape.heads, causal, fused=causal, bias=True, rotary=False)
        self.mlp = Mlp(shape.width, shape.hidden, tanh_gelu if causal else exact_gelu)
        self.norms = (LayerNorm(shape.width, epsilon), LayerNorm(shape.width, epsilon))

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        first, second = self.norms
        if self.norm_first:
            x = x + self.attention(first(x))
            return x + self.mlp(second(x))
        x = first(x + self.attention(x))
        return second(x + self.mlp(x))


class Gpt2(tf.Module):
    """GPT-2 with its tied language model head."""

    def __init__(self, shape: Text) -> None:
        super().__init__()
        self.tokens, self.positions = weight((shape.vocabulary, shape.width), 0.02), weight((shape.positions, shape.width), 0.02)
        self.blocks = [Block(shape, causal=True, norm_first=True, epsilon=1e-5) for _ in range(shape.layers)]
        self.norm = LayerNorm(shape.width, 1e-5)

    def __call__(self, tokens: tf.Tensor, train: bool) -> tf.Tensor:
        x = tf.nn.embedding_lookup(self.tokens, tokens) + self.positions[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return tf.tensordot(self.norm(x), self.tokens, [[2], [1]])


class Bert(tf.Module):
    """BERT with its masked language model head."""

    def __init__(self, shape: Text) -> None:
        super().__init__()
        self.tokens, self.positions = weight((shape.vocabulary, shape.width), 0.02), weight((shape.positions, shape.width), 0.02)
        self.segments = weight((2, shape.width), 0.02)
        self.first_norm = LayerNorm(shape.width, 1e-12)
        self.blocks = [Block(shape, causal=False, norm_first=False, epsilon=1e-12) for _ in range(shape.layers)]
        self.transform, self.last_norm = Dense(shape.width, shape.width), LayerNorm(shape.width, 1e-12)
        self.head_bias = tf.Variable(tf.zeros(shape.vocabulary))

    def __call__(self, tokens: tf.Tensor, train: bool) -> tf.Tensor:
        x = tf.nn.embedding_lookup(self.tokens, tokens) + self.positions[: tokens.shape[1]]
        x = self.first_norm(x + tf.nn.embedding_lookup(self.segments, tf.zeros_like(tokens)))
        for block in self.blocks:
            x = block(x)
        x = self.last_norm(exact_gelu(self.transform(x)))
        return tf.tensordot(x, self.tokens, [[2], [1]]) + self.head_bias


class Vit(tf.Module):
    """Vision transformer with a class token."""

    def __init__(self, shape: Vision) -> None:
        super().__init__()
        self.kernel = weight((shape.patch, shape.patch, 3, shape.width), (shape.patch**2 * 3) ** -0.5)
        self.bias, self.patch = tf.Variable(tf.zeros(shape.width)), shape.patch
        self.start = tf.Variable(tf.zeros((1, 1, shape.width)))
        self.positions = weight((1, (shape.image // shape.patch) ** 2 + 1, shape.width), 0.02)
        self.blocks = [Block(shape, causal=False, norm_first=True, epsilon=1e-12) for _ in range(shape.layers)]
        self.norm, self.head = LayerNorm(shape.width, 1e-12), Dense(shape.width, shape.classes)

    def __call__(self, images: tf.Tensor, train: bool) -> tf.Tensor:
        patches = tf.nn.bias_add(tf.nn.conv2d(images, self.kernel, self.patch, "VALID"), self.bias)
        batch, _, _, width = patches.shape
        x = tf.concat([tf.tile(self.start, (batch, 1, 1)), tf.reshape(patches, (batch, -1, width))], axis=1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class LlamaBlock(tf.Module):
    """A Llama layer: grouped heads, rotary positions, gated MLP, RMS norms, no biases."""

    def __init__(self, s: Text) -> None:
        super().__init__()
        self.attention = Attention(s.width, s.heads, s.kv_heads, causal=True, fused=False, bias=False, rotary=True)
        self.norms = (RmsNorm(s.width, 1e-6), RmsNorm(s.width, 1e-6))
        self.gate, self.up = Dense(s.width, s.hidden, bias=False), Dense(s.width, s.hidden, bias=False)
        self.down = Dense(s.hidden, s.width, bias=False)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        x = x + self.attention(self.norms[0](x))
        y = self.norms[1](x)
        return x + self.down(tf.nn.silu(self.gate(y)) * self.up(y))


class Llama(tf.Module):
    """Llama with an untied language model head."""

    def __init__(self, shape: Text) -> None:
        super().__init__()
        self.tokens = weight((shape.vocabulary, shape.width), 0.02)
        self.blocks = [LlamaBlock(shape) for _ in range(shape.layers)]
        self.norm, self.head = RmsNorm(shape.width, 1e-6), Dense(shape.width, shape.vocabulary, bias=False)

    def __call__(self, tokens: tf.Tensor, train: bool) -> tf.Tensor:
        x = tf.nn.embedding_lookup(self.tokens, tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Bottleneck(tf.Module):
    """ResNet bottleneck, version 1.5: the stride is in the 3x3."""

    def __init__(self, inputs: int, middle: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.convs = (Conv(1, inputs, middle), Conv(3, middle, middle, stride), Conv(1, middle, outputs))
        self.norms = (BatchNorm(middle), BatchNorm(middle), BatchNorm(outputs))
        projects = stride > 1 or inputs != outputs
        self.shortcut = (Conv(1, inputs, outputs, stride), BatchNorm(outputs)) if projects else None

    def __call__(self, x: tf.Tensor, train: bool) -> tf.Tensor:
        y = tf.nn.relu(self.norms[0](self.convs[0](x), train))
        y = tf.nn.relu(self.norms[1](self.convs[1](y), train))
        y = self.norms[2](self.convs[2](y), train)
        if self.shortcut:
            conv, norm = self.shortcut
            x = norm(conv(x), train)
        return tf.nn.relu(x + y)


class ResNet50(tf.Module):
    """ResNet-50, version 1.5."""

    def __init__(self, shape: Image) -> None:
        super().__init__()
        self.stem, self.norm = Conv(7, 3, 64, 2), BatchNorm(64)
        self.blocks: list[Bottleneck] = []
        inputs = 64
        for stage, count in enumerate((3, 4, 6, 3)):
            for index in range(count):
                outputs = 256 * 2**stage
                self.blocks.append(Bottleneck(inputs, 64 * 2**stage, outputs, 2 if stage > 0 and index == 0 else 1))
                inputs = outputs
        self.head = Dense(inputs, shape.classes)

    def __call__(self, images: tf.Tensor, train: bool) -> tf.Tensor:
        x = tf.nn.relu(self.norm(self.stem(images), train))
        x = tf.nn.max_pool2d(x, 3, 2, "SAME")
        for block in self.blocks:
            x = block(x, train)
        return self.head(tf.reduce_mean(x, axis=(1, 2)))


MOBILENET_V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, repeats, first stride. Source: Sandler et al. (2018), MobileNetV2, table 2."""


class InvertedResidual(tf.Module):
    """MobileNetV2's layer: expand, depthwise, project."""

    def __init__(self, inputs: int, expansion: int, outputs: int, stride: int) -> None:
        super().__init__()
        middle = inputs * expansion
        self.expand = (Conv(1, inputs, middle), BatchNorm(middle)) if expansion > 1 else None
        self.depthwise, self.middle_norm = DepthwiseConv(middle, stride), BatchNorm(middle)
        self.project, self.last_norm = Conv(1, middle, outputs), BatchNorm(outputs)
        self.residual = stride == 1 and inputs == outputs

    def __call__(self, x: tf.Tensor, train: bool) -> tf.Tensor:
        y = x
        if self.expand:
            conv, norm = self.expand
            y = tf.nn.relu6(norm(conv(y), train))
        y = tf.nn.relu6(self.middle_norm(self.depthwise(y), train))
        y = self.last_norm(self.project(y), train)
        return x + y if self.residual else y


class MobileNetV2(tf.Module):
    """MobileNetV2 of width 1.0."""

    def __init__(self, shape: Image) -> None:
        super().__init__()
        self.stem, self.norm = Conv(3, 3, 32, 2), BatchNorm(32)
        self.blocks: list[InvertedResidual] = []
        inputs = 32
        for expansion, channels, repeats, stride in MOBILENET_V2:
            for index in range(repeats):
                self.blocks.append(InvertedResidual(inputs, expansion, channels, stride if index == 0 else 1))
                inputs = channels
        self.last, self.last_norm = Conv(1, inputs, 1280), BatchNorm(1280)
        self.head = Dense(1280, shape.classes)

    def __call__(self, images: tf.Tensor, train: bool) -> tf.Tensor:
        x = tf.nn.relu6(self.norm(self.stem(images), train))
        for block in self.blocks:
            x = block(x, train)
        x = tf.nn.relu6(self.last_norm(self.last(x), train))
        return self.head(tf.reduce_mean(x, axis=(1, 2)))


class LanguageModel(tf.Module):
    """Embedding, LSTM layers, dense decoder."""

    def __init__(self, shape: Recurrent) -> None:
        super().__init__()
        self.tokens = weight((shape.vocabulary, shape.width), 0.02)
        self.layers = [Lstm(shape.width) for _ in range(shape.layers)]
        self.decoder = Dense(shape.width, shape.vocabulary)

    def __call__(self, tokens: tf.Tensor, train: bool) -> tf.Tensor:
        x = tf.nn.embedding_lookup(self.tokens, tokens)
        for layer in self.layers:
            x = layer(x)
        return self.decoder(x)


class Tower(tf.Module):
    """Dense layers with relu between, and after the last one when asked."""

    def __init__(self, widths: tuple[int, ...], last_activation: bool) -> None:
        super().__init__()
        self.layers = [Dense(a, b) for a, b in pairwise(widths)]
        self.last_activation = last_activation

    def __call__(self, x: tf.Tensor, train: bool = False) -> tf.Tensor:
        for index, layer in enumerate(self.layers):
            x = layer(x)
            if self.last_activation or index < len(self.layers) - 1:
                x = tf.nn.relu(x)
        return x


class Dlrm(tf.Module):
    """Deep learning recommendation model."""

    def __init__(self, s: Recommender) -> None:
        super().__init__()
        features = s.tables + 1
        self.bottom = Tower(s.bottom, last_activation=True)
        self.tables = [weight((s.rows, s.width), 0.02) for _ in range(s.tables)]
        self.top = Tower((s.bottom[-1] + features * (features - 1) // 2, *s.top), last_activation=False)
        self.pairs = tuple(i * features + j for i in range(features) for j in range(i))

    def __call__(self, dense: tf.Tensor, ids: tf.Tensor, train: bool) -> tf.Tensor:
        first = self.bottom(dense)
        bags = [tf.reduce_sum(tf.nn.embedding_lookup(table, ids[:, i]), axis=1) for i, table in enumerate(self.tables)]
        vectors = tf.stack([first, *bags], axis=1)
        products = tf.reshape(tf.matmul(vectors, vectors, transpose_b=True), (first.shape[0], -1))
        joined = tf.concat([first, tf.gather(products, self.pairs, axis=1)], axis=1)
        return tf.squeeze(self.top(joined), axis=1)


class DoubleConvolution(tf.Module):
    """Twice 3x3 convolution, batch norm, relu."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layers = ((Conv(3, inputs, outputs), BatchNorm(outputs)), (Conv(3, outputs, outputs), BatchNorm(outputs)))

    def __call__(self, x: tf.Tensor, train: bool) -> tf.Tensor:
        for conv, norm in self.layers:
            x = tf.nn.relu(norm(conv(x), train))
        return x


class UNet(tf.Module):
    """U-Net with batch norm and transposed convolutions."""

    def __init__(self, shape: Segmentation) -> None:
        super().__init__()
        widths = [3] + [shape.base * 2**i for i in range(5)]
        self.down = [DoubleConvolution(a, b) for a, b in pairwise(widths)]
        pairs = list(pairwise(widths[:0:-1]))
        self.up = [(UpConv(a, b), DoubleConvolution(a, b)) for a, b in pairs]
        self.head = Conv(1, shape.base, shape.classes, bias=True)

    def __call__(self, x: tf.Tensor, train: bool) -> tf.Tensor:
        skips: list[tf.Tensor] = []
        for index, down in enumerate(self.down):
            x = down(tf.nn.max_pool2d(x, 2, 2, "VALID") if index else x, train)
            skips.append(x)
        for (up, join), skip in zip(self.up, skips[-2::-1], strict=True):
            x = join(tf.concat([skip, up(x)], axis=-1), train)
        return self.head(x)


def mlp(case: Case) -> tf.Module:
    """Return a multilayer perceptron."""
    assert isinstance(case.shape, DenseShape)
    return Tower(case.shape.widths, last_activation=False)


BUILDERS: dict[str, Callable[[Case], tf.Module]] = {
    "gpt2": lambda c: Gpt2(c.shape), "bert": lambda c: Bert(c.shape), "llama": lambda c: Llama(c.shape),
    "vit": lambda c: Vit(c.shape), "resnet50": lambda c: ResNet50(c.shape), "mobilenet_v2": lambda c: MobileNetV2(c.shape),
    "lstm": lambda c: LanguageModel(c.shape), "dlrm": lambda c: Dlrm(c.shape), "mlp": mlp, "unet": lambda c: UNet(c.shape),
}
