"""What is attached, found without initialising a framework: the one entry to the finders of `probes.devices`.

`survey` tells all that is there, what cannot be used among it with the reason; `devices` leaves that out, for those who measure
and compare.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from core.device import Device
from core.hardware import Fault
from probes.devices.amd import amd_gpus, load_amdsmi
from probes.devices.cpu import cpu
from probes.devices.nvidia import by_nvml, without_driver
from probes.devices.nvidia_smi import by_tool, parse_nvidia
from probes.devices.tpu import tpus

__all__ = ("cpu", "devices", "nvidia_gpus", "parse_nvidia", "survey", "tpus")
_HERE = Path("/")


def devices(root: Path = _HERE) -> tuple[Device, ...]:
    """Return the attached devices that work: CPUs first, then GPUs, then TPUs.

    Args:
        root: where `/proc` and `/sys` are looked for; tests give a folder of recorded files.
    """
    return tuple(device for device in survey(root) if device.fault is None)


def survey(root: Path = _HERE, environ: Mapping[str, str] | None = None) -> tuple[Device, ...]:
    """Return everything attached, what nothing can use included; ids are counted over all of it.

    Args:
        root: as in `devices`; libraries and tools of vendors are asked of the real machine only.
        environ: variables as in `os.environ`, which is the default.
    """
    real = root == _HERE
    nvidia = nvidia_gpus(root) if real else without_driver(root, Fault("no driver was asked", "run it on the machine itself"))
    amd = amd_gpus(root, load_amdsmi if real else None)
    gpus = (*nvidia, *(replace(one, id=f"gpu:{len(nvidia) + index}") for index, one in enumerate(amd)))
    return (cpu(root), *gpus, *tpus(root, os.environ if environ is None else environ))


def nvidia_gpus(
    root: Path = _HERE,
    library: Callable[[Path], tuple[Device, ...] | Fault] = by_nvml,
    tool: Callable[[Path], tuple[Device, ...] | Fault | None] = by_tool,
) -> tuple[Device, ...]:
    """Return NVIDIA GPUs by NVML, else by the driver's tool, else by the PCI bus with the reason why neither answers."""
    told = library(root)
    if isinstance(told, tuple):
        return told
    said = tool(root)
    if isinstance(said, tuple):
        return said
    return without_driver(root, said or told)
