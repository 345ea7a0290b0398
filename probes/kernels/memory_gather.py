"""Single elements read at random places: what no prefetcher helps with.

Bytes counted are of the places (4 each, as they are drawn), the elements and the result. One copy against the bare frame.
"""

from typing import Any

from core.device import Device
from probes.blocks import Sizes
from probes.layers import Input, Layer
from probes.sweeps import vectors, working_sets

ENDS_IN_LOSS = False
DEPTHS = (0, 1)
MODE = "forward"


def layers(sizes: Sizes) -> dict[str, Layer]:
    """A kernel has no parameters."""
    return {}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return a vector of `bytes` / 4 elements and as many places in it."""
    count = sizes["bytes"] // 4
    return {"x": Input("float", (count,)), "places": Input("token", (count,), count)}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return x at each of the places."""
    return ops.gather(inputs["x"], inputs["places"])


def small(sizes: Sizes) -> Sizes:
    """Return 1 KiB."""
    return {**sizes, "bytes": 1024}


def chains(sizes: Sizes) -> bool:
    """Passes stand alone."""
    return False


def quick(device: Device) -> tuple[Sizes, ...]:
    """The quick tier leaves it out."""
    return ()


def full(device: Device) -> tuple[Sizes, ...]:
    """Return every second working set of the memory curve, but the largest."""
    return vectors(tuple(size for size in working_sets(device, 2) if size <= 2**30), 3)


def flop(sizes: Sizes) -> int:
    """Return nothing: there is no arithmetic."""
    return 0


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return bytes of places, elements and result."""
    return int(sizes["bytes"] / 4 * (4 + 2 * element_bytes))


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
