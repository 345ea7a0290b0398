"""Parts of a workload's step placed by kind: embedding tables and what is irregular here, the dense rest there.

Only where there is such a part: elsewhere a placement is a pipeline with one micro-batch.
"""

from advisor.memory import chip_room_bytes, input_bytes, workspace_bytes
from advisor.split.bandwidth import bandwidth_of
from advisor.split.given import TOGETHER, Given
from advisor.split.judgement import Curves, Planned
from advisor.split.layers import Layer, parts_on, state_bytes
from advisor.split.operators import plan_operators, seconds_at
from advisor.split.operators_words import Flow, NoPlacement, On, OperatorPlan, OperatorProblem, Part
from advisor.split.sides import Side
from core.ops import DTYPE_BYTES
from core.sketching import output_of
from core.split import Share, pool_words
from core.workload import Block, Workload

IRREGULAR = ("embedding_bag",)
"""Blocks whose work is scattered rows: they need memory, not arithmetic, and take nothing from the blocks before them."""
WAY = "prefetch"


def operators_of(given: Given) -> Planned:
    """Return the best placement of a workload's parts over two pools or more."""
    workload = given.workload
    if not any(block.kind in IRREGULAR for block in workload.blocks) or output_of(workload) > 0:
        said = "no embedding tables or other irregular parts that could lie apart from the dense rest"
        return Planned("operators", missing=(said,), said=said)
    able = [index for index, side in enumerate(given.sides) if side.alone is not None and side.alone.step_time_s is not None]
    if len(able) < TOGETHER:
        return given.without("operators", able)
    sides = tuple(given.sides[index] for index in able)
    problem = OperatorProblem(
        tuple(side.name for side in sides), _parts(workload, sides), _flows(workload),
        given.links_of(able), tuple(_room(workload, side) for side in sides),
        least_pools=TOGETHER,
    )
    found = plan_operators(problem, WAY)
    if isinstance(found, NoPlacement):
        reasons = given.unknown or found.missing
        return Planned("operators", missing=reasons, said="; ".join(reasons))
    return _planned(given, sides, problem, found)


def _room(workload: Workload, side: Side) -> float | None:
    capacity, chips = None if side.alone is None else side.alone.capacity_bytes, side.pool.count
    scratch = workspace_bytes(workload) / chips
    return None if capacity is None else chips * chip_room_bytes(workload, capacity, side.pool.kind, chips, scratch)


def _layers(workload: Workload) -> tuple[Layer, ...]:
    """Return each block as one layer, whatever its repeats."""
    return tuple(
        Layer(block.name, block.name, 1.0, block.repeats * block.parameter_count, float(block.repeats * block.activation_bytes),
              input_bytes(block, workload.dtype))
        for block in workload.blocks
    )  # fmt: skip


def _parts(workload: Workload, sides: tuple[Side, ...]) -> tuple[Part, ...]:
    layers = _layers(workload)
    shares = [parts_on(side.alone, workload, layers) for side in sides if side.alone is not None]
    forward = workload.flop_forward / (workload.flop_per_step or 1) if workload.trains else 1.0
    found: list[Part] = []
    for index, (layer, block) in enumerate(zip(layers, workload.blocks, strict=True)):
        memory = state_bytes(layer, workload) + (layer.kept_bytes if workload.trains else 0.0)
        columns: list[On] = []
        for side, parts in zip(sides, shares, strict=True):
            assert side.alone is not None
            assert side.alone.step_time_s is not None
            seconds = side.alone.step_time_s.mid * parts[index]
            columns.append(On(seconds * forward, seconds * (1.0 - forward), memory))
        found.append(Part(layer.name, tuple(columns), int(block.kind in IRREGULAR)))
    return tuple(found)


def _flows(workload: Workload) -> tuple[Flow, ...]:
    """Return what goes between blocks: along the row, past irregular ones, whose rows join at the block that follows them."""
    flows: list[Flow] = []
    waiting: list[int] = []
    for index, block in enumerate(workload.blocks):
        if block.kind not in IRREGULAR:
            flows.extend(_flow(workload, source, index) for source in waiting)
            waiting = []
        waiting.append(index)
    return tuple(flows)


def _flow(workload: Workload, source: int, target: int) -> Flow:
    size = _output_bytes(workload, workload.blocks[source], workload.blocks[target])
    return Flow(source, target, size, size if workload.trains else 0.0)


def _output_bytes(workload: Workload, block: Block, following: Block) -> float:
    """Return bytes of what a block hands on: rows of its tables where it looks up, else all that the next one takes."""
    sizes = dict(block.sizes)
    if block.kind in IRREGULAR:
        tables, width = sizes.get("tables"), sizes.get("width")
        assert isinstance(tables, int)
        assert isinstance(width, int)
        return float(workload.batch * tables * width * DTYPE_BYTES[workload.dtype])
    widths = sizes.get("widths")
    if isinstance(widths, tuple):
        return float(workload.batch * widths[-1] * DTYPE_BYTES[workload.dtype])
    return input_bytes(following, workload.dtype)


def _planned(given: Given, sides: tuple[Side, ...], problem: OperatorProblem, found: OperatorPlan) -> Planned:
    fractions = dict(found.fractions)
    busy = [
        sum(part.on[pool].seconds for part, at in zip(problem.parts, found.placed, strict=True) if at == pool)
        for pool in range(len(sides))
    ]
    priced = given.priced(
        found.seconds, [(side, own) for side, own in zip(sides, busy, strict=True) if own > 0],
        f"{len(problem.parts)} parts placed, {found.way}",
    )
    shares: list[Share] = []
    for pool, side in enumerate(sides):
        names = [part.name for part, at in zip(problem.parts, found.placed, strict=True) if at == pool]
        shares.append(Share(
            side.joined, side.runtime, fractions.get(side.name, 0.0), float(len(names)), "parts", busy[pool],
            max(0.0, found.seconds - busy[pool]), found.memory_bytes[pool] / side.pool.count, ", ".join(names),
        ))
    said = "; ".join(f"{share.detail} on {pool_words(share.pool)}" for share in shares if share.detail)
    return Planned(
        "operators", *priced, found.terms, tuple(shares), found.moves, found.timeline, said=said,
        curves=lambda: _curves(problem, found),
        missing=(found.said,) if found.said else (),
    )


def _curves(problem: OperatorProblem, found: OperatorPlan) -> Curves:
    rates = [link.bytes_per_s for row in problem.links for link in row if link is not None]
    single = found.best_single
    if not rates or single is None or single.seconds is None:
        return (), ()
    return bandwidth_of(lambda rate: seconds_at(problem, rate, WAY), min(rates), single.seconds)
