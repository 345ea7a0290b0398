"""The matrix products of a workload, each shape once: measured as they are, nothing has to be read between sizes.

Source of the idea: XLA's table of measured products per GPU, from which its cost model interpolates.
"""

from core.device import Device
from core.probe import Runtime
from core.workload import Workload
from probes.kernels import kernel_modules
from probes.plan import Planned, sized_kernel
from probes.sweeps import affordable

KERNEL = "matmul_shape"
MOST_SHAPES = {"quick": 10, "full": 40}
Shape = tuple[int, int, int, int]
"""Batch, m, n, k."""


def shapes_of(workload: Workload) -> tuple[tuple[Shape, int], ...]:
    """Return the shapes of a workload's products with the FLOPs of a step that each stands for, most work first.

    Args:
        workload: with blocks; products of the backward pass count when it trains.
    """
    work: dict[Shape, int] = {}
    for block in workload.blocks:
        for op in workload.ops_of(block):
            if op.kind == "matmul":
                batch, m, n, k = op.dims
                work[batch, m, n, k] = work.get((batch, m, n, k), 0) + op.flop * block.repeats
    return tuple(sorted(work.items(), key=lambda item: (-item[1], item[0])))


def shape_probes(workload: Workload, runtimes: tuple[Runtime, ...], device: Device, tier: str = "quick") -> tuple[Planned, ...]:
    """Return the probes of a workload's own products in every runtime, most work first.

    A product that would take a device of this kind too long is measured with its longest side cut, which its sizes say.

    Args:
        workload: with blocks.
        runtimes: to probe, installed.
        device: attached.
        tier: `quick` (ten shapes) or `full` (forty).
    """
    chosen: dict[Shape, None] = {}
    for shape, _ in shapes_of(workload)[: MOST_SHAPES[tier]]:
        chosen[_fitting(shape, device, workload.dtype)] = None
    planned: list[Planned] = []
    for batch, m, n, k in chosen:
        sizes = {"batch": batch, "m": m, "n": n, "k": k}
        planned.extend(sized_kernel(KERNEL, sizes, runtimes, device, tier, workload.dtype))
    return tuple(planned)


def _fitting(shape: Shape, device: Device, dtype: str) -> Shape:
    """Return a shape whose product is short enough on the device: the longest side is halved until it is."""
    module = kernel_modules()[KERNEL]
    batch, *sides = shape
    while max(sides) > 1:
        m, n, k = sides
        if affordable(device, module.flop({"batch": batch, "m": m, "n": n, "k": k}), dtype):
            break
        longest = sides.index(max(sides))
        sides[longest] = (sides[longest] + 1) // 2
    return (batch, sides[0], sides[1], sides[2])
