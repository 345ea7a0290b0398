"""Seconds of one step by term, by the roofline of each kind of work; no coefficient here is fitted.

Training follows the usual counts: a backward pass is two forward passes, recomputation adds a part of one; tensor parallelism
exchanges activations of every layer, sharded data parallelism gathers weights twice and scatters gradients once, plain data
parallelism sums gradients, experts exchange tokens four times a step, a pipeline waits (p - 1) / (v m) of its work.

Sources: Kaplan et al., arXiv:2001.08361 (6 N D); Narayanan et al., arXiv:2104.04473 (tensor and pipeline terms, bubble);
Rajbhandari et al., arXiv:1910.02054 (sharding); jax-ml.github.io/scaling-book (roofline of collectives on TPUs).
"""

from collections.abc import Mapping

import numpy as np

from advisor.cost.columns import Columns, Numbers

Terms = dict[str, Numbers]
_KEPT_WIDE = 0.16
_LARGE = 0.92
"""A step's products against the best product of the chip."""
_OPTIMIZER_BYTES = 28.0
"""Read and written for one parameter by an AdamW update with fp32 states and master weights."""
_BUS_HOP_S = 20e-6
"""A small sum that takes longer than this goes over the host."""
_REPLAYED_S = 4e-6
"""Most time that the host takes for an operation of a language model's pass, which servers replay from a captured graph."""
_ROUTING, _OF_AN_EXPERT = 12.0, 3.0
"""Operations of a mixture's layer beside its products (router, softmax, best few, counts, order, two moves, two exchanges,
weights, sum and balance), and products of one expert, which are started one expert after the other.

Source: Megatron Core, mixture of experts (token dispatcher); Transformer Engine, GroupedLinear (one cuBLAS product an expert).
"""
_DEPTHWISE_SHARE, _OTHER_SHARE = 0.04, 0.08
_MEMORY_SHARE = 0.85
_LOOKUP_SHARE = 0.35


def training_terms(c: Columns) -> Terms:
    """Return seconds by term of one training step on one chip, before the bubble, before anything overlaps.

    Args:
        c: runs side by side.
    """
    each = c.positions / c.chips
    frozen = c.trained < 0.5
    passes = np.where(frozen, 2.0, 3.0)
    forward = passes + c.recompute
    rate = _training_rate(c)
    best = c.matmul_share * _LARGE * _filled(c, c.micro * np.maximum(1.0, c.length) / c.context_ways) / c.padding
    terms = {
        "product": each * c.linear * forward / (rate * best),
        "expert": each * c.expert * forward / (rate * best),
        "attention": each * c.attention * c.pairs * (3.5 + c.recompute * (c.recompute > 0.9)) / (c.half_rate * c.attention_reach),
        "head": each * c.head * passes / (c.half_rate * best),
        "convolution": each * c.convolution * forward / (c.linear_rate * _convolving(c)),
        "irregular": each * forward * (c.depthwise / _DEPTHWISE_SHARE + c.other / _OTHER_SHARE) / c.linear_rate,
        "vector": each
        * c.element_bytes
        * (c.vector * (2.5 + c.recompute + forward * c.turned) + 4 * c.logits)
        / (c.bytes_rate * _MEMORY_SHARE),
        "lookup": each * c.lookup * c.element_bytes * 4 / (c.bytes_rate * _LOOKUP_SHARE),
        "narrowing": c.narrow * each * 6 * c.vector * 0.35 / (c.bytes_rate * _MEMORY_SHARE),
    }
    held, shards = _held(c)
    terms["update"] = c.trained * held / shards * _OPTIMIZER_BYTES / (c.bytes_rate * _MEMORY_SHARE)
    terms |= _exchange(c, each, held)
    started = c.layers / c.pipeline * c.parts * np.where(c.eager > 0, 60.0, 20.0) * forward / 3.0
    kernels = np.maximum(started, c.kernels / c.pipeline * c.parts * forward * np.where(c.eager > 0, 1.0, 0.4))
    serial = c.serial * c.parts * forward * 2
    routed = (c.experts > 0) * c.layers / c.pipeline * c.parts * forward * _routed(c)
    terms["launch"] = (serial + kernels) * c.launch_s + routed * c.routing_s
    return terms


