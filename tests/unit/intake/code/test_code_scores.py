"""Scores, work and facts: what follows from findings, and that each can be recomputed."""

import math
from pathlib import Path

import pytest

from bench.scan import Label, Tally, compare, digest, read_labels
from core.finding import SEVERITIES, TARGETS, Finding, Scan
from docs.code_scan import code_scan_page
from docs.generate import FOLDER
from intake.code import SourceFile, expand, facts, scan_tree, score, scores
from intake.code.match.libraries import _DISTRIBUTIONS, _PACKAGES
from intake.code.rules import all_rules, rule_of, topics


def many(rule: str, count: int, **changes: object) -> Scan:
    lines = range(1, count + 1)
    return Scan(tuple(Finding(rule, "a.py", line, 0, "", topics()[rule], **changes) for line in lines))


def test_code_without_findings_scores_a_hundred_everywhere_and_needs_no_work() -> None:
    told = scores(Scan(()))
    figures = [(one.target, one.score, one.work_low_h, one.work_high_h) for one in told]
    assert figures == [(target, 100, 0.0, 0.0) for target in TARGETS]


def test_a_score_is_what_its_formula_gives() -> None:
    assert score(many("library-dali", 1), "jax-tpu").score == math.floor(100 / 2 ** (25 / 50))
    assert score(many("cuda-call", 4), "jax-tpu").score == math.floor(100 / 2 ** (6 * 3 / 50))
    assert score(many("cuda-call", 4), "gpu-nvidia").score == 100


def test_work_is_what_its_formula_gives() -> None:
    told = score(many("cuda-call", 10), "torch-tpu")
    assert told.work_low_h == round(0.25 + 0.02 * (10**0.8 - 1), 1)
    assert told.work_high_h == round(0.5 + 0.08 * (10**0.8 - 1), 1)


@pytest.mark.parametrize("target", TARGETS)
def test_more_findings_never_raise_a_score_and_cost_less_each(target: str) -> None:
    for rule in (one.id for one in all_rules()):
        told = [score(many(rule, count), target) for count in (1, 2, 4, 8, 16)]
        assert sorted((one.score for one in told), reverse=True) == [one.score for one in told]
        work = [one.work_high_h for one in told]
        assert sorted(work) == work
        assert work[4] <= 16 * work[0] + 0.1


def test_a_guard_and_a_read_outside_the_step_are_milder() -> None:
    assert [one.severity for one in expand(many("cuda-source", 1).findings, "jax-tpu")] == ["blocks"]
    assert [one.severity for one in expand(many("cuda-call", 1, guarded=True).findings, "jax-tpu")] == ["check"]
    assert [one.severity for one in expand(many("host-item", 1, where="step").findings, "torch-tpu")] == ["work"]
    assert [one.severity for one in expand(many("host-item", 1, where="once").findings, "torch-tpu")] == ["check"]


def test_findings_of_a_target_come_worst_first_with_meaning_remedy_and_source() -> None:
    scan = Scan((*many("cuda-call", 1).findings, *many("library-dali", 1).findings))
    told = expand(scan.findings, "jax-tpu")
    assert [one.severity for one in told] == ["blocks", "work"]
    assert all(one.meaning and one.remedy and one.source and one.as_of for one in told)


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(ValueError, match="jax-tpu"):
        score(Scan(()), "abacus")


def test_facts_name_their_lines() -> None:
    files = [
        SourceFile("train.py", "import torch\nimport flash_attn\nfor x in loader:\n    loss = f(x)\n    loss.backward()\n"
                               "    total += loss.item()\n    y = x.nonzero()\n"),
        SourceFile("k.cu", "__global__ void k() {}\n"),
        SourceFile("requirements.txt", "torch==2.4.0\nnumpy>=1.26\n"),
    ]
    told = facts(scan_tree(files))
    assert told.framework is not None
    assert (told.framework.value, str(told.framework.places[0])) == ("torch", "train.py:1")
    assert [(one.value, str(one.places[0])) for one in told.libraries] == [("flash-attn", "train.py:2")]
    assert [(one.value, str(one.places[0])) for one in told.custom_kernels] == [("cuda", "k.cu:1")]
    assert [(one.value, str(one.places[0])) for one in told.ops] == [("nonzero", "train.py:7")]
    assert [one.value for one in told.versions] == ["torch==2.4.0"]
    assert (told.host_reads_per_step, [str(one) for one in told.host_reads]) == (1, ["train.py:6"])


