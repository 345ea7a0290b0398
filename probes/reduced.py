"""The reduced model as a subject to be measured: it has the interface of a block module, its parts wired as in the model.

It is an object and not a module, so that its parts are looked up once and no compiler has to trace the looking up.
"""

from dataclasses import dataclass
from math import prod
from types import ModuleType
from typing import Any

from core.reduced import parts_of
from core.workload import Block
from probes.blocks import Sizes, block_modules
from probes.layers import Input, Layer, Shape

SMALL_WEIGHTS = 100_000
SMALL_ARRAY = 20_000
SMALL_PAIRED = 64
"""Weights, numbers of any array between parts, and things that are held against each other (positions, features), up to which the
float64 reference computes a whole model in about a second."""
PAIRED = ("length", "features", "cache", "positions")


@dataclass(frozen=True)
class Part:
    """One block in its place.

    Args:
        name: leads the names of its layers and inputs.
        module: of the block.
        sizes: by name.
        leads: whether nothing comes before it, so that its `x` is the model's.
        has_ends: whether it stands at both ends of the model.
        joins: whether it starts at the data beside the parts before it, and its vectors join theirs.
        keeps_input: whether what goes in is joined to a later part.
        takes_skip: whether it takes what such a part kept.
    """

    name: str
    module: ModuleType
    sizes: Sizes
    leads: bool
    has_ends: bool
    joins: bool
    keeps_input: bool
    takes_skip: bool

    def own(self, everything: Any) -> dict[str, Any]:
        """Return the layers or inputs of this part, by the names that its block gave them."""
        lead = f"{self.name}_"
        return {name.removeprefix(lead): value for name, value in everything.items() if name.startswith(lead)}


class ReducedModel:
    """Each block once: ends that begin, blocks in order, ends that finish.

    Args:
        sizes: as `core.reduced.reduced_block` spells them.
    """

    def __init__(self, sizes: Sizes) -> None:
        modules = block_modules()
        named = [(name, modules[kind], own) for name, (kind, own) in parts_of(sizes).items()]
        named.sort(key=lambda item: not hasattr(item[1], "begin"))
        self.parts = tuple(_part(index, *item) for index, item in enumerate(named))
        self.ENDS_IN_LOSS = bool(self.parts[0].has_ends or self.parts[-1].module.ENDS_IN_LOSS)

    def layers(self, sizes: Sizes) -> dict[str, Layer]:
        """Return the layers of every part."""
        return {f"{p.name}_{name}": layer for p in self.parts for name, layer in p.module.layers(p.sizes).items()}

    def inputs(self, sizes: Sizes) -> dict[str, Input]:
        """Return `x` of the first part, and what the others take from the data: labels, caches, row numbers."""
        found: dict[str, Input] = {}
        for part in self.parts:
            for name, spec in part.module.inputs(part.sizes).items():
                if name == "x" and part.leads:
                    found["x"] = spec
                elif name not in ("x", "skip") or (name == "x" and part.joins):
                    found[f"{part.name}_{name}"] = spec
        return found

    def forward(self, ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
        """Return the mean loss when training and there is one, else the output of the last part."""
        x: Any = inputs["x"]
        kept: list[Any] = []
        for part in self.parts:
            own, given = part.own(layers), part.own(inputs)
            if part.joins:
                x = ops.join_vector(x, part.module.forward(ops, own, given, part.sizes))
                continue
            if part.keeps_input:
                kept.append(x)
            if part.takes_skip:
                given["skip"] = kept.pop()
            run = part.module.begin if part.has_ends else part.module.forward
            x = run(ops, own, {**given, "x": x}, part.sizes)
        first = self.parts[0]
        if first.has_ends:
            x = first.module.finish(ops, first.own(layers), x, first.own(inputs), first.sizes)
        return x

    @property
    def is_small(self) -> bool:
        """Whether a float64 reference computes it at once."""
        weights = sum(layer.parameter_count for layer in self.layers({}).values())
        arrays = [spec.shape for spec in self.inputs({}).values()] + [part.module.output(part.sizes) for part in self.parts]
        paired = [part.sizes.get(name, 0) for part in self.parts for name in PAIRED]
        few = len(self.parts) <= SMALL_PAIRED and max(paired) <= SMALL_PAIRED
        return few and weights <= SMALL_WEIGHTS and max(prod(shape) for shape in arrays) <= SMALL_ARRAY

    def small(self, sizes: Sizes) -> Sizes:
        """A small model is as small as it gets."""
        return sizes

    def chains(self, sizes: Sizes) -> bool:
        """A model does not feed itself."""
        return False

    def first(self, sizes: Sizes) -> bool:
        """Whether it starts at the data."""
        return bool(self.parts[0].module.first(self.parts[0].sizes))

    @property
    def wired(self) -> bool:
        """Whether each part takes what the parts before it give, and nothing follows a loss."""
        shape: Shape = ()
        kept: list[Shape] = []
        inner = self.parts[1:] if self.parts[0].has_ends else self.parts[:-1]
        if any(part.module.ENDS_IN_LOSS for part in inner):
            return False
        for part in self.parts:
            taken = part.module.inputs(part.sizes)
            given: Shape = part.module.output(part.sizes)
            if part.keeps_input:
                kept.append(shape)
            if part.joins:
                joined = _joined(shape, given)
                if joined is None:
                    return False
                given = joined
            elif not part.leads and (part.has_ends or taken["x"].shape != shape):
                return False
            if part.takes_skip and (not kept or taken["skip"].shape != kept.pop()):
                return False
            shape = given
        first = self.parts[0]
        return not first.has_ends or shape == first.module.output(first.sizes)


def _joined(vector: Shape, vectors: Shape) -> Shape | None:
    """Return the shape of vectors (batch, count, width) with one more (batch, width) before them; None where they do not fit."""
    fits = len(vector) == 2 and len(vectors) == 3 and vector == (vectors[0], vectors[-1])
    return (vectors[0], vectors[1] + 1, vectors[2]) if fits else None


def can_be_wired(block: Block) -> bool:
    """Return whether a block that `core.reduced.reduced_block` made holds known kinds that fit each other."""
    sizes = dict(block.sizes)
    if any(kind not in block_modules() for kind, _ in parts_of(sizes).values()):
        return False
    return ReducedModel(sizes).wired


def _part(index: int, name: str, module: ModuleType, sizes: Sizes) -> Part:
    has_ends = hasattr(module, "begin")
    return Part(
        name,
        module,
        sizes,
        leads=index == 0,
        has_ends=has_ends,
        joins=index > 0 and not has_ends and bool(module.first(sizes)),
        keeps_input=hasattr(module, "keeps_input") and bool(module.keeps_input(sizes)),
        takes_skip="skip" in module.inputs(sizes),
    )
