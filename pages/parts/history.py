"""Pieces of the history: filters that live in the address, one line a run, page by page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil

import streamlit as st

from core import format as write
from core.run import RUN_STATES, RunSummary
from core.workload import TASKS
from pages.parts import link
from pages.parts.actions import again, confirm_delete
from pages.parts.text import STATE_WORDS, age, plain
from reports.compare import LEAST_RUNS, MOST_RUNS
from services import runs

ROWS_A_PAGE = 15
TICKED = "tick"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the address asks for; empty means any."""

    search: str
    task: str
    state: str
    owner: str
    page: int

    @property
    def narrowed(self) -> bool:
        """Whether any filter is set."""
        return bool(self.search or self.task or self.state or self.owner)


def filters() -> Wanted:
    """Draw the filters and return what they say."""
    wanted = Wanted(
        link.text("search"),
        link.chosen("task", TASKS, ""),
        link.chosen("state", RUN_STATES, ""),
        link.text("owner"),
        link.number("page", 1, 100_000, 1),
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Search",
            key=link.follow("search", wanted.search),
            on_change=link.write("search", "page"),
            width=300,
            placeholder="Name, note or result",
            icon=":material/search:",
            type="search",
        )
        st.selectbox(
            "Task",
            TASKS,
            index=None,
            placeholder="Any",
            key=link.follow("task", wanted.task or None),
            on_change=link.write("task", "page"),
            width=140,
        )
        st.selectbox(
            "State",
            RUN_STATES,
            index=None,
            placeholder="Any",
            format_func=lambda state: STATE_WORDS[state][0],
            key=link.follow("state", wanted.state or None),
            on_change=link.write("state", "page"),
            width=160,
        )
        st.text_input(
            "Owner", key=link.follow("owner", wanted.owner), on_change=link.write("owner", "page"), width=160, placeholder="Any"
        )
    return wanted


def found(wanted: Wanted) -> tuple[int, tuple[RunSummary, ...]]:
    """Return how many runs match and the rows of this page of them."""
    total = runs.count(wanted.search, wanted.task, wanted.state, wanted.owner)
    offset = (min(wanted.page, max(1, ceil(total / ROWS_A_PAGE))) - 1) * ROWS_A_PAGE
    return total, runs.history(wanted.search, wanted.task, wanted.state, wanted.owner, ROWS_A_PAGE, offset)


def listing(rows: Sequence[RunSummary]) -> None:
    """Draw one line for each run: name and note, state, best, step time, age, and what can be done."""
    now = datetime.now(UTC)
    ticked = link.several(TICKED, runs.known(st.query_params.get_all(TICKED)))
    _comparing(ticked)
    for row in rows:
        _line(row, now, row.id in ticked)


def pages(wanted: Wanted, total: int) -> None:
    """Draw how many there are and the way to the others."""
    last = max(1, ceil(total / ROWS_A_PAGE))
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(f"{total:,} run{'' if total == 1 else 's'}", width="content")
        if last > 1:
            st.pagination(last, key=link.follow("page", min(wanted.page, last)), on_change=link.write("page"))


def nothing_matches() -> None:
    """Say that the filters hide everything, and offer to drop them."""
    st.info("No run matches these filters.", icon=":material/filter_alt_off:")
    st.button("Clear the filters", on_click=_clear)


def nothing_yet() -> None:
    """Say why nothing is here and how it fills."""
    st.info(
        "Nothing here yet. Every run that you start is kept, with its measurements, its advice and its reasons.",
        icon=":material/history:",
    )
    st.page_link("pages/ask.py", label="Ask about a workload", icon=":material/search:")
    st.caption("or from a terminal")
    st.code("./tandem advise gpt2-small:infer --probe quick", language="bash")


def _comparing(ticked: Sequence[str]) -> None:
    """Draw the way to the comparison once a run is ticked; ticks of other pages of the list count too."""
    if not ticked:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        few, many = len(ticked) < LEAST_RUNS, len(ticked) > MOST_RUNS
        label = f"Compare {len(ticked)} runs" if not few else "Tick another run to compare"
        if many:
            label = f"{len(ticked)} ticked; at most {MOST_RUNS} can be compared"
        if few or many:
            st.caption(label, width="content")
        else:
            st.page_link(
                "pages/compare.py", label=label, icon=":material/compare:", query_params=[("id", one) for one in ticked]
            )
        st.button("Untick all", type="tertiary", on_click=link.put, args=(TICKED, None))


def _tick(run_id: str) -> None:
    """Write one tick into the address, after those that are there: the first ticked is the base."""
    others = [one for one in st.query_params.get_all(TICKED) if one != run_id]
    link.put(TICKED, [*others, run_id] if st.session_state[f"tick:{run_id}"] else others)


def _line(row: RunSummary, now: datetime, ticked: bool) -> None:
    word, icon, color = STATE_WORDS[row.state]
    step = "" if row.step_time_s is None else f" · {write.seconds(row.step_time_s)} a step"
    seconds = (now - datetime.fromisoformat(row.created_at)).total_seconds()
    with st.container(border=True, horizontal=True, vertical_alignment="center", gap="small"):
        st.checkbox(
            f"Compare {plain(row.name or row.id, 60)}",
            key=link.follow(f"tick:{row.id}", ticked),
            label_visibility="collapsed",
            on_change=_tick,
            args=(row.id,),
        )
        with st.container(gap=None, width=380):
            st.page_link("pages/run.py", label=f"**{plain(row.name or row.id, 60)}**", query_params={"id": row.id})
            st.caption(plain(" · ".join(filter(None, (row.task, row.owner, row.note))), 90))
        with st.container(width=120):
            st.badge(word, icon=icon, color=color)
        with st.container(width=330):
            st.markdown(
                plain(
                    f"{row.best}{step}" if row.best else "No advice yet" if row.state in ("queued", "running") else "No advice",
                    100,
                )
            )
        with st.container(width=90):
            st.caption(plain(age(seconds)))
        chosen = st.menu_button(
            "",
            ("Run again", "Delete"),
            icon=":material/more_vert:",
            type="tertiary",
            key=f"menu:{row.id}",
            help="Run again or delete",
        )
        if chosen == "Run again":
            again(row.id)
        elif chosen == "Delete":
            confirm_delete(row.id, row.name)


def _clear() -> None:
    for name in ("search", "task", "state", "owner", "page"):
        link.put(name, None)
