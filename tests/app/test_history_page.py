"""The history: what it finds, what it says when there is nothing, and what can be done from it."""

import pytest

from pages.parts.text import plain
from services import runs
from tests.app.conftest import Keeper, Opener, as_markdown, words_of
from tests.samples.parts import HOSTILE_NAME
from tests.samples.runs import sample_failed, sample_hostile, sample_run


def test_an_empty_history_teaches_how_to_fill_it(open_page: Opener) -> None:
    page = open_page("history")
    assert not page.exception
    assert "Nothing here yet" in page.info[0].value
    assert "./tandem advise" in page.code[0].value


def test_each_run_is_a_line_with_its_state_and_its_best(keep: Keeper, open_page: Opener) -> None:
    keep(sample_run(), id="aaaaaaaaaaaa")
    keep(sample_failed(), id="bbbbbbbbbbbb")
    said = words_of(open_page("history"))
    assert "Done" in said
    assert "Failed" in said
    assert plain("jax on 16 x tpu-v6e") in said
    assert "2 runs" in said


def test_filters_of_the_link_narrow_the_list(keep: Keeper, open_page: Opener) -> None:
    keep(sample_run(), id="aaaaaaaaaaaa")
    keep(sample_failed(), id="bbbbbbbbbbbb")
    page = open_page("history", state="failed")
    assert "1 run" in words_of(page)
    assert page.selectbox(key="state").value == "failed"


def test_a_search_that_finds_nothing_offers_to_clear_it(keep: Keeper, open_page: Opener) -> None:
    keep(sample_run())
    page = open_page("history", search="no such run")
    assert "No run matches" in page.info[0].value
    next(button for button in page.button if button.label == "Clear the filters").click().run()
    assert "1 run" in words_of(page)


@pytest.mark.parametrize(("name", "value"), [("state", "sleeping"), ("task", "dance"), ("page", "minus one"), ("page", "0")])
def test_a_value_of_the_link_that_does_not_exist_is_named(keep: Keeper, open_page: Opener, name: str, value: str) -> None:
    keep(sample_run())
    page = open_page("history", **{name: value})
    assert not page.exception
    assert plain(value) in page.warning[0].value
    assert "1 run" in words_of(page)


def test_the_second_page_shows_the_rest(keep: Keeper, open_page: Opener) -> None:
    for number in range(17):
        keep(sample_failed(), id=f"{number:012d}", outcomes=())
    page = open_page("history", page="2")
    assert not page.exception
    assert words_of(page).count("Failed") == 2


def test_hostile_names_and_notes_are_shown_as_text(keep: Keeper, open_page: Opener) -> None:
    keep(sample_hostile())
    page = open_page("history")
    assert not page.exception
    assert plain(HOSTILE_NAME, 60) in page.get("page_link")[0].proto.label
    assert "\\<script" in as_markdown(page)
    assert "| a |" not in as_markdown(page)


def test_deleting_asks_before_anything_goes(keep: Keeper, open_page: Opener) -> None:
    run = keep(sample_run())
    page = open_page("run", id=run.id)
    next(button for button in page.button if button.label == "Delete").click().run()
    assert "Delete for good" in [button.label for button in page.button]
    assert runs.count() == 1
