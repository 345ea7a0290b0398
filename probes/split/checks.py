"""What is compared of a split that ran, and how far apart it may be."""

from collections.abc import Sequence
from math import isfinite
from sys import float_info
from typing import Any

from core.errors import WorkerError
from core.split import Check
from probes.split.words import SplitTask

TOLERANCES = {"fp32": 1e-3, "bf16": 5e-2}
ADAPTIVE = ("adam", "adamw")
ADAPTIVE_TOLERANCE = 0.1
"""Of the change of weights: an adaptive optimizer divides by the size of each gradient, so that one near zero moves its weight by
as much as any other, in the direction that rounding gives it."""


def gradient_tolerance(task: SplitTask, sixteen_bit: bool) -> float:
    """Return how far gradients may be apart, as a share of their norm."""
    return max(TOLERANCES[task.dtype], 1e-2 if sixteen_bit else 0.0)


def change_tolerance(task: SplitTask, sixteen_bit: bool) -> float:
    """Return how far the change of the weights may be apart, as a share of its norm."""
    loosest = ADAPTIVE_TOLERANCE if task.optimizer in ADAPTIVE else 0.0
    return max(2 * gradient_tolerance(task, sixteen_bit), loosest)


def apart(got: Any, expected: Any) -> float:
    """Return the norm of a difference over that of what is expected; the largest number there is where it is no number."""
    import numpy as np

    scale = float(np.linalg.norm(expected.astype(np.float64)))
    distance = float(np.linalg.norm(got.astype(np.float64) - expected.astype(np.float64)))
    if not isfinite(distance) or not isfinite(scale):
        return float_info.max
    return distance / scale if scale > 0 else (0.0 if distance == 0 else float_info.max)


def loss_falls(losses: Sequence[float]) -> Check:
    """Return the check that a loss at the end is below that at the beginning, relative to it; every step has the same batch."""
    first, last = losses[0], losses[-1]
    return Check("change of the loss from the first step to the last", (last - first) / max(abs(first), 1e-12), -1e-7)


def finite(loss: float) -> float:
    """Return a loss; raises WorkerError when it is no number."""
    if not isfinite(loss):
        raise WorkerError(f"got a loss of {loss}; expected a number; take a smaller model or another optimizer")
    return loss
