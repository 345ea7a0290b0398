"""Which system probes make the quick and the full tier of a device, in which order.

Probes that share a worker stand together, since each setting has a worker of its own; sustained load stands last, so that
nothing else is measured on a hot device.
"""

from collections.abc import Sequence

from core.device import Device
from core.probe import Probe, Runtime
from probes.environment import Setting
from probes.plan import Planned
from probes.system import setting_of, system_modules

LAST = "sustained_load"
FIRST = "memory_capacity"
"""What a runtime holds at rest is told by a worker that has done nothing yet."""


def system_probes(
    runtimes: Sequence[Runtime], device: Device, tier: str = "quick", only: str | None = None
) -> tuple[Planned, ...]:
    """Return the system probes of a device in every runtime that can be asked.

    Args:
        runtimes: installed, and able to use the device. A hand-off needs the runtime of its far end among them.
        device: attached.
        tier: `quick` or `full`.
        only: one probe by name; None for all.
    """
    here = {runtime.id for runtime in runtimes}
    planned: list[Planned] = []
    for name, module in system_modules().items():
        if only is not None and name != only:
            continue
        for runtime in runtimes:
            if runtime.id not in module.RUNTIMES:
                continue
            for sizes in getattr(module, tier)(device, runtime.id):
                if "to" in sizes and sizes["to"] not in here:
                    continue
                probe = Probe(name, "system", tuple(sorted(sizes.items())), "fp32", runtime.id, device.id, tier=tier)
                planned.append(Planned(probe, module.flop(sizes), module.traffic(sizes)))
    return tuple(sorted(planned, key=_order))


def _order(planned: Planned) -> tuple[int, bool, str, str, str, str]:
    """Return what plans are sorted by: the plain worker first, equal subjects and sizes of all runtimes together."""
    probe, setting = planned.probe, setting_of(planned.probe)
    rank = 0 if probe.subject == FIRST else 2 if probe.subject == LAST else 1
    sizes = " ".join(f"{name}={value:>12}" for name, value in probe.sizes)
    phase = 0 if ("phase", "sustained") in probe.sizes else 1
    return (rank, setting != Setting(), repr(setting), probe.subject, f"{phase} {sizes}", probe.runtime)
