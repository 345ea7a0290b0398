"""What is attached here, which runtime could use it, and, when a person asks, what each framework says itself."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from core.device import Device
from core.probe import Runtime
from probes.inventory import survey
from probes.usability import usable_by
from probes.views import View, ask_runtimes
from services.context import context
from services.runtimes import known_runtimes

KINDS = ("cpu", "gpu", "tpu")


@dataclass(frozen=True, slots=True)
class DevicesReport:
    """Devices, runtimes, and for each pair: (device id, runtime id, whether they go together, why not, what to do).

    `views` is what the frameworks said themselves; empty when they were not asked.
    """

    devices: tuple[Device, ...]
    runtimes: tuple[Runtime, ...]
    usable: tuple[tuple[str, str, bool, str, str], ...]
    views: tuple[View, ...] = ()


def report() -> DevicesReport:
    """Look at this machine; starts no framework."""
    attached = survey()
    return _judged(attached, known_runtimes(context().settings, attached), ())


def asked(report: DevicesReport, on_view: Callable[[View], None] = lambda _view: None) -> DevicesReport:
    """Ask every installed framework what it sees of the kinds of device that are attached; takes seconds for each.

    Args:
        report: what was found without asking.
        on_view: hears of each answer, in another thread.
    """
    kinds = tuple(kind for kind in KINDS if any(device.kind == kind for device in report.devices))
    vendor = next((one.board.vendor for one in report.devices if one.kind == "gpu" and one.board), "")
    views = ask_runtimes(report.runtimes, kinds, os.environ, context().settings.home, on_view=on_view, vendor=vendor)
    return _judged(report.devices, report.runtimes, views)


def questions(report: DevicesReport) -> int:
    """Return how many answers `asked` will bring."""
    kinds = {device.kind for device in report.devices} & set(KINDS)
    return len(kinds) * sum(runtime.installed for runtime in report.runtimes)


def _judged(attached: tuple[Device, ...], runtimes: tuple[Runtime, ...], views: tuple[View, ...]) -> DevicesReport:
    pairs = usable_by(attached, runtimes, views)
    return DevicesReport(attached, runtimes, tuple((p.device, p.runtime, p.ok, p.reason, p.remedy) for p in pairs), views)
