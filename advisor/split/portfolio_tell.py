"""A plan of a portfolio in words: who is where and when, what each pool does, and why somebody has no place."""

from advisor.split.portfolio_choices import Table
from advisor.split.portfolio_words import PlacedWork, PortfolioPlan, TeamUse, Unplaced
from core.split import Bar


def told(table: Table, plan: dict[int, float], bound: float) -> PortfolioPlan:
    """Return a plan with everything that is said of it.

    Args:
        table: of the problem.
        plan: starts on the pools' clocks, by choice.
        bound: no plan that places as much is better.
    """
    problem = table.problem
    placed = sorted((_placed(table, index, start) for index, start in plan.items()), key=lambda one: (one.start_s, one.work))
    choices = [table.choices[index] for index in plan]
    pools = {choice.pool for choice in choices}
    usd = sum(choice.usd for choice in choices)
    joules = sum(choice.joules for choice in choices)
    priority = {work.name: work.priority for work in problem.works}
    weighted = sum(priority[one.work] * one.stop_s for one in placed)
    value = {"cost": usd, "energy": joules, "time": weighted}[problem.objective]
    gap = max(0.0, (value - bound) / value) if value > 0 else 0.0
    end = max((one.stop_s for one in placed), default=0.0)
    return PortfolioPlan(
        objective=problem.objective,
        placed=tuple(placed),
        unplaced=_unplaced(table, plan),
        cost_usd=None if any(problem.pools[pool].usd_per_chip_h is None for pool in pools) else usd,
        energy_j=None if any(problem.pools[pool].watts_per_chip is None for pool in pools) else joules,
        weighted_s=weighted,
        end_s=end,
        bound=bound,
        gap=gap if gap > 1e-9 else 0.0,
        uses=_uses(table, plan, end),
        timeline=tuple(Bar(one.pool, one.start_s, one.stop_s, "compute", f"{one.work}, {_chips(one.chips)}") for one in placed),
    )


def _chips(count: int) -> str:
    return "1 chip" if count == 1 else f"{count} chips"


def _placed(table: Table, index: int, start: float) -> PlacedWork:
    choice, problem = table.choices[index], table.problem
    clock, pool = table.clocks[choice.pool], problem.pools[choice.pool]
    begin = clock.starts(start)
    stop = max(begin, clock.stops(start + choice.seconds))
    cost = None if pool.usd_per_chip_h is None else choice.usd
    return PlacedWork(problem.works[choice.work].name, pool.name, choice.chips, begin, stop, cost)


def _uses(table: Table, plan: dict[int, float], end: float) -> tuple[TeamUse, ...]:
    chosen = [table.choices[index] for index in plan]
    whole = sum(choice.chips * choice.seconds for choice in chosen)
    found: list[TeamUse] = []
    for index, pool in enumerate(table.problem.pools):
        mine = [choice for choice in chosen if choice.pool == index]
        chip_s = sum(choice.chips * choice.seconds for choice in mine)
        room = pool.chips * table.clocks[index].at(end)
        fraction = chip_s / whole if whole > 0 else (len(mine) / len(chosen) if chosen else 0.0)
        found.append(TeamUse(pool.name, fraction, len(mine), chip_s, chip_s / room if room > 0 else 0.0))
    return tuple(found)


def _unplaced(table: Table, plan: dict[int, float]) -> tuple[Unplaced, ...]:
    """Return what has no place: options that never fit, with their reasons, and what bars those that would fit alone."""
    problem = table.problem
    placed = {table.choices[index].work for index in plan}
    spent = sum(table.choices[index].usd for index in plan)
    found: list[Unplaced] = []
    for work, words in enumerate(problem.works):
        if work in placed:
            continue
        said = list(table.reasons[work])
        ways = [table.choices[index] for index in table.of_work[work]]
        if not words.options:
            said.append("it has no option")
        for pool in dict.fromkeys(choice.pool for choice in ways):
            name, mine = problem.pools[pool].name, [choice for choice in ways if choice.pool == pool]
            least = min(choice.usd for choice in mine)
            used = sum(one.chips * one.seconds for one in (table.choices[index] for index in plan) if one.pool == pool)
            quota = problem.pools[pool].quota_chip_h
            if problem.budget_usd is not None and spent + least > problem.budget_usd * (1 + 1e-9):
                said.append(f"{name}: {least:,.2f} USD, and {problem.budget_usd - spent:,.2f} USD of the budget are left")
            elif quota is not None and used + min(one.chips * one.seconds for one in mine) > quota * 3600.0 * (1 + 1e-9):
                said.append(f"{name}: its quota of {quota:,.4g} chip-hours is used by others")
            else:
                said.append(f"{name}: others that together count for more have its chips until the deadline")
        found.append(Unplaced(words.name, "; ".join(said)))
    return tuple(found)
