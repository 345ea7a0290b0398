"""The portal's router: which pages there are and how the window is set up; everything else lives in `pages/`.

Start it with `./tandem app`. Colours, radii and manners are tokens in `.streamlit/config.toml`. The icon is a file of ours,
since Streamlit would fetch a named one from another host.
"""

from pathlib import Path

import streamlit as st

from pages.parts.text import name_tab

parts = Path(__file__).parent / "pages" / "parts"
st.set_page_config(
    page_icon=str(parts / "mark.svg"),
    layout="wide",
    menu_items={
        "About": "Tandem: which framework, on which accelerators, for this workload, and how sure are we?",
    },
)
st.logo(str(parts / "wordmark.svg"), size="large")

page = st.navigation(
    [
        st.Page("pages/ask.py", title="Ask", icon=":material/search:", url_path="", default=True),
        st.Page("pages/split.py", title="Split", icon=":material/call_split:", url_path="split"),
        st.Page("pages/run.py", title="Run", icon=":material/speed:", url_path="run", visibility="hidden"),
        st.Page("pages/compare.py", title="Compare", icon=":material/compare:", url_path="compare", visibility="hidden"),
        st.Page("pages/history.py", title="History", icon=":material/history:", url_path="history"),
        st.Page("pages/code.py", title="Code", icon=":material/code:", url_path="code"),
        st.Page("pages/catalog.py", title="Catalog", icon=":material/inventory_2:", url_path="catalog"),
        st.Page("pages/devices.py", title="Devices", icon=":material/memory:", url_path="devices"),
        st.Page("pages/accuracy.py", title="Accuracy", icon=":material/target:", url_path="accuracy"),
        st.Page("pages/about.py", title="About the numbers", icon=":material/info:", url_path="about"),
    ],
    position="top",
)
name_tab(page.title)
page.run()
