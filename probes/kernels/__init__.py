"""Kernels: one file each, the plain operations that a device's own roof is drawn from.

Same interface as a block (`probes.blocks`), and besides:
    DEPTHS: depths of the programs whose difference is taken;
    quick(device_memory) and full(device_memory) -> sizes to sweep;
    flop(sizes) and traffic(sizes, element_bytes): work of one copy.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

NEEDED = (
    "layers",
    "inputs",
    "forward",
    "small",
    "chains",
    "ENDS_IN_LOSS",
    "first",
    "DEPTHS",
    "MODE",
    "quick",
    "full",
    "flop",
    "traffic",
)


@cache
def kernel_modules() -> dict[str, ModuleType]:
    """Return every kernel module by name.

    Raises:
        ImportError: a file of the folder lacks part of the interface; the message names both.
    """
    found: dict[str, ModuleType] = {}
    for entry in iter_modules(__path__):
        module = import_module(f"{__name__}.{entry.name}")
        lacking = [name for name in NEEDED if not hasattr(module, name)]
        if lacking:
            raise ImportError(f"got kernel file {entry.name} without {', '.join(lacking)}; expected all of {', '.join(NEEDED)}")
        found[entry.name] = module
    return found
