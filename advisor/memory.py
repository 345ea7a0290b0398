"""How much memory one chip needs, in parts that add up, and whether that fits.

Training keeps weights and gradients in the compute dtype, optimizer states in fp32, and for narrow dtypes fp32 master
weights: 16 bytes a parameter for AdamW in bf16, the sum that mixed-precision recipes of every framework come to. Where adapters
alone are trained, gradients, states and master weights are theirs. Embedding tables have gradients of the rows that a step looks
up, and states of all.
"""

from dataclasses import dataclass

from advisor.beliefs import BELIEFS, CHIP_HABITS
from core.ops import DTYPE_BYTES
from core.quantity import Quantity, log_normal
from core.sketching import once, output_of
from core.workload import OPTIMIZER_STATES, Block, Workload

Part = tuple[str, float]
RESERVE = "runtime reserve"
COUNTED = ("weights", "gradients", "optimizer states", "fp32 master weights", "key-value cache")
"""Parts that follow from sizes alone; the others are estimates."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What one chip holds.

    Args:
        model_share: part of weights, gradients and states on one chip (1 for data parallelism, 1/n for FSDP).
        batch_share: part of the global batch that is in flight on one chip at once.
        shards: chips that weights are spread over; gathered layers need room when it is above 1.
        remat: whether activations inside a block are computed again in the backward pass.
    """

    model_share: float = 1.0
    batch_share: float = 1.0
    shards: int = 1
    remat: bool = False


@dataclass(frozen=True, slots=True)
class ModelBytes:
    """Bytes of a whole workload that do not depend on the layout; built once for all candidates.

    `row_gradients` are those of `gradients` that are of embedding tables.
    """

    trains: bool
    weights: float
    gradients: float
    states: float
    master: float
    activations: float
    remat_activations: float
    forward_activations: float
    cache: float
    workspace: float
    largest_layer: float
    row_gradients: float = 0.0


def parameter_bytes(workload: Workload) -> float:
    """Return bytes that one parameter takes: its weight, and its gradient, optimizer states and master weight in training.

    Args:
        workload: its dtype, optimizer and task.
    """
    width = DTYPE_BYTES[workload.dtype]
    if not workload.trains:
        return float(width)
    whole = max(1, workload.parameter_count)
    trained, updated = workload.trained_parameter_count / whole, workload.updated_parameter_count / whole
    return width + updated * width + trained * (4.0 * OPTIMIZER_STATES[workload.optimizer] + _master_bytes(width))


def _master_bytes(width: float) -> float:
    return 4.0 if width < 4 else 0.0


def model_bytes(workload: Workload, *, whole_tables: bool = False) -> ModelBytes:
    """Return the bytes of a workload for its whole batch on one chip.

    Args:
        workload: the job.
        whole_tables: whether embedding tables have gradients of all rows, as in the programs that are measured here.
    """
    width, peaks = DTYPE_BYTES[workload.dtype], workload.peaks
    trained = float(workload.trained_parameter_count)
    tables = () if workload.lora is not None or whole_tables else (b for b in workload.blocks if b.is_table)
    adapters = 0 if workload.lora is None else workload.lora.parameter_count
    return ModelBytes(
        trains=workload.trains,
        weights=(workload.parameter_count + adapters) * width,
        gradients=(trained if whole_tables else workload.updated_parameter_count) * width,
        states=trained * 4.0 * OPTIMIZER_STATES[workload.optimizer],
        master=trained * _master_bytes(width),
        activations=float(peaks.training_bytes if peaks else workload.activation_bytes),
        remat_activations=remat_activation_bytes(workload),
        forward_activations=float(peaks.forward_bytes) if peaks else 2.0 * largest_input_bytes(workload),
        cache=(float(peaks.cache_bytes) if peaks else cache_bytes(workload)) * workload.kept_share,
        workspace=0.0 if peaks else workspace_bytes(workload),
        largest_layer=max((block.parameter_count for block in workload.blocks if not block.is_table), default=0) * width,
        row_gradients=sum(table.repeats * table.updated_parameter_count for table in tables) * width,
    )


def chip_room_bytes(workload: Workload, capacity_bytes: float, kind: str, chips: int, scratch_bytes: float) -> float:
    """Return bytes of one chip that are left for weights, states and activations, by the same parts as `memory_parts`.

    Args:
        workload: the job.
        capacity_bytes: of one chip.
        kind: of the chip, for the runtime's reserve.
        chips: over which all is spread; layers are gathered where there are several.
        scratch_bytes: of the operations on one chip.
    """
    gathered = 2.0 * model_bytes(workload).largest_layer if chips > 1 else 0.0
    return max(0.0, capacity_bytes - CHIP_HABITS[kind].reserve_bytes - gathered - scratch_bytes)


