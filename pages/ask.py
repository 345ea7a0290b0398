"""The first screen: one field, an answer at once, then a run that sharpens it."""

import streamlit as st

from core.errors import TandemError
from pages.parts import ask, model, workload
from pages.parts.answer import show_answer, show_assumptions, show_places
from pages.parts.tables import candidates_table, excluded_table
from pages.parts.text import refuse
from services import models

if "id" in st.query_params:  # the address of a run, seen for a moment while its page opens
    st.switch_page("pages/run.py", query_params={"id": st.query_params["id"]})

st.title("Which framework, on which accelerators?", anchor=False)
st.markdown("Name a workload. Tandem answers at once from its catalog, then measures the workload's own layers here to be surer.")

try:
    text = workload.workload_field()
    if text is None:
        ask.first_visit()
        st.stop()
    given, base = workload.understood(text)
    options = ask.options(given.workload)
    run = ask.instant_run(given, options)
except TandemError as error:
    refuse(error)
    st.stop()

ask.describe(given)
if (picture := models.picture_of(given.document)) is not None:
    model.show_model(given.workload, picture)
with st.expander("Change anything in this workload", icon=":material/tune:"):
    workload.change_form(given.document, base.document)
show_assumptions(given.workload, "Tandem filled these in; the form above changes them")

ask.objective_and_pools(options)
show_answer(run)
show_places(run)
ask.probe_this_machine(given, options)
with st.expander("All candidates, and what was excluded", icon=":material/table_rows:", key="all", bind="query-params") as every:
    if every.open:
        candidates_table(run)
        excluded_table(run)
ask.same_command(text, run)
