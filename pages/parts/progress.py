"""What a run is doing now: one flat fragment that reads the database and nothing else, and stops when the run ends."""

import streamlit as st

from core import format as write
from core.errors import TandemError
from core.run import Progress
from pages.parts.tables import outcomes_table
from pages.parts.text import age, plain, refuse
from services import runs

EVERY_S = 1.5
RECENT = 12
QUIET_S = 10.0
"""A run beats every 2 s; after five missed beats the page says so."""


@st.fragment(run_every=EVERY_S)
def live_progress(run_id: str, shown_state: str) -> None:
    """Draw the progress of a run; when its state is no longer the one that the page shows, run the whole page again.

    Args:
        run_id: a run that has not ended.
        shown_state: the state in the heading of the page.
    """
    try:
        now = runs.watch(run_id, recent=RECENT)
    except TandemError as error:
        refuse(error)
        return
    if now.state != shown_state:
        st.rerun()
    _where_it_stands(now.state, now.progress, now.age_s)
    _figures(now.progress)
    if now.cancel_asked:
        st.info("Cancelling: the probe that runs now is stopped; everything measured so far is kept.", icon=":material/cancel:")
    else:
        st.button(
            "Cancel",
            icon=":material/stop_circle:",
            key="cancel",
            on_click=_cancel,
            args=(run_id,),
            help="Stops the measuring processes. What was measured is kept.",
        )
    if now.recent:
        st.markdown(
            f"##### Measured so far: {now.answered}" + (f", the last {RECENT} are shown" if now.answered > RECENT else "")
        )
        outcomes_table(now.recent)


def _where_it_stands(state: str, progress: Progress, age_s: float) -> None:
    share = progress.done / progress.total if progress.total else 0.0
    words = "Waiting for its process to start" if state == "queued" else plain(progress.stage[:1].upper() + progress.stage[1:])
    if progress.total:
        words += f": {progress.done} of {progress.total} probes answered"
    st.progress(min(share, 1.0), text=words)
    if progress.place > 0:
        st.info("Another run measures on this device; this one begins when its turn comes.", icon=":material/hourglass_top:")
    if age_s > QUIET_S and state == "running":
        st.warning(
            f"Last sign of life {age(age_s)}. If its process has died, the run is marked as interrupted and keeps what it had.",
            icon=":material/heart_broken:",
        )
    st.markdown(f"**Now:** {plain(progress.current) or write.MISSING}")
    st.markdown(f"**Just measured:** {plain(progress.last) or write.MISSING}")


def _figures(progress: Progress) -> None:
    with st.grid(min_column_width=140, gap="small"):
        st.metric("Answered", f"{progress.done} of {progress.total}" if progress.total else write.MISSING)
        st.metric("Elapsed", write.seconds(round(progress.elapsed_s)))
        st.metric("Remaining, about", write.seconds(None if progress.remaining_s is None else round(progress.remaining_s)))


def _cancel(run_id: str) -> None:
    try:
        runs.cancel(run_id)
    except TandemError as error:
        refuse(error)
