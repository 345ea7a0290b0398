"""What renting on other terms would choose, and where it changes nothing."""

from dataclasses import replace

import pytest

from advisor import advise
from core.advice import Flip
from core.device import Offer, Pool
from core.workload import Targets, Total, Workload
from tests.unit.advisor.cases import pool, question, runtime, transformer

DEAR = replace(pool("tpu-v6e", count=8, price=30.0), where="GCP us-central1, on-demand")
CHEAP = replace(pool("h100-sxm", count=8, price=3.0), where="AWS us-east-1, on-demand")
FAST = replace(CHEAP, count=64)
JOB = transformer(total=Total(steps=1e7))


def flips(pools: tuple[Pool, ...], workload: Workload = JOB) -> list[Flip]:
    answer = advise(question(workload, pools=pools, objective="cost", runtimes=(runtime("jax"),)))
    assert answer.best is not None
    assert answer.best.candidate.pools[0] == pools[0]
    return [one for one in answer.flips if one.what.startswith("all on ")]


def on(one: Pool, usd_per_h: float, terms: str = "committed-1y") -> Pool:
    return replace(one, other_terms=(Offer(terms, usd_per_h, f"GCP us-central1, {terms}"),))


def test_terms_on_which_another_pool_is_the_cheapest_are_told_with_its_price_then() -> None:
    (flip,) = flips((CHEAP, on(DEAR, 1.0)))
    assert flip == Flip(
        "all on committed-1y terms: price of 8 x tpu-v6e (GCP us-central1)", 30.0, 1.0, "USD per hour", "jax on 8 x tpu-v6e"
    )


def test_terms_that_leave_the_choice_as_it_is_are_no_flip() -> None:
    assert flips((CHEAP, on(DEAR, 29.0))) == []
    assert flips((on(CHEAP, 0.1), on(DEAR, 1.0))) == []


def test_terms_on_which_interruptions_break_the_deadline_are_no_flip() -> None:
    hurried = replace(JOB, targets=Targets(deadline_h=_hours_of(DEAR) * 1.001))
    assert len(flips((FAST, on(DEAR, 0.1)), hurried)) == 1
    assert flips((FAST, on(DEAR, 0.1, "spot")), hurried) == []


def _hours_of(one: Pool) -> float:
    """Hours of the job on a pool of firm terms."""
    best = advise(question(JOB, pools=(one,), objective="cost", runtimes=(runtime("jax"),))).best
    assert best is not None
    assert best.job_s is not None
    return best.job_s.mid / 3600


@pytest.mark.parametrize("objective", ["time", "energy"])
def test_terms_move_no_other_objective(objective: str) -> None:
    answer = advise(question(JOB, pools=(CHEAP, on(DEAR, 2.0)), objective=objective, runtimes=(runtime("jax"),)))
    assert [one for one in answer.flips if one.what.startswith("all on ")] == []


def test_no_terms_beat_what_costs_nothing() -> None:
    free = replace(CHEAP, price_usd_per_h=0.0)
    assert flips((free, on(DEAR, 2.0))) == []
