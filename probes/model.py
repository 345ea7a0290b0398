"""One model out of a workload's own blocks, in pieces that can be divided between processes and run in any framework.

A piece is one copy of a block in its place; the two ends of a block that stands at both ends are two pieces of one place. What is
random depends on the seed, the place and the layer (for data: the row) alone, so that every part of a divided model holds the
weights that the whole one would, and every share of a batch its rows. No framework is imported here: `probes.backends.*_model`
runs what is described.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from types import ModuleType
from typing import Any

from core.errors import BadInput
from core.workload import Block, Size
from probes.blocks import Sizes, block_modules
from probes.layers import Input, Layer, Shape
from probes.model_ends import layers_used

ROLES = ("begin", "", "finish")
SOURCES = ("data", "before", "beside")
OPTIMIZERS = ("sgd", "momentum", "adam", "adamw", "none")
Described = Block | tuple[str, Mapping[str, Size] | tuple[tuple[str, Size], ...], int]


@dataclass(frozen=True, slots=True)
class Piece:
    """One layer of a model.

    Args:
        kind: the block file that runs it.
        sizes: by name, sorted; `batch` is that of the whole model and binds no call.
        place: of its weights in the model, from 0; the two ends of one block share theirs.
        role: one of `ROLES`: which end of such a block, or none.
        source: one of `SOURCES`: its `x` is the model's data, comes from the piece before, or is data whose vectors join those
            that come from the piece before.
    """

    kind: str
    sizes: tuple[tuple[str, Size], ...]
    place: int
    role: str = ""
    source: str = "before"

    @property
    def module(self) -> ModuleType:
        """The block file that runs it."""
        return block_modules()[self.kind]

    @property
    def layers(self) -> dict[str, Layer]:
        """The layers that this piece uses, by name, in the block's order."""
        every: dict[str, Layer] = self.module.layers(dict(self.sizes))
        if not self.role:
            return every
        used = layers_used(self.kind, self.sizes, self.role)
        return {name: layer for name, layer in every.items() if name in used}

    @property
    def data(self) -> dict[str, Input]:
        """What it takes from the data, by the block's own names, in the block's order."""
        every: dict[str, Input] = self.module.inputs(dict(self.sizes))
        return {name: spec for name, spec in every.items() if self._takes(name)}

    def _takes(self, name: str) -> bool:
        if name == "skip":
            return False
        if name == "x":
            return self.source != "before"
        return self.role != "begin"

    def key(self, name: str) -> str:
        """Return the name of one of its inputs among those of the model: `x` for the model's own."""
        return "x" if name == "x" and self.source == "data" else f"{self.place}_{name}"

    @property
    def output(self) -> Shape:
        """Canonical shape of what it gives, without the vectors that it may be joined to; () for a loss."""
        if self.ends_in_loss:
            return ()
        shape: Shape = self.module.output(dict(self.sizes))
        return shape

    @property
    def ends_in_loss(self) -> bool:
        """Whether a model ends with it, in training in its loss."""
        return self.role == "finish" or (not self.role and bool(self.module.ENDS_IN_LOSS))

    @property
    def keeps_input(self) -> bool:
        """Whether what goes in is joined to a later piece."""
        return hasattr(self.module, "keeps_input") and bool(self.module.keeps_input(dict(self.sizes)))

    @property
    def takes_skip(self) -> bool:
        """Whether it takes what such a piece kept."""
        return "skip" in self.module.inputs(dict(self.sizes))


@dataclass(frozen=True, slots=True)
class Part:
    """A run of pieces that one process holds.

    Args:
        pieces: in order.
        starts: whether the model's data go in; otherwise `x` comes from the part before.
        ends: whether the model's loss comes out.
    """

    pieces: tuple[Piece, ...]
    starts: bool = True
    ends: bool = True


@dataclass(frozen=True, slots=True)
class Slot:
    """One layer's weights among those of a part.

    Args:
        place: of the piece.
        name, layer: as the block has them.
        index: of the layer in its block.
    """

    place: int
    name: str
    layer: Layer
    index: int

    @property
    def key(self) -> str:
        """Its name among the layers of the model."""
        return f"{self.place}_{self.name}"


