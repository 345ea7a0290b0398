"""Measures: devices, runtimes, blocks and kernels; every probe ends in a Measurement or a ProbeFailure.

Importing this room imports no framework; they live in worker processes only.
"""

from probes.inventory import devices
from probes.kernels import kernel_modules
from probes.launcher import Limits
from probes.peaks import peak_flop_per_s
from probes.plan import Planned, block_probes, kernel_probes
from probes.runtimes import Usability, installed_runtimes, usable_by
from probes.session import Answered, Event, Stage, Started, Waiting, now, run_probes

__all__ = [
    "Answered",
    "Event",
    "Limits",
    "Planned",
    "Stage",
    "Started",
    "Usability",
    "Waiting",
    "block_probes",
    "devices",
    "installed_runtimes",
    "kernel_names",
    "kernel_probes",
    "now",
    "peak_flop_per_s",
    "run_probes",
    "usable_by",
]


def kernel_names() -> tuple[str, ...]:
    """Return the names of all kernels."""
    return tuple(kernel_modules())
