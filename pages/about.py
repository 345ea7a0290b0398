"""What the numbers mean: bands, tiers, sources and limits."""

import streamlit as st

from pages.parts.about import bands, limits, measuring, sources, tiers

st.title("About the numbers", anchor=False)
st.markdown("Every number here has a unit, a band, and an answer to “from where?”. What is not known is a dash, never a zero.")
tiers()
bands()
measuring()
sources()
limits()
