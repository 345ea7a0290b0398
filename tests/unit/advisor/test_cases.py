"""Public cases: advice tells what decides each, chooses what is acceptable, and stays silent about their neighbours.

Known faults stand in `known_wrong.yaml` with their reasons: one of them that turns right fails, as does a new wrong one.
"""

import re

import pytest

import catalog
from advisor.rules import FLAGS
from bench.cases import (
    CASES,
    FURTHER,
    NOTHING,
    SILENCES,
    Expected,
    Judged,
    Word,
    choice_of,
    expectations,
    faults_of,
    judge,
    known_wrong,
    silences,
    told_by,
    verdict,
    word_of,
)
from core.advice import Candidate, Estimate, Exclusion, Plan, Recommendation, Verdict
from core.device import Pool

TODAY = "2026-12-01"
WANTED = expectations()
MORE = expectations(FURTHER)
SILENT = silences()
PLACES = dict.fromkeys(WANTED, CASES) | dict.fromkeys(MORE, FURTHER) | dict.fromkeys(SILENT, SILENCES)
KNOWN = known_wrong()
_HEAD = re.compile(r"# case: [A-Za-z0-9-]+\n# source: https://\S+\n(# .+\n)+schema: 1\n")


@pytest.mark.parametrize("name", sorted(PLACES))
def test_a_case_is_right_and_a_neighbour_silent_or_known_not_to_be(name):
    expected = (WANTED | MORE | SILENT)[name]
    judged = judge(PLACES[name] / f"{name}.yaml", expected, TODAY)
    if name in KNOWN:
        assert not judged.right, f"{name} is right now: take it out of known_wrong.yaml"
    else:
        assert judged.faults == ()


def test_every_file_is_expected_and_every_expectation_has_its_file():
    helpers = {"expected", "known_wrong", "not_asked"}
    for folder, names in ((CASES, WANTED), (FURTHER, MORE), (SILENCES, SILENT)):
        assert {path.stem for path in folder.glob("*.yaml")} - helpers == set(names)
    assert len(PLACES) == len(WANTED) + len(MORE) + len(SILENT)
    assert set(KNOWN) <= set(PLACES)


@pytest.mark.parametrize("name", sorted(WANTED | MORE))
def test_a_case_names_itself_and_its_thread(name):
    text = (PLACES[name] / f"{name}.yaml").read_text(encoding="utf-8")
    assert _HEAD.match(text)
    assert name.startswith(text.partition("\n")[0].removeprefix("# case: "))


def test_expectations_use_words_chips_and_runtimes_that_there_are():
    chips, runtimes = set(catalog.accelerators()), set(catalog.runtime_specs())
    words = [word for one in (WANTED | MORE | SILENT).values() for group in (*one.flags, one.silent) for word in group]
    assert {word.flag for word in words} <= FLAGS
    assert {word.accelerator for word in words} <= chips | {""}
    assert {word.runtime for word in words} <= runtimes | {""}
    named = [name.partition("=")[0] for one in (WANTED | MORE).values() for name in (*one.best, *one.runtimes, *one.never)]
    assert set(named) <= chips | runtimes | {NOTHING}


def answer(*verdicts: Verdict, excluded: tuple[Exclusion, ...] = (), best: Estimate | None = None) -> Recommendation:
    return Recommendation("time", best, (), (), excluded, verdicts, (), (), None, (), "", "", "")


def told(flag: str, effect: str = "warn", runtime: str = "", accelerator: str = "") -> Verdict:
    return Verdict("R030", flag, effect, "so it is", "a page", TODAY, runtime, accelerator)


def choice(accelerator: str, count: int = 1, runtime: str = "jax") -> Estimate:
    candidate = Candidate(runtime, (Pool(accelerator, count, "tpu", None, "somewhere"),), Plan())
    return Estimate(candidate, None, None, None, None, None, None)


@pytest.mark.parametrize(("text", "word"), [
    ("recompile", Word("recompile")),
    ("recompile on tpu-v3", Word("recompile", "tpu-v3")),
    ("eol in torch-xla", Word("eol", "", "torch-xla")),
    ("eol on tpu-v2 in tf-graph", Word("eol", "tpu-v2", "tf-graph")),
])  # fmt: skip
def test_a_word_is_read_with_its_place(text, word):
    assert word_of(text) == word
    assert str(word) == text


