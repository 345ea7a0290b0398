"""What is attached, which runtime can use it, and for each no the reason and what mends it."""

import streamlit as st

from core.errors import TandemError
from pages.parts import device_history, devices, links, suite
from pages.parts.environments import environments
from pages.parts.text import refuse

devices.title()
st.markdown("What is attached to this machine, and which frameworks can use it.")

try:
    report = devices.looked_up()
except TandemError as error:
    refuse(error)
    st.stop()

devices.attached(report)
devices.runtimes(report)
suite.measured(report.devices)
links.measured(report)
device_history.history()
environments()
st.caption("The same from a terminal")
st.code("./tandem devices --ask-runtimes --history\n./tandem runtimes", language="bash")
