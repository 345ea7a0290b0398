"""A workflow as the solvers see it: stages and pools by number, streamed stages joined into tasks, every hand-over priced.

Stages that stream to each other start together and last as long as the slowest of them, so that they are one task over several
pools. A hand-over between two pools has a fastest and a cheapest way, by wire or by store; where they differ, the solver chooses.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from advisor.split.stages_words import Edge, StageOption, StagesProblem
from core.errors import BadInput
from core.workflow import FormChange

SECONDS_PER_H = 3600.0
BYTES_PER_GB = 1e9


@dataclass(frozen=True, slots=True)
class Crossing:
    """How one hand-over goes between two given pools.

    Args:
        seconds: with its conversion.
        usd: with its conversion.
        via: `network`, `object store`, or empty on one pool.
        convert_s: of `seconds`.
        warning: of the conversion.
    """

    seconds: float
    usd: float
    via: str = ""
    convert_s: float = 0.0
    warning: str = ""


Matrix = dict[tuple[int, int], Crossing]


@dataclass(frozen=True, slots=True)
class Model:
    """A problem by number.

    Args:
        problem: that it is of.
        options: of each stage, by pool; only those that may be used under the objective.
        tasks: stages that start together, in an order in which no task waits for a later one.
        task_of: of each stage.
        ends: (source, target) of each edge.
        inbound: of each task, (edge, task that it comes from, source, target) of all that must have come before it starts.
        fast, cheap: of each edge, the fastest and the cheapest way for every pair of pools that can hand over.
        usd_per_s, watts: of each pool.
        quota_s: of each pool.
    """

    problem: StagesProblem
    options: tuple[dict[int, StageOption], ...]
    tasks: tuple[tuple[int, ...], ...]
    task_of: tuple[int, ...]
    ends: tuple[tuple[int, int], ...]
    inbound: tuple[tuple[tuple[int, int, int, int], ...], ...]
    fast: tuple[Matrix, ...]
    cheap: tuple[Matrix, ...]
    usd_per_s: tuple[float | None, ...]
    watts: tuple[float | None, ...]
    quota_s: tuple[float | None, ...]

    def seconds(self, stage: int, pool: int) -> float:
        """Return the seconds of a stage on a pool that it has an option for."""
        return self.options[stage][pool].seconds or 0.0

    def crossing(self, edge: int, source: int, target: int, *, cheapest: bool) -> Crossing:
        """Return how an edge crosses between two pools; raises KeyError where it cannot."""
        return (self.cheap if cheapest else self.fast)[edge][source, target]

    def streamed(self, edge: int) -> bool:
        """Whether an edge feeds its target while its source runs."""
        return self.problem.edges[edge].streamed


def build_model(problem: StagesProblem) -> Model:
    """Return a problem by number.

    Raises:
        BadInput: names that are twice or unknown, a cycle, numbers below zero.
    """
    _check(problem)
    stage_of = {stage.name: index for index, stage in enumerate(problem.stages)}
    pool_of = {pool.name: index for index, pool in enumerate(problem.pools)}
    prices = tuple(None if pool.usd_per_h is None else pool.usd_per_h / SECONDS_PER_H for pool in problem.pools)
    watts = tuple(pool.power_w for pool in problem.pools)
    usable = [
        (price is not None or (problem.objective != "cost" and problem.budget_usd is None))
        and (problem.objective != "energy" or power is not None)
        for price, power in zip(prices, watts, strict=True)
    ]
    options = tuple(
        {pool_of[one.pool]: one for one in stage.options if one.seconds is not None and usable[pool_of[one.pool]]}
        for stage in problem.stages
    )
    ends = tuple((stage_of[edge.source], stage_of[edge.target]) for edge in problem.edges)
    tasks, task_of = _tasks(problem, ends)
    prices_between = _Ways(problem)
    both = [prices_between.matrices(edge, options[s], options[t]) for edge, (s, t) in zip(problem.edges, ends, strict=True)]
    inbound: list[list[tuple[int, int, int, int]]] = [[] for _ in tasks]
    for edge, (s, t) in enumerate(ends):
        if not problem.edges[edge].streamed:
            inbound[task_of[t]].append((edge, task_of[s], s, t))
    quotas = tuple(None if pool.quota_h is None else pool.quota_h * SECONDS_PER_H for pool in problem.pools)
    return Model(
        problem, options, tasks, task_of, ends, tuple(map(tuple, inbound)), tuple(fast for fast, _ in both),
        tuple(cheap for _, cheap in both), prices, watts, quotas,
    )  # fmt: skip


def _check(problem: StagesProblem) -> None:
    stages, pools = [stage.name for stage in problem.stages], [pool.name for pool in problem.pools]
    for what, names in (("stage", stages), ("pool", pools)):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise BadInput(f"{what} {twice[0]!r} twice", f"every {what} once", "rename one of them")
    if not stages or not pools:
        raise BadInput(f"{len(stages)} stages and {len(pools)} pools", "at least one of each", "add what is missing")
    known_stages, known_pools = {*stages}, {*pools}
    for edge in problem.edges:
        for name in (edge.source, edge.target):
            if name not in known_stages:
                raise BadInput(f"an edge of stage {name!r}", "a stage of the workflow", "correct the name")
    named: list[tuple[str, list[str]]] = [(stage.name, [option.pool for option in stage.options]) for stage in problem.stages]
    named += [("a wire", list(wire.pools)) for wire in problem.wires]
    named += [("the store", list(problem.store.pools))] if problem.store else []
    for who, used in named:
        for name in used:
            if name not in known_pools:
                raise BadInput(f"pool {name!r} of {who}", f"one of {', '.join(pools[:12])}", "correct the name")
        if len(set(used)) < len(used):
            raise BadInput(f"a pool of {who} twice", "every pool once", "remove one of them")
    for number, name in _numbers(problem):
        if not 0 <= number < float("inf"):
            raise BadInput(f"{number:g} for {name}", "a finite number, not below zero", "correct it")


def _numbers(problem: StagesProblem) -> Iterator[tuple[float, str]]:
    for stage in problem.stages:
        yield from ((option.seconds or 0.0, f"seconds of {stage.name} on {option.pool}") for option in stage.options)
    for edge in problem.edges:
        yield edge.size_bytes, f"bytes from {edge.source} to {edge.target}"
    for pool in problem.pools:
        named = ((pool.usd_per_h, "price"), (pool.power_w, "power"), (pool.quota_h, "quota"), (pool.slots - 1, "slots over one"))
        yield from ((number or 0.0, f"{what} of {pool.name}") for number, what in named)
    for wire in problem.wires:
        yield wire.link.latency_s, f"latency between {' and '.join(wire.pools)}"
        yield wire.usd_per_gb, f"price between {' and '.join(wire.pools)}"
        yield 1 / wire.link.bytes_per_s if wire.link.bytes_per_s > 0 else -1.0, f"1 / rate between {' and '.join(wire.pools)}"
    for one in problem.conversions:
        yield one.seconds, f"seconds from {one.source} to {one.target}"
        yield one.usd, f"price from {one.source} to {one.target}"
    if problem.store is not None:
        yield problem.store.latency_s, "latency of the store"
        yield problem.store.usd_per_gb, "price of the store"
        for rate in (problem.store.up_bytes_per_s, problem.store.down_bytes_per_s):
            yield 1 / rate if rate > 0 else -1.0, "1 / rate of the store"


def _tasks(problem: StagesProblem, ends: tuple[tuple[int, int], ...]) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Return stages joined by streams, in an order in which they can run, and the task of each stage."""
    leader = list(range(len(problem.stages)))

    def lead(stage: int) -> int:
        while leader[stage] != stage:
            leader[stage] = leader[leader[stage]]
            stage = leader[stage]
        return stage

    for edge, (source, target) in zip(problem.edges, ends, strict=True):
        if edge.streamed:
            leader[lead(source)] = lead(target)
    whole: TopologicalSorter[int] = TopologicalSorter({stage: set[int]() for stage in range(len(problem.stages))})
    joined: TopologicalSorter[int] = TopologicalSorter({lead(stage): set[int]() for stage in range(len(problem.stages))})
    for edge, (source, target) in zip(problem.edges, ends, strict=True):
        whole.add(target, source)
        if not edge.streamed:
            joined.add(lead(target), lead(source))
    try:
        tuple(whole.static_order())
        order = tuple(joined.static_order())
    except CycleError as error:
        cycle: list[int] = error.args[1]
        names = [problem.stages[stage].name for stage in reversed(cycle)]
        if len({*names}) == 1:
            names = [names[0], "what streams with it", names[0]]
        raise BadInput(f"stages that wait for each other: {' -> '.join(names)}", "a workflow without a cycle",
                       "remove an edge, or stream none or all of them") from None  # fmt: skip
    members: dict[int, list[int]] = {}
    for stage in range(len(problem.stages)):
        members.setdefault(lead(stage), []).append(stage)
    place = {leading: index for index, leading in enumerate(order)}
    return tuple(tuple(members[leading]) for leading in order), tuple(place[lead(s)] for s in range(len(problem.stages)))


