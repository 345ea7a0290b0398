"""Pieces of the comparison: which runs, one card a run, and a table for each section of facts."""

from collections.abc import Sequence

import streamlit as st

from core.errors import BadInput
from core.run import Run
from pages.parts import link
from pages.parts.tables import small_table
from pages.parts.text import STATE_WORDS, plain
from reports.compare import LEAST_RUNS, MOST_RUNS, Cell, compare, unlike
from services import runs as service

TITLES = {
    "answer": "The answers",
    "step time": "Step time of candidates that several runs know",
    "workload": "Workload",
    "machine": "Machine",
    "versions": "Versions",
}


def asked_for() -> list[Run]:
    """Return the runs in the address, each once, in its order; those that are gone are named.

    Raises:
        BadInput: fewer than two are left, or more than fit side by side.
    """
    wanted = link.several("id", service.known(st.query_params.get_all("id")))
    if len(wanted) > MOST_RUNS:
        raise BadInput(f"{len(wanted)} runs", f"at most {MOST_RUNS} side by side", "choose fewer in the history")
    if len(wanted) < LEAST_RUNS:
        raise BadInput("one run" if wanted else "no run", f"at least {LEAST_RUNS} to compare", "tick them in the history")
    return [service.open_run(run_id) for run_id in wanted]


def heads(found: Sequence[Run]) -> None:
    """Draw one card a run: its name, its state, and what can be done with it here; the first is the base."""
    with st.container(horizontal=True, gap="small"):
        for run in found:
            with st.container(border=True, width=300, gap="xsmall"):
                st.page_link("pages/run.py", label=f"**{plain(run.workload.name, 60)}**", query_params={"id": run.id})
                st.caption(plain(f"{run.created_at.replace('T', ' ')[:16]} UTC · {run.id[:6]}"))
                _choices(run, [other.id for other in found])


def _choices(run: Run, ids: Sequence[str]) -> None:
    """Draw the state of one run, whether it is the base, and how to change that."""
    word, icon, color = STATE_WORDS[run.state]
    others = [other for other in ids if other != run.id]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.badge(word, icon=icon, color=color)
        if run.id == ids[0]:
            st.badge("Base", color="blue")
        else:
            st.button("Make base", key=f"base:{run.id}", type="tertiary", on_click=link.put, args=("id", [run.id, *others]))
        if len(ids) > LEAST_RUNS:
            st.button("Leave out", key=f"out:{run.id}", type="tertiary", on_click=link.put, args=("id", others))


def everything() -> bool:
    """Draw the switch between differences and all facts, and return whether all are wanted."""
    wanted = link.chosen("facts", ("all", "differences"), "differences") == "all"
    return st.toggle("Also show what is the same", value=wanted, key="all_facts", on_change=_keep_facts)


def tables(found: Sequence[Run], all_facts: bool) -> None:
    """Draw a table for each section that has something to say."""
    if said := unlike(found):
        st.warning(plain(said), icon=":material/warning:")
    heads_of = ["", *(f"{plain(run.workload.name, 40)} {plain(run.id[:6])}" for run in found)]
    shown = [row for row in compare(found) if all_facts or row.differs]
    for section, title in TITLES.items():
        rows = [row for row in shown if row.section == section]
        if not rows:
            continue
        st.subheader(title, anchor=False)
        columns: dict[str, object] = {heads_of[0]: [plain(row.name) for row in rows]}
        for place, head in enumerate(heads_of[1:]):
            columns[head] = [_cell(row.cells[place]) for row in rows]
        small_table(columns)
    if not shown:
        st.info("These runs say the same in everything that is kept of them.", icon=":material/equal:")
    st.caption("Changes are against the first run. Bands part: the two bands have no value in common.")


def _cell(cell: Cell) -> str:
    held = ", ".join(filter(None, (cell.change, cell.verdict)))
    return plain(cell.text) + (f" · **{plain(held)}**" if held else "")


def _keep_facts() -> None:
    link.put("facts", "all" if st.session_state["all_facts"] else None)
