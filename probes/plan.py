"""Which probes a workload needs: its own blocks, each once for every runtime, and the frame around a step."""

from dataclasses import dataclass

from core.device import Device
from core.probe import Probe, Runtime
from core.workload import Block, Size, Workload
from probes.blocks import block_modules
from probes.depths import BYTES_PER_WEIGHT, depths_of
from probes.kernels import kernel_modules

PLAUSIBLE_FLOP_PER_S = 5e10
"""Rate that a probe's length is guessed with before anything was measured on a CPU; only decides when a batch is cut."""
LONGEST_CALL_S = 4.0
TRAINED_COPIES = 3


@dataclass(frozen=True, slots=True)
class Planned:
    """A probe with the work that one copy of its subject does, for the gates, and the memory that its programs hold."""

    probe: Probe
    flop: int
    traffic_bytes: int
    large_aligned: bool = False
    held_bytes: int = 0


def block_probes(workload: Workload, runtimes: tuple[Runtime, ...], device: Device, tier: str = "quick") -> tuple[Planned, ...]:
    """Return the probes of one workload on one device: the heaviest subject first, every runtime in turn.

    A block whose call would take longer than four seconds is probed at a smaller batch; the advisor then scales its efficiency.

    Args:
        workload: with blocks.
        runtimes: to probe, installed.
        device: attached.
        tier: `quick` or `full`.
    """
    mode = "train" if workload.trains else "forward"
    optimizer = workload.optimizer if workload.trains else "none"
    shapes: dict[tuple[str, tuple[tuple[str, Size], ...]], Block] = {}
    for block in workload.blocks:
        shapes.setdefault((block.kind, block.sizes), block)
    planned: list[Planned] = []
    frame = kernel_modules()["step_frame"].quick(device.memory_bytes)[0]
    for runtime in runtimes:
        probe = Probe("step_frame", "kernel", _sorted(frame), workload.dtype, runtime.id, device.id, mode, optimizer, tier)
        planned.append(Planned(probe, 0, 0))
    heaviest_first = sorted(shapes.items(), key=lambda item: -_work(workload, item[1]))
    for (kind, _), block in heaviest_first:
        if kind not in block_modules():
            continue
        sizes, share = _fitting(block, workload.trains, device)
        flop = int((block.flop_forward + (block.flop_backward if workload.trains else 0)) * share)
        for runtime in runtimes:
            probe = Probe(kind, "block", sizes, workload.dtype, runtime.id, device.id, mode, optimizer, tier)
            planned.append(Planned(probe, flop, 0, held_bytes=_held_bytes(block, probe, share)))
    return tuple(planned)


def _held_bytes(block: Block, probe: Probe, share: float) -> int:
    """Return about what all programs of one probe hold: weights as drawn and as trained, and saved activations."""
    copies = sum(depths_of(block_modules()[block.kind], dict(probe.sizes), probe))
    return int(copies * (block.parameter_count * (BYTES_PER_WEIGHT + 4) + block.activation_bytes * share))


def _work(workload: Workload, block: Block) -> int:
    """Return the FLOPs of a step that blocks of this shape stand for: what is measured first when time is short."""
    flop = block.flop_forward + (block.flop_backward if workload.trains else 0)
    return flop * sum(other.repeats for other in workload.blocks if (other.kind, other.sizes) == (block.kind, block.sizes))


def _fitting(block: Block, trains: bool, device: Device) -> tuple[tuple[tuple[str, Size], ...], float]:
    """Return sizes whose call is short enough, and the share of the batch that they hold."""
    batch = block.size("batch")
    assert isinstance(batch, int)
    flop = block.flop_forward + (block.flop_backward if trains else 0)
    limit = PLAUSIBLE_FLOP_PER_S * LONGEST_CALL_S if device.kind == "cpu" else float("inf")
    smaller = batch
    while smaller > 1 and TRAINED_COPIES * flop * smaller / batch > limit:
        smaller = (smaller + 1) // 2
    sizes = _sorted({**dict(block.sizes), "batch": smaller})
    return sizes, smaller / batch


def kernel_probes(
    runtimes: tuple[Runtime, ...], device: Device, tier: str = "quick", only: str | None = None, dtype: str = "fp32"
) -> tuple[Planned, ...]:
    """Return the probes of the device's own roof: every kernel, swept, in every runtime.

    Args:
        runtimes: to probe, installed.
        device: attached.
        tier: `quick` or `full`.
        only: one kernel by name; None for all.
        dtype: compute dtype.
    """
    planned: list[Planned] = []
    for name, module in kernel_modules().items():
        if only is not None and name != only:
            continue
        for sizes in getattr(module, tier)(device.memory_bytes):
            large = name == "matmul_chain" and sizes["n"] >= 2048
            element = 2.0 if dtype == "bf16" else 4.0
            optimizer = "adamw" if module.MODE == "train" else "none"
            for runtime in runtimes:
                probe = Probe(name, "kernel", _sorted(sizes), dtype, runtime.id, device.id, module.MODE, optimizer, tier)
                planned.append(Planned(probe, module.flop(sizes), module.traffic(sizes, element), large))
    return tuple(planned)


def _sorted(sizes: dict[str, Size]) -> tuple[tuple[str, Size], ...]:
    return tuple(sorted(sizes.items()))
