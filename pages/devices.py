"""What is attached, which runtime can use it, and for each no the reason and what mends it."""

import streamlit as st

from core.errors import TandemError
from pages.parts import devices, links
from pages.parts.text import refuse

devices.title()
st.markdown("What is attached to this machine, and which frameworks can use it.")

try:
    report = devices.looked_up()
except TandemError as error:
    refuse(error)
    st.stop()

devices.attached(report)
links.measured(report)
devices.runtimes(report)
st.caption("The same from a terminal")
st.code("./tandem devices\n./tandem runtimes", language="bash")
