"""The dense peak of a device, for the gates: no measurement may beat it."""

from pathlib import Path

from catalog import accelerator
from core.device import Device
from core.errors import NotFound
from probes.claims import share_of_chip

_LANES = {"avx512f": 16, "avx2": 8, "sse2": 4}
_TURBO = 1.6
"""Largest ratio of boost to the clock that a virtual machine reports, for the bound only."""


def peak_flop_per_s(device: Device, dtype: str, cpu_information: Path = Path("/proc/cpuinfo")) -> float | None:
    """Return the dense peak in FLOP/s of the device as counted, or None when it is not known.

    For a CPU it is an upper bound: cores x lanes x 2 (multiply and add) x ports x the highest clock that is told, or the reported
    clock times 1.6 where no highest clock is told.

    Args:
        device: attached.
        dtype: `fp32` or `bf16`.
        cpu_information: file to read flags and clocks from.
    """
    if device.accelerator:
        try:
            peak = accelerator(device.accelerator).peak(dtype)
        except NotFound:
            return None
        return peak * share_of_chip(device) if peak else None
    if device.kind != "cpu" or device.cores is None or not cpu_information.exists():
        return None
    facts: dict[str, str] = {}
    for line in cpu_information.read_text(encoding="utf-8").split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        facts[key.strip()] = value.strip()
    flags = facts.get("flags", "").split()
    lanes = next((count for flag, count in _LANES.items() if flag in flags), None)
    clock_hz = _highest_clock(facts)
    if lanes is None or clock_hz is None:
        return None
    per_cycle = lanes * 2 * 2 * (1 if "fma" in flags else 0.5)
    wider = 16.0 if "amx_bf16" in flags else 2.0 if "avx512_bf16" in flags else 1.0
    return device.cores * per_cycle * clock_hz * (wider if dtype == "bf16" else 1.0)


def peak_bytes_per_s(device: Device) -> float | None:
    """Return the data sheet's memory rate of the device as counted, or None: that of a CPU depends on how it was fitted."""
    if not device.accelerator:
        return None
    try:
        rate = accelerator(device.accelerator).memory_bytes_per_s
    except NotFound:
        return None
    return rate * share_of_chip(device) if rate else None


def _highest_clock(facts: dict[str, str]) -> float | None:
    told = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    if told.exists():
        return float(told.read_text(encoding="ascii")) * 1e3
    reported = facts.get("cpu MHz")
    return float(reported) * 1e6 * _TURBO if reported else None
