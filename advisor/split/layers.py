"""A workload as layers in a row: what part of a step each is on a pool, what it keeps, and what goes on to the next one.

A block that stands at both ends of a model is told as two layers: what looks up or projects the input, and what ends in the
loss. Where nothing is known of what goes from one layer to the next, there is no cut.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.datasheet import Datasheets
from advisor.memory import input_bytes, parameter_bytes
from core.advice import ALL_BLOCKS, Estimate
from core.ops import DTYPE_BYTES
from core.workload import Block, Workload

BOTH_ENDS = {"token_ends": 1, "patch_ends": 1}
"""Blocks that stand at both ends of a model, and how many of their first operations belong to its beginning."""
INDIVISIBLE = ("conv_double",)
"""Blocks whose input is joined to a much later one: a cut between them would carry more than one tensor."""
MATMUL_DIMS = 4
"""Products, rows, columns, depth."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer.

    Args:
        name: of its block, with its number where there are several.
        block: name of the block that it is part of.
        part: what part of that block's time it takes.
        parameter_count: trainable.
        kept_bytes: saved from its forward to its backward pass, of the whole batch.
        input_bytes: what it takes from the layer before it, of the whole batch; 0 for the first.
    """

    name: str
    block: str
    part: float
    parameter_count: int
    kept_bytes: float
    input_bytes: float


def layers_of(workload: Workload) -> tuple[Layer, ...] | str:
    """Return the layers in order, or in one phrase why the workload cannot be cut into them."""
    joined = next((block for block in workload.blocks if block.kind in INDIVISIBLE), None)
    if joined is not None:
        return f"{joined.name} takes what a much earlier layer made: it is not cut between pools"
    if workload.peaks is not None and any(block.input_bytes is None for block in workload.blocks):
        return "what goes from layer to layer is not known of this file"
    row: list[Layer] = []
    last: list[Layer] = []
    for block in workload.blocks:
        if block.kind in BOTH_ENDS:
            start, end = _ends(block, workload)
            row.append(start)
            last.append(end)
        else:
            row.extend(_repeats(block, workload))
    whole = (*row, *last)
    return whole if len(whole) > 1 else "a single layer cannot be cut"


def _repeats(block: Block, workload: Workload) -> list[Layer]:
    size = input_bytes(block, workload.dtype)
    return [
        Layer(f"{block.name} {index + 1}" if block.repeats > 1 else block.name, block.name, 1.0 / block.repeats,
              block.parameter_count, float(block.activation_bytes), size)
        for index in range(block.repeats)
    ]


def _ends(block: Block, workload: Workload) -> tuple[Layer, Layer]:
    """Return the beginning and the end of a model: arithmetic by operations, parameters by what the end multiplies with."""
    first = block.ops_forward[: BOTH_ENDS[block.kind]]
    traffic = [float(op.bytes_read + op.bytes_written) * op.count + op.flop / 100.0 for op in block.ops_forward]
    whole = sum(traffic) or 1.0
    begins = sum(traffic[: len(first)]) / whole
    products = [op for op in block.ops_forward[len(first):] if op.kind == "matmul" and len(op.dims) == MATMUL_DIMS]
    head = min(sum(op.dims[2] * op.dims[3] * op.count for op in products), block.parameter_count)
    between = _between_ends(block, workload)
    tied = bool(dict(block.sizes).get("tied"))
    kept = min(between, float(block.activation_bytes))
    return (
        Layer(f"{block.name}, start", block.name, begins, block.parameter_count - (0 if tied else head), kept, 0.0),
        Layer(f"{block.name}, end", block.name, 1.0 - begins, head, float(block.activation_bytes) - kept, between),
    )


def _between_ends(block: Block, workload: Workload) -> float:
    """Return bytes of what lies between both ends of a model: (batch, length, width) of the next block, or of its own sizes."""
    others = [other for other in workload.blocks if other is not block]
    if others:
        return input_bytes(others[-1], workload.dtype)
    sizes = dict(block.sizes)
    length, width = sizes.get("length", 1), sizes.get("width", 1)
    assert isinstance(length, int)
    assert isinstance(width, int)
    return float(workload.batch * length * width * DTYPE_BYTES[workload.dtype])


def parts_on(
    estimate: Estimate, workload: Workload, layers: tuple[Layer, ...], datasheets: Datasheets | None = None
) -> tuple[float, ...]:
    """Return what part of a step each layer takes on the pool of an estimate; they sum to one.

    Args:
        estimate: of the whole workload on that pool.
        workload: the same.
        layers: from `layers_of`.
        datasheets: of the workload, when there is one already; it tells a step that is known as a whole by block.
    """
    by_block = _seconds_by_block((datasheets or Datasheets(workload, [])).in_blocks(estimate))
    if not any(by_block.get(block.name) for block in workload.blocks):
        by_block = {block.name: float(block.repeats * block.flop_forward) for block in workload.blocks}
    parts = [by_block.get(layer.block, 0.0) * layer.part for layer in layers]
    whole = sum(parts)
    return tuple(part / whole for part in parts) if whole > 0 else (1.0 / len(layers),) * len(layers)


def _seconds_by_block(estimate: Estimate) -> Mapping[str, float]:
    """Return seconds of each block; what is no block's is left out, and so spread in proportion."""
    found: dict[str, float] = {}
    for share in estimate.breakdown:
        if share.block != ALL_BLOCKS and share.term in ("compute", "memory traffic", "launch"):
            found[share.block] = found.get(share.block, 0.0) + share.seconds.mid
    return found


def state_bytes(layer: Layer, workload: Workload) -> float:
    """Return bytes of a layer's weights, and of gradients, optimizer states and master weights where it is trained."""
    return parameter_bytes(workload) * layer.parameter_count
