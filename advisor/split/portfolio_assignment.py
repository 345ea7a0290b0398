"""The cheapest assignment of workloads to pools that can be scheduled: a mixed-integer programme and what scheduling teaches it.

Cost and energy depend on who goes where and not on when, so that time is left to each pool by itself: HiGHS assigns, every pool
is checked, and a set that does not fit is forbidden, in its smallest form and for all choices that need no less. At first by
energy (what must be done between two moments, whatever the starts, is at most chips x time), which is cheap and strong; then by
an exact search for starts. When nothing is left to forbid, the assignment is the optimum; at any time before, it is a bound.
Sets of many workloads are not worth a proof: the search then ends with its bound, and `advisor.split.portfolio_anneal` goes on.

Source: J. N. Hooker, "Planning and scheduling by logic-based Benders decomposition", Operations Research 55(3), 2007; energetic
reasoning after P. Baptiste, C. Le Pape, W. Nuijten, "Satisfiability tests and time-bound adjustments for cumulative scheduling
problems", Annals of Operations Research 92, 1999.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any

from advisor.split.highs import milp
from advisor.split.portfolio_anneal import Guide, dear_of
from advisor.split.portfolio_choices import Choice, Table
from advisor.split.portfolio_list import RULES, listed
from advisor.split.portfolio_schedule import scheduled

FILLS = 25
"""Rounds of rows at most before whole numbers are asked for."""
WORST = 3
"""Overfilled times of one pool that become rows in one round."""
CHECK_S = 1.0
"""Seconds for the starts of one pool's set."""
LARGE = 400
"""Choices from which on a programme is solved to a part of a thousand, and not to the end."""
MOST_PROVEN = 14
"""Workloads of one pool up to which it is proven that they do not fit."""
PART = 0.25
"""Part of the time left that one large programme may take."""


@dataclass(frozen=True, slots=True)
class Row:
    """Factors of choices and what their sum must not exceed; `pool` where they are all of that one and its time is short."""

    factors: dict[int, float]
    limit: float
    pool: int | None = None


@dataclass(slots=True)
class Assignment:
    """How far the assignment has come.

    Args:
        chosen: choices of the last programme; some sets of them may not fit.
        missing: least sum of priorities without a place, as far as is known.
        bound: of the price with no more missing than that; nothing is better.
        fits: whether every pool can do its set.
        starts: of the sets that fit, by choice.
        repaired: plans by list that were made of assignments that did not fit.
        rounds: programmes that were solved.
    """

    chosen: tuple[int, ...] = ()
    missing: float = 0.0
    bound: float = 0.0
    fits: bool = False
    starts: dict[int, float] = field(default_factory=dict[int, float])
    repaired: list[dict[int, float]] = field(default_factory=list[dict[int, float]])
    rounds: int = 0


