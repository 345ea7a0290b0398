"""Which dense rate a chip really offers for a dtype in a runtime, with the documented fallback when it has no units for it."""

from dataclasses import dataclass
from math import log

from core.device import Accelerator
from core.quantity import Z_80

TF32_BY_DEFAULT = ("jax", "tf-graph", "tf-xla", "keras-jax", "keras-tensorflow")
"""Runtimes whose fp32 matmuls use TF32 units unless told otherwise; PyTorch's do not.

Source: jax.lax.Precision documentation; tf.config.experimental.enable_tensor_float_32_execution; torch.backends.cuda.matmul.
"""

NEVER_EMULATED = ("fp64", "fp8", "int8", "int4", "fp4", "int32")
"""Dtypes that are refused, not emulated, where a chip has no units for them."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A dense rate.

    Args:
        flop_per_s: of one chip.
        note: which units it stands for, in one phrase.
        sigma: further uncertainty that the fallback brings.
    """

    flop_per_s: float
    note: str
    sigma: float = 0.0


def rate_of(chip: Accelerator, dtype: str, runtime: str) -> Rate | None:
    """Return the rate for a dtype, or None when the chip has neither units nor a documented fallback for it."""
    peak = chip.peak(dtype)
    if dtype in ("fp32", "tf32"):
        return _single_precision(chip, dtype, runtime)
    if peak is not None:
        return Rate(peak, f"{dtype} peak of {chip.key}")
    if dtype == "bf16":
        return _instead(chip, dtype, "fp16") or _instead(chip, dtype, "fp32")
    if dtype == "fp16":
        return _instead(chip, dtype, "bf16") or _instead(chip, dtype, "fp32")
    return None


def _instead(chip: Accelerator, dtype: str, other: str) -> Rate | None:
    peak = chip.peak(other)
    return None if peak is None else Rate(peak, f"{chip.key} has no {dtype} units: its {other} rate stands in")


def _single_precision(chip: Accelerator, dtype: str, runtime: str) -> Rate | None:
    tensor = chip.peak("tf32")
    if tensor is not None and (dtype == "tf32" or runtime in TF32_BY_DEFAULT):
        return Rate(tensor, f"tf32 peak of {chip.key}, which {runtime} uses for fp32 matmuls by default")
    peak = chip.peak("fp32")
    if peak is not None:
        return Rate(peak, f"fp32 peak of {chip.key}")
    half = chip.peak("bf16")
    if half is None:
        return None
    note = f"{chip.key} has no fp32 matrix units: 3 to 6 bf16 passes stand in"
    return Rate(half / (3 * 6) ** 0.5, note, log(6 / 3) / (2 * Z_80))
