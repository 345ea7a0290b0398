"""Pipelines with too many plans to bound each: longest stretches under a limit, orders by exchange, then small moves.

Nothing here is exact; what it finds is timed like any plan, and `pipeline_search.prove` says how near the best it is.
"""

from itertools import combinations
from math import inf

import numpy as np

from advisor.split.pipeline_bound import of_plans
from advisor.split.pipeline_schedule import Floats, depth
from advisor.split.pipeline_search import Best, consider
from advisor.split.pipeline_tables import Cut, Cuts, Order, Tables

MOST_ROUNDS = 4e6
"""Passes x plans that are timed in small moves."""
HALVINGS = 20
TRIED, TRIED_AGAIN = 150, 15
"""Orders that are tried at most, and from an order that was good for another number of micro-batches."""


class Stretcher:
    """Longest stretches that keep every stage and link under a limit, for one number of micro-batches and one schedule.

    Args:
        tables: of the problem.
        cut, schedule: of the plans.
    """

    def __init__(self, tables: Tables, cut: Cut, schedule: str) -> None:
        self.tables, self.cut, self.schedule = tables, cut, schedule
        self.work: Floats = cut.forward + cut.backward
        self.sizes: tuple[list[float], list[float]] = (cut.activation_bytes.tolist(), cut.gradient_bytes.tolist())
        self.used: dict[tuple[int, int], Floats] = {}

    def stretches(self, order: Order, limit_s: float) -> tuple[Order, tuple[int, ...]] | None:
        """Return the pools used and their edges such that no stage and no link takes longer for a micro-batch, or None.

        From the last layer back, each pool in turn takes all that it can, since what is before then is least; a pool that can
        take nothing, or not reach the one after it, is left out.

        Args:
            order: pools, first stage first.
            limit_s: of a micro-batch.
        """
        chosen: list[int] = []
        edges = [self.tables.layers]
        for pool in reversed(order):
            stop = edges[-1] if not chosen else self._crossing(pool, chosen[-1], edges, limit_s)
            if stop is None:
                continue
            first = self._first(pool, len(chosen), stop, limit_s)
            if first == stop:
                continue
            edges[-1] = stop
            chosen.append(pool)
            edges.append(first)
            if first == 0:
                break
        if edges[-1] > 0:
            return None
        return tuple(reversed(chosen)), tuple(reversed(edges))

    def _first(self, pool: int, after: int, stop: int, limit_s: float) -> int:
        work = self.work[pool]
        first = int(work[: stop + 1].searchsorted(work[stop] - limit_s))
        if self.tables.memory[pool] < inf:
            held = self._held(pool, after)
            first = max(first, int(held[: stop + 1].searchsorted(float(held[stop]) - self.tables.memory[pool])))
        return min(first, stop)

    def _held(self, pool: int, after: int) -> Floats:
        kept = depth(self.schedule, after, self.cut.micro_batches)
        if (pool, kept) not in self.used:
            self.used[pool, kept] = self.tables.state[pool] + kept * self.cut.kept[pool]
        return self.used[pool, kept]

    def _crossing(self, pool: int, target: int, edges: list[int], limit_s: float) -> int | None:
        out, back = self.tables.link(pool, target), self.tables.link(target, pool)
        if out is None or back is None:
            return None
        start, stop = edges[-1], edges[-2]
        sizes = self.sizes
        if sizes[0][start] <= limit_s * out.bytes_per_s and sizes[1][start] <= limit_s * back.bytes_per_s:
            return start
        sent = self.cut.activation_bytes[start:stop] <= limit_s * out.bytes_per_s
        fine = sent & (self.cut.gradient_bytes[start:stop] <= limit_s * back.bytes_per_s)
        index = int(fine.argmax())
        return start + index if fine[index] else None

    def tightest(self, order: Order) -> tuple[float, Order, tuple[int, ...]] | None:
        """Return the least limit for which there are stretches, and these; None when memory or links forbid all."""
        high = float(self.work.sum(axis=0)[-1]) or 1.0
        found = self.stretches(order, inf)
        if found is None:
            return None
        kept, low = (inf, *found), 0.0
        if (at_high := self.stretches(order, high)) is not None:
            kept = (high, *at_high)
        else:
            low, high = high, self._widest(order)
        for _ in range(HALVINGS):
            middle = (low * high) ** 0.5 if low > 0 else high / 2
            trial = self.stretches(order, middle)
            if trial is None:
                low = middle
            else:
                high, kept = middle, (middle, *trial)
        return kept

    def _widest(self, order: Order) -> float:
        most = max(self.cut.activation_bytes.max(), self.cut.gradient_bytes.max())
        links = [self.tables.link(a, b) for a in order for b in order]
        slowest = min(link.bytes_per_s for link in links if link is not None)
        return float(most / slowest) + float(self.work.sum(axis=0)[-1])


