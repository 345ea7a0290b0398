"""Gradients in sixteen bits: the upper halves of float32, rounded to nearest, ties to even, as every framework's bfloat16 is."""

from typing import Any


def to_sixteen(values: Any) -> Any:
    """Return uint16 halves of float32 values; what is no number stays none.

    Args:
        values: float32, any shape.
    """
    import numpy as np

    bits: Any = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded: Any = ((bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16).astype(np.uint16)
    unsure: Any = np.isnan(values)
    if unsure.any():
        rounded[unsure] = 0x7FC0
    return rounded


def from_sixteen(halves: Any) -> Any:
    """Return the float32 values of uint16 halves."""
    import numpy as np

    return (halves.astype(np.uint32) << 16).view(np.float32)
