"""The best pipeline among all cuts, orders and numbers of micro-batches, exactly: what cannot win is left out by proven bounds.

A good plan comes first from `advisor.split.pipeline_large`. Then every order of every set of pools is bounded as a whole; where
it may win, its cuts are written out stage by stage, none that already takes longer than the best plan, each is bounded, and
those left are timed. With too many pools or plans the search ends early and says what it has proven.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np

from advisor.split.pipeline_bound import Relaxed, of_plans
from advisor.split.pipeline_schedule import Floats, ahead, depth, step_seconds
from advisor.split.pipeline_tables import Cut, Cuts, Order, Tables

MOST_POOLS = 6
"""So many have all their orders tried: 1,956."""
MOST_PLANS = 1_500_000
"""Plans, begun ones too, that are bounded one by one at most: about a second. Each order counts as `ORDER_COST` by itself."""
ORDER_COST = 800
MOST_ROUNDS = 150e6
"""Passes x plans that are timed at most."""
SAME = 1e-12
"""Relative difference that rounding may make."""
SLACK = 1e-9
"""What a stretch may be too long by, of the sum over all layers: it is timed exactly later."""


@dataclass(slots=True)
class Best:
    """The fastest plan so far, and what is proven.

    Args:
        seconds: infinite until one is found.
        cut, schedule, order, edges: of that plan.
        bound_s: no plan that was left out takes less.
        plans, rounds: plans bounded, and passes x plans timed so far.
    """

    seconds: float = inf
    cut: Cut | None = None
    schedule: str = ""
    order: Order = ()
    edges: tuple[int, ...] = ()
    bound_s: float = inf
    plans: int = 0
    rounds: float = 0.0

    @property
    def enough(self) -> float:
        """What a plan must stay under to be better, roundings left aside."""
        return self.seconds * (1 - SAME) if self.seconds < inf else inf


def prove(tables: Tables, best: Best) -> None:
    """Find the fastest plan, starting from the best so far; `best.bound_s` says what is proven.

    Args:
        tables: of the problem.
        best: is changed.
    """
    best.bound_s = best.seconds
    if len(tables.names) > MOST_POOLS:
        every = tuple(range(len(tables.names)))
        best.bound_s = min(_relaxed(tables, cut, every).of_all() for cut in tables.cuts)
        return
    for bound, cut, order in _groups(tables):
        if bound >= best.enough:
            break
        for schedule in tables.schedules:
            _search(tables, best, cut, schedule, order, bound)
    best.bound_s = min(best.bound_s, best.seconds)


def consider(tables: Tables, best: Best, cut: Cut, schedule: str, order: Order, edges: Cuts) -> bool:
    """Time plans of one order, keep the fastest, and return whether it is faster than before.

    Args:
        tables: of the problem.
        best: is changed.
        cut, schedule, order: of all plans.
        edges: (stages + 1, plans); they fit in memory.
    """
    seconds = step_seconds(tables.times(cut, order, edges), schedule, cut.micro_batches)
    best.rounds += 2.0 * len(order) * cut.micro_batches * (edges.shape[1] + 100)  # a pass costs as much as 100 plans by itself
    index = int(seconds.argmin())
    if not seconds[index] < best.enough:
        return False
    best.seconds = float(seconds[index])
    best.cut, best.schedule, best.order = cut, schedule, order
    best.edges = tuple(int(edge) for edge in edges[:, index])
    return True


def _relaxed(tables: Tables, cut: Cut, pools: tuple[int, ...]) -> Relaxed:
    rows, count = list(pools), cut.micro_batches
    kept = max(ahead(schedule, len(pools) - 1, count) for schedule in tables.schedules)
    return Relaxed(np.diff(cut.forward[rows], axis=1), np.diff(cut.backward[rows], axis=1), count, kept)


def _groups(tables: Tables) -> list[tuple[float, Cut, Order]]:
    """Return every order with every number of micro-batches and its bound, least bound first."""
    groups: list[tuple[float, int, Order]] = []
    known: dict[tuple[int, tuple[int, ...]], Relaxed] = {}
    for stages in range(tables.problem.least_pools, min(len(tables.names), tables.layers) + 1):
        for order in tables.orders(stages):
            pools = tuple(sorted(order))
            for place, cut in enumerate(tables.cuts):
                if (place, pools) not in known:
                    known[place, pools] = _relaxed(tables, cut, pools)
                rows = tuple(pools.index(pool) for pool in order)
                bound = known[place, pools].of_order(rows, *_ways(tables, cut, order))
                groups.append((bound, place, order))
    return [(bound, tables.cuts[place], order) for bound, place, order in sorted(groups)]


def _ways(tables: Tables, cut: Cut, order: Order) -> tuple[float, float]:
    """Return the least seconds of a micro-batch over all links, and on the busiest one way."""
    if len(order) == 1:
        return 0.0, 0.0
    out, back = float(cut.activation_bytes[1:-1].min()), float(cut.gradient_bytes[1:-1].min())
    latency, used = 0.0, [0.0]
    for source, target in pairwise(order):
        forth, home = tables.link(source, target), tables.link(target, source)
        assert forth is not None
        assert home is not None
        latency += forth.latency_s + (home.latency_s if tables.returns else 0.0)
        used += [out / forth.bytes_per_s, back / home.bytes_per_s]
    return latency + sum(used), max(used)


def _search(tables: Tables, best: Best, cut: Cut, schedule: str, order: Order, bound: float) -> None:
    best.plans += ORDER_COST
    edges = _written_out(tables, best, cut, schedule, order)
    if edges is None:
        best.bound_s = min(best.bound_s, bound)
        return
    edges = edges[:, tables.fits(cut, schedule, order, edges)]
    if not edges.shape[1]:
        return
    bounds = of_plans(tables.times(cut, order, edges), schedule, cut.micro_batches)
    queue = np.flatnonzero(bounds < best.enough)
    queue = queue[np.argsort(bounds[queue], kind="stable")]
    begun, size = 0, 32
    while begun < len(queue) and bounds[queue[begun]] < best.enough:
        if best.rounds > MOST_ROUNDS:
            best.bound_s = min(best.bound_s, float(bounds[queue[begun]]))
            return
        consider(tables, best, cut, schedule, order, edges[:, queue[begun : begun + size]])
        begun, size = begun + size, min(4096, 2 * size)


def _written_out(tables: Tables, best: Best, cut: Cut, schedule: str, order: Order) -> Cuts | None:
    """Return the edges of all plans of one order that may be better, (stages + 1, plans); None when they are too many.

    A stage that by itself, with the way to it and back, takes longer than the best plan is never begun, nor one that leaves more
    layers than the stages after it can do in that time, or hold.
    """
    limit_s = best.enough
    stages, layers, count = len(order), tables.layers, cut.micro_batches
    reaches = [_Reach(tables, cut, schedule, order, stage) for stage in range(stages)]
    earliest = [layers] * (stages + 1)
    for stage in reversed(range(stages)):
        earliest[stage] = reaches[stage].first(earliest[stage + 1], limit_s / count)
    if earliest[0] > 0:
        return np.zeros((stages + 1, 0), np.intp)
    edges, spent, rests = np.zeros((1, 1), np.intp), np.zeros(1), _rests(tables, cut, order)
    for stage in range(stages):
        low = np.maximum(edges[-1] + 1, earliest[stage + 1])
        high = np.minimum(layers - (stages - 1 - stage), reaches[stage].stop(edges[-1], (limit_s - spent) / count))
        numbers = np.maximum(0, high - low + 1)
        total = int(numbers.sum())
        best.plans += total
        if best.plans > MOST_PLANS:
            return None
        source = np.repeat(np.arange(len(numbers)), numbers)
        begun = np.cumsum(numbers) - numbers
        stops = low[source] + np.arange(total) - begun[source]
        fine = np.flatnonzero(reaches[stage].least(edges[-1, source], stops, spent[source], rests[stage][stops]) <= limit_s)
        source, stops = source[fine], stops[fine]
        edges = np.vstack([edges[:, source], stops])
        spent = spent[source] + reaches[stage].passed(edges[-2], stops)
        if stage < stages - 1:
            spent = spent + tables.way_s(cut, order[stage], order[stage + 1], stops)
    return edges


def _rests(tables: Tables, cut: Cut, order: Order) -> list[Floats]:
    """Return for each stage, by the layer where it ends, what one micro-batch takes at least from there to the end and back."""
    layers = tables.layers
    least = np.full(layers, inf)
    rests = [np.zeros(layers + 1)]
    ways = 0.0
    for source, pool in reversed(list(pairwise(order))):
        least = np.minimum(least, np.diff(cut.forward[pool] + cut.backward[pool]))
        ways += _ways(tables, cut, (source, pool))[0]
        rest = np.full(layers + 1, ways)
        rest[:-1] += np.cumsum(least[::-1])[::-1]
        rests.append(rest)
    return rests[::-1]


class _Reach:
    """How far one stage can go, by time and by memory; with room for roundings."""

    def __init__(self, tables: Tables, cut: Cut, schedule: str, order: Order, stage: int) -> None:
        pool = order[stage]
        self.forward, self.backward, self.count = cut.forward[pool], cut.backward[pool], cut.micro_batches
        self.work: Floats = self.forward + self.backward
        self.memory = tables.memory[pool]
        after = len(order) - 1 - stage
        self.kept = ahead(schedule, after, cut.micro_batches)
        self.held: Floats = tables.state[pool] + depth(schedule, after, cut.micro_batches) * cut.kept[pool]

    def first(self, stop: int, share_s: float) -> int:
        """Return the first layer of the longest stretch before `stop`, at least one layer long unless it has no room at all."""
        by_time = np.searchsorted(self.work, float(self.work[stop]) - share_s - SLACK * float(self.work[-1]))
        by_memory = np.searchsorted(self.held, float(self.held[stop]) - self.memory - SLACK * float(self.held[-1]))
        return min(max(int(by_time), int(by_memory)), stop)

    def stop(self, first: Cuts, share_s: Floats) -> Cuts:
        """Return for each first layer where the longest stretch ends."""
        until: Floats = self.work[first] + share_s + SLACK * float(self.work[-1])
        room: Floats = self.held[first] + self.memory + SLACK * float(self.held[-1])
        by_time: Cuts = np.searchsorted(self.work, until, side="right") - 1
        by_memory: Cuts = np.searchsorted(self.held, room, side="right") - 1
        return np.minimum(by_time, by_memory)

    def passed(self, first: Cuts, stop: Cuts) -> Floats:
        """Return seconds of both passes of one micro-batch."""
        return self.work[stop] - self.work[first]

    def least(self, first: Cuts, stop: Cuts, before_s: Floats, after_s: Floats) -> Floats:
        """Return what a step takes at least: the way here and back, the work, and what idles; see `pipeline_bound.of_plans`."""
        forward, backward = self.forward[stop] - self.forward[first], self.backward[stop] - self.backward[first]
        opening = np.maximum(0.0, after_s - (self.kept - 1) * forward)
        closing = np.maximum(0.0, after_s - (self.kept - 1) * backward)
        idle = opening + closing if self.count > self.kept else np.maximum(opening, closing)
        return before_s + self.count * (forward + backward) + idle
