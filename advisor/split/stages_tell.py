"""A placement told as a plan: bars, moves, what each pool does, and the terms of the chain that decides the end."""

from advisor.split.stages_list import Draft, chain
from advisor.split.stages_model import Model
from advisor.split.stages_words import PlacedStage, PoolUse, StagesPlan
from core.split import Bar, Move


def told(model: Model, draft: Draft, bound: float, gap: float) -> StagesPlan:
    """Return the plan of a draft.

    Args:
        model: of the problem.
        draft: the placement, with exact times.
        bound: nothing is better.
        gap: how far that is off.
    """
    problem = model.problem
    placed = tuple(_placed(model, draft, stage) for stage in range(len(problem.stages)))
    used = {*draft.pools}
    prices = [model.usd_per_s[pool] for pool in used]
    watts = [model.watts[pool] for pool in used]
    moves, moving = _moves(model, draft)
    return StagesPlan(
        objective=problem.objective,
        placed=placed,
        seconds=draft.seconds,
        cost_usd=None if None in prices else draft.usd,
        energy_j=None if None in watts else draft.joules,
        bound=bound,
        gap=gap,
        uses=_uses(model, draft, placed),
        terms=_terms(model, draft),
        moves=moves,
        timeline=tuple(sorted((*_working(model, draft), *moving), key=lambda bar: (bar.start_s, bar.stop_s, bar.lane))),
        warnings=_warnings(model, draft),
    )


def _placed(model: Model, draft: Draft, stage: int) -> PlacedStage:
    task, pool = model.task_of[stage], draft.pools[stage]
    start, last, busy = draft.starts[task], draft.lasts[task], model.seconds(stage, pool)
    names = model.problem
    return PlacedStage(names.stages[stage].name, names.pools[pool].name, start, start + last, busy)


def _working(model: Model, draft: Draft) -> list[Bar]:
    """Return the bars of all stages; those that stream on one pool share it and are drawn one after the other."""
    bars: list[Bar] = []
    for task, members in enumerate(model.tasks):
        stop = draft.starts[task] + draft.lasts[task]
        done = {draft.pools[stage]: draft.starts[task] for stage in members}
        for stage in members:
            pool, start = draft.pools[stage], done[draft.pools[stage]]
            done[pool] = start + model.seconds(stage, pool)
            name = model.problem.stages[stage].name
            bars.append(Bar(model.problem.pools[pool].name, start, done[pool], "compute", name))
        waits = [(pool, at) for pool, at in done.items() if stop - at > 1e-9 * max(1.0, stop)]
        bars += [
            Bar(model.problem.pools[pool].name, at, stop, "wait", "keeps pace with what it streams with") for pool, at in waits
        ]
    return bars


def _moves(model: Model, draft: Draft) -> tuple[tuple[Move, ...], list[Bar]]:
    """Return what crosses between pools, and its bars on a lane of its own for each pair."""
    moves: list[Move] = []
    bars: list[Bar] = []
    problem = model.problem
    for index, (edge, (source, target)) in enumerate(zip(problem.edges, model.ends, strict=True)):
        p, q = draft.pools[source], draft.pools[target]
        way = model.crossing(index, p, q, cheapest=draft.cheapest[index])
        if not way.via and way.convert_s <= 0:
            continue
        first, second = model.task_of[source], model.task_of[target]
        start = draft.starts[first] if edge.streamed else draft.starts[first] + draft.lasts[first]
        whole = max(0.0, way.seconds - _work(model, draft, first))
        exposed = whole if edge.streamed else _exposed(draft, start, way.seconds, second)
        kind = f"{edge.source} to {edge.target}" + (f" by {way.via}" if way.via else ", converted")
        size_bytes = edge.size_bytes if way.via else 0.0
        moves.append(Move(kind, problem.pools[p].name, problem.pools[q].name, size_bytes, way.seconds, exposed))
        lane = f"{problem.pools[p].name} to {problem.pools[q].name}"
        bars.append(Bar(lane, start, start + way.seconds, "move", kind))
    return tuple(moves), bars


def _exposed(draft: Draft, ready: float, moved: float, task: int) -> float:
    """Return what of a move the task that it feeds really waits for: nothing where it waits longer for something else."""
    return moved if abs(draft.starts[task] - (ready + moved)) <= 1e-9 * max(1.0, draft.starts[task]) else 0.0


def _work(model: Model, draft: Draft, task: int) -> float:
    """Return the seconds of the busiest pool of a task."""
    work: dict[int, float] = {}
    for stage in model.tasks[task]:
        work[draft.pools[stage]] = work.get(draft.pools[stage], 0.0) + model.seconds(stage, draft.pools[stage])
    return max(work.values())


def _uses(model: Model, draft: Draft, placed: tuple[PlacedStage, ...]) -> tuple[PoolUse, ...]:
    total = sum(one.busy_s for one in placed)
    found: list[PoolUse] = []
    for index, pool in enumerate(model.problem.pools):
        mine = [one for one in placed if one.pool == pool.name]
        busy = sum(one.busy_s for one in mine)
        fraction = busy / total if total > 0 else len(mine) / len(placed)
        waits = max(0.0, draft.seconds * pool.slots - busy)
        found.append(PoolUse(pool.name, fraction, len(mine), busy, draft.held_s[index], waits))
    return tuple(found)


def _terms(model: Model, draft: Draft) -> tuple[tuple[str, float], ...]:
    """Return where the time goes along the chain that decides the end."""
    work: dict[str, float] = {}
    deciding = chain(model, draft)
    moved = converted = 0.0
    for index, task in enumerate(deciding):
        last = draft.lasts[task]
        names = " + ".join(sorted({model.problem.pools[draft.pools[stage]].name for stage in model.tasks[task]}))
        work[names] = work.get(names, 0.0) + last
        if index:
            before = deciding[index - 1]
            gap = draft.starts[task] - draft.starts[before] - draft.lasts[before]
            converting = _converting(model, draft, before, task) if gap > 0 else 0.0
            moved, converted = moved + gap - min(gap, converting), converted + min(gap, converting)
    terms = [(f"stages on {name}", seconds) for name, seconds in sorted(work.items())]
    return (*terms, *((name, seconds) for name, seconds in (("moves", moved), ("conversions", converted)) if seconds > 0))


def _converting(model: Model, draft: Draft, before: int, task: int) -> float:
    """Return the conversion of the slowest hand-over from one task to another."""
    ways = [
        model.crossing(edge, draft.pools[s], draft.pools[t], cheapest=draft.cheapest[edge])
        for edge, source, s, t in model.inbound[task] if source == before
    ]  # fmt: skip
    return max(ways, key=lambda way: way.seconds).convert_s if ways else 0.0


def _warnings(model: Model, draft: Draft) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for index, (edge, (source, target)) in enumerate(zip(model.problem.edges, model.ends, strict=True)):
        way = model.crossing(index, draft.pools[source], draft.pools[target], cheapest=draft.cheapest[index])
        if way.warning:
            found[f"{edge.source} to {edge.target}: {way.warning}"] = None
    return tuple(found)
