"""Scaled dot product attention over given queries, keys and values, as each framework offers it.

One copy against the bare frame: queries of the next would have to be cut anew.
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
    """Return queries, keys and values (batch, length, heads, width)."""
    shape = (sizes["batch"], sizes["length"], sizes["heads"], sizes["width"])
    return {name: Input("float", shape) for name in ("x", "key", "value")}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return what was attended to, (batch, length, heads x width)."""
    return ops.attention(inputs["x"], inputs["key"], inputs["value"], bool(sizes["causal"]))


def small(sizes: Sizes) -> Sizes:
    """Return two heads over eight positions."""
    return {**sizes, "batch": 2, "length": 8, "heads": 2, "width": 16}


def chains(sizes: Sizes) -> bool:
    """It stands alone."""
    return False


def quick(device: Device) -> tuple[Sizes, ...]:
    """The quick tier leaves it out."""
    return ()


def full(device: Device) -> tuple[Sizes, ...]:
    """Return lengths from 512, to 2048 on a CPU, else to 16384 while one set of scores fills less than an eighth of memory."""
    return tuple(
        {"batch": 1, "length": 512 * 2**i, "heads": 8, "width": 64, "causal": causal}
        for i in range(3 if device.kind == "cpu" else 6)
        for causal in (0, 1)
        if 8 * 4 * (512 * 2**i) ** 2 < device.memory_bytes / 8 and not (causal and i % 2)
    )


def flop(sizes: Sizes) -> int:
    """Return the two products in full; a mask is not taken off, as `core.ops` counts."""
    return 4 * sizes["batch"] * sizes["heads"] * sizes["length"] ** 2 * sizes["width"]


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return bytes of three operands and one result, without scores."""
    return int(4 * sizes["batch"] * sizes["length"] * sizes["heads"] * sizes["width"] * element_bytes)


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
