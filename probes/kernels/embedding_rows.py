"""Rows of a table looked up by token, at random.

One copy against the bare frame: tokens go in and vectors come out, so there is no chain.
"""

from typing import Any

from core.device import Device
from probes.blocks import Sizes
from probes.layers import Input, Layer, embedding

ENDS_IN_LOSS = False
DEPTHS = (0, 1)
MODE = "forward"


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the table."""
    return {"table": embedding(sizes["table_rows"], sizes["width"])}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return as many tokens."""
    return {"x": Input("token", (sizes["rows"],), sizes["table_rows"])}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return the rows of the table."""
    return ops.embedding(layers["table"], inputs["x"])


def small(sizes: Sizes) -> Sizes:
    """Return four rows of 16."""
    return {"rows": 4, "table_rows": 11, "width": 16}


def chains(sizes: Sizes) -> bool:
    """It stands alone."""
    return False


def quick(device: Device) -> tuple[Sizes, ...]:
    """The quick tier leaves it out."""
    return ()


def full(device: Device) -> tuple[Sizes, ...]:
    """Return a table of a language model, and a longer one of narrow rows."""
    return ({"rows": 16384, "table_rows": 50257, "width": 768}, {"rows": 131072, "table_rows": 1000000, "width": 64})


def flop(sizes: Sizes) -> int:
    """Return nothing: there is no arithmetic."""
    return 0


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return bytes of tokens (4 each), rows read and rows written."""
    return int(sizes["rows"] * (4 + 2 * sizes["width"] * element_bytes))


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
