"""A dependent chain of multiply-adds on each element of a vector, 2 to 1024 FLOPs for one read and one write.

Where it is short it shows memory, where it is long the peak of the vector units; between them lies the ridge. Factor and summand
are inputs, so that no compiler folds the chain; the factor is below one, so that values stay normal. In eager runtimes each step
is a pass of its own, which is what they reach.

Source of the method: Lo et al. (2014), Roofline Model Toolkit (ERT).
"""

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
    """Return the vector, a factor in 0.5 to 0.9 and a summand."""
    return {
        "x": Input("float", (sizes["elements"],)),
        "factor": Input("factor", (1,)),
        "summand": Input("float", (1,)),
    }


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return x after `flop_each` / 2 times x factor + summand."""
    x = inputs["x"]
    for _ in range(sizes["flop_each"] // 2):
        x = ops.multiply_add(x, inputs["factor"], inputs["summand"])
    return x


def small(sizes: Sizes) -> Sizes:
    """Return 64 elements and four steps."""
    return {"elements": 64, "flop_each": 8}


def chains(sizes: Sizes) -> bool:
    """Chains would be fused to a longer one."""
    return False


def _elements(device: Device) -> int:
    """Return elements that take long against a launch: 4 MiB on a CPU, 256 MiB elsewhere."""
    return 2**20 if device.kind == "cpu" else 2**26


def quick(device: Device) -> tuple[Sizes, ...]:
    """Return one chain near the peak of a compiled runtime."""
    return ({"elements": _elements(device), "flop_each": 64},)


def full(device: Device) -> tuple[Sizes, ...]:
    """Return chains of 2 to 1024 FLOPs an element, closer where the ridge of most devices lies."""
    return tuple({"elements": _elements(device), "flop_each": each} for each in (2, 8, 16, 32, 64, 128, 512, 1024))


def flop(sizes: Sizes) -> int:
    """Return `flop_each` for each element."""
    return sizes["elements"] * sizes["flop_each"]


def traffic(sizes: Sizes, element_bytes: float) -> int:
    """Return bytes of one read and one write."""
    return int(2 * sizes["elements"] * element_bytes)


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
