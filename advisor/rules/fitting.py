"""Rules about what a training step keeps on one chip, in words beside the figures of the cost model. They explain."""

from advisor.memory import parameter_bytes
from advisor.rules import Finding, rule
from advisor.rules.ages import PRACTICE, facts
from advisor.rules.case import Case
from advisor.rules.parallelism import ADAM_BYTES, trains_all_by_adam

CHIPS = ("gpu", "tpu", "other")
USABLE = 0.92
"""Part of a chip's memory that is left to a program."""


def kept_bytes(case: Case) -> tuple[float, float, float]:
    """Return bytes on a chip under plain data parallelism: weights and states, saved activations, the largest block's.

    Args:
        case: of a training workload; its activations are divided over the chips of its largest pool, as far as the batch allows.

    Source: mixed precision with fp32 master weights and moments (Rajbhandari et al., arXiv:1910.02054, section 3).
    """
    workload = case.workload
    share = min(case.most, workload.batch)
    largest = max((block.activation_bytes for block in workload.blocks), default=0)
    return parameter_bytes(workload) * case.code.parameters, workload.activation_bytes / share, largest / share


@rule("R204", facts(
    "remat", "suggest", "saved activations; computed from the case", "google-deepmind/weathernext issue 55", PRACTICE,
    explains=True,
    kinds=CHIPS,
))
def recomputing_makes_it_fit(case: Case) -> Finding | None:
    """A step that keeps too much for one chip may fit when activations are computed again."""
    if case.chip is None or not case.workload.trains:
        return None
    states, saved, largest = kept_bytes(case)
    room = USABLE * case.chip.memory_bytes
    if states + saved <= room or states + 2 * largest > room:
        return None
    return Finding(
        "suggest",
        f"{saved / 1e9:.3g} GB of activations fit {case.chip_name} only when most are computed again (remat), or with a smaller "
        "batch in accumulated parts",
    )


@rule("R205", facts(
    "per_chip_memory", "suggest", "weights, states and activations; computed from the case",
    "pytorch/xla issue 1881; EasyLM issue 35",
    PRACTICE, explains=True, kinds=CHIPS,
))
def memories_are_not_pooled(case: Case) -> Finding | None:
    """Data parallelism keeps the whole model on each chip: the memories of many do not add up."""
    if case.chip is None or not case.workload.trains:
        return None
    states, saved, _ = kept_bytes(case)
    told = trains_all_by_adam(case) and ADAM_BYTES * case.code.parameters > case.chip.memory_bytes  # R074
    if told or states + saved <= USABLE * case.chip.memory_bytes:
        return None
    return Finding(
        "suggest",
        f"a plain copy on each chip keeps {(states + saved) / 1e9:,.3g} GB ({states / 1e9:,.3g} of weights and states) and "
        f"{case.chip_name} has {case.chip.memory_bytes / 1e9:.0f} GB of its own: shard, recompute or split the batch",
    )
