"""Environments of their own: what can be built, how far a build is, and removing one."""

from time import monotonic
from typing import Literal

import streamlit as st

from core import format as write
from core.errors import TandemError
from pages.parts.ask import device_report
from pages.parts.text import plain, refuse
from services import runtimes as service

EVERY_S = 2.0
UNSEEN_S = 30.0
"""After which a build that was never seen to run has ended; its log says how."""
WORDS: dict[str, tuple[str, Literal["green", "blue", "gray"]]] = {
    "ready": ("Ready", "green"), "building": ("Building", "blue"), "absent": ("Not built", "gray"),
}


def environments() -> None:
    """Draw every environment of its own; while one is built, how far it is."""
    st.subheader("Environments of their own", anchor=False)
    st.caption("For frameworks whose packages conflict with Tandem's, and for accelerators. Built whole or not at all.")
    building = tuple(one.id for one in service.environments() if one.state == "building" or one.id in _started())
    st.fragment(_cards, run_every=EVERY_S if building else None)(building)


def _started() -> dict[str, float]:
    """Return the environments whose build this visit started and that have not been seen to run yet, and when that was."""
    return st.session_state.setdefault("environments_started", {})


def _cards(shown_building: tuple[str, ...]) -> None:
    found = service.environments()
    for one in found:
        if one.state != "absent" or monotonic() - _started().get(one.id, 0.0) > UNSEEN_S:
            _started().pop(one.id, None)
    if any(one.id in shown_building and one.state != "building" and one.id not in _started() for one in found):
        device_report.clear()
        st.rerun()
    with st.grid(min_column_width=300, gap="small"):
        for one in found:
            with st.container(border=True, height="stretch", gap="xsmall"):
                _card(one)


def _card(one: service.EnvironmentState) -> None:
    word, color = WORDS[one.state]
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**{plain(one.id)}**")
        st.badge(word, color=color)
    st.caption(plain(f"For {', '.join(one.runtimes)}. {one.notes[:1].upper()}{one.notes[1:]}."))
    if one.state == "ready":
        st.caption(plain(f"{write.count(one.size_bytes, 'B')}, built in {write.seconds(one.build_s)}"))
        if st.button("Remove", key=f"remove:{one.id}", icon=":material/delete:"):
            _remove(one.id)
    elif one.state == "building" or one.id in _started():
        st.caption(plain(f"Now: {one.last}" if one.last else "Starting"))
    else:
        if one.last:
            st.caption(plain(f"The last build ended with: {one.last}", 400))
        asks = one.obstacle or f"Asks for {write.count(one.disk_bytes, 'B')} of free space"
        if st.button(
            "Build", key=f"build:{one.id}", icon=":material/download:", help=plain(asks, 400), disabled=bool(one.obstacle)
        ):
            _build(one.id)


def _build(name: str) -> None:
    try:
        service.install_in_background(name)
    except TandemError as error:
        refuse(error)
    else:
        _started()[name] = monotonic()
        st.rerun()


def _remove(name: str) -> None:
    try:
        service.remove(name)
    except TandemError as error:
        refuse(error)
    else:
        device_report.clear()
        st.rerun()
