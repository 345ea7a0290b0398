"""The split page: from the form to the answer, mistakes in one line, and a kept run with what was measured."""

import json
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.run import RunOptions
from core.split import Split, SplitOptions, SplitRun
from pages.parts.text import plain
from services import runs, split
from services.context import Context
from tests.app.conftest import Keeper, Opener, as_markdown, words_of
from tests.samples.runs import sample_run, sample_running
from tests.samples.splits import HOSTILE, SLOW, sample_hostile_split, sample_split, sample_verified

POOLS = ["h100-sxm=8", "tpu-v6e=16"]
HERE = ["cpu:0@jax", "cpu:0@torch-eager"]
OPTIONS = SplitOptions(tuple(HERE), "data", 1.25e8, 2e-4, 0.3, verify=True)
WORKLOAD = "gpt2-small:train"


BARE = replace(sample_split(), timeline=(), curves=(), shares=(), singles=())
"""A split without anything to draw: for what the form does, charts only take time."""


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[SplitOptions, str | None]]:
    """Answer every plan with a split without charts, and say what was asked."""
    asked: list[tuple[SplitOptions, str | None]] = []

    def plan(document: dict[str, Any], options: SplitOptions, objective: str | None = None) -> Split:
        asked.append((options, objective))
        return BARE

    monkeypatch.setattr(split, "plan", plan)
    return asked


def _press(page: AppTest, label: str) -> AppTest:
    next(button for button in page.button if button.label == label).click()
    return page.run()


def _specs(page: AppTest) -> list[dict[str, Any]]:
    return [json.loads(chart.proto.spec) for chart in page.get("vega_lite_chart")]


def _kept(here: Context, keep: Keeper, state: str, found: SplitRun) -> str:
    run = keep(sample_run(), state="running", outcomes=(), actuals=(), options=RunOptions("none", split=OPTIONS))
    here.store.finish(run.id, state, None, "a side died" if state == "failed" else "", found)
    return run.id


def test_the_first_visit_offers_examples_that_fill_the_address(open_page: Opener, planned: list[Any]) -> None:
    page = open_page("split")
    assert not page.exception
    page.button(key="example:Far apart").click().run()
    assert not page.exception
    assert page.query_params["workload"] == "llama-3-8b:train"
    assert page.query_params["pool"] == ["tpu-v5p=16", "h100-sxm=8"]
    assert planned[-1][0] == SplitOptions(("tpu-v5p=16", "h100-sxm=8"), "", 1.25e9, 0.03)


def test_a_real_plan_is_answered_with_its_charts(open_page: Opener) -> None:
    page = open_page("split", workload="gpt2-small:train", pool=POOLS, gbps="100")
    assert not page.exception
    assert not page.error
    assert page.header[0].value
    said = words_of(page)
    assert all(words in said for words in ("Why:", "Rests on:", "Who does what", "Beside one pool alone"))
    titles = {spec["title"]["text"] for spec in _specs(page)}
    assert {"Step time", "Cost, 1,000 steps"} <= titles


def test_a_split_that_is_worth_it_shows_everything(open_page: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "plan", lambda *_: sample_split())
    page = open_page("split", workload=WORKLOAD, pool=POOLS)
    assert not page.exception
    assert page.header[0].value == plain("Split it: 36 % less time.")
    assert [(metric.label, metric.value) for metric in page.metric][:4] == [
        ("Step time\\, together", "5\\.09 s"),
        ("Cost\\, together", "\\$105"),
        ("Saves", "36 \\%"),
        ("Best single pool", "8\\.00 s"),
    ]
    assert [spec["title"]["text"] for spec in _specs(page)] == [
        "Who does how much",
        "One step, planned",
        "Step time against the share",
        "Step time against the link",
        "Step time",
        "Cost, 1,000 steps",
    ]
    assert "(<https://openxla.org/xla>)" in as_markdown(page)


