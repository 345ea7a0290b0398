"""The bare cost of one step: calling the program, a one-weight model, and its update.

It is the frame that single blocks are measured against, and it is added once to the sum over blocks.
"""

from typing import Any

from core.device import Device
from probes.blocks import Sizes
from probes.layers import Input, Layer, dense

ENDS_IN_LOSS = False
DEPTHS = (1,)
MODE = "train"


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return one dense layer of one weight."""
    return {"one": dense(1, 1, bias=False)}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return one number."""
    return {"x": Input("float", (1, 1))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return one number."""
    return ops.dense(layers["one"], inputs["x"])


def small(sizes: Sizes) -> Sizes:
    """The frame is small already."""
    return dict(sizes)


def chains(sizes: Sizes) -> bool:
    """The frame stands alone."""
    return False


def quick(device: Device) -> tuple[Sizes, ...]:
    """Return the one frame there is."""
    return ({"batch": 1},)


full = quick


def flop(sizes: Sizes) -> int:
    """Return nothing: only the call is of interest."""
    return 0


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return nothing: only the call is of interest."""
    return 0


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
