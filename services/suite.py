"""What was measured of the attached devices: the empirical roofline of each, beside the maker's peaks and published figures."""

from advisor.roofline import device_roof
from catalog import accelerator
from catalog.published import published_rates
from core.device import Device
from core.errors import NotFound
from core.roofline import DeviceRoof, Reference
from services.context import context


def rooflines(devices: tuple[Device, ...]) -> tuple[DeviceRoof, ...]:
    """Return the roofline of each device from the newest trusted measurement of each kernel; nothing is measured.

    Args:
        devices: attached.
    """
    stored = context().store.measurements(tuple(device.uuid for device in devices))
    return tuple(device_roof(device, stored, references_of(device)) for device in devices)


def references_of(device: Device) -> tuple[Reference, ...]:
    """Return the maker's dense peaks and published measurements of a device's type; none when the catalog does not know it."""
    if device.accelerator is None:
        return ()
    try:
        chip = accelerator(device.accelerator)
    except NotFound:
        return ()
    source = f"{chip.source}, {chip.source_date}"
    peaks = [Reference("matmul", dtype, value, f"peak of the maker, {dtype}", True, source) for dtype, value in chip.flop_per_s]
    if chip.memory_bytes_per_s:
        peaks.append(Reference("memory", "", chip.memory_bytes_per_s, "peak of the maker", True, source))
    return (*peaks, *published_rates(chip.key))
