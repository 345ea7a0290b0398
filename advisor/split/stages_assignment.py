"""The cheapest assignment of stages to pools when no deadline presses: a mixed-integer programme, solved by HiGHS.

Without a deadline the order of stages costs nothing, so that times fall out of the problem. What is left is which stage runs
where: one binary for each, and for each hand-over and pool of its source the price levels that it climbs, which need no
integrality. The same programme without whole numbers, with chains and loads, bounds the length of any plan from below.
"""

from dataclasses import dataclass, field
from math import inf
from typing import Any

from advisor.split.highs import milp
from advisor.split.stages_list import Draft, counted, scheduled
from advisor.split.stages_model import Matrix, Model

Terms = list[tuple[int, float]]


@dataclass(slots=True)
class _Programme:
    """Rows and columns of a programme that is being written."""

    prices: list[float] = field(default_factory=list[float])
    uppers: list[float] = field(default_factory=list[float])
    whole: list[int] = field(default_factory=list[int])
    rows: list[tuple[Terms, float, float]] = field(default_factory=list[tuple[Terms, float, float]])

    def column(self, price: float = 0.0, upper: float = 1.0, *, whole: bool = False) -> int:
        """Add a column from 0 to `upper` and return its number."""
        self.prices.append(price)
        self.uppers.append(upper)
        self.whole.append(int(whole))
        return len(self.prices) - 1

    def row(self, terms: Terms, low: float = -inf, high: float = inf) -> None:
        """Add a row."""
        self.rows.append((terms, low, high))


@dataclass(frozen=True, slots=True)
class Assigned:
    """The cheapest assignment that was found, with a bound; `impossible` when there is proven to be none."""

    pools: tuple[int, ...] | None
    cheapest: tuple[bool, ...]
    bound: float
    impossible: bool = False


def assign(model: Model, objective: str, limit_s: float, budget_usd: float | None = None) -> Assigned:
    """Return the assignment of least cost or energy.

    Args:
        model: of the problem; its quotas and count of pools are kept.
        objective: `cost` or `energy`.
        limit_s: seconds for the solver.
        budget_usd: that it may cost; None: no limit.
    """
    written = _Writer(model, objective, budget_usd)
    found = _solved(written.programme, limit_s, whole=True)
    bound = max(0.0, found.bound * written.scale)
    if not found.values:
        return Assigned(None, (), bound, found.impossible)
    pools = tuple(max(places, key=lambda pool: found.values[places[pool]]) for places in written.at)
    flags = tuple(True if flag is None else found.values[flag] > 0.5 for flag in written.flags)
    return Assigned(pools, flags, bound)


def least_seconds(model: Model, limit_s: float) -> float:
    """Return a length that no plan of a model is below: stages may be divided between pools, and only loads and chains count.

    Args:
        model: of the problem.
        limit_s: seconds for the solver; what it has not finished by then is no bound, and 0 is returned.
    """
    written = _Writer(model, "time", None)
    programme = written.programme
    end = programme.column(1.0, inf)
    starts = [programme.column(upper=inf) for _ in model.tasks]
    lasts: list[Terms] = [[(places[pool], model.seconds(members[0], pool)) for pool in places] if len(members) == 1 else []
                          for members in model.tasks for places in (written.at[members[0]],)]  # fmt: skip
    for task, column in written.lasts.items():
        lasts[task] = [(column, 1.0)]
    for start, last in zip(starts, lasts, strict=True):
        programme.row([(end, 1.0), (start, -1.0), *((column, -seconds) for column, seconds in last)], low=0.0)
    for task, edges in enumerate(model.inbound):
        for edge, before, _, _ in edges:
            delay = written.levels(edge, model.fast[edge], "seconds", [])
            terms = [(starts[task], 1.0), (starts[before], -1.0), *((column, -seconds) for column, seconds in lasts[before])]
            programme.row([*terms, *((column, -height) for column, height in delay)], low=0.0)
    for pool, held in enumerate(written.held):
        if held:
            slots = float(model.problem.pools[pool].slots)
            programme.row([(end, slots), *((column, -seconds) for column, seconds in held)], low=0.0)
    found = _solved(programme, limit_s, whole=False)
    return max(0.0, found.bound) * (1 - 1e-6) if found.values else 0.0


