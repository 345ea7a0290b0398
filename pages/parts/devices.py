"""Pieces of the devices page: cards with few words, everything else one click away."""

import streamlit as st

from core import format as write
from core.device import Device
from core.errors import TandemError
from pages.parts.ask import device_report
from pages.parts.tables import small_table
from pages.parts.text import plain, refuse
from reports import hardware
from services import devices as service

KINDS = {
    "cpu": ":material/memory:",
    "gpu": ":material/developer_board:",
    "tpu": ":material/hub:",
    "other": ":material/device_unknown:",
}
ASKED = "devices_asked"
"""Key of the session state under which lies the report that the frameworks themselves contributed to."""


def looked_up() -> service.DevicesReport:
    """Return what is attached and what could use it, with the frameworks' own word where they were asked in this session."""
    asked = st.session_state.get(ASKED)
    return asked if isinstance(asked, service.DevicesReport) else device_report()


def title() -> None:
    """Draw the title and the button that looks anew."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.title("Devices", anchor=False, width="content")
        if st.button("Look again", icon=":material/refresh:"):
            device_report.clear()
            st.session_state.pop(ASKED, None)
            st.rerun()


def attached(report: service.DevicesReport) -> None:
    """Draw one card for each device."""
    st.subheader("Attached", anchor=False)
    with st.grid(min_column_width=300, gap="small"):
        for device in report.devices:
            with st.container(border=True, height="stretch"):
                _card(device, sum(row[0] == device.id and row[2] for row in report.usable))
    if not any(device.kind in ("gpu", "tpu") for device in report.devices):
        st.caption("No GPU or TPU is attached. What they would do is estimated from the catalog and marked so.")


def _card(device: Device, able: int) -> None:
    st.markdown(f"{KINDS[device.kind]} **{plain(device.id)}** · {plain(device.name)}")
    sizes = [write.memory(device.memory_bytes)] if device.memory_bytes else []
    cores = [f"{device.cores} cores"] if device.cores else []
    count = f"{able} frameworks can use it" if able != 1 else "1 framework can use it"
    st.markdown(plain(" · ".join((*sizes, *cores, count))))
    if device.fault is not None:
        st.error(plain(device.fault.reason[:1].upper() + device.fault.reason[1:]), icon=":material/block:")
    for alert in hardware.alerts(device):
        st.warning(plain(alert), icon=":material/warning:")
    with st.expander("Details"):
        small_table(_rows(hardware.facts(device)), heads=False)


def _rows(facts: hardware.Facts) -> dict[str, object]:
    """Return the facts as a table's rows; Markdown reads `*` and `_` in them unless they are disarmed."""
    return {plain(name.capitalize() if name.islower() else name): plain(value) for name, value in facts}


def runtimes(report: service.DevicesReport) -> None:
    """Draw which runtime can use which device, the button that asks them, and what mends each no."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader("Frameworks", anchor=False, width="content")
        pressed = st.button("Ask every framework", icon=":material/quiz:", help="Starts each one; takes some seconds for each.")
    if pressed:
        _ask(report)
    versions = {runtime.id: ", ".join(f"{name} {version}" for name, version in runtime.versions) for runtime in report.runtimes}
    able: dict[str, list[str]] = {}
    for device, runtime, ok, _, _ in report.usable:
        if ok:
            able.setdefault(runtime, []).append(device)
    small_table(
        {
            "Framework": [plain(runtime) for runtime in able],
            "Can use": [plain(", ".join(devices)) for devices in able.values()],
            "Versions": [plain(versions.get(runtime, "")) for runtime in able],
        }
    )
    _views(report)
    _unable(report)


def _unable(report: service.DevicesReport) -> None:
    """Draw each reason once, with the runtimes and devices that it holds for, and the command that mends it."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for device, runtime, ok, reason, remedy in report.usable:
        if not ok:
            alike.setdefault((runtime, reason, remedy), []).append(device)
    joined: dict[tuple[str, str, str], list[str]] = {}
    for (runtime, reason, remedy), devices in alike.items():
        joined.setdefault((", ".join(devices), reason, remedy), []).append(runtime)
    if joined:
        st.subheader("What cannot be used, and what to do", anchor=False)
    for (devices, reason, remedy), names in joined.items():
        with st.container(border=True, gap="xsmall"):
            who = plain(", ".join(names))
            st.markdown(f":material/block: **{who}** on **{plain(devices)}**: {plain(reason)}")
            if remedy:
                st.code(remedy, language="bash", wrap_lines=True)


def _ask(report: service.DevicesReport) -> None:
    try:
        with st.spinner(f"Asking {service.questions(report)} times, two at a time. This takes some seconds for each."):
            st.session_state[ASKED] = service.asked(report)
    except TandemError as error:
        refuse(error)
        return
    st.rerun()


def _views(report: service.DevicesReport) -> None:
    """Draw what the frameworks said themselves, when they were asked."""
    if not report.views:
        return
    st.subheader("What each framework says itself", anchor=False)
    small_table(
        {
            "Framework": [plain(view.runtime) for view in report.views],
            "Asked for": [view.kind.upper() for view in report.views],
            "Sees": [plain(view.words or view.reason) for view in report.views],
            "Took": [write.seconds(view.seconds) for view in report.views],
        }
    )
    warned = [(view.runtime, line) for view in report.views for line in view.warnings]
    if warned:
        with st.expander("Their warnings"):
            for runtime, line in warned:
                st.markdown(f"**{plain(runtime)}**: {plain(line)}")
