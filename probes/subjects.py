"""What a probe names: the module of a block or a kernel, or a reduced model. All have the same interface."""

from types import ModuleType
from typing import TypeAlias

from core.probe import Probe
from probes.blocks import block_modules
from probes.kernels import kernel_modules
from probes.reduced import ReducedModel

Subject: TypeAlias = ModuleType | ReducedModel


def subject_of(probe: Probe) -> Subject:
    """Return what a probe measures; raises KeyError when no file of its folder has that name."""
    match probe.family:
        case "model":
            return ReducedModel(dict(probe.sizes))
        case "kernel":
            return kernel_modules()[probe.subject]
        case _:
            return block_modules()[probe.subject]
