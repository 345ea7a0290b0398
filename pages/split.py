"""Two or more pools for one workload: together or one of them, who does what, what the link costs; or a kept run of it."""

import streamlit as st

from core.errors import TandemError
from pages.parts import ask, link, split_form, split_run, workload
from pages.parts import split as parts
from pages.parts.answer import show_assumptions
from pages.parts.text import refuse

if "id" in st.query_params:
    try:
        split_run.kept(link.text("id").strip())
    except TandemError as error:
        refuse(error)
        st.page_link("pages/history.py", label="All runs", icon=":material/history:")
    st.stop()

st.title("One workload, several pools?", anchor=False)
st.markdown(
    "Name a workload and two pools or more. Tandem plans who does what, prices the link between them, and says when one pool "
    "alone is better."
)

try:
    text = workload.workload_field()
    if text is None:
        split_form.first_visit()
        st.stop()
    given, base = workload.understood(text)
    ask.describe(given)
    with st.expander("Change anything in this workload", icon=":material/tune:"):
        workload.change_form(given.document, base.document)
    show_assumptions(given.workload, "Tandem filled these in; the form above changes them")
    now = split_form.asked()
    split_form.form(now, given.workload)
    found = split_form.planned(given.document, now)
except TandemError as error:
    refuse(error)
    st.stop()

parts.answer(found)
parts.metrics(found, given.workload)
split_run.run_here(given.document, now, found)
parts.details(found, given.workload)
is_preset = "doc" not in st.query_params and "set" not in st.query_params
split_run.same_command(text if is_preset else "workload.json", given.document, now)
