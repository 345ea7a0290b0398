"""Plain serving at a rate of requests: loads from the passes of a plan, percentiles, what is late and what it costs."""

from dataclasses import replace
from functools import cache

import pytest

from advisor import Question, advise
from advisor.queueing import Latencies, latencies
from advisor.search import PassTime
from advisor.served import Load, load_of, served_of, service_words, with_ends
from core.advice import Estimate, Recommendation
from core.device import Pool
from core.quantity import log_normal
from core.workload import Targets, Workload
from services import workloads
from tests.unit.advisor.cases import TODAY

STEP = log_normal(2.0, 0.2, "published", "a page")
PASSES = (
    PassTime("prefill", 1.0, 0.8, (("compute", 0.8),)),
    PassTime("decode", 32.0, 0.040, (("compute", 0.008), ("memory traffic", 0.024), ("launch", 0.008))),
)
MEMORY = (("weights", 3e9), ("key-value cache", 1e9))


@cache
def chat() -> Workload:
    """GPT-2 small that answers one prompt of 512 after the other with 128 tokens."""
    made = workloads.read("gpt2-small:infer").workload
    return replace(made, task="serve")


def asking(rate: float | None, latency_ms: float | None = None, objective: str = "time") -> Workload:
    return replace(chat(), targets=Targets(latency_ms=latency_ms, requests_per_s=rate), objective=objective)


