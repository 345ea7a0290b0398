"""Square products whose sides miss the tiles of the hardware by a little: what padding costs beside `matmul_chain`."""

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
    """Return 33 x 33, which is misaligned too."""
    return {**sizes, "n": 33}


def chains(sizes: Sizes) -> bool:
    """A product feeds the next."""
    return True


def quick(device: Device) -> tuple[Sizes, ...]:
    """The quick tier leaves it out."""
    return ()


def full(device: Device) -> tuple[Sizes, ...]:
    """Return sides around 128, 256, 1024 and 2048: one off, and eight over."""
    return tuple({"n": n} for n in (127, 128, 129, 136, 255, 257, 264, 1023, 1025, 1032, 2047, 2049, 2056))


def flop(sizes: Sizes) -> int:
    """Return 2 n^3 for the product and n^2 for the scale."""
    return 2 * sizes["n"] ** 3 + sizes["n"] ** 2


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return bytes of two operands and one result."""
    return int(3 * sizes["n"] ** 2 * element_bytes)


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
