"""What the page tests share: a data folder for each test, a store that can be filled with sample runs, and opened pages."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.run import FINAL_STATES, Run
from services.context import Context, context

ROOT = Path(__file__).resolve().parents[2]
Opener = Callable[..., AppTest]
Keeper = Callable[..., Run]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    """Give this test a data folder of its own, which every service of this process then uses."""
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(ROOT)
    context.cache_clear()
    st.cache_data.clear()
    yield context()
    context().store.close()
    context.cache_clear()


@pytest.fixture
def open_page(here: Context) -> Opener:
    """Return a function that opens a page of the portal, by its name and the values of its address."""

    def opened(page: str = "ask", /, **query: str | list[str]) -> AppTest:
        portal = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
        if page != "ask":
            portal.switch_page(f"pages/{page}.py")
        for name, value in query.items():
            portal.query_params[name] = value
        return portal.run()

    return opened


@pytest.fixture
def keep(here: Context) -> Keeper:
    """Return a function that stores a sample run, outcome by outcome, as the process of a run does."""

    def kept(run: Run, **changes: object) -> Run:
        wanted = replace(run, **changes)  # type: ignore[arg-type]
        here.store.create_run(replace(wanted, state="queued", outcomes=(), recommendation=None, actuals=(), finished_at=None))
        here.store.save_facts(wanted.id, wanted.devices, wanted.versions)
        if wanted.state != "queued":
            here.store.set_state(wanted.id, "running")
        for outcome in wanted.outcomes:
            here.store.save_outcome(wanted.id, outcome)
        if wanted.state in FINAL_STATES:
            here.store.finish(wanted.id, wanted.state, wanted.recommendation, wanted.error)
        for actual in wanted.actuals:
            here.store.add_actual(replace(actual, run_id=wanted.id))
        return wanted

    return kept


def as_markdown(page: AppTest) -> str:
    """Return what the page hands to the browser to be read as Markdown."""
    kinds = (page.title, page.header, page.subheader, page.markdown, page.caption, page.error, page.warning, page.info)
    return "\n".join(str(element.value) for elements in kinds for element in elements)


def words_of(page: AppTest) -> str:
    """Return everything that a page says as text, in order."""
    return "\n".join([as_markdown(page), *(str(element.value) for elements in (page.text, page.code) for element in elements)])
