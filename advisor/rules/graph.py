"""What rules look up in the operations of a workload: counted once for a workload, not for each candidate.

It only tells what is there: shapes of matrix products, widths of heads, what is looked up or sorted, how much of the
arithmetic is matrix work. What that means on a chip is for the rules to say.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from core.ops import DTYPE_BYTES, Op
from core.sketching import routing_blocks, sketch_of
from core.workload import Workload

MATRIX_KINDS = ("matmul", "conv", "attention", "rnn")
IRREGULAR_KINDS = ("gather", "scatter", "sort", "embedding")


@dataclass(frozen=True, slots=True)
class Product:
    """Matrix products of one shape in the forward pass.

    Args:
        rows: vectors that pass through the weights in a step (m).
        columns, inner: features out and in (n and k); of a convolution its channels.
        depth: length of the sums, `inner` or for a convolution `inner` times the kernel.
        batch: equal products at once that share no weights.
        dtype: of the operands.
        flop: of all of them in a step.
    """

    rows: int
    columns: int
    inner: int
    depth: int
    batch: int
    dtype: str
    flop: int


@dataclass(frozen=True, slots=True)
class Graph:
    """Facts of a workload's operations.

    Args:
        kinds: kinds of operations, a key of `core.ops.DIMS` each.
        dtypes: of every operation, backward included.
        products: matrix products and convolutions of the forward pass, most FLOPs first; depthwise ones are left out.
        matrix_share: part of the forward FLOPs that is matrix work; None without FLOPs.
        head_widths: features of one attention head, all that occur.
        decodes: whether single positions attend to many, as when text is generated.
        prompt_rows: positions of the batch that attend together where it also decodes; 0 where it does not.
        decode_rows: sequences that are decoded together.
        cache_bytes: keys and values that one decode step reads.
        table_bytes: of all embedding tables.
        table_most_bytes: of the largest one.
        context: positions that a decode step looks back at, at most.
        lookups: rows that embedding tables look up in a forward pass.
        scattered: (kind, rows, width, times) of gathers and scatters of the forward pass that are no embedding and send no
            positions to experts: runtimes have libraries of their own for that, whose speed is published and predicted.
        volumes: whether a convolution has three spatial axes, folded into two as readers of models do.
        unit_axes: kinds of operations whose last axis has length 1.
        operations: forward operations of a step, repeats counted.
        serial_steps: dependent steps of recurrent layers, one after the other.
        recurrent_rows: sequences that the widest of them works on at once; 0 without any.
        mixture: whether most parameters are of experts, which most positions do not pass through.
        linalg: (matrices, side) of dense linear algebra.
        hidden: features inside the widest MLP of a transformer; None without one.
        vocabulary: None without a token head.
    """

    kinds: frozenset[str]
    dtypes: frozenset[str]
    products: tuple[Product, ...]
    matrix_share: float | None
    head_widths: tuple[int, ...]
    decodes: bool
    prompt_rows: int
    decode_rows: int
    cache_bytes: float
    table_bytes: float
    table_most_bytes: float
    context: int
    lookups: int
    scattered: tuple[tuple[str, int, int, int], ...]
    volumes: bool
    unit_axes: tuple[str, ...]
    operations: int
    serial_steps: int
    recurrent_rows: int
    mixture: bool
    linalg: tuple[tuple[int, int], ...]
    hidden: int | None
    vocabulary: int | None

    @property
    def rows(self) -> int | None:
        """Vectors that pass through the shared weights of most FLOPs in a step; None without matrix products."""
        return next((one.rows for one in self.products if one.batch == 1), None)


def graph_of(workload: Workload) -> Graph:
    """Return what rules look up of a workload's operations."""
    forward = tuple(_forward(workload))
    backward = (op for block in workload.blocks for op in block.ops_backward)
    total = sum(times * op.flop for op, times in forward)
    matrix = sum(times * op.flop for op, times in forward if op.kind in MATRIX_KINDS)
    attention = [(op, times) for op, times in forward if op.kind == "attention"]
    decoding = [(op, times) for op, times in attention if _decodes(op)]
    prompts = [op for op, _ in attention if not _decodes(op)] if decoding else []
    tables = _tables(workload)
    vocabulary = _sizes(workload, "vocabulary")
    return Graph(
        kinds=frozenset(op.kind for op, _ in forward),
        dtypes=frozenset(op.dtype for op in chain((op for op, _ in forward), backward)),
        products=_products(forward),
        matrix_share=matrix / total if total else None,
        head_widths=tuple(sorted({op.dims[5] for op, _ in attention})),
        decodes=bool(decoding),
        prompt_rows=max((op.dims[0] * op.dims[3] for op in prompts), default=0),
        decode_rows=max((op.dims[0] for op, _ in decoding), default=0),
        cache_bytes=_cache_bytes(workload, decoding),
        table_bytes=float(sum(tables)), table_most_bytes=float(max(tables, default=0.0)),
        context=max((op.dims[4] for op, _ in decoding), default=0),
        lookups=sum(times * op.count * op.dims[0] for op, times in forward if op.kind == "embedding"),
        scattered=tuple(_scattered(workload)),
        volumes=any(op.kind == "conv" and _is_volume(op) for op, _ in forward),
        unit_axes=tuple(sorted({op.kind for op, _ in forward if _ends_in_one(op)})),
        operations=sum(times * op.count for op, times in forward),
        serial_steps=sum(times * op.count * op.dims[0] for op, times in forward if op.kind == "rnn"),
        recurrent_rows=max((op.dims[1] for op, _ in forward if op.kind == "rnn"), default=0),
        mixture=sketch_of(workload).expert_parameters > 0.5 * workload.parameter_count,
        linalg=tuple((op.dims[0] * op.count * times, op.dims[1]) for op, times in forward if op.kind == "linalg"),
        hidden=max(_sizes(workload, "hidden", "transformer_layer"), default=None),
        vocabulary=max(vocabulary, default=None),
    )


