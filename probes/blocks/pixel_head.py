"""The end of a segmentation model: 1x1 convolution to classes and cross entropy at each pixel."""

from typing import Any

from probes.blocks import Sizes
from probes.layers import Input, Layer, Shape, conv

ENDS_IN_LOSS = True


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the layers by name."""
    return {"head": conv(sizes["in_channels"], sizes["classes"], 1, bias=True)}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return features (batch, height, width, in_channels) and labels (batch, height, width)."""
    shape = (sizes["batch"], sizes["height"], sizes["width"])
    return {"x": Input("image", (*shape, sizes["in_channels"])), "labels": Input("token", shape, sizes["classes"])}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return the mean cross entropy when training, else logits (batch, height, width, classes)."""
    logits = ops.conv(layers["head"], inputs["x"])
    return ops.pixel_cross_entropy(logits, inputs["labels"]) if ops.training else logits


def output(sizes: Sizes) -> Shape:
    """Return the shape of the logits (batch, height, width, classes)."""
    return (sizes["batch"], sizes["height"], sizes["width"], sizes["classes"])


def small(sizes: Sizes) -> Sizes:
    """Return 4 x 4 pixels."""
    return sizes | {"batch": 2, "height": 4, "width": 4, "in_channels": 8}


def chains(sizes: Sizes) -> bool:
    """Logits are not features."""
    return False


def first(sizes: Sizes) -> bool:
    """It stands inside a model, whose backward pass goes through its input."""
    return False
