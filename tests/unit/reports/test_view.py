"""Runs as rows of text: nothing lost, nothing invented, in every state of a run."""

from dataclasses import replace

import pytest

from catalog import accelerators
from core import format as write
from core.advice import Estimate, Exclusion, Flip, Plan
from core.probe import Measurement, ProbeFailure
from core.quantity import Quantity, exact, log_normal
from core.run import Actual, Run
from core.statistics import iqr
from reports import facts, standing, view
from reports.document import sections
from reports.gather import concerns, gathered_phrases
from tests.samples.runs import sample_failed, sample_nothing_feasible, sample_run, sample_running, step_time


def _unmeasured(run: Run, count: int) -> Run:
    """The run with that many open probes of a device of which nothing tells anything, beside a gap that has its seconds."""
    told = run.recommendation
    assert told is not None
    first = next(gap for gap in told.gaps if gap.probe is not None)
    assert first.probe is not None
    probe = replace(first.probe, device="cpu:9")
    open_ones = tuple(replace(first, what=f"layer {i}", seconds=None, probe=probe) for i in range(count))
    return replace(run, recommendation=replace(told, gaps=(first, *open_ones)))


@pytest.fixture(scope="module")
def run() -> Run:
    return sample_run()


def test_every_candidate_has_one_row_and_the_unranked_ones_come_last(run: Run) -> None:
    advice = run.recommendation
    assert advice is not None
    rows = view.candidate_rows(run)
    assert [row.label for row in rows] == [e.candidate.label for e in advice.ranked + advice.unranked]
    assert [row.rank for row in rows] == [*range(1, len(advice.ranked) + 1), *([None] * len(advice.unranked))]


def test_the_chosen_candidate_is_marked_once_and_its_equals_with_another_sign(run: Run) -> None:
    marks = [row.mark for row in view.candidate_rows(run)]
    assert marks[0] == "✔"
    assert marks.count("✔") == 1
    assert marks.count("≈") == 2


def test_numbers_are_written_by_the_one_formatter(run: Run) -> None:
    row = view.candidate_rows(run)[0]
    assert row.step_time.full == write.band(step_time(run))
    assert row.step_time.text == write.seconds(step_time(run).mid)


def test_what_is_unknown_is_a_dash_and_never_a_number(run: Run) -> None:
    row = view.candidate_rows(run)[-1]
    assert row.label == "keras-torch on cpu:0"
    assert (row.step_time.text, row.throughput.text, row.cost.text, row.tier) == ("—", "—", "—", "")
    assert row.missing == ("step time: embedding and head was not measured in keras-torch",)


def test_an_exact_number_has_no_band() -> None:
    assert view.figure(exact(2.0, "measured")).full == "2.00 s"
    assert view.figure(log_normal(2.0, 0.1, "measured")).full == "2.00 s (1.76 s to 2.27 s)"


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (Plan(), "one chip"),
        (Plan(data=16), "data 16"),
        (Plan(fsdp=4, tensor=2, micro_batch=8, remat=True), "fsdp 4 x tensor 2, micro-batch 8, remat"),
        (Plan(pipeline=2, expert=4, context=8), "pipeline 2 x expert 4 x context 8"),
    ],
)
def test_a_plan_is_said_in_words(plan: Plan, text: str) -> None:
    assert view.plan_text(plan) == text


def test_the_sides_are_this_machine_a_gpu_pool_and_a_tpu_pool(run: Run) -> None:
    sides = view.side_by_side(run)
    assert [(side.title, side.row.label if side.row else "") for side in sides] == [
        ("This machine", "torch-compile on cpu:0"),
        ("GPU pool", "jax on 8 x h100-sxm"),
        ("TPU pool", "jax on 16 x tpu-v6e"),
    ]


def test_a_side_without_a_candidate_says_so() -> None:
    for side in view.side_by_side(sample_nothing_feasible()):
        assert side.row is None
        assert side.note


