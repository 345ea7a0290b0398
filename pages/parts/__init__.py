"""Pieces that several pages draw: streamlit only, no decisions.

Streamlit takes a folder named `pages` for an app of its first kind until `st.navigation` was called once in the process. After
a restart of the server, the first visitor of `/run?id=…` would therefore get the bare script without the router. The first
page that is opened so imports this package: it ends that mode for the whole process and runs the router instead.
"""

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

if PagesManager.uses_pages_directory:
    PagesManager.uses_pages_directory = False
    st.rerun()
