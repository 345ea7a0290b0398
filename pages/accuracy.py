"""How far predictions may be trusted: published runs predicted without anything of their own source."""

import streamlit as st

from core.errors import TandemError
from pages.parts import accuracy
from pages.parts.text import refuse

st.title("Accuracy", anchor=False)
st.markdown(
    "Figures of chips that are not attached rest on a cost model. Here it predicts published measurements, each without anything "
    "of its own source, and is held to them."
)

try:
    found = accuracy.measured()
    accuracy.summary(found)
    accuracy.cuts(found)
    accuracy.worst(found)
    accuracy.refusals(found)
except TandemError as error:
    refuse(error)
    st.stop()

st.caption("The same from a terminal, also on measurements of your own")
st.code("./tandem accuracy\n./tandem accuracy --rows FILE.csv --each", language="bash")
