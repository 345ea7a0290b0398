"""The timeline of a data-parallel step: every bucket's way, as bars. The step's length is known from `data_parallel_shares`."""

from advisor.split.data_parallel_exchange import Exchange
from advisor.split.data_parallel_words import DataPool, DataProblem
from core.split import Bar

MOST_TURNS = 12
"""More turns of gradient accumulation are drawn as one bar and the last turn."""


def timeline(problem: DataProblem, samples: dict[int, int], way: Exchange) -> tuple[Bar, ...]:
    """Return who does what in a step.

    Args:
        problem: as planned.
        samples: of each pool in use.
        way: of a bucket.
    """
    buckets, bars = problem.buckets, list[Bar]()
    there: dict[int, list[float]] = {}
    for index, count in samples.items():
        pool = problem.pools[index]
        bars += _passes(pool, count)
        there[index] = _reduced(pool, count, buckets)
        bars += _spans(pool.name, there[index], pool.reduce_s / buckets, "compute", "reduce")
    at, arrivals = 0.0, list[float]()
    for bucket in range(buckets):
        begin = max(at, *(ready[bucket] for ready in there.values())) if len(there) > 1 else next(iter(there.values()))[bucket]
        at = begin + way.busy_s
        arrivals.append(at + way.latency_s)
        if len(samples) > 1 and arrivals[-1] > begin:
            bars.append(Bar(problem.lane, begin, arrivals[-1], "move", f"gradients {bucket + 1} of {buckets}"))
    ends: dict[str, float] = {}
    for index in samples:
        pool = problem.pools[index]
        spread = _one_by_one(arrivals, pool.spread_s / buckets)
        bars += _spans(pool.name, spread, pool.spread_s / buckets, "move", "spread")
        ends[pool.name] = spread[-1] + pool.update_s
        if pool.update_s > 0:
            bars.append(Bar(pool.name, spread[-1], ends[pool.name], "update", "update"))
    total = max(ends.values())
    return tuple(sorted(bars + _waits(bars, list(ends), total), key=lambda bar: (bar.start_s, bar.stop_s, bar.lane)))


def _reduced(pool: DataPool, samples: int, buckets: int) -> list[float]:
    done = pool.pace.seconds(samples)
    backward = pool.backward_share * done / pool.pace.turns(samples)
    ready = [done - backward * (1 - (bucket + 1) / buckets) for bucket in range(buckets)]
    return _one_by_one(ready, pool.reduce_s / buckets)


def _one_by_one(ready: list[float], took: float) -> list[float]:
    ends: list[float] = []
    for one in ready:
        ends.append(max(one, ends[-1] if ends else 0.0) + took)
    return ends


def _passes(pool: DataPool, samples: int) -> list[Bar]:
    turns, whole = pool.pace.turns(samples), pool.pace.seconds(samples)
    each = whole / turns
    bars: list[Bar] = []
    first = 0 if turns <= MOST_TURNS else turns - 1
    if first:
        bars.append(Bar(pool.name, 0.0, first * each, "compute", f"turns 1 to {first}"))
    for turn in range(first, turns):
        begin, end = turn * each, (turn + 1) * each
        middle = end - pool.backward_share * each
        bars += [
            Bar(pool.name, begin, middle, "compute", f"forward {turn + 1}"),
            Bar(pool.name, middle, end, "compute", f"backward {turn + 1}"),
        ]
    return [bar for bar in bars if bar.stop_s > bar.start_s]


def _spans(lane: str, ends: list[float], took: float, kind: str, what: str) -> list[Bar]:
    if took <= 0:
        return []
    return [Bar(lane, end - took, end, kind, f"{what} {index + 1} of {len(ends)}") for index, end in enumerate(ends)]


def _waits(bars: list[Bar], lanes: list[str], total: float) -> list[Bar]:
    """Return where a pool does nothing; reducing goes on beside the backward pass."""
    waits: list[Bar] = []
    for lane in lanes:
        at = 0.0
        for bar in sorted((bar for bar in bars if bar.lane == lane), key=lambda bar: bar.start_s):
            if bar.start_s > at * (1 + 1e-12):
                waits.append(Bar(lane, at, bar.start_s, "wait", "waits for gradients"))
            at = max(at, bar.stop_s)
        if total > at * (1 + 1e-12):
            waits.append(Bar(lane, at, total, "wait", "waits for the others' end"))
    return waits
