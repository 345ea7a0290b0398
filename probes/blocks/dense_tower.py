"""A tower of dense layers with bias."""

from itertools import pairwise
from typing import Any

from probes.blocks import Sizes
from probes.layers import Input, Layer, Shape, dense

ENDS_IN_LOSS = False


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the layers by name."""
    return {f"dense_{i}": dense(a, b) for i, (a, b) in enumerate(pairwise(sizes["widths"]))}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return features (batch, widths[0])."""
    return {"x": Input("float", (sizes["batch"], sizes["widths"][0]))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return (batch, widths[-1])."""
    x = inputs["x"]
    last = len(sizes["widths"]) - 2
    for i in range(last + 1):
        x = ops.activation(sizes["last_activation" if i == last else "activation"], ops.dense(layers[f"dense_{i}"], x))
    return x


def output(sizes: Sizes) -> Shape:
    """Return the shape (batch, widths[-1])."""
    return (sizes["batch"], sizes["widths"][-1])


def small(sizes: Sizes) -> Sizes:
    """Return narrow layers, as many as before up to three."""
    return sizes | {"batch": 4, "widths": (12, 16, 8, 6)[: min(len(sizes["widths"]), 4)]}


def chains(sizes: Sizes) -> bool:
    """A tower that ends as wide as it starts could feed itself."""
    return sizes["widths"][0] == sizes["widths"][-1]


def first(sizes: Sizes) -> bool:
    """The first tower of a model starts at the data."""
    return bool(sizes["first"])
