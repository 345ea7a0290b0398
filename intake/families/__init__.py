"""Model families: one file each turns a configuration into the blocks of a model.

A file offers `FAMILY`. Files are found by scanning; one that lacks it stops the start with its name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from core.workload import Block
from intake.sizes import Sizes, SizeSpec


@dataclass(frozen=True, slots=True)
class Shape:
    """What is asked of a model besides its own sizes.

    Args:
        batch: samples in one step.
        dtype: compute dtype.
        length: positions of a sequence; None when the family has none, or when it generates.
        image: pixels of each side; None when the family has none.
        prompt, output: tokens given and tokens generated; both None unless it generates.
    """

    batch: int
    dtype: str
    length: int | None = None
    image: int | None = None
    prompt: int | None = None
    output: int | None = None

    @property
    def positions(self) -> int:
        """Positions of a sequence; raises ValueError when there are none."""
        if self.length is None:
            raise ValueError("got no length; expected one for this family")
        return self.length

    @property
    def pixels(self) -> int:
        """Pixels of each side; raises ValueError when there are none."""
        if self.image is None:
            raise ValueError("got no image; expected one for this family")
        return self.image


@dataclass(frozen=True, slots=True)
class Family:
    """One model family.

    Args:
        title: how it is written for people.
        unit: what throughput counts, `tokens` or `samples`.
        needs: which size of the input a document gives: `length`, `image`, or empty.
        specs: keys of its configuration.
        build: makes the blocks.
        generates: whether it can be asked for `output` tokens after a `prompt`.
        scales: whether heads and MLP follow when a preset's width is changed alone.
    """

    title: str
    unit: str
    needs: str
    specs: tuple[SizeSpec, ...]
    build: Callable[[Sizes, Shape], tuple[Block, ...]]
    generates: bool = False
    scales: bool = False


@cache
def families() -> Mapping[str, Family]:
    """Return every family by name.

    Raises:
        ImportError: a file lacks `FAMILY`; the message names it.
    """
    found: dict[str, Family] = {}
    for entry in iter_modules(__path__):
        module = import_module(f"{__name__}.{entry.name}")
        if not hasattr(module, "FAMILY"):
            raise ImportError(f"got family file {entry.name} without FAMILY; expected a Family")
        found[entry.name] = module.FAMILY
    return found


def sharing_weights(block: Block) -> Block:
    """Return the block as one that runs again with weights that another block of the workload has counted."""
    return replace(block, parameter_count=0)
