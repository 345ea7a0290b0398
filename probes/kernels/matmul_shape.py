"""One product of a workload's own shape, x (batch, m, k) by w (batch, k, n); `probes.shapes` finds the shapes.

One copy against the bare frame: the result has another shape than the operand, so there is no chain.
"""

from math import sqrt
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
    """Return the two operands; a batch of one has no axis of its own."""
    stack = (sizes["batch"],) if sizes["batch"] > 1 else ()
    return {"x": Input("float", (*stack, sizes["m"], sizes["k"])), "w": Input("float", (*stack, sizes["k"], sizes["n"]))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return x w / sqrt(k)."""
    return ops.scaled_matmul(inputs["x"], inputs["w"], 1 / sqrt(sizes["k"]))


def small(sizes: Sizes) -> Sizes:
    """Return at most 3 x (5, 7, 6)."""
    return {name: min(most, sizes[name]) for name, most in (("batch", 3), ("m", 5), ("n", 7), ("k", 6))}


def chains(sizes: Sizes) -> bool:
    """The result has another shape."""
    return False


def quick(device: Device) -> tuple[Sizes, ...]:
    """Shapes belong to a workload, not to a device."""
    return ()


def full(device: Device) -> tuple[Sizes, ...]:
    """Shapes belong to a workload, not to a device."""
    return ()


def flop(sizes: Sizes) -> int:
    """Return 2 m n k and m n for the scale."""
    return sizes["batch"] * (2 * sizes["m"] * sizes["n"] * sizes["k"] + sizes["m"] * sizes["n"])


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return bytes of two operands and one result."""
    return int(sizes["batch"] * (sizes["m"] * sizes["k"] + sizes["k"] * sizes["n"] + sizes["m"] * sizes["n"]) * element_bytes)


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