def test_how_sure_names_the_probability_the_regret_and_the_equals(run: Run) -> None:
    said = view.headline(run).sure
    assert said.startswith("41 % likely to be the best of 13; choosing it is expected to cost 9 %")
    assert "keras-jax on 16 x tpu-v6e" in said


def test_without_a_confidence_it_says_that_it_does_not_know(run: Run) -> None:
    assert run.recommendation is not None
    assert standing.sure_text(replace(run.recommendation, confidence=None)) == "How sure this is, is not known."
    assert standing.sure_text(replace(run.recommendation, best=None)) == ""


@pytest.mark.parametrize("unfinished", [sample_running(), sample_failed()], ids=["running", "failed"])
def test_a_run_without_advice_says_its_state_and_keeps_its_measurements(unfinished: Run) -> None:
    said = view.headline(unfinished)
    assert unfinished.state in said.sentence
    assert said.best is None
    assert view.candidate_rows(unfinished) == ()
    assert facts.reason_rows(unfinished) == facts.excluded_rows(unfinished) == facts.gap_rows(unfinished) == ()
    assert facts.flip_rows(unfinished) == ()
    answered = [o for o in unfinished.outcomes if isinstance(o, Measurement)]
    assert len(facts.measurement_rows(unfinished)) == len(answered) > 0


def test_a_title_never_carries_control_characters_or_direction_overrides(run: Run) -> None:
    sly = replace(run, workload=replace(run.workload, name="pay\u202eload\x00\nnext"))
    assert view.headline(sly).title == "pay load next"


def test_shares_are_ordered_and_add_up_to_the_whole(run: Run) -> None:
    assert run.recommendation is not None
    for estimate in run.recommendation.ranked:
        rows = view.share_rows(estimate)
        mids = [row.time.quantity.mid for row in rows if row.time.quantity]
        assert mids == sorted(mids, reverse=True)
        assert len(rows) == len(estimate.breakdown)
        assert sum(int(row.share.split()[0]) for row in rows) == pytest.approx(100, abs=2)


def test_what_is_not_known_of_a_device_that_was_not_measured_is_one_row(run: Run) -> None:
    rows = facts.gap_rows(_unmeasured(run, facts.GAPS_APART + 1))
    (told,) = [row for row in rows if "cpu:9" in row.what]
    assert told.remedy == "not measured: advise with --probe quick, or settle"
    assert not [row for row in rows if row.what.startswith("layer ")]
    few = facts.gap_rows(_unmeasured(run, facts.GAPS_APART))
    assert len([row for row in few if row.what.startswith("layer ")]) == facts.GAPS_APART


def test_a_shortlist_keeps_places_for_this_machine(run: Run) -> None:
    assert run.recommendation is not None
    ranked = run.recommendation.ranked
    short = view.shortlist(ranked, 6)
    assert len(short) == 6
    assert sum(e.candidate.pools[0].attached for e in short) == 4
    assert [ranked.index(e) for e in short] == sorted(ranked.index(e) for e in short)
    assert short[0] == ranked[0]


def test_a_shortlist_keeps_no_place_for_what_was_not_measured(run: Run) -> None:
    assert run.recommendation is not None
    here = [e for e in run.recommendation.ranked if e.candidate.pools[0].attached]
    elsewhere = [e for e in run.recommendation.ranked if e not in here]
    unknown = [replace(e, step_time_s=None) for e in here]
    assert view.shortlist((*elsewhere, *unknown), len(elsewhere)) == tuple(elsewhere)


def test_a_shortlist_names_other_pools_before_a_pool_s_further_runtimes(run: Run) -> None:
    assert run.recommendation is not None
    one, other = (next(e for e in run.recommendation.ranked if e.candidate.pools[0].kind == kind) for kind in ("gpu", "tpu"))
    many = (*(replace(one, candidate=replace(one.candidate, runtime=f"r{i}")) for i in range(9)), other)
    assert view.shortlist(many, 8) == (*many[:7], other)
    assert view.shortlist(many[:9], 8) == many[:8]


