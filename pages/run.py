"""One run, `/run?id=...`: what it is doing now, or what came of it. Everything is read from the database."""

import streamlit as st

from core.errors import TandemError
from core.run import FINAL_STATES
from pages.parts import run as parts
from pages.parts.actions import run_actions
from pages.parts.answer import show_answer, show_assumptions, show_places
from pages.parts.details import details
from pages.parts.progress import live_progress
from pages.parts.text import refuse
from services import runs

try:
    run = runs.open_run(parts.asked_for())
except TandemError as error:
    refuse(error)
    st.page_link("pages/history.py", label="All runs", icon=":material/history:")
    st.stop()

if run.options.split is not None:
    st.switch_page("pages/split.py", query_params={"id": run.id})

parts.heading(run)
if run.state not in FINAL_STATES:
    live_progress(run.id, run.state)
    st.stop()

run_actions(run)
parts.how_it_ended(run)
show_answer(run)
if run.recommendation is not None:
    show_places(run)
    show_assumptions(run.workload, "Tandem filled these in; ask again to change them")
details(run)
