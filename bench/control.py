"""Is the machine steady and ours? A control kernel around everything that is compared, and the share of it that others used."""

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.statistics import median

SIDE = 1024
REPEATS = 15


def control_s() -> float:
    """Return the median seconds of a float32 product of two 1024 x 1024 matrices, after one that warms up."""
    random = np.random.default_rng(0)
    left, right = (random.standard_normal((SIDE, SIDE), dtype=np.float32) for _ in range(2))
    left @ right
    taken: list[float] = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        left @ right
        taken.append(time.perf_counter() - start)
    return median(taken)


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds until now: of the whole machine, and of this process with the children that it has waited for."""

    at_s: float
    machine_s: float
    own_s: float


def usage() -> Usage:
    """Return the processor seconds used so far; time that the hypervisor took away counts as used by others.

    Source: proc(5), /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
    """
    fields = [int(text) for text in Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=9)[1:9]]
    busy = sum(fields) - fields[3] - fields[4]
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Usage(time.monotonic(), busy / os.sysconf("SC_CLK_TCK"), sum(one.ru_utime + one.ru_stime for one in own))


def share_of_others(before: Usage, after: Usage) -> float:
    """Return the fraction of all cores that anything else used between two moments."""
    others = (after.machine_s - before.machine_s) - (after.own_s - before.own_s)
    return max(0.0, others / ((after.at_s - before.at_s) * (os.cpu_count() or 1)))
