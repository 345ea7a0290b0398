"""The shares that end soonest: the step is the longest of one number for each pool that grows with its share, so bisect over it.

Pool p's gradients of bucket k are there when its backward pass has come so far; they are reduced inside the pool, exchanged when
every pool has them, spread, and all is updated after the last bucket. Each of these does one bucket at a time. As buckets are
alike, the step is the longest over pools of

    first bucket ready + its way + (buckets - 1) x the slowest of: next bucket ready, reduce, exchange, spread.

A share of a deadline is then the largest that meets it. Where a pace makes a larger share faster (it takes more turns of less),
or grains differ, which sums can be reached is found bit by bit.
"""

from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from math import inf

import numpy as np
from numpy.typing import NDArray

from advisor.split.data_parallel_exchange import FREE, Exchange
from advisor.split.data_parallel_words import DataPool, DataProblem
from advisor.split.pace import Pace

Floats = NDArray[np.float64]
Ends = dict[int, tuple[float, float]]
"""For each pool what follows its last bucket, and its first, until the end of the step."""
STEPS = 80
"""Halvings, until floats end."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Seconds of one pool for 0, unit, 2 x unit, ... samples.

    Args:
        done: until all gradients are there.
        begun: until the first bucket is there.
        grain: in units.
        rising: whether both never fall.
    """

    done: Floats
    begun: Floats
    grain: int
    rising: bool


