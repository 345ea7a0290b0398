"""What was measured of the attached devices: the empirical roofline of each, beside the maker's peaks and published rates.

And the one probe that is of a workload and of a device at once: the workload's own matrix products.
"""

from collections.abc import Sequence

from advisor.roofline import device_roof
from catalog import accelerator
from catalog.published import published_rates
from core.device import Device
from core.errors import BadInput, NotFound
from core.probe import Outcome
from core.roofline import DeviceRoof, Reference
from probes.inventory import devices as attached_devices
from probes.plan import Planned
from probes.session import run_probes
from probes.shapes import shape_probes
from services import workloads
from services.context import context
from services.device_history import marking_history
from services.probing import Listener, Reporter, chosen_runtimes, usable
from services.runtimes import known_runtimes


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


def probe_shapes(
    workload: str,
    runtimes: Sequence[str] = (),
    tier: str = "quick",
    on_progress: Listener | None = None,
    budget_s: float = 3600.0,
) -> tuple[Outcome, ...]:
    """Measure the matrix products of a workload on every attached device in each runtime, and keep the outcomes.

    Args:
        workload: what the command line takes: a preset, a file, or `-`.
        runtimes: ids; none for all that are installed.
        tier: `quick` (ten shapes that stand for most work) or `full` (forty).
        on_progress: hears of every change.
        budget_s: seconds after which no probe is begun.

    Raises:
        BadInput: a workload that is not understood or has no products, or a runtime that is not installed.
    """
    here = context()
    asked = workloads.read(workload).workload
    attached = attached_devices()
    installed = chosen_runtimes(tuple(runtimes), known_runtimes(here.settings, attached))
    planned: list[Planned] = []
    for device in attached:
        planned.extend(shape_probes(asked, usable(device, installed), device, tier))
    if not planned:
        raise BadInput(f"{asked.name} without matrix products", "a workload that has some", "measure its layers: ./tandem advise")
    reporter = Reporter(len(planned), here.store.keep_loose, on_progress or (lambda _progress, _outcome: None), budget_s)
    run_probes(planned, attached, installed, here.settings, marking_history(here.store, reporter.hear), lambda: False, budget_s)
    return tuple(reporter.outcomes)
