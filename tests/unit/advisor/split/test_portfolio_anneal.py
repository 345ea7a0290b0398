"""Annealing of a portfolio: every plan can be done, none is worse than where it began, and chains find what lists do not."""

from itertools import count
from random import Random
from time import monotonic

import pytest

from advisor.split.portfolio_anneal import Annealing, Guide, annealed, prepare
from advisor.split.portfolio_assignment import Assigning
from advisor.split.portfolio_choices import Table, tabled
from advisor.split.portfolio_list import listed
from advisor.split.portfolio_words import PortfolioProblem, TeamPool, Work, WorkOption

HOUR_S = 3600.0


def portfolio(seed: int) -> PortfolioProblem:
    """A crowded portfolio, with closings, a quota and workloads that may pause on some seeds."""
    chance = Random(seed)
    closed = ((0.0, 9 * HOUR_S), (12 * HOUR_S, 40 * HOUR_S)) if seed % 3 == 1 else ()
    pools = (
        TeamPool("owned", 16, 0.3, 300.0, windows=closed),
        TeamPool("more", 8, 0.5, 300.0, quota_chip_h=90.0 if seed % 3 == 2 else None),
        TeamPool("rented", 256, 4.0, 300.0),
    )  # fmt: skip
    works = tuple(
        Work(f"work{index}", tuple(
            WorkOption(pool.name, chips, chance.uniform(1, 6) * HOUR_S * 4 / chips)
            for pool in pools for chips in (4, 8)
        ), float(chance.choice((0, 0, chance.randint(0, 6 * 3600)))), float(chance.randint(9, 20) * 3600), chance.randint(1, 3),
            chance.random() < 0.5)
        for index in range(30)
    )  # fmt: skip
    return PortfolioProblem(works, pools)


def _worth(table: Table, prices: list[float], plan: dict[int, float]) -> tuple[int, float]:
    placed = {table.choices[index].work for index in plan}
    return sum(one.priority for work, one in enumerate(table.problem.works) if work not in placed), sum(prices[i] for i in plan)


def _check(table: Table, plan: dict[int, float]) -> None:
    """Each workload once, within its spans, and never more chips or chip-seconds than a pool has."""
    assert len({table.choices[index].work for index in plan}) == len(plan)
    for index, start in plan.items():
        assert any(first - 1e-6 <= start <= last + 1e-6 for first, last in table.choices[index].spans)
    for number, pool in enumerate(table.problem.pools):
        mine = [(start, start + table.choices[index].seconds, table.choices[index].chips) for index, start in plan.items()
                if table.choices[index].pool == number]  # fmt: skip
        for moment, _, _ in mine:
            assert sum(chips for begin, stop, chips in mine if begin <= moment + 1e-6 < stop - 1e-6) <= pool.chips
        if pool.quota_chip_h is not None:
            assert sum((stop - begin) * chips for begin, stop, chips in mine) <= pool.quota_chip_h * HOUR_S * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(9))
def test_a_plan_can_be_done_and_is_no_worse_than_the_one_it_began_with(seed: int) -> None:
    table = tabled(portfolio(seed))
    prices = [one.usd for one in table.choices]
    first = listed(table, prices)
    guide = Assigning(table, prices).guide()
    assert guide is not None
    moment = count()
    plan = Annealing(table, prices, guide, {0, 1}).run(first, lambda: float(next(moment)), 30.0)
    _check(table, plan)
    assert _worth(table, prices, plan) <= _worth(table, prices, first)
    assert _worth(table, prices, plan)[1] >= guide.bound * (1 - 1e-9) or _worth(table, prices, plan)[0] > 0


def test_what_is_pushed_out_goes_elsewhere_in_the_same_move() -> None:
    """Two pools of one chip and a dear one; the list puts the short one where only the long one would have fitted."""
    pools = (TeamPool("a", 1, 1.0), TeamPool("b", 1, 1.0), TeamPool("dear", 9, 50.0))
    long = Work("long", (WorkOption("a", 1, 10 * HOUR_S), WorkOption("dear", 1, 10 * HOUR_S)), 0.0, 10 * HOUR_S)
    short = Work("short", (WorkOption("a", 1, 4 * HOUR_S), WorkOption("b", 1, 5 * HOUR_S), WorkOption("dear", 1, HOUR_S)), 0.0,
                 6 * HOUR_S)  # fmt: skip
    table = tabled(PortfolioProblem((long, short), pools))
    prices = [one.usd for one in table.choices]
    first = {2: 0.0, 1: 0.0}
    moment = count()
    guide = Guide([0.0] * len(prices), 1.0)
    plan = Annealing(table, prices, guide, {0, 1}).run(first, lambda: float(next(moment)), 5.0)
    assert {table.problem.pools[table.choices[index].pool].name for index in plan} == {"a", "b"}
    assert _worth(table, prices, plan) == (0, pytest.approx(15.0))


@pytest.mark.parametrize("seed", [9, 18, 24, 74])
def test_what_follows_without_slack_keeps_its_order_though_sums_are_rounded(seed: int) -> None:
    """A chain of ten that fill the time to its deadline; their sum from the front is not their difference from the end."""
    chance = Random(seed)
    lasts = [chance.uniform(0.1, 1.0) * HOUR_S for _ in range(10)]
    works = tuple(
        Work(f"work{i}", (WorkOption("one", 1, last), WorkOption("dear", 1, last)), 0.0, sum(lasts))
        for i, last in enumerate(lasts)
    )
    table = tabled(PortfolioProblem(works, (TeamPool("one", 1, 1.0), TeamPool("dear", 9, 50.0))))
    prices = [one.usd for one in table.choices]
    moment = count()
    plan = Annealing(table, prices, Guide([0.0] * len(prices), 1.0), {0}).run({}, lambda: float(next(moment)), 9.0)
    _check(table, plan)
    assert all(0.0 <= start <= sum(lasts) for start in plan.values())
    assert _worth(table, prices, plan) <= (0, 60.0 * sum(lasts) / HOUR_S)


@pytest.mark.parametrize("seed", range(6))
def test_a_pool_that_turns_out_to_be_full_is_searched_too(seed: int) -> None:
    table = tabled(portfolio(seed))
    prices = [one.usd for one in table.choices]
    first, moment = listed(table, prices), count()
    guide = Assigning(table, prices).guide()
    assert guide is not None
    plan = annealed(table, prices, guide, {0}, first, lambda: float(next(moment)), 100.0)
    _check(table, plan)
    assert _worth(table, prices, plan) < _worth(table, prices, first)


def test_what_is_compiled_ahead_is_what_a_search_calls() -> None:
    from advisor.split.portfolio_chains import anneal

    prepare()
    kinds = anneal.signatures
    table = tabled(portfolio(1))
    prices = [one.usd for one in table.choices]
    Annealing(table, prices, Guide([0.0] * len(prices), 1.0), {0}).run(listed(table, prices), monotonic, 0.0)
    assert anneal.signatures == kinds
    assert len(kinds) == 1
