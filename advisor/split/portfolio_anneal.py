"""Which workloads share the pools that are full, and in which order: simulated annealing with chains of ejections.

The chips of a full pool are lanes of as many chips as all of its choices share. A choice of several lanes has a start that is
fixed; all others keep what moves them about: when the lane is free before them, and when it must be free for what is behind.
A move puts one choice where little is in its way; what it pushes out goes where it fits best, pushing out others in turn, and
what finds no place pays for its cheapest choice on a pool that is not full. All of that is done, or none of it.

Source: S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by simulated annealing", Science 220, 1983; F. Glover,
"Ejection chains, reference structures and alternating path methods for traveling salesman problems", Discrete Applied
Mathematics 65, 1996.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp, gcd, inf, log
from random import Random
from typing import TypeAlias

from advisor.split.portfolio_choices import Choice, Table
from advisor.split.portfolio_list import completed

FIRST_HEAT, LAST_HEAT = 2e-4, 3e-5
"""Loss at which a move is made one time in e, at first and at last, as a part of the bound."""
LOOSE = 50.0
"""Times the heat at which the first choice of a chain is put somewhere."""
REACH, FURTHEST = 3e-4, 12.0
"""Reduced price, as a part of the bound, at which a choice is tried one time in e of those that a divided assignment takes, and
the times of it beyond which a choice is not tried."""
LINKS = 4
"""Workloads that are put elsewhere in one chain at most."""
STARTS = 8
"""Starts that are tried for a choice of several lanes."""
NEAR = 1e-3
"""Part of the bound by which a plan may be above it for the search to end."""
SEED = 0


@dataclass(frozen=True, slots=True)
class Guide:
    """What a divided assignment teaches.

    Args:
        reduced: price of each choice beyond what its workload and the room that it takes are worth; about 0 for those it takes.
        bound: of prices and `dear_of` each step of priority without a place together; no plan has less.
    """

    reduced: Sequence[float]
    bound: float


def dear_of(prices: Sequence[float]) -> float:
    """Return what a workload without a place costs for each step of its priority, in the unit of the prices."""
    return 2.0 * max(prices, default=0.0) or 1.0


@dataclass(frozen=True, slots=True)
class _Lane:
    """One lane of a pool; never changed.

    Args:
        order: its choices.
        ends: when the first so many of them have ended, from none to all.
        lasts: when each must have begun for all behind it to be in time; at the end of none.
        worth: what the first so many of them save together.
    """

    order: tuple[int, ...] = ()
    ends: tuple[float, ...] = (0.0,)
    lasts: tuple[float, ...] = (inf,)
    worth: tuple[float, ...] = (0.0,)


_Place: TypeAlias = tuple[int, int, int]
"""Of one lane: its number, how many choices stay before, and from which on they stay behind."""
Spans: TypeAlias = tuple[tuple[float, float], ...]
_Put: TypeAlias = tuple[float, float, tuple[_Place, ...]]
"""Where a choice could go: what is pushed out there, its own start, and its lanes."""


class Annealing:
    """Search over the lanes of the pools that are full."""

    def __init__(self, table: Table, prices: Sequence[float], guide: Guide, full: Collection[int]) -> None:
        """Prepare.

        Args:
            table: of the problem.
            prices: of each choice.
            guide: of the divided assignment.
            full: pools, by number.
        """
        self.table, self.prices, self.guide = table, prices, guide
        dear = dear_of(prices)
        self.else_at = [
            min((prices[index] for index in ways if table.choices[index].pool not in full), default=dear * works.priority)
            for works, ways in zip(table.problem.works, table.of_work, strict=True)
        ]
        self.saves = [self.else_at[one.work] - price for one, price in zip(table.choices, prices, strict=True)]
        self.lanes: dict[int, list[_Lane]] = {}
        self.widths = [1] * len(table.choices)
        self.quota: dict[int, float] = {}
        for pool in sorted(full):
            words, mine = table.problem.pools[pool], [index for index, one in enumerate(table.choices) if one.pool == pool]
            unit = gcd(words.chips, *(table.choices[index].chips for index in mine))
            self.lanes[pool] = [_Lane()] * (words.chips // unit)
            self.quota[pool] = inf if words.quota_chip_h is None else words.quota_chip_h * 3600.0 * (1 + 1e-9)
            for index in mine:
                self.widths[index] = table.choices[index].chips // unit
        self.at: list[int | None] = [None] * len(table.of_work)
        self.fixed: dict[int, float] = {}
        self.chance = Random(SEED)

    def run(self, plan: dict[int, float], clock: Callable[[], float], until: float) -> dict[int, float]:
        """Return the best plan that was found, as starts by choice.

        Args:
            plan: starts by choice, from which the search begins.
            clock: seconds from any moment on.
            until: of the clock.
        """
        self._load(plan)
        cost = best = sum(self.else_at) - sum(self.saves[index] for index in self.at if index is not None)
        bound, kept = self.guide.bound, self._starts()
        reach = max(REACH * bound, 1e-12)
        self.ways = [
            [index for index in ways if self.table.choices[index].pool in self.lanes and self.saves[index] > 0
             and self.guide.reduced[index] <= FURTHEST * reach]
            for ways in self.table.of_work
        ]  # fmt: skip
        tried = [index for ways in self.ways for index in ways]
        weights = list(accumulate(exp(-max(0.0, self.guide.reduced[index]) / reach) for index in tried))
        begun = clock()
        while tried and best > bound * (1 + NEAR):
            passed = (clock() - begun) / max(1e-9, until - begun)
            if passed >= 1:
                break
            heat = max(bound, 1e-12) * FIRST_HEAT * (LAST_HEAT / FIRST_HEAT) ** passed
            cost += self._chain(self.chance.choices(tried, cum_weights=weights)[0], heat)
            if cost < best - 1e-9 * bound:
                best, kept = cost, self._starts()
        return completed(self.table, self.prices, kept)

    def _load(self, plan: dict[int, float]) -> None:
        """Put the choices of a plan on lanes, where they are free by its starts; what ends just then is no hindrance."""
        for index in sorted((index for index in plan if self.table.choices[index].pool in self.lanes), key=plan.__getitem__):
            start, lanes = plan[index], self.lanes[self.table.choices[index].pool]
            slack = 1e-9 * max(1.0, start)
            free = [number for number, lane in enumerate(lanes) if lane.ends[-1] <= start + slack]
            free.sort(key=lambda number: -lanes[number].ends[-1])
            places = tuple((number, len(lanes[number].order), len(lanes[number].order)) for number in free[: self.widths[index]])
            if len(places) == self.widths[index]:
                self._put(index, (0.0, max(start, *(lanes[number].ends[-1] for number, _, _ in places)), places))

    def _starts(self) -> dict[int, float]:
        return {
            index: end - self.table.choices[index].seconds
            for lanes in self.lanes.values() for lane in lanes for index, end in zip(lane.order, lane.ends[1:], strict=True)
        }  # fmt: skip

    def _chain(self, index: int, heat: float) -> float:
        """Put a choice somewhere and what it pushes out elsewhere, or do nothing; returns what that costs."""
        before = {pool: list(lanes) for pool, lanes in self.lanes.items()}, list(self.at), dict(self.fixed)
        old = self.at[self.table.choices[index].work]
        cost = 0.0
        if old is not None:
            self._drop([old])
            cost += self.saves[old]
        found = self._place(index, heat * LOOSE, inf)
        cost += inf if found is None else self._put(index, found[1])
        out = [] if found is None else self.pushed
        for _ in range(LINKS):
            if not out or cost == inf:
                break
            out.sort(key=self.saves.__getitem__)
            ways = self.ways[self.table.choices[out.pop()].work]
            places = [(place, way) for way in ways if (place := self._place(way, heat, self.saves[way] + 9 * heat)) is not None]
            if places:
                (score, put), way = min(places, key=lambda one: one[0][0] - self.saves[one[1]])
                if score < self.saves[way]:
                    cost += self._put(way, put)
                    out += self.pushed
        if cost > -heat * log(1.0 - self.chance.random()):
            self.lanes, self.at, self.fixed = before
            return 0.0
        return cost

    def _place(self, index: int, heat: float, most: float) -> tuple[float, _Put] | None:
        """Return the loss less chance and the place of a choice at a heat; None where it cannot go or loses more than `most`."""
        choice = self.table.choices[index]
        lanes = self.lanes[choice.pool]
        if self._used(choice.pool) + choice.chips * choice.seconds > self.quota[choice.pool]:
            return None
        width, chance = self.widths[index], self.chance.random
        puts = _alone(choice, lanes, most) if width == 1 else _abreast(choice, lanes, width, most, self.chance)
        best, found = inf, None
        for put in puts:
            score = put[0] + heat * log(-log(chance() or 0.5))
            if score < best:
                best, found = score, put
        return None if found is None else (best, found)

    def _used(self, pool: int) -> float:
        """Return the chip-seconds of a pool that has a quota."""
        if self.quota[pool] == inf:
            return 0.0
        mine = (self.table.choices[index] for index in self.at if index is not None)
        return sum(one.chips * one.seconds for one in mine if one.pool == pool)

    def _put(self, index: int, put: _Put) -> float:
        """Put a choice somewhere; returns what that costs. What it pushed out is `pushed`."""
        choice, (_, start, places) = self.table.choices[index], put
        lanes = self.lanes[choice.pool]
        self.pushed = list(dict.fromkeys(one for number, first, rest in places for one in lanes[number].order[first:rest]))
        before = [(number, lanes[number].order[:first]) for number, first, _ in places]
        self._drop(self.pushed)
        if len(places) > 1:
            self.fixed[index] = start
        for number, staying in before:
            order = lanes[number].order
            at = sum(one in order for one in staying)
            lanes[number] = self._lane((*order[:at], index, *order[at:]))
        self.at[choice.work] = index
        return sum(self.saves[one] for one in self.pushed) - self.saves[index]

    def _drop(self, gone: Iterable[int]) -> None:
        for index in gone:
            choice = self.table.choices[index]
            lanes = self.lanes[choice.pool]
            self.at[choice.work] = None
            self.fixed.pop(index, None)
            for number, lane in enumerate(lanes):
                if index in lane.order:
                    lanes[number] = self._lane(tuple(one for one in lane.order if one != index))

    def _lane(self, order: tuple[int, ...]) -> _Lane:
        ends, worth, lasts, free, before, saved = [0.0], [0.0], [inf], 0.0, inf, 0.0
        fixed, saves, choices = self.fixed, self.saves, self.table.choices
        for index in order:
            one = choices[index]
            free = (fixed[index] if index in fixed else _first_start(one.spans, free)) + one.seconds
            saved += saves[index]
            ends.append(free)
            worth.append(saved)
        for index in reversed(order):
            one = choices[index]
            before = fixed[index] if index in fixed else _last_start(one.spans, before - one.seconds)
            lasts.append(before)
        return _Lane(order, tuple(ends), tuple(reversed(lasts)), tuple(worth))


def _first_start(spans: Spans, free: float) -> float:
    """Return when a choice can begin at the earliest; infinite when never."""
    for first, last in spans:
        if free <= last:
            return max(free, first)
    return inf


def _last_start(spans: Spans, must: float) -> float:
    """Return when a choice must begin at the latest, at a moment or before."""
    for first, last in reversed(spans):
        if first <= must:
            return min(must, last)
    return -inf


def _alone(choice: Choice, lanes: Sequence[_Lane], most: float) -> Iterator[_Put]:
    """Yield where a choice of one lane could go."""
    seconds, spans, last = choice.seconds, choice.spans, choice.last
    for number, lane in enumerate(lanes):
        lasts, worth = lane.lasts, lane.worth
        for first, free in enumerate(lane.ends):
            if free > last:
                break
            start = _first_start(spans, free)
            rest = bisect_left(lasts, start + seconds)
            if rest <= first:
                yield 0.0, start, ((number, first, first),)
            elif worth[rest] - worth[first] <= most:
                yield worth[rest] - worth[first], start, ((number, first, rest),)


def _abreast(choice: Choice, lanes: Sequence[_Lane], width: int, most: float, chance: Random) -> Iterator[_Put]:
    """Yield where a choice of several lanes could go: at some of its starts, on the lanes that lose least."""
    ends = [free for lane in lanes for free in lane.ends if free <= choice.last]
    for start in {_first_start(choice.spans, free) for free in chance.choices(ends, k=STARTS)}:
        found: list[tuple[float, _Place]] = []
        for number, lane in enumerate(lanes):
            first = bisect_right(lane.ends, start) - 1
            rest = max(first, bisect_left(lane.lasts, start + choice.seconds))
            found.append((lane.worth[rest] - lane.worth[first], (number, first, rest)))
        found.sort()
        loss = sum(one for one, _ in found[:width])
        if loss <= most:
            yield loss, start, tuple(place for _, place in found[:width])
