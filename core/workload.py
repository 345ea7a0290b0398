"""What a person wants to run: a `Workload` made of `Block`s.

A block is a layer as its framework would build it: the unit that is probed, priced and summed.
Everything is immutable; to change a batch, change the document and let intake build the workload again.
"""

from dataclasses import dataclass
from typing import TypeAlias

from core.device import Ownership
from core.low_rank import LowRank, through_frozen
from core.ops import Op
from core.sketch import Windows, reach

TASKS = ("train", "finetune", "infer", "serve", "preprocess", "rl")
STEPS_WITHOUT_TOTAL = 1000.0
"""Steps that cost and energy are told for when the job has no total."""
OBJECTIVES = ("time", "cost", "energy")
OPTIMIZERS = ("adamw", "adam", "sgd", "momentum", "none")
OPTIMIZER_STATES: dict[str, int] = {"adamw": 2, "adam": 2, "momentum": 1, "sgd": 0, "none": 0}
"""Tensors of the size of the weights that each optimizer keeps."""

TRACED = "traced"
"""Kind of a block that was read from a file: it has operations of its own and no file that probes it whole."""

Size: TypeAlias = int | float | str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A layer, `repeats` times in a row.

    Args:
        name: unique in its workload, shown to people ("layer", "stage 2 first").
        kind: the block file that probes it (`transformer_layer`, `conv_bottleneck`, ...).
        sizes: every number that fixes its shape, by name, sorted; `batch` is always among them.
        repeats: how many equal ones the model has.
        ops_forward: operations of one forward pass of one repeat.
        ops_backward: operations of one backward pass of one repeat.
        parameter_count: trainable parameters of one repeat.
        activation_bytes: bytes saved between forward and backward of one repeat, without remat.
        input_bytes: bytes that it takes from the layers before it; None where its sizes tell.
    """

    name: str
    kind: str
    sizes: tuple[tuple[str, Size], ...]
    repeats: int
    ops_forward: tuple[Op, ...]
    ops_backward: tuple[Op, ...]
    parameter_count: int
    activation_bytes: int
    input_bytes: int | None = None

    def size(self, name: str) -> Size:
        """Return one size by name; raises KeyError when the block has none of that name."""
        for key, value in self.sizes:
            if key == name:
                return value
        raise KeyError(name)

    @property
    def is_table(self) -> bool:
        """Whether it holds embedding tables: rows are looked up where they lie, and multiplied with nothing."""
        return self.kind == "embedding_bag"

    @property
    def updated_parameter_count(self) -> int:
        """Parameters of one repeat that a training step has gradients of and changes: of embedding bags the rows looked up.

        Source: pytorch/FBGEMM pull request 1821 (the backward pass of table-batched embeddings, which TorchRec uses, updates the
        rows itself); TensorFlow, tf.tpu.experimental.embedding.TPUEmbedding (the same).
        """
        if not self.is_table:
            return self.parameter_count
        rows = sum(op.count * op.dims[0] * op.dims[1] for op in self.ops_forward if op.kind == "embedding")
        return min(self.parameter_count, rows)

    @property
    def flop_forward(self) -> int:
        """FLOPs of one forward pass of one repeat."""
        return sum(op.flop for op in self.ops_forward)

    @property
    def flop_backward(self) -> int:
        """FLOPs of one backward pass of one repeat."""
        return sum(op.flop for op in self.ops_backward)


@dataclass(frozen=True, slots=True)
class Peaks:
    """What a model that was read from a file or traced holds at its worst moments, beside parameters, their gradients and states.

    Args:
        forward_bytes: of one forward pass without gradients, its input among them.
        training_bytes: of one forward and backward pass, the same.
        cache_bytes: keys and values of the whole batch.
        tiled_forward_bytes: as `forward_bytes` where arrays lie in the tiles of a TPU as they are written; 0 where that is
            not much more.
        tiled_training_bytes: the same of `training_bytes`.
        inflated: the array that tiles add most to, such as `256 x 512 x 2 fp32`; empty without one.
        inflated_times: bytes of that array in tiles over its own.
    """

    forward_bytes: int
    training_bytes: int
    cache_bytes: int = 0
    tiled_forward_bytes: int = 0
    tiled_training_bytes: int = 0
    inflated: str = ""
    inflated_times: float = 1.0


@dataclass(frozen=True, slots=True)
class Total:
    """How much is to be done; at most one of the three is set, none means one step at a time."""

    tokens: float | None = None
    steps: float | None = None
    samples: float | None = None


@dataclass(frozen=True, slots=True)
class Existing:
    """The code that is there already and what it is tied to."""

    framework: str | None = None
    code: str | None = None
    libraries: tuple[str, ...] = ()
    custom_kernels: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    distinct_shapes: int | None = None
    serial_steps: int | None = None
    host_reads_per_step: int | None = None
    versions: tuple[tuple[str, str], ...] = ()
    evidence: tuple[str, ...] = ()
    """Which of these a scan of the code filled in, and the lines that say so."""


@dataclass(frozen=True, slots=True)
class DataPipeline:
    """What one sample costs before it reaches the device."""

    bytes_per_sample: float | None = None
    decode: str | None = None
    host_vcpus: int | None = None
    source_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Targets:
    """What must be reached; `None` means that nothing was asked.

    Args:
        deadline_h, budget_usd: of the whole job.
        latency_ms: of a step, or what one in a hundred requests may exceed where they come at a rate.
        requests_per_s: that are to be served.
        unheld: (what stays open, why and what to do) of each target that was asked for and that nothing can be held against.
    """

    deadline_h: float | None = None
    budget_usd: float | None = None
    latency_ms: float | None = None
    requests_per_s: float | None = None
    unheld: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RequestClass:
    """Requests of one kind that a fleet is to serve.

    Args:
        name: unique in its workload.
        per_s: that come, in the mean.
        prompt, output: tokens of a mean request.
        first_token_ms, per_token_ms, latency_ms: what one in a hundred may exceed; None where nothing is asked.
    """

    name: str
    per_s: float
    prompt: int
    output: int
    first_token_ms: float | None = None
    per_token_ms: float | None = None
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Rollouts:
    """How the samples of a step of reinforcement learning come about.

    Args:
        prompt, output: tokens of a mean rollout.
        deviation: standard deviation of the output's tokens; 0 makes all equal.
        longest: none goes on longer; None for no limit.
        most_stale: by how many training steps its weights may be behind.
        environment_steps_per_s: that environments on processors answer; None where the model answers itself.
    """

    prompt: int
    output: int
    deviation: float = 0.0
    longest: int | None = None
    most_stale: int = 1
    environment_steps_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class PoolRequest:
    """A pool that the user named.

    Args:
        accelerator: a catalog key or a device id such as `cpu:0`.
        count: chips; 1 where it is left open.
        price_usd_per_h: of one chip, when the user gave one.
        terms: on which it is to be rented (`committed-1y`, `spot`, ...); empty leaves it to the workload.
        machine: type of machine that it was named by, whose price counts; empty without one.
        open: whether no count was said: advice then tries those of one host, and more where the job asks for them.
        own: what the price of a chip is made of, where it was told by what the hardware cost.
    """

    accelerator: str
    count: int
    price_usd_per_h: float | None = None
    terms: str = ""
    machine: str = ""
    open: bool = False
    own: Ownership | None = None


@dataclass(frozen=True, slots=True)
class Where:
    """Where accelerators may be rented."""

    clouds: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    spot: bool = False
    own_only: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """One job to be placed.

    Args:
        name: free text of the user; always escaped where it is shown.
        task: one of `TASKS`.
        blocks: layers in the order of the model.
        ops: operations that no block covers.
        batch: samples in one global step.
        samples_per_step: same as batch; tokens_per_step counts batch x length (generated tokens for generation).
        unit: what throughput counts, `tokens` or `samples`.
        units_per_step: that many units in one step.
        dtype: compute dtype, a key of `core.ops.DTYPE_BYTES`.
        optimizer: one of `OPTIMIZERS`; `none` for inference.
        requests: classes of requests that are to be served; empty where the targets tell one.
        rollouts: how samples come about, for reinforcement learning; None where nothing is said of it.
        lora: low-rank adapters, which alone are trained; None where all weights are.
        windows: how far attention looks back, where not at everything; operations count it in full.
        peaks: memory over time of a model that was read from a file; None where it follows from the blocks.
        assumptions: what Tandem filled in and the user did not say, one short phrase each; shown as chips.
    """

    name: str
    task: str
    blocks: tuple[Block, ...]
    batch: int
    unit: str
    units_per_step: float
    dtype: str
    optimizer: str
    objective: str = "time"
    ops: tuple[Op, ...] = ()
    length: int | None = None
    total: Total = Total()
    existing: Existing = Existing()
    data: DataPipeline = DataPipeline()
    targets: Targets = Targets()
    pools: tuple[PoolRequest, ...] = ()
    where: Where = Where()
    assumptions: tuple[str, ...] = ()
    source: str = ""
    peaks: Peaks | None = None
    requests: tuple[RequestClass, ...] = ()
    rollouts: Rollouts | None = None
    lora: LowRank | None = None
    windows: Windows = ()

    @property
    def kept_share(self) -> float:
        """Part of the keys and values of all positions that layers keep: all of them without windows."""
        return reach(self.windows, self.length) / self.length if self.length else 1.0

    @property
    def trains(self) -> bool:
        """Whether a step has a backward pass and an update."""
        return self.task in ("train", "finetune", "rl")

    @property
    def parameter_count(self) -> int:
        """Parameters of the whole model, without adapters."""
        return sum(block.repeats * block.parameter_count for block in self.blocks)

    @property
    def trained_parameter_count(self) -> int:
        """Parameters that a training step changes: all of the model, or its adapters."""
        return self.parameter_count if self.lora is None else self.lora.parameter_count

    @property
    def updated_parameter_count(self) -> int:
        """Those of them that one step has gradients of: of embedding bags the rows that it looks up."""
        if self.lora is not None:
            return self.lora.parameter_count
        return sum(block.repeats * block.updated_parameter_count for block in self.blocks)

    @property
    def flop_forward(self) -> int:
        """FLOPs of one forward pass of the whole model."""
        return sum(block.repeats * block.flop_forward for block in self.blocks) + sum(op.flop for op in self.ops)

    @property
    def flop_backward(self) -> int:
        """FLOPs of one backward pass of the whole model; counted whether or not the task runs it."""
        return sum(block.repeats * self.flop_backward_of(block) for block in self.blocks)

    def flop_backward_of(self, block: Block) -> int:
        """Return the FLOPs of one backward pass of one repeat of a block, see `backward_of`."""
        return sum(op.flop for op in self.backward_of(block))

    def backward_of(self, block: Block) -> tuple[Op, ...]:
        """Return the operations of one backward pass of one repeat of a block: without gradients of what is frozen."""
        return block.ops_backward if self.lora is None else through_frozen(block.ops_forward, block.ops_backward)

    def ops_of(self, block: Block) -> tuple[Op, ...]:
        """Return the operations that a step of the task does with one repeat of a block."""
        return block.ops_forward + (self.backward_of(block) if self.trains else ())

    @property
    def flop_per_step(self) -> int:
        """FLOPs that one step of the task really does."""
        return self.flop_forward + (self.flop_backward if self.trains else 0)

    @property
    def activation_bytes(self) -> int:
        """Bytes saved between forward and backward of the whole model, without remat."""
        return sum(block.repeats * block.activation_bytes for block in self.blocks)

    @property
    def amount(self) -> str:
        """What cost and energy are told for: the whole job or its requests when a total was given, else 1,000 steps."""
        if self.total_steps is None:
            return f"{STEPS_WITHOUT_TOTAL:,.0f} steps"
        return f"{self.total.samples:,.0f} requests" if self.task == "serve" and self.total.samples is not None else "whole job"

    @property
    def total_steps(self) -> float | None:
        """Steps of the whole job, one at least, or None when the user gave no total."""
        if self.total.steps is not None:
            return self.total.steps
        if self.total.samples is not None:
            return max(1.0, self.total.samples / self.batch)
        if self.total.tokens is not None:
            tokens = self.units_per_step if self.unit == "tokens" else self.batch * (self.length or 1)
            return max(1.0, self.total.tokens / tokens)
        return None