class _Ways:
    """Prices hand-overs; what does not depend on the edge's size is looked up once."""

    def __init__(self, problem: StagesProblem) -> None:
        self.problem = problem
        self.wires = {frozenset(wire.pools): wire for wire in reversed(problem.wires)}
        self.conversions = {(one.source, one.target): one for one in reversed(problem.conversions)}

    def matrices(self, edge: Edge, sources: dict[int, StageOption], targets: dict[int, StageOption]) -> tuple[Matrix, Matrix]:
        """Return the fastest and the cheapest crossings of an edge."""
        fast: Matrix = {}
        cheap: Matrix = {}
        known: dict[tuple[str, str], FormChange | None] = {}
        for p, source in sources.items():
            for q, target in targets.items():
                forms = (source.writes, target.reads)
                if forms not in known:
                    known[forms] = self._conversion(*forms)
                conversion, ways = known[forms], self._ways(edge.size_bytes, source.pool, target.pool)
                if conversion is None or not ways:
                    continue
                priced = [_with(way, conversion, edge.size_bytes) for way in ways]
                fast[p, q] = min(priced, key=lambda way: (way.seconds, way.usd))
                cheap[p, q] = min(priced, key=lambda way: (way.usd, way.seconds))
        return fast, cheap

    def _conversion(self, source: str, target: str) -> FormChange | None:
        if not source or not target or source == target:
            return FormChange(source, target)
        return self.conversions.get((source, target))

    def _ways(self, size_bytes: float, source: str, target: str) -> list[Crossing]:
        if source == target:
            return [Crossing(0.0, 0.0)]
        found: list[Crossing] = []
        size_gb = size_bytes / BYTES_PER_GB
        wire, store = self.wires.get(frozenset((source, target))), self.problem.store
        if wire is not None:
            found.append(Crossing(wire.link.latency_s + size_bytes / wire.link.bytes_per_s, size_gb * wire.usd_per_gb, "network"))
        if store is not None and (not store.pools or {source, target} <= {*store.pools}):
            seconds = store.latency_s + size_bytes / store.up_bytes_per_s + size_bytes / store.down_bytes_per_s
            found.append(Crossing(seconds, size_gb * store.usd_per_gb, "object store"))
        return found


def _with(way: Crossing, conversion: FormChange, size_bytes: float) -> Crossing:
    seconds = conversion.seconds + (size_bytes / conversion.bytes_per_s if conversion.bytes_per_s else 0.0)
    return Crossing(way.seconds + seconds, way.usd + conversion.usd, way.via, seconds, conversion.warning)
