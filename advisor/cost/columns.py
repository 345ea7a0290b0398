"""Runs side by side: every number that the terms need as one array, a row a run.

Rows may come from many setups (published runs) or from one sketch on one chip under many plans; the arrays do not tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from advisor.cost.silicon import Silicon, attention_share, padding_of
from advisor.cost.torus import links_used
from core.sketch import DECODE, SERVING, Layout, Setup, reach

Numbers = NDArray[np.float64]
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Columns:
    """Arrays of shape (runs,) or (1,); counts per position and forward pass, rates per chip, see `Sketch`, `Layout`, `Silicon`.

    Args:
        positions: of one global step: batch x length for language models, batch for the others.
        pairs: keys that one position looks at, times the positions inside one sample of a model that counts samples.
        prompt, output: tokens; context: mean length of the cache while tokens are made.
        padding: by how much tiles make products larger; fill_tiles: see `Silicon`.
        trained: part of the parameters that is trained.
        micro: samples in flight on one replica; parts: micro-batches of one replica in a step.
        attention_reach: share of the 16-bit peak of fused attention.
        link: bytes/s of one chip to all others of its slice or domain. axis_link: to those along one axis of a slice.
        narrow: 1 where products run in 8 or 4 bits and the rest does not.
        host_s: seconds of the host for each operation of a forward pass. routing_s: for each that sends tokens to experts.
        eager: 1 where operations are started one by one.
        tpu: 1 on a TPU. binned: 1 where samples are binned by length.
        split_states: 1 where plain replicas divide the optimizer's states among them.
        turned: 1 where each convolution turns its images channels-last and back, see `turns_images`.
    """

    linear: Numbers
    expert: Numbers
    head: Numbers
    attention: Numbers
    convolution: Numbers
    depthwise: Numbers
    other: Numbers
    vector: Numbers
    lookup: Numbers
    logits: Numbers
    parameters: Numbers
    expert_parameters: Numbers
    table_parameters: Numbers
    fetched_parameters: Numbers
    layers: Numbers
    width: Numbers
    head_width: Numbers
    hidden: Numbers
    experts: Numbers
    used: Numbers
    cached: Numbers
    kernels: Numbers
    serial: Numbers
    padding: Numbers
    chips: Numbers
    batch: Numbers
    length: Numbers
    positions: Numbers
    pairs: Numbers
    prompt: Numbers
    output: Numbers
    context: Numbers
    trained: Numbers
    data: Numbers
    tensor: Numbers
    pipeline: Numbers
    context_ways: Numbers
    expert_ways: Numbers
    virtual: Numbers
    sharded: Numbers
    micro: Numbers
    parts: Numbers
    recompute: Numbers
    islands: Numbers
    year: Numbers
    linear_rate: Numbers
    half_rate: Numbers
    element_bytes: Numbers
    weight_bytes: Numbers
    bytes_rate: Numbers
    matmul_share: Numbers
    link: Numbers
    axis_link: Numbers
    network: Numbers
    domain: Numbers
    hop_s: Numbers
    fill_tiles: Numbers
    launch_s: Numbers
    host_s: Numbers
    routing_s: Numbers
    attention_reach: Numbers
    narrow: Numbers
    eager: Numbers
    tpu: Numbers
    binned: Numbers
    split_states: Numbers
    turned: Numbers

    def with_arrays(self, **changed: Numbers) -> "Columns":
        """Return the same runs with some columns replaced: how many plans of one run are put side by side."""
        return replace(self, **changed)


EAGER_STACKS = ("torch", "torch/keras", "torch/llm-foundry", "tensorflow", "dgl")
_HOST_S = {
    "torch": 40e-6, "torch/keras": 50e-6, "paddlepaddle": 45e-6, "tensorflow": 30e-6, "tensorflow+xla": 30e-6,
    "tensorflow+keras": 30e-6, "mxnet": 15e-6, "dgl": 40e-6, "torch/gpt-fast": 3e-6, "torch-compile": 6e-6,
}  # fmt: skip
"""Seconds a framework's host side takes for one operation of inference at batch 1 (prior of this model, from the framework's
kind: interpreted operation by operation, a session that is fed each step, a compiled or captured graph)."""


def host_s(stack: str) -> float:
    """Return seconds of the host for one operation; that of a compiled program where the stack is not known."""
    return _HOST_S.get(stack, 4e-6)


def routing_s(stack: str) -> float:
    """Return seconds of the host for one operation that sends tokens to experts or works on one expert's share of them.

    How many tokens an expert gets is known only when they are sent, so torch leaves its compiled graph there and starts each
    operation from Python; compiled programs of other frameworks give every expert a fixed share and never ask the host.

    Source: PyTorch documentation, torch.compile, graph breaks on data-dependent shapes.
    """
    return host_s("torch" if stack.startswith("torch") and stack not in _STATIC else stack)


_STATIC = ("torch/xla", "torch/tpu")
_SPLIT_STATES = ("", "torch/nemo", "torch/megatron", "torch/megatron-deepspeed", "torch/deepspeed")
"""Stacks whose plain replicas each update a part of the parameters; a plan that is searched for is free to.

