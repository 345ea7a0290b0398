"""A pipeline's step against one thing: part of the layers on the first pool, or bytes a second of the links; and where it turns.

Each point is planned anew with all else as given, and with two stages at least.
"""

from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np

from advisor.split.data_parallel_curves import given_bandwidth, turning_bandwidth, with_bandwidth
from advisor.split.pipeline import alone, plan_pipeline
from advisor.split.pipeline_search import Best, consider
from advisor.split.pipeline_tables import Order, Tables
from advisor.split.pipeline_words import PipelineProblem
from core.split import BreakEven


def layer_curve(problem: PipelineProblem, points: int = 41) -> tuple[tuple[float, float], ...]:
    """Return (part of the layers on the first of two pools, seconds), whichever comes first and however the batch is cut.

    Args:
        problem: its first two pools are looked at; the ends of the curve are these alone.
        points: at most so many.
    """
    pools = problem.pools[:2]
    tables = Tables(replace(problem, pools=pools, links=tuple(row[:2] for row in problem.links[:2]), least_pools=1))
    layers = problem.layers
    wanted = sorted({round(index * layers / max(1, points - 1)) for index in range(points)})
    found: list[tuple[float, float]] = []
    for own in wanted:
        ways: list[tuple[Order, tuple[int, ...]]] = [((0,), (0, layers))] if own == layers else []
        if len(pools) > 1:
            ways += [((1,), (0, layers))] if own == 0 else []
            ways += [((0, 1), (0, own, layers)), ((1, 0), (0, layers - own, layers))] if 0 < own < layers else []
        seconds = min((_fastest(tables, order, edges) for order, edges in ways), default=inf)
        if seconds < inf:
            found.append((own / layers, seconds))
    return tuple(found)


def pipeline_bandwidth_curve(problem: PipelineProblem, bytes_per_s: tuple[float, ...]) -> tuple[tuple[float, float], ...]:
    """Return (bytes a second, seconds), planned anew at each; latencies stay.

    Args:
        problem: its links say which pools are joined.
        bytes_per_s: of every link, one way.
    """
    pairs = ((rate, _at(problem, rate)) for rate in bytes_per_s)
    return tuple((rate, seconds) for rate, seconds in pairs if seconds < inf)


def pipeline_break_even(problem: PipelineProblem, least_saving: float = 0.0) -> BreakEven:
    """Return from how many bytes a second on two or more stages save as much as is asked for against the best pool alone.

    Args:
        problem: its links say which pools are joined, and their latencies.
        least_saving: part of the best single pool's step.
    """
    single = min((one.seconds for one in alone(problem) if one.seconds is not None), default=inf)
    return turning_bandwidth(lambda rate: _at(problem, rate), single, given_bandwidth(problem.links), least_saving)


def _at(problem: PipelineProblem, bytes_per_s: float) -> float:
    least = max(2, problem.least_pools)
    if least > min(len(problem.pools), problem.layers):
        return inf
    plan = plan_pipeline(replace(problem, links=with_bandwidth(problem.links, bytes_per_s), least_pools=least))
    return plan.seconds if plan else inf


def _fastest(tables: Tables, order: Order, edges: tuple[int, ...]) -> float:
    best, column = Best(), np.array(edges, dtype=np.intp)[:, None]
    if any(tables.link(a, b) is None or tables.link(b, a) is None for a, b in pairwise(order)):
        return inf
    for cut in tables.cuts:
        for schedule in tables.schedules:
            if tables.fits(cut, schedule, order, column)[0]:
                consider(tables, best, cut, schedule, order, column)
    return best.seconds
