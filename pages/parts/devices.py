"""Pieces of the devices page."""

import streamlit as st

from core import format as write
from pages.parts.ask import device_report
from pages.parts.tables import small_table
from pages.parts.text import plain
from services import devices as service

KINDS = {
    "cpu": ":material/memory:",
    "gpu": ":material/developer_board:",
    "tpu": ":material/hub:",
    "other": ":material/device_unknown:",
}


def looked_up() -> service.DevicesReport:
    """Return what is attached and what could use it."""
    return device_report()


def title() -> None:
    """Draw the title and the button that looks anew."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.title("Devices", anchor=False, width="content")
        if st.button("Look again", icon=":material/refresh:"):
            device_report.clear()
            st.rerun()


def attached(report: service.DevicesReport) -> None:
    """Draw one card for each device."""
    st.subheader("Attached", anchor=False)
    with st.grid(min_column_width=300, gap="small"):
        for device in report.devices:
            with st.container(border=True, height="stretch"):
                st.markdown(f"{KINDS[device.kind]} **{plain(device.id)}** · {plain(device.name)}")
                sizes = [write.memory(device.memory_bytes), *([f"{device.cores} cores"] if device.cores else [])]
                st.markdown(plain(" · ".join(sizes)))
                st.caption(plain(" · ".join(device.detail)) or "No further facts")
    if not any(device.kind in ("gpu", "tpu") for device in report.devices):
        st.caption("No GPU or TPU is attached. What they would do is estimated from the catalog and marked so.")


def runtimes(report: service.DevicesReport) -> None:
    """Draw which runtime can use which device, and what mends each no."""
    st.subheader("Frameworks", anchor=False)
    versions = {runtime.id: ", ".join(f"{name} {version}" for name, version in runtime.versions) for runtime in report.runtimes}
    able = [(device, runtime) for device, runtime, ok, _, _ in report.usable if ok]
    small_table(
        {
            "Framework": [plain(runtime) for _, runtime in able],
            "Can use": [plain(device) for device, _ in able],
            "Versions": [plain(versions.get(runtime, "")) for _, runtime in able],
        }
    )
    unable = [row for row in report.usable if not row[2]]
    if unable:
        st.subheader("What cannot be used, and what to do", anchor=False)
    for device, runtime, _, reason, remedy in unable:
        with st.container(border=True, gap="xsmall"):
            st.markdown(f":material/block: **{plain(runtime)}** on **{plain(device)}**: {plain(reason)}")
            if remedy:
                st.code(remedy, language="bash", wrap_lines=True)