Source: Rajbhandari et al., arXiv:1910.02054 (stage 1); Megatron-LM, distributed optimizer. Plain replicas of the others (torch's
DistributedDataParallel, Horovod, MXNet, Paddle, a replicated JAX program) all hold and update everything.
"""


def turns_images(setup: Setup, kind: str) -> bool:
    """Whether each convolution turns its input and its output, because its images are stored as its units do not read them.

    Tensor cores read images channels-last. Programs in 16 bits keep them so; those in TF32 keep the channels first, as fp32
    always did, so that each pass of a convolution reads and writes its two images once more. Norm and activation behind a
    convolution read and write its output as often, so a pass turns as many elements as these move.

    Args:
        setup: the run. kind: of its chip.

    Source: NVIDIA, Convolutional Layers User's Guide, tensor layouts; TensorFlow's layout optimizer and its test for compute
    capability 7.0 (fp32 channels first, fp16 channels last).
    """
    return kind == "gpu" and setup.dtype == "tf32" and setup.sketch.convolution_flop > 0


ADAPTER_SHARE = 0.005
"""Parameters of low-rank adapters against those of the model, where nobody tells their rank.

Source: Hu et al., arXiv:2106.09685, table 4 (0.1 to 1 %)."""


def columns_of(setups: Sequence[tuple[Setup, Silicon]]) -> Columns:
    """Return runs side by side.

    Args:
        setups: each with its chip for its dtype.
    """
    rows = [_row(setup, silicon) for setup, silicon in setups]
    return Columns(**{one.name: np.array([row[one.name] for row in rows], dtype=np.float64) for one in fields(Columns)})


def _row(setup: Setup, silicon: Silicon) -> dict[str, float]:
    setup = _one_replica(setup)
    sketch, layout = setup.sketch, setup.layout
    samples = sketch.counts_samples
    length = setup.length * setup.packed
    positions = setup.batch * (1.0 if samples else length)
    inside = sketch.length or setup.length
    pairs = sketch.keys(inside) * (inside if samples and sketch.length else 1.0) * (setup.packed if not samples else 1.0)
    replica = setup.batch / layout.data
    micro = min(replica, layout.micro_batch or replica)
    return {
        "linear": sketch.linear_flop,
        "expert": sketch.expert_flop,
        "head": sketch.head_flop,
        "attention": sketch.attention_flop,
        "convolution": sketch.convolution_flop,
        "depthwise": sketch.depthwise_flop,
        "other": sketch.other_flop,
        "vector": sketch.vector_elements,
        "lookup": sketch.lookup_elements,
        "logits": sketch.logits,
        "parameters": sketch.parameters,
        "expert_parameters": sketch.expert_parameters,
        "table_parameters": sketch.table_parameters,
        "fetched_parameters": sketch.fetched_parameters,
        "layers": max(1.0, sketch.layers),
        "width": max(1.0, sketch.width),
        "head_width": sketch.head_width,
        "hidden": sketch.hidden,
        "experts": sketch.experts,
        "used": sketch.experts_used,
        "cached": sketch.cached_elements,
        "kernels": sketch.kernels,
        "serial": sketch.serial,
        "padding": padding_of(sketch.products, silicon),
        "chips": setup.chips,
        "batch": setup.batch,
        "length": 1.0 if samples else setup.length,
        "positions": positions,
        "pairs": pairs,
        "prompt": setup.length,
        "output": setup.output,
        "context": setup.cache or reach(sketch.windows, setup.length + setup.output / 2),
        "host_s": host_s(setup.stack),
        "routing_s": routing_s(setup.stack),
        "trained": ADAPTER_SHARE if setup.low_rank and sketch.trained == 1.0 else sketch.trained,
        **_layout(layout, replica, micro),
        "year": setup.year,
        **_chip(silicon, setup),
        "eager": float(setup.stack in EAGER_STACKS),
        "binned": float(setup.binned),
        "turned": float(turns_images(setup, silicon.kind)),
        "split_states": float(silicon.kind != "tpu" and setup.stack in _SPLIT_STATES),
    }


def _one_replica(setup: Setup) -> Setup:
    """Return a run that makes tokens as its first replica sees it: a share of the sequences, on chips of its own."""
    ways = setup.layout.data
    if setup.regime not in (DECODE, SERVING) or ways <= 1:
        return setup
    alone = replace(setup.layout, data=1, sharded=1)
    return replace(setup, batch=setup.batch / ways, chips=setup.chips / ways, layout=alone)


def _layout(layout: Layout, replica: float, micro: float) -> dict[str, float]:
    return {
        "data": float(layout.data),
        "tensor": float(layout.tensor),
        "pipeline": float(layout.pipeline),
        "context_ways": float(layout.context),
        "expert_ways": float(layout.expert),
        "virtual": float(layout.virtual),
        "sharded": float(layout.sharded),
        "micro": micro,
        "parts": max(1.0, replica / micro),
        "recompute": layout.recompute,
        "islands": float(layout.islands),
    }


def _chip(silicon: Silicon, setup: Setup) -> dict[str, float]:
    part = min(1.0, setup.chips)  # half a chip has half the rates
    whole, axis = links_used(silicon.key, max(1, int(setup.chips)))
    reach = attention_share(silicon, setup.sketch.head_width, setup.length, setup.year, setup.dtype)
    return {
        "linear_rate": silicon.linear_flop_per_s * part,
        "half_rate": silicon.half_flop_per_s * part,
        "element_bytes": silicon.element_bytes,
        "weight_bytes": silicon.weight_bytes,
        "bytes_rate": silicon.bytes_per_s * part,
        "matmul_share": silicon.matmul_share,
        "link": silicon.link_bytes_per_s * whole,
        "axis_link": silicon.link_bytes_per_s * axis,
        "network": silicon.network_bytes_per_s,
        "domain": float(silicon.domain),
        "hop_s": silicon.hop_s,
        "fill_tiles": silicon.fill_tiles,
        "launch_s": silicon.launch_s,
        "attention_reach": reach,
        "narrow": float(setup.dtype in ("fp8", "fp4", "int8") and silicon.linear_flop_per_s > 1.2 * silicon.half_flop_per_s),
        "tpu": float(silicon.kind == "tpu"),
    }
