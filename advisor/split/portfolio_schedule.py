"""Workloads in time on pools whose chips they share: CP-SAT with one cumulative constraint for each pool.

The same model serves a single pool with a fixed set (does it fit, and in which order is it done soonest), and all pools together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, inf
from typing import Any, TypeAlias

from advisor.split.portfolio_choices import Table
from advisor.split.stages_solver import tick_of

Expression: TypeAlias = Any
LARGE = 400
"""Choices from which on presolve is kept short and a second thread searches neighbourhoods."""


@dataclass(frozen=True, slots=True)
class Timed:
    """What a search found.

    Args:
        starts: (choice, start on its pool's clock) of every workload that is placed; None when nothing was found.
        bound: of the penalty and weighted ends together.
        impossible: proven that the set does not fit.
        proven: whether the starts are the best there are.
    """

    starts: tuple[tuple[int, float], ...] | None
    bound: float
    impossible: bool = False
    proven: bool = False


def scheduled(table: Table, chosen: Sequence[int], limit_s: float, *, soonest: bool) -> Timed:
    """Return starts of a fixed set of choices.

    Args:
        table: of the problem.
        chosen: one choice for each workload that is to be placed.
        limit_s: seconds for the search.
        soonest: whether the sum of priority x end is to be least, rather than any starts that fit.
    """
    search = _Search(table, [[choice] for choice in chosen], must=True)
    return search.run(limit_s, Seek((), 0.0) if soonest else None, ())


@dataclass(frozen=True, slots=True)
class Seek:
    """What a search over all pools is to make least.

    Args:
        prices: of each choice; empty: the sum of priority x end.
        unplaced: what a workload without a place adds for each step of its priority.
        least: a value below which there is none.
    """

    prices: tuple[float, ...]
    unplaced: float
    least: float = 0.0


def planned(table: Table, limit_s: float, hint: Sequence[tuple[int, float]], seek: Seek) -> Timed:
    """Return the choice and start of every workload.

    Args:
        table: of the problem.
        limit_s: seconds for the search.
        hint: a plan to begin with.
        seek: what is to be least.
    """
    search = _Search(table, [list(choices) for choices in table.of_work], must=False)
    return search.run(limit_s, seek, hint)


class _Search:
    """One model of CP-SAT."""

    def __init__(self, table: Table, sets: list[list[int]], *, must: bool) -> None:
        from ortools.sat.python import cp_model

        self.cp: Any = cp_model
        self.sat: Any = cp_model.CpModel()
        self.table, self.sets, self.must = table, [one for one in sets if one], must
        used = [table.choices[choice] for one in self.sets for choice in one]
        longest = max((min(choice.last, table.clocks[choice.pool].whole) + choice.seconds for choice in used), default=1.0)
        self.tick = tick_of(max(longest, 1e-6))
        self.at: dict[int, Expression] = {}
        self.start: dict[int, Expression] = {}
        self.lasts = {choice: ceil(table.choices[choice].seconds / self.tick - 1e-4) for one in self.sets for choice in one}
        self.between: dict[int, dict[int, float]] = {}
        intervals: dict[int, list[tuple[Expression, int]]] = {}
        for one in self.sets:
            for choice in one:
                self._add(choice, intervals)
            ways = [self.at[choice] for choice in one]
            self.sat.add_exactly_one(ways) if must else self.sat.add_at_most_one(ways)
        for pool, mine in intervals.items():
            chips = table.problem.pools[pool].chips
            if sum(need for _, need in mine) > chips:
                self.sat.add_cumulative([interval for interval, _ in mine], [need for _, need in mine], chips)
        if not must:
            self._limit()

    def _add(self, index: int, intervals: dict[int, list[tuple[Expression, int]]]) -> None:
        choice = self.table.choices[index]
        spans: list[list[int]] = []
        between: dict[int, float] = {}
        for first, last in choice.spans:
            low, high = ceil(first / self.tick - 1e-4), floor(last / self.tick + 1e-4)
            if low > high:  # no tick lies within: the one before is taken for the start, and one more for the whole
                low, between[high] = high, first
            spans.append([low, high])
        if between:
            self.between[index] = between
            self.lasts[index] += 1
        self.at[index] = self.sat.new_bool_var(f"x{index}")
        self.start[index] = self.sat.new_int_var_from_domain(self.cp.Domain.from_intervals(spans), f"s{index}")
        interval = self.sat.new_optional_fixed_size_interval_var(self.start[index], self.lasts[index], self.at[index], "")
        intervals.setdefault(choice.pool, []).append((interval, choice.chips))

    def _moment(self, index: int, tick: int) -> float:
        """Return the start that a tick stands for."""
        return self.between.get(index, {}).get(tick, tick * self.tick)

    def _limit(self) -> None:
        problem = self.table.problem
        rows: list[tuple[list[tuple[int, float]], float]] = []
        for pool, words in enumerate(problem.pools):
            if words.quota_chip_h is not None:
                mine = [(index, self.table.choices[index]) for index in self.at if self.table.choices[index].pool == pool]
                rows.append(([(index, one.chips * one.seconds) for index, one in mine], words.quota_chip_h * 3600.0))
        if problem.budget_usd is not None:
            rows.append(([(index, self.table.choices[index].usd) for index in self.at], problem.budget_usd))
        for row, limit in rows:
            unit = tick_of(max([limit, *(size for _, size in row), 1e-9]))
            self.sat.add(sum(self.at[index] * ceil(size / unit - 1e-4) for index, size in row) <= floor(limit / unit + 1e-4))

    def _end(self, index: int) -> Expression:
        """Return the moment in ticks at which a choice ends, if it is taken; beyond a closing, by the windows' shifts."""
        choice = self.table.choices[index]
        clock = self.table.clocks[choice.pool]
        end: Expression = self.start[index] + self.lasts[index]
        shifts = [round((start - opened) / self.tick) for (start, _), opened in zip(clock.windows, clock.opened, strict=True)]
        if len(shifts) == 1:
            return end + shifts[0]
        flags = [self.sat.new_bool_var("") for _ in shifts]
        self.sat.add_exactly_one(flags)
        stops = [opened + stop - start for (start, stop), opened in zip(clock.windows, clock.opened, strict=True)]
        for flag, stop in zip(flags, stops, strict=True):
            self.sat.add(end <= floor(stop / self.tick + 1e-4) + 1).only_enforce_if(flag)
        return end + sum(shift * flag for shift, flag in zip(shifts, flags, strict=True))

    def _goal(self, unplaced_costs: float) -> tuple[Expression, float]:
        """Return priority x end of all, in units in which ends and penalties are whole."""
        goal: Expression = 0
        missing = max(1, ceil(unplaced_costs / self.tick))
        furthest = 1 + max((ceil(clock.windows[-1][1] / self.tick) for clock in self.table.clocks if clock.windows), default=0)
        for one in self.sets:
            priority = self.table.problem.works[self.table.choices[one[0]].work].priority
            ends = self.sat.new_int_var(0, furthest + max(self.lasts[choice] for choice in one), "")
            for choice in one:
                self.sat.add(ends >= self._end(choice)).only_enforce_if(self.at[choice])
            goal += priority * ends
            if not self.must:
                goal += priority * missing * (1 - sum(self.at[choice] for choice in one))
        return goal, self.tick

    def _bill(self, seek: Seek) -> tuple[Expression, float]:
        """Return what all choices and all workloads without a place cost, in whole units."""
        unit = tick_of(max([*seek.prices, seek.unplaced, 1e-9]))
        goal: Expression = 0
        for one in self.sets:
            priority = self.table.problem.works[self.table.choices[one[0]].work].priority
            missing = priority * ceil(seek.unplaced / unit)
            goal += missing + sum(self.at[choice] * (round(seek.prices[choice] / unit) - missing) for choice in one)
        return goal, unit

    def run(self, limit_s: float, seek: Seek | None, hint: Sequence[tuple[int, float]]) -> Timed:
        """Solve; without anything to seek, any starts will do."""
        unit = self.tick
        if seek is not None:
            goal, unit = self._bill(seek) if seek.prices else self._goal(seek.unplaced)
            if seek.least > 0:
                self.sat.add(goal >= floor(seek.least / unit) - len(self.sets))
            self.sat.minimize(goal)
        given = dict(hint)
        for index, at in self.at.items():
            if given:
                self.sat.add_hint(at, index in given)
                self.sat.add_hint(self.start[index], round(given.get(index, self.table.choices[index].first) / self.tick))
        solver = self.cp.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 0
        solver.parameters.max_time_in_seconds = max(0.01, limit_s)
        if len(self.at) > LARGE:
            solver.parameters.num_workers = 2
            solver.parameters.cp_model_probing_level = 0
            solver.parameters.max_presolve_iterations = 1
        state = solver.solve(self.sat)
        if state == self.cp.INFEASIBLE:
            return Timed(None, inf, impossible=True)
        bound = (solver.best_objective_bound - len(self.sets)) * unit if seek is not None else 0.0
        if state not in (self.cp.OPTIMAL, self.cp.FEASIBLE):
            return Timed(None, bound)
        taken = [index for index, at in self.at.items() if solver.boolean_value(at)]
        found = tuple((index, self._moment(index, solver.value(self.start[index]))) for index in taken)
        return Timed(found, bound, proven=state == self.cp.OPTIMAL)
