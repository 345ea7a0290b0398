"""What moves between devices and what else a system probe told, out of the store, for the devices page."""

from collections.abc import Sequence
from dataclasses import dataclass

from advisor import system
from advisor.links import series
from catalog import accelerators
from core.device import Device
from core.links import LinkSeries
from services.context import context


@dataclass(frozen=True, slots=True)
class SystemReport:
    """Everything that system probes told of the attached devices; empty tuples where nothing was measured."""

    links: tuple[LinkSeries, ...]
    loads: tuple[system.Load, ...]
    scalings: tuple[system.Scaling, ...]
    overlaps: tuple[system.Overlap, ...]
    compilings: tuple[system.Compiling, ...]
    capacities: tuple[system.Capacity, ...]
    measured: int
    contended: int
    """How many system measurements there are, and at how many of them other processes used the device."""

    @property
    def empty(self) -> bool:
        """Whether nothing was measured yet."""
        return not any((self.links, self.loads, self.scalings, self.overlaps, self.compilings, self.capacities))


def report(devices: Sequence[Device]) -> SystemReport:
    """Return what is stored of these devices, newest of each probe.

    Args:
        devices: attached.

    Raises:
        StoreError: the database cannot be used.
    """
    stored = context().store.measurements(tuple(device.uuid for device in devices))
    measured = tuple(one for one in stored if one.probe.family == "system")
    known = accelerators()
    chips = {device.id: known[device.accelerator] for device in devices if device.accelerator and device.accelerator in known}
    return SystemReport(
        series(measured, chips),
        system.loads(measured),
        system.scalings(measured),
        system.overlaps(measured),
        system.compilings(measured),
        system.capacities(measured),
        len(measured),
        sum(one.contended for one in measured),
    )
