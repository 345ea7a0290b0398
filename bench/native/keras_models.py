"""The models in Keras 3, the same code on every backend: `keras.applications` where it has them, `keras.layers` otherwise."""

from collections.abc import Callable

import keras
from keras import layers, ops

from bench.native.cases import Case, Dense, Image, Recommender, Recurrent, Segmentation, Text, Vision


class Positions(layers.Layer):
    """Adds learned positions to batch x length x width."""

    def __init__(self, positions: int) -> None:
        super().__init__()
        self.count = positions

    def build(self, shape: tuple[int, ...]) -> None:
        """Make the table once the width is known."""
        self.table = self.add_weight(shape=(self.count, shape[-1]), initializer="random_normal", name="positions")

    def call(self, x: keras.KerasTensor) -> keras.KerasTensor:
        """Add the first `length` rows."""
        return x + self.table[: x.shape[1]]


class ClassToken(layers.Layer):
    """Puts a learned vector before a sequence."""

    def build(self, shape: tuple[int, ...]) -> None:
        """Make the vector once the width is known."""
        self.token = self.add_weight(shape=(1, 1, shape[-1]), initializer="zeros", name="token")

    def call(self, x: keras.KerasTensor) -> keras.KerasTensor:
        """Repeat the vector for each sample and join it on the left."""
        return ops.concatenate([ops.broadcast_to(self.token, (ops.shape(x)[0], 1, x.shape[2])), x], axis=1)


class Bias(layers.Layer):
    """Adds a learned vector to the last axis."""

    def build(self, shape: tuple[int, ...]) -> None:
        """Make the vector once the width is known."""
        self.bias = self.add_weight(shape=(shape[-1],), initializer="zeros", name="bias")

    def call(self, x: keras.KerasTensor) -> keras.KerasTensor:
        """Add it."""
        return x + self.bias


def gelu(approximate: bool) -> Callable[[keras.KerasTensor], keras.KerasTensor]:
    """Return gelu by the error function or its tanh form."""
    return lambda x: keras.activations.gelu(x, approximate=approximate)


