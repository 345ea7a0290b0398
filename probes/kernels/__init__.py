"""Kernels: one file each, the plain operations that a device's own roof is drawn from.

Same interface as a block (`probes.blocks`), and besides:
    DEPTHS: depths of the programs whose difference is taken; one alone is timed as it is, launch and all;
    quick(device) and full(device) -> sizes to sweep, none where the tier leaves the kernel out;
    flop(sizes) and traffic(sizes, element_bytes): work of one copy. The traffic of a pass over memory is its working set:
    every array is read or written once;
    REUSES_RESULT, where it is True: the result lies where that of the last call lay, in runtimes that can say so (jax by
    donation, torch by `out=`), and forward finds the place as `inputs["into"]`. Memory is measured, as STREAM does, not the
    system's giving and clearing of pages for a new result. The other runtimes have no such call: theirs holds both.
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
