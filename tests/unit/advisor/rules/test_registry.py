"""What is written down of each rule, how rules are registered, and how one that has aged is told."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

import advisor.rules
from advisor.rules import (
    FLAGS,
    BrokenRuleError,
    Finding,
    RuleFacts,
    all_rules,
    job_rule,
    job_rules,
    rule,
    rules_about,
    rules_of_chip,
    split_rules,
)
from advisor.rules.case import Case, Code, code_of
from advisor.screening import overall, screen
from core.advice import EFFECTS
from tests.unit.advisor.cases import TPU, existing, runtime, tower

EVERY = (*all_rules(), *job_rules(), *split_rules())
GOOD = RuleFacts("eol", ("warn",), "much", "a page", "2026-11-30", "2027-02-28")
NOT_COLLECTED = {"R061", "R069", "R071", "R072", "R073"}
"""Numbers that the collected list left out."""


def test_every_collected_rule_is_there_once() -> None:
    known = [one.id for one in EVERY]
    assert len(known) == len(set(known))
    assert {f"R{number:03d}" for number in range(1, 133)} - NOT_COLLECTED <= set(known)


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.id)
def test_every_rule_says_its_flag_effect_magnitude_source_and_both_dates(one) -> None:
    facts = one.facts
    assert facts.flag in FLAGS
    assert set(facts.effects) <= set(EFFECTS)
    assert facts.magnitude
    assert facts.source
    assert date.fromisoformat(facts.as_of) < date.fromisoformat(facts.expires)
    assert one.title.endswith(".")


def test_a_rule_that_explains_never_changes_the_rank() -> None:
    explaining = [one for one in EVERY if one.facts.explains]
    assert len(explaining) >= 30
    assert {effect for one in explaining for effect in one.facts.effects} == {"warn", "suggest"}


@pytest.mark.parametrize("identity", [
    *(f"R{number:03d}" for number in (36, 37, 38, 39, 40, 41, 42, 44)), *(f"R{number:03d}" for number in range(52, 57)), "R066",
    *(f"R{number:03d}" for number in range(74, 87)),
])
def test_padding_rooflines_and_collectives_are_left_to_the_cost_model(identity: str) -> None:
    assert next(one for one in EVERY if one.id == identity).facts.explains


@pytest.mark.parametrize(("changes", "word"), [
    ({"flag": "no_such_flag"}, "flag"), ({"source": ""}, "source"), ({"magnitude": ""}, "magnitude"),
        ({"effects": ()}, "effects"),
    ({"effects": ("forbid",)}, "exclude"), ({"effects": ("penalise",), "explains": True}, "expected some of warn, suggest"),
    ({"expires": "2026-11-30"}, "later day"), ({"expires": "soon"}, "ISO"),
])
def test_a_rule_that_is_badly_written_down_is_refused_with_its_id(changes: dict[str, object], word: str) -> None:
    def check(_: Case) -> Finding | None:
        """Say nothing."""
        return None

    with pytest.raises(BrokenRuleError, match=f"R999 .*{word}"):
        rule("R999", replace(GOOD, **changes))(check)  # pyright: ignore[reportArgumentType]


def test_a_rule_without_docstring_is_refused() -> None:
    with pytest.raises(BrokenRuleError, match="R998 without docstring"):
        rule("R998", GOOD)(lambda _: None)


def test_a_rule_of_a_workload_alone_cannot_exclude() -> None:
    with pytest.raises(BrokenRuleError, match="without candidate"):
        job_rule("R997", replace(GOOD, effects=("exclude",)))


@pytest.mark.parametrize("identity", ["R001", "R041", "R104"])
def test_a_second_rule_of_one_id_is_refused_whatever_it_is_about(identity: str) -> None:
    def again(_: Code) -> Finding | None:
        """Say nothing."""
        return None

    with pytest.raises(BrokenRuleError, match=f"{identity} twice"):
        job_rule(identity, GOOD)(again)


def test_a_rule_file_that_cannot_be_imported_stops_the_start_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "crooked.py").write_text("import there_is_no_such_module\n")
    monkeypatch.setattr(advisor.rules, "__path__", [*advisor.rules.__path__, str(tmp_path)])
    all_rules.cache_clear()
    with pytest.raises(BrokenRuleError, match=r"advisor\.rules\.crooked"):
        all_rules()
    monkeypatch.undo()
    assert len(all_rules()) + len(job_rules()) + len(split_rules()) == len(EVERY)


def test_rules_about_a_runtime_on_a_chip_are_those_whose_scope_it_is_in() -> None:
    assert {"R001", "R002", "R011"} <= {one.id for one in rules_about("tf-xla", "tpu")}
    assert {"R004", "R002"}.isdisjoint(one.id for one in rules_about("jax", "tpu"))
    assert {"R030", "R102"} <= {one.id for one in rules_of_chip("tpu")}
    assert "R030" not in {one.id for one in rules_of_chip("cpu")}


def test_every_rule_of_a_case_is_asked_for_each_runtime_or_once_for_a_chip() -> None:
    kinds = ("cpu", "gpu", "tpu", "other")
    runtimes = ("jax", "torch-xla", "torch-tpu", "tf-graph", "keras-jax", "mxnet")
    asked = {one.id for kind in kinds for runtime in runtimes for one in rules_about(runtime, kind)}
    once = {one.id for kind in kinds for one in rules_of_chip(kind)}
    assert asked | once == {one.id for one in all_rules()}
    assert not asked & once


@pytest.mark.parametrize("one", [one for one in all_rules() if one.of_chip], ids=lambda one: one.id)
def test_a_rule_that_is_asked_once_for_a_chip_does_not_look_at_the_runtime(one) -> None:
    names = set(one.check.__code__.co_names)
    for helper in names & set(one.check.__globals__):
        names |= set(getattr(getattr(one.check.__globals__[helper], "__code__", None), "co_names", ()))
    assert not {"runtime", "version"} & names
    assert "at_least" not in names or "code" in names


@pytest.mark.parametrize(("today", "told"),
    [("", False), ("2027-02-27", False), ("2027-02-28", True), ("2031-01-01T08:00:00Z", True)])
def test_a_rule_past_its_day_still_counts_and_says_when_it_was_last_checked(today: str, told: bool) -> None:
    workload = replace(tower(), existing=existing(libraries=("deepspeed",)))
    screening = screen(workload, code_of(workload, today), runtime("jax"), "tpu", TPU, "tpu-v6e")
    assert screening.exclusion is not None
    assert screening.exclusion.rule == "R021"
    assert ("(last checked 2026-11-30, to be checked again since 2027-02-28)" in screening.exclusion.reason) is told


def test_a_rule_of_the_workload_alone_past_its_day_says_so_too() -> None:
    workload = replace(tower(), existing=existing(libraries=("optuna",)))
    fresh, stale = (overall(code_of(workload, today)) for today in ("2026-12-01", "2029-01-01"))
    assert [verdict.rule for verdict in fresh] == [verdict.rule for verdict in stale] == ["R130"]
    assert stale[0].reason == f"{fresh[0].reason} (last checked 2026-11-30, to be checked again since 2028-11-30)"
    assert (fresh[0].runtime, fresh[0].accelerator) == ("", "")
