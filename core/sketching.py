"""From the blocks of a workload to the few numbers that its cost depends on.

Operations are told apart by what they are to a chip: a product with the vocabulary is the last product of the ends, a product
that reads weights which most positions do not use belongs to experts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from core.ops import DTYPE_BYTES, Op
from core.sketch import Sketch
from core.transformer import OPERATIONS, Layer, layer_of, vocabulary_of
from core.workload import TRACED, Block, Workload

_VECTOR = ("elementwise", "norm", "softmax", "reduce", "custom")
_LOOKUP = ("gather", "scatter", "embedding")
MOST_EXPERTS = 4096
"""Experts of a layer at most; what is sorted over more is no choice of experts."""
_NEARLY = 0.9
"""Of the positions of a sequence that a loss is taken of: the last has no next token."""
_ENDS = ("token_ends", "class_head", "pixel_head", "patch_ends")


@dataclass(slots=True)
class _Sums:
    """What is added up over the blocks, for a whole forward pass."""

    linear: float = 0.0
    expert: float = 0.0
    head: float = 0.0
    attention: float = 0.0
    pairs: float = 0.0
    convolution: float = 0.0
    depthwise: float = 0.0
    other: float = 0.0
    vector: float = 0.0
    lookup: float = 0.0
    logits: float = 0.0
    kernels: float = 0.0
    serial: float = 0.0
    products: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    cached: float = 0.0
    saved: float = 0.0
    layers: float = 0.0
    causal: bool = False
    head_width: float = 0.0
    hidden: float = 0.0
    used: float = 0.0
    vocabulary: int = 0
    logits_each: float = 0.0
    crosses: bool = False
    routing: frozenset[str] = frozenset()
    widths: dict[int, float] = field(default_factory=dict[int, float])


def sketch_of(workload: Workload) -> Sketch:
    """Return the sketch of a workload.

    Args:
        workload: with blocks; generation is told by its prompt, the blocks that repeat it with other lengths are left out.

    Returns:
        Counts per position: a token where the workload counts tokens, else a sample.
    """
    positions = workload.batch * (prompt_of(workload) if workload.unit == "tokens" else 1.0)
    sums = _summed(workload, positions)
    parameters = float(workload.parameter_count)
    sequence = _sequence(workload)
    experts = _expert_parameters(workload, positions)
    if experts and not sums.expert:
        sums.linear, sums.expert = 0.4 * sums.linear, 0.6 * sums.linear
    width = max(sums.widths, key=lambda size: sums.widths[size], default=0)
    per = 1.0 / positions
    return Sketch(
        name=workload.name,
        kind=_kind_of(workload, sums, bool(experts)),
        linear_flop=sums.linear * per,
        expert_flop=sums.expert * per,
        head_flop=sums.head * per,
        attention_flop=sums.attention / max(1.0, sums.pairs) if sums.pairs else 0.0,
        convolution_flop=sums.convolution * per,
        depthwise_flop=sums.depthwise * per,
        other_flop=sums.other * per,
        vector_elements=sums.vector * per,
        lookup_elements=sums.lookup * per,
        logits=sums.logits * per,
        parameters=parameters,
        expert_parameters=experts,
        table_parameters=_table_parameters(workload),
        input_parameters=_input_parameters(workload, sums.routing),
        layers=max(1.0, sums.layers),
        width=float(width),
        head_width=sums.head_width,
        hidden=sums.hidden,
        experts=float(routed_experts(workload)) if sums.used else 0.0,
        experts_used=sums.used,
        cached_elements=sums.cached * per,
        saved_elements=sums.saved * per,
        kernels=sums.kernels,
        serial=sums.serial,
        products=_shapes(sums),
        windows=workload.windows,
        causal=sums.causal,
        length=sequence,
        by_token=workload.unit == "tokens",
        trained=workload.trained_parameter_count / parameters if workload.lora is not None and parameters else 1.0,
    )


def _summed(workload: Workload, positions: float) -> _Sums:
    """Return what one forward pass adds up to."""
    sums = _Sums()
    traced = tuple(block for block in workload.blocks if block.kind == TRACED)
    sums.vocabulary = vocabulary_of(op for block in traced for op in block.ops_forward)
    sums.logits_each = _NEARLY * sums.vocabulary * positions
    found = ((block.name, layer_of(block.ops_forward, workload.batch)) for block in once(workload.blocks))
    layers = {name: layer for name, layer in found if layer is not None}
    sums.causal = workload.peaks is not None and workload.peaks.cache_bytes > 0
    sums.routing = frozenset(block.name for block in routing_blocks(workload))
    for block in once(workload.blocks):
        if block.name in layers:
            _add_layer(sums, block, layers[block.name], experts=bool(sums.routing))
        else:
            _add(sums, block, beside=bool(layers))
    for op in workload.ops:
        _add_op(sums, op, 1.0, "")
    return sums


def prompt_of(workload: Workload) -> float:
    """Return the positions of one sample in the first pass: the length of training, the prompt of a generation."""
    for block in workload.blocks:
        sizes = dict(block.sizes)
        length = sizes.get("length")
        if "prompt" in block.name and isinstance(length, int):
            return float(length)
    return float(workload.length or 1)


def output_of(workload: Workload) -> float:
    """Return the tokens that a generation makes for one sample, 0 for anything else."""
    makes = any("decoding" in block.name or "later tokens" in block.name for block in workload.blocks)
    return workload.units_per_step / workload.batch if makes else 0.0


def once(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the blocks of one pass: those that share the weights of others are later steps of a generation."""
    return tuple(block for block in blocks if not any(word in block.name for word in ("decoding", "later tokens"))) or blocks


