"""Rules about what a TPU does element by element: scatters, and gathers of single elements or narrow rows.

They are weighed against the arithmetic of the step that they stand in: of a large model's step they are nothing.
"""

from dataclasses import dataclass

from advisor.beliefs import TWO_CORES
from advisor.rules import Finding, rule
from advisor.rules.ages import PACKAGES, PRACTICE, TPU_ONLY, facts
from advisor.rules.case import Case
from advisor.rules.split_stages import JAX_ENVIRONMENTS

SCATTERS = ("scatter", "scatter-add", "scatter-reduce", "index-add", "index-put", "segment-sum", "segment-max", "segment-min",
"bincount")
GATHERS = ("gather", "take-along-axis", "gather-nd", "index-select", "embedding-lookup")
FEW = 1e5
"""Rows from which they are looked at."""
LANE_BYTES = 512
"""An index of a few numbers that is padded to 128 lanes of four bytes."""
ELEMENT_S, TORCH_XLA_ELEMENT_S = 0.29 / 1.3e6, 18.0 / 1.3e5
"""Seconds of one element that is scattered: in JAX on v2, in PyTorch/XLA on v6e. Source: pytorch/xla issue 8720."""
USUAL_SHARE = 0.56
"""Of the peak, that a step usually reaches on a TPU: the median of the catalog's published `mfu` of training."""
UNSEEN, MUCH = 0.01, 0.1
"""Of a step's arithmetic: what is not worth a word, and what decides."""
NARROW = 8
"""Elements of a row below which it is picked one by one."""
MUCH_WORK = 1e12


@dataclass(frozen=True, slots=True)
class _Serial:
    """What a TPU does element by element.

    Args:
        said: in words; empty without any.
        share: seconds of it over those of the step's arithmetic; None where its rows are not known.
    """

    said: str
    share: float | None


def _scatters(case: Case, element_s: float) -> _Serial:
    """Return what scatters or picks single elements, and how much of a step that is.

    Args:
        case: on a TPU. element_s: seconds of one element.
    """
    found = [one for one in case.code.graph.scattered if one[1] >= FEW and (one[0] == "scatter" or one[2] < NARROW)]
    if not found:
        return _Serial(", ".join(case.code.names(*SCATTERS)), None)
    kind, rows, width, _ = found[0]
    passes = 2.0 if case.workload.trains else 1.0
    serial_s = passes * element_s * sum(rows * times for _, rows, _, times in found)
    rate = (case.chip.peak(case.workload.dtype) or case.chip.peak("bf16")) if case.chip is not None else None
    work_s = case.code.flop_per_step / (USUAL_SHARE * rate) if rate else 0.0
    return _Serial(f"{kind} of {rows:,} rows of {width}", serial_s / work_s if work_s else float("inf"))

def is_aside(case: Case) -> bool:
    """Whether an operation that was only named stands beside so much matrix work that it hardly decides."""
    return (case.code.graph.matrix_share or 0.0) >= 0.9 and case.code.flop_per_step >= MUCH_WORK


@rule("R133", facts(
    "gather_scatter", "penalise warn",
    "rank x 0.1 where its rows take a tenth of the step or more, 0.5 where they are not known; 18 s on v6e at a tenth of the "
    "size, 0.03 s on a workstation GPU",
    "pytorch/xla issue 8720; jax-ml/jax issue 7502", PRACTICE, kinds=TPU_ONLY,
))
def scatters_are_serial_on_tpu(case: Case) -> Finding | None:
    """Scatters, and gathers of single elements, are done one by one on a TPU."""
    found = _scatters(case, ELEMENT_S)
    if not found.said or (found.share is not None and found.share < UNSEEN):
        return None
    if (is_aside(case) if found.share is None else found.share < MUCH):
        return Finding(
            "warn",
            f"{found.said} in the step: a TPU does it element by element; keep it out of the inner loop, or use one-hot rows",
        )
    return Finding(
        "penalise",
        f"{found.said}: a TPU does it element by element, with padded indices; write it as a product with one-hot rows or as "
        "sort and segments, or take a GPU",
        0.5 if found.share is None else 0.1,
    )


@rule("R215", facts(
    "per_chip_memory", "warn", "512 bytes for each element; computed from the case", "jax-ml/jax issue 7502", PRACTICE,
    kinds=TPU_ONLY,
))
def indices_of_elements_are_padded(case: Case) -> Finding | None:
    """The index of each element that is picked is padded to 128 lanes on a TPU, which may not fit."""
    if case.chip is None:
        return None
    need = LANE_BYTES * max((rows for _, rows, width, _ in case.code.graph.scattered if width < NARROW), default=0)
    room = case.chip.memory_bytes / (2 if case.key in TWO_CORES else 1)
    if need <= room:
        return None
    return Finding(
        "warn",
        f"indices of single elements may be padded to 128 lanes: {need / 1e9:.3g} GB, where a program has {room / 1e9:.3g}; pick "
        "whole rows, or write it as products with one-hot rows",
    )


@rule("R134", facts(
    "gather_scatter", "penalise warn", "rank x 0.5; 0.1 where games are played on the chip: 512 of chess on v3-8 1,638 steps/s",
    "sotetsuk/pgx issue 1217; pytorch/xla pull request 3450", PRACTICE, kinds=TPU_ONLY,
))
def gathers_leave_matrix_units_idle(case: Case) -> Finding | None:
    """Gathers in the step run on the vector unit of a TPU."""
    found = case.code.names(*GATHERS)
    if not found or _scatters(case, ELEMENT_S).said:
        return None
    if is_aside(case):
        return Finding("warn", f"{', '.join(found)} in the step runs on the vector unit of a TPU: mind how often")
    return Finding(
        "penalise",
        f"{', '.join(found)} in the step runs on the vector unit of a TPU: products with one-hot rows are the usual way there; "
        "branchy work with whole numbers suits a GPU",
        0.1 if case.workload.task == "rl" and case.needs(*JAX_ENVIRONMENTS) else 0.5,
    )


@rule("R135", facts(
    "framework_choice", "penalise", "rank x 0.3; 0.29 s in JAX on v2 against 18 s", "pytorch/xla issue 8720", PACKAGES,
    kinds=TPU_ONLY,
    runtimes=("torch-xla",),
))
def jax_scatters_faster_than_torch_xla(case: Case) -> Finding | None:
    """On a TPU JAX lowers scatters far better than PyTorch/XLA."""
    found = _scatters(case, TORCH_XLA_ELEMENT_S)
    if not found.said or (found.share is not None and found.share < MUCH):
        return None
    return Finding(
        "penalise",
        f"{found.said}: JAX took 0.29 s on v2 where PyTorch/XLA took 18 s on v6e; if it must be a TPU, use JAX",
        0.3,
    )
