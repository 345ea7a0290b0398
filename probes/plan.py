"""Which probes a workload needs: the frame around a step, its reduced model, and the blocks that repeat, in every runtime."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from core.device import Device
from core.errors import BadInput
from core.ops import DTYPE_BYTES
from core.probe import Probe, Runtime
from core.reduced import REDUCED_MODEL, reduced_block
from core.workload import Block, Size, Workload
from probes.agreement import TOLERANCE
from probes.blocks import Sizes, block_modules
from probes.depths import BYTES_PER_WEIGHT, depths_of
from probes.kernels import kernel_modules
from probes.reduced import can_be_wired
from probes.subjects import subject_of
from probes.sweeps import affordable

PLAUSIBLE_FLOP_PER_S = 5e10
"""Rate that a probe's length is guessed with before anything was measured on a CPU; only decides when a batch is cut."""
LONGEST_CALL_S = 4.0
DRAWN_BYTES = 4
"""Of one weight as it was drawn, float32, beside what the framework holds."""
MOST_HELD_SHARE = 0.4
"""Share of the device's memory that a reduced model may hold; beyond it, its blocks are measured one by one."""

IN_BF16 = {
    "cpu": ("matmul_chain", "memory_triad"),
    "other": ("matmul_chain", "matmul_skinny", "memory_triad", "vector_fma", "attention"),
}
"""Kernels that the full tier measures in bfloat16 too; few on a CPU, where most runtimes emulate it."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A probe with the work that one copy of its subject does, for the gates, and the memory that its programs hold."""

    probe: Probe
    flop: int
    traffic_bytes: int
    large_aligned: bool = False
    held_bytes: int = 0


def block_probes(workload: Workload, runtimes: tuple[Runtime, ...], device: Device, tier: str = "quick") -> tuple[Planned, ...]:
    """Return the probes of one workload on one device: the frame, the reduced model, then what each further layer adds.

    Where the blocks cannot be wired to one model, or would not fit in memory together, every block is probed by itself. What
    stands for most work comes first, every runtime in turn. A subject whose call would take longer than four seconds is probed at
    a smaller batch; the advisor then scales its efficiency.

    Args:
        workload: with blocks.
        runtimes: to probe, installed.
        device: attached.
        tier: `quick` or `full`.
    """
    mode = "train" if workload.trains else "forward"
    optimizer = workload.optimizer if workload.trains else "none"

    def planned(subject: str, family: str, block: Block | None, sizes: tuple[tuple[str, Size], ...]) -> Iterator[Planned]:
        for runtime in runtimes:
            probe = Probe(subject, family, sizes, workload.dtype, runtime.id, device.id, mode, optimizer, tier)
            if block is None:
                yield Planned(probe, 0, 0)
                continue
            used, share = _fitting(block, workload.trains, device, _depths(probe))
            flop = int(_flop(block, workload.trains) * share)
            fitted = replace(probe, sizes=used)
            yield Planned(fitted, flop, 0, held_bytes=_held_bytes(block, fitted, share))

    frame = planned("step_frame", "kernel", None, _sorted(kernel_modules()["step_frame"].quick(device)[0]))
    reduced = reduced_block(workload.blocks)
    whole = list(planned(REDUCED_MODEL, "model", reduced, reduced.sizes)) if reduced and can_be_wired(reduced) else []
    if any(one.held_bytes > MOST_HELD_SHARE * device.memory_bytes for one in whole):
        whole = []
    blocks = [one for block in _subjects(workload, not whole) for one in planned(block.kind, "block", block, block.sizes)]
    return (*frame, *whole, *blocks)


def _subjects(workload: Workload, alone: bool) -> list[Block]:
    """Return blocks of different shape, what stands for most work first; without `alone` only those that repeat."""
    shapes: dict[tuple[str, tuple[tuple[str, Size], ...]], Block] = {}
    for block in workload.blocks:
        if block.kind in block_modules() and (alone or block.repeats > 1):
            shapes.setdefault((block.kind, block.sizes), block)
    return sorted(shapes.values(), key=lambda block: -_work(workload, block))


def _depths(probe: Probe) -> tuple[int, ...]:
    return depths_of(subject_of(probe), dict(probe.sizes), probe)