def test_a_split_that_loses_says_by_how_much_and_cannot_be_run_elsewhere(
    open_page: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split, "plan", lambda *_: replace(sample_split(SLOW), timeline=(), curves=(), shares=()))
    page = open_page("split", workload=WORKLOAD, pool=POOLS)
    assert page.header[0].value == plain("Use one pool: hybrid loses by 156 %.")
    assert ("Hybrid loses by", "156 \\%") in [(metric.label, metric.value) for metric in page.metric]
    assert "Run it here" not in [button.label for button in page.button]
    assert "both are attached" in words_of(page)


def test_every_choice_of_the_address_is_asked_for_and_shown(open_page: Opener, planned: list[Any]) -> None:
    page = open_page(
        "split",
        workload=WORKLOAD,
        pool=["v5p-8", "cpu:0@jax", "h100-sxm=8@torch-eager"],
        gbps="10",
        latency_ms="30",
        mode="local",
        saving="30",
        objective="cost",
    )
    assert not page.exception
    assert not page.warning
    expected = SplitOptions(("v5p-8", "cpu:0@jax", "h100-sxm=8@torch-eager"), "local", 1.25e9, 0.03, 0.3)
    assert planned[-1] == (expected, "cost")
    assert [page.selectbox(key=f"pool:{index}:name").value for index in range(3)] == ["v5p-8", "cpu:0", "h100-sxm"]
    assert [page.number_input(key=f"pool:{index}:count").value for index in range(3)] == [None, None, 8]
    command = next(code.value for code in page.code if code.value.startswith("./tandem split"))
    assert command == (
        f"./tandem split {WORKLOAD} --pool v5p-8 --pool cpu:0@jax --pool h100-sxm=8@torch-eager --link-gbps 10 "
        "--link-latency-ms 30 --mode local --least-saving 0.3 --objective cost"
    )


def test_a_change_of_a_widget_is_written_into_the_link(open_page: Opener, planned: list[Any]) -> None:
    page = open_page("split", workload=WORKLOAD)
    page.number_input(key="pool:1:count").set_value(32)
    page.selectbox(key="pool:0:runtime").set_value("jax").run()
    assert page.query_params["pool"] == ["h100-sxm=8@jax", "tpu-v6e=32"]
    page.number_input(key="gbps").set_value(2.5)
    page.selectbox(key="pool:1:name").set_value("cpu:0").run()
    assert page.query_params["pool"] == ["h100-sxm=8@jax", "cpu:0"]
    assert page.query_params["gbps"] == "2.5"
    _press(page, "Add a pool")
    assert page.query_params["pool"] == ["h100-sxm=8@jax", "cpu:0", "cpu:0"]
    page.button(key="pool:0:remove").click().run()
    assert page.query_params["pool"] == ["cpu:0", "cpu:0"]
    assert planned[-1][0].pools == ("cpu:0", "cpu:0")
    assert planned[-1][0].link_bytes_per_s == 2.5e9 / 8


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"pool": ["h100-sxm=8", "nonsense=3"]}, "nonsense"),
        ({"pool": ["h100-sxm=8", "tpu-v6e=-1"]}, "tpu"),
        ({"pool": ["h100-sxm=8"]}, "1 pools"),
        ({"pool": ["h100-sxm=8", "tpu-v6e=16@fortran"]}, "fortran"),
        ({"pool": ["h100-sxm=8", "<b>$x$"]}, "x"),
    ],
)
def test_a_mistake_is_one_line(open_page: Opener, query: dict[str, Any], named: str) -> None:
    page = open_page("split", **{"workload": WORKLOAD, "pool": POOLS, **query})
    assert not page.exception
    assert len(page.error) == 1
    assert "\n" not in page.error[0].value
    assert named in page.error[0].value


def test_choices_of_the_link_that_cannot_be_used_are_named(open_page: Opener, planned: list[Any]) -> None:
    page = open_page("split", workload=WORKLOAD, pool=POOLS, gbps="inf", latency_ms="-1", mode="magic", saving="200")
    assert not page.exception
    assert len(page.warning) == 4
    for value, warning in zip(("inf", "-1", "200", "magic"), page.warning, strict=True):
        assert plain(value) in warning.value
    assert planned[-1] == (SplitOptions(tuple(POOLS)), None)