def _add(sums: _Sums, block: Block, *, beside: bool = False) -> None:
    """Add a block; `beside` the layers of a model that was read it is none of them."""
    sizes = dict(block.sizes)
    sums.causal = sums.causal or bool(sizes.get("causal"))
    hidden = sizes.get("hidden")
    sums.hidden = max(sums.hidden, float(hidden)) if isinstance(hidden, int) else sums.hidden
    if block.kind not in _ENDS and (block.repeats > 1 or not beside):
        sums.layers += block.repeats
    sums.saved += block.repeats * block.activation_bytes / 2
    for op in block.ops_forward:
        _add_op(sums, op, float(block.repeats), block.kind)
        _add_shape(sums, op, float(block.repeats))


def _add_shape(sums: _Sums, op: Op, repeats: float) -> None:
    """Add the shape of a product, and the width that it reads."""
    if op.kind == "matmul" and op.dims[0] == 1:
        sums.widths[op.dims[3]] = sums.widths.get(op.dims[3], 0.0) + op.flop * repeats
    shape = _shape_of(op)
    if shape is not None:
        sums.products[shape] = sums.products.get(shape, 0.0) + op.flop * repeats


def _add_layer(sums: _Sums, block: Block, layer: Layer, *, experts: bool) -> None:
    """Add a transformer's layer: by its sizes, as layers of published models are counted."""
    attention, times = layer.attention, float(block.repeats)
    sums.causal = sums.causal or bool(dict(block.sizes).get("causal"))
    sums.layers += times
    sums.saved += times * block.activation_bytes / 2
    sums.attention += attention.flop * times
    sums.cached += attention.cached * times
    sums.pairs = max(sums.pairs, attention.pairs)
    sums.head_width = float(attention.head_width)
    sums.expert += layer.expert_flop * times
    sums.used = max(sums.used, layer.used)
    sums.hidden = max(sums.hidden, 0.0 if experts and not layer.used else float(layer.hidden))
    sums.vector += layer.vector_elements * times
    sums.kernels += OPERATIONS * attention.times * times
    sums.crosses = sums.crosses or attention.times > 1
    sums.linear -= layer.expert_flop * times
    routes = block.name in sums.routing
    for op in block.ops_forward:
        told = op.kind in (*_VECTOR, "attention") or op in attention.explicit or (routes and op.kind in (*_LOOKUP, "sort"))
        if not told:
            _add_op(sums, op, times, block.kind)
            sums.kernels -= op.count * times
            _add_shape(sums, op, times)