def _forward(workload: Workload) -> Iterator[tuple[Op, int]]:
    """Yield each forward operation with how often its block is repeated."""
    for block in workload.blocks:
        for op in block.ops_forward:
            yield op, block.repeats
    for op in workload.ops:
        yield op, 1


def _scattered(workload: Workload) -> Iterator[tuple[str, int, int, int]]:
    """Return gathers and scatters, see `Graph`."""
    routing = {block.name for block in routing_blocks(workload)}
    owned = ((op, block.repeats) for block in workload.blocks if block.name not in routing for op in block.ops_forward)
    every = chain(owned, ((op, 1) for op in workload.ops))
    return ((op.kind, op.dims[0], op.dims[1], op.count * times) for op, times in every if op.kind in ("gather", "scatter"))


def _tables(workload: Workload) -> list[float]:
    """Return bytes of each embedding table; a block without weights of its own shares another's."""
    owned = chain.from_iterable(block.ops_forward for block in workload.blocks if block.parameter_count)
    lookups = (op for op in chain(owned, workload.ops) if op.kind == "embedding")
    return [op.dims[1] * op.dims[2] * DTYPE_BYTES[op.dtype] for op in lookups]


def _decodes(op: Op) -> bool:
    return op.dims[3] == 1 and op.dims[4] > 1


def _is_volume(op: Op) -> bool:
    """Whether a convolution is one of cubes: depth and height folded, so that its kernel is as high as its width squared."""
    return op.dims[8] > 1 and op.dims[7] == op.dims[8] ** 2


def _ends_in_one(op: Op) -> bool:
    """Whether an operation's last axis has length 1 while many rows pass through it."""
    return op.kind in ("norm", "softmax", "gather", "scatter", "sort") and op.dims[1] == 1 and op.dims[0] >= 1024


def _cache_bytes(workload: Workload, decoding: list[tuple[Op, int]]) -> float:
    """Return bytes of keys and values that one decode step reads: of all decode steps, divided by their number."""
    total = sum(
        times * op.count * 2.0 * op.dims[0] * op.dims[2] * op.dims[4] * op.dims[5] * DTYPE_BYTES[op.dtype]
        for op, times in decoding
    )
    steps = workload.units_per_step / workload.batch if workload.unit == "tokens" and not workload.trains else 1.0
    return total * workload.kept_share / max(steps, 1.0)


def _products(forward: Iterable[tuple[Op, int]]) -> tuple[Product, ...]:
    found: dict[tuple[int, int, int, int, int, str], int] = {}
    for op, times in forward:
        shape = _shape(op)
        if shape is not None and op.flop:
            found[(*shape, op.dtype)] = found.get((*shape, op.dtype), 0) + times * op.flop
    made = (Product(*shape, flop) for shape, flop in found.items())
    return tuple(sorted(made, key=lambda one: (-one.flop, one.rows, one.columns, one.inner)))


def _shape(op: Op) -> tuple[int, int, int, int, int] | None:
    """Return rows, columns, inner, depth and batch of a matrix product; None for what is none, or depthwise."""
    d = op.dims
    if op.kind == "matmul":
        return d[1], d[2], d[3], d[3], d[0]
    if op.kind == "rnn":
        return d[1], d[4] * d[3], d[2] + d[3], d[2] + d[3], 1
    if op.kind != "conv" or (d[9] > 1 and d[3] // d[9] < 8):
        return None
    groups = d[9]
    return d[0] * d[4] * d[5], d[6] // groups, d[3] // groups, d[3] // groups * d[7] * d[8], groups


def _sizes(workload: Workload, name: str, kind: str = "") -> list[int]:
    """Return whole sizes of one name in all blocks of a kind, or in all."""
    sizes = (value for block in workload.blocks if kind in ("", block.kind) for key, value in block.sizes if key == name)
    return [value for value in sizes if isinstance(value, int)]
