"""A split that is run for real: the button, its progress, and what was measured beside what was planned."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from core import format as write
from core.errors import TandemError
from core.run import FINAL_STATES, Progress, Run
from core.split import Split, SplitOptions, Verified
from pages.parts import link
from pages.parts import split as parts
from pages.parts.run import heading
from pages.parts.split_form import Asked
from pages.parts.tables import small_table
from pages.parts.text import age, plain, refuse
from reports import split_run_text as text
from reports.charts import split_verified
from reports.split_command import command
from reports.split_text import course_title, percent
from services import runs, split

EVERY_S = 1.5
QUIET_S = 10.0
"""A run beats every 2 s; after five missed beats the page says so."""
SIDES = 2


def run_here(document: dict[str, Any], now: Asked, found: Split) -> None:
    """Draw the button that runs the plan where it has two pools and both are attached; else say what would be needed."""
    if len(found.singles) != SIDES or not all(one.pool.attached for one in found.singles):
        st.caption(
            "A plan can be run for real where it has two pools and both are attached to this machine, also the same device twice "
            "with two frameworks (`cpu:0@jax` and `cpu:0@torch-eager`), or reached through a Ray cluster (`ray:GPU@jax`)."
        )
        return
    with st.container(border=True):
        st.markdown(
            "**Prove it: run this plan here.** Each side in a process of its own; every result is compared with one side alone."
        )
        if st.button("Run it here", type="primary", icon=":material/play_arrow:"):
            try:
                run_id = split.start(document, replace(now.options, verify=True), now.objective)
            except TandemError as error:
                refuse(error)
            else:
                st.switch_page("pages/split.py", query_params={"id": run_id})


def same_command(name: str, document: dict[str, Any], now: Asked) -> None:
    """Draw the command line that asks the same, and the workload as a file.

    Args:
        name: a preset, or `workload.json`.
        document: of the workload.
        now: what is asked for.
    """
    with st.expander("The same from a terminal", icon=":material/terminal:"):
        st.code(command(name, now.options, now.objective), language="bash", wrap_lines=True)
        st.caption("The workload as a file; save it as workload.json or change it and paste it above")
        st.code(json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True, default=str), language="json", wrap_lines=True)


def kept(run_id: str) -> None:
    """Draw a kept run: what it is doing, or what came of it.

    Raises:
        NotFound: no such run.
    """
    run = runs.open_run(run_id)
    heading(run)
    if run.state not in FINAL_STATES:
        live(run.id, run.state, run.created_at)
        return
    _ended(run)
    if run.split is None:
        st.caption("This run has no split.")
        st.page_link("pages/run.py", label="Open it as a run", icon=":material/speed:", query_params={"id": run.id})
        return
    if run.split.verified is not None:
        measured(run.split.split, run.split.verified)
    parts.answer(run.split.split)
    parts.metrics(run.split.split, run.workload)
    parts.details(run.split.split, run.workload, timed=run.split.verified is None)
    _again(run)


@st.fragment(run_every=EVERY_S)
def live(run_id: str, shown_state: str, asked_at: str) -> None:
    """Draw the progress of a run; when its state is no longer the one that the page shows, run the whole page again.

    Args:
        run_id: a run that has not ended.
        shown_state: the state in the heading of the page.
        asked_at: UTC, ISO 8601.
    """
    try:
        now = runs.watch(run_id, recent=0)
    except TandemError as error:
        refuse(error)
        return
    if now.state != shown_state:
        st.rerun()
    elapsed_s = (datetime.now(UTC) - datetime.fromisoformat(asked_at)).total_seconds()
    _where_it_stands(now.state, now.progress, now.age_s, elapsed_s)
    if now.cancel_asked:
        st.info("Cancelling: both sides are stopped; what was measured is kept.", icon=":material/cancel:")
    else:
        st.button(
            "Cancel",
            icon=":material/stop_circle:",
            key="cancel",
            on_click=_cancel,
            args=(run_id,),
            help="Stops both sides. What was measured is kept.",
        )


def measured(planned: Split, found: Verified) -> None:
    """Draw what was measured beside what was planned."""
    st.header("Run here: measured beside planned", anchor=False)
    st.markdown(plain(text.verified_sentence(replace(found, ended="")), 600))
    if found.ended:
        st.warning(plain(f"It ended early: {found.ended}", 500), icon=":material/warning:")
    if found.step_s:
        _figures(found)
        _paces(found)
    end = max((bar.stop_s for bar in (*planned.timeline, *found.timeline)), default=0.0)
    if planned.timeline:
        parts.timeline(planned.timeline, f"{course_title(found.mode)}, planned", "beside", end)
    if found.timeline:
        parts.timeline(found.timeline, f"{course_title(found.mode)}, measured", "measured", end)
    _checks(found)
    st.header("The plan", anchor=False)


def _paces(found: Verified) -> None:
    spec = _spec(found, "dark" if st.context.theme.type == "dark" else "light")
    if spec is not None:
        st.vega_lite_chart(spec=spec, theme=None, width="stretch", key="split:verified")  # pyright: ignore[reportUnknownMemberType]
    rows = text.pace_rows(found)
    small_table(
        {
            "": [plain(row.label) for row in rows],
            "Step": [row.figure.full for row in rows],
            "Off by": [row.off or write.MISSING for row in rows],
        }
    )


def _figures(found: Verified) -> None:
    median, rows = text.measured_step(found), text.pace_rows(found)
    off = next(row.off for row in rows if row.what == "measured")
    held = sum(one.holds for one in found.checks)
    with st.grid(4, min_column_width=170, gap="small"):
        st.metric(
            "Step, measured",
            write.seconds(None if median is None else median.mid),
            f"{off} off plan" if off else None,
            delta_color="off",
            border=True,
            height="stretch",
            chart_data=list(found.step_s) or None,
        )
        against = text.against_alone(found)
        lost = against is not None and against[1] < 0
        saved = write.MISSING if against is None else percent(abs(against[1]))
        st.metric(
            "Loses by, against one side alone" if lost else "Saves, against one side alone",
            plain(saved),
            border=True,
            height="stretch",
            help=None if against is None else plain(f"{against[0]} is the quicker one alone"),
        )
        st.metric(
            "Comparisons that hold",
            f"{held} of {len(found.checks)}" if found.checks else write.MISSING,
            border=True,
            height="stretch",
        )
        if found.losses:
            went = f"{found.losses[-1] - found.losses[0]:+.3g} in {len(found.losses)} steps"
            st.metric(
                "Loss",
                f"{found.losses[-1]:.4g}",
                went,
                delta_color="inverse",
                border=True,
                height="stretch",
                chart_data=list(found.losses),
                help=plain(text.loss_text(found)) or None,
            )


def _checks(found: Verified) -> None:
    rows = text.check_rows(found)
    if not rows:
        st.caption("Nothing was compared.")
        return
    st.markdown("##### Compared with one side alone")
    small_table(
        {
            "": [row.mark for row in rows],
            "What": [plain(row.what) for row in rows],
            "Relative difference": [row.difference for row in rows],
            "Allowed": [row.tolerance for row in rows],
        }
    )
    shares = ", ".join(f"{side} {percent(part)}" for side, part in zip(found.sides, found.shares, strict=False))
    st.caption(plain(f"Shares: {shares}. Link: {text.link_text(found.link)}.", 300))


def _where_it_stands(state: str, progress: Progress, age_s: float, elapsed_s: float) -> None:
    share = progress.done / progress.total if progress.total else 0.0
    words = "Waiting for its process to start" if state == "queued" else plain(progress.stage[:1].upper() + progress.stage[1:])
    st.progress(min(share, 1.0), text=words + (f": {progress.done} of {progress.total}" if progress.total else ""))
    if progress.place > 0:
        st.info("Another run measures on this device; this one begins when its turn comes.", icon=":material/hourglass_top:")
    if age_s > QUIET_S and state == "running":
        words = f"Last sign of life {age(age_s)}. If its process has died, the run is marked as interrupted."
        st.warning(words, icon=":material/heart_broken:")
    for title, words in (("Now", progress.current), ("Just measured", progress.last)):
        if words:
            st.markdown(f"**{title}:** {plain(words)}")
    with st.grid(min_column_width=140, gap="small"):
        st.metric("Since it was asked", write.seconds(round(elapsed_s)))
        if progress.remaining_s is not None:
            st.metric("Remaining, about", write.seconds(round(progress.remaining_s)))


def _cancel(run_id: str) -> None:
    try:
        runs.cancel(run_id)
    except TandemError as error:
        refuse(error)


def _ended(run: Run) -> None:
    kept_words = "What was measured is kept."
    if run.state == "failed":
        st.error(plain(f"{run.error or 'The run failed.'} {kept_words}", 500), icon=":material/error:")
    elif run.state == "interrupted":
        st.warning(plain(f"{run.error or 'Its process ended before its time.'} {kept_words}", 500), icon=":material/warning:")
    elif run.state == "cancelled":
        st.info(plain(f"Cancelled. {kept_words}"), icon=":material/cancel:")


def _again(run: Run) -> None:
    options: SplitOptions | None = run.options.split
    if options is None:
        return
    with st.expander("The same from a terminal", icon=":material/terminal:"):
        st.code(command("workload.json", options, run.options.objective), language="bash", wrap_lines=True)
        st.caption("The workload as a file, to be saved as workload.json")
        st.code(
            json.dumps(json.loads(run.document), indent=2, ensure_ascii=False, sort_keys=True), language="json", wrap_lines=True
        )
    packed = link.pack(run.document)
    if packed is not None:
        query: list[tuple[str, str]] = [("doc", packed), *(("pool", pool) for pool in options.pools)]
        for name, value in (("mode", options.mode), ("objective", run.options.objective or "")):
            query += [(name, value)] if value else []
        if options.link_bytes_per_s is not None:
            query.append(("gbps", f"{options.link_bytes_per_s * 8e-9:.6g}"))
        if options.link_latency_s is not None:
            query.append(("latency_ms", f"{options.link_latency_s * 1e3:.6g}"))
        query.append(("saving", f"{100 * options.least_saving:.0f}"))
        st.page_link("pages/split.py", label="Change something and plan again", icon=":material/tune:", query_params=query)


@st.cache_data(max_entries=64, show_spinner=False)
def _spec(found: Verified, theme: str) -> dict[str, Any] | None:
    drawn = split_verified.verified(found, theme)
    return None if drawn is None else drawn.to_dict()