@pytest.mark.parametrize(("text", "framework"), [
    ("import torch\nimport torch_xla.core.xla_model as xm", "torch-xla"), ("import tensorflow as tf\nimport keras", "keras"),
    ("import tensorflow as tf", "tensorflow"), ("from mxnet import gluon", "mxnet"), ("import flax.linen as nn", "jax"),
    ("import numpy", None),
])
def test_the_framework_is_the_one_that_is_imported(text: str, framework: str | None) -> None:
    told = facts(scan_tree([SourceFile("a.py", text)])).framework
    assert (told.value if told else None) == framework


def test_a_library_that_the_code_does_without_is_no_fact() -> None:
    text = "try:\n    import flash_attn\nexcept ImportError:\n    pass\n"
    scan = scan_tree([SourceFile("a.py", text)])
    assert [one.rule for one in scan.findings] == ["library-flash-attn"]
    assert facts(scan).libraries == ()


def test_nothing_is_said_of_host_reads_without_a_training_step() -> None:
    assert facts(scan_tree([SourceFile("a.py", "import torch\nx.item()")])).host_reads_per_step is None


def test_every_rule_says_what_it_means_somewhere_and_has_sane_hours() -> None:
    for rule in all_rules():
        assert any(one.severity != "none" for one in rule.effects), rule.id
        assert all(one.severity in SEVERITIES for one in rule.effects)
        assert 0 < rule.first_h[0] <= rule.first_h[1]
        assert 0 < rule.each_h[0] <= rule.each_h[1] <= rule.first_h[1]
        assert rule.source
        assert all(one.remedy for one in rule.effects if one.severity in ("work", "blocks"))


def test_every_library_that_is_known_has_its_rule() -> None:
    named = {f"library-{name}" for name in (*_PACKAGES.values(), *_DISTRIBUTIONS.values()) if not name.startswith("=")}
    assert all(rule_of(name).topic == "libraries" for name in named)


def test_labels_are_enough_name_rules_that_exist_and_hold_no_code() -> None:
    labels = read_labels()
    assert len(labels) >= 300
    assert {rule for one in labels for rule in one.rules} <= set(topics())
    assert all(len(one.digest) == 12 and int(one.digest, 16) >= 0 for one in labels)
    assert len({(one.repository, one.path, one.line) for one in labels}) == len(labels)


def test_a_comparison_counts_right_wrong_and_missed(tmp_path: Path) -> None:
    folder = tmp_path / "a__b"
    folder.mkdir()
    lines = ["import torch", "x.cuda()", "y.item()", "z = 1"]
    (folder / "a.py").write_text("\n".join(lines), encoding="utf-8")
    told = {2: {"cuda-call"}, 3: set(), 4: {"nonzero"}, 9: {"sort"}}
    texts = {at: lines[at - 1] if at < 5 else "" for at in told}
    labels = [Label("p", "a/b", "a.py", at, digest(texts[at]), frozenset(rules)) for at, rules in told.items()]
    outcome = compare(tmp_path, labels)
    assert outcome.parts["p"] == Tally(lines=3, right=1, wrong=1, missed=1)
    assert outcome.stale == 1


def test_the_page_of_the_rules_is_up_to_date() -> None:
    assert (FOLDER / "code-scan.md").read_text(encoding="utf-8") == code_scan_page(), "run: .venv/bin/python -m docs.generate"
