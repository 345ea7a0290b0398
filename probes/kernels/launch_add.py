"""One call that holds a chain of tiny sums, timed as it is: a compiler may fuse them, and then further ones cost next to nothing.

Beside `launch_chain` it shows what fusing saves in launches.
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
    """Return x + w, `count` times in a row."""
    x = inputs["x"]
    for _ in range(sizes["count"]):
        x = ops.add(x, inputs["w"])
    return x


def small(sizes: Sizes) -> Sizes:
    """Return a chain of three."""
    return {**sizes, "count": min(3, sizes["count"])}


def chains(sizes: Sizes) -> bool:
    """The chain is inside."""
    return False


def quick(device: Device) -> tuple[Sizes, ...]:
    """The quick tier leaves it out."""
    return ()


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
