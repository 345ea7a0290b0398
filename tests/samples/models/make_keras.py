"""Makes the sample models of Keras, with what Keras and torch count of them: `KERAS_BACKEND=torch python make_keras.py`.

Needs keras, torch and h5py; the tests need none of them. `expected.json` holds parameters by Keras's own count and FLOPs by
torch's FlopCounterMode, for a batch of 1 and a length of 16.
"""

import json
import os
from math import prod
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

os.environ.setdefault("KERAS_BACKEND", "torch")

import h5py
import keras
import numpy as np
import torch
from keras import layers
from torch.utils.flop_counter import FlopCounterMode

HERE = Path(__file__).resolve().parent
LENGTH = 16


def tabular() -> keras.Model:
    """Normalisation with stored statistics, then dense layers; never given a name of input."""
    return keras.Sequential([keras.Input((6,)), layers.Normalization(), layers.Dense(16, activation="gelu"), layers.Dropout(0.1),
                             layers.Dense(3, activation="softmax")], name="tabular")  # fmt: skip


def convolutions() -> keras.Model:
    """A residual convolution network with grouped, depthwise, separable and transposed ones."""
    image = keras.Input((15, 17, 4), name="image")
    a = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(image)
    a = layers.ReLU()(layers.BatchNormalization()(a))
    b = layers.Add()([a, layers.Conv2D(8, 3, padding="same", groups=2)(a)])
    b = layers.SeparableConv2D(12, 3, depth_multiplier=2)(b)
    b = layers.DepthwiseConv2D(3, strides=2, padding="same")(b)
    b = layers.Conv2DTranspose(5, 3, strides=2)(b)
    b = layers.UpSampling2D(2)(layers.ZeroPadding2D(1)(b))
    return keras.Model(image, layers.GlobalAveragePooling2D()(b), name="convolutions")


def attention() -> keras.Model:
    """A transformer layer over a length that is open, with an embedding and operations between layers."""
    tokens = keras.Input((None,), dtype="int32", name="tokens")
    x = layers.Embedding(50, 16)(tokens)
    y = layers.LayerNormalization()(x)
    x = x + layers.MultiHeadAttention(2, 8, dropout=0.1)(y, y, use_causal_mask=True)
    y = layers.Dense(32, activation="silu")(layers.RMSNormalization()(x))
    x = keras.ops.add(x, layers.Dense(16)(y)) * 0.5
    return keras.Model(tokens, layers.EinsumDense("abc,cd->abd", output_shape=(None, 50))(x), name="attention")


def recurrent() -> keras.Model:
    """Recurrent layers both ways, one of them through its states."""
    series = keras.Input((9, 5), name="series")
    x = layers.Bidirectional(layers.LSTM(6, return_sequences=True))(series)
    x, state = layers.GRU(4, return_state=True, return_sequences=True)(x)
    x = layers.TimeDistributed(layers.Dense(3))(x)
    return keras.Model(series, [x, state], name="recurrent")


def shared() -> keras.Model:
    """A layer called twice, and a model within the model called twice."""
    first, second = keras.Input((7,), name="first"), keras.Input((7,), name="second")
    a, b = keras.Input((7,)), keras.Input((7,))
    inner = keras.Model([a, b], [layers.Dense(7)(a * b), b], name="inner")
    dense = layers.Dense(7, name="twice")
    x, y = inner([dense(first), dense(second)])
    x, y = inner([x, y])
    return keras.Model([first, second], layers.Concatenate()([x, y]), name="shared")


def halves() -> keras.Model:
    """Arithmetic in bfloat16 over weights in float32, a part of them frozen."""
    x = keras.Input((8,), name="x")
    y = layers.Dense(8, dtype="mixed_bfloat16", trainable=False)(x)
    return keras.Model(x, layers.Dense(2, dtype="mixed_bfloat16")(y), name="halves")


@keras.saving.register_keras_serializable(package="mine")
class Doubled(layers.Layer):
    """A layer of somebody's own, with a weight."""

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Make its weight."""
        self.factor = self.add_weight(shape=(input_shape[-1],), name="factor")

    def call(self, inputs: torch.Tensor) -> torch.Tensor:
        """Double its input."""
        return inputs * self.factor * 2


def custom() -> keras.Model:
    """A layer of somebody's own between two of Keras's."""
    x = keras.Input((8,), name="x")
    return keras.Model(x, layers.Dense(2)(Doubled()(layers.Dense(4)(x))), name="custom")


def counted(model: keras.Model) -> dict[str, object]:
    """Return what Keras and torch count of a model."""
    inputs = [torch.ones([1, *(LENGTH if one is None else one for one in each.shape[1:])], dtype=getattr(torch, each.dtype))
              for each in model.inputs]  # fmt: skip
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        outputs = model(inputs if len(inputs) > 1 else inputs[0], training=False)
    trained, stored = (sum(prod(one.shape) for one in group) for group in (model.trainable_weights, model.non_trainable_weights))
    return {"trained": trained, "stored": stored, "flop": counter.get_total_flops(),
            "outputs": [list(one.shape) for one in keras.tree.flatten(outputs)]}  # fmt: skip


def pack(path: Path) -> None:
    """Pack a file's members, so that the samples stay small; one is left as Keras writes it."""
    with ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def main() -> None:
    """Write every sample and what was counted."""
    expected: dict[str, object] = {}
    for make in (tabular, convolutions, attention, recurrent, shared, halves, custom):
        keras.utils.clear_session()
        model = make()
        path = HERE / "keras" / f"{make.__name__}.keras"
        model.save(path)
        if make is not tabular:
            pack(path)
        expected[make.__name__] = counted(model)
        if make in (convolutions, shared):
            model.save(HERE / "hdf5" / f"{make.__name__}.h5")
    (HERE / "keras" / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
    for version in ("earliest", "latest"):
        with h5py.File(HERE / "hdf5" / f"{version}.h5", "w", libver=version) as file:
            for at in range(24):
                file.attrs[f"note_{at}"] = "x" * at
                file.create_dataset(
                    f"part_{at % 3}/weight_{at}", data=np.zeros((at + 1, 2), ("f2", "f4", "f8", "i4", "u1", "?")[at % 6])
                )
            file["soft"] = h5py.SoftLink("/part_0/weight_0")
            file["away"] = h5py.ExternalLink("/etc/hostname", "/x")


if __name__ == "__main__":
    main()
