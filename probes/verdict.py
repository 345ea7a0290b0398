"""The verdict on one probe: every gate in a row, over samples, programs, the machine and the other runtimes' outputs."""

from core.device import Device
from probes.contention import Bystanders
from probes.gates import GateResult, judge
from probes.messages import Finished
from probes.peaks import peak_bytes_per_s, peak_flop_per_s
from probes.plan import Planned
from probes.watch import throttle_doubt


def verdict(device: Device, one: Planned, reply: Finished, bystanders: Bystanders, held_down: str, differs: str) -> GateResult:
    """Judge what a worker handed over.

    Args:
        device: that was measured.
        one: what was planned.
        reply: samples and evidence.
        bystanders: who used the processor meanwhile.
        held_down: why the chip was throttled, or nothing.
        differs: how the output stands apart from other runtimes', or nothing.
    """
    peak, rate = peak_flop_per_s(device, one.probe.dtype), peak_bytes_per_s(device)
    traffic = one.traffic_bytes if not one.flop and one.probe.family == "kernel" else 0
    own = tuple(timing for timing in reply.timings if not timing.part)
    result = judge(own, one.flop, traffic, peak, rate, one.large_aligned, reply.evidence, device.cache_bytes)
    cores = device.cores or 1
    narrow = bystanders.narrow(cores) if one.large_aligned and device.kind == "cpu" else ""
    more = tuple(filter(None, (bystanders.warning(cores), narrow, throttle_doubt(held_down), differs)))
    return GateResult((*result.warnings, *more), result.trusted and not differs.startswith("quarantined"))