@dataclass(frozen=True, slots=True)
class _Solved:
    """What HiGHS found: values of the columns, empty when none, and a bound."""

    values: tuple[float, ...]
    bound: float
    impossible: bool


def _solved(programme: _Programme, limit_s: float, *, whole: bool) -> _Solved:
    """Return the least of a programme; with `whole`, columns that are marked take whole numbers."""
    import scipy.optimize
    from numpy import array
    from scipy.sparse import csr_array

    entries = [(row, column, factor) for row, (terms, _, _) in enumerate(programme.rows) for column, factor in terms]
    lines, columns, factors = zip(*entries, strict=True)
    shape = (len(programme.rows), len(programme.prices))
    matrix = csr_array((array(factors), (array(lines), array(columns))), shape=shape)
    lows, highs = array([low for _, low, _ in programme.rows]), array([high for _, _, high in programme.rows])
    optimize: Any = scipy.optimize
    found: Any = milp(
        array(programme.prices),
        integrality=array(programme.whole) if whole else None,
        bounds=optimize.Bounds(0.0, array(programme.uppers)),
        constraints=optimize.LinearConstraint(matrix, lows, highs),
        options={"time_limit": limit_s, "mip_rel_gap": 0.0},
    )
    values = () if found.x is None else tuple(float(value) for value in found.x)
    dual = found.mip_dual_bound if whole else found.fun
    return _Solved(values, inf if found.status == 2 else float(dual) if dual is not None else 0.0, found.status == 2)


def drafted(model: Model, assigned: Assigned, order: tuple[int, ...]) -> Draft | None:
    """Return an assignment with its times, or None without one."""
    return None if assigned.pools is None else scheduled(model, assigned.pools, assigned.cheapest, order)


