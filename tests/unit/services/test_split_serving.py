"""Fleets that serve requests from unlike pools: what is told holds together, whatever the classes, the targets and the pools."""

import re
from collections import Counter
from functools import lru_cache
from typing import Any

import pytest

import catalog
from core.split import Share, Split, SplitOptions
from services import split

CHAT = {"name": "chat", "per_s": 60, "prompt": 100, "output": 100, "first_token_ms": 2000, "per_token_ms": 200}
DOCUMENTS = {"name": "documents", "per_s": 1, "prompt": 6000, "output": 400, "first_token_ms": 800, "per_token_ms": 15}
CASES: dict[str, tuple[list[dict[str, Any]], tuple[str, ...]]] = {
    "one class, two vendors": ([{**CHAT, "per_s": 20}], ("tpu-v5e=16", "h100-sxm=4")),
    "two classes, one vendor": ([{**CHAT, "per_s": 100}, DOCUMENTS], ("l4=64", "h100-sxm=8")),
    "two classes, two vendors": ([{**CHAT, "per_s": 120}, {**DOCUMENTS, "per_token_ms": 9}], ("tpu-v5e=64", "h100-sxm=8")),
    "the whole answer in time": (
        [{"name": "answers", "per_s": 10, "prompt": 500, "output": 200, "latency_ms": 9000}], ("l4=16", "a100-80=4"),
    ),
}  # fmt: skip


@lru_cache
def planned(name: str) -> Split:
    requests, pools = CASES[name]
    return served(requests, pools, ("gcp",) if "vendors" in name else ("aws",))


def served(requests: list[dict[str, Any]], pools: tuple[str, ...], clouds: tuple[str, ...] = ("aws",)) -> Split:
    document: dict[str, Any] = {
        "schema": 1, "task": "serve", "model": {"preset": "llama-3-8b"}, "batch": 32, "prompt": 500, "output": 200,
        "dtype": "bf16", "requests": requests, "where": {"clouds": list(clouds)},
    }  # fmt: skip
    return split.plan(document, SplitOptions(pools, link_bytes_per_s=1.25e10, link_latency_s=1e-3))


def dollars(told: Split) -> float:
    assert told.cost_usd is not None
    return told.cost_usd.mid


def alone(told: Split, accelerator: str) -> float | None:
    cost = next(one.cost_usd for one in told.singles if one.pool.accelerator == accelerator)
    return None if cost is None else cost.mid


@pytest.mark.parametrize("name", CASES)
def test_no_pool_gives_more_chips_than_it_has(name: str) -> None:
    told = planned(name)
    for share in told.shares:
        groups = [(int(count), int(chips)) for count, chips in re.findall(r"(\d+) x (\d+) chips", share.detail)]
        assert sum(count for count, _ in groups) == share.amount
        assert sum(count * chips for count, chips in groups) <= share.pool.count
        assert (share.fraction > 0) == bool(groups)
    assert sum(share.fraction for share in told.shares) == pytest.approx(1)


@pytest.mark.parametrize("name", CASES)
def test_the_fleet_costs_what_its_chips_cost(name: str) -> None:
    told = planned(name)
    price = 0.0
    for share in told.shares:
        price += (share.pool.price_usd_per_h or 0.0) * paid_chips(share) / share.pool.count
    assert dollars(told) == pytest.approx(price)


