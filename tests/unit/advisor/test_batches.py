"""A job whose requests at once are left open: each place takes as many as serve it best."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import catalog
import intake
from advisor import Question, advise
from advisor.batches import Batches
from advisor.datasheet import Datasheets
from advisor.spare import copies
from core.advice import SURE, Estimate, Recommendation, Served
from core.device import Pool
from core.probe import Runtime
from core.workload import Workload
from intake.at_once import AT_ONCE

SERVING: dict[str, Any] = {"task": "serve", "model": {"preset": "llama-3-8b"}, "prompt": 512, "output": 128,
                           "targets": {"requests_per_s": 4, "latency_ms": 10_000}}  # fmt: skip
H100, L4 = Pool("h100-sxm", 1, "gpu", 3.0, "test"), Pool("l4", 1, "gpu", 0.8, "test")


@cache
def batches() -> tuple[Workload, ...]:
    return intake.batches_of(SERVING)


def asked(*pools: Pool, batches: tuple[Workload, ...] = ()) -> Recommendation:
    workload = intake.read_document(SERVING)
    return advise(Question(workload, pools, (), (), (), workload.objective, "2026-12-01", named=True, batches=batches))


def of(answer: Recommendation, runtime: str, key: str) -> Estimate:
    return next(one for one in answer.ranked if (one.candidate.runtime, one.candidate.pools[0].accelerator) == (runtime, key))


def test_each_place_serves_at_least_what_any_single_batch_serves_there() -> None:
    answer = asked(H100, L4, batches=batches())
    for key in ("h100-sxm", "l4"):
        best = of(answer, "jax", key)
        assert best.served is not None
        for one in batches():
            alone = advise(Question(one, (H100, L4), (), (), (), "cost", "2026-12-01", named=True))
            found = [e for e in alone.ranked if (e.candidate.runtime, e.candidate.pools[0].accelerator) == ("jax", key)]
            limits = [e.served.limit_per_s for e in found if e.served is not None]
            assert all(limit <= best.served.limit_per_s * 1.03 for limit in limits)


def test_a_small_chip_takes_fewer_at_once_than_a_large_one_and_all_fit() -> None:
    answer = asked(H100, L4, batches=batches())
    large, small = of(answer, "jax", "h100-sxm"), of(answer, "jax", "l4")
    assert large.candidate.requests is not None
    assert small.candidate.requests is not None
    assert small.candidate.requests < large.candidate.requests
    assert all(one.fits for one in answer.ranked)
    assert f"a second and {answer.ranked[0].candidate.requests} at once" in answer.sentence


def test_costs_are_of_the_same_requests_whatever_the_batch() -> None:
    answer = asked(H100, L4, batches=batches())
    for one in answer.ranked:
        price = one.candidate.pools[0].price_usd_per_h
        if not one.misses and price is not None and one.cost_usd is not None:
            assert one.cost_usd.mid == pytest.approx(price * 100_000 / 4 / 3600)


def served_at(batch: int) -> tuple[Estimate, Served]:
    one = next(one for one in batches() if one.batch == batch)
    told = advise(Question(one, (H100,), (), (), (), "cost", "2026-12-01", named=True)).best
    assert told is not None
    assert told.served is not None
    return told, told.served


def test_the_percentiles_are_those_of_as_many_as_are_in_flight() -> None:
    best = asked(H100, batches=batches()).best
    assert best is not None
    assert best.served is not None
    assert best.candidate.requests is not None
    alone, served = served_at(best.candidate.requests)
    assert replace(alone.candidate, requests=best.candidate.requests) == best.candidate
    assert best.served.limit_per_s == pytest.approx(served.limit_per_s)
    few = served_at(16)[1]  # some five are in flight, of 512 that may be
    assert best.served.total_s[-1].mid == pytest.approx(few.total_s[-1].mid, rel=0.1)
    assert best.served.total_s[-1].mid < served.total_s[-1].mid


LATENCIES_MS = (900, 1000, 1500, 3000)


@pytest.mark.parametrize("latency_ms", LATENCIES_MS)
def test_replicas_of_more_chips_are_taken_where_smaller_ones_answer_too_late(latency_ms: int) -> None:
    asking = {**SERVING, "prompt": 500, "output": 200, "targets": {"requests_per_s": 20, "latency_ms": latency_ms}}
    eight = replace(H100, count=8, price_usd_per_h=24.0)
    workload = intake.read_document(asking)
    told = advise(
        Question(workload, (eight,), (), (), (), "cost", "2026-12-01", named=True, batches=intake.batches_of(asking))
    ).ranked[0]
    assert told.served is not None
    slowest_ms = 1e3 * told.served.total_s[-1].mid
    assert (slowest_ms <= latency_ms) == (not told.misses) == (latency_ms >= 1000)
    assert told.candidate.plan.tensor >= {900: 8, 1000: 8, 1500: 4, 3000: 1}[latency_ms]
    assert told.target_chance is not None
    assert (told.target_chance >= SURE) == (latency_ms > 1000)


def test_batches_are_given_in_order() -> None:
    with pytest.raises(ValueError, match="ascending"):
        Batches(tuple(reversed(batches())), ())


def test_no_replica_takes_more_at_once_than_a_server_would_and_larger_pools_serve_more() -> None:
    limits: list[float] = []
    for count in (1, 8, 32):
        best = asked(replace(H100, count=count, price_usd_per_h=3.0 * count, hosts=-(-count // 8)), batches=batches()).ranked[0]
        assert best.candidate.requests is not None
        assert best.served is not None
        assert best.candidate.requests <= AT_ONCE[-1] * copies(best.candidate.plan)
        limits.append(best.served.limit_per_s)
    assert limits[1] > 6 * limits[0]
    assert limits[2] > 2.5 * limits[1]


def test_three_chips_serve_too() -> None:
    best = asked(replace(H100, count=3, price_usd_per_h=9.0), batches=batches()).best
    assert best is not None
    assert best.candidate.requests is not None
    assert best.candidate.requests % 3 == 0


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(st.integers(1, 40), st.integers(1, 9), st.sampled_from(["h100-sxm", "l4", "rtx4090"]))
def test_more_chips_never_serve_fewer_requests(count: int, more: int, key: str) -> None:
    chip, torch = catalog.accelerator(key), Runtime("torch-compile", "torch", "compile")
    pools = [Pool(key, size, "gpu", 1.0, "test") for size in (count, count + more)]
    places = Batches(batches()[::4], [(pool, chip) for pool in pools])
    limits: list[float] = []
    for pool in pools:
        found = places.estimate(torch, pool, chip)
        assert isinstance(found, Estimate)
        assert found.served is not None
        limits.append(found.served.limit_per_s)
    assert limits[1] >= limits[0] * (1 - 1e-9)


def test_permuting_pools_changes_nothing() -> None:
    five, seven = replace(H100, count=5, price_usd_per_h=15.0), replace(H100, count=7, price_usd_per_h=21.0)
    first, second = asked(five, L4, seven, batches=batches()), asked(seven, five, L4, batches=batches())
    assert first == second


def test_chips_that_make_no_whole_replica_are_said_to_be_idle() -> None:
    large = {**SERVING, "model": {"preset": "llama-3-8b", "layers": 80, "width": 8192, "heads": 64, "hidden": 28672}}
    workload, tried = intake.read_document(large), intake.batches_of(large)
    pool = replace(H100, count=5, price_usd_per_h=15.0)
    best = advise(Question(workload, (pool,), (), (), (), "cost", "2026-12-01", named=True, batches=tried))
    assert best.best is not None
    assert best.best.candidate.plan.tensor == 4
    assert "tensor parallel over 4, 4 of 5 chips used" in best.sentence


def test_no_more_at_once_than_almost_surely_fit() -> None:
    for one in asked(H100, L4, batches=batches()).ranked:
        assert one.fit_chance is not None
        assert one.fit_chance >= 0.9


def test_every_latency_is_told_and_none_is_taken_for_met() -> None:
    answer = asked(H100, L4, batches=batches())
    for one in answer.ranked:
        assert one.served is not None
        assert one.target_chance is not None
        assert bool(one.served.total_s) == (one.served.utilisation < 1)


@pytest.mark.parametrize("count", [1, 5, 8])
def test_a_glance_tells_what_the_whole_estimate_tells(count: int) -> None:
    chip, torch = catalog.accelerator("h100-sxm"), Runtime("torch-compile", "torch", "compile")
    pool = replace(H100, count=count, price_usd_per_h=3.0 * count)
    for workload in batches()[::3]:
        sheets = Datasheets(workload, [(pool, chip)], each=True)
        told, seen = sheets.estimate(torch, pool, chip), sheets.glance(torch, pool, chip)
        assert isinstance(told, Estimate)
        assert not isinstance(seen, str)
        served = sheets.served(told, fully=False).served
        assert served is not None
        assert seen == (pytest.approx(told.fit_chance if told.fits else 0.0), pytest.approx(served.limit_per_s, rel=0.01))


def test_what_does_not_fit_is_told_by_the_fewest_requests_at_once() -> None:
    large = {**SERVING, "model": {"preset": "llama-3-8b", "layers": 80, "width": 8192, "heads": 64, "hidden": 28672}}
    chip, torch = catalog.accelerator("h100-sxm"), Runtime("torch-compile", "torch", "compile")
    places = Batches(intake.batches_of(large), [(H100, chip)])
    told = places.estimate(torch, H100, chip)
    assert isinstance(told, Estimate)
    assert (told.fits, told.candidate.requests) == (False, 1)


def test_weights_are_gathered_to_answer_only_where_nothing_else_fits() -> None:
    six = replace(H100, count=6, price_usd_per_h=18.0)
    large = {**SERVING, "model": {"preset": "llama-3-8b", "layers": 80, "width": 8192, "heads": 64, "hidden": 28672}}
    chip, torch = catalog.accelerator("h100-sxm"), Runtime("torch-compile", "torch", "compile")
    told = Batches(intake.batches_of(large), [(six, chip)]).estimate(torch, six, chip)
    assert isinstance(told, Estimate)
    assert told.candidate.plan.fsdp == 1
    odd = {**large, "model": {"preset": "llama-3-8b", "layers": 60, "width": 12288, "heads": 3, "kv_heads": 3, "hidden": 28672}}
    three = replace(H100, count=3, price_usd_per_h=9.0)
    alone = Batches(intake.batches_of(odd), [(three, chip)]).estimate(torch, three, chip)
    assert isinstance(alone, Estimate)
    assert alone.fits


def test_what_can_be_served_counts_what_the_input_waits_for() -> None:
    pictures: dict[str, Any] = {
        "task": "serve", "model": {"preset": "resnet-50"}, "targets": {"requests_per_s": 100},
        "data": {"bytes_per_sample": 120_000, "decode": "jpeg", "host_vcpus": 2},
    }  # fmt: skip
    chip, torch = catalog.accelerator("h100-sxm"), Runtime("torch-compile", "torch", "compile")
    told = Batches(intake.batches_of(pictures), [(H100, chip)]).estimate(torch, H100, chip)
    assert isinstance(told, Estimate)
    assert told.served is not None
    assert told.throughput is not None
    assert told.candidate.requests == 1  # more at once are answered no sooner
    assert told.served.limit_per_s == pytest.approx(told.throughput.mid, rel=0.01)
    assert told.served.limit_per_s < 300  # two processors decode some 108 pictures a second each


def told_of(rate: float, latency_ms: float, *pools: Pool) -> Estimate:
    asking = {**SERVING, "prompt": 1000, "output": 200, "targets": {"requests_per_s": rate, "latency_ms": latency_ms}}
    workload = intake.read_document(asking)
    asked = Question(workload, pools, (), (), (), "cost", "2026-12-01", named=True, batches=intake.batches_of(asking))
    return advise(asked).ranked[0]


def test_what_keeps_up_but_answers_late_is_nearer_than_what_never_ends() -> None:
    small, large = Pool("l40s", 1, "gpu", 1.9, "test"), Pool("a100-80", 8, "gpu", 14.3, "test")
    told = told_of(5, 600, small, large)
    assert told.misses
    assert told.served is not None
    assert (told.candidate.pools[0], told.served.utilisation < 1) == (large, True)


def test_a_target_that_none_meets_gets_the_nearest_replica_not_the_smallest() -> None:
    four = replace(H100, count=4, price_usd_per_h=12.0)
    late, met = (told_of(5, latency_ms, four) for latency_ms in (1000, 1500))
    assert (bool(late.misses), bool(met.misses)) == (True, False)
    assert late.candidate.plan == met.candidate.plan
    assert late.served == met.served
