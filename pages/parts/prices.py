"""Price lists on the screen: hand one in, see what it would bring, take it, and forget it again."""

from collections import Counter
from datetime import date

import streamlit as st

from core.errors import TandemError
from pages.parts.tables import ROW_PX, ROWS_SHOWN, small_table
from pages.parts.text import plain
from services import price_lists
from services.catalog import today

SKIPPED_SHOWN = 6
EXAMPLE = (
    "accelerator,cloud,region,instance,terms,usd_per_h,chips_per_instance,source_date\n"
    "h100-sxm,My provider,eu-north,8x H100,committed-1y,18.40,8,2026-11-01\n"
    "v5p-8,GCP,us-east5,v5p-8,on-demand,16.80,,2026-11-01\n"
)
"""A list in the own form, to start from."""


def lists() -> None:
    """Draw the imported lists and the field for another one."""
    st.subheader("Your prices", anchor=False)
    _held()
    with st.expander("Import a price list", icon=":material/upload_file:"):
        st.markdown(
            "CSV in Tandem's own form, or a file of SkyPilot's catalog. It replaces what you imported of the same clouds, "
            "and is preferred to the catalog's own prices."
        )
        st.download_button(
            "A list to start from", EXAMPLE, "prices.csv", "text/csv", icon=":material/download:", on_click="ignore"
        )
        upload = st.file_uploader("Price list", type="csv", key="price_list", max_upload_size=32)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            cloud = st.text_input("Whose prices, where the list does not say", key="price_cloud", width=300, placeholder="AWS")
            day = st.date_input("Date of rows without one", value=today(), max_value=today(), key="price_day", width=200)
        if upload is not None:
            _preview(upload.getvalue(), upload.name, cloud, day)


def _held() -> None:
    held = Counter(price.cloud for price in price_lists.imported_prices())
    if not held:
        st.caption("None. The catalog's own prices count, those past their date marked.")
        return
    small_table({"Cloud": [plain(cloud) for cloud in held], "Prices": [str(count) for count in held.values()]})
    if st.button("Forget imported prices", icon=":material/delete:"):
        price_lists.forget_prices()
        st.rerun()


def _preview(data: bytes, name: str, cloud: str, day: date) -> None:
    try:
        found = price_lists.preview_prices(data, name, cloud, day.isoformat())
    except TandemError as error:
        st.error(plain(str(error), 900), icon=":material/error:")
        return
    replaced = f", in the place of {found.replaced} imported before" if found.replaced else ""
    st.markdown(plain(f"{len(found.prices)} prices at {', '.join(found.clouds)}{replaced}.", 400))
    st.dataframe(  # pyright: ignore[reportUnknownMemberType]
        {
            "Accelerator": [price.accelerator for price in found.prices],
            "Chip-hour": [price.usd_per_chip_h for price in found.prices],
            "Terms": [price.terms for price in found.prices],
            "Cloud": [price.cloud for price in found.prices],
            "Region": [price.region for price in found.prices],
            "Machine": [price.instance for price in found.prices],
            "Date": [price.source_date for price in found.prices],
        },
        column_config={"Chip-hour": st.column_config.NumberColumn("$ a chip-hour", format="$%.3f")},
        hide_index=True,
        alt="Prices that the list holds",
        height=ROW_PX * (min(len(found.prices), ROWS_SHOWN) + 1) + 3,
    )
    for left in found.skipped[:SKIPPED_SHOWN]:
        st.caption(plain(f"Left out, {left.words}", 300))
    if st.button("Import these prices", type="primary", icon=":material/check:"):
        price_lists.import_prices(data, name, cloud, day.isoformat())
        st.toast("The prices are imported.", icon=":material/check:")
        st.rerun()