def _routed(c: Columns) -> Numbers:
    """Return operations that send the tokens of a layer to its experts and back, and those of every expert of one chip."""
    return _ROUTING + _OF_AN_EXPERT * c.experts / np.maximum(1.0, c.expert_ways)


def _training_rate(c: Columns) -> Numbers:
    """Return the rate of products in training: 4-bit recipes keep some 16 % of the linear layers in 16 bits.

    Source: Pretraining Large Language Models with NVFP4, arXiv:2509.25149, section 3.
    """
    mixed = 1.0 / ((1 - _KEPT_WIDE) / c.linear_rate + _KEPT_WIDE / c.half_rate)
    return np.where((c.narrow > 0) & (c.weight_bytes < 1), mixed, c.linear_rate)


def _filled(c: Columns, rows: Numbers) -> Numbers:
    """Return the share of a chip that the tiles of a typical product keep busy."""
    columns = np.maximum(np.maximum(c.width, c.hidden), 128.0) / c.tensor
    tiles = np.maximum(rows, 1.0) / 128 * columns / 128
    return tiles / (tiles + c.fill_tiles)


def _held(c: Columns) -> tuple[Numbers, Numbers]:
    """Return (parameters of one replica's share on one chip, chips that the states of those are spread over)."""
    dense = c.parameters - c.expert_parameters - c.table_parameters
    ways = np.maximum(1.0, c.expert_ways)
    spread = np.where(ways > 1, ways * np.maximum(1.0, c.pipeline), c.tensor * c.pipeline)
    held = dense / (c.tensor * c.pipeline) + c.expert_parameters / spread
    states = np.maximum(c.sharded, np.where(c.split_states > 0, np.minimum(c.data, 64.0), 1.0))
    return held, np.maximum(1.0, states)


def _exchange(c: Columns, each: Numbers, held: Numbers) -> Terms:
    """Return seconds of communication: inside layers, over experts, of gradients and weights, between islands."""
    w = c.element_bytes
    inside = np.where(c.tensor * c.context_ways <= c.domain, _group_link(c, c.tensor * c.context_ways), c.network)
    steps = 4.0 + 2.0 * (c.recompute > 0.9)
    tensor = (
        steps
        * c.layers
        * each
        * c.tensor
        * c.width
        * w
        * (c.tensor - 1)
        / c.tensor
        / np.where(c.tensor <= c.domain, _group_link(c, c.tensor), c.network)
    )
    context = np.where(c.context_ways > 1, 3.0 * each * c.cached * w * c.context_ways * 0.5 / inside, 0.0)
    mixed = c.layers * (c.experts > 0)
    exchange = mixed * each * c.width * np.maximum(1.0, c.used) * w * (4.0 + 2.0 * (c.recompute > 0.9)) * _spread_s(c)
    table = (
        2.0 * each * c.lookup * w * (c.table_parameters > 0) * (c.chips > 1) / np.where(c.chips <= c.domain, c.link, c.network)
    )
    group = np.maximum(1.0, c.chips / (c.tensor * c.pipeline) / c.islands)
    full = c.sharded > 1
    rounds = np.where(full & (c.trained > 0.5), 3.0 * np.where(full, c.parts, 1.0), 2.0)
    # low-rank training gathers whole weights but sums the gradients of its adapters only
    volume = np.where(full, held * w * rounds * 0.5 * 2, held * w * 2.0 * c.trained) * (group - 1) / group
    chips_inside = np.clip(c.domain / (c.tensor * c.context_ways), 1.0, 16.0)
    rate = np.where((c.chips <= c.domain) | (c.tpu > 0), c.link, np.minimum(c.link, c.network * chips_inside))
    islands = np.where(c.islands > 1, 2.0 * held * w * c.trained / np.maximum(1.0, c.sharded) / c.network, 0.0)
    return {
        "tensor": np.where(c.tensor > 1, tensor, 0.0),
        "context": context,
        "exchange": exchange + table,
        "sync": np.where(c.chips > 1, volume / rate, 0.0),
        "islands": islands,
    }


def _group_link(c: Columns, ways: Numbers) -> Numbers:
    """Return bytes/s of one chip to the others of a group: along one axis of a slice, unless the group is all of it."""
    return np.where(ways < c.chips, c.axis_link, c.link)


