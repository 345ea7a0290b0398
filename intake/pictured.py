"""Blocks of a workload out of a picture: its polynomials with a batch, a length and a dtype put in."""

from collections import Counter
from dataclasses import dataclass
from math import prod

from core.graph import DTYPE_BITS
from core.ops import DTYPE_BYTES, Op
from core.picture import PRODUCT, WORD, Operation, Picture, PictureBlock, greatest
from core.symbols import BATCH, LENGTH, value_of
from core.workload import TRACED, Block, Peaks

_STORED = {
    "uint8": "int8", "uint16": "int16", "uint32": "int32", "uint64": "int64", "uint4": "int4", "int2": "int4", "string": "bool",
    "token": "bool",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pictured:
    """What a workload takes from a picture.

    Args:
        blocks: of one step.
        peaks: of memory.
        batch, length: that they were made for; the length is None for a model without one.
    """

    blocks: tuple[Block, ...]
    peaks: Peaks
    batch: int
    length: int | None


def follows(picture: Picture, name: str) -> bool:
    """Whether a picture follows a symbol, `batch` or `length`, rather than being fixed at what the file had."""
    return name in dict(picture.symbols)


def blocks_of(picture: Picture, batch: int, length: int | None, dtype: str) -> Pictured:
    """Return the blocks of a picture for a batch, a length and a dtype.

    Args:
        picture: of the model.
        batch: samples of a step; one that the picture is fixed at is not changed by it.
        length: of the sequences; None where the picture has none.
        dtype: compute dtype, a key of `DTYPE_BYTES`.
    """
    # int4 has half a byte: its words are counted as whole ones, since results are never kept in it
    word = max(1, int(DTYPE_BYTES[dtype]))
    values = picture.values(**{BATCH: batch, WORD: word}, **({LENGTH: length} if length is not None else {}))
    given = value_of(picture.inputs, values)
    peaks = Peaks(
        greatest(picture.peak_forward, values) + given,
        greatest(picture.peak_training, values) + given,
        value_of(picture.cache, values) * batch,
        greatest(picture.tiled_forward, values),
        greatest(picture.tiled_training, values),
        *_most_inflated(picture),
    )
    made = (_block(block, values, dtype) for block in picture.blocks)
    blocks = tuple(one for one in made if one.ops_forward or one.ops_backward or one.parameter_count or one.activation_bytes)
    return Pictured(blocks, peaks, batch, length)


def _most_inflated(picture: Picture) -> tuple[str, float]:
    """Return the array that tiles of a TPU add most to, and by how many times."""
    arrays = [one for one in picture.operations if one.mark in ("unit_axis", "off_tile") and not one.detail.startswith(PRODUCT)]
    worst = max(arrays, key=lambda one: one.padded - one.extent, default=None)
    return ("", 1.0) if worst is None else (worst.detail, worst.padded / worst.extent)


def _block(block: PictureBlock, values: dict[str, int], dtype: str) -> Block:
    forward = _ops([one for one in block.operations if one.phase == "forward"], values, dtype)
    backward = _ops([one for one in block.operations if one.phase == "backward"], values, dtype)
    trained = sum(one.count * prod(one.shape) for one in block.parameters if one.trained)
    sizes = tuple(sorted((name, value) for name, value in ({BATCH: 1} | values).items() if name != WORD))
    return Block(block.name, TRACED, sizes, block.repeats, forward, backward, trained,
                 value_of(block.saved, values), value_of(block.given, values))  # fmt: skip


def _ops(operations: list[Operation], values: dict[str, int], dtype: str) -> tuple[Op, ...]:
    """Return the operations with numbers for symbols; equal ones, whatever the format calls them, together."""
    counted: Counter[tuple[str, tuple[int, ...], str, str]] = Counter()
    for one in operations:
        dims = tuple(value_of(side, values) for side in one.dims)
        counted[one.kind, dims, _dtype(one.dtype, dtype), one.phase] += one.count
    return tuple(Op(kind, dims, name, count, phase) for (kind, dims, name, phase), count in counted.items())


def _dtype(own: str, dtype: str) -> str:
    """Return the name of a dtype among those of operations."""
    if not own:
        return dtype
    name = _STORED.get(own, own)
    return name if name in DTYPE_BYTES else "fp64" if DTYPE_BITS[own] == 64 else "fp32"
