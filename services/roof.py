"""The roof of a device: two kernels in one runtime, measured once a day and carried over into the runs that follow."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from core.device import Device
from core.probe import Measurement, Runtime
from core.workload import Workload
from probes.blocks import block_modules
from probes.plan import Planned, kernel_probes

RUNTIMES = ("torch-eager", "jax")
KERNELS = (("matmul_chain", 2048), ("memory_triad", None))
STAND_INS = ("matmul_chain", "matmul_skinny", "memory_copy", "launch")
LASTS = timedelta(days=1)


def roof_probes(runtimes: Sequence[Runtime], device: Device, dtype: str) -> tuple[Planned, ...]:
    """Return the probes that draw the roof of a device at a dtype; none when no runtime of the kind is there."""
    drawn = next((r for name in RUNTIMES for r in runtimes if r.id == name), None)
    if drawn is None:
        return ()
    planned: list[Planned] = []
    for name, size in KERNELS:
        sweep = kernel_probes((drawn,), device, "quick", name, dtype)
        planned.extend(p for p in sweep if size is None or ("n", size) in p.probe.sizes)
    return tuple(planned)


def stand_ins(workload: Workload, runtimes: Sequence[Runtime], device: Device) -> tuple[Planned, ...]:
    """Return the kernels that stand for blocks which no file probes whole, such as those of a model that was read from a file.

    Args:
        workload: the job; none are needed where each of its blocks is probed itself.
        runtimes: installed, each of which is measured.
        device: attached.
    """
    if all(block.kind in block_modules() for block in workload.blocks):
        return ()
    dtype = workload.dtype
    found = [one for name in STAND_INS for one in kernel_probes(tuple(runtimes), device, "quick", name, dtype)]
    if device.kind != "cpu" or dtype == "fp32":
        return tuple(found)
    # no processor is known to be fast in narrow dtypes: one size tells that, more would take minutes
    least = {one.probe.subject: min(other.flop for other in found if other.probe.subject == one.probe.subject) for one in found}
    return tuple(one for one in found if one.flop == least[one.probe.subject])


def carried_over(
    planned: Sequence[Planned], stored: Sequence[Measurement], device: Device, runtimes: Sequence[Runtime], now: datetime
) -> tuple[Measurement, ...]:
    """Return the stored measurements that still answer a planned probe: of this device, trusted, undisturbed, of today.

    Args:
        planned: the roof of one device.
        stored: newest of each probe.
        device: attached.
        runtimes: installed; a measurement of another version answers nothing.
        now: with its time zone.
    """
    asked = {one.probe for one in planned}
    installed = {runtime.id: dict(runtime.versions) for runtime in runtimes}

    def answers(found: Measurement) -> bool:
        versions = installed.get(found.probe.runtime, {})
        return (
            found.probe in asked
            and found.device_uuid == device.uuid
            and found.trusted
            and not found.contended
            and all(versions.get(name, version) == version for name, version in found.versions)
            and timedelta() <= now - datetime.fromisoformat(found.taken_at) < LASTS
        )

    return tuple(found for found in stored if answers(found))