def load(rate: float, replicas: int = 1, batch: int = 8) -> Load:
    workload = replace(asking(rate), batch=batch, units_per_step=32.0 * batch)
    found = load_of(workload, PASSES, -(-batch // replicas), MEMORY, STEP)
    assert found is not None
    return found


def answer(workload: Workload, *pools: Pool) -> Recommendation:
    return advise(Question(workload, pools, (), (), (), workload.objective, TODAY))


def gpu(key: str = "h100-sxm", count: int = 1, price: float | None = 3.0) -> Pool:
    return Pool(key, count, "gpu", price, "somewhere")


def best(workload: Workload, *pools: Pool) -> Estimate:
    found = answer(workload, *pools).best
    assert found is not None
    return found


def test_a_workload_without_a_rate_or_with_another_task_has_no_load() -> None:
    assert load_of(asking(None), PASSES, 8, MEMORY, STEP) is None
    assert load_of(replace(asking(5.0), task="infer"), PASSES, 8, MEMORY, STEP) is None


def test_a_step_of_one_request_keeps_its_weights_launches_and_no_other_s_share() -> None:
    found = load(1.0)
    alone = 0.008 / 8 + 0.024 * (3 / 4 + 1 / 4 / 8) + 0.008
    assert found.steps == ((1, pytest.approx(alone)), (8, 0.040))
    assert found.tokens == 32.0
    assert found.prefill_s == pytest.approx(0.1)
    assert found.least_s == pytest.approx(0.1 + 32 * alone)


def test_replicas_share_the_rate_and_the_batch() -> None:
    found = load(4.0, replicas=4)
    assert (found.replicas, found.places) == (4, 2)
    # two at once: 2 prompts of 0.8 / 2 s and 32 steps of 0.04 s
    assert found.limit_per_s() == pytest.approx(4 * 2 / (0.8 + 32 * 0.040))


def test_a_batch_that_replicas_do_not_divide_serves_no_more_at_once_than_it_has() -> None:
    found = load(4.0, replicas=5, batch=32)
    # 6.4 a replica: steps take as long as those of 7, and 32 are answered in them
    assert found.places == 7
    assert found.limit_per_s() == pytest.approx(32 / (0.8 + 32 * 0.040))


def test_the_percentiles_are_those_of_one_replica_s_queue() -> None:
    found = load(3.0, replicas=2)
    told = served_of(found)
    queue = latencies(1.5, found.prefill_s, found.steps, 32.0, 4)
    assert isinstance(queue, Latencies)
    assert [one.mid for one in told.total_s] == [queue.total.p50_s, queue.total.p95_s, queue.total.p99_s]
    assert [one.mid for one in told.first_token_s] == [queue.first_token.p50_s, queue.first_token.p95_s, queue.first_token.p99_s]
    assert told.utilisation == pytest.approx(3.0 / found.limit_per_s())


def test_latencies_grow_with_the_rate_and_their_bands_hold_the_middle() -> None:
    calm, busy = (served_of(load(rate)).total_s for rate in (0.3, 3.0))
    for few, many in zip(calm, busy, strict=True):
        assert few.mid < many.mid
        assert many.low < many.mid < many.high


def test_a_slow_end_that_cannot_keep_up_is_still_a_figure() -> None:
    full = 0.98 * load(1.0).limit_per_s()
    slowest = served_of(load(full)).total_s[-1]
    assert slowest.mid < slowest.high < float("inf")


def test_more_than_can_be_served_has_no_latencies() -> None:
    told = served_of(load(1.01 * load(1.0).limit_per_s()))
    assert told.utilisation > 1
    assert told.total_s == ()
    assert service_words(told) == ""


def test_one_pass_a_request_is_a_queue_without_tokens() -> None:
    workload = replace(asking(20.0), blocks=chat().blocks[:1], batch=8)
    found = load_of(workload, (PassTime("forward", 1.0, 0.1, (("compute", 0.1),)),), 8, (("weights", 1e9),), STEP)
    assert found is not None
    assert (found.tokens, found.prefill_s) == (1.0, 0.0)
    assert found.steps == ((1, pytest.approx(0.0125)), (8, 0.1))
    told = served_of(found)
    assert told.first_token_s == ()
    assert told.total_s[0].mid >= 0.0125


def test_an_answer_tells_the_percentiles_of_what_leads() -> None:
    found = answer(asking(5.0), gpu())
    chosen = found.best
    assert chosen is not None
    assert chosen.served is not None
    assert len(chosen.served.total_s) == 3
    assert "at 5 requests a second" in found.why
    assert "one in a hundred" in found.why


def test_a_latency_that_the_slowest_of_a_hundred_misses_is_missed() -> None:
    chosen = best(asking(5.0), gpu())
    assert chosen.served is not None
    slowest_ms = chosen.served.total_s[-1].mid * 1e3
    met, missed = (best(asking(5.0, slowest_ms * factor), gpu()) for factor in (1.01, 0.99))
    assert met.missing == ()
    assert any(phrase.startswith("latency of") and "at 5 requests" in phrase for phrase in missed.misses)


def test_a_pool_that_cannot_keep_up_comes_behind_one_that_can() -> None:
    limit = best(asking(1.0), gpu("t4")).served
    assert limit is not None
    asked = asking(2 * limit.limit_per_s, objective="cost")
    found = answer(asked, gpu("t4", price=0.01), gpu("h100-sxm", price=5.0))
    assert found.best is not None
    assert found.best.candidate.pools[0].accelerator == "h100-sxm"
    slow = next(one for one in found.ranked if one.candidate.pools[0].accelerator == "t4")
    assert any("requests a second (it serves" in phrase for phrase in slow.misses)


def test_what_is_not_used_is_paid_for() -> None:
    # a thousand batches come at the asked rate whatever the pool could do
    asked = asking(2.0, objective="cost")
    found = answer(asked, gpu("h100-sxm", price=8.0), gpu("a100-80", price=2.0))
    costs = {one.candidate.pools[0].accelerator: one.cost_usd for one in found.ranked}
    hours = 1000 * asked.batch / 2.0 / 3600
    assert costs["h100-sxm"] is not None
    assert costs["a100-80"] is not None
    assert costs["h100-sxm"].mid == pytest.approx(8.0 * hours)
    assert costs["a100-80"].mid == pytest.approx(2.0 * hours)
    assert found.best is not None
    assert found.best.candidate.pools[0].accelerator == "a100-80"


def test_the_order_of_pools_changes_nothing() -> None:
    pools = [gpu(key, price=price) for key, price in (("h100-sxm", 5.0), ("a100-80", 2.0), ("l4", 0.7))]
    there, back = (answer(asking(3.0, 3000.0, "cost"), *order) for order in (pools, pools[::-1]))
    assert there.ranked == back.ranked


def test_without_a_rate_serving_is_told_as_before() -> None:
    chosen = best(asking(None, 1e6), gpu())
    assert chosen.served is None
    assert chosen.missing == ()


def test_the_host_s_part_is_there_once_and_input_for_each_request() -> None:
    one = PassTime("forward", 2.0, 0.1, (("compute", 0.1),))
    (with_both,) = with_ends((one,), 0.2, 1.6)
    assert with_both.seconds == pytest.approx(0.1 + 0.1 + 0.8)
    found = load_of(replace(asking(20.0), blocks=chat().blocks[:1], batch=8), (with_both,), 8, (("weights", 1e9),), STEP)
    assert found is not None
    assert found.steps == ((1, pytest.approx((0.1 + 0.8) / 8 + 0.1)), (8, pytest.approx(1.0)))


def test_the_fastest_of_what_serves_a_rate_is_what_answers_soonest_not_what_ends_a_job() -> None:
    pools = tuple(gpu(count=count, price=3.0 * count) for count in (1, 8))
    told = answer(asking(0.5, objective="time"), *pools)
    slowest = [one.served.total_s[-1].mid / one.penalty for one in told.ranked if one.served is not None and not one.misses]
    assert told.ranked[0].served is not None
    assert min(slowest) >= told.ranked[0].served.total_s[-1].mid * 0.98  # as near as is not worth a choice
    assert all(one.job_s is None for one in told.ranked)  # it takes as long as the requests come


def test_chips_that_wait_for_requests_draw_power_too() -> None:
    one, many = (best(asking(0.5, objective="energy"), gpu(count=count, price=3.0 * count)) for count in (1, 64))
    assert one.served is not None
    assert many.served is not None
    assert one.energy_j is not None
    assert many.energy_j is not None
    seconds, limit_w = chat().batch * 1000 / 0.5, 700.0
    for told, chips in ((one, 1), (many, 64)):
        assert told.energy_j is not None
        assert 0.1 * limit_w * chips * seconds < told.energy_j.mid < 0.9 * limit_w * chips * seconds
    assert 10 < many.energy_j.mid / one.energy_j.mid <= 64


def test_a_pool_that_cannot_keep_up_costs_what_serving_them_takes_without_compiling() -> None:
    told = answer(asking(1e6, objective="cost"), gpu(price=3.6))
    for one in told.ranked:
        assert one.cost_usd is not None
        assert one.step_time_s is not None
        assert one.cost_usd.mid == pytest.approx(3.6 / 3600 * 1000 * one.step_time_s.mid)
