"""DLRM's interaction: pairwise dot products of feature vectors, joined to the first vector."""

from typing import Any

from probes.blocks import Sizes
from probes.layers import Input, Layer, Shape

ENDS_IN_LOSS = False


def layers(sizes: Sizes) -> dict[str, Layer]:
    """The interaction has no parameters."""
    return {}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return vectors (batch, features, width)."""
    return {"x": Input("float", (sizes["batch"], sizes["features"], sizes["width"]))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return (batch, width + features (features - 1) / 2)."""
    return ops.interact(inputs["x"])


def output(sizes: Sizes) -> Shape:
    """Return the shape (batch, width + features (features - 1) / 2)."""
    features = sizes["features"]
    return (sizes["batch"], sizes["width"] + features * (features - 1) // 2)


def small(sizes: Sizes) -> Sizes:
    """Return four features."""
    return sizes | {"batch": 3, "features": 4, "width": 8}


def chains(sizes: Sizes) -> bool:
    """The output has another shape."""
    return False


def first(sizes: Sizes) -> bool:
    """It stands inside a model, whose backward pass goes through its input."""
    return False
