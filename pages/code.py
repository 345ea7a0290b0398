"""What ties a training code base to its device and its framework, and how far it is from each target."""

import streamlit as st

from pages.parts import code

st.title("How portable is this code?", anchor=False)
st.markdown("Upload a training script, a notebook, or a zip of a whole folder. It is parsed in a sandbox and never run.")

report = code.code_field()
if report is None:
    code.first_visit()
    st.stop()

code.show_scores(report)
code.show_facts(report)
code.show_findings(report)