def memory_parts(model: ModelBytes, layout: Layout, kind: str) -> tuple[Part, ...]:
    """Return (name, bytes) of everything that one chip holds at its peak.

    Args:
        model: from `model_bytes`.
        layout: what share of it one chip holds.
        kind: `cpu`, `gpu`, `tpu` or `other`: fixes the runtime's reserve.
    """
    held = _training_parts(model, layout) if model.trains else _inference_parts(model, layout)
    parts = (
        *held,
        ("gathered layers", 2.0 * model.largest_layer if layout.shards > 1 else 0.0),
        ("workspace", model.workspace * layout.batch_share),
        (RESERVE, CHIP_HABITS[kind].reserve_bytes),
    )
    return tuple(part for part in parts if part[1] > 0)


def one_chip_parts(workload: Workload) -> tuple[Part, ...]:
    """Return (name, bytes) of what a chip that holds the whole job needs, without the reserve that a runtime keeps."""
    return tuple(part for part in memory_parts(model_bytes(workload), Layout(), "other") if part[0] != RESERVE)


def _training_parts(model: ModelBytes, layout: Layout) -> tuple[Part, ...]:
    saved = model.remat_activations if layout.remat else model.activations
    return (
        ("weights", model.weights * layout.model_share),
        ("gradients", model.gradients * layout.model_share),
        ("optimizer states", model.states * layout.model_share),
        ("fp32 master weights", model.master * layout.model_share),
        ("activations, computed again" if layout.remat else "activations", saved * layout.batch_share),
    )


def _inference_parts(model: ModelBytes, layout: Layout) -> tuple[Part, ...]:
    return (
        ("weights", model.weights * layout.model_share),
        ("key-value cache", model.cache * layout.batch_share),
        ("activations", model.forward_activations * layout.batch_share),
    )


def cache_bytes(workload: Workload) -> float:
    """Return bytes of keys and values of all causal layers at the last token of a generation, each layer counted once.

    2 x batch x (cached + prompt + output) x key heads x head width x layers, in the dtype of the activations.
    """
    output = output_of(workload)
    return sum(_block_cache(block, workload.dtype, output) for block in once(workload.blocks))


def _block_cache(block: Block, dtype: str, output: float) -> float:
    sizes = dict(block.sizes)
    names = ("batch", "cache", "length", "kv_heads", "head_width")
    if block.kind != "transformer_layer" or not sizes.get("causal"):
        return 0.0
    numbers = [sizes.get(name) for name in names]
    if not all(isinstance(number, int) for number in numbers):
        return 0.0
    batch, cache, length, heads, width = (float(str(number)) for number in numbers)
    return 2.0 * batch * (cache + length + output) * heads * width * max(1.0, DTYPE_BYTES[dtype]) * block.repeats


def remat_activation_bytes(workload: Workload) -> float:
    """Return saved bytes when each block keeps its input only, plus one block in full while it is computed again."""
    inputs = sum(block.repeats * min(input_bytes(block, workload.dtype), block.activation_bytes) for block in workload.blocks)
    return inputs + max((block.activation_bytes for block in workload.blocks), default=0)


def input_bytes(block: Block, dtype: str) -> float:
    """Return bytes of one block's input, as they were read or from its sizes; all it saves when neither tells."""
    if block.input_bytes is not None:
        return float(block.input_bytes)
    sizes = dict(block.sizes)
    for names in (("batch", "length", "width"), ("batch", "height", "width", "in_channels"), ("batch", "length", "inputs")):
        numbers = [sizes.get(name) for name in names]
        if all(isinstance(number, int) for number in numbers):
            product = 1.0
            for number in numbers:
                product *= float(str(number))
            return product * DTYPE_BYTES[dtype]
    return float(block.activation_bytes)


def largest_input_bytes(workload: Workload) -> float:
    """Return bytes of the largest input of a block: what a pass without gradients carries from block to block.

    It is held twice, for the residual and for what is made of it; the largest result inside a block is the workspace's.
    """
    return max((min(input_bytes(block, workload.dtype), float(block.activation_bytes)) for block in workload.blocks), default=0.0)


def workspace_bytes(workload: Workload) -> float:
    """Return scratch room of a workload: that of the block that needs most."""
    return max((scratch_bytes(block) for block in workload.blocks), default=0.0)


def scratch_bytes(block: Block) -> float:
    """Return scratch room of one block: twice the largest result of one of its operations."""
    return 2.0 * max((op.bytes_written / op.count for op in block.ops_forward), default=0.0)


def memory_of(parts: tuple[Part, ...]) -> Quantity:
    """Return the sum of the parts with its band: sizes are exact, activations and workspace are not."""
    whole = sum(size for _, size in parts)
    loose = sum(size for name, size in parts if name not in COUNTED)
    sigma = BELIEFS.memory_sigma * loose / whole if whole > 0 else 0.0
    return log_normal(whole, sigma, "datasheet", "counted from the sizes of the workload")
