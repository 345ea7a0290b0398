"""A data-parallel step against one thing, and where it turns: share of the first pool, bytes a second of the link, batch.

Each point is planned anew with all else as given, and with two pools at least, so that a curve tells what the split costs also
where one pool alone is faster.
"""

from collections.abc import Callable
from dataclasses import replace
from math import exp, inf, lcm, log

from advisor.split.data_parallel import fastest, plan_data
from advisor.split.data_parallel_exchange import FREE, Links
from advisor.split.data_parallel_shares import Shares
from advisor.split.data_parallel_words import DataProblem
from core import format as write
from core.split import BreakEven

SLOWEST, QUICKEST = 1e3, 1e15
"""Bytes a second between which a break-even is looked for."""
SAME = 1e-9
"""Relative difference that rounding may make."""
MOST_GROWTH, MOST_SAMPLES = 4096, 1 << 18
"""Times the given batch, and samples, up to which one is looked for: pools are tabled by sample."""


def share_curve(problem: DataProblem, points: int = 41) -> tuple[tuple[float, float], ...]:
    """Return (share of the first pool, seconds), the other pools having the rest as it is best; ends are those pools alone.

    Args:
        problem: with two pools at least.
        points: at most so many; shares are whole multiples of the pool's grain.
    """
    tables, names = Shares(problem), [pool.name for pool in problem.pools]
    grain = problem.pools[0].pace.grain // problem.unit
    steps = tables.count // grain
    wanted = sorted({round(index * steps / max(1, points - 1)) * grain for index in range(points)})
    found: list[tuple[float, float]] = []
    links = tuple(row[1:] for row in problem.links[1:])
    for share in wanted:
        if share == 0:
            plan = plan_data(replace(problem, pools=problem.pools[1:], links=links, least_pools=1)) if len(names) > 1 else None
            seconds = plan.seconds if plan else None
        elif share == tables.count:
            seconds = tables.seconds({0: share}, FREE)
        else:
            chosen = fastest(tables, problem.links, 2, {0: share}) if len(names) > 1 else None
            seconds = chosen.seconds if chosen else None
        if seconds is not None:
            found.append((share / tables.count, seconds))
    return tuple(found)


def bandwidth_curve(problem: DataProblem, bytes_per_s: tuple[float, ...]) -> tuple[tuple[float, float], ...]:
    """Return (bytes a second, seconds), planned anew at each; latencies stay.

    Args:
        problem: its links say which pools are joined.
        bytes_per_s: of every link, one way.
    """
    tables = Shares(problem)
    pairs = ((rate, _at(tables, problem, rate)) for rate in bytes_per_s)
    return tuple((rate, seconds) for rate, seconds in pairs if seconds < inf)


def break_even_bandwidth(problem: DataProblem, least_saving: float = 0.0) -> BreakEven:
    """Return from how many bytes a second on two or more pools save as much as is asked for against the best one.

    Args:
        problem: its links say which pools are joined, and their latencies.
        least_saving: part of the best single pool's step.
    """
    tables = Shares(problem)
    return turning_bandwidth(
        lambda rate: _at(tables, problem, rate), _single(problem), given_bandwidth(problem.links), least_saving
    )


def turning_bandwidth(
    step_s: Callable[[float], float], single_s: float, now: float | None, least_saving: float, close: float = 1e-6
) -> BreakEven:
    """Return where a step that never rises with the link's rate meets what is asked of it.

    Args:
        step_s: seconds by bytes a second; infinite where there is no plan.
        single_s: of the best single pool; infinite where none can do it.
        now: as given.
        least_saving: part of `single_s`.
        close: fraction to which it is found; each halving plans anew.
    """
    wanted = single_s * (1 - least_saving)
    goal = _goal(least_saving)
    if step_s(QUICKEST) > wanted or wanted == inf == step_s(QUICKEST):
        return BreakEven("bandwidth", "bytes/s", now, None, f"no link is fast enough {goal}")
    if step_s(SLOWEST) <= wanted:
        return BreakEven("bandwidth", "bytes/s", now, None, f"any link is fast enough {goal}")
    low, high = log(SLOWEST), log(QUICKEST)
    while high - low > close:
        middle = (low + high) / 2
        low, high = (low, middle) if step_s(exp(middle)) <= wanted else (middle, high)
    at = exp(high)
    return BreakEven("bandwidth", "bytes/s", now, at, f"fast enough {goal} from {write.count(8 * at, 'bit/s')} on")


def break_even_batch(problem: DataProblem, least_saving: float = 0.0) -> BreakEven:
    """Return from which batch on two or more pools save as much as is asked for; paces hold for larger batches too.

    Batches are multiples of all grains. The first that saves enough after one that does not is looked for upwards in doublings
    and then between the two; a batch further up may turn again where a pace has a step.

    Args:
        problem: its batch is `now`.
        least_saving: part of the best single pool's step.
    """
    step = lcm(*(pool.pace.grain for pool in problem.pools))
    now = float(problem.batch)

    def wins(times: int) -> bool:
        other = replace(problem, batch=times * step, least_pools=min(2, len(problem.pools)))
        plan, single = plan_data(other), _single(other)
        return plan is not None and len(problem.pools) > 1 and plan.seconds <= single * (1 - least_saving) * (1 + SAME)

    most = max(2, problem.batch // step, min(problem.batch * MOST_GROWTH, MOST_SAMPLES) // step)
    goal = _goal(least_saving)
    least, low = len(problem.pools), 0
    high = least
    while not wins(high):
        low, high = high, high * 2
        if high > most:
            words = f"no batch up to {low * step:,} is large enough {goal}"
            return BreakEven("batch", "samples", now, None, words)
    if low == 0:
        words = f"any batch from {high * step:,} on is large enough {goal}"
        return BreakEven("batch", "samples", now, None, words)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wins(middle) else (middle, high)
    return BreakEven("batch", "samples", now, float(high * step), f"large enough {goal} from a batch of {high * step:,} on")


def _goal(least_saving: float) -> str:
    return f"to save {write.percent(least_saving)}" if least_saving > 0 else "to match the best pool alone"


def given_bandwidth(links: Links) -> float | None:
    """Return the slowest link's bytes a second, None without any."""
    return min((link.bytes_per_s for row in links for link in row if link is not None), default=None)


def with_bandwidth(links: Links, bytes_per_s: float) -> Links:
    """Return the same links at another rate."""
    return tuple(tuple(None if link is None else replace(link, bytes_per_s=bytes_per_s) for link in row) for row in links)


def _at(tables: Shares, problem: DataProblem, bytes_per_s: float) -> float:
    least = max(2, problem.least_pools)
    if least > len(problem.pools):
        return inf
    chosen = fastest(tables, with_bandwidth(problem.links, bytes_per_s), least)
    return chosen.seconds if chosen else inf


def _single(problem: DataProblem) -> float:
    tables = Shares(problem)
    able = [index for index, pool in enumerate(problem.pools) if problem.batch % pool.pace.grain == 0]
    return min((tables.seconds({index: tables.count}, FREE) for index in able), default=inf)