def pace_seconds(pace: Pace, samples: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return seconds of many batches, and of the last turn of each; the same as `Pace.seconds`.

    Args:
        pace: of a pool.
        samples: from 0.
    """
    turns = np.ones(len(samples)) if pace.most is None else np.maximum(1, -(-samples // pace.most)).astype(np.float64)
    each = samples / turns
    if len(pace.points) == 1:
        size, value = pace.points[0]
        last = value * np.maximum(1.0, each / size)
    else:
        sizes, values = (np.array(column, dtype=np.float64) for column in zip(*pace.points, strict=True))
        index = np.clip(np.searchsorted(sizes, each), 1, len(sizes) - 1)
        left, low = sizes[index - 1], values[index - 1]
        line = low + (values[index] - low) * (each - left) / (sizes[index] - left)
        last = np.where(each >= left, line, np.maximum(line, low * each / left))
    last = np.where(samples > 0, last, 0.0)
    return turns * last, last


class Shares:
    """Tables of all pools of a problem, and the shares that end soonest on some of them.

    Args:
        problem: its links are not looked at.
    """

    def __init__(self, problem: DataProblem) -> None:
        self.problem = problem
        self.unit = problem.unit
        self.count = problem.batch // self.unit
        self.whole = problem.batch % self.unit == 0
        self.tables = tuple(self._table(pool) for pool in problem.pools)

    def _table(self, pool: DataPool) -> Table:
        done, last = pace_seconds(pool.pace, np.arange(self.count + 1, dtype=np.int64) * self.unit)
        later = 1 - 1 / self.problem.buckets
        begun = done - pool.backward_share * last * later
        rising = bool(np.all(np.diff(done) >= 0) and np.all(np.diff(begun) >= 0))
        return Table(done, begun, pool.pace.grain // self.unit, rising)

    def ends(self, used: tuple[int, ...], way: Exchange) -> Ends:
        """Return for each pool what follows its last bucket, and its first, until the end of the step."""
        pools, buckets = self.problem.pools, self.problem.buckets
        after = [(pools[q].spread_s / buckets, pools[q].update_s) for q in used]
        found: Ends = {}
        for pool in used:
            reduce_s = pools[pool].reduce_s / buckets
            once = reduce_s + way.busy_s + way.latency_s
            last = once + max(spread + update for spread, update in after)
            slow = max(reduce_s, way.busy_s)
            first = once + max(spread + update + (buckets - 1) * max(slow, spread) for spread, update in after)
            found[pool] = (last, first)
        return found

    def seconds(self, shares: dict[int, int], way: Exchange) -> float:
        """Return the step of given shares in units, all above 0."""
        ends = self.ends(tuple(shares), way)
        return max(self._cost(pool, share, ends[pool]) for pool, share in shares.items())

    def _cost(self, pool: int, share: int, ends: tuple[float, float]) -> float:
        table = self.tables[pool]
        return max(float(table.done[share]) + ends[0], float(table.begun[share]) + ends[1])

    def best(
        self, used: tuple[int, ...], way: Exchange, under_s: float, fixed: dict[int, int] | None = None
    ) -> tuple[float, dict[int, int]] | None:
        """Return the step and the shares in units that end soonest when all of these pools have some; None when not sooner.

        Args:
            used: pools by index.
            way: of a bucket among them.
            under_s: only a step that takes less is wanted.
            fixed: shares that are given.
        """
        return self.soonest(used, self.ends(used, way), under_s, fixed)

    def soonest(
        self, used: tuple[int, ...], ends: Ends, under_s: float, fixed: dict[int, int] | None = None
    ) -> tuple[float, dict[int, int]] | None:
        """Return the same as `best` for what follows each pool's buckets.

        Args:
            used: pools by index.
            ends: of each pool in use.
            under_s: only a step that takes less is wanted.
            fixed: shares that are given.
        """
        given = fixed or {}
        high, low = under_s, 0.0

        def seconds(shares: dict[int, int]) -> float:
            return max(self._cost(pool, share, ends[pool]) for pool, share in shares.items())

        if not self._enough(used, ends, high, given):
            return None
        if high == inf:
            high = seconds(self._chosen(used, ends, high, given)) * (1 + 1e-12)  # room for rounding
        for _ in range(STEPS):
            middle = (low + high) / 2
            if not low < middle < high or high - low <= 1e-13 * high:
                break
            if self._enough(used, ends, middle, given):
                high = middle
            else:
                low = middle
        shares = self._chosen(used, ends, high, given)
        took = seconds(shares)
        return (took, shares) if took < under_s else None

    def ideal_s(self, way: Exchange = FREE, most: int | None = None) -> float:
        """Return what no step with that exchange takes less than: no pool waits for another's end, any may be idle.

        Args:
            way: of a bucket; `FREE` for what no step at all takes less than.
            most: pools that have a share; None for all.
        """
        every = range(len(self.tables))
        ends = {pool: self.ends((pool,), way)[pool] for pool in every}
        high = max(self._cost(pool, self.count, ends[pool]) for pool in every)
        low = 0.0
        while high - low > 1e-13 * high and low < (low + high) / 2 < high:
            middle = (low + high) / 2
            rooms = sorted((int(np.flatnonzero(self._fine(pool, ends[pool], middle))[-1]) for pool in every), reverse=True)
            room = sum(rooms[:most])
            low, high = (low, middle) if room >= self.count else (middle, high)
        return high

    def _fine(self, pool: int, ends: tuple[float, float], limit_s: float) -> NDArray[np.bool_]:
        table = self.tables[pool]
        fine = (table.done <= limit_s - ends[0]) & (table.begun <= limit_s - ends[1])
        fine[0] = True
        return fine

    def _summed(self, used: tuple[int, ...]) -> bool:
        alike = len({self.tables[pool].grain for pool in used}) == 1
        return alike and all(self.tables[pool].rising for pool in used)

    def _enough(self, used: tuple[int, ...], ends: Ends, limit_s: float, fixed: dict[int, int]) -> bool:
        if not self.whole:
            return False
        if not self._summed(used):
            return bool(self._reached(used, ends, limit_s, fixed)[-1] >> self.count & 1)
        most = self._most(used, ends, limit_s, fixed)
        if most is None:
            return False
        least = sum(fixed.get(pool, self.tables[pool].grain) for pool in used)
        return self.count % self.tables[used[0]].grain == 0 and least <= self.count <= sum(most.values())

    def _chosen(self, used: tuple[int, ...], ends: Ends, limit_s: float, fixed: dict[int, int]) -> dict[int, int]:
        if not self._summed(used):
            return self._by_bits(used, ends, limit_s, fixed)
        shares = self._most(used, ends, limit_s, fixed)
        assert shares is not None
        grain = self.tables[used[0]].grain
        surplus = (sum(shares.values()) - self.count) // grain
        names = [pool.name for pool in self.problem.pools]
        free = [
            (-self._cost(pool, share, ends[pool]), names[pool], pool)
            for pool, share in shares.items()
            if pool not in fixed and share > grain
        ]
        heapify(free)
        for _ in range(surplus):  # take from whoever would end last
            pool = free[0][2]
            shares[pool] -= grain
            if shares[pool] > grain:
                heapreplace(free, (-self._cost(pool, shares[pool], ends[pool]), names[pool], pool))
            else:
                heappop(free)
        return shares

    def _most(self, used: tuple[int, ...], ends: Ends, limit_s: float, fixed: dict[int, int]) -> dict[int, int] | None:
        shares: dict[int, int] = {}
        for pool in used:
            table, (last, first) = self.tables[pool], ends[pool]
            by_last = int(np.searchsorted(table.done, limit_s - last, side="right"))
            by_first = int(np.searchsorted(table.begun, limit_s - first, side="right"))
            share = (min(by_last, by_first) - 1) // table.grain * table.grain
            if pool in fixed:
                share = fixed[pool] if fixed[pool] <= share and fixed[pool] % table.grain == 0 else 0
            if share < table.grain:
                return None
            shares[pool] = share
        return shares

    def _reached(self, used: tuple[int, ...], ends: Ends, limit_s: float, fixed: dict[int, int]) -> list[int]:
        """Return after each pool a number whose bit i says whether i units can be reached by the pools so far."""
        reached, full = [1], (1 << (self.count + 1)) - 1
        for pool in used:
            total, grain = 0, self.tables[pool].grain
            for low, high in _runs(self._able(pool, ends[pool], limit_s, fixed.get(pool)) // grain):
                total |= _smeared(reached[-1], low, high, grain, full)
            reached.append(total)
        return reached

    def _by_bits(self, used: tuple[int, ...], ends: Ends, limit_s: float, fixed: dict[int, int]) -> dict[int, int]:
        reached = self._reached(used, ends, limit_s, fixed)
        shares: dict[int, int] = {}
        left = self.count
        for place in reversed(range(len(used))):
            pool = used[place]
            able = [int(one) for one in self._able(pool, ends[pool], limit_s, fixed.get(pool)) if one <= left]
            options = [one for one in able if reached[place] >> (left - one) & 1]
            shares[pool] = options[len(options) // 2]
            left -= shares[pool]
        return {pool: shares[pool] for pool in used}

    def _able(self, pool: int, ends: tuple[float, float], limit_s: float, fixed: int | None) -> NDArray[np.intp]:
        found = np.flatnonzero(self._fine(pool, ends, limit_s))[1:]
        found = found[found % self.tables[pool].grain == 0]
        return found if fixed is None else found[found == fixed]


def _runs(values: NDArray[np.intp]) -> list[tuple[int, int]]:
    """Return the first and last of each run of ascending whole numbers without a gap."""
    if not len(values):
        return []
    breaks = np.flatnonzero(np.diff(values) > 1)
    firsts = values[np.concatenate(([0], breaks + 1))]
    lasts = values[np.concatenate((breaks, [len(values) - 1]))]
    return [(int(first), int(last)) for first, last in zip(firsts, lasts, strict=True)]


def _smeared(bits: int, low: int, high: int, grain: int, full: int) -> int:
    """Return the bits moved by low x grain, (low + 1) x grain, ... high x grain, all together."""
    whole, width, wanted = (bits << (low * grain)) & full, 1, high - low + 1
    while width < wanted:
        step = min(width, wanted - width)
        whole |= (whole << (step * grain)) & full
        width += step
    return whole
