"""Pieces of the page of one run: which one, its heading, and how it ended."""

from datetime import datetime

import streamlit as st

from core.errors import BadInput
from core.run import Run
from pages.parts import link
from pages.parts.text import STATE_WORDS, name_tab, plain
from reports import view


def asked_for() -> str:
    """Return the id in the address.

    Raises:
        BadInput: there is none.
    """
    run_id = link.text("id").strip()
    if not run_id:
        raise BadInput("a link without a run", "/run?id=…", "open a run from the history")
    return run_id


def heading(run: Run) -> None:
    """Draw name, state and when, where and by whom it was asked for; the browser's tab has the same name."""
    name_tab(f"{run.workload.name} {run.workload.task}")
    word, icon, color = STATE_WORDS[run.state]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.title(plain(run.workload.name, 120), anchor=False, width="content")
        st.badge(word, icon=icon, color=color)
    who = f" by {run.owner}" if run.owner else ""
    took = f" · took {_took(run)}" if run.finished_at else ""
    with st.container(gap="xxsmall"):
        st.markdown(plain(view.headline(run).subtitle))
        st.caption(plain(f"{run.created_at.replace('T', ' ')[:16]} UTC{who} on {run.host}{took} · run {run.id}"))
    if run.note.strip():
        st.text(run.note)


def how_it_ended(run: Run) -> None:
    """Say in one line when a run did not come to its end by itself."""
    kept = f"What was measured is kept: {len(run.outcomes)} probes."
    if run.state == "failed":
        st.error(plain(f"{run.error or 'The run failed.'} {kept}", 500), icon=":material/error:")
    elif run.state == "interrupted":
        st.warning(plain(f"{run.error or 'Its process ended before its time.'} {kept}", 500), icon=":material/warning:")
    elif run.state == "cancelled":
        st.info(plain(f"Cancelled. {kept}"), icon=":material/cancel:")


def _took(run: Run) -> str:
    seconds = (datetime.fromisoformat(run.finished_at or run.created_at) - datetime.fromisoformat(run.created_at)).total_seconds()
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
