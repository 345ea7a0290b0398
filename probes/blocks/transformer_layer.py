"""A transformer layer: attention and MLP with residuals, pre-norm or post-norm, plain or gated, grouped heads, rotary or not."""

from typing import Any

from probes.blocks import Sizes
from probes.layers import Input, Layer, Shape, attention, dense, norm

ENDS_IN_LOSS = False


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the layers by name."""
    width, hidden, bias = sizes["width"], sizes["hidden"], bool(sizes["bias"])
    result = {
        "norm_1": norm(sizes["norm"], width),
        "attention": attention(width, sizes["heads"], sizes["kv_heads"], sizes["head_width"], bias, bool(sizes["fused_qkv"])),
        "norm_2": norm(sizes["norm"], width),
        "up": dense(width, hidden, bias),
        "down": dense(hidden, width, bias),
    }
    if sizes["gated"]:
        result["gate"] = dense(width, hidden, bias)
    return result


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return `x` (batch, length, width), and cached keys and values (batch, kv_heads, cache, head_width) when there are any."""
    result = {"x": Input("float", (sizes["batch"], sizes["length"], sizes["width"]))}
    if sizes["cache"]:
        shape = (sizes["batch"], sizes["kv_heads"], sizes["cache"], sizes["head_width"])
        result |= {"keys": Input("heads", shape), "values": Input("heads", shape)}
    return result


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return (batch, length, width)."""
    x = inputs["x"]
    cached = (inputs["keys"], inputs["values"]) if sizes["cache"] else None

    def attend(y: Any) -> Any:
        return ops.self_attention(layers["attention"], y, bool(sizes["causal"]), bool(sizes["rotary"]), cached)

    def mlp(y: Any) -> Any:
        hidden = ops.activation(sizes["activation"], ops.dense(layers["gate" if sizes["gated"] else "up"], y))
        if sizes["gated"]:
            hidden = ops.multiply(hidden, ops.dense(layers["up"], y))
        return ops.dense(layers["down"], hidden)

    if sizes["norm_first"]:
        x = ops.add(x, attend(ops.norm(layers["norm_1"], x)))
        return ops.add(x, mlp(ops.norm(layers["norm_2"], x)))
    x = ops.norm(layers["norm_1"], ops.add(x, attend(x)))
    return ops.norm(layers["norm_2"], ops.add(x, mlp(x)))


def output(sizes: Sizes) -> Shape:
    """Return the shape (batch, length, width)."""
    return (sizes["batch"], sizes["length"], sizes["width"])


def small(sizes: Sizes) -> Sizes:
    """Return two heads over eight positions."""
    groups = 2 if sizes["kv_heads"] < sizes["heads"] else 1
    return sizes | {
        "batch": 2,
        "length": 1 if sizes["cache"] else 8,
        "width": 32,
        "heads": 2,
        "kv_heads": 2 // groups,
        "head_width": 16,
        "hidden": 64,
        "cache": 6 if sizes["cache"] else 0,
    }


def chains(sizes: Sizes) -> bool:
    """A layer feeds the next one."""
    return True


def first(sizes: Sizes) -> bool:
    """It stands inside a model, whose backward pass goes through its input."""
    return False
