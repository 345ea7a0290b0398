"""What a transformer's layer is to a chip, by its operations: the few numbers that published runs of such models are told by.

A layer that was read has every operation as its format wrote it, unfused, while the sketches that speed was fitted on count what
compilers leave of them. Here the sizes of a layer are found in its products again, and counted in the same way.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.ops import Op

_NARROW_HEAD = 1024
"""Features of a head at most."""
_MORE_ROWS = 1.2
"""Times the rows of a layer from which a product is of experts, each position being sent to several."""
_GATED = 1.5
"""What goes into an MLP over what comes back, from which a half of it gates the other."""
_LEAST_VOCABULARY = 1000
OPERATIONS = 15.0
"""That a layer comes down to when a compiler has fused it; as `intake.published` counts them."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention of a layer, as one operation or as its two products.

    Args:
        flop: of all of it, in full.
        pairs: queries x keys of all samples.
        cached: elements of the keys and values of all samples.
        queries, keys: features of all query heads and of all key heads.
        heads, head_width: of queries.
        explicit: products that it consists of; empty where it is an operation of its own.
        times: how often it occurs: twice where a decoder also looks at what was encoded.
    """

    flop: float
    pairs: float
    cached: float
    queries: int
    keys: int
    heads: int
    head_width: int
    explicit: frozenset[Op]
    times: int


@dataclass(frozen=True, slots=True)
class Layer:
    """A transformer's layer.

    Args:
        attention: of it.
        width: features between layers.
        hidden: features inside its MLP, or inside one expert.
        expert_flop: of products to which positions are sent. used: experts of one position; 0 without any.
        vector_elements: that element-wise operations and norms read and write, fused.
    """

    attention: Attention
    width: int
    hidden: int
    expert_flop: float
    used: float
    vector_elements: float


def layer_of(ops: Sequence[Op], batch: int) -> Layer | None:
    """Return what a layer is, None where it has no attention or no products with weights.

    Args:
        ops: of its forward pass. batch: samples.
    """
    weights = [op for op in ops if op.kind == "matmul" and op.dims[0] == 1]
    width = _width(weights) if weights else 0
    attention = _attention(ops, batch, width)
    if attention is None or not width:
        return None
    weights += [op for op in ops if op.kind == "matmul" and op.dims[0] > 1 and op not in attention.explicit]
    rows = min(op.dims[0] * op.dims[1] for op in weights)
    sent = [op for op in weights if op.dims[0] * op.dims[1] > _MORE_ROWS * rows]
    # square products are those of attention, of queries, keys, values or behind it, unless they are of experts
    down = [op for op in weights if op.dims[2] == width and (op.dims[3] != width or op in sent)]
    out = _after_attention(ops, down, attention, width)
    inner = sum(_inputs(op) for op in down) - (rows * out * attention.times if out != width else 0.0)
    of_attention = (attention.queries, attention.keys, attention.queries + 2 * attention.keys)
    enters = sum(_outputs(op) for op in weights if op.dims[3] == width != op.dims[2] and op.dims[2] not in of_attention)
    inside = [op for op in (sent or down) if op.dims[2] == width and op.dims[3] != out] or down
    around = attention.times * (16.0 * width + 4.0 * (attention.queries + attention.keys))
    return Layer(
        attention,
        width,
        max((op.dims[3] for op in inside), default=0),
        float(sum(op.flop for op in sent)),
        max((op.dims[0] * op.dims[1] / rows for op in sent), default=0.0),
        rows * around + (3.0 if enters >= _GATED * inner else 2.5) * max(0.0, inner),
    )


def key_heads_of(ops: Sequence[Op], batch: int) -> int:
    """Return the heads of keys of a layer, over which attention can be divided; 1 where it has no attention.

    Args:
        ops: of its forward pass. batch: samples.
    """
    layer = layer_of(ops, batch)
    return 1 if layer is None else max(1, layer.attention.keys // layer.attention.head_width)


def vocabulary_of(ops: Iterable[Op]) -> int:
    """Return the tokens that a traced model knows: rows of its largest table that a product comes back to; 0 without one."""
    tables: set[int] = set()
    products: set[int] = set()
    for op in ops:
        if op.kind == "embedding":
            tables.add(op.dims[2])
        elif op.kind == "matmul" and op.dims[0] == 1:
            products.add(op.dims[2])
    return max((size for size in tables & products if size >= _LEAST_VOCABULARY), default=0)


def _attention(ops: Sequence[Op], batch: int, width: int) -> Attention | None:
    own = [op for op in ops if op.kind == "attention"]
    if own:
        samples, heads, kv_heads, queries, keys, head = max(own, key=lambda op: op.flop).dims
        shared = min(kv_heads * head, _shared_keys(ops, heads * head, head, width))
        times = sum(op.count for op in own)
        flop, cached = float(sum(op.flop for op in own)), 2.0 * samples * keys * shared * times
        return Attention(flop, float(samples * queries * keys), cached, heads * head, shared, heads, head, frozenset(), times)
    scores = next((op for op in ops if _is_scores(op, ops, batch)), None)
    if scores is None:
        return None
    groups, queries, keys, head = scores.dims
    parts = [op for op in ops if op.kind == "matmul" and op.dims in (scores.dims, (groups, queries, head, keys))]
    heads = groups // batch
    shared = _shared_keys(ops, heads * head, head, width)
    flop, cached = float(sum(op.flop for op in parts)), 2.0 * batch * keys * shared * scores.count
    pairs = float(batch * queries * keys)
    return Attention(flop, pairs, cached, heads * head, shared, heads, head, frozenset(parts), scores.count)


def _is_scores(op: Op, ops: Sequence[Op], batch: int) -> bool:
    """Return whether a product is of queries with keys: many pairs, narrow, and turned back by another of the same."""
    if op.kind != "matmul" or op.dims[0] <= 1 or op.dims[0] % batch:
        return False
    groups, queries, keys, width = op.dims
    products = [one.dims for one in ops if one.kind == "matmul"]
    turned = (groups, queries, width, keys) in products
    joined = any(dims[0] == 1 and dims[3] == groups // batch * width for dims in products)  # or they are those of experts
    return width <= min(keys, _NARROW_HEAD) and turned and joined


def _shared_keys(ops: Sequence[Op], queries: int, head_width: int, width: int) -> int:
    """Return the features of all key heads: what one product makes beside the queries, or what two make, of keys and values."""
    made: dict[int, int] = defaultdict(int)
    plain = [op for op in ops if op.kind == "matmul" and op.dims[0] == 1]
    rows = min((op.dims[1] for op in plain), default=0)
    for op in plain:
        if op.dims[1] == rows and op.dims[3] == width and op.dims[2] % head_width == 0:
            beside = (op.dims[2] - queries) // 2
            if 0 < beside < queries and beside % head_width == 0:
                made[beside] += 2
            elif op.dims[2] < queries:
                made[op.dims[2]] += op.count
    return max((features for features, times in made.items() if times > 1), default=queries)


def _after_attention(ops: Sequence[Op], down: Sequence[Op], attention: Attention, width: int) -> int:
    """Return the features that attention gives to the product behind it: of all query heads, unless values are narrower."""
    if attention.queries == width or any(op.dims[3] == attention.queries for op in down):
        return attention.queries
    begun = next(at for at, op in enumerate(ops) if op.kind == "attention" or op in attention.explicit)
    return next((op.dims[3] for op in ops[begun:] if op in down), width)


def _width(weights: Sequence[Op]) -> int:
    """Return the features that most of the work goes to or comes from."""
    work: dict[int, float] = defaultdict(float)
    for op in weights:
        for side in {op.dims[2], op.dims[3]}:
            work[side] += op.flop
    return max(work, key=lambda side: work[side])


def _inputs(op: Op) -> float:
    return float(op.count * op.dims[0] * op.dims[1] * op.dims[3])


def _outputs(op: Op) -> float:
    return float(op.count * op.dims[0] * op.dims[1] * op.dims[2])
