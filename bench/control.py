"""A control kernel: the same arithmetic before and after everything that is compared, so that a machine that drifts shows it."""

import time

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
