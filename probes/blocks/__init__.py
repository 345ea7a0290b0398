"""Blocks: one file a kind, written once over a backend's operations.

A block module offers:
    layers(sizes) -> {name: Layer}; inputs(sizes) -> {name: Input}, the one to chain on is called `x`;
    forward(ops, layers, inputs, sizes) -> output, or the loss when `ENDS_IN_LOSS` and `ops.training`;
    output(sizes) -> canonical shape of the output when not training;
    small(sizes) -> sizes of the same kind that a float64 reference computes at once;
    ENDS_IN_LOSS: bool; first(sizes): whether it is the first of a model, so that its input needs no gradient;
    chains(sizes): whether its output can be the `x` of another copy.
A module that lacks one of these stops the start with its name.

A block that stands at both ends of a model also offers begin(ops, layers, inputs, sizes) and
finish(ops, layers, x, inputs, sizes); its `output` is the shape between them. A block whose input is joined to a later one
offers keeps_input(sizes); the later one takes it as `skip`.
"""

from functools import cache
from types import ModuleType
from typing import Any

from probes.scan import scan

Sizes = dict[str, Any]
NEEDED = ("layers", "inputs", "forward", "output", "small", "chains", "ENDS_IN_LOSS", "first")


@cache
def block_modules() -> dict[str, ModuleType]:
    """Return every block module by kind.

    Raises:
        ImportError: a file of the folder lacks part of the interface; the message names both.
    """
    return scan(__name__, __path__, NEEDED)
