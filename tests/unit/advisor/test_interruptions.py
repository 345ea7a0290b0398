"""Jobs that are interrupted: closed forms, a simulation of failures, published runs, and what it does to cost and deadline."""

import random
from dataclasses import replace
from math import exp, expm1, sqrt

import pytest

from advisor import advise
from advisor.charges import cost_of, job_of
from advisor.interruptions import (
    NEVER,
    STARTED_S,
    Interrupted,
    Restarts,
    best_parts,
    expected_s,
    interrupted,
    optimal_interval_s,
    rate_per_h,
    revocable,
    saved_bytes,
)
from advisor.targets import aims_of, missed
from catalog.interruptions import FIRM, REVOCABLE, interruptions
from core.device import Pool
from core.quantity import log_normal
from core.workload import PoolRequest, Targets, Total, Workload
from tests.unit.advisor.cases import question, tower, transformer

HOUR = 3600.0
RESTARTS = Restarts(2 * HOUR, 60.0, 300.0)
STEP = log_normal(1.0, 0.1, "published")


def rented(count: int = 8, where: str = "GCP us-central1, spot", hosts: int = 1, price: float | None = 10.0) -> Pool:
    return Pool("h100-sxm", count, "gpu", price, where, hosts=hosts)


def job(steps: float, **changes: object) -> Workload:
    return transformer(total=Total(steps=steps), **changes)


def told(workload: Workload, pool: Pool, compile_s: float = 0.0) -> Interrupted:
    found = interrupted(workload, pool, 1.0, compile_s, saved_bytes(workload))
    assert found is not None
    return found


def simulated_s(work_s: float, restarts: Restarts, parts: int, draw: random.Random) -> float:
    """Play one job: each part again until it and its checkpoint end before the next interruption; so for each restart."""
    clock_s = 0.0
    for part in range(parts):
        needed_s = work_s / parts + (restarts.checkpoint_s if part < parts - 1 else 0.0)
        begins_s = 0.0
        while True:
            until_s = draw.expovariate(1 / restarts.mean_time_s)
            if until_s >= begins_s + needed_s:
                clock_s += begins_s + needed_s
                break
            clock_s += until_s
            begins_s = restarts.restart_s
    return clock_s


@pytest.mark.parametrize(("work_s", "parts"), [(0.5 * HOUR, 1), (6 * HOUR, 1), (6 * HOUR, 7), (40 * HOUR, 60), (3 * HOUR, 40)])
def test_the_expected_time_is_that_of_played_failures(work_s: float, parts: int) -> None:
    draw = random.Random(7)
    played = [simulated_s(work_s, RESTARTS, parts, draw) for _ in range(4000)]
    mean = sum(played) / len(played)
    error = sqrt(sum((one - mean) ** 2 for one in played)) / len(played)
    assert expected_s(work_s, RESTARTS, parts) == pytest.approx(mean, abs=4 * error)


def test_one_part_without_restart_is_the_textbook_form() -> None:
    assert expected_s(HOUR, Restarts(HOUR, 60.0, 0.0), 1) == pytest.approx(HOUR * (exp(1) - 1))


def test_without_interruptions_only_the_checkpoints_are_left() -> None:
    calm = Restarts(1e12, 60.0, 300.0)
    assert expected_s(10 * HOUR, calm, 11) == pytest.approx(10 * HOUR + 10 * 60, rel=1e-6)


@pytest.mark.parametrize(("checkpoint_s", "mean_time_s"), [(1.0, 1e6), (60.0, 7200.0), (600.0, 36000.0), (1000.0, 3000.0)])
def test_the_interval_is_daly_s_and_nearly_the_best_there_is(checkpoint_s: float, mean_time_s: float) -> None:
    interval_s = optimal_interval_s(checkpoint_s, mean_time_s)

    def slowness(each_s: float) -> float:
        return mean_time_s * expm1((each_s + checkpoint_s) / mean_time_s) / each_s

    least = min(slowness(interval_s * 1.01**step) for step in range(-200, 201))
    assert slowness(interval_s) < 1.002 * least


