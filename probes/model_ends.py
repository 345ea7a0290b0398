"""Which layers each end of a block uses that stands at both ends of a model: told by running the end over nothing.

Blocks do not say it, and they need not: their ends are written over operations, and an operation that computes nothing is enough
to see which layers are asked for.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from core.workload import Size
from probes.blocks import block_modules


class _Nothing:
    """Operations of which each returns None, whatever it is given."""

    training = True

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_arguments, **_named: None


class _Watched(dict[str, None]):
    """Layers or inputs that remember which were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def __missing__(self, name: str) -> None:
        self.asked.add(name)


@cache
def layers_used(kind: str, sizes: tuple[tuple[str, Size], ...], role: str) -> frozenset[str]:
    """Return the names of the layers that one end of a block uses.

    Args:
        kind: of a block with both ends.
        sizes: by name.
        role: `begin` or `finish`.
    """
    layers, inputs = _Watched(), _Watched()
    module: Any = block_modules()[kind]
    if role == "begin":
        module.begin(_Nothing(), layers, inputs, dict(sizes))
    else:
        module.finish(_Nothing(), layers, None, inputs, dict(sizes))
    return frozenset(layers.asked)
