"""Small workflows by seed, an independent check of plans, and the optimum by trying everything."""

import itertools
from dataclasses import dataclass
from random import Random

from advisor.split.stages_words import Edge, Stage, StageOption, StagePool, StagesPlan, StagesProblem, Wire
from core.device import Link
from core.workflow import FormChange, WorkflowStore

LEVEL = {"time": 0, "cost": 1, "energy": 2}


def workflow(seed: int, objective: str = "time", most_stages: int = 4, most_pools: int = 3) -> StagesProblem:
    """Return a random workflow of at most four stages on at most three pools, with whole seconds."""
    chance = Random(seed)
    pools = tuple(
        StagePool(
            f"pool{index}", float(chance.choice((0, 36, 72, 360))), float(chance.choice((100, 400))),
            slots=chance.choice((1, 1, 1, 2)), quota_h=chance.choice((None, None, None, 40 / 3600)),
        )
        for index in range(chance.randint(2, most_pools))
    )  # fmt: skip
    forms = chance.choice((("", ""), ("torch", "jax")))
    stages: list[Stage] = []
    edges: list[Edge] = []
    for index in range(chance.randint(2, most_stages)):
        options = tuple(
            StageOption(pool.name, float(chance.randint(1, 20)), "", forms[place % 2], forms[place % 2])
            for place, pool in enumerate(pools)
            if chance.random() < 0.85
        )
        stages.append(Stage(f"stage{index}", options or (StageOption("pool0", 5.0),)))
        edges += [
            Edge(f"stage{before}", f"stage{index}", chance.choice((0.0, 2e9, 8e9)), streamed=chance.random() < 0.25)
            for before in range(index)
            if chance.random() < 0.5
        ]
    pairs = list(itertools.combinations([pool.name for pool in pools], 2))
    wires = tuple(Wire(pair, Link(1.0, chance.choice((1e9, 2e9))), 0.5) for pair in pairs if chance.random() < 0.7)
    store = WorkflowStore(1e9, 1e9, 0.125, 1.0) if chance.random() < 0.8 else None
    conversions = (FormChange("torch", "jax", 2.0, 4e9, 0.25, "check"), FormChange("jax", "torch", 3.0))
    conversions = conversions[: chance.choice((1, 2, 2, 2))]
    return StagesProblem(tuple(stages), tuple(edges), pools, wires, store, conversions, objective)


@dataclass(frozen=True, slots=True)
class Way:
    """Seconds and USD of one hand-over."""

    seconds: float
    usd: float


def ways(problem: StagesProblem, edge: Edge, source: StageOption, target: StageOption) -> list[Way]:
    """Return every way of a hand-over between two options."""
    seconds, usd = 0.0, 0.0
    if source.writes and target.reads and source.writes != target.reads:
        fitting = [one for one in problem.conversions if (one.source, one.target) == (source.writes, target.reads)]
        if not fitting:
            return []
        seconds = fitting[0].seconds + (edge.size_bytes / fitting[0].bytes_per_s if fitting[0].bytes_per_s else 0.0)
        usd = fitting[0].usd
    if source.pool == target.pool:
        return [Way(seconds, usd)]
    found = [
        Way(seconds + wire.link.latency_s + edge.size_bytes / wire.link.bytes_per_s,
            usd + wire.usd_per_gb * edge.size_bytes / 1e9)
        for wire in problem.wires
        if {*wire.pools} == {source.pool, target.pool}
    ]  # fmt: skip
    if problem.store is not None:
        moved = edge.size_bytes / problem.store.up_bytes_per_s + edge.size_bytes / problem.store.down_bytes_per_s
        found.append(
            Way(seconds + problem.store.latency_s + moved, usd + problem.store.usd_per_gb * edge.size_bytes / 1e9)
        )
    return found


def every_plan(problem: StagesProblem) -> list[tuple[float, float, float]]:
    """Return (seconds, USD, joules) of every placement, way and order that keeps the quotas, times as early as they can be."""
    found: list[tuple[float, float, float]] = []
    usable = [[option for option in stage.options if option.seconds is not None] for stage in problem.stages]
    for chosen in itertools.product(*usable):
        of = dict(zip((stage.name for stage in problem.stages), chosen, strict=True))
        choices = [ways(problem, edge, of[edge.source], of[edge.target]) for edge in problem.edges]
        for taken in itertools.product(*choices):
            found += _timed(problem, of, taken)
    return found


def _groups(problem: StagesProblem) -> list[frozenset[str]]:
    """Return stages that start together."""
    groups = [{stage.name} for stage in problem.stages]
    for edge in problem.edges:
        if edge.streamed:
            first = next(group for group in groups if edge.source in group)
            second = next(group for group in groups if edge.target in group)
            if first is not second:
                groups.remove(second)
                first |= second
    return [frozenset(group) for group in groups]