def test_for_short_checkpoints_the_interval_is_young_s() -> None:
    assert optimal_interval_s(1.0, 1e8) == pytest.approx(sqrt(2 * 1e8), rel=1e-3)


def test_a_checkpoint_longer_than_two_interruptions_apart_is_taken_once_in_between() -> None:
    assert optimal_interval_s(300.0, 100.0) == 100.0


@pytest.mark.parametrize("work_s", [60.0, HOUR, 5 * HOUR, 50 * HOUR])
def test_the_number_of_parts_is_the_best_of_all(work_s: float) -> None:
    chosen = best_parts(work_s, RESTARTS, 10_000)
    least = min(expected_s(work_s, RESTARTS, parts) for parts in range(1, 400))
    assert expected_s(work_s, RESTARTS, chosen) <= 1.0005 * least


def test_a_step_is_never_cut() -> None:
    assert best_parts(100 * HOUR, RESTARTS, 3) == 3


def test_the_run_of_llama_3_keeps_more_than_nine_tenths_of_its_time_as_published() -> None:
    # 16,384 H100 for 54 days; published: more than 90 % effective, an interruption every 2.8 hours
    steps = 54 * 24 * HOUR
    found = told(job(steps), Pool("h100-sxm", 16384, "gpu", None, "own", hosts=2048))
    assert 1.4 * HOUR < found.restarts.mean_time_s < 5.6 * HOUR
    assert 0.9 < found.goodput < 1.0


def test_rates_are_events_over_hours_of_others() -> None:
    llama = next(one for one in interruptions(FIRM) if one.source.startswith("Llama 3"))
    assert llama.per_hour == pytest.approx(466 / (54 * 24 * 16384))
    assert {one.cloud for one in interruptions(REVOCABLE, "gcp")} == {"GCP"}
    assert {one.cloud for one in interruptions(REVOCABLE, "nowhere")} == {"GCP", "AWS"}


def test_rates_grow_with_chips_and_revocable_ones_with_machines() -> None:
    firm, double = (rate_per_h(rented(count, "GCP us-central1, on-demand"), job(1e6)).mid for count in (8, 16))
    one, four = (rate_per_h(rented(8, hosts=hosts), job(1e6)).mid for hosts in (1, 4))
    assert double == pytest.approx(2 * firm)
    assert four - firm == pytest.approx(4 * (one - firm))
    assert one > 10 * firm


@pytest.mark.parametrize(("where", "expected"), [
    ("GCP us-central1, spot", True), ("RunPod, community, price from 2026-01, up to 300 days old, past its 30 days", True),
    ("AWS us-east-1, on-demand", False), ("GCP spotsylvania, committed-1y", False), ("price given", False),
])  # fmt: skip
def test_what_may_be_taken_back_is_known_by_its_terms(where: str, expected: bool) -> None:
    assert revocable(rented(where=where), job(1e6)) is expected


def test_a_price_of_one_s_own_on_spot_terms_is_revocable() -> None:
    workload = job(1e6, pools=(PoolRequest("h100-sxm", 8, 1.0, "spot"),))
    assert revocable(rented(where="price given"), workload)
    assert not revocable(rented(4, where="price given"), workload)


def test_what_is_here_and_a_job_without_total_are_not_interrupted() -> None:
    here = Pool("cpu:0", 1, "cpu", None, "attached", attached=True)
    assert interrupted(job(1e6), here, 1.0, 0.0, 1e9) is None
    assert interrupted(transformer(), rented(), 1.0, 0.0, 1e9) is None


def test_a_small_job_hardly_changes_and_a_long_one_on_spot_machines_does() -> None:
    assert told(job(600), rented()).factor.mid < 1.005
    assert told(job(3e6), rented(256, hosts=32)).factor.mid > 1.01


def test_the_band_of_the_rate_is_the_band_of_the_time() -> None:
    factor = told(job(1e6), rented(64, hosts=8)).factor
    assert 1 <= factor.low < factor.mid < factor.high