def test_a_word_that_is_written_otherwise_is_refused():
    with pytest.raises(ValueError, match="expected FLAG"):
        word_of("recompile at tpu-v3")


@pytest.mark.parametrize(("said", "asked", "covers"), [
    (Word("eol"), "eol on tpu-v2", True),
    (Word("eol", "tpu-v2"), "eol", True),
    (Word("eol", "tpu-v3"), "eol on tpu-v2", False),
    (Word("eol", "", "jax"), "eol on tpu-v2 in torch-xla", False),
    (Word("recompile"), "eol", False),
])  # fmt: skip
def test_what_is_told_of_all_covers_each_and_what_is_told_elsewhere_does_not(said, asked, covers):
    assert said.covers(word_of(asked)) is covers


def test_words_come_from_verdicts_and_from_what_is_excluded():
    out = (Exclusion("jax", "tpu-v2", "memory", "per_chip_memory", "too much", "counted"),)
    assert told_by(answer(told("recompile"), excluded=out)) == (
        Word("recompile", "", "", "warn"), Word("per_chip_memory", "tpu-v2", "jax", "exclude"),
    )


def test_a_missing_word_a_wrong_choice_and_a_word_too_many_are_faults():
    expected = Expected(
        flags=((Word("recompile"), Word("dynamic_shape")), (Word("host_sync"),)), best=("l4", "t4=2"), runtimes=("torch-eager",),
        silent=(Word("eol", "", "jax"),),
    )
    given = answer(told("dynamic_shape"), told("eol", runtime="jax"), best=choice("t4"))
    assert faults_of(expected, given) == (
        "not told: host_sync", "told: eol in jax", "chosen: t4=1, not l4 or t4=2", "chosen: jax, not torch-eager",
    )


def test_a_choice_of_the_right_count_is_acceptable_and_what_must_never_be_chosen_is_not():
    assert faults_of(Expected(best=("t4=2",)), answer(best=choice("t4", 2))) == ()
    assert faults_of(Expected(never=("jax",)), answer(best=choice("t4", 2))) == ("chosen: jax",)
    assert choice_of(answer()) == (NOTHING, 0, "")
    assert faults_of(Expected(never=(NOTHING,)), answer()) == ("chosen: none",)


def test_against_a_clear_candidate_only_suggestions_may_be_told():
    expected = Expected(clear=(("tpu-v6e", "jax"),))
    given = (told("tile_padding", "suggest"), told("eol", "warn", "torch-xla"), told("recompile", "penalise", "", "tpu-v6e"))
    assert faults_of(expected, answer(*given)) == ("told against jax on tpu-v6e: recompile",)


def test_a_file_that_is_refused_is_a_fault_with_its_line(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("schema: 2\nmodel: {preset: mlp}\n", encoding="utf-8")
    judged = judge(path, Expected(), TODAY)
    assert (judged.right, judged.best) == (False, NOTHING)
    assert judged.faults[0].startswith("refused: got schema: 2")


def test_the_verdict_holds_from_95_per_cent_on():
    right, wrong = Judged("a", 1, 1, "none", (), 0.0), Judged("b", 1, 0, "none", ("not told: eol",), 0.0)
    held, said = verdict([right] * 19 + [wrong], [wrong], [right])
    assert held
    assert said == (
        "holds: 19 of 20 cases right (95.0 %), 19 of 20 words told, 0 of 1 further ones right (0.0 %), "
        "1 of 1 neighbours silent (100.0 %), 0 of 0 that lacked memory said not to fit (none asked)"
    )
    fits = Judged("c", 1, 0, "none", (), 0.0, (1, 0))
    full = Judged("d", 1, 1, "none", (), 0.0, (1, 1))
    assert verdict([right] * 20, [full] * 9 + [fits], [right])[0]
    assert not verdict([right] * 20, [full] * 8 + [fits], [right])[0]
    assert not verdict([right] * 18 + [wrong] * 2, [right], [right])[0]
    assert not verdict([right] * 19, [], [right] * 9 + [wrong])[0]
    assert not verdict([], [], [])[0]
