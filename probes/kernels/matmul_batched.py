"""Several square products at once: what the heads of an attention ask for."""

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
    """Return two stacks of matrices (batch, n, n)."""
    return {name: Input("float", (sizes["batch"], sizes["n"], sizes["n"])) for name in ("x", "w")}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return x w / sqrt(n) for each of the batch."""
    return ops.scaled_matmul(inputs["x"], inputs["w"], 1 / sqrt(sizes["n"]))


def small(sizes: Sizes) -> Sizes:
    """Return three of 16 x 16."""
    return {**sizes, "batch": 3, "n": 16}


def chains(sizes: Sizes) -> bool:
    """A product feeds the next."""
    return True


def quick(device: Device) -> tuple[Sizes, ...]:
    """The quick tier leaves it out."""
    return ()


def full(device: Device) -> tuple[Sizes, ...]:
    """Return 1, 8 and 32 products of three sides."""
    return tuple({"batch": batch, "n": n} for n in (128, 512, 1024) for batch in (1, 8, 32))


def flop(sizes: Sizes) -> int:
    """Return 2 n^3 for each product and n^2 for its scale."""
    return sizes["batch"] * (2 * sizes["n"] ** 3 + sizes["n"] ** 2)


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return bytes of two operands and one result."""
    return int(3 * sizes["batch"] * sizes["n"] ** 2 * element_bytes)


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
