"""Convolutions of a ResNet-50: the stem, then 3x3 and 1x1 of each stage.

One copy against the bare frame: they change shape.
"""

from typing import Any

from core.device import Device
from probes.blocks import Sizes
from probes.layers import Input, Layer, conv, strided

ENDS_IN_LOSS = False
DEPTHS = (0, 1)
MODE = "forward"
SHAPES = (
    (224, 3, 64, 7, 2),
    (56, 64, 64, 3, 1),
    (56, 64, 256, 1, 1),
    (28, 128, 128, 3, 1),
    (14, 256, 256, 3, 1),
    (7, 512, 512, 3, 1),
)
"""Side, channels in and out, kernel, stride. Source: He et al. (2016), Deep Residual Learning, table 1."""


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the kernel, without bias."""
    return {"conv": conv(sizes["in_channels"], sizes["out_channels"], sizes["kernel"], sizes["stride"])}


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return images (batch, side, side, in_channels)."""
    return {"x": Input("image", (sizes["batch"], sizes["side"], sizes["side"], sizes["in_channels"]))}


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return the convolved images."""
    return ops.conv(layers["conv"], inputs["x"])


def small(sizes: Sizes) -> Sizes:
    """Return two images of 8 x 8 and few channels."""
    return {**sizes, "batch": 2, "side": 8, "in_channels": 3, "out_channels": 4}


def chains(sizes: Sizes) -> bool:
    """It stands alone."""
    return False


def quick(device: Device) -> tuple[Sizes, ...]:
    """The quick tier leaves it out."""
    return ()


def full(device: Device) -> tuple[Sizes, ...]:
    """Return six shapes, eight images at a time on a CPU, 64 elsewhere."""
    return tuple(
        {
            "batch": 8 if device.kind == "cpu" else 64,
            "side": side,
            "in_channels": before,
            "out_channels": after,
            "kernel": kernel,
            "stride": stride,
        }
        for side, before, after, kernel, stride in SHAPES
    )


def _side(sizes: Sizes) -> int:
    return strided(sizes["side"], sizes["kernel"], sizes["stride"])


def flop(sizes: Sizes) -> int:
    """Return two operations for each product."""
    return 2 * sizes["batch"] * _side(sizes) ** 2 * sizes["out_channels"] * sizes["in_channels"] * sizes["kernel"] ** 2


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return bytes of images, kernel and result."""
    return int(
        element_bytes
        * (
            sizes["batch"] * sizes["side"] ** 2 * sizes["in_channels"]
            + sizes["in_channels"] * sizes["out_channels"] * sizes["kernel"] ** 2
            + sizes["batch"] * _side(sizes) ** 2 * sizes["out_channels"]
        )
    )


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
