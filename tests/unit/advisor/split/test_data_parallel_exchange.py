"""Exchanges between hosts: the ring that costs least, what no exchange undercuts, and the batch from which on a split pays."""

from itertools import permutations

import numpy as np
import pytest

from advisor.split.data_parallel import plan_data
from advisor.split.data_parallel_curves import break_even_batch, share_curve
from advisor.split.data_parallel_exchange import Links, exchange_of, least_exchange
from advisor.split.data_parallel_shares import pace_seconds
from advisor.split.data_parallel_words import DataPool, DataProblem
from advisor.split.pace import Pace
from advisor.split.pipeline_words import every_way
from core.device import Link
from core.errors import BadInput

FAST, SLOW = Link(0.001, 10e9), Link(0.01, 1e9)


def two_sites(slow_pairs: set[tuple[int, int]], count: int) -> Links:
    def way(a: int, b: int) -> Link | None:
        return None if a == b else SLOW if (min(a, b), max(a, b)) in slow_pairs else FAST

    return tuple(tuple(way(a, b) for b in range(count)) for a in range(count))


def test_a_ring_goes_around_a_slow_pair() -> None:
    links = two_sites({(0, 1)}, 4)  # 0 and 1 stand opposite in the ring 0 2 1 3
    found = exchange_of(links, (0, 1, 2, 3), 4e9)
    assert found is not None
    assert found.busy_s == pytest.approx(6 * 1e9 / 10e9)
    assert found.latency_s == pytest.approx(6 * 0.001)


def test_a_ring_that_must_cross_is_as_slow_as_the_slow_links() -> None:
    links = two_sites({(0, 2), (0, 3), (1, 2), (1, 3)}, 4)
    found = exchange_of(links, (0, 1, 2, 3), 4e9)
    assert found is not None
    assert found.busy_s == pytest.approx(6 * 1e9 / 1e9)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 9])
def test_no_exchange_is_faster_than_the_least(count: int) -> None:
    links = two_sites({(0, 1), (1, 2)}, count)
    found, least = exchange_of(links, tuple(range(count)), 1e9), least_exchange(links, count, 1e9)
    assert found is not None
    assert least.busy_s <= found.busy_s * (1 + 1e-12)
    assert least.latency_s <= found.latency_s * (1 + 1e-12)
    rounds, part = (1, 1e9) if count == 2 else (2 * (count - 1), 1e9 / count)
    assert found.sent_bytes == pytest.approx(rounds * part)


def test_the_ring_does_not_hang_on_the_order_of_pools() -> None:
    base = two_sites({(0, 1), (2, 3)}, 5)
    costs = set()
    for order in permutations(range(5)):
        found = exchange_of(tuple(tuple(base[a][b] for b in order) for a in order), (0, 1, 2, 3, 4), 1e9)
        assert found is not None
        costs.add(round(found.busy_s + found.latency_s, 12))
    assert len(costs) == 1


@pytest.mark.parametrize("link", [Link(0.0, 0.0), Link(-1.0, 1e9), Link(0.0, float("nan")), Link(float("inf"), 1e9)])
def test_a_link_that_no_link_can_be_is_refused(link: Link) -> None:
    with pytest.raises(BadInput, match="got a link of"):
        DataProblem(pools(1.0, 1.0), 4, 1.0, every_way(2, link))


def test_pools_without_a_way_cannot_exchange() -> None:
    assert exchange_of(((None, None), (FAST, None)), (0, 1), 1e9) is None


@pytest.mark.parametrize("pace", [
    Pace(((4, 1.0),)), Pace(((1, 0.5), (8, 1.0), (64, 9.0)), 2, 6), Pace(((16, 1.0), (32, 1.5)), 4, 12),
    Pace(((3, 2.0), (5, 2.0))),
])
def test_seconds_of_many_batches_are_those_of_the_pace(pace: Pace) -> None:
    found, last = pace_seconds(pace, np.arange(100))
    assert found.tolist() == pytest.approx([pace.seconds(samples) for samples in range(100)])
    assert last.tolist() == pytest.approx([pace.seconds(samples) / max(1, pace.turns(samples)) for samples in range(100)])


def pools(*rates: float) -> tuple[DataPool, ...]:
    return tuple(DataPool(f"p{index}", Pace(((1, 1 / rate), (10_000, 10_000 / rate)))) for index, rate in enumerate(rates))


def test_the_break_even_batch_of_two_equal_pools_computes_as_long_together_as_it_exchanges() -> None:
    # alone b / 100 s, together b / 200 s and 1 s: equal at 200
    problem = DataProblem(pools(100.0, 100.0), 64, 1e9, every_way(2, Link(0.0, 1e9)), buckets=1)
    found = break_even_batch(problem)
    assert (found.now, found.at) == (64, 200)
    # a fifth saved: 0.8 b / 100 = b / 200 + 1 at 333.3, reached with an even batch or the odd one after
    assert break_even_batch(problem, 0.2).at in {334, 335}


def test_a_batch_that_never_or_always_pays_is_told() -> None:
    always = break_even_batch(DataProblem(pools(100.0, 100.0), 64, 0.0, every_way(2, Link(0.0, 1e9))))
    never = break_even_batch(DataProblem(pools(1e6, 1e-3), 64, 1e12, every_way(2, Link(1.0, 1e3))))
    assert always.at is None
    assert "any batch" in always.words
    assert never.at is None
    assert "no batch" in never.words


def test_with_three_pools_the_others_have_the_rest_as_it_is_best() -> None:
    problem = DataProblem(pools(100.0, 200.0, 300.0), 600, 0.0, every_way(3, Link(0.0, 1e12)))
    curve, plan = share_curve(problem, 13), plan_data(problem)
    assert plan is not None
    assert dict(curve)[0.5] == pytest.approx(3.0)
    assert dict(curve)[0.0] == pytest.approx(600 / 500)
    assert min(seconds for _, seconds in curve) == pytest.approx(plan.seconds)
