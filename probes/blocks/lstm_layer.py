"""One LSTM layer over a whole sequence."""

from typing import Any

from probes.blocks import Sizes
from probes.layers import Input, Layer, Shape, lstm

ENDS_IN_LOSS = False


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the layers by name."""
    return {"lstm": lstm(sizes["inputs"], sizes["hidden"])}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return a sequence (batch, length, inputs)."""
    return {"x": Input("float", (sizes["batch"], sizes["length"], sizes["inputs"]))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return the hidden states (batch, length, hidden)."""
    return ops.lstm(layers["lstm"], inputs["x"])


def output(sizes: Sizes) -> Shape:
    """Return the shape (batch, length, hidden)."""
    return (sizes["batch"], sizes["length"], sizes["hidden"])


def small(sizes: Sizes) -> Sizes:
    """Return five steps."""
    return sizes | {"batch": 2, "length": 5, "inputs": 8 if chains(sizes) else 6, "hidden": 8}


def chains(sizes: Sizes) -> bool:
    """A layer of equal width feeds the next one."""
    return sizes["inputs"] == sizes["hidden"]


def first(sizes: Sizes) -> bool:
    """It stands inside a model, whose backward pass goes through its input."""
    return False
