"""The roofline of one attached device and the workload's own work under it, as plain values.

The roof is what kernels reached on the device: the best trusted rate over all runtimes, of matmul chains for arithmetic and
of sweeps over memory for traffic. Where no kernel was measured the maker's figures stand in, and say so.

Source: Williams, Waterman, Patterson (2009), Roofline: attainable = min(peak, intensity x memory rate).
"""

from dataclasses import dataclass

from catalog import accelerator
from core.device import Device
from core.errors import NotFound
from core.probe import Measurement
from core.reduced import reduced_block
from core.run import Run
from core.workload import Block, Workload


@dataclass(frozen=True, slots=True)
class Roof:
    """What a device can do at most; None where it is not known.

    Args:
        flop_per_s: arithmetic at the workload's dtype.
        bytes_per_s: traffic to memory.
        tier: `measured` or `datasheet`.
    """

    flop_per_s: float | None
    bytes_per_s: float | None
    tier: str

    def attainable(self, intensity: float) -> float | None:
        """Return FLOP/s that can be reached at an intensity in FLOP/byte."""
        limits = [self.flop_per_s, None if self.bytes_per_s is None else intensity * self.bytes_per_s]
        known = [limit for limit in limits if limit is not None]
        return min(known) if known else None


@dataclass(frozen=True, slots=True)
class Point:
    """One block as one runtime ran it: FLOP/byte, FLOP/s."""

    block: str
    runtime: str
    intensity: float
    flop_per_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class OpMark:
    """All operations of one kind in the workload: FLOP/byte and their share of its FLOPs."""

    kind: str
    intensity: float
    share: float


MEMORY_BOUND = 1.0
"""FLOP/byte under which a kernel is taken as a sweep over memory."""


def roof_of(run: Run, device: Device) -> Roof:
    """Return the measured roof of a device, which no block of the workload stands above, else that of its data sheet, if any."""
    kernels = [
        o
        for o in run.outcomes
        if isinstance(o, Measurement)
        and o.trusted
        and o.probe.family == "kernel"
        and o.probe.device == device.id
        and o.median_s > 0
    ]
    arithmetic = [
        o.flop / o.median_s
        for o in kernels
        if o.probe.dtype == run.workload.dtype and o.flop > MEMORY_BOUND * max(o.traffic_bytes, 1)
    ]
    sweeps = [o for o in kernels if o.traffic_bytes > 0 and o.flop <= MEMORY_BOUND * o.traffic_bytes]
    beyond_cache = [o for o in sweeps if device.cache_bytes is None or o.traffic_bytes > 2 * device.cache_bytes]
    traffic = [o.traffic_bytes / o.median_s for o in beyond_cache or sweeps]
    if arithmetic:
        arithmetic += [point.flop_per_s for point in points_of(run, device)]
    if arithmetic or traffic:
        return Roof(max(arithmetic, default=None), max(traffic, default=None), "measured")
    if device.accelerator:
        try:
            sheet = accelerator(device.accelerator)
        except NotFound:
            return Roof(None, None, "measured")
        return Roof(sheet.peak(run.workload.dtype), sheet.memory_bytes_per_s, "datasheet")
    return Roof(None, None, "measured")


def points_of(run: Run, device: Device) -> tuple[Point, ...]:
    """Return where each measured block of the workload lies, and all of them together, in each runtime."""
    reduced = reduced_block(run.workload.blocks)
    subjects = (*run.workload.blocks, *((reduced,) if reduced else ()))
    blocks = {(block.kind, block.sizes): block for block in subjects}
    points: list[Point] = []
    for outcome in run.outcomes:
        if not isinstance(outcome, Measurement) or outcome.probe.family == "kernel" or outcome.probe.device != device.id:
            continue
        block = blocks.get((outcome.probe.subject, outcome.probe.sizes))
        traffic = 0 if block is None else _traffic(block, outcome.probe.mode == "train")
        if block is not None and traffic and outcome.flop and outcome.median_s > 0 and outcome.trusted:
            points.append(
                Point(
                    block.name, outcome.probe.runtime, outcome.flop / traffic, outcome.flop / outcome.median_s, outcome.median_s
                )
            )
    return tuple(points)


def op_marks(workload: Workload) -> tuple[OpMark, ...]:
    """Return the operations of the workload by kind, most FLOPs first."""
    flop: dict[str, int] = {}
    traffic: dict[str, int] = {}
    for block in workload.blocks:
        for op in block.ops_forward + (block.ops_backward if workload.trains else ()):
            flop[op.kind] = flop.get(op.kind, 0) + block.repeats * op.flop
            traffic[op.kind] = traffic.get(op.kind, 0) + block.repeats * (op.bytes_read + op.bytes_written)
    whole = sum(flop.values())
    marks = [OpMark(kind, flop[kind] / traffic[kind], flop[kind] / whole) for kind in flop if flop[kind] and traffic[kind]]
    return tuple(sorted(marks, key=lambda mark: -mark.share))


def device_of(run: Run) -> Device | None:
    """Return the device on which most blocks were measured, the first one on a tie; None when none was."""
    counts = {device.id: 0 for device in run.devices}
    for outcome in run.outcomes:
        if isinstance(outcome, Measurement) and outcome.probe.device in counts:
            counts[outcome.probe.device] += 1
    best = max(run.devices, key=lambda device: counts[device.id], default=None)
    return best if best is not None and counts[best.id] else None


def _traffic(block: Block, trains: bool) -> int:
    ops = block.ops_forward + (block.ops_backward if trains else ())
    return sum(op.bytes_read + op.bytes_written for op in ops)
