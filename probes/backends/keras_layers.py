"""Keras' own layers for each `Layer`, with the weights that all runtimes share."""

from typing import Any

from probes.layers import Layer


def build(keras: Any, layer: Layer, weights: dict[str, Any]) -> Any:
    """Return a built keras layer that holds the given weights; `names` on it maps them back."""
    own, names = _make(keras, layer)
    own.tandem_layer, own.tandem_names = layer, names
    weights = unfused(layer, weights)
    own.set_weights(
        [weights[n].reshape(v.shape) for n, v in zip(names, own.weights, strict=False)]
        + [keras.ops.convert_to_numpy(v) for v in own.weights[len(names) :]]
    )
    return own


def unfused(layer: Layer, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays of a layer with a fused query, key and value cut into three, as Keras keeps them."""
    if layer.kind != "attention" or not layer.option("fused"):
        return arrays
    import numpy as np

    query, kv = layer.option("heads") * layer.option("head_width"), layer.option("kv_heads") * layer.option("head_width")
    result = {name: array for name, array in arrays.items() if not name.startswith("qkv")}
    for kind in ("kernel", "bias"):
        if f"qkv_{kind}" in arrays:
            parts = np.split(arrays[f"qkv_{kind}"], (query, query + kv), axis=-1)
            result |= {f"{name}_{kind}": part for name, part in zip(("query", "key", "value"), parts, strict=True)}
    return result


def _make(keras: Any, layer: Layer) -> tuple[Any, tuple[str, ...]]:
    layers, o = keras.layers, dict(layer.options)
    named = tuple(name for name, _, _ in layer.arrays)
    match layer.kind:
        case "dense":
            own = layers.Dense(o["outputs"], use_bias=o["bias"])
            own.build((None, o["inputs"]))
        case "norm":
            own = (
                layers.LayerNormalization(epsilon=1e-5)
                if o["kind"] == "layer"
                else layers.RMSNormalization(epsilon=1.1920929e-07)
            )
            own.build((None, o["width"]))
        case "conv":
            own = _convolution(layers, o)
        case "batch_norm":
            own = layers.BatchNormalization(momentum=0.9, epsilon=1e-5)
            own.build((None, None, None, o["channels"]))
        case "up_conv":
            own = layers.Conv2DTranspose(o["outputs"], 2, 2)
            own.build((None, None, None, o["inputs"]))
        case "embedding":
            own = layers.Embedding(o["rows"], o["width"])
            own.build()
        case "lstm":
            own = layers.LSTM(o["hidden"], return_sequences=True, unit_forget_bias=False)
            own.build((None, None, o["inputs"]))
        case "bag":
            own = _bags(keras, o)
        case "attention":
            return _attention(keras, layer)
        case _:
            own = _table(keras, o["shape"])
    return own, named


def _convolution(layers: Any, o: dict[str, Any]) -> Any:
    pad = o["kernel"] // 2 if o["stride"] != o["kernel"] else 0
    padding = "same" if pad and o["stride"] == 1 else "valid"
    if o["groups"] > 1:
        own = layers.DepthwiseConv2D(o["kernel"], o["stride"], padding=padding, use_bias=o["bias"])
    else:
        own = layers.Conv2D(o["outputs"], o["kernel"], o["stride"], padding=padding, use_bias=o["bias"])
    own.tandem_pad = layers.ZeroPadding2D(pad) if pad and padding == "valid" else None
    own.build((None, None, None, o["inputs"]))
    return own


def _table(keras: Any, shape: tuple[int, ...]) -> Any:
    class Table(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.value = self.add_weight(shape=shape, name="value")

    return Table()


def _bags(keras: Any, o: dict[str, Any]) -> Any:
    class Bags(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.tables = [keras.layers.Embedding(o["rows"], o["width"]) for _ in range(o["tables"])]
            for table in self.tables:
                table.build()

        def call(self, rows: Any) -> Any:
            return keras.ops.stack([keras.ops.sum(table(rows[i]), axis=1) for i, table in enumerate(self.tables)], axis=1)

    return Bags()


def _attention(keras: Any, layer: Layer) -> tuple[Any, tuple[str, ...]]:
    """Return Keras' multi-head or grouped attention; a fused kernel is cut by `unfused`."""
    o = dict(layer.options)
    shape = (None, None, o["width"])
    if o["kv_heads"] == o["heads"]:
        own = keras.layers.MultiHeadAttention(o["heads"], o["head_width"], use_bias=o["bias"])
    else:
        own = keras.layers.GroupQueryAttention(o["head_width"], o["heads"], o["kv_heads"], use_bias=o["bias"])
    own.build(shape, shape)
    names = [
        f"{part}_{kind}"
        for part in ("query", "key", "value", "out")
        for kind in (("kernel", "bias") if o["bias"] else ("kernel",))
    ]
    return own, tuple(names)
