"""The history of what was measured on each device: what drifted, what is slower than its like, and the medians over time."""

from typing import Any

import streamlit as st

from core import format as write
from core.errors import TandemError
from core.history import DeviceHistory, Point, Series, drift_words
from pages.parts.text import plain, refuse
from reports.charts.history import history as drawn
from services import device_history

FLAGS_SHOWN = 6


def history() -> None:
    """Draw the history of every device that has one, or how to begin one."""
    st.subheader("History", anchor=False)
    try:
        found = device_history.histories()
    except TandemError as error:
        refuse(error)
        return
    if not found:
        st.caption("Nothing was measured here yet. Each time this is run, a point is added for every probe:")
        st.code("./tandem probe", language="bash")
        return
    theme = "dark" if st.context.theme.type == "dark" else "light"
    for device in found:
        _device(device, theme)
    st.caption(
        "A drift is a median more than 5 % from the last trusted one of the same versions, and more than the wider of the two "
        "distances between quartiles. Not steady are medians of the last three to five undisturbed runs that differ by more than "
        "5 %. A vertical line marks a change of version: across it, times are not compared."
    )


def _device(device: DeviceHistory, theme: str) -> None:
    name = " · ".join(part for part in (device.id, device.name) if part) or device.uuid
    st.markdown(f"**{plain(name)}**" + ("" if device.id else " · not attached now"))
    if device.flags:
        st.warning("\n".join(f"- {plain(flag, 400)}" for flag in device.flags[:FLAGS_SHOWN]), icon=":material/trending_up:")
    if len(device.flags) > FLAGS_SHOWN:
        st.caption(f"and {len(device.flags) - FLAGS_SHOWN} more in the table")
    if not device.flags:
        st.caption(device.unflagged + (f" Compared with {len(device.peers)} of its kind." if device.peers else ""))
    chart = drawn(device, theme)
    if chart is not None:
        st.vega_lite_chart(  # pyright: ignore[reportUnknownMemberType]
            spec=chart.to_dict(), theme=None, width="stretch", key=f"history:{device.uuid}"
        )
    with st.expander("All measurements as a table"):
        rows = [_row(series, point) for series in device.series for point in reversed(series.points)]
        st.dataframe(  # pyright: ignore[reportUnknownMemberType]
            {column: [row[column] for row in rows] for column in rows[0]},
            hide_index=True,
            placeholder=write.MISSING,
            alt=f"Measurements on {device.id or device.name}, newest first",
        )


def _row(series: Series, point: Point) -> dict[str, Any]:
    drift = point.drift
    return {
        "Probe": series.probe.label,
        "Framework": series.probe.runtime,
        "Taken (UTC)": point.taken_at.replace("T", " ")[:19],
        "Median (s)": point.figures.median,
        "Spread, IQR (s)": point.figures.iqr,
        "Least (s)": point.figures.minimum,
        "Samples": point.figures.count,
        "Change (%)": None if drift is None else round(100 * drift.fraction, 1),
        "Note": "; ".join(
            [
                *([] if point.trusted else ["not trusted"]),
                *point.changed,
                *([drift_words(point)] if drift is not None and drift.beyond_noise else []),
            ]
        )
        or None,
    }
