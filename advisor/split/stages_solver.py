"""The exact search for a workflow: CP-SAT over which stage runs on which pool and when.

Times are whole numbers of a unit that is at most a ten-millionth of a plan that is known, so that rounding changes nothing that
anybody sees; whatever comes out is timed anew with the exact numbers.

A hand-over's delay is a ladder of levels: where a source is on a pool, a level is climbed unless the target is on one of the
pools that are nearer. That needs a clause for each pair of pools instead of a variable.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, inf, log10
from typing import TYPE_CHECKING, Any, TypeAlias

from advisor.split.stages_list import Draft, counted, in_time, scheduled
from advisor.split.stages_model import Matrix, Model

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

LARGE = 400
"""Options of all stages from which on presolve is kept short."""
Expression: TypeAlias = Any
"""A linear expression of CP-SAT; its own type admits what its operators do not."""
TICKS = 7
"""Digits of a plan's length, in units."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a search must keep to, beside the problem's own quotas.

    Args:
        seconds: of processor time, about, for the search.
        deadline_s, budget_usd, budget_j: of the plan; None: no limit.
        tight: whether limits are kept in rounded numbers with room to spare, rather than with the benefit of the doubt.
    """

    seconds: float
    deadline_s: float | None = None
    budget_usd: float | None = None
    budget_j: float | None = None
    tight: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    Args:
        draft: the best; None when there is none or none was found.
        bound: nothing is better, in the unit of the objective.
        impossible: proven that nothing keeps the limits.
    """

    draft: Draft | None
    bound: float
    impossible: bool = False


def search(model: Model, objective: str, limits: Limits, hint: Draft | None, floor_value: float = 0.0) -> Found:
    """Return the best plan that CP-SAT finds.

    Args:
        model: of the problem.
        objective: one of `core.workload.OBJECTIVES`.
        limits: to keep.
        hint: a plan to begin with.
        floor_value: a value that is known to be the least possible.
    """
    return _Search(model, objective, limits, hint).run(floor_value)


def tick_of(size: float) -> float:
    """Return the unit for numbers up to a size: a power of ten, so that round numbers stay exact."""
    return 10.0 ** (floor(log10(size)) - TICKS) if size > 0 else 1.0