def test_a_restart_compiles_and_loads_again() -> None:
    workload = job(1e6)
    rests = told(workload, rented(), 500.0).restarts
    assert rests.restart_s == pytest.approx(STARTED_S + 500.0 + saved_bytes(workload) / 1e9)
    assert told(workload, rented(), 500.0).factor.mid > told(workload, rented(), 0.0).factor.mid


def test_a_checkpoint_of_training_holds_weights_masters_and_states_and_one_of_answering_nothing() -> None:
    parameters = transformer().parameter_count
    assert saved_bytes(transformer()) == parameters * (2 + 4 + 8)
    assert saved_bytes(transformer(task="infer")) == 0


def test_a_job_that_would_hardly_ever_end_is_told_with_a_finite_figure() -> None:
    found = told(job(1e9, width=16384, repeats=200), rented(1_000_000, hosts=125_000))
    assert found.factor.mid <= NEVER
    whole = job_of(job(1e9), rented(10_000_000, hosts=1_000_000), STEP, None, 1e15)
    assert whole is not None
    assert whole.mid == pytest.approx(NEVER * 1e9)


def test_the_time_of_a_job_is_compilation_steps_and_interruptions() -> None:
    workload, compile_s = job(50_000), log_normal(120.0, 0.5, "datasheet")
    saved = saved_bytes(workload)
    whole = job_of(workload, rented(), STEP, compile_s, saved)
    assert whole is not None
    factor = told(workload, rented(), 120.0).factor.mid
    assert whole.mid == pytest.approx(50_000 * factor + 120.0)
    assert any(text.startswith("interrupted every") for text in whole.evidence)


def test_a_minor_compilation_leaves_the_tier_of_the_steps_and_a_major_one_does_not() -> None:
    tiers = [job_of(job(steps), rented(), STEP, log_normal(120.0, 0.5, "datasheet"), 0.0) for steps in (50_000, 60)]
    assert [one.tier for one in tiers if one is not None] == ["published", "datasheet"]


def test_a_job_costs_its_hours_interruptions_included() -> None:
    workload = job(50_000)
    whole = job_of(workload, rented(), STEP, None, saved_bytes(workload))
    cost = cost_of(workload, rented(), STEP, whole)
    assert cost is not None
    assert whole is not None
    assert cost.mid == pytest.approx(10.0 * whole.mid / HOUR)
    assert cost.mid > 10.0 * 50_000 / HOUR


def test_a_deadline_counts_interruptions() -> None:
    workload = tower(batch=1024, total=Total(steps=2e8))
    asked = question(workload, pools=(rented(64, hosts=8),))
    best = advise(asked).best
    assert best is not None
    assert best.job_s is not None
    assert best.step_time_s is not None
    bare_h, whole_h = best.step_time_s.mid * 2e8 / HOUR, best.job_s.mid / HOUR
    assert whole_h > 1.001 * bare_h
    between = replace(workload, targets=Targets(deadline_h=(bare_h + whole_h) / 2))
    assert any("deadline" in phrase for phrase in missed(aims_of(best, between)))


def test_spot_terms_make_a_long_job_dearer_at_one_price() -> None:
    workload = job(1e6)
    firm, spot = (
        job_of(workload, rented(where=where), STEP, None, saved_bytes(workload))
        for where in ("GCP us-central1, on-demand", "GCP us-central1, spot")
    )
    assert firm is not None
    assert spot is not None
    assert spot.mid > firm.mid


def test_a_spot_pool_says_nothing_of_other_pools_of_as_many_chips() -> None:
    workload = job(1e6, pools=(PoolRequest("h100-sxm", 8, None, "spot"), PoolRequest("h100-sxm", 8, 2.0)))
    assert not revocable(rented(where="price given"), workload)
    assert not revocable(rented(where="AWS us-east-1, on-demand"), workload)
    assert revocable(rented(where="AWS us-east-1, spot"), workload)
