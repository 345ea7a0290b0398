"""How many requests at once where a job serves a rate of them: left open, or as the document says."""

from typing import Any

import pytest

import intake
from core.errors import BadInput
from core.workload import Total
from intake.at_once import AT_ONCE, REQUESTS_TOLD, USUAL_AT_ONCE

SERVING: dict[str, Any] = {"task": "serve", "model": {"preset": "llama-3-8b"}, "prompt": 512, "output": 128,
                           "targets": {"requests_per_s": 4}}  # fmt: skip


def test_a_rate_without_a_batch_leaves_it_open_and_looks_for_the_cheapest() -> None:
    found = intake.read_document(SERVING)
    assert (found.batch, found.objective, found.total) == (USUAL_AT_ONCE, "cost", Total(samples=REQUESTS_TOLD))
    said = " ".join(found.assumptions)
    assert "batch left open" in said
    assert "cost is told for 100,000 requests" in said
    assert "the cheapest that keeps up" in said


def test_what_is_said_stays() -> None:
    found = intake.read_document({**SERVING, "objective": "time", "total": {"samples": 500}})
    assert (found.objective, found.total) == ("time", Total(samples=500))
    fixed = intake.read_document({**SERVING, "batch": 16})
    assert (fixed.batch, fixed.objective, fixed.total) == (16, "time", Total())


def test_every_batch_is_the_same_job() -> None:
    batches = intake.batches_of(SERVING)
    assert tuple(one.batch for one in batches) == AT_ONCE
    assert {one.total for one in batches} == {Total(samples=REQUESTS_TOLD)}
    assert {one.parameter_count for one in batches} == {intake.read_document(SERVING).parameter_count}
    assert {one.units_per_step / one.batch for one in batches} == {128.0}


def test_no_batch_is_tried_where_one_is_said_or_nothing_is_served_at_a_rate() -> None:
    assert intake.batches_of({**SERVING, "batch": 16}) == ()
    assert intake.batches_of({**SERVING, "targets": {"latency_ms": 100}}) == ()
    assert intake.batches_of({"task": "train", "model": {"preset": "mlp"}, "batch": 8}) == ()


def test_steps_of_an_open_batch_are_refused_and_a_deadline_holds_nothing() -> None:
    with pytest.raises(BadInput, match=r"total\.steps.*expected samples"):
        intake.read_document({**SERVING, "total": {"steps": 10}})
    timed = intake.read_document({**SERVING, "targets": {"requests_per_s": 4, "deadline_h": 1, "budget_usd": 5}})
    assert (timed.targets.deadline_h, timed.targets.budget_usd) == (None, None)
    assert "deadline_h is held against nothing, since requests come at a rate" in timed.assumptions
    (deadline, why), (budget, remedy) = timed.targets.unheld
    assert (deadline, budget) == ("whether the deadline of 1 h is kept", "whether the budget of 5 USD is kept")
    assert why == "not counted, since requests come at a rate: remove targets.deadline_h"
    assert remedy == "not counted, since no total was given: give total, as total: {steps: N}"
