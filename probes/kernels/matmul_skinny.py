"""Products of few rows with a large square matrix: what decoding and small batches do."""

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
    """Return (m, n) and (n, n)."""
    return {"x": Input("float", (sizes["m"], sizes["n"])), "w": Input("float", (sizes["n"], sizes["n"]))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return x w / sqrt(n)."""
    return ops.scaled_matmul(inputs["x"], inputs["w"], 1 / sqrt(sizes["n"]))


def small(sizes: Sizes) -> Sizes:
    """Return (4, 32)."""
    return {**sizes, "m": 4, "n": 32}


def chains(sizes: Sizes) -> bool:
    """A product feeds the next."""
    return True


def quick(device: Device) -> tuple[Sizes, ...]:
    """Return one row and thirty-two."""
    return ({"m": 1, "n": 2048}, {"m": 32, "n": 2048})


def full(device: Device) -> tuple[Sizes, ...]:
    """Return 1 to 512 rows against three widths."""
    return tuple(
        {"m": m, "n": n} for n in (1024, 4096, 8192) for m in (1, 8, 32, 128, 512) if 8 * n * n < device.memory_bytes / 4
    )


def flop(sizes: Sizes) -> int:
    """Return 2 m n^2 and m n for the scale."""
    return 2 * sizes["m"] * sizes["n"] ** 2 + sizes["m"] * sizes["n"]


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return bytes of both operands and the result."""
    return int((sizes["n"] ** 2 + 2 * sizes["m"] * sizes["n"]) * element_bytes)


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
