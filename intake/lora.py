"""Low-rank adapters of a job: their rank, and how many parameters they have in its model."""

from collections.abc import Mapping

from core.format import count
from core.low_rank import LowRank, Matrix, adapter_parameters
from core.workload import Block
from intake.fields import Section
from intake.sizes import whole_number
from intake.wording import fault

ADAPTED = ("finetune", "rl")
MOST_RANK = 1024


def read_lora(top: Section, task: str, matrices: tuple[Matrix, ...], experts: tuple[Matrix, ...] = ()) -> LowRank | None:
    """Return the adapters of a job, or None where all weights are trained.

    Args:
        top: the document; `lora: 16`, `lora: {rank: 16}` or, for adapters on what experts hold in one array too, with
            `experts: true`.
        task: of the workload; `finetune` and `rl` have adapters.
        matrices: of the layers of the model.
        experts: of its experts.

    Raises:
        BadInput: another task, a model without linear layers or without the experts that are asked for, or a rank that cannot be
            used.
    """
    if not top.has("lora"):
        return None
    if task not in ADAPTED:
        raise fault("lora", f"task {task}", f"task {' or '.join(ADAPTED)}", "write task: finetune, or leave lora out")
    given, with_experts = top.values["lora"], False
    if isinstance(given, Mapping):
        section = top.section("lora", ("rank", "experts"))
        given = None if section is None else section.values.get("rank")
        with_experts = section is not None and section.flag("experts")
        if with_experts:
            if not experts:
                raise fault("lora.experts", True, "a mixture of experts", "leave it out: every linear layer has adapters")
            matrices = (*matrices, *experts)
    rank = whole_number("lora.rank", given, 1, MOST_RANK)
    parameters = adapter_parameters(matrices, rank)
    if not parameters:
        raise fault("lora", rank, "a model with linear layers", "leave lora out")
    return LowRank(rank, parameters, with_experts)


def lora_words(lora: LowRank, blocks: tuple[Block, ...], *, mixture: bool = False) -> str:
    """Return what is trained, as an assumption: where the adapters sit and how many parameters they have.

    Args:
        lora, blocks: of the job.
        mixture: whether experts hold their weights in arrays that are no linear layers, which adapters pass over by habit.
    """
    whole = sum(block.repeats * block.parameter_count for block in blocks)
    share = lora.parameter_count / max(1, whole)
    beside = " and on the experts" if lora.experts else ""
    if mixture and not lora.experts:
        beside = " but the experts', which PEFT passes over (lora: {rank: N, experts: true} counts them)"
    return (
        f"adapters of rank {lora.rank} on every linear layer{beside} are trained, {count(lora.parameter_count)} parameters "
        f"({share:.2g} of the model's); its weights are frozen"
    )
