"""Dependent sums over a matrix, each weighted by the one before: every element is read once and next to nothing is written.

A bare sum would be hoisted out of a chain, since nothing in it changes; the weights make each sum need the last, and no compiler
fuses two of them. Being a chain, its slope is free of the cost of a call, so that small working sets show the caches.
"""

from math import isqrt, sqrt
from typing import Any

from core.device import Device
from probes.blocks import Sizes
from probes.layers import Input, Layer
from probes.sweeps import beyond_caches, working_sets

ENDS_IN_LOSS = False
DEPTHS = (1, 5)
MODE = "forward"


def layers(sizes: Sizes) -> dict[str, Layer]:
    """A kernel has no parameters."""
    return {}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return the weights (1, n) and the matrix (n, n) of `bytes`."""
    n = isqrt(sizes["bytes"] // 4)
    return {"x": Input("float", (1, n)), "w": Input("float", (n, n))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return the n weighted sums over the columns, / sqrt(n)."""
    return ops.scaled_matmul(inputs["x"], inputs["w"], 1 / sqrt(isqrt(sizes["bytes"] // 4)))


def small(sizes: Sizes) -> Sizes:
    """Return 4 KiB."""
    return {**sizes, "bytes": 4096}


def chains(sizes: Sizes) -> bool:
    """A sum weights the next."""
    return True


def quick(device: Device) -> tuple[Sizes, ...]:
    """Return one working set inside a cache and one that no cache holds."""
    return ({"bytes": 2**20}, {"bytes": beyond_caches(device)})


def full(device: Device) -> tuple[Sizes, ...]:
    """Return the working sets of the memory curve."""
    return tuple({"bytes": size} for size in working_sets(device))


def flop(sizes: Sizes) -> int:
    """Return nothing; two operations an element are counted as traffic only."""
    return 0


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return bytes of the matrix, and of one read and one write of the weights."""
    return int((isqrt(sizes["bytes"] // 4) ** 2 + 2 * isqrt(sizes["bytes"] // 4)) * element_bytes)


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
