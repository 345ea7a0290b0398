"""What accelerators there are: what each can do, in which slices, what it costs where, and the user's own price lists."""

import streamlit as st

from core.errors import TandemError
from pages.parts import catalog, prices
from pages.parts.text import refuse

st.title("Catalog", anchor=False)
st.markdown("What each accelerator can do and what it costs. Every row has a source and a date.")

try:
    wanted = catalog.filters()
    chosen = catalog.listing(wanted)
    if chosen is not None:
        catalog.detail(chosen)
    prices.lists()
except TandemError as error:
    refuse(error)
    st.stop()

st.caption("The same from a terminal")
st.code(
    "./tandem catalog\n./tandem catalog show v5p-8\n./tandem catalog prices tpu-v5p\n./tandem catalog import-prices FILE",
    language="bash",
)
