"""A U-Net stage: pool or upsample and join, then twice 3x3 convolution, batch norm and relu."""

from typing import Any

from probes.blocks import Sizes
from probes.layers import Input, Layer, Shape, batch_norm, conv, up_conv

ENDS_IN_LOSS = False


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the layers by name."""
    inner, out = sizes["in_channels"], sizes["out_channels"]
    result: dict[str, Layer] = {}
    if sizes["before"] == "up":
        result["up"] = up_conv(inner, inner // 2)
        inner = inner // 2 + sizes["skip_channels"]
    return result | {
        "conv_1": conv(inner, out, 3),
        "norm_1": batch_norm(out),
        "conv_2": conv(out, out, 3),
        "norm_2": batch_norm(out),
    }


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return features (batch, height, width, in_channels), and the skip at twice the height and width for `up`."""
    batch, height, width = sizes["batch"], sizes["height"], sizes["width"]
    result = {"x": Input("image", (batch, height, width, sizes["in_channels"]))}
    if sizes["before"] == "up":
        result["skip"] = Input("image", (batch, 2 * height, 2 * width, sizes["skip_channels"]))
    return result


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return NHWC features."""
    x = inputs["x"]
    if sizes["before"] == "pool":
        x = ops.max_pool(x, 2, 2, 0)
    if sizes["before"] == "up":
        x = ops.join_channels(ops.up_conv(layers["up"], x), inputs["skip"])
    x = ops.activation("relu", ops.batch_norm(layers["norm_1"], ops.conv(layers["conv_1"], x)))
    return ops.activation("relu", ops.batch_norm(layers["norm_2"], ops.conv(layers["conv_2"], x)))


def output(sizes: Sizes) -> Shape:
    """Return the shape of the features, NHWC."""
    height, width = sizes["height"], sizes["width"]
    if sizes["before"] == "pool":
        height, width = height // 2, width // 2
    if sizes["before"] == "up":
        height, width = 2 * height, 2 * width
    return (sizes["batch"], height, width, sizes["out_channels"])


def small(sizes: Sizes) -> Sizes:
    """Return 8 x 8 features."""
    return sizes | {
        "batch": 2,
        "height": 8,
        "width": 8,
        "in_channels": 8,
        "skip_channels": 4 if sizes["before"] == "up" else 0,
        "out_channels": 6,
    }


def chains(sizes: Sizes) -> bool:
    """A stage that keeps size and channels could feed the next one."""
    return sizes["before"] == "none" and sizes["in_channels"] == sizes["out_channels"]


def first(sizes: Sizes) -> bool:
    """A stage with nothing before it starts at the image."""
    return sizes["before"] == "none"


def keeps_input(sizes: Sizes) -> bool:
    """What goes into a stage down is joined again on the way up."""
    return sizes["before"] == "pool"
