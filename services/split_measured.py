"""From what was measured of two sides and their channel to the planner's problem, and from its plan to a task that can be run.

Everything that a step does is measured by itself, while the other side works too: computing by samples, gathering gradients into
one piece, exchanging them, adding, updating. The plan of a step is made of these and of nothing else.
"""

from collections.abc import Sequence
from dataclasses import replace

from advisor.links import fit
from advisor.split.data_parallel import plan_data
from advisor.split.data_parallel_words import DataPlan, DataPool, DataProblem
from advisor.split.pace import Pace
from core.device import TOO_FAST, Link
from core.split import VERDICTS
from core.statistics import median
from probes.split.words import Calibrated, SplitTask

MEASURED_SIGMA = 0.12
"""Deviation of ln(measured / planned) of a step whose pieces were measured: the root of the mean square over the nine planned
steps of `python -m bench.split_verify` on a quiet machine of two cores; the band that it gives holds eight of them."""


def link_of(exchanges: Sequence[tuple[int, float]]) -> Link | None:
    """Return latency and rate through (bytes, seconds), medians of each size; None without two sizes.

    Args:
        exchanges: raw.
    """
    sizes = sorted({size for size, _ in exchanges})
    points = [(float(size), median([taken for other, taken in exchanges if other == size])) for size in sizes]
    model = fit(points)
    if model is None:
        return None
    return Link(model.latency_s, model.bytes_per_s or TOO_FAST)


def pace_of(found: Calibrated, side: int, *, loaded: bool) -> Pace | None:
    """Return seconds of computing and gathering by samples; None where none was measured.

    Args:
        found: calibration in `data` or `local`.
        side: 0 or 1.
        loaded: while the other side works too.
    """
    rising: list[tuple[int, float]] = []
    gathered = dict(found.pace(side, "flatten", loaded))
    for rows, seconds in found.pace(side, "compute", loaded):
        taken = seconds + gathered.get(rows, 0.0)
        rising.append((rows, max(taken, rising[-1][1]) if rising else taken))
    return Pace(tuple(rising)) if rising else None


def fixed_s(found: Calibrated, side: int, what: str, *, loaded: bool) -> float:
    """Return median seconds of a piece of a step that does not hang on its samples: `reduce` or `update`."""
    values = [seconds for cost in found.costs[side] if (cost.what, cost.loaded) == (what, loaded) for seconds in cost.samples_s]
    return median(values) if values else 0.0


def data_problem(found: Calibrated, names: tuple[str, str], batch: int, least_pools: int = 1) -> DataProblem | None:
    """Return the problem of sharing a batch between two measured sides; None where something was not measured.

    Args:
        found: calibration of a task in mode `data`.
        names: of the sides.
        batch: samples of a step.
        least_pools: how many sides must have a share.
    """
    link = link_of(found.exchanges)
    paces = [pace_of(found, side, loaded=True) or pace_of(found, side, loaded=False) for side in (0, 1)]
    if link is None or paces[0] is None or paces[1] is None:
        return None
    pools = tuple(
        DataPool(name, pace, 0.0, fixed_s(found, side, "reduce", loaded=True), fixed_s(found, side, "update", loaded=True))
        for side, (name, pace) in enumerate(zip(names, paces, strict=True)) if pace is not None
    )
    ways = ((None, link), (link, None))
    return DataProblem(pools, batch, float(found.gradient_bytes), ways, buckets=1, least_pools=least_pools)


def single_s(found: Calibrated, side: int, batch: int) -> float | None:
    """Return seconds of a step with the whole batch on one side while the other rests; None where it was not measured."""
    pace = pace_of(found, side, loaded=False)
    return None if pace is None else pace.seconds(batch) + fixed_s(found, side, "update", loaded=False)


def planned_s(problem: DataProblem, rows: tuple[int, int], found: Calibrated) -> float | None:
    """Return what the planner says of a step with given shares; a share of nothing is the other side alone.

    Args:
        problem: from `data_problem`.
        rows: of each side.
        found: the calibration that it comes from.
    """
    for side in (0, 1):
        if rows[1 - side] == 0:
            return single_s(found, side, rows[side])
    pinned = tuple(
        replace(pool, pace=replace(pool.pace, grain=share)) for pool, share in zip(problem.pools, rows, strict=True)
    )
    plan = plan_data(replace(problem, pools=pinned, batch=sum(rows), least_pools=2))
    return None if plan is None else plan.seconds


def verdict_of(plan: DataPlan, singles: Sequence[float | None], least_saving: float = 0.0) -> str:
    """Return `hybrid` where the plan of both beats the better side alone by a fraction, else `single`."""
    known = [seconds for seconds in singles if seconds is not None]
    return VERDICTS[0] if not known or plan.seconds < (1.0 - least_saving) * min(known) else VERDICTS[1]


def task_of(task: SplitTask, plan: DataPlan) -> SplitTask:
    """Return a task with the shares of a plan."""
    first, second = (share.samples for share in plan.shares)
    return replace(task, rows=(first, second))
