"""Dependent square matrix products: each needs the one before, so none can be dropped, hoisted or run side by side.

The product is scaled by 1 / sqrt(n), which keeps standard normal values where they are: no overflow, no denormals.
"""

from math import sqrt
from typing import Any

from core.device import Device
from probes.blocks import Sizes
from probes.layers import Input, Layer

ENDS_IN_LOSS = False
DEPTHS = (1, 5)
MODE = "forward"


def layers(sizes: Sizes) -> dict[str, Layer]:
    """A kernel has no parameters."""
    return {}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return two matrices (n, n)."""
    return {"x": Input("float", (sizes["n"], sizes["n"])), "w": Input("float", (sizes["n"], sizes["n"]))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return x w / sqrt(n)."""
    return ops.scaled_matmul(inputs["x"], inputs["w"], 1 / sqrt(sizes["n"]))


def small(sizes: Sizes) -> Sizes:
    """Return 32 x 32."""
    return {**sizes, "n": 32}


def chains(sizes: Sizes) -> bool:
    """A product feeds the next."""
    return True


def quick(device: Device) -> tuple[Sizes, ...]:
    """Return three sizes; an accelerator needs larger ones to be filled."""
    return tuple({"n": n} for n in ((512, 1024, 2048) if device.kind == "cpu" else (1024, 4096, 8192)))


def full(device: Device) -> tuple[Sizes, ...]:
    """Return sizes from 256 on by factors of two, as memory allows; a CPU leaves out what takes it minutes."""
    return tuple({"n": n} for n in (256, 512, 1024, 2048, 4096, 8192, 16384) if 3 * 4 * n * n < device.memory_bytes / 4)


def flop(sizes: Sizes) -> int:
    """Return 2 n^3 for the product and n^2 for the scale."""
    return 2 * sizes["n"] ** 3 + sizes["n"] ** 2


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return bytes of two operands and one result."""
    return int(3 * sizes["n"] ** 2 * element_bytes)


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