def test_a_shortlist_with_room_for_all_keeps_all(run: Run) -> None:
    assert run.recommendation is not None
    assert view.shortlist(run.recommendation.ranked, 50) == run.recommendation.ranked


def test_each_measurement_shows_the_statistics_of_its_raw_samples(run: Run) -> None:
    measured = [o for o in run.outcomes if isinstance(o, Measurement)]
    for outcome, row in zip(measured, facts.measurement_rows(run), strict=True):
        assert row.median == write.seconds(outcome.median_s)
        assert row.iqr == write.seconds(iqr(outcome.samples_s))
        assert (row.n, row.method, row.runtime) == (len(outcome.samples_s), outcome.method, outcome.probe.runtime)


def test_each_failed_probe_has_its_stage_and_reason(run: Run) -> None:
    failed = [o for o in run.outcomes if isinstance(o, ProbeFailure)]
    rows = facts.failure_rows(run)
    assert [(row.stage, row.error, row.exit_code) for row in rows] == [(o.stage, o.error, str(o.exit_code)) for o in failed]
    assert len(rows) == 1


@pytest.mark.parametrize(
    ("source", "link"),
    [
        ("https://example.org/a?b=c#d", "https://example.org/a?b=c#d"),
        ("http://example.org/", ""),
        ("javascript:alert(1)", ""),
        ('https://example.com/"><img src=x>', ""),
        ("https://example.com/ and more", ""),
        ("https://exämple.org/", ""),
        ("measured here", ""),
        ("", ""),
    ],
)
def test_only_a_plain_https_address_becomes_a_link(source: str, link: str) -> None:
    assert facts.https_only(source) == link


def test_reasons_come_with_penalties_first_and_leave_exclusions_to_their_own_list(run: Run) -> None:
    assert [row.effect for row in facts.reason_rows(run)] == ["penalise", "warn", "warn", "suggest"]
    assert facts.reason_rows(run)[0].applies_to == "every runtime on tpu-v6e"
    assert len(facts.excluded_rows(run)) == 4


def test_what_single_candidates_lack_is_gathered_under_one_phrase(run: Run) -> None:
    rows = {row.what: row for row in facts.gap_rows(run)}
    assert rows["step time of keras-torch on cpu:0"].cost == "14.0 s"
    assert rows["price of this machine"].remedy.endswith("and 3 more")


def test_an_actual_is_held_against_the_band_that_was_said(run: Run) -> None:
    row = facts.actual_rows(run)[0]
    assert (row.label, row.error, row.inside_band) == ("torch-compile on cpu:0", "+2.7 %", "yes")
    stray = replace(run, actuals=(Actual(run.id, "mxnet", "cpu:0", 1.0, "2026-05-05T08:00:00Z"),))
    assert facts.actual_rows(stray)[0].error == "—"


def test_the_command_is_safe_to_paste_into_a_shell(run: Run) -> None:
    # pools that nobody asked for are not said: `--pools all` puts aside those that the file names
    assert facts.command(run) == "./tandem advise workload.json --objective time --probe quick --budget-s 110"
    asked = replace(run, options=replace(run.options, pools="h100-sxm=8,v5p-8"))
    assert "--pools h100-sxm=8,v5p-8 --probe" in facts.command(asked)
    sly = replace(run, options=replace(run.options, pools="a=1; rm -rf $HOME"))
    assert "'a=1; rm -rf $HOME'" in facts.command(sly)


def test_a_document_that_is_not_json_is_shown_as_it_is(run: Run) -> None:
    assert facts.document_text(replace(run, document="{broken")) == "{broken"
    assert '"preset": "gpt2-small"' in facts.document_text(run)