def model_of(blocks: Sequence[Described], batch: int) -> tuple[Piece, ...]:
    """Return the whole model in order.

    Args:
        blocks: of a `Workload`, or (kind, sizes, repeats) of each, in the order of the model.
        batch: samples of a step; at least one.

    Raises:
        BadInput: a block of a kind that cannot be run, blocks that do not fit each other, or no loss at the end.
    """
    if batch < 1:
        raise BadInput(f"a batch of {batch}", "at least one sample", "give a larger batch")
    listed = [_described(block, batch) for block in blocks]
    listed.sort(key=lambda item: not hasattr(block_modules()[item[0]], "begin"))
    pieces: list[Piece] = []
    for kind, sizes, repeats in listed:
        has_ends = hasattr(block_modules()[kind], "begin")
        if has_ends and (pieces or repeats > 1):
            raise BadInput(f"a second block {kind} at the ends of the model", "one pair of ends", "describe one model at a time")
        for _ in range(repeats):
            source = _source(not pieces, kind, dict(sizes))
            pieces.append(Piece(kind, sizes, len(pieces), "begin" if has_ends else "", source))
    if pieces and pieces[0].role:
        pieces.append(replace(pieces[0], role="finish", source="before"))
    _check_wiring(tuple(pieces))
    return tuple(pieces)


def _described(block: Described, batch: int) -> tuple[str, tuple[tuple[str, Size], ...], int]:
    kind, sizes, repeats = (block.kind, block.sizes, block.repeats) if isinstance(block, Block) else block
    if kind not in block_modules():
        raise BadInput(
            f"a block of kind {kind}", f"one of {', '.join(sorted(block_modules()))}", "plan without --verify, or choose a preset"
        )
    return kind, tuple(sorted((dict(sizes) | {"batch": batch}).items())), repeats


def _source(leads: bool, kind: str, sizes: Sizes) -> str:
    if leads:
        return "data"
    module = block_modules()[kind]
    return "beside" if bool(module.first(sizes)) and not hasattr(module, "begin") else "before"


def _check_wiring(pieces: tuple[Piece, ...]) -> None:
    """Check that each piece takes what those before it give, and that the loss is the last.

    Raises:
        BadInput: one does not.
    """
    if not pieces or not pieces[-1].ends_in_loss:
        last = f"a model that ends with {pieces[-1].kind}" if pieces else "a model without blocks"
        raise BadInput(last, "a head with a loss at the end", "add the head as the last block")
    shape: Shape = ()
    kept: list[Shape] = []
    for number, piece in enumerate(pieces):
        taken: dict[str, Input] = piece.module.inputs(dict(piece.sizes))
        fits = number == len(pieces) - 1 or not piece.ends_in_loss
        if piece.source == "before":
            fits = fits and shape == (piece.module.output(dict(piece.sizes)) if piece.role else taken["x"].shape)
        if piece.keeps_input:
            kept.append(shape)
        if piece.takes_skip:
            fits = fits and bool(kept) and taken["skip"].shape == kept.pop()
        given = piece.output
        if piece.source == "beside":
            given = joined_shape(shape, given)
            fits = fits and bool(given)
        if not fits:
            raise BadInput(
                f"block {number + 1} of the model, {piece.kind}, behind an output of shape {shape}",
                "blocks that take what the one before gives, and the loss at the end only",
                "list the blocks in the order of the model",
            )
        shape = given


def joined_shape(one: Shape, other: Shape) -> Shape:
    """Return the shape of vectors (batch, count, width) with a vector (batch, width) before them; () where they do not fit."""
    vector, vectors = sorted((one, other), key=len)
    fits = len(vector) == 2 and len(vectors) == 3 and vector == (vectors[0], vectors[2])
    return (vectors[0], vectors[1] + 1, vectors[2]) if fits else ()


def cut(pieces: Sequence[Piece], at: int) -> tuple[Part, Part]:
    """Divide a model in two; activations go from the first part to the second, their gradient the other way.

    Args:
        pieces: of the whole model.
        at: pieces of the first part.

    Raises:
        BadInput: nothing on one side, weights that both sides would need, or a skip that would cross.
    """
    first, second = divide(pieces, (at,))
    return first, second


def divide(pieces: Sequence[Piece], behind: Sequence[int]) -> tuple[Part, ...]:
    """Divide a model in as many parts as there are cuts and one more.

    Args:
        pieces: of the whole model.
        behind: how many pieces lie before each cut, ascending.

    Raises:
        BadInput: as `cut` does.
    """
    ends = [0, *behind, len(pieces)]
    for at, left, right in zip(behind, ends, ends[2:], strict=False):
        if not left < at < right:
            raise BadInput(
                f"a cut behind {at} of {len(pieces)} layers", f"one behind {left + 1} to {right - 1}", "leave each a layer"
            )
        _check_cut(pieces[:at], pieces[at:])
    last = len(pieces)
    return tuple(Part(tuple(pieces[left:right]), left == 0, right == last) for left, right in pairwise(ends))


