"""The first convolution of an image model: convolution, batch norm, activation, optional max pool."""

from typing import Any

from probes.blocks import Sizes
from probes.layers import Input, Layer, Shape, batch_norm, conv, strided

ENDS_IN_LOSS = False


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the layers by name."""
    out = sizes["out_channels"]
    return {
        "conv": conv(sizes["in_channels"], out, sizes["kernel"], sizes["stride"], bias=bool(sizes["conv_bias"])),
        "norm": batch_norm(out),
    }


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return images (batch, height, width, in_channels)."""
    return {"x": Input("image", (sizes["batch"], sizes["height"], sizes["width"], sizes["in_channels"]))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return NHWC features, smaller by the stride and by the pool."""
    x = ops.batch_norm(layers["norm"], ops.conv(layers["conv"], inputs["x"]))
    x = ops.activation(sizes["activation"], x)
    return ops.max_pool(x, 3, 2, 1) if sizes["pool"] else x


def output(sizes: Sizes) -> Shape:
    """Return the shape of the features, NHWC."""
    height, width = (strided(sizes[side], sizes["kernel"], sizes["stride"]) for side in ("height", "width"))
    if sizes["pool"]:
        height, width = strided(height, 3, 2), strided(width, 3, 2)
    return (sizes["batch"], height, width, sizes["out_channels"])


def small(sizes: Sizes) -> Sizes:
    """Return 16 x 16 images and 8 channels."""
    return sizes | {"batch": 2, "height": 16, "width": 16, "out_channels": 8}


def chains(sizes: Sizes) -> bool:
    """Features are not images."""
    return False


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
