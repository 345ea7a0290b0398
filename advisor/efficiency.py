"""What share of a datasheet an operation reaches on a kind of chip: a mid value by class, less for small or ragged shapes.

These are priors, written as a few named coefficients in `beliefs`; every estimate that rests on them is of tier
`datasheet` with a band to match.
"""

from dataclasses import dataclass
from functools import cache

from advisor.beliefs import ACHIEVABLE, CHIP_HABITS, FUSED_TRAFFIC, ORDINARY_MATMUL, WIDE_TILE_TPUS, ChipHabits
from advisor.work import BlockWork, Work
from core.device import Accelerator


@dataclass(frozen=True, slots=True)
class Silicon:
    """What of a chip changes how well shapes fit it; chips that share it share the tables built from it.

    Args:
        kind: of the chip.
        tile_columns: width of the matrix unit in elements.
        matmul: share of the dense peak of large matmuls.
    """

    kind: str
    tile_columns: int
    matmul: float


@dataclass(frozen=True, slots=True)
class Demand:
    """One operation as a chip feels it: arithmetic at full rate, traffic at full rate, fixed seconds.

    Args:
        matrix_flop: FLOPs divided by the share of the dense peak reached.
        vector_flop: the same for vector arithmetic, at the vector rate.
        traffic_bytes: bytes divided by the share of the memory rate reached.
        launch_s: seconds that no rate shortens.
    """

    matrix_flop: float
    vector_flop: float
    traffic_bytes: float
    launch_s: float


def silicon_of(chip: Accelerator) -> Silicon:
    """Return what of a chip decides how well shapes fit it."""
    habits = CHIP_HABITS[chip.kind]
    columns = 256 if chip.key in WIDE_TILE_TPUS else habits.tile_columns
    best = ACHIEVABLE.get(chip.key)
    return Silicon(chip.kind, columns, habits.matmul if best is None else best * ORDINARY_MATMUL)


def demands_of(blocks: tuple[BlockWork, ...], silicon: Silicon, eager: bool) -> tuple[tuple[str, tuple[Demand, ...]], ...]:
    """Return (block name, demands) of a workload on chips of one make.

    Args:
        blocks: work of one chip in one part of a step.
        silicon: the make.
        eager: whether each operation is started from Python and none is fused.
    """
    habits = CHIP_HABITS[silicon.kind]
    return tuple((block.name, tuple(_demand(work, silicon, habits, eager) for work in block.works)) for block in blocks)


def _demand(work: Work, silicon: Silicon, habits: ChipHabits, eager: bool) -> Demand:
    launch_s = _launch_s(work, habits, eager)
    if work.family in ("elementwise", "norm"):
        kept = 1.0 if eager else FUSED_TRAFFIC[work.family]
        return Demand(0.0, work.flop, work.traffic_bytes * kept / habits.memory_share, launch_s)
    if work.family in ("lookup", "sync"):
        return Demand(0.0, work.flop, work.traffic_bytes / habits.lookup_share, launch_s)
    reached = share_of_peak(work.family, work.rows, work.columns, work.depth, work.groups, silicon)
    return Demand(work.flop / reached, 0.0, work.traffic_bytes / habits.memory_share, launch_s)


def _launch_s(work: Work, habits: ChipHabits, eager: bool) -> float:
    if work.family == "rnn":
        return work.count * work.steps * habits.serial_s
    if eager:
        return work.count * habits.eager_launch_s
    return 0.0 if work.family == "elementwise" else work.count * habits.launch_s


@cache
def share_of_peak(family: str, rows: int, columns: int, depth: int, groups: int, silicon: Silicon) -> float:
    """Return the share of the dense peak that one operation reaches.

    Padding: dims are rounded up to the tile of the chip. Filling: with t output tiles the chip is t / (t + half) busy.

    Source: tile and wave quantisation, NVIDIA Deep Learning Performance Guide (Matrix Multiplication), and
    jax-ml.github.io/scaling-book (2025-02) for padding to the matrix unit.
    """
    habits = CHIP_HABITS[silicon.kind]
    mids = {
        "matmul": silicon.matmul, "attention": habits.attention, "conv": habits.conv,
        "depthwise": habits.depthwise, "rnn": habits.rnn, "other": habits.other,
    }
    mid = mids[family] * (silicon.matmul / habits.matmul if family in ("attention", "conv") else 1.0)
    if family in ("depthwise", "other") or rows <= 0:
        return mid
    padded = _padding(rows, habits.tile_rows) * _padding(columns, silicon.tile_columns)
    if silicon.kind == "tpu":
        padded *= _padding(depth, silicon.tile_columns)
    tiles = groups * -(-rows // 128) * -(-columns // 128)
    work_tiles = tiles * min(1.0, depth / 128)
    return mid * padded * work_tiles / (work_tiles + habits.fill_tiles)


def _padding(size: int, tile: int) -> float:
    return size / (-(-size // tile) * tile)


def block_seconds(
    demands: tuple[Demand, ...], flop_per_s: float, vector_flop_per_s: float, bytes_per_s: float
) -> tuple[float, float, float]:
    """Return (compute, memory traffic, launch) seconds of one block: max(flop / rate, bytes / rate) + launch, per operation."""
    compute = memory = launch = 0.0
    for demand in demands:
        arithmetic = demand.matrix_flop / flop_per_s + demand.vector_flop / vector_flop_per_s
        traffic = demand.traffic_bytes / bytes_per_s
        if arithmetic >= traffic:
            compute += arithmetic
        else:
            memory += traffic
        launch += demand.launch_s
    return compute, memory, launch
