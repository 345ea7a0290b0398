"""Layers of a workload in a row over the pools of a split: from estimates to a problem, and from its plan to an answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.beliefs import BELIEFS
from advisor.memory import chip_room_bytes, scratch_bytes
from advisor.split.bandwidth import bandwidth_of
from advisor.split.data_parallel_curves import with_bandwidth
from advisor.split.given import TOGETHER, Given
from advisor.split.judgement import Curves, Planned
from advisor.split.layers import Layer, layers_of, parts_on, state_bytes
from advisor.split.pipeline import plan_pipeline, why_no_pipeline
from advisor.split.pipeline_curves import layer_curve
from advisor.split.pipeline_words import Crossing, PipelinePlan, PipelineProblem, Sizing, Stage, StagePool
from advisor.split.sides import Side
from advisor.work import update_work
from core.sketching import output_of
from core.split import Curve, Share, pool_words
from core.workload import Block, Workload

MOST_MICRO_BATCHES = 64
POINTS = 17


@dataclass(frozen=True, slots=True)
class _Row:
    """What the problem is made of."""

    workload: Workload
    sides: tuple[Side, ...]
    layers: tuple[Layer, ...]
    micro_batches: tuple[int, ...]

    @property
    def hungriest(self) -> str:
        """Name of the block that needs most scratch room; one layer at a time uses it."""
        return max(self.workload.blocks, key=scratch_bytes).name


def pipeline_of(given: Given) -> Planned:
    """Return the best pipeline over at least two of the pools."""
    workload = given.workload
    if not workload.trains and output_of(workload) > 0:
        said = "a model that generates is not cut between unlike pools: every token would cross the link"
        return Planned("pipeline", missing=(said,), said=said)
    layers = layers_of(workload)
    if isinstance(layers, str):
        return Planned("pipeline", missing=(layers,), said=layers)
    able = [index for index, side in enumerate(given.sides) if side.pace is not None and side.alone is not None]
    if len(able) < TOGETHER:
        return given.without("pipeline", able)
    paced = tuple(given.sides[index] for index in able)
    counts = _micro_batches(workload.batch, paced)
    if not counts:
        return Planned("pipeline", missing=("the batch cannot be cut into micro-batches that every pool can do",))
    row = _Row(workload, paced, layers, counts)
    problem = PipelineProblem(
        tuple(_stage_pool(row, side) for side in paced), tuple(_crossing(row, count) for count in counts),
        given.links_of(able), ("1f1b",), least_pools=TOGETHER,
    )
    found = plan_pipeline(problem)
    if found is None:
        reasons = given.unknown or why_no_pipeline(problem)
        return Planned("pipeline", missing=reasons, said="; ".join(reasons))
    return _planned(given, row, problem, found)


def _micro_batches(batch: int, sides: Sequence[Side]) -> tuple[int, ...]:
    """Return into how many micro-batches the batch may be cut: its divisors, each a batch that every pool can do."""
    grains = [side.pace.grain for side in sides if side.pace is not None]
    return tuple(
        count for count in range(1, min(batch, MOST_MICRO_BATCHES) + 1)
        if batch % count == 0 and all((batch // count) % grain == 0 for grain in grains)
    )


def _stage_pool(row: _Row, side: Side) -> StagePool:
    """Return what each layer takes on one pool; memory is counted for one of its chips, over which all is spread."""
    assert side.alone is not None
    parts = parts_on(side.alone, row.workload, row.layers)
    update_s = _update_s(row, side)
    chips = side.pool.count
    capacity = side.alone.capacity_bytes or (side.chip.memory_bytes if side.chip is not None else None)
    return StagePool(
        side.name, tuple(_sizing(row, side, count, parts, update_s) for count in row.micro_batches),
        tuple(state_bytes(layer, row.workload) / chips for layer in row.layers),
        None if capacity is None else chip_room_bytes(row.workload, capacity, side.pool.kind, chips, _scratch(row, chips)),
        tuple(update_s * part for part in _parameter_parts(row.layers)),
    )


def _scratch(row: _Row, chips: int) -> float:
    """Return scratch room of any stage, in the finest micro-batches; that of the layer that needs most is with what it keeps."""
    others = [scratch_bytes(block) for block in row.workload.blocks if block.name != row.hungriest]
    return max(others, default=0.0) / (max(row.micro_batches) * chips)


def _sizing(row: _Row, side: Side, count: int, parts: Sequence[float], update_s: float) -> Sizing:
    assert side.pace is not None
    workload = row.workload
    micro_s = max(0.0, side.pace.seconds(workload.batch // count) - update_s)
    forward = workload.flop_forward / (workload.flop_per_step or 1) if workload.trains else 1.0
    return Sizing(
        count, tuple(micro_s * part * forward for part in parts), tuple(micro_s * part * (1.0 - forward) for part in parts),
        tuple(_held(row, layer, side) / count / side.pool.count for layer in row.layers),
    )


def _held(row: _Row, layer: Layer, side: Side) -> float:
    """Return what a layer holds of the whole batch while it waits for its backward pass, the largest scratch room among it."""
    kept = _kept(layer, side) if row.workload.trains else 0.0
    last = next(other for other in reversed(row.layers) if other.block == row.hungriest)
    return kept + (scratch_bytes(_block(row, layer)) if layer is last else 0.0)


def _block(row: _Row, layer: Layer) -> Block:
    return next(block for block in row.workload.blocks if block.name == layer.block)


def _kept(layer: Layer, side: Side) -> float:
    """Return what a layer keeps of the whole batch: only its input where the pool's plan computes activations again."""
    again = side.alone is not None and side.alone.candidate.plan.remat
    return min(layer.input_bytes or layer.kept_bytes, layer.kept_bytes) if again else layer.kept_bytes


