"""The models in Gluon, all of them hybrid blocks: what GluonNLP and GluonCV would build, with today's reference sizes."""
# ruff: noqa: ARG002, D102, N803 (Gluon names the method and its first argument; the class says what its call does)

from collections.abc import Callable
from itertools import pairwise
from math import log, sqrt
from typing import Any

from mxnet.gluon import HybridBlock, nn, rnn

from bench.native.cases import Case, Image, Recommender, Recurrent, Segmentation, Text, Vision
from bench.native.cases import Dense as DenseShape


def linear(inputs: int, outputs: int, bias: bool = True) -> Any:
    """Return a dense layer over the last axis."""
    return nn.Dense(outputs, flatten=False, in_units=inputs, use_bias=bias)


class Attention(HybridBlock):
    """Multi-head self-attention with one product for query, key and value, or three; causal, rotary and grouped on request."""

    def __init__(
        self, s: Text | Vision, kv_heads: int, causal: bool, fused: bool, bias: bool = True, rotary: bool = False
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.width = s.heads, kv_heads, s.width // s.heads
        self.causal, self.fused, self.rotary = causal, fused, rotary
        with self.name_scope():
            kv = kv_heads * self.width
            if fused:
                self.joint = linear(s.width, s.width + 2 * kv, bias)
            else:
                self.query = linear(s.width, s.width, bias)
                self.key, self.value = linear(s.width, kv, bias), linear(s.width, kv, bias)
            self.out = linear(s.width, s.width, bias)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        parts = F.split(self.joint(x), 3, axis=-1) if self.fused else (self.query(x), self.key(x), self.value(x))
        q, k, v = (F.transpose(F.reshape(part, shape=(0, 0, -1, self.width)), axes=(0, 2, 1, 3)) for part in parts)
        if self.rotary:
            q, k = self._rotate(F, q), self._rotate(F, k)
        if self.kv_heads != self.heads:
            k, v = (F.repeat(part, self.heads // self.kv_heads, axis=1) for part in (k, v))
        q, k, v = (F.reshape(part, shape=(-3, 0, 0)) for part in (q, k, v))
        scores = F.batch_dot(q / sqrt(self.width), k, transpose_b=True)
        if self.causal:
            position = F.contrib.arange_like(scores, axis=1)
            later = F.broadcast_lesser(F.expand_dims(position, 1), F.expand_dims(position, 0))
            scores = F.broadcast_add(scores, F.expand_dims(later * -1e9, 0))
        y = F.reshape(F.batch_dot(F.softmax(scores, axis=-1), v), shape=(-4, -1, self.heads, 0, 0))
        return self.out(F.reshape(F.transpose(y, axes=(0, 2, 1, 3)), shape=(0, 0, -1)))

    def _rotate(self, F: Any, x: Any) -> Any:
        half = self.width // 2
        rate = F.exp(F.arange(0, self.width, 2) * (-log(10000.0) / self.width))
        angle = F.broadcast_mul(F.expand_dims(F.contrib.arange_like(x, axis=2), 1), F.expand_dims(rate, 0))
        angle = F.expand_dims(F.expand_dims(F.concat(angle, angle, dim=1), axis=0), axis=0)
        low, high = F.slice_axis(x, axis=3, begin=0, end=half), F.slice_axis(x, axis=3, begin=half, end=self.width)
        return F.broadcast_mul(x, F.cos(angle)) + F.broadcast_mul(F.concat(-high, low, dim=3), F.sin(angle))


def gelu_new(F: Any, x: Any) -> Any:
    """Return GPT-2's gelu by tanh."""
    return 0.5 * x * (1 + F.tanh(sqrt(2 / 3.141592653589793) * (x + 0.044715 * x * x * x)))


def gelu(F: Any, x: Any) -> Any:
    """Return the exact gelu."""
    return F.LeakyReLU(x, act_type="gelu")


class Layer(HybridBlock):
    """A transformer layer with a plain MLP, pre-norm or post-norm."""

    def __init__(self, s: Text | Vision, causal: bool, norm_first: bool, epsilon: float) -> None:
        super().__init__()
        self.norm_first, self.activate = norm_first, gelu_new if causal else gelu
        with self.name_scope():
            self.attention = Attention(s, s.heads, causal, fused=causal)
            self.up, self.down = linear(s.width, s.hidden), linear(s.hidden, s.width)
            self.first, self.second = (nn.LayerNorm(epsilon=epsilon, in_channels=s.width) for _ in range(2))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        def mlp(y: Any) -> Any:
            return self.down(self.activate(F, self.up(y)))

        if self.norm_first:
            x = x + self.attention(self.first(x))
            return x + mlp(self.second(x))
        x = self.first(x + self.attention(x))
        return self.second(x + mlp(x))


def stack(layers: list[Any]) -> Any:
    """Return layers one after the other."""
    result = nn.HybridSequential()
    result.add(*layers)
    return result


class Gpt2(HybridBlock):
    """GPT-2 with its tied language model head."""

    def __init__(self, s: Text) -> None:
        super().__init__()
        self.s = s
        with self.name_scope():
            self.tokens = nn.Embedding(s.vocabulary, s.width)
            self.positions = self.params.get("positions", shape=(s.positions, s.width))
            self.layers = stack([Layer(s, causal=True, norm_first=True, epsilon=1e-5) for _ in range(s.layers)])
            self.norm = nn.LayerNorm(epsilon=1e-5, in_channels=s.width)
            self.head = nn.Dense(s.vocabulary, flatten=False, use_bias=False, in_units=s.width, params=self.tokens.params)

    def hybrid_forward(self, F: Any, tokens: Any, positions: Any) -> Any:
        x = F.broadcast_add(self.tokens(tokens), F.expand_dims(F.slice_axis(positions, axis=0, begin=0, end=self.s.length), 0))
        return self.head(self.norm(self.layers(x)))


class Bert(HybridBlock):
    """BERT with its masked language model head."""

    def __init__(self, s: Text) -> None:
        super().__init__()
        self.s = s
        with self.name_scope():
            self.tokens, self.segments = nn.Embedding(s.vocabulary, s.width), nn.Embedding(2, s.width)
            self.positions = self.params.get("positions", shape=(s.positions, s.width))
            self.first_norm = nn.LayerNorm(epsilon=1e-12, in_channels=s.width)
            self.layers = stack([Layer(s, causal=False, norm_first=False, epsilon=1e-12) for _ in range(s.layers)])
            self.transform, self.last_norm = linear(s.width, s.width), nn.LayerNorm(epsilon=1e-12, in_channels=s.width)
            self.head = nn.Dense(s.vocabulary, flatten=False, in_units=s.width, params=self.tokens.params)

    def hybrid_forward(self, F: Any, tokens: Any, positions: Any) -> Any:
        x = self.tokens(tokens) + self.segments(F.zeros_like(tokens))
        x = self.first_norm(F.broadcast_add(x, F.expand_dims(F.slice_axis(positions, axis=0, begin=0, end=self.s.length), 0)))
        return self.head(self.last_norm(gelu(F, self.transform(self.layers(x)))))


class RmsNorm(HybridBlock):
    """Root mean square norm, as Llama's."""

    def __init__(self, width: int) -> None:
        super().__init__()
        with self.name_scope():
            self.scale = self.params.get("scale", shape=(width,), init="ones")

    def hybrid_forward(self, F: Any, x: Any, scale: Any) -> Any:
        return F.broadcast_mul(F.broadcast_mul(x, F.rsqrt(F.mean(x * x, axis=-1, keepdims=True) + 1e-6)), scale)


class LlamaLayer(HybridBlock):
    """A Llama layer: grouped heads, rotary positions, gated MLP, RMS norms, no biases."""

    def __init__(self, s: Text) -> None:
        super().__init__()
        with self.name_scope():
            self.attention = Attention(s, s.kv_heads, causal=True, fused=False, bias=False, rotary=True)
            self.gate, self.up = linear(s.width, s.hidden, False), linear(s.width, s.hidden, False)
            self.down = linear(s.hidden, s.width, False)
            self.first, self.second = RmsNorm(s.width), RmsNorm(s.width)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        x = x + self.attention(self.first(x))
        y = self.second(x)
        gate = self.gate(y)
        return x + self.down(gate * F.sigmoid(gate) * self.up(y))


class Vit(HybridBlock):
    """Vision transformer with a class token."""

    def __init__(self, s: Vision) -> None:
        super().__init__()
        with self.name_scope():
            self.patch = nn.Conv2D(s.width, s.patch, s.patch, in_channels=3)
            self.start = self.params.get("start", shape=(1, 1, s.width))
            self.positions = self.params.get("positions", shape=(1, (s.image // s.patch) ** 2 + 1, s.width))
            self.layers = stack([Layer(s, causal=False, norm_first=True, epsilon=1e-12) for _ in range(s.layers)])
            self.norm, self.head = nn.LayerNorm(epsilon=1e-12, in_channels=s.width), linear(s.width, s.classes)

    def hybrid_forward(self, F: Any, images: Any, start: Any, positions: Any) -> Any:
        x = F.transpose(F.reshape(self.patch(images), shape=(0, 0, -1)), axes=(0, 2, 1))
        x = F.concat(F.broadcast_like(start, x, lhs_axes=(0,), rhs_axes=(0,)), x, dim=1)
        x = self.norm(self.layers(F.broadcast_add(x, positions)))
        return self.head(F.squeeze(F.slice_axis(x, axis=1, begin=0, end=1), axis=1))


def convolved(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, act: str = "relu") -> list[Any]:
    """Return convolution, batch norm and activation."""
    conv = nn.Conv2D(outputs, kernel, stride, kernel // 2, groups=groups, use_bias=False, in_channels=inputs)
    last = [nn.Activation("relu")] if act == "relu" else [nn.HybridLambda(lambda F, x: F.clip(x, 0, 6))] if act == "relu6" else []
    return [conv, nn.BatchNorm(epsilon=1e-5, in_channels=outputs), *last]


class Residual(HybridBlock):
    """What goes in, or its projection, plus what a body makes of it; relu after it on request."""

    def __init__(self, body: list[Any], shortcut: list[Any], relu: bool) -> None:
        super().__init__()
        self.relu, self.projects = relu, bool(shortcut)
        with self.name_scope():
            self.body, self.shortcut = stack(body), stack(shortcut) if shortcut else nn.HybridSequential()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        y = self.body(x) + (self.shortcut(x) if self.projects else x)
        return F.relu(y) if self.relu else y


def resnet50(s: Image) -> Any:
    """Return ResNet-50 v1.5: the stride is in the 3x3 convolution."""
    layers = [*convolved(3, 64, 7, 2), nn.MaxPool2D(3, 2, 1)]
    inputs = 64
    for stage, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for index in range(count):
            stride = 2 if index == 0 and stage else 1
            outputs = 4 * width
            body = [*convolved(inputs, width, 1), *convolved(width, width, 3, stride), *convolved(width, outputs, 1, act="")]
            layers.append(Residual(body, convolved(inputs, outputs, 1, stride, act="") if index == 0 else [], relu=True))
            inputs = outputs
    return stack([*layers, nn.GlobalAvgPool2D(), nn.Dense(s.classes, in_units=inputs)])


def mobilenet_v2(s: Image) -> Any:
    """Return MobileNetV2."""
    layers, inputs = convolved(3, 32, 3, 2, act="relu6"), 32
    for factor, outputs, count, first in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):
        for index in range(count):
            stride, hidden = first if index == 0 else 1, inputs * factor
            body = convolved(inputs, hidden, 1, act="relu6") if factor > 1 else []
            body = [*body, *convolved(hidden, hidden, 3, stride, hidden, act="relu6"), *convolved(hidden, outputs, 1, act="")]
            layers = [*layers, Residual(body, [], relu=False)] if stride == 1 and inputs == outputs else [*layers, *body]
            inputs = outputs
    return stack([*layers, *convolved(inputs, 1280, 1, act="relu6"), nn.GlobalAvgPool2D(), nn.Dense(s.classes, in_units=1280)])


class LanguageModel(HybridBlock):
    """Embedding, `rnn.LSTM`, linear decoder."""

    def __init__(self, s: Recurrent) -> None:
        super().__init__()
        with self.name_scope():
            self.embedding = nn.Embedding(s.vocabulary, s.width)
            self.lstm = rnn.LSTM(s.width, s.layers, layout="NTC", input_size=s.width)
            self.decoder = linear(s.width, s.vocabulary)

    def hybrid_forward(self, F: Any, tokens: Any) -> Any:
        return self.decoder(self.lstm(self.embedding(tokens)))


def tower(widths: tuple[int, ...], last_activation: bool) -> Any:
    """Return dense layers with relu between, and after the last one when asked."""
    count = len(widths) - 1
    return stack(
        [
            nn.Dense(b, in_units=a, activation="relu" if last_activation or index < count - 1 else None)
            for index, (a, b) in enumerate(pairwise(widths))
        ]
    )


class Dlrm(HybridBlock):
    """Deep learning recommendation model: a table for each feature, summed rows, pairwise products."""

    def __init__(self, s: Recommender) -> None:
        super().__init__()
        self.tables = s.tables
        features = s.tables + 1
        with self.name_scope():
            self.bottom = tower(s.bottom, last_activation=True)
            self.bags = stack([nn.Embedding(s.rows, s.width) for _ in range(s.tables)])
            self.top = tower((s.bottom[-1] + features * (features - 1) // 2, *s.top), last_activation=False)

    def hybrid_forward(self, F: Any, dense: Any, ids: Any) -> Any:
        first = self.bottom(dense)
        columns = F.split(ids, self.tables, axis=1, squeeze_axis=True) if self.tables > 1 else [F.squeeze(ids, axis=1)]
        rows = [F.sum(table(own), axis=1) for table, own in zip(self.bags, columns, strict=True)]
        vectors = F.stack(first, *rows, axis=1)
        pairs = F.linalg.extracttrian(F.batch_dot(vectors, vectors, transpose_b=True), offset=-1)
        return F.squeeze(self.top(F.concat(first, pairs, dim=1)), axis=1)


class UNet(HybridBlock):
    """U-Net with batch norm and transposed convolutions."""

    def __init__(self, s: Segmentation) -> None:
        super().__init__()
        widths = [s.base * 2**i for i in range(5)]
        pairs = list(pairwise(widths[::-1]))
        with self.name_scope():
            self.first = stack([*convolved(3, widths[0], 3), *convolved(widths[0], widths[0], 3)])
            self.down = stack([stack([nn.MaxPool2D(2), *convolved(a, b, 3), *convolved(b, b, 3)]) for a, b in pairwise(widths)])
            self.up = stack([nn.Conv2DTranspose(b, 2, 2, in_channels=a) for a, b in pairs])
            self.join = stack([stack([*convolved(a, b, 3), *convolved(b, b, 3)]) for a, b in pairs])
            self.head = nn.Conv2D(s.classes, 1, in_channels=widths[0])

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        skips = [self.first(x)]
        for down in self.down:
            skips.append(down(skips[-1]))
        x = skips.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = join(F.concat(skips.pop(), up(x), dim=1))
        return self.head(x)


def _llama(s: Text) -> Any:
    layers = [nn.Embedding(s.vocabulary, s.width), *(LlamaLayer(s) for _ in range(s.layers)), RmsNorm(s.width)]
    return stack([*layers, linear(s.width, s.vocabulary, bias=False)])


def _dense(s: DenseShape) -> Any:
    return tower(s.widths, last_activation=False)


_MAKERS: dict[str, Callable[[Any], Any]] = {
    "gpt2": Gpt2, "bert": Bert, "llama": _llama, "vit": Vit, "resnet50": resnet50, "mobilenet_v2": mobilenet_v2,
    "lstm": LanguageModel, "dlrm": Dlrm, "mlp": _dense, "unet": UNet,
}


def build(case: Case) -> Any:
    """Return the block of a case, not initialised."""
    return _MAKERS[case.family](case.shape)
