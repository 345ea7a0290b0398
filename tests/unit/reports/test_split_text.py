"""What people read of a split, and of what came of running it."""

from dataclasses import replace

import pytest

from core.device import Link, Pool
from core.quantity import Quantity, exact
from core.split import BreakEven, SplitOptions
from reports.split_command import command
from reports.split_run_text import (
    against_alone,
    check_rows,
    lane_totals,
    loss_text,
    measured_step,
    pace_rows,
    verified_sections,
    verified_sentence,
)
from reports.split_text import (
    break_even_rows,
    evidence_rows,
    headline,
    link_text,
    move_rows,
    objective_figure,
    other_rows,
    percent,
    reason_rows,
    rests_on,
    saving_text,
    sections,
    share_rows,
    side_label,
    single_rows,
    term_rows,
    time_title,
)
from tests.samples.splits import GPU, HOSTILE, SLOW, sample_hostile_split, sample_split, sample_verified

SPLIT = sample_split()


def test_a_split_that_is_worth_it_says_by_how_much() -> None:
    said = headline(SPLIT)
    assert (said.verdict, said.good, said.saving) == ("Together", True, "saves 36 % of time, costs 10 % more")
    assert said.sentence == SPLIT.sentence


def test_a_split_that_loses_says_by_how_much() -> None:
    said = headline(sample_split(SLOW))
    assert (said.verdict, said.good, said.saving) == ("One pool", False, "hybrid loses by 156 % of time")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"saving": 0.1}, "saves 10 % of time, costs 10 % more, under the 20 % that two stacks have to bring"),
        (
            {"saving": 0.004, "objective": "cost"},
            "saves 0.4 % of cost, takes 36 % less time, under the 20 % that two stacks have to bring",
        ),
        ({"saving": None}, "the saving of time is not known"),
        ({"saving": None, "best_single": None}, "no single pool to compare with"),
    ],
)
def test_a_saving_is_told_as_it_is(changes: dict[str, object], said: str) -> None:
    assert saving_text(replace(SPLIT, **changes)) == said  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("objective", "together", "alone", "said"),
    [
        ("time", 12.0, 10.0, "saves 36 % of time, costs 20 % more"),
        ("time", 8.0, 10.0, "saves 36 % of time, costs 20 % less"),
        ("time", 10.0, 10.0, "saves 36 % of time, costs the same"),
        ("energy", 12.0, 10.0, "saves 36 % of energy, costs 20 % more"),
        ("cost", 5.0, 10.0, "saves 36 % of cost, takes 36 % less time"),
        ("time", None, 10.0, "saves 36 % of time"),
        ("time", 12.0, None, "saves 36 % of time"),
    ],
)
def test_what_a_saving_costs_is_told_beside_it(objective: str, together: float | None, alone: float | None, said: str) -> None:
    usd = [None if value is None else exact(value, "datasheet") for value in (together, alone)]
    assert SPLIT.best_single is not None
    told = replace(SPLIT, objective=objective, cost_usd=usd[0], best_single=replace(SPLIT.best_single, cost_usd=usd[1]))
    assert saving_text(told) == said



@pytest.mark.parametrize(
    ("fraction", "said"), [(0.444, "44 %"), (0.0, "0 %"), (1.0, "100 %"), (0.004, "0.4 %"), (0.996, "99.6 %"), (1.56, "156 %")]
)
def test_a_percentage_never_rounds_to_nothing_or_to_all(fraction: float, said: str) -> None:
    assert percent(fraction) == said


def test_shares_are_told_in_whole_things() -> None:
    first, second = share_rows(SPLIT)
    assert (first.label, first.runtime, first.fraction, first.amount) == ("8 x h100-sxm", "jax", "44 %", "455 samples")
    assert (second.runtime, second.memory, second.busy, second.price) == ("any framework", "—", "4.45 s", "$43.20 an hour")


def test_moves_say_what_is_hidden() -> None:
    half = replace(SPLIT, moves=(replace(SPLIT.moves[0], exposed_s=0.16),))
    (row,) = move_rows(half)
    assert (row.size, row.seconds, row.exposed, row.hidden) == ("14.9 GiB", "640 ms", "160 ms", "75 %")
    assert row.way == "8 x h100-sxm ⇄ 16 x tpu-v6e"


