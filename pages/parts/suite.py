"""What was measured of each attached device: its roofline, its memory, its launches, and a table of every point."""

from typing import Any

import streamlit as st

from core.device import Device
from core.roofline import DeviceRoof
from pages.parts.tables import small_table
from pages.parts.text import plain
from reports import charts, suite_text
from services import suite

MEASURE = "./tandem probe --tier quick"
TABLE_PX = 420


def measured(devices: tuple[Device, ...]) -> None:
    """Draw what was measured of the attached devices, or how to measure.

    Args:
        devices: attached.
    """
    st.subheader("What was measured", anchor=False)
    roofs = [roof for roof in suite.rooflines(devices) if roof.runtimes]
    if not roofs:
        st.markdown("Nothing was measured here yet. A quick look takes about a minute for each framework:")
        st.code(MEASURE, language="bash")
        return
    for roof in roofs:
        _device(roof)
    st.caption("Measured anew, by one command for all sizes and one for all classes of operations besides")
    st.code(f"{MEASURE}\n./tandem probe --tier full", language="bash")


def _device(roof: DeviceRoof) -> None:
    name = roof.device.id
    st.markdown(f"**{plain(name)}** · {plain(roof.device.name)}")
    dtype = roof.dtypes[0]
    if len(roof.dtypes) > 1:
        chosen = st.segmented_control("Number format", roof.dtypes, default=dtype, key=f"suite:{name}:dtype")
        dtype = chosen or dtype
    rows = [row for row in suite_text.summary_rows(roof) if row.dtype == dtype]
    small_table(
        {
            "Framework": [plain(row.runtime) for row in rows],
            "Products": [plain(row.matmul) for row in rows],
            "Memory": [plain(row.memory) for row in rows],
            "Vector units": [plain(row.vector) for row in rows],
            "Ridge, FLOP/byte": [plain(row.ridge) for row in rows],
            "A call": [plain(row.call) for row in rows],
            "Further operation": [plain(row.operation) for row in rows],
        }
    )
    st.caption("Best trusted points with the middle 80 % of their samples; memory beyond the caches, in GB of 10⁹ bytes.")
    found = [row for row in suite_text.point_rows(roof) if row.dtype == dtype]
    contended = sum("contended" in row.doubts for row in found)
    if contended:
        st.caption(f"At {contended} of {len(found)} other processes used the device: measure again when it is quiet.")
    theme = "dark" if st.context.theme.type == "dark" else "light"
    for chart in suite_text.SUITE_CHARTS:
        spec = _spec(chart, theme, dtype, roof)
        if spec is not None:
            st.vega_lite_chart(  # pyright: ignore[reportUnknownMemberType]
                spec=spec, theme=None, width="stretch", key=f"suite:{name}:{chart}"
            )
    _points(found)


@st.cache_data(max_entries=64, show_spinner=False)
def _spec(chart: str, theme: str, dtype: str, roof: DeviceRoof) -> dict[str, Any] | None:
    drawn = getattr(charts, chart)(roof, dtype, theme)
    return None if drawn is None else drawn.to_dict()


def _points(found: list[suite_text.PointRow]) -> None:
    config = st.column_config
    with st.expander(f"All {len(found)} measured points, with doubts and origin"):
        st.dataframe(  # pyright: ignore[reportUnknownMemberType]
            [
                {
                    "Kernel": row.kernel,
                    "Framework": row.runtime,
                    "Sizes": row.sizes,
                    "Time (s)": row.seconds,
                    "Rate": row.rate,
                    "Unit": row.unit,
                    "80 % of samples": row.band,
                    "Doubts": row.doubts,
                    "Measured": row.provenance,
                }
                for row in found
            ],
            hide_index=True,
            height=min(TABLE_PX, 38 + 35 * len(found)),
            column_config={
                "Time (s)": config.NumberColumn(format="%.3g"),
                "Rate": config.NumberColumn(format="%.3g", help="Empty where it cannot be told from noise"),
            },
        )