def paid_chips(share: Share) -> int:
    """Chips of whole slices and machines that hold the replicas; those that fit in the same one share it."""
    sold = catalog.legal_counts(share.pool.accelerator, share.pool.count)
    used: Counter[int] = Counter()
    for count, chips in re.findall(r"(\d+) x (\d+) chips", share.detail):
        used[next((one for one in sold if one >= int(chips)), share.pool.count)] += int(count) * int(chips)
    return sum(-(-chips // together) * together for together, chips in used.items())


def test_a_replica_smaller_than_any_slice_pays_the_slice() -> None:
    requests = [{"name": "chat", "per_s": 4, "prompt": 1024, "output": 256, "first_token_ms": 2000, "per_token_ms": 100}]
    told = served(requests, ("tpu-v5e=8", "h100-sxm=8"), ("gcp",))
    slices = next(share for share in told.shares if share.pool.accelerator == "tpu-v5e")
    assert slices.pool.price_usd_per_h is not None
    assert slices.detail == "1 x 2 chips (whole)"
    assert dollars(told) == pytest.approx(slices.pool.price_usd_per_h / 2)  # four chips: two of them are no slice
    assert "4 chips of 8 x tpu-v5e paid, since fewer are not had" in told.sentence


@pytest.mark.parametrize("name", CASES)
def test_a_fleet_of_all_pools_is_never_dearer_than_the_best_alone(name: str) -> None:
    told = planned(name)
    able = [one for one in told.singles if one.feasible and one.cost_usd is not None]
    assert told.best_single is not None
    assert told.best_single.cost_usd is not None
    assert told.best_single.cost_usd.mid == min(one.cost_usd.mid for one in able if one.cost_usd is not None)
    assert dollars(told) <= told.best_single.cost_usd.mid * (1 + 1e-9)


@pytest.mark.parametrize("name", CASES)
def test_the_price_at_which_the_choice_turns_lies_above_that_of_a_pool_in_use_and_below_that_of_an_idle_one(name: str) -> None:
    told = planned(name)
    prices = [one for one in told.break_even if one.what == "price"]
    assert len(prices) == len(told.shares)
    for share, turn in zip(told.shares, prices, strict=True):
        assert turn.now == share.pool.price_usd_per_h
        if turn.at is not None:
            assert turn.at >= turn.now * (1 - 1e-6) if share.fraction > 0 else turn.at <= turn.now * (1 + 1e-6)


@pytest.mark.parametrize("name", ["two classes, one vendor", "two classes, two vendors"])
def test_unlike_classes_are_served_for_less_by_unlike_pools(name: str) -> None:
    told = planned(name)
    assert all(share.fraction > 0 for share in told.shares)
    assert told.best_single is not None
    assert told.best_single.cost_usd is not None
    assert dollars(told) < 0.9 * told.best_single.cost_usd.mid


def test_keys_and_values_do_not_cross_between_vendors() -> None:
    assert planned("two classes, two vendors").moves == ()


def test_a_pool_alone_costs_the_same_beside_any_other() -> None:
    requests = [{**CHAT, "per_s": 30}]
    first, second = (served(requests, ("h100-sxm=8", other)) for other in ("l4=8", "t4=8"))
    assert alone(first, "h100-sxm") == pytest.approx(alone(second, "h100-sxm"))


def test_more_requests_never_cost_less() -> None:
    costs = [dollars(served([{**CHAT, "per_s": rate}], ("l4=64", "h100-sxm=8"))) for rate in (5, 40, 160)]
    assert costs == sorted(costs)
    assert costs[-1] > costs[0]


def test_a_pool_that_cannot_hold_the_model_is_said() -> None:
    told = served([{**CHAT, "per_s": 2}], ("t4=1", "l4=4"))
    small = told.singles[0]
    assert not small.feasible
    assert re.search(r"GiB|fits", small.missing)
    assert told.best_single is not None
    assert told.best_single.pool.accelerator == "l4"
    assert any("t4" in line for line in told.missing)


def test_a_target_that_no_replica_keeps_is_named_for_each_pool() -> None:
    told = served([{**CHAT, "per_token_ms": 1}], ("l4=4", "h100-sxm=4"))
    assert told.best_single is None
    assert "no replica of these pools keeps the targets of chat" in told.sentence
    assert all("a token takes" in one.missing and "more than 1.00 ms" in one.missing for one in told.singles)


def test_a_pool_that_is_cheaper_by_itself_than_beside_the_others_is_told_at_its_own_price() -> None:
    told = served([CHAT], ("h100-sxm=8", "l4=16"), ())
    assert told.best_single is not None
    assert told.best_single.cost_usd is not None
    assert dollars(told) <= told.best_single.cost_usd.mid * (1 + 1e-9)
    for share in told.shares:
        chips = sum(int(count) * int(each) for count, each in re.findall(r"(\d+) x (\d+) chips", share.detail))
        if share.fraction == 1:
            assert dollars(told) == pytest.approx((share.pool.price_usd_per_h or 0.0) * chips / share.pool.count)


def test_a_price_of_no_cloud_beside_that_of_one_is_planned_with() -> None:
    document = {"task": "serve", "model": {"preset": "llama-3-8b"}, "batch": 32, "prompt": 500, "output": 200,
                "targets": {"requests_per_s": 5}}  # fmt: skip
    told = split.plan(document, SplitOptions(("mi300x=8", "h100-sxm=1"), link_bytes_per_s=1.25e10, link_latency_s=1e-3))
    assert all(one.cost_usd is not None for one in told.singles)
