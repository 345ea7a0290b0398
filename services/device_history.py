"""The history of the devices that this database knows, and how what is measured now stands to it."""

from collections.abc import Callable

from core.history import DeviceHistory, histories_of, series_of, with_history
from core.probe import Measurement
from db import Store
from probes.inventory import devices
from probes.kernels import kernel_modules
from probes.session import Answered, Event
from services.context import context

EACH, MOST = 24, 2000
"""Measurements of one probe, and of all, that a history goes back at most: reading raw samples takes time."""
EARLIER = 8
"""Trusted measurements of a probe that are looked through for one of the same versions."""


def histories() -> tuple[DeviceHistory, ...]:
    """Return what the kernels of each device gave over time, with drifts and peers; empty before anything was measured.

    Raises:
        StoreError: the database cannot be used.
    """
    store = context().store
    series = series_of(store.series(tuple(kernel_modules()), EACH, MOST))
    attached = devices()
    known = {device.uuid: device for device in (*store.devices_seen(), *attached)}
    return histories_of(
        series,
        {uuid: device.name for uuid, device in known.items()},
        {uuid: device.accelerator or device.name for uuid, device in known.items()},
        {device.uuid: device.id for device in attached},
    )


def marking_history(store: Store, hear: Callable[[Event], None]) -> Callable[[Event], None]:
    """Return a listener that adds to each measurement what its history makes one doubt, and hands it on.

    Args:
        store: where the earlier measurements are.
        hear: takes the events of a session.
    """

    def marked(event: Event) -> None:
        match event:
            case Answered(Measurement() as now):
                hear(Answered(with_history(now, store.trusted_before(now.device_uuid, now.probe, EARLIER))))
            case _:
                hear(event)

    return marked
