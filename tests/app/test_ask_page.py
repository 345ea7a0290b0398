"""The first screen: one field, an answer at once, and a form whose every change is in the link."""

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.run import RunOptions
from pages.parts import link
from pages.parts.text import plain
from services import runs
from tests.app.conftest import Keeper, Opener, as_markdown, words_of
from tests.samples.parts import HOSTILE_NAME
from tests.samples.runs import sample_run

WORKLOAD = {"name": "our own", "task": "infer", "model": {"preset": "gpt2-small"}, "batch": 3, "length": 32, "dtype": "fp32"}

YAML = """# a comment that stays in the link
name: our own
task: infer
model: {preset: gpt2-small}
batch: 3
length: 32
"""


def _field(page: AppTest, path: str) -> Any:
    kinds = (page.number_input, page.text_input, page.selectbox, page.checkbox)
    return next(widget for kind in kinds for widget in kind if str(widget.key).endswith(f":{path}"))


def _press(page: AppTest, label: str) -> AppTest:
    next(button for button in page.button if button.label == label).click()
    return page.run()


def test_the_first_visit_offers_presets_and_a_demo(open_page: Opener) -> None:
    page = open_page()
    assert not page.exception
    assert len(page.selectbox(key="workload").options) >= 10
    _press(page, "Try the demo")
    assert not page.exception
    assert not page.error
    assert "gpt2-demo" in page.query_params["workload"]


def test_the_last_runs_are_a_click_away(keep: Keeper, open_page: Opener) -> None:
    keep(sample_run())
    assert "Last runs" in words_of(open_page())


def test_a_preset_is_answered_at_once_with_three_places(open_page: Opener) -> None:
    page = open_page(workload="gpt2-small:train")
    assert not page.exception
    assert not page.error
    said = words_of(page)
    assert all(title in said for title in ("This machine", "GPU pool", "TPU pool", "Why:", "Rests on:", "124 M parameters"))
    assert page.header[0].value.strip()


def test_a_change_in_the_form_is_written_into_the_link_and_undone(open_page: Opener) -> None:
    page = open_page(workload="gpt2-small:infer")
    _field(page, "batch").set_value(5)
    _press(page, "Apply")
    assert page.query_params["set"] == "batch=5"
    assert "batch 5" in words_of(page)
    _press(page, "Undo all changes")
    assert "set" not in page.query_params
    assert "batch 5" not in words_of(page)


def test_a_link_with_changes_restores_them(open_page: Opener) -> None:
    page = open_page(workload="gpt2-small:infer", set=["batch=7", "dtype=fp32"])
    assert not page.exception
    assert not page.warning
    assert "batch 7" in words_of(page)
    assert _field(page, "dtype").value == "fp32"


@pytest.mark.parametrize("text", [json.dumps(WORKLOAD), YAML])
def test_a_pasted_workload_lives_in_the_link(open_page: Opener, text: str) -> None:
    page = open_page()
    page.text_area(key="pasted").set_value(text)
    _press(page, "Use this workload")
    assert not page.error
    assert link.unpack(page.query_params["doc"]) == text
    assert "our own" in words_of(page)
    assert "batch 3" in words_of(page)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"workload": "gpt3-enormous"}, "gpt3"),
        ({"workload": "gpt2-small:dance"}, "dance"),
        ({"doc": "nonsense"}, "link"),
        ({"doc": link.pack("task: [") or ""}, "YAML"),
        ({"doc": link.pack(json.dumps({**WORKLOAD, "batch": -1})) or ""}, "batch"),
        ({"doc": link.pack(json.dumps({**WORKLOAD, "bacth": 1})) or ""}, "batch"),
        ({"workload": "gpt2-small:train", "pools": "h100=1e9"}, ""),
    ],
)
def test_a_mistake_is_one_line(open_page: Opener, query: dict[str, str], named: str) -> None:
    page = open_page(**query)
    assert not page.exception
    assert len(page.error) == 1
    assert "\n" not in page.error[0].value
    assert named in page.error[0].value


@pytest.mark.parametrize(
    "query", [{"objective": "beauty"}, {"budget": "1"}, {"probe": "deep"}, {"runtime": "fortran"}, {"set": "nosuch=1"}]
)
def test_a_choice_of_the_link_that_does_not_exist_is_named(open_page: Opener, query: dict[str, str]) -> None:
    page = open_page(workload="gpt2-small:infer", **query)
    assert not page.exception
    value = next(iter(query.values())).partition("=")[0]
    assert any(plain(value) in warning.value for warning in page.warning)
    assert page.header


def test_a_hostile_name_is_shown_as_text(open_page: Opener) -> None:
    page = open_page(doc=link.pack(json.dumps({**WORKLOAD, "name": HOSTILE_NAME})) or "")
    assert not page.exception
    assert plain(HOSTILE_NAME, 80) in as_markdown(page)


def test_probing_starts_a_run_with_the_options_of_the_link(open_page: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[dict[str, Any], RunOptions]] = []

    def started(document: dict[str, Any], options: RunOptions, owner: str = "") -> str:
        asked.append((document, options))
        return "aaaaaaaaaaaa"

    monkeypatch.setattr(runs, "start", started)
    page = open_page(workload="gpt2-small:infer", budget="20", runtime=["jax"], objective="cost", pools="attached")
    _press(page, "Probe this machine")
    document, options = asked[0]
    assert document["model"]["preset"] == "gpt2-small"
    assert options == RunOptions("quick", 20.0, ("jax",), "attached", "cost")


def test_the_same_command_is_shown(open_page: Opener) -> None:
    page = open_page(workload="gpt2-small:infer")
    assert any(code.value.startswith("./tandem advise gpt2-small:infer") for code in page.code)
