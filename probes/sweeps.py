"""Which sizes a kernel is swept over on a device: working sets around its caches, and products that its kind can afford.

One place, so that every kernel of the memory curve stands at the same working sets and their points can be compared.
"""

from core.device import Device
from probes.blocks import Sizes

SMALLEST_WORKING_SET = 2**16
LARGEST_WORKING_SET = 2**32
MEMORY_SHARE = 0.25
"""Share of memory that one working set may fill."""
BEYOND_CACHE = 4
"""A working set this many times the last-level cache measures memory (STREAM's own rule)."""
ASSUMED_CACHE = 2**25
"""Where the last-level cache of a CPU is not told."""
ACCELERATOR_WORKING_SET = 2**31
"""Where a pass takes long against its launch at some TB/s, and far beyond any on-chip cache."""
MOST_FLOP_A_CORE = {"fp32": 2.5e11, "bf16": 1e10}
"""Of the deepest call on a CPU: some ten seconds in float32; bfloat16 is emulated by many runtimes there."""
LINE = 1024
"""Vectors are a multiple of this many bytes."""


def working_sets(device: Device, every: int = 1) -> tuple[int, ...]:
    """Return working sets in bytes, 64 KiB to 4 GiB or a quarter of memory, by factors of four.

    Args:
        device: attached.
        every: 2 for every second one.
    """
    most = min(LARGEST_WORKING_SET, MEMORY_SHARE * device.memory_bytes)
    steps = [SMALLEST_WORKING_SET * 4**i for i in range(16)]
    return tuple(step for step in steps if step <= most)[::every]


def beyond_caches(device: Device) -> int:
    """Return a working set in bytes that no cache of the device holds, as far as memory allows."""
    wanted = ACCELERATOR_WORKING_SET if device.kind != "cpu" else BEYOND_CACHE * (device.cache_bytes or ASSUMED_CACHE)
    return int(min(wanted, MEMORY_SHARE * device.memory_bytes))


def vectors(sets: tuple[int, ...], arrays: int) -> tuple[Sizes, ...]:
    """Return the `bytes` of one float32 vector for working sets that `arrays` equal vectors fill, rounded up to whole lines."""
    return tuple({"bytes": -(-size // arrays // LINE) * LINE} for size in sets)


def affordable(device: Device, deepest_flop: float, dtype: str) -> bool:
    """Return whether a call of so many FLOPs is short enough on a device of this kind."""
    return device.kind != "cpu" or deepest_flop <= MOST_FLOP_A_CORE.get(dtype, 0.0) * (device.cores or 1)
