"""Softmax over rows.

One copy against the bare frame: of a chain, compilers would fuse the end of one with the start of the next.
"""

from typing import Any

from core.device import Device
from probes.blocks import Sizes
from probes.layers import Input, Layer

ENDS_IN_LOSS = False
DEPTHS = (0, 1)
MODE = "forward"


def layers(sizes: Sizes) -> dict[str, Layer]:
    """A kernel has no parameters."""
    return {}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return a matrix (rows, width)."""
    return {"x": Input("float", (sizes["rows"], sizes["width"]))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return the softmax of each row."""
    return ops.softmax(inputs["x"])


def small(sizes: Sizes) -> Sizes:
    """Return (4, 32)."""
    return {**sizes, "rows": 4, "width": 32}


def chains(sizes: Sizes) -> bool:
    """It stands alone."""
    return False


def quick(device: Device) -> tuple[Sizes, ...]:
    """The quick tier leaves it out."""
    return ()


def full(device: Device) -> tuple[Sizes, ...]:
    """Return rows of an attention and of a vocabulary."""
    return tuple({"rows": rows, "width": width} for rows, width in ((16384, 512), (8192, 2048), (512, 32768)))


def flop(sizes: Sizes) -> int:
    """Return five operations an element, as `core.ops` counts them."""
    return 5 * sizes["rows"] * sizes["width"]


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return bytes of one read and one write."""
    return int(2 * sizes["rows"] * sizes["width"] * element_bytes)


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
