"""Every run that was ever asked for: find it, open it, run it again, delete it."""

import streamlit as st

from core.errors import TandemError
from pages.parts import history
from pages.parts.text import refuse

st.title("History", anchor=False)

try:
    wanted = history.filters()
    total, rows = history.found(wanted)
except TandemError as error:
    refuse(error)
    st.stop()

if rows:
    history.listing(rows)
    history.pages(wanted, total)
elif wanted.narrowed:
    history.nothing_matches()
else:
    history.nothing_yet()
