"""The end of an image model: optional 1x1 convolution, global average pool, classifier and cross entropy."""

from typing import Any

from probes.blocks import Sizes
from probes.layers import Input, Layer, Shape, batch_norm, conv, dense

ENDS_IN_LOSS = True


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the layers by name."""
    features = sizes["features"]
    result = {"head": dense(features or sizes["in_channels"], sizes["classes"])}
    if features:
        result |= {"conv": conv(sizes["in_channels"], features, 1), "norm": batch_norm(features)}
    return result


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return features (batch, height, width, in_channels) and labels (batch,)."""
    shape = (sizes["batch"], sizes["height"], sizes["width"], sizes["in_channels"])
    return {"x": Input("image", shape), "labels": Input("token", (sizes["batch"],), sizes["classes"])}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return the mean cross entropy when training, else logits (batch, classes)."""
    x = inputs["x"]
    if sizes["features"]:
        x = ops.activation("relu6", ops.batch_norm(layers["norm"], ops.conv(layers["conv"], x)))
    logits = ops.dense(layers["head"], ops.global_pool(x))
    return ops.cross_entropy(logits, inputs["labels"]) if ops.training else logits


def output(sizes: Sizes) -> Shape:
    """Return the shape of the logits (batch, classes)."""
    return (sizes["batch"], sizes["classes"])


def small(sizes: Sizes) -> Sizes:
    """Return 4 x 4 features and 10 classes."""
    return sizes | {
        "batch": 2,
        "height": 4,
        "width": 4,
        "in_channels": 8,
        "features": 12 if sizes["features"] else 0,
        "classes": 10,
    }


def chains(sizes: Sizes) -> bool:
    """Logits are not features."""
    return False


def first(sizes: Sizes) -> bool:
    """It stands inside a model, whose backward pass goes through its input."""
    return False
