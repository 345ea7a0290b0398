"""A model cut in two stages: first told from what whole models take, then from what the stages themselves were measured to take.

Which pieces belong together is the model's: a cut that would part two uses of the same weights, or a skip, is none. What a piece
takes of a pass is at first taken by its arithmetic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from advisor.split.layers import BOTH_ENDS, layers_of
from advisor.split.pace import Pace
from advisor.split.pipeline import plan_pipeline
from advisor.split.pipeline_words import Crossing, PipelinePlan, PipelineProblem, Sizing, StagePool, every_way
from core.errors import BadInput
from core.workload import Workload
from probes.model import Part, Piece, cut, output_bytes, parameter_count
from probes.split.words import Calibrated
from services.split_measured import fixed_s, link_of, pace_of
from services.split_measured_parts import measured, piece_s

FORWARD = 1 / 3
"""Part of a step's arithmetic that is its forward pass, until both passes were measured."""
FEWEST_STRETCHES = 2
PREFERRED_COUNTS = (1, 2, 4, 8)
MOST_MICRO_BATCHES = 8
PASSES = ("forward", "backward", "flatten", "update")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Pieces in a row that cannot be parted.

    Args:
        stop: pieces of the model up to its end.
        work: part of the model's arithmetic.
        parameters: part of the model's weights.
        output_bytes: that go on from it, of the whole batch, as they travel.
    """

    stop: int
    work: float
    parameters: float
    output_bytes: float


def stretches_of(workload: Workload, pieces: Sequence[Piece]) -> tuple[Stretch, ...]:
    """Return a model as the stretches between the places at which it can be cut.

    Args:
        workload: whose blocks tell the arithmetic.
        pieces: of the whole model, in order.

    Raises:
        BadInput: a model that cannot be cut anywhere.
    """
    ordered = replace(workload, blocks=tuple(sorted(workload.blocks, key=lambda block: block.kind not in BOTH_ENDS)))
    layers = layers_of(ordered)
    if isinstance(layers, str):
        raise BadInput(f"a model of which {layers}", "one that can be cut in two", "choose --mode data")
    flop = {block.name: float(block.repeats * block.flop_forward) for block in workload.blocks}
    works = [flop[layer.block] * layer.part for layer in layers]
    counts = [float(parameter_count(Part((piece,)))) for piece in pieces]
    sent = output_bytes(pieces, workload.batch)
    width = 0.5 if workload.dtype == "bf16" else 1.0
    stops = [*(at for at in range(1, len(pieces)) if _can_be_cut(pieces, at)), len(pieces)]
    if len(stops) < FEWEST_STRETCHES or len(works) != len(pieces):
        got = f"a model of {len(pieces)} pieces that cannot be parted"
        raise BadInput(got, "one that can be cut in two", "choose --mode data")
    return tuple(
        Stretch(stop, sum(works[start:stop]) / (sum(works) or 1.0), sum(counts[start:stop]) / (sum(counts) or 1.0),
                sent[stop - 1] * width)
        for start, stop in pairwise([0, *stops])
    )  # fmt: skip


def _can_be_cut(pieces: Sequence[Piece], at: int) -> bool:
    try:
        cut(pieces, at)
    except BadInput:
        return False
    return True


def micro_batch_counts(batch: int) -> tuple[int, ...]:
    """Return into how many micro-batches a batch is tried to be cut: halvings where they divide it, else what divides it."""
    counts = tuple(count for count in PREFERRED_COUNTS if batch % count == 0)
    return counts if len(counts) > 1 else tuple(c for c in range(1, MOST_MICRO_BATCHES + 1) if batch % c == 0)


def guessed(
    found: Calibrated, names: tuple[str, str], stretches: Sequence[Stretch], batch: int,
    scales: Mapping[str, float], *, in_order: bool,
) -> PipelineProblem | None:
    """Return the problem of cutting a model, each stretch told by its arithmetic; None where something was not measured.

    Args:
        found: calibration of the whole model in mode `data`.
        names: of the sides.
        stretches: of the model.
        batch: samples of a step.
        scales: by name, what passes of a side were measured to take over what was told; 1 where there is none.
        in_order: keep the first stretch on the first side.
    """
    link = link_of(found.sends)
    pools: list[StagePool] = []
    for side, name in enumerate(names):
        pace = _pace(found, side)
        if pace is None:
            return None
        update_s = fixed_s(found, side, "update", loaded=True)
        sizings: list[Sizing] = []
        for count in micro_batch_counts(batch):
            pass_s = pace.at_once(batch / count) * scales.get(name, 1.0)
            forward = tuple(FORWARD * pass_s * one.work for one in stretches)
            backward = tuple((1 - FORWARD) * pass_s * one.work for one in stretches)
            sizings.append(Sizing(count, forward, backward, (0.0,) * len(stretches)))
        updates = tuple(update_s * one.parameters for one in stretches)
        room = (float(in_order and side > 0), *(0.0,) * (len(stretches) - 1))  # more than there is of memory
        pools.append(StagePool(name, tuple(sizings), room, 0.0, updates))
    if link is None:
        return None
    crossings: list[Crossing] = []
    for count in micro_batch_counts(batch):
        sizes = tuple(one.output_bytes / count for one in stretches[:-1])
        crossings.append(Crossing(count, sizes, sizes))
    return PipelineProblem(tuple(pools), tuple(crossings), every_way(len(names), link), least_pools=len(names))


def _pace(found: Calibrated, side: int) -> Pace | None:
    """Return seconds by samples of one side, beside the other where that was measured, else alone."""
    paces = [pace_of(found, side, loaded=loaded) for loaded in (False, True)]
    points = {rows: seconds for pace in paces if pace is not None for rows, seconds in pace.points}
    rising: list[tuple[int, float]] = []
    for rows in sorted(points):
        rising.append((rows, max(points[rows], rising[-1][1]) if rising else points[rows]))
    return Pace(tuple(rising)) if rising else None


def plan_stages(found: Calibrated, names: tuple[str, str], batch: int, micro_batches: int) -> PipelinePlan | None:
    """Return the plan of two stages that were measured, the first on the first side; None where something was not measured.

    Args:
        found: calibration in `pipeline` with micro-batches.
        names: of the sides.
        batch: samples of a step.
        micro_batches: that the batch is cut into.
    """
    rows = batch // micro_batches
    link = link_of(found.sends)
    if link is None or not all(measured(found, side, PASSES, rows) for side in (0, 1)):
        return None
    pools: list[StagePool] = []
    for side, name in enumerate(names):
        beside = 1.0 if micro_batches > 1 else 0.0
        times = [piece_s(found, side, what, rows, beside) for what in PASSES]
        forward, backward, update = (_only(side, value) for value in (times[0], times[1], times[2] + times[3]))
        room = _only(1 - side, 1.0)  # what is over the memory of none: each stage fits on its own side alone
        pools.append(StagePool(name, (Sizing(micro_batches, forward, backward, (0.0, 0.0)),), room, 0.0, update))
    size = (found.activation_bytes / micro_batches,)
    problem = PipelineProblem(
        tuple(pools), (Crossing(micro_batches, size, size),), every_way(len(names), link), least_pools=len(names)
    )
    return plan_pipeline(problem)


def _only(stage: int, value: float) -> tuple[float, float]:
    """Return a value for one of two stages and nothing for the other."""
    return (0.0, value) if stage else (value, 0.0)
