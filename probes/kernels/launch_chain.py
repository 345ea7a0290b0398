"""One call that holds a chain of tiny products, timed as it is: what a call costs, and what each operation in it adds.

A line through times over counts has the cost of a bare call where it starts and the cost of one operation as its slope.
"""

from typing import Any

from core.device import Device
from probes.blocks import Sizes
from probes.layers import Input, Layer

ENDS_IN_LOSS = False
DEPTHS = (1,)
MODE = "forward"


def layers(sizes: Sizes) -> dict[str, Layer]:
    """A kernel has no parameters."""
    return {}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return two matrices (n, n)."""
    return {"x": Input("float", (sizes["n"], sizes["n"])), "w": Input("float", (sizes["n"], sizes["n"]))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return `count` tiny products in a row, which no compiler fuses."""
    x = inputs["x"]
    for _ in range(sizes["count"]):
        x = ops.scaled_matmul(x, inputs["w"], 0.3)
    return x


def small(sizes: Sizes) -> Sizes:
    """Return a chain of three."""
    return {**sizes, "count": min(3, sizes["count"])}


def chains(sizes: Sizes) -> bool:
    """The chain is inside."""
    return False


def quick(device: Device) -> tuple[Sizes, ...]:
    """Return the bare call."""
    return ({"n": 8, "count": 1},)


def full(device: Device) -> tuple[Sizes, ...]:
    """Return 1 to 1000 operations."""
    return tuple({"n": 8, "count": count} for count in (1, 10, 100, 1000))


def flop(sizes: Sizes) -> int:
    """Return nothing: only the launch is of interest."""
    return 0


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return nothing: only the launch is of interest."""
    return 0


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
