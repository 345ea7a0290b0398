"""The planner of portfolios against everything that there is to try, second by second, and what must hold for any portfolio."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
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
    runs = [
        [None, *((option, run) for option in work.options for run in _seconds(problem, work, option))] for work in problem.works
    ]
    best = (10**6, 0.0)
    for chosen in itertools.product(*runs):
        missing = sum(work.priority for work, one in zip(problem.works, chosen, strict=True) if one is None)
        if missing > best[0]:
            continue
        taken = [(work, *one) for work, one in zip(problem.works, chosen, strict=True) if one is not None]
        value = _value(problem, taken)
        if value is not None:
            best = min(best, (missing, value))
    return best


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


@pytest.mark.parametrize("objective", ["cost", "time"])
def test_the_order_of_pools_and_workloads_changes_nothing(objective: str) -> None:
    for seed in range(200, 215):
        problem = portfolio(seed, objective)
        plan = plan_portfolio(problem, alone=False)
        other = replace(problem, pools=problem.pools[::-1], works=problem.works[::-1])
        assert plan_portfolio(other, alone=False).value == pytest.approx(plan.value, rel=1e-6, abs=1e-9)


def test_without_a_pool_no_more_is_placed_and_nothing_is_cheaper() -> None:
    for seed in range(300, 315):
        problem = portfolio(seed, "cost")
        plan = plan_portfolio(problem, alone=False)
        for gone in problem.pools:
            works = tuple(
                replace(work, options=tuple(option for option in work.options if option.pool != gone.name))
                for work in problem.works
            )
            less = plan_portfolio(replace(problem, works=works), alone=False)
            priority = {work.name: work.priority for work in problem.works}
            absent = [sum(priority[one.work] for one in found.unplaced) for found in (plan, less)]
            assert absent[1] >= absent[0]
            if absent[0] == absent[1]:
                assert (less.cost_usd or 0.0) >= (plan.cost_usd or 0.0) - 1e-9


def test_shares_sum_to_one_and_bars_are_within_the_plan() -> None:
    for seed in range(20):
        plan = plan_portfolio(portfolio(seed, "cost"), alone=False)
        if plan.placed:
            assert sum(use.fraction for use in plan.uses) == pytest.approx(1.0)
            assert max(bar.stop_s for bar in plan.timeline) == plan.end_s


def _one(**changes: object) -> PortfolioProblem:
    """Return one workload of 4 chips for an hour on a pool of 8 at 2 USD a chip-hour."""
    work = Work("job", (WorkOption("pool", 4, 3600.0),))
    return replace(PortfolioProblem((work,), (TeamPool("pool", 8, 2.0, 500.0),)), **changes)  # type: ignore[arg-type]


def test_a_single_workload_costs_its_chips_and_hours() -> None:
    plan = plan_portfolio(_one())
    assert (plan.cost_usd, plan.energy_j, plan.end_s, plan.gap) == (8.0, 4 * 500 * 3600.0, 3600.0, 0.0)
    assert plan.alone == (("pool", 1, 8.0),)


@pytest.mark.parametrize(("changes", "said"), [
    ({"works": (Work("job", (WorkOption("pool", 16, 1.0),)),)}, "pool: 16 chips of the 8 that there are at once"),
    ({"works": (Work("job", (WorkOption("pool", 4, None, "needs 80 GiB"),)),)}, "pool: needs 80 GiB"),
    ({"works": (Work("job", (WorkOption("pool", 4, 3600.0),), 60.0, 1800.0),)},
     "pool: could end after 1.02 h at the earliest, past its deadline of 30.0 min"),
    ({"works": (Work("job", ()),)}, "it has no option"),
    ({"pools": (TeamPool("pool", 8, 2.0, spot=True),)}, "pool: spot, and it must not be interrupted"),
    ({"pools": (TeamPool("pool", 8),)}, "pool: its price is not known"),
    ({"pools": (TeamPool("pool", 8, 2.0, quota_chip_h=3.0),)}, "pool: 4 chip-hours of a quota of 3"),
    ({"pools": (TeamPool("pool", 8, 2.0, windows=((0.0, 1800.0), (3600.0, 5400.0))),)}, "fit into no time in which it is open"),
    ({"budget_usd": 5.0}, "pool: 8.00 USD of a budget of 5.00 USD"),
])  # fmt: skip
def test_what_finds_no_place_says_why(changes: dict[str, object], said: str) -> None:
    plan = plan_portfolio(_one(**changes), alone=False)
    assert plan.placed == ()
    assert said in plan.unplaced[0].why


def test_the_less_important_of_two_that_do_not_both_fit_is_left_out_and_told() -> None:
    works = tuple(Work(name, (WorkOption("pool", 8, 3600.0),), 0.0, 5400.0, priority) for name, priority in (("a", 1), ("b", 2)))
    plan = plan_portfolio(_one(works=works), alone=False)
    assert [one.work for one in plan.placed] == ["b"]
    assert plan.unplaced[0].why == "pool: others that together count for more have its chips until the deadline"


def test_what_may_pause_waits_out_the_hours_in_which_its_pool_is_closed() -> None:
    work = Work("job", (WorkOption("pool", 4, 3600.0),), 900.0, interruptible=True)
    pools = (TeamPool("pool", 8, 2.0, windows=((0.0, 1800.0), (3600.0, 9000.0))),)
    one = plan_portfolio(_one(works=(work,), pools=pools), alone=False).placed[0]
    assert (one.start_s, one.stop_s) == (pytest.approx(900.0), pytest.approx(6300.0))


@pytest.mark.parametrize(("changes", "said"), [
    ({"works": ()}, "0 workloads"),
    ({"works": (Work("job", (WorkOption("none", 1, 1.0),)),)}, "pool 'none' of job"),
    ({"works": (Work("job", ()), Work("job", ()))}, "workload 'job' twice"),
    ({"works": (Work("job", (WorkOption("pool", 0, 1.0),)),)}, "0 chips"),
    ({"works": (Work("job", (WorkOption("pool", 1, 0.0),)),)}, "0.0 s of job; expected one chip or more, and finite"),
    ({"works": (Work("job", (), priority=0),)}, "priority 0"),
    ({"pools": (TeamPool("pool", 8, windows=((5.0, 2.0),)),)}, "windows of pool"),
])  # fmt: skip
def test_what_is_no_portfolio_is_refused_in_one_line(changes: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        plan_portfolio(_one(**changes))
    assert said in str(caught.value)


@pytest.mark.parametrize("objective", ["cost", "time"])
def test_what_has_no_slack_starts_when_it_must_though_no_tick_of_the_solver_lies_there(objective: str) -> None:
    """The far deadline of the other makes ticks of a tenth of a second."""
    begin, seconds = 22695.8106, 28800.0
    must = Work("must", (WorkOption("pool", 8, seconds),), begin, begin + seconds)
    other = Work("other", (WorkOption("pool", 8, 22695.0),), 0.0, 9e6)
    later = Work("later", (WorkOption("pool", 8, 3600.0),), 0.0, 9e6)
    plan = plan_portfolio(PortfolioProblem((other, must, later), (TeamPool("pool", 8, 2.0),), objective), alone=False)
    found = {one.work: one for one in plan.placed}
    assert found["must"].start_s == pytest.approx(begin, abs=1e-6)
    assert found["must"].stop_s <= begin + seconds + 1e-6
    ordered = sorted(plan.placed, key=lambda one: one.start_s)
    assert len(ordered) == 3
    assert all(one.stop_s <= two.start_s + 1e-6 for one, two in pairwise(ordered))


def test_a_large_portfolio_keeps_every_deadline_and_never_more_chips_than_there_are() -> None:
    chance = Random(5)
    pools = tuple(TeamPool(f"pool{i}", 16, float(1 + i), 300.0) for i in range(4))
    works = tuple(
        Work(f"work{i}", tuple(
            WorkOption(pool.name, chips, float(chance.randint(600, 7200))) for pool in pools for chips in (4, 8)
        ), 0.0, float(chance.randint(8, 16) * 3600), chance.randint(1, 3))
        for i in range(30)
    )  # fmt: skip
    problem = PortfolioProblem(works, pools)
    plan = plan_portfolio(problem, 3.0, alone=False)
    assert len(plan.placed) + len(plan.unplaced) == 30
    deadline = {work.name: work.deadline_s or 0.0 for work in works}
    assert all(one.stop_s <= deadline[one.work] + 1e-6 for one in plan.placed)
    for pool in pools:
        mine = [one for one in plan.placed if one.pool == pool.name]
        at_once = (sum(two.chips for two in mine if two.start_s <= one.start_s + 1e-6 < two.stop_s) for one in mine)
        assert all(chips <= pool.chips for chips in at_once)
    assert 0.0 <= plan.gap < 0.05