def test_parameters_and_flops_of_the_workload_are_told(run: Run) -> None:
    told = dict(facts.workload_facts(run))
    assert told["parameters"] == "124,439,808"
    assert told["FLOPs in a step"] == write.count(run.workload.flop_per_step, "FLOP")


def test_an_estimate_without_a_breakdown_has_no_shares() -> None:
    bare = Estimate(sample_best(), Quantity(1, 2, 3, "measured"), None, None, None, None, None)
    assert view.share_rows(bare) == ()
    assert view.memory_rows(bare) == ()


def sample_best():
    advice = sample_run().recommendation
    assert advice is not None
    assert advice.best is not None
    return advice.best.candidate


def test_equal_reasons_on_many_accelerators_are_one_row_that_names_them_all() -> None:
    advice = sample_run().recommendation
    assert advice is not None
    said = [
        Exclusion(
            "mxnet", key, "R4", "op_not_lowered", f"MXNet has no backend for {accelerators()[key].name}", "https://example.org/"
        )
        for key in ("t4", "tpu-v4")
    ]
    said += [Exclusion(name, "mi300x", "R9", "eol", "not for this one", "") for name in ("jax", "tf-xla")]
    rows = facts.excluded_rows(replace(sample_run(), recommendation=replace(advice, excluded=tuple(said))))
    assert [row.applies_to for row in rows] == ["mxnet on t4, tpu-v4", "jax, tf-xla on mi300x"]
    assert rows[0].reason == f"MXNet has no backend for {accelerators()['t4'].name}; likewise on the others"
    assert rows[0].href == "https://example.org/"
    assert rows[1].reason == "not for this one"


def test_whom_something_concerns_is_said_without_losing_anyone() -> None:
    pairs = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c", "z"), ("", ""), ("a", "x")]
    assert concerns(pairs) == "a, b on x, y; c on z; every runtime on every accelerator"


def test_what_is_missing_in_the_same_way_everywhere_is_one_row() -> None:
    phrases = [
        (f"compile time of {name} on t4: not measured", f"{name} on t4", f"{name} on 8 x t4") for name in ("jax", "tf-xla")
    ]
    phrases.append(("link rate of t4", "jax on t4", "jax on 8 x t4"))
    assert gathered_phrases(phrases) == {
        "compile time of the candidates named: not measured": ["jax on 8 x t4", "tf-xla on 8 x t4"],
        "link rate of t4": ["jax on 8 x t4"],
    }


def test_a_table_of_hundreds_is_cut_and_says_so_with_ranks_kept() -> None:
    run = sample_run()
    rows = view.shortlisted_rows(run, 6)
    assert [row.rank for row in rows] == [1, 3, 7, 8, 9, 10]  # the best of each pool before a pool's second
    assert {row.where for row in rows} == {row.where for row in view.candidate_rows(run) if row.rank}
    assert view.shortlisted_rows(sample_running(), 6) == ()
    advice = run.recommendation
    assert advice is not None
    first = advice.ranked[0]
    crowd = tuple(replace(first, candidate=replace(first.candidate, plan=Plan(data=n + 1))) for n in range(80))
    many = replace(run, recommendation=replace(advice, ranked=crowd, best=crowd[0], unranked=()))
    candidates = next(part for part in sections(many) if part.id == "candidates")
    assert len(candidates.tables[0].rows) == 60
    assert "60 of 80 candidates; the JSON and CSV reports hold them all." in candidates.lines


def test_flips_of_time_are_written_as_times() -> None:
    advice = sample_run().recommendation
    assert advice is not None
    flips = (Flip("step time of jax", 0.00182, 0.0021, "s", "tf-xla on t4"), Flip("price", 2.5, 2000000.0, "USD per hour", "x"))
    rows = facts.flip_rows(replace(sample_run(), recommendation=replace(advice, flips=flips)))
    assert rows == (
        ("step time of jax", "1.82 ms", "2.10 ms", "tf-xla on t4"),
        ("price", "2.50 USD per hour", "2.00 M USD per hour", "x"),
    )
