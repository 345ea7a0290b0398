"""One pass over memory with two operands and no scale (STREAM's `add`).

One copy against the bare frame: in a chain, compilers would fuse the passes into one.
"""

from typing import Any

from core.device import Device
from probes.blocks import Sizes
from probes.layers import Input, Layer
from probes.sweeps import vectors, working_sets

ENDS_IN_LOSS = False
DEPTHS = (0, 1)
MODE = "forward"
REUSES_RESULT = True


def layers(sizes: Sizes) -> dict[str, Layer]:
    """A kernel has no parameters."""
    return {}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return two vectors of `bytes` / 4 elements."""
    return {name: Input("float", (sizes["bytes"] // 4,)) for name in ("x", "b")}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return x + b."""
    return ops.scaled_sum(inputs["x"], inputs["b"], 1.0, inputs.get("into"))


def small(sizes: Sizes) -> Sizes:
    """Return 1 KiB."""
    return {**sizes, "bytes": 1024}


def chains(sizes: Sizes) -> bool:
    """Passes would be fused."""
    return False


def quick(device: Device) -> tuple[Sizes, ...]:
    """The quick tier leaves it out."""
    return ()


def full(device: Device) -> tuple[Sizes, ...]:
    """Return every second working set of the memory curve."""
    return vectors(working_sets(device, 2), 3)


def flop(sizes: Sizes) -> int:
    """Return nothing; one operation an element is counted as traffic only."""
    return 0


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return bytes of two reads and one write."""
    return int(3 * sizes["bytes"] / 4 * element_bytes)


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
