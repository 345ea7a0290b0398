"""The passes of one step over all plans: a training step, a forward pass, or a prompt and then one token after the other."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from advisor.cost.columns import EAGER_STACKS, Columns, Indices, Numbers, columns_of, host_s, routing_s
from advisor.cost.fitting import baseline_of
from advisor.cost.known import known_predictor
from advisor.cost.predictor import Table
from advisor.cost.silicon import Silicon
from advisor.cost.terms import behind, gathered_s
from advisor.search.grid import Grid
from core.sketch import DECODE, FORWARD, PREFILL, TRAINING, Setup, Sketch
from core.sketching import output_of, prompt_of
from core.workload import Workload

YEAR = 2026.5
"""Software that a plan is made for."""
_BREAKDOWN = {
    "product": "compute", "expert": "compute", "attention": "compute", "head": "compute", "convolution": "compute",
    "irregular": "compute", "prompt": "compute", "vector": "memory traffic", "lookup": "memory traffic",
    "narrowing": "memory traffic", "update": "memory traffic", "weights": "memory traffic", "cache": "memory traffic",
    "launch": "launch",
}  # fmt: skip
"""Which term of a breakdown a term of the model is shown under; the others are communication."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One kind of pass over all plans: its runs and how often a step does it."""

    regime: str
    columns: Columns
    times: float

    @staticmethod
    def manner(stack: str) -> tuple[float, float, float]:
        """Return how a stack's host starts operations: (one by one or not, seconds of an operation, of one for experts)."""
        return float(stack in EAGER_STACKS), host_s(stack), routing_s(stack)

    def bounds(self, row: int) -> tuple[float, float]:
        """Return seconds of a step of arithmetic at the peak and of unavoidable traffic, of one plan."""
        c = self.columns
        making, training = self.regime == DECODE, self.regime == TRAINING
        each = float((c.batch if making else c.positions)[row] / c.chips[row])
        passes = (3.0 if c.trained[row] > 0.5 else 2.0) + float(c.recompute[row]) if training else 1.0
        keys = float((c.context if making else c.pairs)[row])
        products = float(c.linear[row] + c.expert[row] + c.convolution[row])
        flop = each * passes * (products + float(c.attention[row]) * keys)
        looked_up = c.table_parameters + (0.0 if training else c.fetched_parameters)
        held = float((c.parameters - c.expert_parameters - looked_up)[row] / (c.tensor * c.pipeline * c.sharded)[row])
        read = held * float(c.weight_bytes[row])
        return self.times * flop / float(c.linear_rate[row]), self.times * read / float(c.bytes_rate[row])


@dataclass(frozen=True, slots=True)
class Priced:
    """A pass with its roofline: seconds and numbers of every plan, and seconds by term of the breakdown."""

    seconds: Numbers
    table: Table
    parts: dict[str, Numbers]

    def breakdown(self, row: int) -> dict[str, float]:
        """Return seconds by term of one plan."""
        return {name: float(values[row]) for name, values in self.parts.items()}


def priced(one: Pass, manner: tuple[float, float, float]) -> Priced:
    """Return a pass with its roofline.

    Args:
        one: the pass.
        manner: from `Pass.manner`.
    """
    size = one.columns.chips.shape
    changed = {name: np.full(size, value) for name, value in zip(("eager", "host_s", "routing_s"), manner, strict=True)}
    base = baseline_of(one.columns.with_arrays(**changed), one.regime == TRAINING)
    parts: dict[str, Numbers] = {}
    for name, value in base.terms.items():
        where = _BREAKDOWN.get(name, "communication")
        parts[where] = parts[where] + value if where in parts else np.broadcast_to(value, size)
    parts["bubble"] = base.bubble * parts["compute"]
    seconds = base.seconds
    if one.regime != TRAINING:
        gathered = gathered_s(one.columns)
        seconds, parts["communication"] = behind(seconds, gathered), parts["communication"] + gathered
    return Priced(seconds, known_predictor(one.regime == TRAINING).table(base), parts)


def passes_of(
    workload: Workload, sketch: Sketch, pools: Sequence[tuple[Silicon, int]], owner: Indices, grid: Grid
) -> tuple[Pass, ...]:
    """Return the passes of a step.

    Args:
        workload: the job. sketch: of it.
        pools: (chip, count) of every pool.
        owner: pool of every plan.
        grid: all plans.
    """
    length = prompt_of(workload) if workload.unit == "tokens" else 1.0
    output = output_of(workload)
    if workload.trains:
        regimes = ((TRAINING, 0.0, 1.0),)
    elif not output:
        regimes = ((FORWARD, 0.0, 1.0),)
    else:
        regimes = ((PREFILL, 0.0, 1.0), (DECODE, output, output))
    return tuple(
        Pass(regime, _columns(workload, sketch, pools, owner, grid, regime, length, made), times)
        for regime, made, times in regimes
    )


def _columns(
    workload: Workload, sketch: Sketch, pools: Sequence[tuple[Silicon, int]], owner: Indices, grid: Grid, regime: str,
    length: float, output: float,
) -> Columns:  # fmt: skip
    few = columns_of(
        [
            (
                Setup(sketch, regime, silicon.key, count, "", workload.dtype, workload.batch, length, output, year=YEAR,
                      low_rank=workload.lora is not None),
                silicon,
            )
            for silicon, count in pools
        ]
    )
    wide = {one.name: getattr(few, one.name)[owner] for one in fields(Columns)}
    replica = grid.micro if not workload.trains else wide["batch"] / grid.data
    islands = np.array(
        [max(1.0, float(np.ceil(count / silicon.domain))) if silicon.kind == "tpu" else 1.0 for silicon, count in pools]
    )
    wide |= {
        "data": grid.data, "tensor": grid.tensor, "pipeline": grid.pipeline, "context_ways": grid.context,
        "expert_ways": grid.expert, "virtual": grid.virtual, "sharded": grid.sharded, "micro": grid.micro,
        "parts": np.maximum(1.0, replica / grid.micro), "recompute": grid.recompute, "islands": islands[owner],
    }  # fmt: skip
    if not workload.trains:
        # one replica answers its share of the requests on its own chips; prompts are a pass of their own
        each = wide["positions"] / wide["batch"]
        wide |= {"batch": replica, "positions": replica * each, "data": np.ones_like(replica)}
        wide["chips"] = grid.tensor * grid.pipeline * grid.context
    if regime == DECODE:
        wide["prompt"] = np.zeros_like(replica)
    return Columns(**wide)