def test_the_split_stands_first_and_what_is_recommended_is_ticked() -> None:
    assert [row.mark for row in single_rows(SPLIT)] == ["✔", "", ""]
    rows = single_rows(sample_split(SLOW))
    assert [(row.mark, row.label) for row in rows] == [
        ("", "together: 8 x h100-sxm + 16 x tpu-v6e"),
        ("", "jax on 8 x h100-sxm"),
        ("✔", "jax on 16 x tpu-v6e"),
    ]
    assert rows[2].cost.text == "$96.00"


def test_the_numbers_say_what_they_rest_on() -> None:
    assert rests_on(SPLIT) == "datasheet figures: from the maker's figures and typical efficiencies; wide bands"
    measured = replace(SPLIT.singles[0], seconds=Quantity(1, 1, 1, "measured"))
    assert rests_on(replace(SPLIT, singles=(measured, SPLIT.singles[1]))).startswith("measured to datasheet figures: from")
    assert rests_on(replace(SPLIT, singles=(), seconds=None)) == "nothing: no number is known"


def test_evidence_is_told_once_with_whose_it_is() -> None:
    shared = Quantity(1, 1, 1, "measured", ("link as given", "a probe"))
    both = replace(SPLIT, singles=(replace(SPLIT.singles[0], seconds=shared),))
    assert evidence_rows(both) == (
        ("the pools together", "pace of each pool"),
        ("the pools together", "link as given"),
        ("jax on 8 x h100-sxm", "a probe"),
    )


def test_break_evens_have_their_unit_and_unknown_ones_a_dash() -> None:
    assert break_even_rows(SPLIT) == (
        ("bandwidth", "200 Gbit/s", "36.0 Gbit/s", "Worth it from 36 Gbit/s on."),
        ("price", "—", "—", "No price turns the choice."),
    )


@pytest.mark.parametrize(
    ("unit", "value", "said"),
    [("B/s", 2.5e10, "200 Gbit/s"), ("USD/h", 87.8, "$87.80 an hour"), ("samples", 1024.0, "1,024 samples"), ("", 0.25, "0.25")],
)
def test_where_the_choice_turns_is_told_as_people_write_it(unit: str, value: float, said: str) -> None:
    (row,) = break_even_rows(replace(SPLIT, break_even=(BreakEven("price", unit, value, None, "x"),)))
    assert row[1] == said


@pytest.mark.parametrize(("objective", "said"), [("time", "8.00 s"), ("cost", "$96.00"), ("energy", "—")])
def test_a_pool_alone_is_told_by_what_is_saved(objective: str, said: str) -> None:
    assert objective_figure(SPLIT.singles[1], objective).text == said


def test_other_ways_have_a_name_and_a_phrase() -> None:
    assert other_rows(SPLIT) == (
        ("Copies that meet", "4.50 s", "copies meet every 50 steps"),
        ("Layers in a row", "—", "activations are too large for the link"),
    )


def test_only_an_https_source_becomes_a_link() -> None:
    assert reason_rows(SPLIT)[0].href == "https://openxla.org/xla"
    assert reason_rows(sample_hostile_split())[0].href == ""


def test_terms_add_up_to_the_step_and_those_of_no_time_are_left_out() -> None:
    assert term_rows(replace(SPLIT, terms=(*SPLIT.terms, ("update", 0.0)))) == term_rows(SPLIT)
    assert term_rows(SPLIT) == (("compute", "4.45 s", "87 %"), ("communication", "640 ms", "13 %"))


def test_a_link_is_told_in_bits() -> None:
    assert link_text(Link(1e-3, 1.25e9)) == "10.0 Gbit/s, 1.00 ms"
    assert link_text(None) == "—"


def test_a_device_of_this_machine_is_named_by_its_id() -> None:
    assert side_label("jax", Pool("cpu:0", 1, "cpu", attached=True)) == "jax on cpu:0"
    assert side_label("", GPU) == "8 x h100-sxm"


def test_seconds_of_stages_are_those_of_the_job() -> None:
    assert (time_title("stages"), time_title("data")) == ("Job time", "Step time")


def test_sections_hold_everything_and_leave_out_what_is_empty() -> None:
    titles = [section.title for section in sections(SPLIT)]
    assert titles == [
        SPLIT.sentence,
        "Who does what",
        "What moves",
        "Beside one pool alone",
        "Where the time goes",
        "Where the choice turns",
        "Other ways of dividing",
        "Rules",
        "What the numbers rest on",
        "Not known, or taken as usual",
    ]
    bare = replace(SPLIT, moves=(), others=(), verdicts=(), missing=())
    gone = {"What moves", "Other ways of dividing", "Rules", "Not known, or taken as usual"}
    assert gone.isdisjoint(section.title for section in sections(bare))
    assert all(len(row) == len(section.heads) for section in sections(SPLIT) for row in section.rows)


