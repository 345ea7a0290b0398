"""What is asked for: whether it is met, by how much not, and how likely."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor import advise
from advisor.flips import flips_of
from advisor.ranking import Contender, ranked
from advisor.targets import ENDLESS, aims_of, chance_of_all, excess, missed
from core.advice import Candidate, Estimate, Plan, Served
from core.device import Pool
from core.quantity import Quantity, exact, log_normal
from core.workload import Targets, Total, Workload
from tests.unit.advisor.cases import block_measurements, pool, question, runtime, tower, transformer

STEP = log_normal(0.01, 0.2, "published", "test")


def estimate(**more: object) -> Estimate:
    place = Candidate("jax", (Pool("h100-sxm", 8, "gpu", 10.0),), Plan())
    return replace(Estimate(place, STEP, None, None, None, None, None), **more)


def job(**targets: float) -> Workload:
    return tower(total=Total(steps=3.6e5), targets=Targets(**targets))


def test_a_target_at_the_middle_of_the_band_is_met_half_of_the_time() -> None:
    aims = aims_of(estimate(), job(deadline_h=1.0))
    assert chance_of_all(aims) == pytest.approx(0.5)
    assert (missed(aims), excess(aims)) == ((), 1.0)


def test_the_ends_of_the_band_are_met_one_and_nine_times_in_ten() -> None:
    for hours, chance in ((STEP.high / STEP.mid, 0.9), (STEP.low / STEP.mid, 0.1)):
        assert chance_of_all(aims_of(estimate(), job(deadline_h=hours))) == pytest.approx(chance)


def test_the_hardest_target_decides() -> None:
    aims = aims_of(estimate(cost_usd=log_normal(100.0, 0.2, "published", "test")), job(deadline_h=100.0, budget_usd=50.0))
    assert missed(aims) == ("budget of 50 USD (it costs 100 USD)",)
    assert excess(aims) == pytest.approx(2.0)
    assert chance_of_all(aims) == min(aim.chance for aim in aims)


def test_what_costs_nothing_keeps_every_budget() -> None:
    assert chance_of_all(aims_of(estimate(cost_usd=exact(0.0, "measured")), job(budget_usd=1.0))) == 1.0
    assert missed(aims_of(estimate(cost_usd=exact(0.0, "measured")), job(budget_usd=0.0))) == ()


def test_without_targets_nothing_is_told() -> None:
    assert chance_of_all(aims_of(estimate(), job())) is None


def test_a_large_budget_is_written_in_full() -> None:
    asked = replace(tower(total=Total(steps=10)), targets=Targets(budget_usd=5e6))
    (aim,) = aims_of(estimate(cost_usd=exact(1.0, "datasheet")), asked)
    assert aim.name == "budget of 5,000,000 USD"


def test_a_rate_is_held_against_what_can_be_served_and_its_slowest_answers_against_the_latency() -> None:
    slowest = (*[exact(0.1, "published")] * 2, log_normal(1.234, 0.3, "published", "test"))
    asked = replace(tower(), task="serve", targets=Targets(requests_per_s=5.0, latency_ms=1000.0))
    held = aims_of(estimate(served=Served(5.0, 10.0, total_s=slowest)), asked)
    assert missed(held) == ("latency of 1000 ms (at 5 requests a second one in a hundred takes over 1,234 ms)",)
    over = aims_of(estimate(served=Served(5.0, 4.0)), asked)
    assert missed(over) == (
        "rate of 5 requests a second (it serves 4.00 at most)", "latency of 1000 ms (its queue grows without end)",
    )
    assert excess(over) == pytest.approx(1.25 + (ENDLESS * 1.25 - 1))


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1.0), st.floats(1e-3, 1e3))
def test_more_time_never_makes_a_deadline_less_sure(mid: float, sigma: float, hours: float) -> None:
    told = estimate(step_time_s=log_normal(mid, sigma, "published", "test"))
    less, more = (chance_of_all(aims_of(told, job(deadline_h=limit))) for limit in (hours, 2 * hours))
    assert less is not None
    assert more is not None
    assert 0 <= less <= more <= 1


def test_the_answer_says_how_sure_the_target_is_and_what_would_be_surer() -> None:
    asked = transformer(total=Total(steps=1e5))
    pools = tuple(pool("h100-sxm", count=count, price=3.0 * count) for count in (1, 8))
    plain = advise(question(asked, pools=pools, objective="cost", runtimes=(runtime("jax"),)))
    assert plain.best is not None
    cheap_h = hours_of(plain.best)
    tight = replace(asked, targets=Targets(deadline_h=1.02 * cheap_h))
    answer = advise(question(tight, pools=pools, objective="cost", runtimes=(runtime("jax"),)))
    assert answer.best is not None
    assert answer.best.target_chance is not None
    assert 0.5 < answer.best.target_chance < 0.9
    assert "sure to meet the deadline of" in answer.sentence
    assert "surer to meet the targets (" in answer.why


def hours_of(told: Estimate) -> float:
    quantity: Quantity | None = told.job_s
    assert quantity is not None
    return quantity.mid / 3600


def test_where_all_miss_a_target_the_one_nearest_to_it_leads_and_none_is_as_good() -> None:
    asked = transformer(total=Total(steps=1e5), targets=Targets(deadline_h=1e-4))
    pools = tuple(pool("h100-sxm", count=count, price=3.0 * count) for count in (1, 2, 4, 8))
    answer = advise(question(asked, pools=pools, objective="cost"))
    times = [hours_of(one) for one in answer.ranked]
    assert times == sorted(times)
    assert (answer.equal, answer.confidence, answer.flips) == ((), None, ())
    assert "comes nearest and misses the deadline of 0.0001 h (it takes" in answer.sentence
    assert "misses the deadline of" in answer.why


def test_only_candidates_that_meet_the_targets_are_counted_as_rivals() -> None:
    workload = tower(total=Total(steps=1e6), targets=Targets(deadline_h=30.0))
    outcomes = [*block_measurements(workload, "jax", {"first": 0.01, "middle": 0.02}),
                *block_measurements(workload, "torch-eager", {"first": 0.02, "middle": 0.04})]
    answer = advise(question(workload, outcomes))
    assert "it is the only one of 2 candidates that meets the targets" in answer.sentence


def test_a_budget_without_a_price_is_not_told_as_met() -> None:
    workload = tower(total=Total(steps=1e6), targets=Targets(deadline_h=1e6, budget_usd=1.0))
    answer = advise(question(workload, pools=(pool("h100-sxm"),), runtimes=(runtime("jax"),)))
    assert answer.ranked[0].target_chance is None
    assert answer.ranked[0].misses == ()


def test_a_target_that_nothing_can_be_held_against_is_told_as_not_counted_and_not_as_met() -> None:
    open_deadline = ("whether the deadline of 1 h is kept", "not counted, since no total was given: give total")
    workload = tower(task="infer", optimizer="none", targets=Targets(deadline_h=1.0, latency_ms=1e9, unheld=(open_deadline,)))
    answer = advise(question(workload, pools=(pool("h100-sxm"),), runtimes=(runtime("jax"),)))
    assert (answer.gaps[0].what, answer.gaps[0].remedy) == open_deadline
    assert answer.ranked[0].target_chance is None


def test_missing_one_target_by_little_is_less_than_missing_two() -> None:
    both, one = (estimate(cost_usd=exact(cost, "published"), step_time_s=exact(step, "published")) for cost, step in
                 ((175.0, 0.01365 * 2), (181.0, 0.0071)))  # fmt: skip
    asked = job(deadline_h=2.0, budget_usd=100.0)
    assert excess(aims_of(both, asked)) > excess(aims_of(one, asked)) > 1


def test_a_rate_that_nobody_held_against_a_queue_is_not_told_as_met() -> None:
    workload = replace(tower(), task="serve", targets=Targets(requests_per_s=5.0, latency_ms=1e6))
    outcomes = block_measurements(workload, "jax", {"first": 0.01, "middle": 0.02})
    best = advise(question(workload, outcomes)).best
    assert best is not None
    assert (best.served, best.misses, best.target_chance) == (None, (), None)


def priced(name: str, seconds: float, usd: float, workload: Workload) -> Contender:
    step = log_normal(seconds, 0.1, "datasheet", "test")
    found = Estimate(Candidate(name, (Pool("h100-sxm", 8, "gpu", usd),), Plan()), step, None, None, None, step.scaled(usd), None)
    aims = aims_of(found, workload)
    return Contender(replace(found, misses=missed(aims), target_chance=chance_of_all(aims)), step.scaled(usd), excess(aims))


def test_a_target_flips_where_what_costs_less_meets_it_and_where_the_choice_just_misses_it() -> None:
    workload = replace(transformer(total=Total(steps=3600)), targets=Targets(deadline_h=2.0))
    made = [priced("fast", 1.0, 30.0, workload), priced("choice", 1.5, 10.0, workload), priced("slow", 2.5, 1.0, workload)]
    order, _ = ranked(made)
    assert order[0].estimate.candidate.runtime == "choice"
    found = [(flip.at, flip.winner) for flip in flips_of(order, "time", workload) if flip.what == "deadline"]
    assert found == [(pytest.approx(2.5), "slow on 8 x h100-sxm"), (pytest.approx(1.5), "fast on 8 x h100-sxm")]
    for at, winner in found:  # a hair beyond, the named one leads
        other = replace(workload, targets=Targets(deadline_h=float(at) * (1.001 if at > 2 else 0.999)))
        again, _ = ranked([priced("fast", 1.0, 30.0, other), priced("choice", 1.5, 10.0, other), priced("slow", 2.5, 1.0, other)])
        assert again[0].estimate.candidate.label == winner