def transformer_layer(
    x: keras.KerasTensor, s: Text | Vision, causal: bool, norm_first: bool, epsilon: float,
) -> keras.KerasTensor:
    """Apply one layer with `MultiHeadAttention` and a plain MLP."""
    attention = layers.MultiHeadAttention(s.heads, s.width // s.heads)
    first, second = layers.LayerNormalization(epsilon=epsilon), layers.LayerNormalization(epsilon=epsilon)
    up, down = layers.Dense(s.hidden, activation=gelu(approximate=causal)), layers.Dense(s.width)
    if norm_first:
        y = first(x)
        x = x + attention(y, y, use_causal_mask=causal)
        return x + down(up(second(x)))
    x = first(x + attention(x, x, use_causal_mask=causal))
    return second(x + down(up(x)))


def gpt2(case: Case) -> keras.Model:
    """Return GPT-2 with its tied language model head."""
    assert isinstance(case.shape, Text)
    s = case.shape
    tokens = keras.Input((s.length,), case.batch, dtype="int32")
    embed = layers.ReversibleEmbedding(s.vocabulary, s.width)
    x = Positions(s.positions)(embed(tokens))
    for _ in range(s.layers):
        x = transformer_layer(x, s, causal=True, norm_first=True, epsilon=1e-5)
    return keras.Model(tokens, embed(layers.LayerNormalization(epsilon=1e-5)(x), reverse=True))


def bert(case: Case) -> keras.Model:
    """Return BERT with its masked language model head."""
    assert isinstance(case.shape, Text)
    s = case.shape
    tokens = keras.Input((s.length,), case.batch, dtype="int32")
    embed = layers.ReversibleEmbedding(s.vocabulary, s.width)
    segments = layers.Embedding(2, s.width)(ops.zeros_like(tokens))
    x = layers.LayerNormalization(epsilon=1e-12)(Positions(s.positions)(embed(tokens)) + segments)
    for _ in range(s.layers):
        x = transformer_layer(x, s, causal=False, norm_first=False, epsilon=1e-12)
    x = layers.LayerNormalization(epsilon=1e-12)(layers.Dense(s.width, activation=gelu(approximate=False))(x))
    return keras.Model(tokens, Bias()(embed(x, reverse=True)))


def vit(case: Case) -> keras.Model:
    """Return a vision transformer with a class token."""
    assert isinstance(case.shape, Vision)
    s = case.shape
    images = keras.Input((s.image, s.image, 3), case.batch)
    patches = layers.Conv2D(s.width, s.patch, strides=s.patch)(images)
    x = ClassToken()(layers.Reshape((-1, s.width))(patches))
    x = Positions(x.shape[1])(x)
    for _ in range(s.layers):
        x = transformer_layer(x, s, causal=False, norm_first=True, epsilon=1e-12)
    return keras.Model(images, layers.Dense(s.classes)(layers.LayerNormalization(epsilon=1e-12)(x)[:, 0]))


def rotate(x: keras.KerasTensor) -> keras.KerasTensor:
    """Apply rotary positions to batch x length x heads x head width, halves as in Llama."""
    half = x.shape[-1] // 2
    frequencies = 10000.0 ** (-ops.arange(half, dtype="float32") / half)
    angles = ops.arange(x.shape[1], dtype="float32")[:, None, None] * frequencies
    low, high = ops.split(x, 2, axis=-1)
    cosine, sine = ops.cos(angles), ops.sin(angles)
    return ops.concatenate([low * cosine - high * sine, high * cosine + low * sine], axis=-1)


class LlamaAttention(layers.Layer):
    """Grouped attention with rotary positions, after KerasHub's."""

    def __init__(self, heads: int, kv_heads: int, width: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_width = heads, kv_heads, width // heads
        self.query, self.output_projection = layers.Dense(width, use_bias=False), layers.Dense(width, use_bias=False)
        self.key = layers.Dense(kv_heads * self.head_width, use_bias=False)
        self.value = layers.Dense(kv_heads * self.head_width, use_bias=False)

    def build(self, shape: tuple[int, ...]) -> None:
        """Build the projections."""
        for projection in (self.query, self.key, self.value, self.output_projection):
            projection.build(shape)

    def call(self, x: keras.KerasTensor) -> keras.KerasTensor:
        """Attend causally."""
        batch, length, width = x.shape
        query = rotate(ops.reshape(self.query(x), (batch, length, self.heads, self.head_width)))
        key = rotate(ops.reshape(self.key(x), (batch, length, self.kv_heads, self.head_width)))
        value = ops.reshape(self.value(x), (batch, length, self.kv_heads, self.head_width))
        key, value = (ops.repeat(a, self.heads // self.kv_heads, axis=2) for a in (key, value))
        attended = ops.dot_product_attention(query, key, value, is_causal=True)
        return self.output_projection(ops.reshape(attended, (batch, length, width)))


def llama(case: Case) -> keras.Model:
    """Return Llama with an untied language model head."""
    assert isinstance(case.shape, Text)
    s = case.shape
    tokens = keras.Input((s.length,), case.batch, dtype="int32")
    x = layers.Embedding(s.vocabulary, s.width)(tokens)
    for _ in range(s.layers):
        x = x + LlamaAttention(s.heads, s.kv_heads, s.width)(layers.RMSNormalization(epsilon=1e-6)(x))
        y = layers.RMSNormalization(epsilon=1e-6)(x)
        gated = layers.Dense(s.hidden, activation="silu", use_bias=False)(y) * layers.Dense(s.hidden, use_bias=False)(y)
        x = x + layers.Dense(s.width, use_bias=False)(gated)
    return keras.Model(tokens, layers.Dense(s.vocabulary, use_bias=False)(layers.RMSNormalization(epsilon=1e-6)(x)))


def resnet50(case: Case) -> keras.Model:
    """Return `keras.applications.ResNet50`: version 1, its stride in the first 1x1, convolutions with biases."""
    assert isinstance(case.shape, Image)
    s = case.shape
    images = keras.Input((s.image, s.image, 3), case.batch)
    return keras.applications.ResNet50(weights=None, input_tensor=images, classes=s.classes, classifier_activation=None)


def mobilenet_v2(case: Case) -> keras.Model:
    """Return `keras.applications.MobileNetV2`."""
    assert isinstance(case.shape, Image)
    s = case.shape
    images = keras.Input((s.image, s.image, 3), case.batch)
    return keras.applications.MobileNetV2(weights=None, input_tensor=images, classes=s.classes, classifier_activation=None)


def lstm(case: Case) -> keras.Model:
    """Return a language model of `keras.layers.LSTM`."""
    assert isinstance(case.shape, Recurrent)
    s = case.shape
    tokens = keras.Input((s.length,), case.batch, dtype="int32")
    x = layers.Embedding(s.vocabulary, s.width)(tokens)
    for _ in range(s.layers):
        x = layers.LSTM(s.width, return_sequences=True)(x)
    return keras.Model(tokens, layers.Dense(s.vocabulary)(x))


def tower(x: keras.KerasTensor, widths: tuple[int, ...], last_activation: bool) -> keras.KerasTensor:
    """Apply dense layers with relu between, and after the last one when asked."""
    for index, width in enumerate(widths):
        x = layers.Dense(width, activation="relu" if last_activation or index < len(widths) - 1 else None)(x)
    return x


class Interaction(layers.Layer):
    """Pairwise dot products of feature vectors, strictly below the diagonal."""

    def build(self, shape: tuple[int, ...]) -> None:
        """Fix the places of the pairs."""
        count = shape[1]
        self.pairs = [i * count + j for i in range(count) for j in range(i)]

    def call(self, vectors: keras.KerasTensor) -> keras.KerasTensor:
        """Return batch x pairs."""
        batch, count, _ = vectors.shape
        products = ops.reshape(ops.matmul(vectors, ops.transpose(vectors, (0, 2, 1))), (batch, count * count))
        return ops.take(products, self.pairs, axis=1)


def dlrm(case: Case) -> keras.Model:
    """Return a deep learning recommendation model."""
    assert isinstance(case.shape, Recommender)
    s = case.shape
    dense = keras.Input((s.bottom[0],), case.batch)
    ids = keras.Input((s.tables, s.per_bag), case.batch, dtype="int32")
    first = tower(dense, s.bottom[1:], last_activation=True)
    bags = [ops.sum(layers.Embedding(s.rows, s.width)(ids[:, i]), axis=1) for i in range(s.tables)]
    pairs = Interaction()(ops.stack([first, *bags], axis=1))
    return keras.Model([dense, ids], tower(ops.concatenate([first, pairs], axis=1), s.top, last_activation=False))


def mlp(case: Case) -> keras.Model:
    """Return a multilayer perceptron."""
    assert isinstance(case.shape, Dense)
    inputs = keras.Input((case.shape.widths[0],), case.batch)
    return keras.Model(inputs, tower(inputs, case.shape.widths[1:], last_activation=False))


def double_convolution(x: keras.KerasTensor, channels: int) -> keras.KerasTensor:
    """Apply twice 3x3 convolution, batch norm, relu."""
    for _ in range(2):
        x = layers.Conv2D(channels, 3, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    return x


def unet(case: Case) -> keras.Model:
    """Return a U-Net with batch norm and transposed convolutions."""
    assert isinstance(case.shape, Segmentation)
    s = case.shape
    inputs = x = keras.Input((s.image, s.image, 3), case.batch)
    widths = [s.base * 2**i for i in range(5)]
    skips: list[keras.KerasTensor] = []
    for width in widths[:-1]:
        x = double_convolution(x, width)
        skips.append(x)
        x = layers.MaxPooling2D(2)(x)
    x = double_convolution(x, widths[-1])
    for width, skip in zip(widths[-2::-1], skips[::-1], strict=True):
        x = layers.Conv2DTranspose(width, 2, strides=2)(x)
        x = double_convolution(layers.Concatenate()([skip, x]), width)
    return keras.Model(inputs, layers.Conv2D(s.classes, 1)(x))


BUILDERS: dict[str, Callable[[Case], keras.Model]] = {
    "gpt2": gpt2, "bert": bert, "llama": llama, "vit": vit, "resnet50": resnet50, "mobilenet_v2": mobilenet_v2,
    "lstm": lstm, "dlrm": dlrm, "mlp": mlp, "unet": unet,
}