class _Search:
    """One model of CP-SAT, built from one model of a problem."""

    def __init__(self, model: Model, objective: str, limits: Limits, hint: Draft | None) -> None:
        from ortools.sat.python import cp_model

        self.cp, self.sat = cp_model, cp_model.CpModel()
        self.model, self.objective, self.limits, self.hint = model, objective, limits, hint
        most = hint.seconds if hint is not None else self._longest()
        if limits.deadline_s is not None:
            most = max(min(most, limits.deadline_s), 0.0) if hint is None else max(most, limits.deadline_s)
        self.tick = tick_of(most)
        self.horizon = ceil(most / self.tick) + 2 * len(model.tasks) + 2 * len(model.ends)
        self.slack = len(model.tasks) + len(model.ends)
        self.at = [
            {pool: self.sat.new_bool_var(f"x{stage}.{pool}") for pool in options} for stage, options in enumerate(model.options)
        ]
        self.starts = [self.sat.new_int_var(0, self.horizon, f"s{task}") for task in range(len(model.tasks))]
        self.cheap = self._cheap_flags()
        self.steps: list[tuple[int, str, float, dict[int, cp_model.IntVar]]] = []
        self.delays = [self._ladder(edge, "seconds", self.tick) for edge in range(len(model.ends))]
        self.lasts, self.held = self._tasks()
        self.end = self.sat.new_int_var(0, self.horizon, "end")

    def _longest(self) -> float:
        """Return seconds within which any plan that is worth anything ends: everything in a row, at its slowest."""
        work = sum(max(self.model.seconds(stage, pool) for pool in options) for stage, options in enumerate(self.model.options))
        moved = sum(
            max((way.seconds for matrix in (fast, cheap) for way in matrix.values()), default=0.0)
            for fast, cheap in zip(self.model.fast, self.model.cheap, strict=True)
        )
        return work + moved

    def _cheap_flags(self) -> list["cp_model.IntVar | None"]:
        """Return for each edge the choice between its fastest and its cheapest way, where both time and money matter."""
        money = self.objective == "cost" or self.limits.budget_usd is not None
        flags: list[cp_model.IntVar | None] = []
        for edge, (fast, cheap) in enumerate(zip(self.model.fast, self.model.cheap, strict=True)):
            flags.append(self.sat.new_bool_var(f"w{edge}") if money and fast != cheap else None)
        return flags

    def _ladder(self, edge: int, what: str, tick: float) -> Expression:
        """Return the delay (or price) of an edge in ticks, at least; levels are climbed by clauses."""
        source, target = self.model.ends[edge]
        flag = self.cheap[edge]
        matrices: list[tuple[Matrix, list[Expression]]] = [(self.model.fast[edge], [] if flag is None else [flag])]
        if flag is not None:
            matrices.append((self.model.cheap[edge], [flag.negated()]))
        sizes = [{pair: _up(getattr(way, what), tick) for pair, way in matrix.items()} for matrix, _ in matrices]
        levels = sorted({size for one in sizes for size in one.values()} - {0})
        steps = {level: self.sat.new_bool_var(f"{what}{edge}.{level}") for level in levels}
        self.steps.append((edge, what, tick, steps))
        for lower, upper in pairwise(levels):
            self.sat.add_implication(steps[upper], steps[lower])
        for size, (_, unless) in zip(sizes, matrices, strict=True):
            for p, here in self.at[source].items():
                row = {q: size.get((p, q)) for q in self.at[target]}
                for level in {value for value in row.values() if value}:
                    nearer = [self.at[target][q] for q, value in row.items() if value is not None and value < level]
                    self.sat.add_bool_or([here.negated(), steps[level], *nearer, *unless])
                if None in row.values():
                    self.sat.add_bool_or([here.negated(), *(self.at[target][q] for q, value in row.items() if value is not None)])
        previous = [0, *levels]
        return sum((level - before) * steps[level] for before, level in zip(previous, levels, strict=False))

    def _tasks(self) -> tuple[list[Expression], list[dict[int, Expression]]]:
        """Add what each stage needs: one pool, a length, a place on its pools; return lengths and what is held of each pool."""
        lasts: list[Expression] = []
        held: list[dict[int, Expression]] = []
        intervals: list[list[cp_model.IntervalVar]] = [[] for _ in self.model.problem.pools]
        for stage in range(len(self.at)):
            self.sat.add_exactly_one(self.at[stage].values())
        for task, members in enumerate(self.model.tasks):
            work = {p: [(s, _up(self.model.seconds(s, p), self.tick)) for s in members if p in self.at[s]]
                    for p in sorted({pool for stage in members for pool in self.at[stage]})}  # fmt: skip
            if len(members) == 1:
                sizes = {pool: size for pool, ((_, size),) in work.items()}
                lasts.append(sum(self.at[members[0]][pool] * size for pool, size in sizes.items()))
                held.append({pool: self.at[members[0]][pool] * size for pool, size in sizes.items()})
                for pool, size in sizes.items():
                    here = self.at[members[0]][pool]
                    intervals[pool].append(self.sat.new_optional_fixed_size_interval_var(self.starts[task], size, here, ""))
                continue
            last = self.sat.new_int_var(0, self.horizon, f"d{task}")
            lasts.append(last)
            held.append({})
            for edge, (source, _) in enumerate(self.model.ends):
                if self.model.streamed(edge) and self.model.task_of[source] == task:
                    self.sat.add(last >= self.delays[edge])
            for pool, parts in work.items():
                self.sat.add(last >= sum(self.at[s][pool] * size for s, size in parts))
                used = self.sat.new_bool_var(f"u{task}.{pool}")
                self.sat.add_max_equality(used, [self.at[s][pool] for s, _ in parts])
                mine = self.sat.new_int_var(0, self.horizon, f"h{task}.{pool}")
                row: Any = self.sat.add(mine >= last)
                row.only_enforce_if(used)
                held[task][pool] = mine
                stop = self.sat.new_int_var(0, 2 * self.horizon, "")
                intervals[pool].append(self.sat.new_optional_interval_var(self.starts[task], last, stop, used, ""))
        for pool, mine in enumerate(intervals):
            slots = self.model.problem.pools[pool].slots
            if len(mine) > slots == 1:
                self.sat.add_no_overlap(mine)
            elif len(mine) > slots:
                self.sat.add_cumulative(mine, [1] * len(mine), slots)
        return lasts, held

    def _limit(self, limit: float, tick: float) -> int:
        """Return a limit in ticks, with the benefit of the doubt or with room to spare; what was rounded, was rounded up."""
        return floor(limit / tick + 1e-6) + (0 if self.limits.tight else self.slack)

    def _spent(self, rates: tuple[float | None, ...], crossings: bool) -> tuple[Expression, float]:
        """Return what is spent on pools and crossings, in ticks, with the tick: USD, or joules."""
        rows = [(rate or 0.0) * self.tick for rate in rates]
        most = self.horizon * sum(rows)
        most += sum(max((way.usd for way in matrix.values()), default=0.0) for matrix in self.model.fast) if crossings else 0.0
        if self.hint is not None:
            most = self.hint.usd if crossings else self.hint.joules
        tick = tick_of(most) or 1.0
        total: Expression = 0
        for held, members in zip(self.held, self.model.tasks, strict=True):
            if len(members) == 1:
                stage = members[0]
                for pool, here in self.at[stage].items():
                    total += here * _up(self.model.seconds(stage, pool) * (rates[pool] or 0.0), tick)
                continue
            for pool, mine in held.items():
                if rows[pool]:
                    paid = self.sat.new_int_var(0, 10**12, "")
                    scale = 10**6
                    self.sat.add(paid * scale >= mine * _up(rows[pool] / tick * scale, 1.0))
                    total += paid
        if crossings:
            for edge in range(len(self.model.ends)):
                total += self._ladder(edge, "usd", tick)
        return total, tick

    def run(self, floor_value: float) -> Found:
        """Add the rest of the model, solve it, and time what was found."""
        self._precede()
        self._capacity()
        goal, unit = self._goal()
        if floor_value > 0:
            self.sat.add(goal >= max(0, floor(floor_value / unit) - self.slack))
        self.sat.minimize(goal)
        self._begin_with()
        solver = self.cp.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 0
        solver.parameters.linearization_level = 2
        if sum(map(len, self.at)) > LARGE:  # what presolve would learn takes longer than the search has
            solver.parameters.cp_model_probing_level = 0
            solver.parameters.max_presolve_iterations = 1
            solver.parameters.num_workers = 2  # one for the bound, one for neighbourhoods of the best plan
            solver.parameters.subsolvers.append("max_lp")
        solver.parameters.max_time_in_seconds = self.limits.seconds
        state = solver.solve(self.sat)
        if state == self.cp.INFEASIBLE:
            return Found(None, inf, impossible=True)
        bound = max(floor_value, (solver.best_objective_bound - self.slack) * unit)
        if state not in (self.cp.OPTIMAL, self.cp.FEASIBLE):
            return Found(None, bound)
        draft = self._read(solver)
        proven = state == self.cp.OPTIMAL  # up to the rounding, of at most a tick for each stage and hand-over
        return Found(draft, draft.value(self.objective) if proven else bound)

    def _precede(self) -> None:
        for task in range(len(self.model.tasks)):
            self.sat.add(self.end >= self.starts[task] + self.lasts[task])
        for edge, (source, target) in enumerate(self.model.ends):
            if not self.model.streamed(edge):
                first, second = self.model.task_of[source], self.model.task_of[target]
                self.sat.add(self.starts[second] >= self.starts[first] + self.lasts[first] + self.delays[edge])

    def _capacity(self) -> None:
        """Add quotas, loads and the count of pools."""
        used: list[cp_model.IntVar] = []
        for pool, words in enumerate(self.model.problem.pools):
            mine = [held[pool] for held in self.held if pool in held]
            if not mine:
                continue
            self.sat.add(sum(mine) <= words.slots * self.end)
            quota = self.model.quota_s[pool]
            if quota is not None and quota / self.tick < 1e15:
                self.sat.add(sum(mine) <= self._limit(quota, self.tick))
            if self.model.problem.most_pools is not None and counted(self.model, pool):
                flag = self.sat.new_bool_var(f"p{pool}")
                used.append(flag)
                for stage in self.at:
                    if pool in stage:
                        self.sat.add_implication(stage[pool], flag)
        if used:
            self.sat.add(sum(used) <= (self.model.problem.most_pools or 0))
        if self.limits.deadline_s is not None and self.limits.deadline_s / self.tick < 1e15:
            self.sat.add(self.end <= self._limit(self.limits.deadline_s, self.tick))

    def _goal(self) -> tuple[Expression, float]:
        """Return what is to be least, with its unit; budgets are added on the way."""
        goals: dict[str, tuple[Expression, float]] = {"time": (self.end, self.tick)}
        if self.objective == "cost" or self.limits.budget_usd is not None:
            goals["cost"] = self._spent(self.model.usd_per_s, crossings=True)
        if self.objective == "energy" or self.limits.budget_j is not None:
            goals["energy"] = self._spent(self.model.watts, crossings=False)
        for name, limit in (("cost", self.limits.budget_usd), ("energy", self.limits.budget_j)):
            if limit is not None:
                spent, tick = goals[name]
                if limit / tick < 1e15:
                    self.sat.add(spent <= self._limit(limit, tick))
        return goals[self.objective]

    def _begin_with(self) -> None:
        if self.hint is None:
            return
        for stage, places in enumerate(self.at):
            for pool, here in places.items():
                self.sat.add_hint(here, self.hint.pools[stage] == pool)
        begins, stops = self._whole_times(self.hint)
        for start, begin in zip(self.starts, begins, strict=True):
            self.sat.add_hint(start, begin)
        self.sat.add_hint(self.end, max(stops))
        for edge, what, tick, steps in self.steps:
            source, target = self.model.ends[edge]
            way = self.model.crossing(edge, self.hint.pools[source], self.hint.pools[target], cheapest=self.hint.cheapest[edge])
            for level, step in steps.items():
                self.sat.add_hint(step, level <= _up(getattr(way, what), tick))
        for flag, cheapest in zip(self.cheap, self.hint.cheapest, strict=True):
            if flag is not None:
                self.sat.add_hint(flag, cheapest)

    def _whole_times(self, draft: Draft) -> tuple[list[int], list[int]]:
        """Return starts and stops of a plan in ticks, every length rounded up as in the model."""
        begins, stops = [0] * len(draft.starts), [0] * len(draft.starts)
        free = [[0] * pool.slots for pool in self.model.problem.pools]
        for task in in_time(draft):
            begin = 0
            for edge, source, s, t in self.model.inbound[task]:
                way = self.model.crossing(edge, draft.pools[s], draft.pools[t], cheapest=draft.cheapest[edge])
                begin = max(begin, stops[source] + _up(way.seconds, self.tick))
            used = {draft.pools[stage] for stage in self.model.tasks[task]}
            begins[task] = max(begin, *(min(free[pool]) for pool in used))
            stops[task] = begins[task] + _up(draft.lasts[task], self.tick)
            for pool in used:
                free[pool].remove(min(free[pool]))
                free[pool].append(stops[task])
        return begins, stops

    def _read(self, solver: "cp_model.CpSolver") -> Draft:
        """Return the plan that was found, timed exactly in the order that was found."""
        pools = tuple(next(pool for pool, here in places.items() if solver.boolean_value(here)) for places in self.at)
        always = self.objective == "cost"
        cheapest = tuple(always if flag is None else solver.boolean_value(flag) for flag in self.cheap)
        starts = [solver.value(start) for start in self.starts]
        order = tuple(sorted(range(len(starts)), key=lambda task: (starts[task], task)))
        draft = scheduled(self.model, pools, cheapest, order)
        return scheduled(self.model, pools, cheapest, in_time(draft))


def _up(size: float, tick: float) -> int:
    """Return a size in ticks, rounded up but for the noise of floating point."""
    return max(0, ceil(size / tick - 1e-4))
