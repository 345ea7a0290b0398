"""Which workloads share the pools that are full, and in which order: simulated annealing with chains of ejections.

The chips of a full pool are lanes of as many chips as all of its choices share. A choice of several lanes has a start that is
fixed; all others keep what moves them about: when the lane is free before them, and when it must be free for what is behind.
A move puts one choice where little is in its way; what it pushes out goes where it fits best, pushing out others in turn, and
what finds no place pays for its cheapest choice on a pool that is not full. All of that is done, or none of it.

Here a problem becomes numbers in arrays, and the clock is asked between some hundred chains and the next; the chains themselves
are compiled (`advisor.split.portfolio_chains`).

Source: S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by simulated annealing", Science 220, 1983; F. Glover,
"Ejection chains, reference structures and alternating path methods for traveling salesman problems", Discrete Applied
Mathematics 65, 1996.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import exp
from time import monotonic

from advisor.split.portfolio_choices import Table, tabled
from advisor.split.portfolio_list import completed
from advisor.split.portfolio_words import PortfolioProblem, TeamPool, Work, WorkOption

FIRST_HEAT, LAST_HEAT = 4e-4, 1e-4
"""Loss at which a move is made one time in e, at first and at last, as a part of the bound."""
REACH, FURTHEST = 1.5e-4, 12.0
"""Reduced price, as a part of the bound, at which a choice is tried one time in e of those that a divided assignment takes, and
the times of it beyond which a choice is not tried."""
PROBE = 0.05
"""Part of the time in which it is found out whether more pools are full than are known to be."""
NEAR = 1e-3
"""Part of the bound by which a plan may be above it for the search to end."""
CHAINS = 500
"""Chains that are tried before the clock is asked again."""
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
        self.table, self.prices, self.guide, self.full = table, prices, guide, frozenset(full)
        dear = dear_of(prices)
        self.else_at = [
            min((prices[index] for index in ways if table.choices[index].pool not in full), default=dear * works.priority)
            for works, ways in zip(table.problem.works, table.of_work, strict=True)
        ]
        self.saves = [self.else_at[one.work] - price for one, price in zip(table.choices, prices, strict=True)]

    def run(self, plan: dict[int, float], clock: Callable[[], float], until: float) -> dict[int, float]:
        """Return the best plan that was found, as starts by choice.

        Args:
            plan: starts by choice, from which the search begins.
            clock: seconds from any moment on.
            until: of the clock.
        """
        from numpy.random import default_rng

        from advisor.split.portfolio_board import DRAWS, boarded, load
        from advisor.split.portfolio_chains import anneal

        bound, chance, (ways, odds) = self.guide.bound, default_rng(SEED), self._ways()
        board = boarded(self.table, self.full, self.saves, ways, odds)
        load(board, self.table, plan)
        at: list[int] = board.works["at"][:-1].tolist()
        cost = best = sum(self.else_at) - sum(self.saves[index] for index in at if index >= 0)
        if odds:
            anneal(board, 1.0, cost, best, 0)  # the first call compiles, or reads what was: no part of the cooling
        begun = clock()
        while odds and best > bound * (1 + NEAR):
            passed = (clock() - begun) / max(1e-9, until - begun)
            if passed >= 1:
                break
            board.draws["even"], board.draws["gumbel"] = chance.random(DRAWS), chance.gumbel(size=DRAWS)
            heat = max(bound, 1e-12) * FIRST_HEAT * (LAST_HEAT / FIRST_HEAT) ** passed
            cost, best = anneal(board, heat, cost, best, CHAINS)
        kept = zip(board.works["best_at"][:-1].tolist(), board.works["best_start"][:-1].tolist(), strict=True)
        return completed(self.table, self.prices, {index: start for index, start in kept if index >= 0})

    def crowded(self, plan: dict[int, float]) -> set[int]:
        """Return the pools that were taken for not full, and had no room for all whose cheapest choice they are.

        Args:
            plan: starts by choice, that a run returned.
        """
        works = {self.table.choices[index].work: index for index in plan}
        dearer = [work for work, index in works.items() if self.prices[index] > self.else_at[work]]
        return {
            self.table.choices[index].pool
            for work in dearer for index in self.table.of_work[work]
            if self.table.choices[index].pool not in self.full and self.prices[index] <= self.else_at[work]
        }  # fmt: skip

    def _ways(self) -> tuple[list[list[int]], list[float]]:
        """Return for each workload the choices that are worth trying, and how often each of them is tried."""
        reach, reduced = max(REACH * self.guide.bound, 1e-12), self.guide.reduced
        ways = [
            [index for index in mine if self.table.choices[index].pool in self.full and self.saves[index] > 0
             and reduced[index] <= FURTHEST * reach]
            for mine in self.table.of_work
        ]  # fmt: skip
        return ways, [exp(-max(0.0, reduced[index]) / reach) for mine in ways for index in mine]


def annealed(
    table: Table,
    prices: Sequence[float],
    guide: Guide,
    full: Collection[int],
    plan: dict[int, float],
    clock: Callable[[], float],
    until: float,
) -> dict[int, float]:
    """Return the best plan that was found, on as many pools as turn out to be full.

    Args:
        table: of the problem.
        prices: of each choice.
        guide: of the divided assignment.
        full: pools, by number, as far as is known.
        plan: starts by choice, from which the search begins.
        clock: seconds from any moment on.
        until: of the clock.
    """
    pools, probe_s = frozenset(full), PROBE * (until - clock())
    while clock() < until:
        search = Annealing(table, prices, guide, pools)
        more = search.crowded(search.run(plan, clock, clock() + probe_s))
        if not more:
            break
        pools |= more
    return Annealing(table, prices, guide, pools).run(plan, clock, until)


def prepare() -> None:
    """Compile what a search needs, so that the first one does not take some seconds of its time for it."""
    table = tabled(PortfolioProblem((Work("any", (WorkOption("any", 1, 1.0),)),), (TeamPool("any", 1, 1.0),)))
    Annealing(table, [1.0], Guide([0.0], 1.0), {0}).run({}, monotonic, 0.0)