def search_large(tables: Tables) -> Best:
    """Return the fastest plan found; nothing is proven about it."""
    best, order = Best(), None
    starts: list[tuple[float, int, Stretcher, Order, Cuts]] = []
    ways = [(cut, schedule) for cut in tables.cuts for schedule in tables.schedules]
    for cut, schedule in ways:
        stretcher = Stretcher(tables, cut, schedule)
        order = _good_order(tables, stretcher, order) or order
        found = stretcher.tightest(order) if order else None
        if found is None or len(found[1]) < tables.problem.least_pools:
            continue
        _, used, edges = found
        column = np.array(edges, dtype=np.intp)[:, None]
        if tables.fits(cut, schedule, used, column)[0]:
            bound = float(of_plans(tables.times(cut, used, column), schedule, cut.micro_batches)[0])
            starts.append((bound, len(starts), stretcher, used, column))
    _alone(tables, best)
    for bound, _, stretcher, used, column in sorted(starts, key=lambda one: one[:2]):
        if bound < best.enough:
            consider(tables, best, stretcher.cut, stretcher.schedule, used, column)
    if len(best.order) > 1:
        _refine(tables, best)
    return best


def _alone(tables: Tables, best: Best) -> None:
    if tables.problem.least_pools > 1:
        return
    edges = np.array([[0], [tables.layers]], dtype=np.intp)
    for pool in range(len(tables.names)):
        for cut in tables.cuts:
            for schedule in tables.schedules:
                if tables.fits(cut, schedule, (pool,), edges)[0]:
                    consider(tables, best, cut, schedule, (pool,), edges)


def _good_order(tables: Tables, stretcher: Stretcher, known: Order | None) -> Order | None:
    """Return an order with a low busiest resource: fastest first, slowest first or the known one, improved by exchanges."""
    by_speed = sorted(range(len(tables.names)), key=lambda pool: (float(stretcher.work[pool, -1]), tables.names[pool]))
    starts = [tuple(by_speed), tuple(reversed(by_speed)), *([known] if known else [])]
    scored = [(found[0], order) for order in starts if (found := stretcher.tightest(order)) is not None]
    if not scored:
        scored = [(inf, starts[0])]
    limit, order = min(scored)
    places = list(combinations(range(len(order)), 2))
    since = 0
    for turn in range(TRIED_AGAIN if known else TRIED):
        if since == len(places):
            break
        first, second = places[turn % len(places)]
        changed = list(order)
        changed[first], changed[second] = changed[second], changed[first]
        since += 1
        goal = limit * (1 - 1e-3) if limit < inf else inf
        if stretcher.stretches(tuple(changed), goal) is not None:
            found = stretcher.tightest(tuple(changed))
            assert found is not None
            limit, order, since = found[0], tuple(changed), 0
    return order if limit < inf else None


def _refine(tables: Tables, best: Best) -> None:
    """Shift runs of edges by less and less while that makes the step shorter."""
    assert best.cut is not None
    spent, step = best.rounds, max(1, tables.layers // (4 * len(best.order)))
    while best.rounds - spent < MOST_ROUNDS:
        edges = _moved(np.array(best.edges, dtype=np.intp), step)
        edges = edges[:, tables.fits(best.cut, best.schedule, best.order, edges)]
        if edges.shape[1]:
            bounds = of_plans(tables.times(best.cut, best.order, edges), best.schedule, best.cut.micro_batches)
            chosen = np.argsort(bounds, kind="stable")[:128]
            chosen = chosen[bounds[chosen] < best.enough]
            if chosen.size and consider(tables, best, best.cut, best.schedule, best.order, edges[:, chosen]):
                continue
        if step == 1:
            return
        step = max(1, step // 2)


def _moved(edges: Cuts, step: int) -> Cuts:
    """Return plans in which one run of neighbouring edges is shifted either way, no stage left empty."""
    inner = len(edges) - 2
    plans: list[Cuts] = []
    for first in range(1, inner + 1):
        for last in range(first, inner + 1):
            for way in (-step, step):
                moved = edges.copy()
                moved[first : last + 1] += way
                plans.append(moved)
    found = np.array(plans, dtype=np.intp).reshape(-1, len(edges)).T
    return found[:, np.all(np.diff(found, axis=0) > 0, axis=0)]
