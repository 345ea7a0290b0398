"""Planner of a team's portfolio: which workload on which pool, when and with how many chips; exact or with the gap stated.

As many workloads as possible are placed, by priority; then cost (or energy) is least, and after that, with every workload on its
pool, the sum of priority x end. For `time` that sum itself is least. What finds no place is told with its reason.

Pure numbers in and out; see `advisor.split.portfolio_words`.
"""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from time import monotonic

from advisor.split.portfolio_anneal import annealed
from advisor.split.portfolio_assignment import Assigning
from advisor.split.portfolio_choices import Table, tabled
from advisor.split.portfolio_list import listed
from advisor.split.portfolio_schedule import Seek, planned, scheduled
from advisor.split.portfolio_tell import told
from advisor.split.portfolio_words import PortfolioPlan, PortfolioProblem

LIMIT_S = 9.0
"""Seconds that a search may take unless said."""
PROOF = 0.6
"""Part of that time in which an assignment is looked for that is proven to be cheapest; then a plan that is near its bound."""
BOUND_S = 1.0
"""Seconds for the bound of plans that place less than what may be possible."""
ORDER_S = 0.1
"""Seconds at most for the order of one pool, once it is clear who goes there."""


def plan_portfolio(
    problem: PortfolioProblem, limit_s: float = LIMIT_S, *, alone: bool = True, clock: Callable[[], float] = monotonic
) -> PortfolioPlan:
    """Return the best plan of a portfolio.

    Args:
        problem: workloads and pools.
        limit_s: seconds for the search, about; what is not proven by then has its gap stated.
        alone: whether every pool is tried alone, too.
        clock: seconds from any moment on.

    Returns:
        The plan; `unplaced` holds what found no place, with reasons.

    Raises:
        BadInput: names that are twice or unknown, windows that overlap, numbers that cannot be.
    """
    table = tabled(problem)
    until = clock() + limit_s
    plan = _soonest(table, until - clock()) if problem.objective == "time" else _cheapest(table, clock, until)
    if not alone:
        return plan
    found = [(pool.name, _by_itself(problem, pool.name, limit_s / 8)) for pool in problem.pools]
    singles = tuple((name, len(one.placed), one.cost_usd if not one.unplaced else None) for name, one in found)
    return replace(plan, alone=singles)


def _by_itself(problem: PortfolioProblem, pool: str, limit_s: float) -> PortfolioPlan:
    works = tuple(
        replace(work, options=tuple(option for option in work.options if option.pool == pool)) for work in problem.works
    )
    return plan_portfolio(replace(problem, works=works), limit_s, alone=False)


def _cheapest(table: Table, clock: Callable[[], float], until: float) -> PortfolioPlan:
    """Return the plan of least cost or energy."""
    prices = [one.usd if table.problem.objective == "cost" else one.joules for one in table.choices]
    assigning, begun = Assigning(table, prices), clock()
    state = assigning.run(clock, begun + PROOF * (until - begun))
    plans = [listed(table, prices), listed(table, prices, state.chosen), *state.repaired]
    if state.fits:
        plans.append(state.starts)

    def worth(plan: dict[int, float]) -> tuple[float, float]:
        placed = {table.choices[index].work for index in plan}
        missing = sum(work.priority for index, work in enumerate(table.problem.works) if index not in placed)
        return missing, sum(prices[index] for index in plan)

    guide = None if state.fits else assigning.guide()
    if guide is not None:
        found = annealed(table, prices, guide, assigning.full(), min(plans, key=worth), clock, until - ORDER_S)
        budget = inf if table.problem.budget_usd is None else table.problem.budget_usd
        if sum(table.choices[index].usd for index in found) <= budget * (1 + 1e-9):
            plans.append(found)
    best = min(plans, key=worth)
    missing, value = worth(best)
    bound = state.bound if missing <= state.missing else assigning.priced(missing, BOUND_S)[1]
    bound = min(bound, value)
    if until > clock():
        best = _ordered(table, best, clock, until)
    return told(table, best, bound)


def _ordered(table: Table, plan: dict[int, float], clock: Callable[[], float], until: float) -> dict[int, float]:
    """Return the same choices with the least sum of priority x end on each pool, as far as time reaches."""
    better = dict(plan)
    for pool in range(len(table.problem.pools)):
        mine = [index for index in plan if table.choices[index].pool == pool]
        left = until - clock()
        if not mine or left <= 0:
            continue
        found = scheduled(table, mine, min(ORDER_S, left), soonest=True)
        if found.starts is not None and _weighted(table, dict(found.starts)) <= _weighted(table, {i: plan[i] for i in mine}):
            better |= dict(found.starts)
    return better


def _weighted(table: Table, plan: dict[int, float]) -> float:
    choices = ((table.choices[index], start) for index, start in plan.items())
    return sum(
        table.problem.works[choice.work].priority * table.clocks[choice.pool].stops(start + choice.seconds)
        for choice, start in choices
    )


def _soonest(table: Table, limit_s: float) -> PortfolioPlan:
    """Return the plan with the least sum of priority x end."""
    costs = [one.usd for one in table.choices]
    first = listed(table, costs, soonest=True)
    latest = max((clock.windows[-1][1] for clock in table.clocks if clock.windows), default=1.0)
    unplaced = 1.01 * latest * sum(work.priority for work in table.problem.works)
    least = sum(
        work.priority * min((_end(table, index) for index in choices), default=0.0)
        for work, choices in zip(table.problem.works, table.of_work, strict=True)
    )
    found = planned(table, limit_s, tuple(first.items()), Seek((), unplaced, least * (1 - 1e-6)))
    placed_first = {table.choices[index].work for index in first}
    best = first if found.starts is None else dict(found.starts)
    placed = {table.choices[index].work for index in best}
    if _priority(table, placed_first) > _priority(table, placed):
        best, placed = first, placed_first
    possible = [index for index, choices in enumerate(table.of_work) if choices]
    missing = sum(table.problem.works[index].priority for index in possible if index not in placed)
    value = _weighted(table, best)
    return told(table, best, value if found.proven else min(value, max(0.0, found.bound - unplaced * missing)))


def _end(table: Table, index: int) -> float:
    choice = table.choices[index]
    return table.clocks[choice.pool].stops(choice.first + choice.seconds)


def _priority(table: Table, works: set[int]) -> int:
    return sum(table.problem.works[work].priority for work in works)
