"""What a workload asks of a chip: its operations, grouped by equal shape, for a share of the global batch.

The operations of a block are counted for the whole batch. On one chip of many, or in one part of an accumulated step, only
a share of the rows is there: arithmetic and activations shrink with the share, weights do not. Which dimension of a matmul
holds the rows follows from its size: the batch of products, or the dimension that is a whole multiple of the block's rows.
"""

from collections import Counter
from dataclasses import dataclass

from core.ops import DTYPE_BYTES, Op
from core.workload import OPTIMIZER_STATES, Block, Workload

MATRIX_FAMILIES = ("matmul", "attention", "conv", "depthwise", "rnn", "other")
_FAMILY = {
    "matmul": "matmul", "attention": "attention", "conv": "conv", "rnn": "rnn", "elementwise": "elementwise",
    "norm": "norm", "softmax": "norm", "reduce": "norm", "gather": "lookup", "scatter": "lookup", "embedding": "lookup",
    "sort": "other", "fft": "other", "linalg": "other", "custom": "norm", "host_sync": "sync",
}



@dataclass(frozen=True, slots=True)
class Work:
    """All occurrences of one shape in one block, repeats counted.

    Args:
        family: how a chip treats it: `matmul`, `attention`, `conv`, `depthwise`, `rnn`, `other` (arithmetic on the matrix
            units or in library code), `elementwise`, `norm` (vector units), `lookup` (scattered rows), `sync`.
        flop: of all occurrences.
        traffic_bytes: read and written by all occurrences.
        count: occurrences.
        rows, columns, depth, groups: of the matmul that it comes down to; 0 where there is none.
        steps: dependent steps of one occurrence (recurrent layers), else 1.
    """

    family: str
    flop: float
    traffic_bytes: float
    count: int
    rows: int = 0
    columns: int = 0
    depth: int = 0
    groups: int = 1
    steps: int = 1


@dataclass(frozen=True, slots=True)
class BlockWork:
    """The work of one block, repeats counted; `name` is the block's."""

    name: str
    works: tuple[Work, ...]

    @property
    def flop(self) -> float:
        """FLOPs of the block."""
        return sum(work.flop for work in self.works)


def family_of(op: Op) -> str:
    """Return how a chip treats an operation; a convolution with one channel a group is depthwise."""
    if op.kind == "conv":
        in_channels, groups = op.dims[3], op.dims[9]
        return "depthwise" if groups > 1 and in_channels <= groups else "conv"
    return _FAMILY[op.kind]


def work_of(workload: Workload, share: float) -> tuple[BlockWork, ...]:
    """Return the work of one step by block, then of operations that no block covers, then of the optimizer update.

    Args:
        workload: the job.
        share: part of the global batch, above 0 and at most 1.
    """
    found = [_block_work(workload, block, share) for block in workload.blocks]
    if workload.ops:
        found.append(BlockWork("other operations", _grouped(workload.ops, 1, workload.batch, share)))
    if workload.trains and workload.optimizer != "none":
        found.append(BlockWork("optimizer update", (update_work(workload),)))
    return tuple(found)


def block_work(block: Block, trains: bool) -> tuple[Work, ...]:
    """Return the work of one repeat of a block for the whole batch, where all of its weights are trained."""
    ops = block.ops_forward + (block.ops_backward if trains else ())
    return _grouped(ops, 1, 1, 1.0)


def update_work(workload: Workload) -> Work:
    """Return the optimizer update of one step: it reads weight, gradient and states, and writes weight and states.

    Of embedding tables it touches the rows that were looked up.

    Source: definition of the optimizers; states and weights in fp32, which is what mixed-precision training keeps.
    """
    return update_of(workload.updated_parameter_count, workload.optimizer, max(1, len(workload.blocks)))


def update_of(parameter_count: int, optimizer: str, count: int) -> Work:
    """Return the optimizer update of some parameters."""
    states = OPTIMIZER_STATES[optimizer]
    traffic = parameter_count * 4.0 * (3 + 2 * states)
    return Work("elementwise", parameter_count * (2.0 + 6.0 * states), traffic, count)


def _block_work(workload: Workload, block: Block, share: float) -> BlockWork:
    length = dict(block.sizes).get("length", 1)
    rows = workload.batch * length if isinstance(length, int) else workload.batch
    return BlockWork(block.name, _grouped(workload.ops_of(block), block.repeats, rows, share))


def _grouped(ops: tuple[Op, ...], repeats: int, rows: int, share: float) -> tuple[Work, ...]:
    counted: Counter[tuple[str, tuple[int, ...], str]] = Counter()
    for op in ops:
        counted[(op.kind, op.dims, op.dtype)] += op.count
    works = (_work(Op(kind, dims, dtype, count * repeats), rows, share) for (kind, dims, dtype), count in counted.items())
    return tuple(works)


def _work(op: Op, rows: int, share: float) -> Work:
    """Return the work of one operation on a share of the rows."""
    family, dims = family_of(op), op.dims
    flop = op.flop * share
    width = DTYPE_BYTES[op.dtype]
    if op.kind == "matmul":
        return _matmul_work(op, rows, share, width)
    if op.kind == "conv":
        batch, _, _, in_channels, out_height, out_width, out_channels, kernel_height, kernel_width, groups = dims
        weights = op.count * out_channels * (in_channels // groups) * kernel_height * kernel_width * width
        traffic = (op.bytes_read - weights + op.bytes_written) * share + weights
        depth = in_channels // groups * kernel_height * kernel_width
        return Work(family, flop, traffic, op.count, _part(batch * out_height * out_width, share), out_channels, depth)
    if op.kind == "attention":
        batch, heads, _, queries, keys, width_of_head = dims
        traffic = (op.bytes_read + op.bytes_written) * share
        return Work(family, flop, traffic, op.count, queries, keys, width_of_head, _part(batch * heads, share))
    if op.kind == "rnn":
        steps, batch, inputs, hidden, gates = dims
        weights = op.count * steps * gates * hidden * (inputs + hidden) * width
        traffic = (op.bytes_read - weights + op.bytes_written) * share + weights / max(1, steps)
        return Work(family, flop, traffic, op.count, _part(batch, share), gates * hidden, inputs + hidden, 1, steps)
    return Work(family, flop, (op.bytes_read + op.bytes_written) * share, op.count)


def _matmul_work(op: Op, rows: int, share: float, width: float) -> Work:
    groups, m, n, k = op.dims
    left, right, out = (op.count * groups * size * width for size in (m * k, k * n, m * n))
    if groups > 1 and groups % rows != 0 and m % rows == 0 and m >= rows > 1:
        groups_share, m_share, k_share = 1.0, share, 1.0
    elif groups > 1:
        groups_share, m_share, k_share = share, 1.0, 1.0
    elif k == rows != m or (k % rows == 0 and m % rows != 0):
        groups_share, m_share, k_share = 1.0, 1.0, share
    else:
        groups_share, m_share, k_share = 1.0, share, 1.0
    traffic = left * groups_share * m_share * k_share + right * groups_share * k_share + out * groups_share * m_share
    return Work(
        "matmul", op.flop * share, traffic, op.count,
        _part(m, m_share), n, _part(k, k_share), _part(groups, groups_share),
    )


def _part(size: int, share: float) -> int:
    return max(1, round(size * share))
