"""P15: the largest block of memory that can be had, by bisection under a cap that endangers nobody, and what a runtime holds.

On a CPU memory is everybody's: the cap is a quarter of what is free and half of what this worker may use, so the answer there is
mostly `at least the cap`. On an accelerator it is what the allocator says is free.
"""

import gc
import os
from collections.abc import Callable
from pathlib import Path

from core.device import Device
from core.errors import WorkerError
from probes.blocks import Sizes
from probes.case import Program
from probes.environment import Setting
from probes.rig import Rig, SystemBench, watch
from probes.system import FRAMEWORK_RUNTIMES

TITLE = "Memory capacity"
RUNTIMES = FRAMEWORK_RUNTIMES
ROUNDS = 3
FREE_SHARE, LIMIT_SHARE, DEVICE_SHARE = 0.25, 0.5, 0.98
QUICK_CAP_BYTES = 2**28
STEP_BYTES = 2**24
"""Bisection ends when it knows the answer to 16 MiB."""


def seconds(sizes: Sizes, tier: str) -> float:
    """Return the seconds of timed allocations over all rounds."""
    return {"quick": 0.3, "full": 3.0}[tier]


def setting(sizes: Sizes) -> Setting:
    """Any worker will do; one that has done little shows what a runtime holds at rest."""
    return Setting()


def quick(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return one bisection, on a CPU under a low cap."""
    return ({"cap_bytes": QUICK_CAP_BYTES if device.kind == "cpu" else device.memory_bytes},)


def full(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return one bisection under the safe cap alone."""
    return ({"cap_bytes": device.memory_bytes},)


def flop(sizes: Sizes) -> int:
    """Nothing is computed."""
    return 0


def traffic(sizes: Sizes) -> int:
    """What was written is counted by the worker, as `largest_bytes`."""
    return 0


def prepare(bench: SystemBench, sizes: Sizes) -> Rig:
    """Find the largest block, and return a stopwatch that takes, writes and frees it."""
    links = bench.links
    at_rest = resident_bytes()
    cap = min(sizes["cap_bytes"], safe_cap(links.free_bytes(), free_memory_bytes(), bench.memory_limit_bytes, at_rest))

    def fits(size: int) -> bool:
        try:
            links.drop(links.allocate(size))
        except links.out_of_memory:
            return False
        finally:
            gc.collect()
        return True

    largest = bisect(fits, cap, STEP_BYTES)
    if largest == 0:
        raise WorkerError(f"got no block of {STEP_BYTES} bytes; expected one under a cap of {cap}; free memory on this machine")
    counts = (("largest_bytes", float(largest)), ("cap_bytes", float(cap)), ("at_rest_bytes", float(at_rest or 0)))
    return Rig((watch(Program(lambda: links.drop(links.allocate(largest)), False)),), gc.collect, counts)


def bisect(fits: Callable[[int], bool], cap: int, step: int) -> int:
    """Return the largest multiple of `step` up to `cap` that fits, 0 when none does; asks for the cap first.

    Args:
        fits: monotonic.
        cap: never exceeded.
        step: what the answer is known to.
    """
    low, high = 0, cap // step
    if high and fits(high * step):
        return high * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle * step) else (low, middle)
    return low * step


def safe_cap(device_free: int | None, host_free: int | None, limit: int | None, at_rest: int | None) -> int:
    """Return the most that may be asked for.

    Args:
        device_free: what an accelerator has free; None on a CPU.
        host_free: what this machine has free; None when it does not say.
        limit: what the worker is killed at; None when nobody said.
        at_rest: what the worker holds already.
    """
    if device_free is not None:
        return int(device_free * DEVICE_SHARE)
    known = [int(host_free * FREE_SHARE)] if host_free is not None else [QUICK_CAP_BYTES]
    if limit is not None:
        known.append(max(0, int((limit - (at_rest or 0)) * LIMIT_SHARE)))
    return min(known)


def free_memory_bytes(facts: Path = Path("/proc/meminfo")) -> int | None:
    """Return what the kernel says is available, or None where it does not."""
    try:
        lines = facts.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return int(found) * 1024 if found else None


def resident_bytes(facts: Path = Path("/proc/self/statm")) -> int | None:
    """Return what this process holds now, or None where the system does not say."""
    try:
        return int(facts.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None
