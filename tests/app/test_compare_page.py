"""The comparison: what the address asks for, the base, differences first, and the way there from the history."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.text import plain
from services import runs
from tests.app.conftest import Keeper, Opener, words_of
from tests.samples.runs import sample_hostile, sample_run

FIRST, SECOND, THIRD = "aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"


@pytest.fixture
def three(keep: Keeper) -> list[str]:
    run = sample_run()
    keep(run, id=FIRST)
    keep(replace(run, workload=replace(run.workload, batch=run.workload.batch * 2)), id=SECOND)
    keep(sample_hostile(), id=THIRD)
    return [FIRST, SECOND, THIRD]


def _asked(page: AppTest, name: str) -> list[str]:
    """Return a parameter of the address as a list; one value alone comes as itself."""
    value = page.query_params[name]
    return [value] if isinstance(value, str) else list(value)


def test_differences_are_shown_and_what_is_the_same_is_not(three: list[str], open_page: Opener) -> None:
    page = open_page("compare", id=three[:2])
    assert not page.exception
    assert not page.error
    cells = "\n".join(table.value.to_string() for table in page.table)
    assert "batch" in cells
    assert "dtype" not in cells
    assert "parameters" not in cells


def test_all_facts_are_a_part_of_the_link(three: list[str], open_page: Opener) -> None:
    page = open_page("compare", id=three[:2], facts="all")
    assert page.toggle[0].value
    assert "parameters" in "\n".join(table.value.to_string() for table in page.table)


def test_equal_runs_say_so(keep: Keeper, open_page: Opener) -> None:
    keep(sample_run(), id=FIRST)
    keep(sample_run(), id=SECOND)
    assert "the same in everything" in open_page("compare", id=[FIRST, SECOND]).info[0].value


def test_another_run_can_be_made_the_base(three: list[str], open_page: Opener) -> None:
    page = open_page("compare", id=three[:2])
    next(button for button in page.button if button.label == "Make base").click().run()
    assert _asked(page, "id") == [SECOND, FIRST]


def test_one_of_three_can_be_left_out(three: list[str], open_page: Opener) -> None:
    page = open_page("compare", id=three)
    assert not page.exception
    next(button for button in page.button if button.label == "Leave out").click().run()
    assert _asked(page, "id") == [SECOND, THIRD]


def test_the_limit_counts_runs_that_exist(three: list[str], open_page: Opener) -> None:
    page = open_page("compare", id=[FIRST, SECOND, *(f"gone{i}" for i in range(9))])
    assert not page.error
    assert page.table


def test_ticks_of_runs_that_are_gone_are_named_and_not_counted(three: list[str], open_page: Opener) -> None:
    page = open_page("history", tick=["zzzz", FIRST, FIRST])
    assert "zzzz" in page.warning[0].value
    assert "Tick another run" in words_of(page)


def test_a_page_beyond_the_last_shows_the_last(three: list[str], open_page: Opener) -> None:
    page = open_page("history", page="99")
    assert not page.exception
    assert "3 runs" in words_of(page)
    assert not page.info


@pytest.mark.parametrize("ids", [[], [FIRST], [FIRST, FIRST], ["no-such", FIRST], [str(i) for i in range(9)]])
def test_too_few_or_too_many_are_one_line_and_a_way_back(three: list[str], open_page: Opener, ids: list[str]) -> None:
    page = open_page("compare", id=ids)
    assert not page.exception
    assert len(page.error) == 1


def test_a_run_that_is_gone_is_named_and_the_others_are_compared(three: list[str], open_page: Opener) -> None:
    page = open_page("compare", id=[FIRST, "gone", SECOND])
    assert not page.error
    assert "gone" in page.warning[0].value
    assert page.table


def test_ticked_runs_of_the_history_lead_to_the_comparison(three: list[str], open_page: Opener) -> None:
    page = open_page("history")
    page.checkbox(key=f"tick:{SECOND}").check().run()
    assert _asked(page, "tick") == [SECOND]
    assert "Tick another run" in words_of(page)
    page.checkbox(key=f"tick:{FIRST}").check().run()
    assert _asked(page, "tick") == [SECOND, FIRST]
    link = next(one for one in page.get("page_link") if "Compare 2 runs" in one.proto.label)
    assert link.proto.query_string == f"id={SECOND}&id={FIRST}"
    page.checkbox(key=f"tick:{SECOND}").uncheck().run()
    assert _asked(page, "tick") == [FIRST]


def test_ticks_of_a_link_are_set(three: list[str], open_page: Opener) -> None:
    page = open_page("history", tick=[FIRST, SECOND])
    assert page.checkbox(key=f"tick:{FIRST}").value
    assert not page.checkbox(key=f"tick:{THIRD}").value


def test_the_heads_name_the_runs(three: list[str], open_page: Opener) -> None:
    page = open_page("compare", id=three[:2])
    labels = [one.proto.label for one in page.get("page_link")]
    assert labels.count(f"**{plain(runs.open_run(FIRST).workload.name, 60)}**") == 2
