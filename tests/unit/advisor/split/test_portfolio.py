"""The planner of portfolios against everything that there is to try, second by second, and what must hold for any portfolio."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from advisor.split.portfolio import plan_portfolio
from advisor.split.portfolio_words import PortfolioPlan, PortfolioProblem, TeamPool, Work, WorkOption
from core.errors import BadInput

HORIZON = 9
"""Seconds in which everything of a small portfolio happens."""


def portfolio(seed: int, objective: str) -> PortfolioProblem:
    """Return a random portfolio of at most three workloads on two pools, in whole seconds."""
    chance = Random(seed)
    windows: tuple[tuple[tuple[float, float], ...], ...] = (((0.0, 9.0),), ((0.0, 9.0),), ((1.0, 4.0), (5.0, 9.0)))
    pools = tuple(
        TeamPool(
            f"pool{index}", chance.choice((2, 4)), float(chance.choice((0, 900, 1800, 3600))), float(chance.choice((50, 100))),
            chance.choice(windows), chance.choice((None, None, 20 / 3600)), spot=chance.random() < 0.2,
        )
        for index in range(2)
    )  # fmt: skip
    works = []
    for index in range(chance.randint(2, 3)):
        options = [
            WorkOption(f"pool{chance.randrange(2)}", chance.choice((1, 2, 4)), float(chance.randint(2, 5)))
            for _ in range(chance.randint(1, 3))
        ]
        release = chance.choice((0, 0, 2))
        deadline = chance.choice((9.0, 9.0, 7.0, 5.0))
        works.append(Work(f"work{index}", tuple(options), float(release), deadline, chance.randint(1, 3), chance.random() < 0.4))
    budget = chance.choice((None, None, 8.0))
    return PortfolioProblem(tuple(works), pools, objective, budget)


def _seconds(problem: PortfolioProblem, work: Work, option: WorkOption) -> Iterator[frozenset[int]]:
    """Yield the whole seconds that each possible run of an option takes."""
    pool = next(one for one in problem.pools if one.name == option.pool)
    if option.chips > pool.chips or (pool.spot and not work.interruptible):
        return
    is_open = [any(start <= second < stop for start, stop in pool.windows) for second in range(HORIZON)]
    for begin in range(int(work.release_s), HORIZON):
        if not is_open[begin]:
            continue
        run: list[int] = []
        for second in range(begin, min(HORIZON, int(work.deadline_s or HORIZON))):
            if len(run) < int(option.seconds or 0) and is_open[second]:
                run.append(second)
        whole = len(run) == int(option.seconds or 0)
        if whole and (work.interruptible or run[-1] - run[0] + 1 == len(run)):
            yield frozenset(run)


def best_of_all(problem: PortfolioProblem) -> tuple[int, float]:
    """Return the least sum of priorities without a place, and the least of the objective with that."""
    runs = [[None, *((option, run) for option in work.options for run in _seconds(problem, work, option))] for work in problem.works]
    figures: list[tuple[int, float]] = []
    for chosen in itertools.product(*runs):
        missing = sum(work.priority for work, one in zip(problem.works, chosen, strict=True) if one is None)
        taken = [(work, *one) for work, one in zip(problem.works, chosen, strict=True) if one is not None]
        if figures and missing > min(figures)[0]:
            continue
        value = _value(problem, taken)
        if value is not None:
            figures.append((missing, value))
    return min(figures)


def _value(problem: PortfolioProblem, taken: list[tuple[Work, WorkOption, frozenset[int]]]) -> float | None:
    """Return the objective of runs, or None where they do not go together."""
    usd = joules = weighted = 0.0
    for pool in problem.pools:
        mine = [(work, option, run) for work, option, run in taken if option.pool == pool.name]
        if any(sum(option.chips for _, option, run in mine if second in run) > pool.chips for second in range(HORIZON)):
            return None
        chip_s = sum(option.chips * len(run) for _, option, run in mine)
        if pool.quota_chip_h is not None and chip_s > pool.quota_chip_h * 3600 + 1e-6:
            return None
        usd += chip_s / 3600 * (pool.usd_per_chip_h or 0.0)
        joules += chip_s * (pool.watts_per_chip or 0.0)
        weighted += sum(work.priority * (max(run) + 1) for work, _, run in mine)
    if problem.budget_usd is not None and usd > problem.budget_usd + 1e-9:
        return None
    return {"cost": usd, "energy": joules, "time": weighted}[problem.objective]


def runs_of(problem: PortfolioProblem, plan: PortfolioPlan) -> list[tuple[Work, WorkOption, frozenset[int]]]:
    """Return the runs of a plan, each found among those that are possible."""
    works = {work.name: work for work in problem.works}
    found = []
    for one in plan.placed:
        work = works[one.work]
        fitting = [
            (work, option, run)
            for option in work.options if (option.pool, option.chips) == (one.pool, one.chips)
            for run in _seconds(problem, work, option) if (min(run), max(run) + 1) == (round(one.start_s), round(one.stop_s))
        ]  # fmt: skip
        assert fitting, (one, work)
        found.append(min(fitting, key=lambda fit: len(fit[2])))
    return found


@pytest.mark.parametrize("objective", ["cost", "energy", "time"])
def test_a_plan_equals_the_best_of_all_that_there_are(objective: str) -> None:
    placed = 0
    for seed in range(105):
        problem = portfolio(seed, objective)
        plan = plan_portfolio(problem, alone=False)
        missing, value = best_of_all(problem)
        absent = sum(work.priority for work in problem.works if work.name in {one.work for one in plan.unplaced})
        assert (absent, plan.value) == (missing, pytest.approx(value, rel=1e-6, abs=1e-9)), seed
        assert plan.gap <= 1e-6, seed
        assert _value(problem, runs_of(problem, plan)) == pytest.approx(plan.value, abs=1e-6), seed
        assert {one.work for one in plan.placed} | {one.work for one in plan.unplaced} == {work.name for work in problem.works}
        placed += len(plan.placed)
    assert placed > 150
