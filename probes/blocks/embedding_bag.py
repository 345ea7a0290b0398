"""Embedding bags: several tables, rows summed for each sample, dense gradients."""

from typing import Any

from probes.blocks import Sizes
from probes.layers import Input, Layer, Shape, bag

ENDS_IN_LOSS = False


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the layers by name."""
    return {"bag": bag(sizes["tables"], sizes["rows"], sizes["width"])}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return row numbers (tables, batch, per_bag)."""
    return {"x": Input("token", (sizes["tables"], sizes["batch"], sizes["per_bag"]), sizes["rows"])}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return pooled vectors (batch, tables, width)."""
    return ops.bag(layers["bag"], inputs["x"])


def output(sizes: Sizes) -> Shape:
    """Return the shape (batch, tables, width)."""
    return (sizes["batch"], sizes["tables"], sizes["width"])


def small(sizes: Sizes) -> Sizes:
    """Return three tables of 20 rows."""
    return sizes | {"batch": 4, "tables": 3, "rows": 20, "width": 8, "per_bag": min(sizes["per_bag"], 3)}


def chains(sizes: Sizes) -> bool:
    """Vectors are not row numbers."""
    return False


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