def test_a_hostile_split_is_shown_as_text(open_page: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "plan", lambda *_: replace(sample_hostile_split(), timeline=(), curves=(), singles=()))
    page = open_page("split", workload=WORKLOAD, pool=POOLS)
    assert not page.exception
    said = as_markdown(page)
    assert plain(HOSTILE) in said
    assert "<script>" not in said


def test_running_a_plan_starts_it_as_asked_with_its_proof(open_page: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def started(document: dict[str, Any], options: SplitOptions, objective: str | None = None) -> str:
        asked.append((document["model"]["preset"], options, objective))
        return "aaaaaaaaaaaa"

    monkeypatch.setattr(split, "start", started)
    page = open_page("split", workload=WORKLOAD, pool=HERE, gbps="1", objective="time")
    _press(page, "Run it here")
    assert asked == [("gpt2-small", SplitOptions(tuple(HERE), "", 1.25e8, 1e-4, verify=True), "time")]


def test_a_run_that_was_proved_shows_measured_beside_planned(here: Context, keep: Keeper, open_page: Opener) -> None:
    run_id = _kept(here, keep, "done", SplitRun(sample_split(), sample_verified()))
    page = open_page("split", id=run_id)
    assert not page.exception
    assert not page.error
    said = words_of(page)
    assert plain("A step took 103 ms, the median of 20, 3 % longer than the planned 100 ms.") in said
    titles = [spec["title"]["text"] for spec in _specs(page)]
    assert titles[:3] == ["Planned and measured", "One step, planned", "One step, measured"]
    assert titles.count("One step, planned") == 1
    axes = {json.dumps(spec["layer"][-2]["encoding"]["x"]["scale"]["domain"]) for spec in _specs(page)[1:3]}
    assert len(axes) == 1
    values = {metric.label: metric.value for metric in page.metric}
    assert (values["Step, measured"], values["Comparisons that hold"], values["Loss"]) == ("103 ms", "1 of 2", "2.1")
    assert values["Saves, against one side alone"] == "43 \\%"
    assert any(code.value.endswith("--least-saving 0.3 --verify") for code in page.code)


def test_a_run_that_ended_early_says_why_and_shows_what_it_has(here: Context, keep: Keeper, open_page: Opener) -> None:
    run_id = _kept(here, keep, "failed", SplitRun(BARE, sample_verified("jax was killed by signal 9")))
    page = open_page("split", id=run_id)
    assert not page.exception
    assert "a side died" in page.error[0].value
    assert "killed by signal 9" in page.warning[0].value


def test_a_kept_plan_that_was_not_run_is_shown(here: Context, keep: Keeper, open_page: Opener) -> None:
    page = open_page("split", id=_kept(here, keep, "done", SplitRun(replace(BARE, timeline=sample_split().timeline))))
    assert not page.exception
    assert "One step, planned" in [spec["title"]["text"] for spec in _specs(page)]
    assert "measured beside planned" not in words_of(page)


def test_a_waiting_run_shows_progress_and_can_be_cancelled(keep: Keeper, open_page: Opener) -> None:
    run = keep(sample_running(), state="queued", outcomes=())
    page = open_page("split", id=run.id)
    assert not page.exception
    page.button(key="cancel").click().run()
    assert runs.watch(run.id).cancel_asked or runs.watch(run.id).over


def test_a_run_without_a_split_leads_to_its_own_page(keep: Keeper, open_page: Opener) -> None:
    page = open_page("split", id=keep(sample_run()).id)
    assert not page.exception
    assert "This run has no split" in words_of(page)


@pytest.mark.parametrize("run_id", ["", "nosuchrun", "<script>alert(1)</script>"])
def test_a_bad_id_is_one_line_and_a_way_back(open_page: Opener, run_id: str) -> None:
    page = open_page("split", id=run_id)
    assert not page.exception
    assert len(page.error) == 1
    assert "\n" not in page.error[0].value
