"""A case: one block or kernel with its sizes, depth and mode, and the weights and inputs that all runtimes share.

Everything random comes from one seed through numpy's PCG64, in a fixed order, so that every runtime computes the same thing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from probes.blocks import Sizes
from probes.subjects import Subject

LEARNING_RATE = 1e-6
"""Small enough that weights stay where they are over thousands of timed steps; the arithmetic is the same."""


@dataclass(frozen=True)
class Case:
    """What a program runs.

    Args:
        block: what is run.
        sizes: by name.
        depth: copies in a chain, each with its own weights.
        mode: `forward` or `train`.
        optimizer: one of `core.workload.OPTIMIZERS`.
        dtype: `fp32` or `bf16`.
        seed: of weights and inputs.
    """

    block: Subject
    sizes: Sizes
    depth: int
    mode: str
    optimizer: str
    dtype: str
    seed: int = 0

    @property
    def training(self) -> bool:
        """Whether a step has a backward pass and an update."""
        return self.mode == "train"

    @property
    def ends_in_loss(self) -> bool:
        """Whether the block brings its own loss in this mode."""
        return self.training and bool(self.block.ENDS_IN_LOSS)

    @property
    def reuses_result(self) -> bool:
        """Whether the result is to lie where that of the last call lay; it is like the input `x` then."""
        return bool(self.depth and getattr(self.block, "REUSES_RESULT", False))

    @property
    def needs_input_gradient(self) -> bool:
        """Whether the backward pass must reach the input, as it would inside a model."""
        return self.training and not self.block.first(self.sizes)


@dataclass(frozen=True)
class Materials:
    """Weights of each copy and the inputs, as numpy arrays in canonical layout."""

    weights: tuple[dict[str, dict[str, Any]], ...]
    inputs: dict[str, Any]


def materials(case: Case) -> Materials:
    """Draw the weights of every copy and the inputs of a case."""
    import numpy as np

    generator = np.random.Generator(np.random.PCG64(case.seed))
    inputs = {name: spec.values(generator) for name, spec in case.block.inputs(case.sizes).items()}
    weights = tuple(
        {name: layer.values(generator) for name, layer in case.block.layers(case.sizes).items()} for _ in range(case.depth)
    )
    return Materials(weights, inputs)


def cotangent(shape: tuple[int, ...], seed: int) -> Any:
    """Draw the gradient that arrives at the output, float32, small and never constant.

    Args:
        shape: canonical shape of the output.
        seed: of the case.
    """
    import numpy as np

    generator = np.random.Generator(np.random.PCG64(seed + 1))
    return generator.standard_normal(shape, dtype=np.float32) * np.float32(1e-2)


def direction(weights: dict[str, dict[str, Any]], seed: int) -> dict[str, dict[str, Any]]:
    """Draw one random direction in the space of weights, for directional derivatives."""
    import numpy as np

    generator = np.random.Generator(np.random.PCG64(seed + 2))
    return {
        name: {key: generator.standard_normal(array.shape, dtype=np.float32) for key, array in arrays.items()}
        for name, arrays in weights.items()
    }


@dataclass(frozen=True, slots=True)
class Facts:
    """What a compiled program holds, by its framework's own count.

    Args:
        flop: FLOPs of one call; None when they cannot be counted.
        constant_elements: of the largest constant array inside the program.
    """

    flop: float | None
    constant_elements: int = 0


@dataclass
class Program:
    """Something that can be timed.

    Args:
        run: one step; returns its own output, when that is there.
        compiles: whether the first call compiles.
        close: frees what it holds.
        arguments: what a call is given, arrays by name; None when the runtime does not hand it out.
        facts: what the compiled program holds, asked after the first call; None when it cannot be told.
    """

    run: Callable[[], object]
    compiles: bool
    close: Callable[[], None] = field(default=lambda: None)
    arguments: Callable[[], Mapping[str, Any]] | None = None
    facts: Callable[[], Facts] | None = None
