"""Agreement: before anything is timed, a runtime gives the same answer as the float64 reference on small sizes."""

from dataclasses import dataclass
from typing import Any

from core.errors import WorkerError
from probes.case import Case

TOLERANCE = {"fp32": 2e-4, "bf16": 5e-2}
"""Largest error of the output, relative to its largest element. float32 keeps 24 bits, bfloat16 eight."""
GRADIENT_TOLERANCE = {"fp32": 5e-3, "bf16": 2e-1}
"""Largest relative error of the directional derivative, which sums over all weights."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Largest relative error of the output, and relative error of the directional derivative (None in forward mode)."""

    output_error: float
    gradient_error: float | None


def agrees(found: Agreement, dtype: str) -> bool:
    """Whether errors are within what the dtype allows."""
    gradient = found.gradient_error or 0.0
    return 0 <= found.output_error <= TOLERANCE[dtype] and 0 <= gradient <= GRADIENT_TOLERANCE[dtype]


def worst(found: list[Agreement]) -> Agreement:
    """Return the largest errors of several comparisons, at least one."""
    gradients = [one.gradient_error for one in found if one.gradient_error is not None]
    return Agreement(max(one.output_error for one in found), max(gradients, default=None))


def check(backend: Any, case: Case) -> Agreement:
    """Compare a runtime with the reference.

    Raises:
        WorkerError: they differ by more than the tolerance of the dtype, or the answer has another shape.
    """
    import numpy as np

    from probes.backends import reference

    expected, slope = reference.answer(case)
    got, own_slope = backend.answer(case)
    if got.shape != expected.shape:
        raise WorkerError(f"got output of shape {got.shape}; expected {expected.shape}; the backend lays it out differently")
    scale = float(np.abs(expected).max()) or 1.0
    error = float(np.abs(got.astype(np.float64) - expected).max()) / scale
    if not error <= TOLERANCE[case.dtype]:
        raise WorkerError(
            f"got an output that is off by {error:.1e}; expected at most {TOLERANCE[case.dtype]:.0e}; "
            "the runtime computes something else"
        )
    if slope is None or own_slope is None:
        return Agreement(error, None)
    gradient_error = abs(own_slope - slope) / max(abs(slope), 1e-3)
    if not gradient_error <= GRADIENT_TOLERANCE[case.dtype]:
        raise WorkerError(
            f"got gradients that are off by {gradient_error:.1e}; expected at most {GRADIENT_TOLERANCE[case.dtype]:.0e}; "
            "the runtime computes something else"
        )
    return Agreement(error, gradient_error)
