"""How many chips keep up with a rate: from one replica's limit, in whole replicas, with a margin for the band."""

from dataclasses import replace
from math import exp

import pytest

from advisor.keeping_up import Fleet, enough_words, fleet_of, fleets_of
from core.advice import ALL_BLOCKS, Candidate, Estimate, Plan, Served, Share
from core.device import Pool
from core.quantity import Z_80, log_normal

SIGMA = 0.1
PLAN = Plan(data=4, tensor=2)


def estimate(rate: float, limit: float, key: str = "h100-sxm", plan: Plan = PLAN, sigma: float = SIGMA) -> Estimate:
    """Eight chips that serve `limit` requests a second at most."""
    step = log_normal(1.0, sigma, "datasheet", "test") if sigma else replace(log_normal(1.0, 0.1, "datasheet"), low=1.0, high=1.0)
    pool = Pool(key, 8, "gpu", 20.0, "test")
    return Estimate(Candidate("jax", (pool,), plan), step, None, None, None, None, None, served=Served(rate, limit))


def test_as_many_replicas_as_the_rate_needs() -> None:
    # 4 replicas serve 8 a second, so 2 each: 100 a second need 51 (50 serve just what comes), of 2 chips each
    assert fleet_of(estimate(100, 8)) == Fleet("h100-sxm", 102, 2)
    assert fleet_of(estimate(99, 8)) == Fleet("h100-sxm", 100, 2)


def test_replicas_that_share_their_weights_are_had_as_a_whole() -> None:
    assert fleet_of(estimate(100, 8, plan=Plan(fsdp=4, tensor=2))) == Fleet("h100-sxm", 13 * 8, 8)


def test_a_margin_covers_steps_as_slow_as_their_band() -> None:
    fleet = fleets_of((estimate(100, 8),))[0]
    assert fleet.chips == pytest.approx(100 * exp(Z_80 * SIGMA), abs=2)
    assert fleet.chips % 2 == 0


def test_where_a_pool_meets_all_only_a_smaller_one_is_looked_for() -> None:
    # 16 a second on 8 chips: 10 need 3 of the 4 replicas, with the margin too
    (smaller,) = fleets_of((estimate(10, 16),))
    assert smaller == Fleet("h100-sxm", 6, 2)
    assert fleets_of((estimate(14, 16),)) == ()


def test_where_none_meets_all_fleets_with_room_to_spare_are_looked_for_too() -> None:
    just, more, most = (fleet.chips for fleet in fleets_of((estimate(100, 8),)))
    assert (more, most) == (pytest.approx(1.3 * just, abs=2), 2 * just)
    late = replace(estimate(10, 16), misses=("latency of 100 ms",))
    assert [fleet.chips for fleet in fleets_of((late,))] == [6, 8, 12]


def test_the_pool_that_serves_most_by_the_chip_tells() -> None:
    small = replace(estimate(100, 3), candidate=Candidate("jax", (Pool("h100-sxm", 2, "gpu", 5.0, "test"),), Plan(tensor=2)))
    fleet = fleets_of((estimate(100, 8), small))[0]
    assert fleet.chips == pytest.approx(2 * 100 / 3 * exp(Z_80 * SIGMA), abs=2)


def test_what_falls_short_says_how_many_chips_would_do() -> None:
    words = enough_words(estimate(100, 8))
    assert words == "102 chips divided so would keep up (88 to 114 by the band of its step)"
    assert enough_words(estimate(7, 8)) == ""
    waiting = Share("input", ALL_BLOCKS, log_normal(0.5, 0.1, "datasheet", "test"))
    assert enough_words(replace(estimate(100, 8), breakdown=(waiting,))) == ""


def test_chips_that_are_here_or_of_an_unknown_rate_say_nothing() -> None:
    here = replace(estimate(100, 8), candidate=Candidate("jax", (Pool("gpu:0", 1, "gpu", attached=True),), Plan()))
    assert enough_words(here) == ""
    assert fleets_of((here, replace(estimate(100, 8), served=None))) == ()
