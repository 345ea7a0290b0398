"""How the truth is timed: first call apart, warm-up to a steady state, then raw samples, each synchronised by the step itself."""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

WARM_STEPS = 3
WARM_S = 0.5
FEWEST_SAMPLES = 7
SAMPLES_S = 4.0
"""Samples are taken at least this long, so that a disturbance of a second or two does not move their median."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What one native did.

    Args:
        first_s: seconds of the first call, compilation included.
        warm_ns, samples_ns: nanoseconds of each step, in order.
        peak_rss_bytes: of the whole process.
    """

    first_s: float
    warm_ns: tuple[int, ...]
    samples_ns: tuple[int, ...]
    peak_rss_bytes: int


def measure(step: Callable[[], object]) -> Truth:
    """Time a step that returns only when its output is there.

    Args:
        step: one step of work, synchronised on its own output.

    Returns:
        The first call, at least 3 warm-up steps and 0.5 s of them, then 4 s of samples, at least 7.
    """
    first_ns = _timed(step)
    warm = _repeat(step, lambda count, ns: count >= WARM_STEPS and ns >= WARM_S * 1e9)
    samples = _repeat(step, lambda count, ns: count >= FEWEST_SAMPLES and ns >= SAMPLES_S * 1e9)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Truth(first_ns * 1e-9, warm, samples, peak)


def _timed(step: Callable[[], object]) -> int:
    start = time.perf_counter_ns()
    step()
    return time.perf_counter_ns() - start


def _repeat(step: Callable[[], object], enough: Callable[[int, int], bool]) -> tuple[int, ...]:
    taken: list[int] = []
    while not enough(len(taken), sum(taken)):
        taken.append(_timed(step))
    return tuple(taken)
