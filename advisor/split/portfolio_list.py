"""A plan of a portfolio by list: the most pressing workload first, each where it costs least and fits.

It is what there is when the search has not ended, and what the search begins with.
"""

from collections.abc import Iterable, Sequence

from advisor.split.portfolio_choices import Choice, Table

RULES = ("late", "wide", "large")


class Board:
    """Chips in use on every pool over time, and what is left of quotas and budget."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.taken: list[list[tuple[float, float, int]]] = [[] for _ in table.problem.pools]
        self.chip_s = [0.0] * len(table.problem.pools)
        self.usd = 0.0

    def earliest(self, choice: Choice) -> float | None:
        """Return the first start that a choice still has, or None."""
        pool = self.table.problem.pools[choice.pool]
        budget = self.table.problem.budget_usd
        if budget is not None and self.usd + choice.usd > budget * (1 + 1e-9):
            return None
        quota, more = pool.quota_chip_h, choice.chips * choice.seconds
        if quota is not None and self.chip_s[choice.pool] + more > quota * 3600.0 * (1 + 1e-9):
            return None
        taken = self.taken[choice.pool]
        moments = sorted({first for first, _ in choice.spans} | {stop for _, stop, _ in taken})
        for moment in moments:
            if any(first <= moment <= last for first, last in choice.spans) and self._free(choice, moment, pool.chips):
                return moment
        return None

    def _free(self, choice: Choice, start: float, chips: int) -> bool:
        stop = start + choice.seconds
        near = [one for one in self.taken[choice.pool] if one[0] < stop - 1e-9 and one[1] > start + 1e-9]
        moments = [start, *(begin for begin, _, _ in near if begin > start)]
        return all(
            sum(used for begin, end, used in near if begin <= moment + 1e-9 and end > moment + 1e-9) + choice.chips <= chips
            for moment in moments
        )

    def take(self, choice: Choice, start: float) -> None:
        """Occupy chips."""
        self.taken[choice.pool].append((start, start + choice.seconds, choice.chips))
        self.chip_s[choice.pool] += choice.chips * choice.seconds
        self.usd += choice.usd


def listed(
    table: Table,
    prices: Sequence[float],
    first: Iterable[int] = (),
    *,
    soonest: bool = False,
    only: bool = False,
    rule: str = "late",
) -> dict[int, float]:
    """Return starts by choice of a plan by list.

    Args:
        table: of the problem.
        prices: of each choice.
        first: choices that are wanted; where one no longer fits, its workload takes the next best.
        only: whether nothing but `first` is placed.
        rule: one of `RULES`: which of `first` goes first: the most pressing, the widest, or the largest.
        soonest: whether a workload goes where it ends first, rather than where it costs least.
    """
    board, plan = Board(table), dict[int, float]()
    wanted = {table.choices[index].work: index for index in first}
    works = table.problem.works
    todo = sorted(wanted) if only else range(len(works))

    def pressing(work: int) -> tuple[float, float, float]:
        last = max((table.choices[index].last for index in table.of_work[work]), default=0.0)
        first_of_all = works[work].priority if soonest else int(work in wanted)
        return -float(first_of_all), last, float(work)

    later: list[int] = []

    def size(work: int) -> tuple[float, ...]:
        if work not in wanted or rule == "late":
            return pressing(work)
        choice = table.choices[wanted[work]]
        return (-float(choice.chips), *pressing(work)) if rule == "wide" else (-choice.chips * choice.seconds, *pressing(work))

    for work in sorted(todo, key=size):
        index = wanted.get(work)
        start = board.earliest(table.choices[index]) if index is not None else None
        if index is None or start is None:
            later.append(work)
            continue
        plan[index] = start
        board.take(table.choices[index], start)
    rest = sorted(() if only else later, key=lambda one: (-works[one].priority, pressing(one)))
    _place(board, plan, rest, prices, soonest=soonest)
    return plan


def completed(table: Table, prices: Sequence[float], plan: dict[int, float]) -> dict[int, float]:
    """Return a plan with what it leaves out, each where it costs least and fits, by priority and then by how pressing it is.

    Args:
        table: of the problem.
        prices: of each choice.
        plan: starts by choice; they are kept.
    """
    board, whole = Board(table), dict(plan)
    for index, start in plan.items():
        board.take(table.choices[index], start)
    placed = {table.choices[index].work for index in plan}
    last = [max((table.choices[index].last for index in choices), default=0.0) for choices in table.of_work]
    rest = [work for work in range(len(table.of_work)) if work not in placed]
    rest.sort(key=lambda work: (-table.problem.works[work].priority, last[work]))
    _place(board, whole, rest, prices, soonest=False)
    return whole


def _place(board: Board, plan: dict[int, float], works: Iterable[int], prices: Sequence[float], *, soonest: bool) -> None:
    """Add workloads to a plan one after the other, each at its best."""
    for work in works:
        found = _next_best(board, work, prices, soonest=soonest)
        if found is not None:
            plan[found[0]] = found[1]
            board.take(board.table.choices[found[0]], found[1])


def _next_best(board: Board, work: int, prices: Sequence[float], *, soonest: bool) -> tuple[int, float] | None:
    """Return the choice of a workload that costs least or ends first, with its start; None where none is left."""
    table = board.table
    found: tuple[tuple[float, float], int, float] | None = None
    for index in table.of_work[work]:
        choice = table.choices[index]
        start = board.earliest(choice)
        if start is None:
            continue
        end = table.clocks[choice.pool].stops(start + choice.seconds)
        key = (end, prices[index]) if soonest else (prices[index], end)
        if found is None or key < found[0]:
            found = key, index, start
    return None if found is None else (found[1], found[2])