def _spread_s(c: Columns) -> Numbers:
    """Return seconds for each byte of one position that goes to an expert anywhere in its group of chips.

    Experts are evenly used: of the bytes, one part in `expert_ways` stays, what goes to the chip's own domain takes its fast
    link and the rest the network, both at once.
    """
    near = np.minimum(c.expert_ways, c.domain)
    inside = (near - 1) / c.expert_ways / c.link
    beyond = (c.expert_ways - near) / c.expert_ways / c.network
    return np.where(c.expert_ways > 1, np.maximum(inside, beyond), 0.3 * (c.tpu > 0) / c.link)


def bubble_of(c: Columns) -> Numbers:
    """Return the part of a pipeline's work that its chips wait, (p - 1) / (v m).

    Source: Narayanan et al., arXiv:2104.04473, section 2.2.
    """
    return (c.pipeline - 1) / (c.virtual * c.parts)


def combined_training(terms: Mapping[str, Numbers], bubble: Numbers) -> Numbers:
    """Return seconds of a step: work and waiting, with gradient exchange and launches hidden as far as they are shorter.

    Args:
        terms: from `training_terms`.
        bubble: from `bubble_of`.
    """
    apart = ("sync", "islands", "launch", "update")
    work = sum(value for name, value in terms.items() if name not in apart) * (1 + bubble)
    busy = np.cbrt(work**3 + terms["launch"] ** 3)
    wire = terms["sync"] + terms["islands"]
    return behind(busy, wire) + terms["update"]


def forward_terms(c: Columns) -> Terms:
    """Return seconds by term of a forward pass, of a prompt, or of one token of every sequence.

    Args:
        c: runs side by side; `output` above 0 means that tokens are made, one at a time for each sequence of the batch.
    """
    making = c.output > 0
    rows = np.where(making, c.batch, c.positions)
    ways = np.where(making, c.tensor, c.chips) * np.where(making, c.pipeline, 1.0)
    each = rows / ways
    filled = np.minimum(1.0, np.maximum(rows / np.maximum(1.0, c.data), 1.0) / 128.0) ** 0.7
    best = c.matmul_share * 0.85 * np.where(c.convolution > 0, 1.0, np.maximum(filled, 0.05)) / c.padding
    keys = np.where(making, 0.0, c.pairs)
    # of tables that rows are fetched from, only these rows are read, which `lookup` counts
    dense = c.parameters - c.expert_parameters - c.table_parameters - c.fetched_parameters
    # experts that one position uses: as stated, else by their products, two FLOPs a parameter
    counted = c.expert / (2.0 * np.maximum(c.expert_parameters, 1.0))
    touched = np.minimum(1.0, rows * np.where(c.experts > 0, np.maximum(c.used, 1.0) / np.maximum(c.experts, 1.0), counted))
    read = dense + c.expert_parameters * touched
    started = np.where(c.logits > 0, np.minimum(c.host_s, _REPLAYED_S), c.host_s)
    kv_ways = np.minimum(ways, np.maximum(1.0, c.cached / np.maximum(1.0, 2 * c.layers * np.maximum(c.head_width, 1.0))))
    prompts = c.prompt * c.batch / np.maximum(c.output, 1.0)
    prompt = np.where(
        making & (c.batch > 1), prompts / ways * (c.linear + c.expert) / (c.linear_rate * c.matmul_share * 0.7), 0.0
    )
    return {
        "product": each * c.linear / (c.linear_rate * best),
        "expert": each * c.expert / (c.linear_rate * best),
        "attention": each * c.attention * keys / (c.half_rate * c.attention_reach * 1.2),
        "head": np.where(making, c.batch, np.where(c.logits > 0, c.batch, 0.0)) / ways * c.head / (c.half_rate * best),
        "convolution": each * c.convolution / (c.linear_rate * _convolving(c)),
        "irregular": each * (c.depthwise / _DEPTHWISE_SHARE + c.other / _OTHER_SHARE) / c.linear_rate,
        "vector": each
        * c.element_bytes
        * c.vector
        * (np.where(c.eager > 0, 1.0, 0.6) + c.turned)
        / (c.bytes_rate * _MEMORY_SHARE),
        "lookup": each * c.lookup * c.element_bytes / (c.bytes_rate * _LOOKUP_SHARE),
        "weights": read * c.weight_bytes / ways / (c.bytes_rate * 0.8 * _unpacking(c)),
        "cache": np.where(
            making, c.batch * c.context * c.cached / kv_ways * _cache_bytes(c) / (c.bytes_rate * 0.7) * _grouping(c), 0.0
        ),
        "tensor": np.where(
            c.tensor > 1,
            2
            * c.layers
            * (_summed_s(c) + rows / c.data * c.width * 2 * 2 * (c.tensor - 1) / c.tensor / _group_link(c, c.tensor)),
            0.0,
        ),
        "launch": c.serial * 2 * c.launch_s + c.kernels * started * 0.6,
        "prompt": prompt,
    }