def _timed(problem: StagesProblem, of: dict[str, StageOption], taken: tuple[Way, ...]) -> list[tuple[float, float, float]]:
    groups = _groups(problem)
    lasts: list[float] = []
    for group in groups:
        pools = {of[name].pool for name in group}
        work = [sum(of[name].seconds or 0.0 for name in group if of[name].pool == pool) for pool in pools]
        moved = [way.seconds for edge, way in zip(problem.edges, taken, strict=True) if edge.streamed and edge.source in group]
        lasts.append(max(*work, *moved) if len(work) + len(moved) > 1 else work[0])
    used = [{of[name].pool for name in group} for group in groups]
    usd, joules = sum(way.usd for way in taken), 0.0
    for pool in problem.pools:
        held = sum(last for last, names in zip(lasts, used, strict=True) if pool.name in names)
        if pool.quota_h is not None and held > pool.quota_h * 3600 + 1e-6:
            return []
        usd += held * (pool.usd_per_h or 0.0) / 3600
        joules += held * (pool.power_w or 0.0)
    return [(end, usd, joules) for end in _ends(problem, groups, lasts, used, taken)]


def _ends(
    problem: StagesProblem, groups: list[frozenset[str]], lasts: list[float], used: list[set[str]], taken: tuple[Way, ...]
) -> list[float]:
    """Return the end of every order of the groups in which none comes before what it waits for."""
    found: list[float] = []
    for order in itertools.permutations(range(len(groups))):
        ends: dict[str, float] = {}
        free = {pool.name: [0.0] * pool.slots for pool in problem.pools}
        for index in order:
            inbound = [(edge, way) for edge, way in zip(problem.edges, taken, strict=True)
                       if edge.target in groups[index] and not edge.streamed]  # fmt: skip
            if any(edge.source not in ends for edge, _ in inbound):
                break
            ready = max([0.0, *(ends[edge.source] + way.seconds for edge, way in inbound)])
            start = max(ready, *(min(free[pool]) for pool in used[index]))
            for pool in used[index]:
                free[pool][free[pool].index(min(free[pool]))] = start + lasts[index]
            ends |= dict.fromkeys(groups[index], start + lasts[index])
        else:
            found.append(max(ends.values()))
    return found


def faults(problem: StagesProblem, plan: StagesPlan) -> list[str]:
    """Return what is wrong with a plan, judged from its stages alone."""
    said: list[str] = []
    at = {one.stage: one for one in plan.placed}
    options = {(stage.name, option.pool): option for stage in problem.stages for option in stage.options}
    for stage in problem.stages:
        one = at[stage.name]
        option = options.get((stage.name, one.pool))
        if option is None or option.seconds is None or abs(option.seconds - one.busy_s) > 1e-6:
            said.append(f"{stage.name} cannot run on {one.pool}")
        if one.stop_s - one.start_s < one.busy_s - 1e-6 or one.start_s < 0:
            said.append(f"{stage.name} is too short")
    for edge in problem.edges:
        source, target = at[edge.source], at[edge.target]
        found = ways(problem, edge, options[edge.source, source.pool], options[edge.target, target.pool])
        fastest = min((way.seconds for way in found), default=float("inf"))
        if edge.streamed and (abs(source.start_s - target.start_s) > 1e-6 or source.stop_s - source.start_s < fastest - 1e-6):
            said.append(f"{edge.source} does not stream to {edge.target}")
        if not edge.streamed and target.start_s < source.stop_s + fastest - 1e-6:
            said.append(f"{edge.target} starts before {edge.source} has handed over")
    for pool in problem.pools:
        said += _crowd(problem, plan, pool)
    return said


def _crowd(problem: StagesProblem, plan: StagesPlan, pool: StagePool) -> list[str]:
    """Return where more runs on a pool than it has slots; stages that stream share one."""
    groups = _groups(problem)
    mine: dict[frozenset[str], tuple[float, float]] = {}
    for one in plan.placed:
        if one.pool == pool.name:
            mine[next(group for group in groups if one.stage in group)] = one.start_s, one.stop_s
    spans = [span for span in mine.values() if span[1] > span[0]]
    crowded = any(sum(start <= at[0] + 1e-6 < stop - 1e-6 for start, stop in spans) > pool.slots for at in spans)
    over = pool.quota_h is not None and sum(stop - start for start, stop in spans) > pool.quota_h * 3600 + 1e-6
    return [f"{pool.name} is crowded"] * crowded + [f"{pool.name} is over its quota"] * over
