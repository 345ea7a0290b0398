"""A chain of operations too small to cost anything but their launch."""

from typing import Any

from core.device import Device
from probes.blocks import Sizes
from probes.layers import Input, Layer

ENDS_IN_LOSS = False
DEPTHS = (1, 33)
MODE = "forward"


def layers(sizes: Sizes) -> dict[str, Layer]:
    """A kernel has no parameters."""
    return {}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return two matrices (n, n)."""
    return {"x": Input("float", (sizes["n"], sizes["n"])), "w": Input("float", (sizes["n"], sizes["n"]))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return a tiny product, which no compiler fuses with the next."""
    return ops.scaled_matmul(inputs["x"], inputs["w"], 0.3)


def small(sizes: Sizes) -> Sizes:
    """The kernel is small already."""
    return dict(sizes)


def chains(sizes: Sizes) -> bool:
    """An operation feeds the next."""
    return True


def quick(device: Device) -> tuple[Sizes, ...]:
    """Return 8 x 8."""
    return ({"n": 8},)


full = quick


def flop(sizes: Sizes) -> int:
    """Return nothing: only the launch is of interest."""
    return 0


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return nothing: only the launch is of interest."""
    return 0


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
