"""How many copies of a subject the programs of a probe hold: the difference of two depths is one copy."""

from types import ModuleType
from typing import Any

from core.probe import Probe
from probes.subjects import Subject

CHAIN_DEPTHS = (1, 3)
SINGLE_DEPTHS = (0, 1)
BYTES_PER_WEIGHT = 16
"""Weight, gradient and two optimizer states in float32."""
MOST_WEIGHT_BYTES = 3 * 2**30
"""Above this a chain is not built; one copy is held against the bare frame instead."""


def chain_fits(parameter_count: int) -> bool:
    """Return whether the copies of a chain are small enough to be held at once."""
    return parameter_count * BYTES_PER_WEIGHT * sum(CHAIN_DEPTHS) < MOST_WEIGHT_BYTES


def depths_of(subject: Subject, sizes: dict[str, Any], probe: Probe) -> tuple[int, ...]:
    """Return the depths whose difference is one copy of the subject.

    Args:
        subject: of the probe.
        sizes: by name.
        probe: what is asked.
    """
    if isinstance(subject, ModuleType) and probe.family == "kernel":
        return tuple(subject.DEPTHS)
    weights = sum(layer.parameter_count for layer in subject.layers(sizes).values())
    return CHAIN_DEPTHS if subject.chains(sizes) and chain_fits(weights) else SINGLE_DEPTHS
