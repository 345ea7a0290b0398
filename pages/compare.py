"""Runs side by side, `/compare?id=…&id=…`: what differs between them, held against the first."""

import streamlit as st

from core.errors import TandemError
from pages.parts import compare
from pages.parts.text import refuse

st.title("Compare runs", anchor=False)

try:
    runs = compare.asked_for()
except TandemError as error:
    refuse(error)
    st.page_link("pages/history.py", label="Choose runs in the history", icon=":material/history:")
    st.stop()

compare.heads(runs)
compare.tables(runs, compare.everything())
