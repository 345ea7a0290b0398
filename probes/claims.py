"""Claims: a fraction of a peak names the right denominator, dense and of the device as counted.

Two mistakes look like a better or a worse chip: the peak with structured sparsity, which data sheets print first and which is
twice the dense one, and the peak of a whole chip for a device that is one of its two cores.
"""

from collections.abc import Iterable

from catalog import accelerator
from core.device import Accelerator, Device
from core.errors import NotFound

DEVICES_PER_CHIP = {"tpu-v2": 2, "tpu-v3": 2, "tpu-v7": 2, "mi250x": 2}
"""Chips whose frameworks see each of two cores (or dies) as a device of its own.

Source: JAX `device.core_on_chip` of TPU v2, v3 and TPU7x; AMD CDNA2 white paper: each die of an MI250X is a device."""
EXACT = 0.02
WHOLE = 0.75
"""Share of the chip's memory from which on a device is taken for the whole chip."""

SPARSE_TFLOP_PER_S = {
    "a100-40": {"tf32": 312.0, "bf16": 624.0, "fp16": 624.0, "int8": 1248.0, "int4": 2496.0},
    "a100-80": {"tf32": 312.0, "bf16": 624.0, "fp16": 624.0, "int8": 1248.0, "int4": 2496.0},
    "l4": {"tf32": 120.0, "bf16": 242.0, "fp16": 242.0, "fp8": 485.0, "int8": 485.0},
    "l40s": {"tf32": 366.0, "bf16": 733.0, "fp16": 733.0, "fp8": 1466.0, "int8": 1466.0},
    "h100-pcie": {"tf32": 756.0, "bf16": 1513.0, "fp16": 1513.0, "fp8": 3026.0, "int8": 3026.0},
    "h100-sxm": {"tf32": 989.0, "bf16": 1979.0, "fp16": 1979.0, "fp8": 3958.0, "int8": 3958.0},
    "h200": {"tf32": 989.0, "bf16": 1979.0, "fp16": 1979.0, "fp8": 3958.0, "int8": 3958.0},
    "mi300x": {"tf32": 1307.4, "bf16": 2614.9, "fp16": 2614.9, "fp8": 5229.8, "int8": 5229.8},
}
"""What data sheets print with sparsity, so that no row of the catalog can hold it unseen.

Source: data sheets of NVIDIA A100, L4, L40S, H100 and H200 ("with sparsity") and AMD Instinct MI300X ("structured sparsity")."""


def share_of_chip(device: Device) -> float:
    """Return which part of its chip a device is: one of two cores where a framework sees those, else all of it."""
    if device.accelerator is None or device.accelerator not in DEVICES_PER_CHIP:
        return 1.0
    chip = accelerator(device.accelerator)
    return 1.0 if device.memory_bytes >= WHOLE * chip.memory_bytes else 1 / DEVICES_PER_CHIP[chip.key]


def claim_doubt(claimed_flop_per_s: float, device: Device, dtype: str) -> str:
    """Say when the peak that a fraction is taken of is not the dense one of the device as counted.

    Args:
        claimed_flop_per_s: the denominator.
        device: with its catalog key.
        dtype: of the work.
    """
    try:
        chip = accelerator(device.accelerator) if device.accelerator else None
    except NotFound:
        chip = None
    dense = chip.peak(dtype) if chip else None
    if chip is None or dense is None:
        return ""
    own = dense * share_of_chip(device)
    if abs(claimed_flop_per_s / own - 1) <= EXACT:
        return ""
    said = f"{claimed_flop_per_s / 1e12:.4g} TFLOP/s is not the dense {dtype} peak of this device, {own / 1e12:.4g}"
    if abs(claimed_flop_per_s / dense - 1) <= EXACT:
        return f"quarantined: per chip: {said}; the device is one of {DEVICES_PER_CHIP[chip.key]} of its chip"
    if abs(claimed_flop_per_s / (2 * dense) - 1) <= EXACT:
        return f"quarantined: sparse: {said}; twice the dense peak is that with structured sparsity"
    return f"quarantined: peak: {said}"


def sparse_rows(chips: Iterable[Accelerator]) -> tuple[str, ...]:
    """Return what of a catalog is a peak with sparsity: one phrase for each chip and dtype.

    A figure is held against the data sheets' own sparse ones, and against the narrower and the wider type of the same chip: units
    double their rate when the type is half as wide, so four times between neighbours is a sparse one beside a dense one.
    """
    said: list[str] = []
    for chip in chips:
        for dtype, tera in SPARSE_TFLOP_PER_S.get(chip.key, {}).items():
            found = chip.peak(dtype)
            if found is not None and abs(found / (tera * 1e12) - 1) < EXACT:
                said.append(f"{chip.key} {dtype}: {tera:g} TFLOP/s is the figure with sparsity")
        if chip.vendor != "NVIDIA":
            continue
        for wide, narrow in (("tf32", "bf16"), ("bf16", "fp8")):
            high, low = chip.peak(narrow), chip.peak(wide)
            if high and low and abs(high / low / 4 - 1) < EXACT:
                said.append(f"{chip.key} {narrow}: {high / low:.1f} times {wide}, of which a sparse figure is one")
    return tuple(said)
