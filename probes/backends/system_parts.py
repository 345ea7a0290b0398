"""Pieces that every framework's system primitives are made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from probes.rig import nothing

WIDTH, ROWS = 64, 32


@dataclass
class Lane:
    """Work that can be started without waiting.

    Args:
        start: begins it and returns what `wait` takes.
        wait: returns when the output is there.
        before: done before each call, not timed.
        begin: told the number of calls before they start.
        close: frees what it holds.
    """

    start: Callable[[], Any]
    wait: Callable[[Any], object]
    before: Callable[[], object] = nothing
    begin: Callable[[int], object] | None = None
    close: Callable[[], object] = nothing

    def run(self) -> None:
        """Do it and wait."""
        self.wait(self.start())


@dataclass
class Layers:
    """A network whose every call compiles.

    Args:
        before: makes the next call one that compiles; not timed.
        run: that call.
        compilations: how many programs were compiled so far.
        close: sets the framework back to how it was.
    """

    before: Callable[[], object]
    run: Callable[[], Any]
    compilations: Callable[[], int]
    close: Callable[[], object] = nothing


def drawn_layers(count: int, seed: int) -> tuple[list[Any], Any, Any]:
    """Draw the weights of dense tanh layers and an input, and return them with numpy's answer."""
    import numpy as np

    generator = np.random.Generator(np.random.PCG64(seed))
    weights = [generator.standard_normal((WIDTH, WIDTH), dtype=np.float32) / np.float32(WIDTH**0.5) for _ in range(count)]
    x = generator.standard_normal((ROWS, WIDTH), dtype=np.float32)
    expected = x.astype(np.float64)
    for w in weights:
        expected = np.tanh(expected @ w)
    return weights, x, expected.astype(np.float32)