def _held_bytes(block: Block, probe: Probe, share: float) -> int:
    """Return about what all programs of one probe hold: weights as drawn and as used, and saved activations."""
    copies = sum(_depths(probe))
    per_weight = DRAWN_BYTES + (BYTES_PER_WEIGHT if probe.mode == "train" else DTYPE_BYTES[probe.dtype])
    return int(copies * (block.parameter_count * per_weight + block.activation_bytes * share))


def _flop(block: Block, trains: bool) -> int:
    return block.flop_forward + (block.flop_backward if trains else 0)


def _work(workload: Workload, block: Block) -> int:
    """Return the FLOPs of a step that blocks of this shape stand for: what is measured first when time is short."""
    alike = sum(other.repeats for other in workload.blocks if (other.kind, other.sizes) == (block.kind, block.sizes))
    return _flop(block, workload.trains) * alike


def _fitting(block: Block, trains: bool, device: Device, depths: tuple[int, ...]) -> tuple[tuple[tuple[str, Size], ...], float]:
    """Return sizes whose deepest call is short enough, and the share of the batch that they hold."""
    batch = block.size("batch")
    assert isinstance(batch, int)
    flop = _flop(block, trains) * max(depths)
    limit = PLAUSIBLE_FLOP_PER_S * LONGEST_CALL_S if device.kind == "cpu" else float("inf")
    smaller = batch
    while smaller > 1 and flop * smaller / batch > limit:
        smaller = (smaller + 1) // 2
    return _sorted({**dict(block.sizes), "batch": smaller}), smaller / batch


def kernel_probes(
    runtimes: tuple[Runtime, ...], device: Device, tier: str = "quick", only: str | None = None, dtype: str = "fp32"
) -> tuple[Planned, ...]:
    """Return the probes of the device's own roof: every kernel, swept, in every runtime.

    The full tier adds the kernels of `IN_BF16` in bfloat16 to a sweep in float32.

    Args:
        runtimes: to probe, installed.
        device: attached.
        tier: `quick` or `full`.
        only: one kernel by name; None for all. One that the quick tier leaves out is measured at its first size.
        dtype: compute dtype.

    Raises:
        BadInput: a dtype that no backend sets and compares with the reference.
    """
    if dtype not in TOLERANCE:
        raise BadInput(
            f"dtype {dtype}", f"one of {', '.join(TOLERANCE)}", "no runtime here sets it and is compared with the reference in it"
        )
    planned: list[Planned] = []
    in_bf16 = IN_BF16.get(device.kind, IN_BF16["other"])
    for name, module in kernel_modules().items():
        if only is not None and name != only:
            continue
        sweep = getattr(module, tier)(device) or (module.full(device)[:1] if only else ())
        more = ("bf16",) if tier == "full" and dtype == "fp32" and name in in_bf16 else ()
        for used in (dtype, *more):
            for sizes in sweep:
                planned.extend(sized_kernel(name, sizes, runtimes, device, tier, used))
    return tuple(planned)


def sized_kernel(
    name: str, sizes: Sizes, runtimes: tuple[Runtime, ...], device: Device, tier: str, dtype: str
) -> Iterator[Planned]:
    """Yield the probes of one kernel at one size in each runtime; none when it would take a device of this kind too long.

    Args:
        name: of the kernel.
        sizes: by name.
        runtimes: to probe, installed.
        device: attached.
        tier: `quick` or `full`.
        dtype: compute dtype.
    """
    module = kernel_modules()[name]
    element = DTYPE_BYTES[dtype]
    flop, traffic = module.flop(sizes), module.traffic(sizes, element)
    if not affordable(device, flop * max(module.DEPTHS), dtype):
        return
    large = name == "matmul_chain" and sizes["n"] >= 2048
    optimizer = "adamw" if module.MODE == "train" else "none"
    elements = sum(prod(one.shape) for one in module.inputs(sizes).values())
    elements += sum(layer.parameter_count for layer in module.layers(sizes).values())
    programs = sum(1 for depth in module.DEPTHS if depth)
    held = int(programs * (elements * (DRAWN_BYTES + element) + traffic))
    for runtime in runtimes:
        probe = Probe(name, "kernel", _sorted(sizes), dtype, runtime.id, device.id, module.MODE, optimizer, tier)
        yield Planned(probe, flop, traffic, large, held)


def _sorted(sizes: dict[str, Size]) -> tuple[tuple[str, Size], ...]:
    return tuple(sorted(sizes.items()))