def test_the_same_command_can_be_pasted_into_a_shell() -> None:
    options = SplitOptions(("h100-sxm=8", "tpu-v6e=16@jax"), "data", 1.25e9, 0.03, 0.3, verify=True)
    assert command("my work.yaml", options, "cost") == (
        "./tandem split 'my work.yaml' --pool h100-sxm=8 --pool tpu-v6e=16@jax --link-gbps 10 --link-latency-ms 30 "
        "--mode data --least-saving 0.3 --objective cost --verify"
    )
    assert command("gpt2-small:train", SplitOptions(("a", "b"))) == "./tandem split gpt2-small:train --pool a --pool b"


def test_a_hostile_split_is_one_line_a_cell() -> None:
    for section in sections(sample_hostile_split()):
        assert all("\n" not in cell for row in section.rows for cell in row)
    assert headline(sample_hostile_split()).sentence == HOSTILE


def test_a_measured_step_is_the_median_with_the_middle_of_its_samples() -> None:
    step = measured_step(sample_verified())
    assert step is not None
    assert (step.low, step.mid, step.high) == pytest.approx((0.101, 0.103, 0.105))


def test_planned_measured_and_each_side_alone_are_told() -> None:
    rows = pace_rows(sample_verified())
    assert [(row.what, row.label, row.figure.text, row.off) for row in rows] == [
        ("planned", "planned", "100 ms", ""),
        ("measured", "measured, 20 steps", "103 ms", "+3.0 %"),
        ("alone", "jax on cpu:0 alone", "180 ms", ""),
        ("alone", "torch-eager on cpu:0 alone", "210 ms", ""),
    ]


def test_a_comparison_that_fails_is_crossed() -> None:
    assert [(row.mark, row.difference, row.tolerance) for row in check_rows(sample_verified())] == [
        ("✔", "2e-06", "0.0001"),
        ("✘", "0.003", "0.001"),
    ]


def test_what_came_of_a_run_is_told_in_a_sentence() -> None:
    found = sample_verified()
    assert verified_sentence(found) == (
        "A step took 103 ms, the median of 20, 3 % longer than the planned 100 ms. Together it saves 43 % against "
        "jax on cpu:0 alone. 1 of 2 comparisons hold."
    )
    assert verified_sentence(replace(found, ended="jax died")).endswith(" It ended early: jax died.")
    assert verified_sentence(replace(found, step_s=(), checks=(), ended="jax died")) == (
        "No step was timed. It ended early: jax died."
    )
    assert verified_sentence(replace(found, step_s=(0.1,), checks=(), single_s=())) == (
        "The one step that was timed took 100 ms, as planned."
    )


@pytest.mark.parametrize(
    ("alone", "said"),
    [((0.206, 0.3), ("jax on cpu:0", 0.5)), ((0.2, 0.0515), ("torch-eager on cpu:0", -1.0)), ((None, None), None), ((), None)],
)
def test_what_was_measured_together_is_held_against_the_quicker_side(
    alone: tuple[float | None, ...], said: tuple[str, float] | None
) -> None:
    found = against_alone(replace(sample_verified(), single_s=alone))
    assert found == (None if said is None else (said[0], pytest.approx(said[1])))


def test_losses_say_whether_they_fall() -> None:
    assert loss_text(sample_verified()) == "from 4 to 2.1 over 20 steps, falls"
    assert loss_text(replace(sample_verified(), losses=(1.0, 1.0))) == "from 1 to 1 over 2 steps, does not fall"
    assert loss_text(replace(sample_verified(), losses=())) == ""


def test_a_run_that_measured_nothing_still_reads() -> None:
    found = replace(sample_verified("killed"), planned_s=None, step_s=(), single_s=(None, None), checks=(), losses=(), link=None)
    said = verified_sections(found)
    assert said[0].title == "No step was timed. It ended early: killed."
    assert [row[1] for row in said[1].rows] == ["—", "—", "—", "—"]


def test_totals_of_lanes_add_bars_of_a_kind() -> None:
    assert lane_totals(sample_verified().timeline)["link"] == "moves 14.0 ms"
