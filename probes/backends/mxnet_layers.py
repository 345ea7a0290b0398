"""Gluon's own layers for each `Layer`, and the arrays that they hold, in Gluon's layouts."""

from typing import Any

from probes.layers import Layer

_TRANSPOSED = {"dense": (1, 0), "conv": (3, 2, 0, 1), "up_conv": (3, 2, 0, 1), "lstm": (1, 0), "attention": (1, 0)}


def own_layout(layer: Layer, array: Any) -> Any:
    """Return a canonical array as Gluon keeps it."""
    axes = _TRANSPOSED.get(layer.kind)
    return array.transpose(axes) if axes and array.ndim == len(axes) else array


class Bound:
    """A layer with its Gluon blocks and parameters, by canonical array name.

    Args:
        layer: what it is.
        parent: block that owns the parameters.
        name: of the layer, unique in its parent.
    """

    def __init__(self, layer: Layer, parent: Any, name: str) -> None:
        self.layer = layer
        self.blocks: dict[str, Any] = {}
        self.parameters: dict[str, Any] = {}
        _make(self, parent, name)

    def own(self, parent: Any, name: str, block: Any) -> Any:
        """Register a child block."""
        parent.register_child(block, name)
        self.blocks[name] = block
        return block

    def fill(self, weights: dict[str, Any]) -> None:
        """Put the given canonical arrays into the parameters."""
        for key, parameter in self.parameters.items():
            parameter.set_data(own_layout(self.layer, weights[key]))


def _make(bound: Bound, parent: Any, name: str) -> None:
    o = dict(bound.layer.options)
    match bound.layer.kind:
        case "dense":
            bound.parameters = _dense(bound, parent, name, o["inputs"], o["outputs"], o["bias"], "")
        case "attention":
            _attention(bound, parent, name, o)
        case "lstm":
            _lstm(bound, parent, name, o)
        case "bag":
            for i in range(o["tables"]):
                table = bound.own(parent, f"{name}_{i}", _nn().Embedding(o["rows"], o["width"]))
                bound.parameters[f"table_{i}"] = table.weight
        case "table":
            bound.parameters["value"] = parent.params.get(f"{name}_value", shape=tuple(o["shape"]))
        case "norm" if o["kind"] == "rms":
            bound.parameters["scale"] = parent.params.get(f"{name}_scale", shape=(o["width"],))
        case _:
            block = bound.own(parent, name, _plain(bound.layer.kind, o))
            bound.parameters = _parameters(bound.layer.kind, block, o)


def _nn() -> Any:
    from mxnet.gluon import nn

    return nn


def _dense(bound: Bound, parent: Any, name: str, inputs: int, outputs: int, bias: bool, lead: str) -> dict[str, Any]:
    block = bound.own(parent, name, _nn().Dense(outputs, flatten=False, use_bias=bias, in_units=inputs))
    return {f"{lead}kernel": block.weight} | ({f"{lead}bias": block.bias} if bias else {})


def _attention(bound: Bound, parent: Any, name: str, o: dict[str, Any]) -> None:
    q, kv = o["heads"] * o["head_width"], o["kv_heads"] * o["head_width"]
    parts = (("qkv", q + 2 * kv),) if o["fused"] else (("query", q), ("key", kv), ("value", kv))
    for part, outputs in parts:
        bound.parameters |= _dense(bound, parent, f"{name}_{part}", o["width"], outputs, o["bias"], f"{part}_")
    bound.parameters |= _dense(bound, parent, f"{name}_out", q, o["width"], o["bias"], "out_")


def _lstm(bound: Bound, parent: Any, name: str, o: dict[str, Any]) -> None:
    from mxnet.gluon import rnn

    block = bound.own(parent, name, rnn.LSTM(o["hidden"], layout="NTC", input_size=o["inputs"], h2h_bias_initializer="zeros"))
    bound.parameters = {"kernel": block.l0_i2h_weight, "recurrent": block.l0_h2h_weight, "bias": block.l0_i2h_bias}


def _plain(kind: str, o: dict[str, Any]) -> Any:
    nn = _nn()
    match kind:
        case "norm":
            return nn.LayerNorm(epsilon=1e-5, in_channels=o["width"])
        case "conv":
            pad = o["kernel"] // 2 if o["stride"] != o["kernel"] else 0
            return nn.Conv2D(
                o["outputs"], o["kernel"], o["stride"], pad, groups=o["groups"], use_bias=o["bias"], in_channels=o["inputs"]
            )
        case "batch_norm":
            return nn.BatchNorm(epsilon=1e-5, in_channels=o["channels"])
        case "up_conv":
            return nn.Conv2DTranspose(o["outputs"], 2, 2, in_channels=o["inputs"])
        case "embedding":
            return nn.Embedding(o["rows"], o["width"])
        case _:
            raise AssertionError(kind)


def _parameters(kind: str, block: Any, o: dict[str, Any]) -> dict[str, Any]:
    match kind:
        case "norm" | "batch_norm":
            return {"scale": block.gamma, "offset": block.beta}
        case "embedding":
            return {"table": block.weight}
        case "conv" if not o["bias"]:
            return {"kernel": block.weight}
        case _:
            return {"kernel": block.weight, "bias": block.bias}
