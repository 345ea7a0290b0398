"""Precision: is the arithmetic what the name of the dtype says? `fp32` on a label may be tf32 or bfloat16 passes in the chip.

Two tests. Cancellation: (1 + 2^-k) - 1 through a matrix product survives only if an input keeps k bits, so three values of k
tell float32, split bfloat16, tf32 and bfloat16 apart exactly. Error: the rows of a timed product that are computed anew in
float64 have an error that is typical for how its inputs were rounded, so the timed program is held to the same name.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from core.errors import WorkerError
from probes.layers import Input, Layer

if TYPE_CHECKING:
    from numpy.random import Generator

SIDE = 256
"""Large enough that libraries take the path of large products."""
BITS = (9, 12, 18)
NAMES: dict[tuple[int, ...], str] = {(): "bf16", (9,): "tf32", (9, 12): "bf16_split", (9, 12, 18): "fp32"}
"""What survived, and the arithmetic that it stands for. float16 keeps what tf32 keeps."""
_LIMITS = ((4e-6, "fp32"), (6e-5, "bf16_split"), (1e-3, "tf32"), (3e-2, "bf16"))
"""Largest root mean square error, relative to the output, of one product of standard normal matrices.

Source: rounding an input to m bits after the point errs by 2^-(m+1) / sqrt(3) at most, and both inputs are rounded:
3e-4 for tf32 (m = 10), 2e-3 for bfloat16 (m = 7), about 1e-5 for split bfloat16, below 1e-6 for float32 sums."""


def precision_of(error: float) -> str:
    """Return the name of the arithmetic that a product with this error was computed in; `less` beyond bfloat16."""
    return next((name for limit, name in _LIMITS if error <= limit), "less")


def precision_doubt(error: float, dtype: str) -> list[str]:
    """Say when the error of a timed product is not that of its dtype.

    Args:
        error: root mean square, relative to the output, of one product.
        dtype: `fp32` or `bf16`.
    """
    found = precision_of(error)
    if found == dtype or (dtype == "bf16" and found == "tf32"):
        return []
    return [f"quarantined: precision: an error of {error:.0e} is that of {found}, not of {dtype}"]


@dataclass(frozen=True, slots=True)
class Cancelling(Input):
    """Rows of 1 + 2^-k and -1, which leave 2^-k against a matrix of ones; k goes through `BITS` row by row."""

    def values(self, generator: "Generator") -> Any:  # noqa: ARG002 - the interface of an input
        """Return the matrix; nothing of it is random, since its rounding is the test."""
        import numpy as np

        rows, columns = self.shape
        kept = np.array([BITS[row % len(BITS)] for row in range(rows)])
        result = np.zeros((rows, columns), np.float32)
        result[np.arange(rows), np.arange(rows) % columns] = 1 + 2.0**-kept
        result[np.arange(rows), (np.arange(rows) + 7) % columns] = -1
        return result


@dataclass(frozen=True, slots=True)
class Ones(Input):
    """A matrix of ones, which every format holds exactly."""

    def values(self, generator: "Generator") -> Any:  # noqa: ARG002 - the interface of an input
        """Return ones."""
        import numpy as np

        return np.ones(self.shape, np.float32)


def cancellation() -> ModuleType:
    """Return a kernel, in the form that every backend runs, whose output is what is left of 2^-k."""
    kernel = ModuleType("cancellation")

    def forward(ops: Any, layers: Any, inputs: Any, sizes: Any) -> Any:  # noqa: ARG001 - the interface of a kernel
        return ops.scaled_matmul(inputs["x"], inputs["w"], 1.0)

    def layers(sizes: Any) -> dict[str, Layer]:  # noqa: ARG001 - the interface of a kernel
        return {}

    def inputs(sizes: Any) -> dict[str, Input]:  # noqa: ARG001 - the interface of a kernel
        return {"x": Cancelling("float", (SIDE, SIDE)), "w": Ones("float", (SIDE, SIDE))}

    def first(sizes: Any) -> bool:  # noqa: ARG001 - the interface of a kernel
        return True

    kernel.__dict__.update({"forward": forward, "layers": layers, "inputs": inputs, "first": first, "ENDS_IN_LOSS": False})
    return kernel


def read_cancellation(output: Any) -> str:
    """Return the arithmetic that left this output of `cancellation`.

    Args:
        output: (SIDE, SIDE), float32.
    """
    import numpy as np

    left = np.asarray(output, np.float64)
    kept = tuple(k for place, k in enumerate(BITS) if abs(float(np.median(left[place :: len(BITS)])) * 2.0**k - 1) < 0.25)
    return NAMES.get(kept, "unknown")


def assert_precision(backend: Any, case: Any) -> None:
    """Ask a backend for the cancellation product.

    Args:
        backend: of the worker.
        case: of `cancellation()` in the dtype that is measured.

    Raises:
        WorkerError: the arithmetic is not that of the dtype.
    """
    output, _ = backend.answer(case)
    found = read_cancellation(output)
    if found != case.dtype:
        raise WorkerError(f"got {found} arithmetic; expected {case.dtype}; reset the framework's matrix precision to its highest")
