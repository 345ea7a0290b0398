"""Workloads as a form sees them."""

import json

import intake
from services import workloads


def test_the_form_asks_for_the_targets_that_a_task_can_have() -> None:
    train, serve = (workloads.form_fields(workloads.preset_document("llama-3-8b", task)) for task in ("train", "serve"))
    assert {"targets.deadline_h", "targets.budget_usd"} <= {field.path for field in train}
    assert {"targets.latency_ms", "targets.requests_per_s"} <= {field.path for field in serve}
    assert not {field.path for field in train} & {"targets.latency_ms", "targets.requests_per_s"}


def test_a_rate_and_a_cleared_batch_leave_the_requests_at_once_open() -> None:
    document = workloads.preset_document("llama-3-8b", "serve")
    asked = workloads.apply_fields(document, {"targets.requests_per_s": 5.0, "batch": None})
    assert "batch left open" in " ".join(intake.read_document(asked).assumptions)
    (batch,) = (field for field in workloads.form_fields(asked) if field.path == "batch")
    assert batch.value is None
    undone = workloads.apply_fields(asked, {"targets.requests_per_s": None, "batch": 4})
    assert "targets" not in undone


def test_a_deadline_without_a_total_says_that_it_holds_nothing() -> None:
    document = {"task": "train", "batch": 8, "model": {"preset": "mlp"}, "targets": {"deadline_h": 2}}
    said = intake.read_document(document).assumptions
    assert "deadline_h is held against nothing, since no total was given" in said


def test_a_form_that_turns_to_another_task_forgets_the_targets_that_mean_nothing_to_it() -> None:
    document = workloads.preset_document("llama-3-8b", "serve") | {"targets": {"latency_ms": 100, "budget_usd": 5}}
    assert workloads.apply_fields(document, {"task": "train"})["targets"] == {"budget_usd": 5}
    assert workloads.apply_fields(document, {"task": "infer"})["targets"] == {"latency_ms": 100, "budget_usd": 5}


def test_a_batch_that_is_left_open_is_told_as_open() -> None:
    serving: dict[str, object] = {
        "schema": 1, "task": "serve", "model": {"preset": "gpt2-small"}, "prompt": 64, "output": 8,
        "targets": {"requests_per_s": 5},
    }  # fmt: skip
    told = [workloads.understand(json.dumps({**serving, **said})).batch_words for said in ({}, {"batch": 32})]
    assert told == ["requests at once left open (32 shown here)", "batch 32"]