def _shape_of(op: Op) -> tuple[int, int] | None:
    """Return (columns, depth) of the product that an operation comes down to, None where it is none."""
    if op.kind == "matmul":
        return op.dims[2], op.dims[3]
    if op.kind == "conv":
        _, _, _, in_channels, _, _, out_channels, height, width, groups = op.dims
        return out_channels, max(1, in_channels // groups) * height * width
    return None


def _add_op(sums: _Sums, op: Op, repeats: float, kind: str) -> None:
    flop = op.flop * repeats
    sums.kernels += op.count * repeats
    if op.kind == "matmul":
        if (kind in _ENDS and op.dims[2] > 4 * op.dims[3]) or op.dims[2] == sums.vocabulary:
            sums.head += flop
            sums.logits += op.count * repeats * op.dims[0] * op.dims[1] * op.dims[2]
        else:
            sums.linear += flop
    elif op.kind == "attention":
        sums.attention += flop
    elif op.kind == "conv":
        in_channels, groups = op.dims[3], op.dims[9]
        if groups > 1 and in_channels <= groups:
            sums.depthwise += flop
        else:
            sums.convolution += flop
    elif op.kind in _LOOKUP:
        sums.lookup += repeats * op.count * op.dims[0] * op.dims[1]
    elif op.kind in _VECTOR:
        moved = (op.bytes_read + op.bytes_written) / DTYPE_BYTES[op.dtype]
        of_logits = 0 < sums.logits_each <= moved / op.count  # of a model that was read: logits are counted apart
        sums.vector += 0.0 if of_logits else repeats * moved
    else:
        if op.kind == "rnn":
            sums.serial += op.count * repeats * op.dims[0]
        sums.other += flop


def _shapes(sums: _Sums) -> tuple[tuple[float, float, float], ...]:
    """Return the shapes of the products with their parts of the FLOPs, largest first; the smallest are left out."""
    whole = sum(sums.products.values())
    largest = sorted(sums.products.items(), key=lambda pair: -pair[1])[:12]
    return tuple((float(columns), float(depth), flop / whole) for (columns, depth), flop in largest if flop > 0)


def routed_experts(workload: Workload) -> int:
    """Return among how many experts routers choose: the width of what they take the greatest of; 0 where none is seen.

    Args:
        workload: with operations, as they are read from a model.
    """
    return max((width for block in routing_blocks(workload) for width in _choices(block)), default=0)


def routing_blocks(workload: Workload) -> tuple[Block, ...]:
    """Return the blocks in which a router sends positions to experts, most of which are idle for each of them.

    Args:
        workload: with operations, as they are read from a model.
    """
    positions = workload.batch * (prompt_of(workload) if workload.unit == "tokens" else 1.0)
    return tuple(block for block, _ in _mixtures(workload, positions))


def _choices(block: Block) -> tuple[int, ...]:
    """Return the widths of what the greatest of are taken for each position, where they may be experts."""
    widths = (op.dims[1] for op in block.ops_forward if op.kind == "sort" and op.dims[0] > 1)
    return tuple(width for width in widths if 1 < width <= MOST_EXPERTS)


def _expert_parameters(workload: Workload, positions: float) -> float:
    """Return parameters of experts: those that a position does not use, and its own where the router tells their share."""
    choices, used = routed_experts(workload), 0.0
    for block in routing_blocks(workload):
        layer = layer_of(block.ops_forward, workload.batch) if block.kind == TRACED else None
        used = max(used, layer.used if layer is not None else 0.0)
    whole = choices / (choices - used) if 0 < used < choices else 1.0
    return whole * sum(block.repeats * idle for block, idle in _mixtures(workload, positions))


def _mixtures(workload: Workload, positions: float) -> Iterator[tuple[Block, float]]:
    """Yield blocks with a router most of whose parameters are idle, and how many: beyond what counted work can have read.

    Idle weights alone are no experts: recurrent layers and convolutions read theirs by operations of their own.
    """
    for block in workload.blocks:
        products = sum(op.flop for op in block.ops_forward if op.kind == "matmul")
        used = products / (2.0 * positions)
        idle = block.parameter_count - used - sum(_weights_of(op) for op in block.ops_forward if op.kind in ("conv", "rnn"))
        if _choices(block) and positions > 1 and used > 0 and idle > 0.5 * block.parameter_count:
            yield block, idle


def _weights_of(op: Op) -> float:
    """Return the weights that a product, a convolution or a recurrent layer reads, each occurrence its own; 0 for the rest."""
    if op.kind == "rnn":
        _, _, inputs, hidden, gates = op.dims
        return float(op.count * gates * hidden * (inputs + hidden))
    shape = _shape_of(op) if op.kind != "matmul" or op.dims[0] == 1 else None
    return 0.0 if shape is None else float(op.count * shape[0] * shape[1])


def _table_parameters(workload: Workload) -> float:
    """Return parameters of embedding tables that are fetched by row and multiplied with nothing."""
    return float(sum(block.repeats * block.parameter_count for block in workload.blocks if block.is_table))


def _input_parameters(workload: Workload, routing: frozenset[str]) -> float:
    """Return parameters of the tables that are fetched by row and are not a head's too: those that products leave unread.

    Args:
        workload: with operations. routing: names of the blocks of experts, whose products read a part of their weights.
    """
    blocks = [block for block in once(workload.blocks) if not block.is_table]
    unread = sum(
        block.repeats * (block.parameter_count - sum(_weights_of(op) for op in block.ops_forward))
        for block in blocks
        if block.name not in routing
    )
    fetched = 0.0
    lookups = (op for block in blocks for op in block.ops_forward if op.kind == "embedding")
    for table in sorted((float(op.dims[1] * op.dims[2]) for op in lookups), reverse=True):
        fetched += table if table <= unread - fetched else 0.0
    return fetched


def _sequence(workload: Workload) -> float:
    """Return the positions that attention sees in one sample of a model that counts samples (197 patches), else 0."""
    if workload.unit == "tokens":
        return 0.0
    return float(max((op.dims[3] for block in workload.blocks for op in block.ops_forward if op.kind == "attention"), default=0))


def _kind_of(workload: Workload, sums: _Sums, mixture: bool) -> str:
    if mixture:
        return "mixture"
    kinds = {block.kind for block in workload.blocks}
    if sums.attention > 0:
        if workload.unit != "tokens":
            return "vision"
        return "encoder-decoder" if sums.crosses else "decoder" if sums.causal else "encoder"
    if sums.convolution > 0 or sums.depthwise > 0:
        return "vision"
    if "embedding_bag" in kinds or "dot_interaction" in kinds:
        return "recommender"
    return "recurrent" if "lstm_layer" in kinds else "other"
