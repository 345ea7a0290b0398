"""The page of one run."""

import json
import re

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.text import plain
from reports.charts.frame import PICKED
from services import runs
from tests.app.conftest import Keeper, Opener, as_markdown, words_of
from tests.samples.parts import HOSTILE_NAME
from tests.samples.runs import sample_failed, sample_hostile, sample_nothing_feasible, sample_run, sample_running

ACTIVE = re.compile(r"(?<!\\)<(script|img)|(?<!\\)\]\(javascript|(?<!\\)\$")
TABS = ("Candidates", "Step time", "Memory", "Roofline", "Reasons", "Excluded", "Not known", "Measurements", "Facts")


def _has_no_fault(page: AppTest) -> bool:
    return not page.exception and not page.error


def test_a_finished_run_shows_its_sentence_first(keep: Keeper, open_page: Opener) -> None:
    run = keep(sample_run())
    page = open_page("run", id=run.id)
    assert _has_no_fault(page)
    assert run.recommendation is not None
    assert page.header[0].value == plain(run.recommendation.sentence)


@pytest.mark.parametrize("tab", TABS)
def test_every_tab_of_a_finished_run_opens_from_its_link(keep: Keeper, open_page: Opener, tab: str) -> None:
    page = open_page("run", id=keep(sample_run()).id, show=tab)
    assert _has_no_fault(page)
    assert not page.warning


@pytest.mark.parametrize("tab", TABS)
def test_every_tab_opens_when_nothing_is_feasible(keep: Keeper, open_page: Opener, tab: str) -> None:
    page = open_page("run", id=keep(sample_nothing_feasible()).id, show=tab)
    assert _has_no_fault(page)


def test_reasons_name_rule_source_and_date(keep: Keeper, open_page: Opener) -> None:
    page = open_page("run", id=keep(sample_run()).id, show="Reasons")
    said = words_of(page)
    assert "fp32 matmuls run as several bf16 passes on a TPU" in said
    assert "(<https://docs.cloud.google.com/tpu/docs/bfloat16>), as of 2026\\-08\\-26" in said


def test_a_tab_that_does_not_exist_is_named(keep: Keeper, open_page: Opener) -> None:
    page = open_page("run", id=keep(sample_run()).id, show="Nonsense")
    assert "Nonsense" in page.warning[0].value


@pytest.mark.parametrize("run_id", ["", "nosuchrun", "../../etc/passwd", "<script>alert(1)</script>", "x" * 5000])
def test_a_bad_id_is_one_line_and_a_way_back(open_page: Opener, run_id: str) -> None:
    page = open_page("run", id=run_id)
    assert not page.exception
    assert len(page.error) == 1
    assert "\n" not in page.error[0].value


def test_a_hostile_name_is_shown_as_text(keep: Keeper, open_page: Opener) -> None:
    page = open_page("run", id=keep(sample_hostile()).id)
    assert _has_no_fault(page)
    assert page.title[0].value == plain(HOSTILE_NAME)
    assert not ACTIVE.search(as_markdown(page))


@pytest.mark.parametrize("tab", TABS)
def test_a_hostile_run_breaks_no_tab(keep: Keeper, open_page: Opener, tab: str) -> None:
    page = open_page("run", id=keep(sample_hostile()).id, show=tab)
    assert _has_no_fault(page)
    assert not ACTIVE.search(as_markdown(page))


def test_a_run_that_failed_says_why_and_what_is_kept(keep: Keeper, open_page: Opener) -> None:
    run = keep(sample_failed())
    page = open_page("run", id=run.id)
    assert not page.exception
    assert "signal 9" in page.error[0].value
    assert f"{len(run.outcomes)} probes" in page.error[0].value


def test_a_waiting_run_shows_progress_and_can_be_cancelled(keep: Keeper, open_page: Opener) -> None:
    run = keep(sample_running(), state="queued", outcomes=())
    page = open_page("run", id=run.id)
    assert not page.exception
    page.button(key="cancel").click().run()
    assert runs.watch(run.id).cancel_asked or runs.watch(run.id).over


def test_a_run_whose_process_is_gone_is_told_as_it_is(keep: Keeper, open_page: Opener) -> None:
    run = keep(sample_running())
    page = open_page("run", id=run.id)
    assert not page.exception
    assert runs.open_run(run.id).state in words_of(page).lower()


def test_a_note_is_kept_and_shown_as_text(keep: Keeper, open_page: Opener) -> None:
    run = keep(sample_run())
    page = open_page("run", id=run.id)
    page.text_area(key=f"note:{run.id}").set_value("# *seen* by $me$")
    next(button for button in page.button if button.label == "Save").click().run()
    assert runs.open_run(run.id).note == "# *seen* by $me$"
    assert "# *seen* by $me$" in [element.value for element in page.text]


def test_candidates_that_the_link_picks_are_ticked_in_the_table_and_outlined_in_the_chart(
    keep: Keeper, open_page: Opener
) -> None:
    run = keep(sample_run())
    assert run.recommendation is not None
    labels = [estimate.candidate.label for estimate in run.recommendation.ranked]
    page = open_page("run", id=run.id, show="Candidates", pick=labels[1:3])
    assert _has_no_fault(page)
    assert page.session_state["candidates"]["selection"]["rows"] == [1, 2]
    spec = json.loads(page.get("vega_lite_chart")[0].proto.spec)
    (picked,) = [one for one in spec["params"] if one["name"] == PICKED]
    assert picked["value"] == [{"candidate": label} for label in labels[1:3]]


def test_a_picked_candidate_that_does_not_exist_is_named_once(keep: Keeper, open_page: Opener) -> None:
    page = open_page("run", id=keep(sample_run()).id, show="Candidates", pick=["mxnet on the moon"])
    assert not page.exception
    assert [plain("mxnet on the moon") in warning.value for warning in page.warning] == [True]
