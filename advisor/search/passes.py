"""The passes of one step over all plans: a training step, a forward pass, or a prompt and then one token after the other."""

from collections.abc import Mapping, Sequence
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
    """One kind of pass over all plans.

    Args:
        regime: what is run. columns: its runs. times: how often a step does it.
        arithmetic_s, traffic_s: seconds of one pass of its arithmetic at the dense peak, and of its unavoidable traffic.
    """

    regime: str
    columns: Columns
    times: float
    arithmetic_s: Numbers
    traffic_s: Numbers

    @staticmethod
    def manner(stack: str) -> tuple[float, float, float]:
        """Return how a stack's host starts operations: (one by one or not, seconds of an operation, of one for experts)."""
        return float(stack in EAGER_STACKS), host_s(stack), routing_s(stack)

    @property
    def least_s(self) -> Numbers:
        """Seconds below which no chip ends one pass, whatever others were measured at."""
        return np.maximum(self.arithmetic_s, self.traffic_s)

    def bounds(self, row: int) -> tuple[float, float]:
        """Return seconds of a step of arithmetic at the peak and of unavoidable traffic, of one plan."""
        return self.times * float(self.arithmetic_s[row]), self.times * float(self.traffic_s[row])


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


def scaled(terms: Mapping[str, float], seconds: float, arithmetic_s: float) -> dict[str, float]:
    """Return terms that add up to a time, with no less of compute than its arithmetic takes at the dense peak.

    Args:
        terms: seconds by name, of the roofline. seconds: that they are to add up to.
        arithmetic_s: at the dense peak.
    """
    scale = seconds / max(sum(terms.values()), 1e-300)
    told = {name: value * scale for name, value in terms.items() if value > 0}
    compute, least = told.get("compute", 0.0), min(arithmetic_s, seconds)
    if compute >= least:
        return told
    rest = (seconds - least) / (seconds - compute)
    return {name: value * rest for name, value in told.items()} | {"compute": least}


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
    found: list[Pass] = []
    for regime, made, times in regimes:
        c = _columns(workload, sketch, pools, owner, grid, regime, length, made)
        flop = _trained_flop(c, workload, sketch) if regime == TRAINING else _forward_flop(c, regime == DECODE)
        looked_up = c.table_parameters + (0.0 if regime == TRAINING else c.fetched_parameters)
        held = (c.parameters - c.expert_parameters - looked_up) / (c.tensor * c.pipeline * c.sharded)
        found.append(Pass(regime, c, times, flop / c.linear_rate, held * c.weight_bytes / c.bytes_rate))
    return tuple(found)


def _trained_flop(c: Columns, workload: Workload, sketch: Sketch) -> Numbers:
    """Return FLOPs of one chip in a training step: of its operations, less what a causal mask spares, and of those done again."""
    each = c.positions / c.chips
    spared = c.attention * (c.length - c.pairs) if sketch.causal else 0.0
    once = workload.flop_forward / c.positions - spared
    again = c.recompute * (c.linear + c.expert + c.convolution + c.attention * c.pairs)
    return each * (once * (1 + workload.flop_backward / max(1, workload.flop_forward)) + again)


def _forward_flop(c: Columns, making: bool) -> Numbers:
    """Return FLOPs of one chip in a forward pass; `making` where it is of one token of every sequence."""
    each, keys = (c.batch / c.chips, c.context) if making else (c.positions / c.chips, c.pairs)
    products = c.linear + c.expert + c.convolution + c.depthwise + c.other
    return each * (products + c.attention * keys) + c.batch / c.chips * c.head * (c.logits > 0)


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