class _Writer:
    """Writes the programme of one model."""

    def __init__(self, model: Model, objective: str, budget_usd: float | None) -> None:
        self.model, self.objective = model, objective
        rates = {"cost": model.usd_per_s, "energy": model.watts}.get(objective, ())
        self.rates = tuple(rate or 0.0 for rate in rates) or (0.0,) * len(model.problem.pools)
        self.lasts: dict[int, int] = {}
        self.programme = _Programme()
        self.scale = self._largest() or 1.0
        self.money: Terms = []
        self.held: list[Terms] = [[] for _ in model.problem.pools]
        self.at = [{pool: self._place(stage, pool) for pool in options} for stage, options in enumerate(model.options)]
        for places in self.at:
            self.programme.row([(column, 1.0) for column in places.values()], 1.0, 1.0)
        streams = (model.streamed(edge) and model.fast[edge] != model.cheap[edge] for edge in range(len(model.ends)))
        self.flags = [self.programme.column(whole=True) if stream else None for stream in streams]
        for edge in range(len(model.ends)):
            self._allow(edge)
            self._price(edge, budget_usd is not None)
        for task, members in enumerate(model.tasks):
            if len(members) > 1:
                self._stream(task)
        self._limit(budget_usd)

    def _largest(self) -> float:
        """Return the size of the objective, by which prices are divided: solvers like numbers near one."""
        return max(
            (self.model.seconds(stage, pool) * self.rates[pool]
             for stage, options in enumerate(self.model.options) for pool in options),
            default=1.0,
        )  # fmt: skip

    def _place(self, stage: int, pool: int) -> int:
        """Add the choice of a pool for a stage; alone in its task, it is held for just its own seconds."""
        alone = len(self.model.tasks[self.model.task_of[stage]]) == 1
        seconds = self.model.seconds(stage, pool)
        column = self.programme.column(seconds * self.rates[pool] / self.scale if alone else 0.0, whole=True)
        if alone:
            self.held[pool].append((column, seconds))
            self.money.append((column, seconds * (self.model.usd_per_s[pool] or 0.0)))
        return column

    def _allow(self, edge: int) -> None:
        source, target = self.model.ends[edge]
        for p, here in self.at[source].items():
            there = [column for q, column in self.at[target].items() if (p, q) in self.model.fast[edge]]
            if len(there) < len(self.at[target]):
                self.programme.row([(here, 1.0), *((column, -1.0) for column in there)], high=0.0)

    def _price(self, edge: int, budgeted: bool) -> None:
        """Add what a hand-over costs: levels that are climbed for each pool of its source unless its target is near enough."""
        if self.objective != "cost" and not budgeted:
            return
        factor = 1 / self.scale if self.objective == "cost" else 0.0
        flag = self.flags[edge]
        cheap: Terms = [] if flag is None else [(flag, -1.0)]
        for column, usd in self.levels(edge, self.model.cheap[edge], "usd", cheap):
            self.programme.prices[column] = usd * factor
            self.money.append((column, usd))
        if flag is not None:
            for column, usd in self.levels(edge, self.model.fast[edge], "usd", [(flag, 1.0)]):
                self.programme.prices[column] = usd * factor
                self.money.append((column, usd))

    def levels(self, edge: int, matrix: Matrix, what: str, unless: Terms) -> list[tuple[int, float]]:
        """Return columns that are one where a level is climbed, with the height of the step; `unless` frees them.

        Of a flag, `unless` is (flag, -1) for the way that is taken with the flag, and (flag, 1) for the other.
        """
        source, target = self.model.ends[edge]
        found: list[tuple[int, float]] = []
        for p, here in self.at[source].items():
            row = {q: getattr(matrix[p, q], what) for q in self.at[target] if (p, q) in matrix}
            below = 0.0
            for level in sorted({size for size in row.values() if size > 0}):
                column = self.programme.column()
                nearer: Terms = [(self.at[target][q], 1.0) for q, size in row.items() if size < level]
                free = 1.0 if unless and unless[0][1] < 0 else 0.0
                terms = [(column, 1.0), (here, -1.0), *nearer, *((flag, sign) for flag, sign in unless)]
                self.programme.row(terms, low=-free)
                found.append((column, level - below))
                below = level
        return found

    def _stream(self, task: int) -> None:
        """Add the length of stages that stream, and what is held of every pool that they use."""
        model, members = self.model, self.model.tasks[task]
        longest = sum(max(model.seconds(stage, pool) for pool in model.options[stage]) for stage in members)
        edges = [edge for edge, (source, _) in enumerate(model.ends) if model.streamed(edge) and model.task_of[source] == task]
        for edge in edges:
            longest += max((way.seconds for way in (*model.fast[edge].values(), *model.cheap[edge].values())), default=0.0)
        last = self.lasts[task] = self.programme.column(upper=longest)
        for edge in edges:
            flag = self.flags[edge]
            ways: list[tuple[Matrix, Terms]] = [(self.model.cheap[edge], [] if flag is None else [(flag, -1.0)])]
            ways += [] if flag is None else [(self.model.fast[edge], [(flag, 1.0)])]
            for matrix, unless in ways:
                steps = self.levels(edge, matrix, "seconds", unless)
                if steps:
                    self.programme.row([(last, 1.0), *((column, -height) for column, height in steps)], low=0.0)
        for pool in sorted({pool for stage in members for pool in model.options[stage]}):
            mine = [stage for stage in members if pool in self.at[stage]]
            self.programme.row([(last, 1.0), *((self.at[s][pool], -model.seconds(s, pool)) for s in mine)], low=0.0)
            held = self.programme.column(self.rates[pool] / self.scale, longest)
            for stage in mine:
                self.programme.row([(held, 1.0), (last, -1.0), (self.at[stage][pool], -longest)], low=-longest)
            self.held[pool].append((held, 1.0))
            self.money.append((held, model.usd_per_s[pool] or 0.0))

    def _limit(self, budget_usd: float | None) -> None:
        problem = self.model.problem
        for pool, quota in enumerate(self.model.quota_s):
            if quota is not None and self.held[pool]:
                self.programme.row(self.held[pool], high=quota * (1 + 1e-9))
        if budget_usd is not None:
            self.programme.row(self.money, high=budget_usd * (1 + 1e-9))
        if problem.most_pools is None:
            return
        used: Terms = []
        for pool in range(len(problem.pools)):
            if not counted(self.model, pool):
                continue
            flag = self.programme.column(whole=True)
            used.append((flag, 1.0))
            for places in self.at:
                if pool in places:
                    self.programme.row([(places[pool], 1.0), (flag, -1.0)], high=0.0)
        self.programme.row(used, high=float(problem.most_pools))