class Assigning:
    """Master programme of one table."""

    def __init__(self, table: Table, prices: Sequence[float]) -> None:
        """Prepare.

        Args:
            table: of the problem.
            prices: of each choice.
        """
        self.table = table
        self.scale = max([*prices, 1e-12])
        self.prices = [price / self.scale for price in prices]
        self.rows: list[Row] = self._given()
        self.known: dict[frozenset[int], tuple[dict[int, float] | None, bool]] = {}
        self.large = len(table.choices) > LARGE

    def _given(self) -> list[Row]:
        """Return the rows of quotas and budget."""
        problem, choices = self.table.problem, self.table.choices
        limits: list[tuple[dict[int, float], float]] = []
        for pool, words in enumerate(problem.pools):
            if words.quota_chip_h is not None:
                needs = {i: one.chips * one.seconds for i, one in enumerate(choices) if one.pool == pool}
                limits.append((needs, words.quota_chip_h * 3600.0))
        if problem.budget_usd is not None:
            limits.append(({i: one.usd for i, one in enumerate(choices)}, problem.budget_usd))
        largest = [max([limit, *needs.values(), 1e-12]) for needs, limit in limits]
        return [
            Row({index: need / most for index, need in needs.items()}, limit / most * (1 + 1e-9))
            for (needs, limit), most in zip(limits, largest, strict=True)
        ]

    def run(self, clock: Callable[[], float], until: float) -> Assignment:
        """Assign and forbid until everything fits, a set is not worth a proof, or time is up.

        Args:
            clock: seconds from any moment on.
            until: of the clock.
        """
        state = Assignment()
        self._fill(clock, until)
        placeable = False
        while clock() < until or state.rounds == 0:
            state.rounds += 1
            if not placeable:
                _, missing = self._solved(max(0.2, until - clock()), placing=True)
                missing, placeable = max(state.missing, ceil(missing - 1e-6)), True
                state.missing, state.bound = missing, state.bound if missing == state.missing else 0.0
            found, bound = self.priced(state.missing, max(0.2, until - clock()))
            if found is None and bound == inf:
                placeable = False  # what was forbidden since leaves no room for as many
                continue
            state.bound = max(state.bound, bound)
            if found is None:
                return state
            state.chosen, state.starts = tuple(index for index, part in found.items() if part > 0.5), {}
            cuts = self._overfilled(dict.fromkeys(state.chosen, 1.0))
            self.rows += cuts
            if cuts:
                continue
            ends = self._timed(state, clock, until)
            if not state.fits:
                state.repaired.append(listed(self.table, self.prices, state.chosen))
            if ends:
                return state
            self._fill(clock, until)
        return state

    def priced(self, missing: float, left_s: float) -> tuple[dict[int, float] | None, float]:
        """Return the cheapest choices with no more than a sum of priorities without a place, and their bound.

        Args:
            missing: that sum.
            left_s: seconds that are left.
        """
        return self._solved(left_s * PART if self.large else left_s, missing=missing)

    def full(self) -> set[int]:
        """Return the pools whose time or quota is short, as far as is known."""
        pools = {row.pool for row in self.rows if row.pool is not None}
        return pools | {pool for pool, words in enumerate(self.table.problem.pools) if words.quota_chip_h is not None}

    def guide(self) -> Guide | None:
        """Return what the divided assignment teaches, by its dual: the worth of every workload and of the room of every row."""
        from numpy import array, concatenate, ones, zeros
        from scipy.sparse import csr_array

        works, rows, prices = self.table.problem.works, self.rows, array(self.prices) * self.scale
        dear = dear_of(prices.tolist())
        entries = [(index, one.work, 1.0) for index, one in enumerate(self.table.choices)]
        entries += [(index, len(works) + line, -factor) for line, row in enumerate(rows) for index, factor in row.factors.items()]
        lines, places, factors = zip(*entries, strict=True)
        matrix: Any = csr_array((array(factors), (array(lines), array(places))), shape=(len(prices), len(works) + len(rows)))
        import scipy.optimize

        optimize: Any = scipy.optimize
        worth = concatenate([ones(len(works)), array([-row.limit for row in rows])])
        most = concatenate([array([dear * work.priority for work in works]), inf * ones(len(rows))])
        lows = concatenate([-inf * ones(len(works)), zeros(len(rows))])
        found: Any = milp(
            -worth, bounds=optimize.Bounds(lows, most), constraints=optimize.LinearConstraint(matrix, -inf, prices)
        )
        return None if found.x is None else Guide((prices - matrix @ found.x).tolist(), float(-found.fun))

    def _fill(self, clock: Callable[[], float], until: float) -> None:
        """Add rows for overfilled times of assignments that may divide workloads: most of what can be learnt, at little cost."""
        for _ in range(FILLS):
            found, _ = self._solved(max(0.2, until - clock()))
            rows = [] if found is None else self._overfilled(found)
            if not rows or clock() > until:
                return
            self.rows += rows

    def _overfilled(self, parts: dict[int, float]) -> list[Row]:
        return [cut for pool in range(len(self.table.problem.pools)) for cut in self._energy(pool, parts)]

    def _solved(
        self, limit_s: float, *, placing: bool = False, missing: float | None = None
    ) -> tuple[dict[int, float] | None, float]:
        """Return the chosen parts of choices in the programme as it stands, and its bound; infinite when there is no solution.

        Args:
            limit_s: seconds for the solver.
            placing: whether the sum of priorities without a place is to be least, rather than the price.
            missing: what that sum may be; None, unless placing: workloads may be divided, and being without a place is dear.
        """
        import scipy.optimize
        from numpy import array, ones
        from scipy.sparse import csr_array

        works, count = self.table.problem.works, len(self.table.choices)
        divided = missing is None and not placing
        absent = 1.0 if placing else dear_of(self.prices) if divided else 0.0
        columns = array([*([0.0] * count if placing else self.prices), *(absent * work.priority for work in works)])
        rows: list[tuple[dict[int, float], float, float]] = [
            ({**dict.fromkeys(choices, 1.0), count + index: 1.0}, 1.0, 1.0) for index, choices in enumerate(self.table.of_work)
        ]
        rows += [(row.factors, -inf, row.limit) for row in self.rows]
        if missing is not None:
            rows.append(({count + index: float(work.priority) for index, work in enumerate(works)}, -inf, missing + 1e-6))
        entries = [(line, column, factor) for line, (factors, _, _) in enumerate(rows) for column, factor in factors.items()]
        lines, places, factors = zip(*entries, strict=True)
        matrix = csr_array((array(factors), (array(lines), array(places))), shape=(len(rows), len(columns)))
        lows, highs = array([low for _, low, _ in rows]), array([high for _, _, high in rows])
        optimize: Any = scipy.optimize
        found: Any = milp(
            columns, integrality=None if divided else ones(len(columns)), bounds=optimize.Bounds(0.0, 1.0),
            constraints=optimize.LinearConstraint(matrix, lows, highs),
            options={"time_limit": limit_s, "mip_rel_gap": 1e-3 if self.large and not placing else 0.0},
        )  # fmt: skip
        scale = 1.0 if placing else self.scale
        dual = found.fun if divided else found.mip_dual_bound
        if found.status == 0 and not divided and (placing or not self.large):
            dual = columns[found.x > 0.5].sum()
        bound = inf if found.status == 2 else 0.0 if dual is None else max(0.0, float(dual) * scale)
        if found.x is None:
            return None, bound
        return {index: float(part) for index, part in enumerate(found.x[:count]) if part > 1e-7}, bound

    def _energy(self, pool: int, parts: dict[int, float]) -> list[Row]:
        """Return for a pool the times between two moments that are most overfilled, as rows over all of its choices."""
        from numpy import array, clip, minimum, unique

        choices = self.table.choices
        mine = [(choices[index], part) for index, part in parts.items() if choices[index].pool == pool]
        if not mine:
            return []
        first, last, seconds = (array([getattr(one, what) for one, _ in mine]) for what in ("first", "last", "seconds"))
        weight = array([one.chips * part for one, part in mine])
        begins = unique([*first, *last])[:, None, None]
        stops = unique([*(first + seconds), *(last + seconds)])[None, :, None]
        room = (stops - begins)[:, :, 0] * self.table.problem.pools[pool].chips
        inside = clip(minimum(minimum(seconds, stops - begins), minimum(first + seconds - begins, stops - last)), 0.0, None)
        over = (inside * weight).sum(axis=2) / clip(room, 1e-9, None) * (room > 0)
        every = [(index, one) for index, one in enumerate(choices) if one.pool == pool]
        rows: list[Row] = []
        for row in over.max(axis=1).argsort()[::-1][:WORST]:
            column = int(over[row].argmax())
            if over[row, column] <= 1 + 1e-6:
                break
            begin, stop, whole = float(begins[row, 0, 0]), float(stops[0, column, 0]), float(room[row, column])
            factors = {index: one.chips * _within(one, begin, stop) / whole for index, one in every}
            rows.append(Row({index: factor for index, factor in factors.items() if factor > 0}, 1.0, pool))
        return rows

    def _timed(self, state: Assignment, clock: Callable[[], float], until: float) -> bool:
        """Look for the starts of every pool; whether that ends the search: all were found, or a set is not worth a proof.

        What is proven not to fit is forbidden.
        """
        state.fits = True
        for pool in range(len(self.table.problem.pools)):
            mine = frozenset(index for index in state.chosen if self.table.choices[index].pool == pool)
            if clock() > until:
                state.fits = False
                return True
            starts, proven = self._starts(mine) if mine else ({}, True)
            if starts is not None:
                state.starts |= starts
                continue
            state.fits = False
            if not proven or len(mine) > MOST_PROVEN:
                return True
            self.rows.append(self._forbidden(mine))
        return state.fits

    def _starts(self, mine: frozenset[int]) -> tuple[dict[int, float] | None, bool]:
        """Return starts of a set on one pool, or None and whether that is proven."""
        if mine not in self.known:
            listings = (listed(self.table, self.prices, mine, only=True, rule=rule) for rule in RULES)
            whole = next((listing for listing in listings if len(listing) == len(mine)), None)
            if whole is not None:
                self.known[mine] = whole, True
            else:
                found = scheduled(self.table, sorted(mine), CHECK_S, soonest=False)
                self.known[mine] = (None if found.starts is None else dict(found.starts)), found.impossible
        return self.known[mine]

    def _forbidden(self, mine: frozenset[int]) -> Row:
        """Return the row that forbids a set: the smallest part of it that does not fit, and whatever needs no less than that."""
        least = mine
        for index in sorted(mine, key=lambda one: self.table.choices[one].chips * self.table.choices[one].seconds):
            without = least - {index}
            if without and self._starts(without) == (None, True):
                least = without
        row: dict[int, float] = {}
        for index in least:
            of_work = self.table.of_work[self.table.choices[index].work]
            row |= {other: 1.0 for other in of_work if _needs_no_less(self.table.choices[other], self.table.choices[index])}
        return Row(row, float(len(least) - 1), self.table.choices[next(iter(mine))].pool)


def _within(choice: Choice, begin: float, stop: float) -> float:
    """Return the seconds that a choice must run between two moments wherever it starts."""
    early, late = choice.first + choice.seconds - begin, stop - choice.last
    return max(0.0, min(choice.seconds, stop - begin, early, late))


def _needs_no_less(other: Choice, choice: Choice) -> bool:
    """Whether a choice could stand in for another of the same workload: it would fit wherever the other one fits."""
    return (
        other.pool == choice.pool
        and other.chips >= choice.chips
        and other.seconds >= choice.seconds
        and len(other.spans) == len(choice.spans)
        and all(low <= first and last <= high for (first, last), (low, high) in zip(other.spans, choice.spans, strict=True))
    )