def _check_cut(first: Sequence[Piece], second: Sequence[Piece]) -> None:
    before = {slot.key for slot in slots_of(first)}
    tied = [slot.name for slot in slots_of(second) if slot.key in before]
    if tied:
        raise BadInput(
            f"a cut between two uses of the same weights ({', '.join(tied)})",
            "weights that one side alone needs",
            "give the model an output layer of its own (`tied: 0`)",
        )
    open_skips = sum(piece.keeps_input for piece in first) - sum(piece.takes_skip for piece in first)
    if open_skips:
        raise BadInput(
            f"a cut under {open_skips} skip connections",
            "one that no skip crosses",
            "cut before the first or behind the last skip",
        )


def untied(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Return the same model with an output layer of its own where it used the token table twice; others as they are."""
    return tuple(
        replace(piece, sizes=tuple((name, 0 if name == "tied" else size) for name, size in piece.sizes)) for piece in pieces
    )


def tables_first(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Return the same model with its embedding bags before all else, so that `cut` can part them; weights keep their places.

    Raises:
        BadInput: the model has no block of several tables beside its other layers.
    """
    tables = [piece for piece in pieces if piece.source == "beside" and piece.data["x"].kind == "token"]
    if len(tables) != 1:
        raise BadInput(
            f"a model with {len(tables)} blocks of tables beside its layers",
            "one, as in DLRM",
            "cut behind its first layer instead",
        )
    leader = replace(tables[0], source="data")
    rest = tuple(replace(p, source="beside") if p.source == "data" else p for p in pieces if p is not tables[0])
    arranged = (leader, *rest)
    _check_wiring(arranged)
    return arranged


def slots_of(pieces: Sequence[Piece]) -> tuple[Slot, ...]:
    """Return the layers of pieces in canonical order: that of the pieces and of their blocks, each once."""
    found: dict[str, Slot] = {}
    for piece in pieces:
        order = list(piece.module.layers(dict(piece.sizes)))
        for name, layer in piece.layers.items():
            slot = Slot(piece.place, name, layer, order.index(name))
            found.setdefault(slot.key, slot)
    return tuple(found.values())


def parameter_count(part: Part) -> int:
    """Return the trainable parameters of a part."""
    return sum(slot.layer.parameter_count for slot in slots_of(part.pieces))


def weights_of(part: Part, seed: int) -> list[tuple[str, Any]]:
    """Return (name, float32 array) of every trainable array of a part, in canonical order and layout.

    Joined end to end they are what `Model.weights` gives: the flat weights of a part are a stretch of those of the whole model.
    """
    import numpy as np

    found: list[tuple[str, Any]] = []
    for slot in slots_of(part.pieces):
        generator = np.random.Generator(np.random.PCG64((seed, 0, slot.place, slot.index)))
        found += [(f"{slot.key}_{name}", array) for name, array in slot.layer.values(generator).items()]
    return found


def flat_weights(part: Part, seed: int) -> Any:
    """Return the weights of a part as one float32 vector."""
    import numpy as np

    return np.concatenate([np.zeros(0, np.float32), *(array.ravel() for _, array in weights_of(part, seed))])


def batch_of(pieces: Sequence[Piece], batch: int, seed: int, first_row: int = 0) -> dict[str, Any]:
    """Return what pieces take from the data, by name: rows `first_row` and on of an endless set that the seed fixes.

    Args:
        pieces: of a model or of a part; one that does not start gets its `x` from the part before.
        batch: rows.
        seed: of the data.
        first_row: of the set.
    """
    import numpy as np

    found: dict[str, Any] = {}
    for piece in pieces:
        single = replace(piece, sizes=tuple(sorted((dict(piece.sizes) | {"batch": 1}).items())))
        for index, (name, spec) in enumerate(single.data.items()):
            axis = _batch_axis(single, name)
            rows = [
                spec.values(np.random.Generator(np.random.PCG64((seed, 1, piece.place, index, row))))
                for row in range(first_row, first_row + batch)
            ]
            found[piece.key(name)] = np.concatenate(rows, axis)
    return found


def _batch_axis(single: Piece, name: str) -> int:
    """Return the axis of an input that grows with the batch."""
    one: Shape = single.data[name].shape
    two: Shape = single.module.inputs(dict(single.sizes) | {"batch": 2})[name].shape
    return next(axis for axis, (small, large) in enumerate(zip(one, two, strict=True)) if small != large)


def output_bytes(pieces: Sequence[Piece], batch: int) -> tuple[int, ...]:
    """Return the bytes of float32 that each piece of a whole model gives to the next one, for a batch; 4 for the loss."""
    found: list[int] = []
    shape: Shape = ()
    for piece in pieces:
        given = piece.output
        shape = joined_shape(shape, given) if piece.source == "beside" else given
        found.append(4 * (batch * prod(shape[1:]) if shape else 1))
    return tuple(found)
