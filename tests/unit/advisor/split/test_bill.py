"""What a split costs, where its price turns, and how wide its band is."""

from dataclasses import replace

import pytest

import intake
from advisor.split.bill import cost_of_split, price_break_evens
from advisor.split.sides import Side
from advisor.split.spread import Uncertain, spread
from core.device import Pool
from core.quantity import exact
from core.split import Single

JOB = intake.read_document({"schema": 1, "name": "8B", "task": "train", "model": {"preset": "llama-3-8b"}, "batch": 64})
GPU, TPU = Pool("h100-sxm", 8, "gpu", 16.0), Pool("tpu-v6e", 8, "tpu", 24.0)
FIRST, SECOND = (Side(name, pool, pool, "jax", None, None, None) for name, pool in (("a", GPU), ("b", TPU)))


def singles(first_s: float, second_s: float) -> tuple[Single, ...]:
    return tuple(
        Single(side.pool, "jax", exact(seconds, "published"), None, None, feasible=True)
        for side, seconds in ((FIRST, first_s), (SECOND, second_s))
    )


def test_both_pools_are_paid_for_the_whole_step() -> None:
    cost = cost_of_split(JOB, (FIRST, SECOND), exact(9.0, "published"))
    assert cost is not None
    assert cost.mid == pytest.approx((16 + 24) * 9.0 * 1000 / 3600)


def test_the_price_beside_the_other_pool_is_what_a_split_pays() -> None:
    dearer = Side("a", GPU, replace(GPU, price_usd_per_h=20.0), "jax", None, None, None)
    cost = cost_of_split(JOB, (dearer, SECOND), exact(9.0, "published"))
    assert cost is not None
    assert cost.mid == pytest.approx((20 + 24) * 9.0 * 1000 / 3600)


def test_a_pool_without_a_price_leaves_the_cost_unknown() -> None:
    unpriced = Pool("mi300x", 8, "gpu", None)
    free = Side("c", unpriced, unpriced, "jax", None, None, None)
    assert cost_of_split(JOB, (FIRST, free), exact(9.0, "published")) is None


def test_the_price_at_which_the_choice_turns_makes_split_and_single_equal() -> None:
    # both take 10 s alone and 3 s together: 3 (16 + p) against 0.8 x min(160, 10 p), equal at p = 9.6 and at p = 26.67
    found = {one.now: one for one in price_break_evens((FIRST, SECOND), 3.0, singles(10.0, 10.0), 0.2)}
    assert found[24.0].at == pytest.approx(80.0 / 3.0, rel=1e-6)
    assert "up to" in found[24.0].words


def test_sharing_a_batch_in_proportion_never_saves_cost() -> None:
    # the cost of a step that both share ideally is the mean of both alone, weighted by their shares
    found = price_break_evens((FIRST, SECOND), 5.0, singles(10.0, 10.0), 0.01)
    assert [one.at for one in found] == [None]
    assert "never worth it, at any price of one of the pools" in found[0].words


def test_what_is_the_cheaper_choice_at_every_price_is_told_as_that() -> None:
    found = price_break_evens((FIRST, SECOND), 1e-4, singles(10.0, 10.0), 0.2)
    assert [one.at for one in found] == [None]
    assert "always worth it" in found[0].words


def test_without_a_price_nothing_is_said_of_it() -> None:
    unpriced = Pool("mi300x", 8, "gpu", None)
    free = Side("c", unpriced, unpriced, "jax", None, None, None)
    assert price_break_evens((FIRST, free), 5.0, singles(10.0, 10.0), 0.2) == ()


def test_certain_sides_have_no_band() -> None:
    told = spread(10.0, (Uncertain(8.0, 0.0, "measured"), Uncertain(8.0, 0.0, "measured")), 0)
    assert (told.low, told.mid, told.high, told.tier) == (10.0, 10.0, 10.0, "measured")


def test_balanced_sides_lean_upwards_and_the_worst_tier_is_told() -> None:
    told = spread(8.0, (Uncertain(8.0, 0.2, "measured"), Uncertain(8.0, 0.2, "published")), 0)
    assert told.tier == "published"
    assert told.high / told.mid > told.mid / told.low > 1.0
    alone = spread(8.0, (Uncertain(8.0, 0.2, "measured"),), 0)
    assert told.high > alone.high
    assert alone.high / alone.mid == pytest.approx(1.292, rel=0.05)  # exp(1.2816 x 0.2)


def test_the_same_seed_gives_the_same_band() -> None:
    parts = (Uncertain(8.0, 0.2, "measured"), Uncertain(6.0, 0.3, "published"))
    assert spread(9.0, parts, 7) == spread(9.0, parts, 7)
