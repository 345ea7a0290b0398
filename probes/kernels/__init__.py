"""Kernels: one file each, the plain operations that a device's own roof is drawn from.

Same interface as a block (`probes.blocks`), and besides:
    DEPTHS: depths of the programs whose difference is taken;
    quick(device_memory) and full(device_memory) -> sizes to sweep;
    flop(sizes) and traffic(sizes, element_bytes): work of one copy.
"""

from functools import cache
from types import ModuleType

from probes.scan import scan

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
    return scan(__name__, __path__, NEEDED)
