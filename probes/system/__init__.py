"""System probes: one file each, for what is no chain of copies inside one program: transfers, collectives, compiling, load.

A file offers:
    TITLE: what it measures, for people;
    RUNTIMES: ids of the runtimes that can be asked; one a framework where the answer is the framework's;
    seconds(sizes, tier): seconds of timed samples for one probe over all rounds;
    ROUNDS: rounds that these are taken in;
    setting(sizes) -> the `Setting` of the worker that it needs;
    quick(device, runtime) and full(device, runtime) -> sizes to sweep;
    flop(sizes) and traffic(sizes): work of one call, 0 where it is none;
    prepare(bench, sizes) -> a `Rig`, after the answer was checked against numpy.
"""

from functools import cache
from types import ModuleType

from core.probe import Probe
from probes.environment import Setting
from probes.scan import scan

NEEDED = ("TITLE", "RUNTIMES", "ROUNDS", "seconds", "setting", "quick", "full", "flop", "traffic", "prepare")
FRAMEWORK_RUNTIMES = ("jax", "torch-eager", "tf-graph")
"""The runtimes that answer for their frameworks where eager or compiled makes no difference, such as for a transfer."""
COMPILING_RUNTIMES = ("jax", "torch-compile", "tf-graph", "tf-xla")


@cache
def system_modules() -> dict[str, ModuleType]:
    """Return every system probe by name.

    Raises:
        ImportError: a file of the folder lacks part of the interface; the message names both.
    """
    return scan(__name__, __path__, NEEDED)


def setting_of(probe: Probe) -> Setting:
    """Return what the worker of a probe must be started with; the plain setting for every other family."""
    if probe.family != "system":
        return Setting()
    return system_modules()[probe.subject].setting(dict(probe.sizes))