def _summed_s(c: Columns) -> Numbers:
    """Return seconds of a small sum over the chips of a tensor-parallel group: a ring over the host's bus grows with it."""
    return c.hop_s * np.where(c.hop_s > _BUS_HOP_S, 1.0 + 0.25 * np.maximum(c.tensor - 2, 0.0), 1.0)


def _convolving(c: Columns) -> Numbers:
    """Return the share of the peak that convolutions reach: nearly all of plain fp32 units, half of matrix units."""
    plain = (c.element_bytes > 2) & (c.linear_rate < 30e12)
    return np.where(plain, 0.95, 0.5)


def _cache_bytes(c: Columns) -> Numbers:
    """Return bytes of one kept element: narrow where products are 8 bits wide in hardware, else 16 bits."""
    return np.where(c.narrow > 0, 1.0, 2.0)


def _unpacking(c: Columns) -> Numbers:
    """Return the share of the memory rate left to weights that are widened as they are read."""
    return np.where(c.weight_bytes < 1, 0.6, np.where((c.weight_bytes < 2) & (c.narrow == 0), 0.85, 1.0))


def _grouping(c: Columns) -> Numbers:
    """Return how often keys and values are read where several query heads share them.

    Kernels of before 2024 read them nearly once for each query head; flash-decoding shares them. Source: Dao et al.,
    Flash-Decoding for long-context inference, 2023-10.
    """
    queries = c.attention / 4.0
    group = np.maximum(1.0, 2.0 * queries / np.maximum(c.cached, 1.0))
    return group ** np.where(c.tpu > 0, 0.1, np.where(c.year < 2024.3, 0.65, 0.25))


def gathered_s(c: Columns) -> Numbers:
    """Return seconds in which replicas that hold a part of the weights each gather the rest for one forward pass; 0 without any.

    Args:
        c: runs side by side, as one replica sees them: `chips` are those of a replica, `sharded` the replicas.

    Source: Rajbhandari et al., arXiv:1910.02054, section 7.2.2 (one all-gather of the weights a forward pass).
    """
    chips_inside = np.clip(c.domain / (c.tensor * c.context_ways), 1.0, 16.0)
    near = (c.chips * c.sharded <= c.domain) | (c.tpu > 0)
    rate = np.where(near, c.link, np.minimum(c.link, c.network * chips_inside))
    held_bytes = (c.parameters - c.table_parameters) * c.weight_bytes / (c.tensor * c.pipeline)
    return np.where(c.sharded > 1, held_bytes * (c.sharded - 1) / np.maximum(c.sharded, 1.0) / rate, 0.0)


def behind(work_s: Numbers, wire_s: Numbers) -> Numbers:
    """Return seconds of work with an exchange that is hidden behind it as far as it is shorter.

    Args:
        work_s, wire_s: seconds of each alone.
    """
    return np.sqrt(work_s**2 + wire_s**2) + 0.1 * wire_s


def combined_forward(terms: Mapping[str, Numbers]) -> Numbers:
    """Return seconds of a forward pass: arithmetic and the reading of weights overlap, the rest follows one another."""
    arithmetic = sum(terms[name] for name in ("product", "expert", "head", "convolution", "irregular"))
    core = (arithmetic**1.5 + terms["weights"] ** 1.5) ** (2 / 3)
    work = core + sum(terms[name] for name in ("attention", "vector", "lookup", "cache", "tensor"))
    return (work**1.5 + terms["launch"] ** 1.5) ** (2 / 3) + 0.4 * np.minimum(work, terms["launch"]) + terms["prompt"]
