"""A classifier: one dense layer and its loss."""

from typing import Any

from probes.blocks import Sizes
from probes.layers import Input, Layer, Shape, dense

ENDS_IN_LOSS = True


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the layers by name."""
    return {"head": dense(sizes["inputs"], sizes["classes"])}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return features (batch, inputs) and labels (batch,)."""
    high = 2 if sizes["loss"] == "binary" else sizes["classes"]
    return {"x": Input("float", (sizes["batch"], sizes["inputs"])), "labels": Input("token", (sizes["batch"],), high)}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return the mean loss when training, else logits (batch, classes)."""
    logits = ops.dense(layers["head"], inputs["x"])
    if not ops.training:
        return logits
    loss = ops.binary_cross_entropy if sizes["loss"] == "binary" else ops.cross_entropy
    return loss(logits, inputs["labels"])


def output(sizes: Sizes) -> Shape:
    """Return the shape of the logits (batch, classes)."""
    return (sizes["batch"], sizes["classes"])


def small(sizes: Sizes) -> Sizes:
    """Return eight inputs."""
    return sizes | {"batch": 4, "inputs": 8, "classes": 1 if sizes["loss"] == "binary" else min(sizes["classes"], 10)}


def chains(sizes: Sizes) -> bool:
    """Logits are not features."""
    return False


def first(sizes: Sizes) -> bool:
    """It stands inside a model, whose backward pass goes through its input."""
    return False