def _update_s(row: _Row, side: Side) -> float:
    """Return seconds of the update of the whole model: its bytes through memory, no more than a part of a small step."""
    if not row.workload.trains or side.chip is None or side.chip.memory_bytes_per_s is None or side.pace is None:
        return 0.0
    seconds = update_work(row.workload).traffic_bytes / (side.pool.count * side.chip.memory_bytes_per_s)
    return min(seconds, BELIEFS.fixed_share * side.pace.seconds(side.pace.grain))


def _parameter_parts(layers: Sequence[Layer]) -> tuple[float, ...]:
    whole = sum(layer.parameter_count for layer in layers)
    return tuple(layer.parameter_count / whole if whole else 0.0 for layer in layers)


def _crossing(row: _Row, count: int) -> Crossing:
    """Return what crosses after each layer: the next one's input forward, its gradient back in the same width."""
    sizes = tuple(layer.input_bytes / count for layer in row.layers[1:])
    return Crossing(count, sizes, sizes if row.workload.trains else (0.0,) * len(sizes))


def _planned(given: Given, row: _Row, problem: PipelineProblem, found: PipelinePlan) -> Planned:
    by_name = {side.name: side for side in row.sides}
    priced = given.priced(
        found.seconds, [(by_name[stage.pool], stage.busy_s) for stage in found.stages],
        f"{len(row.layers)} layers, {found.micro_batches} micro-batches, {found.schedule}",
    )
    shares = tuple(_share(by_name[stage.pool], stage, found, row) for stage in found.stages)
    gap = "" if found.proved else f", at most {found.gap:.1%} above the best"
    cuts = " | ".join(f"{stage.stop - stage.first} layers on {pool_words(by_name[stage.pool].pool)}" for stage in found.stages)
    return Planned(
        "pipeline", *priced, found.terms, shares, found.moves, found.timeline, curves=lambda: _by_bandwidth(problem, found),
        said=f"{cuts}, {found.micro_batches} micro-batches{gap}",
    )


def _by_bandwidth(problem: PipelineProblem, found: PipelinePlan) -> Curves:
    """Return the curve of the step against the links' rate, planned again at each, and where the best pool alone is as fast."""
    rates = [link.bytes_per_s for row in problem.links for link in row if link is not None]
    single = found.best_single
    if not rates or single is None or single.seconds is None:
        return (), ()

    def seconds(rate: float) -> float:
        plan = plan_pipeline(replace(problem, links=with_bandwidth(problem.links, rate)))
        return plan.seconds if plan is not None else float("inf")

    curves, turns = bandwidth_of(seconds, min(rates), single.seconds)
    points = layer_curve(problem, POINTS)
    now = dict(found.fractions).get(problem.pools[0].name, 0.0)
    best = min(points, key=lambda point: point[1])[0] if points else None
    return (Curve("share", points, now, best, None, single.seconds), *curves), turns


def _share(side: Side, stage: Stage, found: PipelinePlan, row: _Row) -> Share:
    fraction = dict(found.fractions)[stage.pool]
    names = row.layers[stage.first].name, row.layers[stage.stop - 1].name
    return Share(
        side.joined, side.runtime, fraction, float(stage.stop - stage.first), "layers", stage.busy_s, stage.wait_s,
        stage.memory_bytes, f"{names[0]} to {names[1]}, {stage.in_flight} micro-batches in flight",
    )
