"""A MobileNetV2 block: 1x1 expansion, 3x3 depthwise, 1x1 projection, with batch norms and relu6."""

from typing import Any

from probes.blocks import Sizes
from probes.layers import Input, Layer, Shape, batch_norm, conv, strided

ENDS_IN_LOSS = False


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the layers by name."""
    inner, out = sizes["in_channels"], sizes["out_channels"]
    mid = inner * sizes["expansion"]
    result = {
        "depthwise": conv(mid, mid, 3, sizes["stride"], groups=mid),
        "norm_2": batch_norm(mid),
        "project": conv(mid, out, 1),
        "norm_3": batch_norm(out),
    }
    if sizes["expansion"] > 1:
        result |= {"expand": conv(inner, mid, 1), "norm_1": batch_norm(mid)}
    return result


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return features (batch, height, width, in_channels)."""
    return {"x": Input("image", (sizes["batch"], sizes["height"], sizes["width"], sizes["in_channels"]))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return NHWC features."""
    y = inputs["x"]
    if sizes["expansion"] > 1:
        y = ops.activation("relu6", ops.batch_norm(layers["norm_1"], ops.conv(layers["expand"], y)))
    y = ops.activation("relu6", ops.batch_norm(layers["norm_2"], ops.conv(layers["depthwise"], y)))
    y = ops.batch_norm(layers["norm_3"], ops.conv(layers["project"], y))
    return ops.add(inputs["x"], y) if chains(sizes) else y


def output(sizes: Sizes) -> Shape:
    """Return the shape of the features, NHWC."""
    height, width = (strided(sizes[side], 3, sizes["stride"]) for side in ("height", "width"))
    return (sizes["batch"], height, width, sizes["out_channels"])


def small(sizes: Sizes) -> Sizes:
    """Return 8 x 8 features and 4 or 6 channels."""
    return sizes | {"batch": 2, "height": 8, "width": 8, "in_channels": 4, "out_channels": 4 if chains(sizes) else 6}


def chains(sizes: Sizes) -> bool:
    """A block of stride 1 that keeps its channels has a residual and feeds the next one."""
    return sizes["stride"] == 1 and sizes["in_channels"] == sizes["out_channels"]


def first(sizes: Sizes) -> bool:
    """It stands inside a model, whose backward pass goes through its input."""
    return False
