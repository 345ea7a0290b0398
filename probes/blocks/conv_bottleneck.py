"""A ResNet bottleneck: 1x1, 3x3, 1x1 convolutions with batch norms around a residual."""

from typing import Any

from probes.blocks import Sizes
from probes.layers import Input, Layer, Shape, batch_norm, conv, strided

ENDS_IN_LOSS = False


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the layers by name."""
    inner, mid, out = sizes["in_channels"], sizes["mid_channels"], sizes["out_channels"]
    stride, bias = sizes["stride"], bool(sizes["conv_bias"])
    first, second = (stride, 1) if sizes["stride_first"] else (1, stride)
    result = {
        "conv_1": conv(inner, mid, 1, first, bias=bias),
        "norm_1": batch_norm(mid),
        "conv_2": conv(mid, mid, 3, second, bias=bias),
        "norm_2": batch_norm(mid),
        "conv_3": conv(mid, out, 1, bias=bias),
        "norm_3": batch_norm(out),
    }
    if sizes["projection"]:
        result |= {"conv_0": conv(inner, out, 1, stride, bias=bias), "norm_0": batch_norm(out)}
    return result


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return features (batch, height, width, in_channels)."""
    return {"x": Input("image", (sizes["batch"], sizes["height"], sizes["width"], sizes["in_channels"]))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return NHWC features."""
    x = inputs["x"]
    y = ops.activation("relu", ops.batch_norm(layers["norm_1"], ops.conv(layers["conv_1"], x)))
    y = ops.activation("relu", ops.batch_norm(layers["norm_2"], ops.conv(layers["conv_2"], y)))
    y = ops.batch_norm(layers["norm_3"], ops.conv(layers["conv_3"], y))
    if sizes["projection"]:
        x = ops.batch_norm(layers["norm_0"], ops.conv(layers["conv_0"], x))
    return ops.activation("relu", ops.add(y, x))


def output(sizes: Sizes) -> Shape:
    """Return the shape of the features, NHWC; a stride rounds up, as its padding makes it."""
    height, width = (strided(sizes[side], 3, sizes["stride"]) for side in ("height", "width"))
    return (sizes["batch"], height, width, sizes["out_channels"])


def small(sizes: Sizes) -> Sizes:
    """Return 8 x 8 features and at most 16 channels."""
    out = 16
    return sizes | {
        "batch": 2,
        "height": 8,
        "width": 8,
        "in_channels": 8 if sizes["projection"] else out,
        "mid_channels": 4,
        "out_channels": out,
    }


def chains(sizes: Sizes) -> bool:
    """A bottleneck without projection feeds the next one."""
    return not sizes["projection"] and sizes["stride"] == 1 and sizes["in_channels"] == sizes["out_channels"]


def first(sizes: Sizes) -> bool:
    """It stands inside a model, whose backward pass goes through its input."""
    return False
