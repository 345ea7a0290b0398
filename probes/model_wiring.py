"""The forward pass of a part, once for every framework: pieces in order, over a backend's operations and bound layers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from probes.blocks import Sizes
from probes.model import Part, Piece, slots_of


@dataclass(frozen=True, slots=True)
class _Step:
    """A piece with all that is looked up about it, so that no compiler has to trace the looking up.

    Args:
        run: the block's function for its role.
        layers: (name in its block, name in the model) of its layers.
        inputs: the same of what it takes from the data.
        vector: whether what it gives is one vector that goes before others, where it is joined.
    """

    sizes: Sizes
    role: str
    source: str
    run: Callable[..., Any]
    layers: tuple[tuple[str, str], ...]
    inputs: tuple[tuple[str, str], ...]
    keeps_input: bool
    takes_skip: bool
    vector: bool


class Wiring:
    """How the pieces of a part feed each other.

    Args:
        part: to be run.
    """

    def __init__(self, part: Part) -> None:
        self.part = part
        self.slots = slots_of(part.pieces)
        self.steps = tuple(_step(piece) for piece in part.pieces)
        self.images = frozenset(p.key(n) for p in part.pieces for n, spec in p.data.items() if spec.kind == "image")
        self.tokens = frozenset(p.key(n) for p in part.pieces for n, spec in p.data.items() if spec.kind == "token")
        wanted = {piece.key(name) for piece in part.pieces for name in piece.data}
        self.wanted = frozenset(wanted if part.starts else {*wanted, "x"})

    def forward(self, ops: Any, layers: Any, inputs: Any) -> Any:
        """Return the loss of a part that ends (its logits when `ops` is not training), else its activations.

        Args:
            ops: of a backend.
            layers: bound, by name in the model.
            inputs: by name in the model, in the backend's own layout.
        """
        x: Any = inputs["x"] if "x" in self.wanted else None
        kept: list[Any] = []
        for step in self.steps:
            own = {name: layers[key] for name, key in step.layers}
            given = {name: inputs[key] for name, key in step.inputs}
            if step.keeps_input:
                kept.append(x)
            if step.takes_skip:
                given["skip"] = kept.pop()
            if step.source == "beside":
                y = step.run(ops, own, given, step.sizes)
                x = ops.join_vector(y, x) if step.vector else ops.join_vector(x, y)
            elif step.role == "finish":
                x = step.run(ops, own, x, given, step.sizes)
            else:
                x = step.run(ops, own, {**given, "x": x}, step.sizes)
        return x


def _step(piece: Piece) -> _Step:
    run: Callable[..., Any] = getattr(piece.module, piece.role or "forward")
    return _Step(
        sizes=dict(piece.sizes),
        role=piece.role,
        source=piece.source,
        run=run,
        layers=tuple((name, f"{piece.place}_{name}") for name in piece.layers),
        inputs=tuple((name, piece.key(name)) for name in piece.data),
        keeps_input=piece.keeps_input,
        takes_skip=piece.takes_skip,
        vector=len(piece.output) == 2,
    )
