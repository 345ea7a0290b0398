"""Bytes that one chip holds under every plan, in named parts that add up; the same parts as `advisor.memory` tells of one plan.

Mixed-precision training keeps weights and gradients in the compute dtype, states and master weights in fp32: 16 bytes a
parameter for AdamW in bf16. Source: Rajbhandari et al., arXiv:1910.02054, section 3; Korthikanti et al., arXiv:2205.05198
(activations under tensor parallelism and in a pipeline).
"""

from dataclasses import dataclass

import numpy as np

from advisor.beliefs import BELIEFS
from advisor.cost.columns import Numbers
from advisor.memory import COUNTED, RESERVE, ModelBytes
from advisor.search.grid import Grid

Parts = dict[str, Numbers]
_LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class Apart:
    """Parts of the weights, 0 to 1: of experts, which expert parallelism divides; of embedding tables, spread over all chips."""

    experts: float
    tables: float


def parts_of(model: ModelBytes, grid: Grid, batch: float, apart: Apart, reserve_bytes: Numbers) -> Parts:
    """Return bytes of one chip by part.

    Args:
        model: bytes of the whole workload.
        grid: the plans.
        batch: samples of a global step.
        apart: parts of the weights that are divided in their own way.
        reserve_bytes: kept by the runtime, one for each plan.
    """
    held = _share(grid, apart, grid.sharded)
    parts: Parts = {"weights": model.weights * held}
    if model.trains:
        parts |= _training(model, grid, batch, apart)
    else:
        cut = grid.tensor * grid.pipeline * grid.context
        held_at_once = grid.micro / batch
        parts["key-value cache"] = model.cache * held_at_once / cut
        parts["activations"] = model.forward_activations * held_at_once / (grid.tensor * grid.context)
    parts["gathered layers"] = np.where(grid.sharded > 1, 2.0 * model.largest_layer / grid.tensor, 0.0)
    parts["workspace"] = model.workspace * grid.micro / batch / (grid.tensor * grid.context)
    parts[RESERVE] = reserve_bytes
    return parts


def fit_chances(parts: Parts, capacity: Numbers) -> Numbers:
    """Return the probability that each plan fits, above 0: what `advisor.memory.memory_of` and `chance_within` tell of one.

    A step that does not fit is not taken, so time over this chance is what a plan is worth choosing by.

    Args:
        parts: from `parts_of`. capacity: bytes of each plan's chip.
    """
    from scipy.special import ndtr  # not needed by a run whose chips are all attached

    need = np.sum(np.stack(list(parts.values())), axis=0)
    loose = need - sum(part for name, part in parts.items() if name in COUNTED)
    sigma = np.maximum(BELIEFS.memory_sigma * loose / need, _LEAST)
    return np.maximum(ndtr(np.log(capacity / need) / sigma), _LEAST)


def _share(grid: Grid, apart: Apart, replicas: Numbers) -> Numbers:
    """Return the part of the weights on one chip where what replicas hold alike is sharded over so many of them.

    Experts and tables lie apart on these replicas already: together they are never divided over more than all chips.
    """
    ways = grid.tensor * grid.pipeline
    chips = grid.data * ways * grid.context
    spread = np.where(grid.expert > 1, np.maximum(grid.expert * grid.pipeline, ways), ways)
    experts = np.minimum(spread * replicas, chips)
    return (1 - apart.experts - apart.tables) / (ways * replicas) + apart.experts / experts + apart.tables / chips


def _training(model: ModelBytes, grid: Grid, batch: float, apart: Apart) -> Parts:
    # a stage of a pipeline holds 1 / p of the layers for up to p micro-batches at once: the same as without one
    cut = grid.micro / batch / (grid.tensor * grid.context)
    saved = np.where(grid.recompute > 0, model.remat_activations, model.activations)
    # the optimizer's states of plain replicas are sharded over them (ZeRO stage 1), as every training library can
    states = _share(grid, apart, np.maximum(grid.sharded, grid.data))
    # rows of tables lie on the chip of their table; the gradients of all else lie as its weights do
    dense = Apart(apart.experts / max(_LEAST, 1 - apart.tables), 0.0)
    rows = model.row_gradients / (grid.data * grid.tensor * grid.pipeline * grid.context)
    return {
        "gradients": (model.gradients - model.row_gradients) * _share(grid, dense, grid.sharded) + rows,
        "optimizer states": model.states * states,
        "fp32 master weights": model.master * states,
        "activations": saved * cut,
    }
