"""What is attached here and which runtime could use it."""

from dataclasses import dataclass

from core.device import Device
from core.probe import Runtime
from probes.inventory import devices
from probes.runtimes import usable_by
from services.context import context
from services.runtimes import known_runtimes


@dataclass(frozen=True, slots=True)
class DevicesReport:
    """Devices, runtimes, and for each pair: (device id, runtime id, whether they go together, why not, what to do)."""

    devices: tuple[Device, ...]
    runtimes: tuple[Runtime, ...]
    usable: tuple[tuple[str, str, bool, str, str], ...]


def report() -> DevicesReport:
    """Look at this machine; starts no framework."""
    attached = devices()
    runtimes = known_runtimes(context().settings, attached)
    pairs = usable_by(attached, runtimes)
    return DevicesReport(attached, runtimes, tuple((p.device, p.runtime, p.ok, p.reason, p.remedy) for p in pairs))
