"""Shares of a batch over unlike pools: the best of all, held against every share and every bucket by hand."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise, permutations, product
from math import gcd

import pytest

from advisor.split.data_parallel import plan_data, why_no_shares
from advisor.split.data_parallel_curves import bandwidth_curve, break_even_bandwidth, share_curve
from advisor.split.data_parallel_words import DataPool, DataProblem
from advisor.split.pace import Pace
from advisor.split.pipeline_words import every_way
from core.device import Link
from core.errors import BadInput

INSTANCES = 360
BATCHES = 6


def a_pace(draw: random.Random) -> Pace:
    sizes = sorted(draw.sample(range(1, 33), draw.randint(1, 4)))
    values = sorted(draw.uniform(0.2, 4) for _ in sizes)
    if draw.random() < 0.5:  # a time for each sample and one for each pass
        base, each = draw.uniform(0, 1), draw.uniform(0.05, 0.5)
        values = [base + each * size for size in sizes]
    grain = draw.choice([1, 1, 2, 3])
    return Pace(tuple(zip(sizes, values, strict=True)), grain, draw.choice([None, grain * draw.randint(1, 8)]))


def an_instance(seed: int) -> DataProblem:
    draw = random.Random(seed)
    count = draw.randint(1, 3)
    pools = tuple(
        DataPool(
            f"p{index}", a_pace(draw), draw.choice([0.0, draw.uniform(0, 1)]), draw.choice([0.0, draw.uniform(0, 0.5)]),
            draw.choice([0.0, draw.uniform(0, 0.5)]), draw.uniform(0.3, 0.8),
        )
        for index in range(count)
    )
    links = tuple(
        tuple(None if a == b else Link(draw.uniform(0, 0.2), draw.choice([0.3, 1.0, 10.0, 1000.0]) * draw.uniform(0.5, 2))
              for b in range(count))
        for a in range(count)
    )
    least = draw.choice([1, 1, min(2, count)])
    return DataProblem(pools, draw.choice([6, 12, 18, 24]), draw.uniform(0, 3), links, draw.randint(1, 5), least)


def by_hand(problem: DataProblem, samples: dict[int, int], ring: tuple[int, ...]) -> float:
    """Every bucket of every pool, one after another."""
    count, parts = len(samples), problem.buckets
    ready: dict[int, list[float]] = {}
    for index, batch in samples.items():
        pool = problem.pools[index]
        turns = 1 if pool.pace.most is None else -(-batch // pool.pace.most)
        each = pool.pace.at_once(batch / turns)
        free, ready[index] = 0.0, []
        for bucket in range(parts):
            there = turns * each - each * pool.backward_share * (parts - bucket - 1) / parts
            free = max(free, there) + pool.reduce_s / parts
            ready[index].append(free)
    ways = [problem.links[a][b] for a, b in pairwise((*ring, ring[0]))] if count > 1 else []
    rounds = {1: 0, 2: 1}.get(count, 2 * (count - 1))
    part = problem.gradient_bytes / parts / (1 if count == 2 else count)
    busy = rounds * max((part / way.bytes_per_s for way in ways), default=0.0)
    latency = rounds * max((way.latency_s for way in ways), default=0.0)
    link, spread = 0.0, dict.fromkeys(samples, 0.0)
    for bucket in range(parts):
        link = max(link, *(times[bucket] for times in ready.values()), 0.0) + busy
        for index in samples:
            spread[index] = max(spread[index], link + latency) + problem.pools[index].spread_s / parts
    return max(spread[index] + problem.pools[index].update_s for index in samples)


def every_plan(problem: DataProblem) -> Iterator[float]:
    pools = range(len(problem.pools))
    for size in range(problem.least_pools, len(problem.pools) + 1):
        for used in combinations(pools, size):
            grains = [problem.pools[index].pace.grain for index in used]
            choices = [range(grain, problem.batch + 1, grain) for grain in grains]
            for shares in product(*choices):
                if sum(shares) == problem.batch:
                    rings = [(used[0], *rest) for rest in permutations(used[1:])]
                    yield min(by_hand(problem, dict(zip(used, shares, strict=True)), ring) for ring in rings)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_the_shares_end_soonest_of_all(batch: int) -> None:
    seen = 0
    for seed in range(batch, INSTANCES, BATCHES):
        problem = an_instance(seed)
        plan, least = plan_data(problem), min(every_plan(problem), default=None)
        assert (plan is None) == (least is None), seed
        if plan is None:
            assert why_no_shares(problem), seed
            continue
        assert plan.seconds == pytest.approx(least, rel=1e-9), seed
        assert plan.proved
        assert plan.ideal_s <= plan.seconds * (1 + 1e-12)
        assert sum(share.samples for share in plan.shares) == problem.batch
        assert sum(share.weight for share in plan.shares) == pytest.approx(1)
        assert all(share.samples % pool.pace.grain == 0 for share, pool in zip(plan.shares, problem.pools, strict=True))
        assert sum(seconds for _, seconds in plan.terms) == pytest.approx(plan.seconds)
        assert all(seconds >= -1e-12 for _, seconds in plan.terms), seed
        assert max(bar.stop_s for bar in plan.timeline) == pytest.approx(plan.seconds)
        seen += 1
    assert seen >= 300 / BATCHES  # of all batches together


@pytest.mark.parametrize("seed", range(40))
def test_another_order_of_pools_gives_the_same_step(seed: int) -> None:
    problem = an_instance(seed)
    order = list(range(len(problem.pools)))
    random.Random(seed).shuffle(order)
    other = replace(problem, pools=tuple(problem.pools[index] for index in order),
                    links=tuple(tuple(problem.links[a][b] for b in order) for a in order))
    plan, again = plan_data(problem), plan_data(other)
    assert (plan.seconds if plan else None) == (pytest.approx(again.seconds, rel=1e-12) if again else None)


@pytest.mark.parametrize("seed", range(40))
def test_a_pool_less_is_never_faster(seed: int) -> None:
    problem = replace(an_instance(seed), least_pools=1)
    plan = plan_data(problem)
    for gone in range(len(problem.pools) if len(problem.pools) > 1 else 0):
        left = [index for index in range(len(problem.pools)) if index != gone]
        fewer = plan_data(replace(problem, pools=tuple(problem.pools[index] for index in left),
                                  links=tuple(tuple(problem.links[a][b] for b in left) for a in left)))
        if fewer is not None:
            assert plan is not None
            assert plan.seconds <= fewer.seconds * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_a_faster_link_is_never_slower(seed: int) -> None:
    problem = replace(an_instance(seed), least_pools=1)
    curve = bandwidth_curve(problem, (0.1, 1.0, 10.0, 1e3, 1e6))
    assert all(later <= earlier * (1 + 1e-12) for (_, earlier), (_, later) in pairwise(curve))


def linear(name: str, samples_per_s: int, grain: int = 1) -> DataPool:
    return DataPool(name, Pace(((1, 1 / samples_per_s), (1000, 1000 / samples_per_s)), grain))


def test_a_free_link_gives_the_rates_together() -> None:
    pools = (linear("a", 100), linear("b", 250), linear("c", 50))
    plan = plan_data(DataProblem(pools, 800, 0.0, every_way(3, Link(0.0, 1e30))))
    assert plan is not None
    assert plan.seconds == pytest.approx(800 / 400)
    assert [share.samples for share in plan.shares] == [200, 500, 100]


def test_the_exchange_of_two_pools_is_hidden_but_for_the_last_bucket() -> None:
    # each backward pass takes 4 s of 6; 4 buckets of 1 s are sent from 3 s on, the last is there at 6 s and takes 0.5 s more
    pools = tuple(DataPool(name, Pace(((10, 6.0), (20, 12.0)))) for name in "ab")
    plan = plan_data(DataProblem(pools, 20, 2e9, every_way(2, Link(0.01, 1e9)), buckets=4))
    assert plan is not None
    assert plan.seconds == pytest.approx(6 + 0.5 + 0.01)
    assert plan.moves[0].size_bytes == pytest.approx(4e9)
    assert plan.moves[0].exposed_s == pytest.approx(0.51)
    assert dict(plan.terms) == pytest.approx({"compute": 6, "reduce": 0, "exchange": 0.51, "update": 0})


def test_a_ring_of_four_sends_three_halves_of_the_gradients() -> None:
    pools = tuple(linear(name, 100) for name in "abcd")
    plan = plan_data(DataProblem(pools, 400, 4e9, every_way(4, Link(0.0, 1e9)), buckets=1, least_pools=4))
    assert plan is not None
    assert plan.seconds == pytest.approx(1 + 6)
    assert [move.size_bytes for move in plan.moves] == pytest.approx([6e9] * 4)


def test_grains_that_no_shares_fill_are_told() -> None:
    problem = DataProblem((linear("a", 10, 4), linear("b", 10, 6)), 7, 1.0, every_way(2, Link(0, 1)))
    assert plan_data(problem) is None
    assert "7" in why_no_shares(problem)[0]
    assert gcd(4, 6) == problem.unit == 2


def test_sixteen_pools_are_planned_with_a_stated_gap() -> None:
    draw = random.Random(7)
    pools = tuple(DataPool(f"p{index}", Pace(((64, draw.uniform(0.05, 0.3)), (4096, draw.uniform(1, 8))))) for index in range(16))
    plan = plan_data(DataProblem(pools, 4096, 1e8, every_way(16, Link(1e-3, 1e9))))
    assert plan is not None
    assert not plan.proved
    assert plan.ideal_s <= plan.bound_s <= plan.seconds
    assert plan.gap < 0.03


def test_the_curve_over_shares_is_least_at_the_planned_share() -> None:
    pools = (linear("a", 100), linear("b", 300))
    problem = DataProblem(pools, 400, 1e8, every_way(2, Link(1e-3, 1e9)))
    curve, plan = share_curve(problem, 401), plan_data(problem)
    assert plan is not None
    assert min(curve, key=lambda point: point[1]) == (plan.shares[0].weight, pytest.approx(plan.seconds))
    assert (curve[0], curve[-1]) == ((0.0, pytest.approx(400 / 300)), (1.0, pytest.approx(4.0)))


def test_the_break_even_of_two_equal_pools_is_where_the_exchange_costs_half_a_step() -> None:
    # alone 2 s, together 1 s and the exchange of 1 GB without overlap: equal at 1 GB/s
    pools = (linear("a", 100), linear("b", 100))
    problem = DataProblem(pools, 200, 1e9, every_way(2, Link(0.0, 5e9)), buckets=1)
    found = break_even_bandwidth(problem)
    assert found.at == pytest.approx(1e9, rel=1e-4)
    assert found.now == 5e9
    # a fifth saved: 1.6 s are allowed, 0.6 s for the exchange
    assert break_even_bandwidth(problem, 0.2).at == pytest.approx(1e9 / 0.6, rel=1e-4)


def test_a_break_even_that_is_nowhere_says_which_way() -> None:
    fast, slow = linear("a", 1000), linear("b", 1)
    never = break_even_bandwidth(DataProblem((fast, slow), 100, 1e9, every_way(2, Link(1.0, 1e9))))
    always = break_even_bandwidth(DataProblem((fast, fast.__class__("c", fast.pace)), 100, 0.0, every_way(2, Link(0.0, 1e9))))
    assert never.at is None
    assert "no link" in never.words
    assert always.at is None
    assert "any link" in always.words


@pytest.mark.parametrize(("change", "part"), [
    ({"batch": 0}, "batch 0"), ({"gradient_bytes": float("nan")}, "nan"), ({"links": ()}, "links"),
    ({"least_pools": 3}, "least_pools 3"),
])
def test_numbers_that_do_not_fit_are_refused(change: dict[str, object], part: str) -> None:
    good = {"pools": (linear("a", 1), linear("b", 1)), "batch": 4, "gradient_bytes": 1.0, "links": every_way(2, Link(0, 1))}
    with pytest.raises(BadInput, match=part):
        DataProblem(**{**good, **change})  # type: ignore[arg-type]
