"""Pieces of the first screen: options of a run, the instant answer, and the button that starts measuring."""

import json
from contextlib import suppress
from typing import Any

import streamlit as st

from core import format as write
from core.errors import TandemError
from core.run import Run, RunOptions
from core.workload import OBJECTIVES, Workload
from pages.parts import link
from pages.parts.answer import unsaved
from pages.parts.text import plain, refuse, state_label
from reports import facts
from services import advice, devices, runs, workloads
from services.pools import echoes

POOLS = {"all": "Anything in the catalog", "attached": "Only this machine", "named": "Pools I name"}
DEPTHS = {"quick": "Quick", "settle": "Until settled"}
BUDGETS_S = (10, 3600, 300)
"""Least, most and usual seconds of probing."""


def first_visit() -> None:
    """Say what happens next, and show the last runs when there are any."""
    with st.grid(3, min_column_width=240, gap="small"):
        for title, icon, text in (
            (
                "Describe",
                ":material/edit_note:",
                "A preset, or your own model as a few lines of YAML: task, batch, length, data type.",
            ),
            (
                "Measure",
                ":material/speed:",
                "Its own layers run here, in each framework that is installed, with progress you can watch and stop.",
            ),
            (
                "Decide",
                ":material/fact_check:",
                "One sentence, a band on each number, the reasons with sources, and a report to take away.",
            ),
        ):
            with st.container(border=True, height="stretch"):
                st.markdown(f"{icon} **{title}**")
                st.markdown(text)
    rows = runs.history(limit=3)
    if rows:
        st.markdown("##### Last runs")
    for row in rows:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.page_link("pages/run.py", label=plain(row.name, 60), query_params={"id": row.id})
            st.caption(f"{state_label(row.state)} · {plain(row.best or write.MISSING)}", width="content")


def options(workload: Workload) -> RunOptions:
    """Return how the run is asked for, out of the address; the widgets that change it are drawn by the other pieces."""
    least, most, usual = BUDGETS_S
    pools = link.text("pools") or "all"
    return RunOptions(
        link.chosen("probe", tuple(DEPTHS), "quick"),
        float(link.number("budget", least, most, usual)),
        tuple(link.several("runtime", installed())),
        pools,
        link.chosen("objective", OBJECTIVES, workload.objective),
    )


def installed() -> tuple[str, ...]:
    """Return the ids of the runtimes that can be started here."""
    return tuple(runtime.id for runtime in device_report().runtimes if runtime.installed)


@st.cache_data(ttl=60, max_entries=1, show_spinner="Looking at this machine …")
def device_report() -> devices.DevicesReport:
    """Return what is attached and what could use it; looked up again after a minute."""
    return devices.report()


def instant_run(given: workloads.Understood, chosen: RunOptions) -> Run:
    """Return the answer from the catalog and from stored measurements, shown as a run that was not stored."""
    recommendation = _instant(json.dumps(given.document, sort_keys=True, default=str), chosen, given.document)
    return unsaved(given.workload, given.document, chosen, recommendation)


@st.cache_data(ttl=20, max_entries=64, show_spinner="Reading the catalog and stored measurements …")
def _instant(stamp: str, chosen: RunOptions, _document: dict[str, Any]) -> Any:  # noqa: ARG001  (the cache knows the document by it)
    return advice.instant(_document, chosen)


def describe(given: workloads.Understood) -> None:
    """Draw what was understood in one line of figures."""
    workload = given.workload
    sizes = given.batch_words + (f" × {workload.length:,}" if workload.length else "")
    st.markdown(
        f"**{plain(workload.name, 80)}** · {workload.task} · {sizes} · {workload.dtype} · "
        f"{write.count(workload.parameter_count)} parameters · {write.count(workload.flop_per_step, 'FLOP')} a step"
    )


def objective_and_pools(chosen: RunOptions) -> None:
    """Draw what to rank for and where it may run."""
    kind = chosen.pools if chosen.pools in POOLS else "named"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            "Rank for",
            OBJECTIVES,
            format_func=str.capitalize,
            required=True,
            key=link.follow("objective", chosen.objective),
            on_change=link.write("objective"),
        )
        st.selectbox(
            "Where", tuple(POOLS), format_func=POOLS.__getitem__, key=link.follow("where", kind), on_change=_take_where, width=240
        )
        if kind == "named":
            st.text_input(
                "Pools",
                key=link.follow("pools", chosen.pools),
                on_change=link.write("pools"),
                width=320,
                placeholder="h100-sxm=8,tpu-v6e=16",
                help="Accelerators with counts of chips, parted by commas; other names, such as v5p-8 or A100-80GB:8, will do",
            )
    if kind == "named":
        _echo(chosen.pools)


def _echo(asked: str) -> None:
    """Draw what the names of pools were understood as; a name that cannot be understood is told where the answer would be."""
    with suppress(TandemError):
        for said in echoes(asked):
            st.caption(plain(said, 300))


def probe_this_machine(given: workloads.Understood, chosen: RunOptions) -> None:
    """Draw the button that starts measuring, with what to measure and for how long."""
    with st.container(border=True):
        st.markdown("**Be surer: measure it here.** Each layer of this workload is timed in each framework on this machine.")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if st.button("Probe this machine", type="primary", icon=":material/speed:"):
                _start(given, chosen)
            with st.popover("Options", icon=":material/settings:"):
                _probe_options(chosen)
            picked = ", ".join(chosen.runtimes) or f"all {len(installed())} installed frameworks"
            st.caption(
                plain(f"{picked} · at most {chosen.budget_s:.0f} s · {DEPTHS[chosen.probe].lower()}", 200), width="content"
            )


def same_command(text: str, run: Run) -> None:
    """Draw the command line that asks the same, and the workload as a file."""
    with st.expander("The same from a terminal", icon=":material/terminal:"):
        is_preset = "doc" not in st.query_params and "set" not in st.query_params
        st.code(facts.command(run, text if is_preset else "workload.json"), language="bash", wrap_lines=True)
        st.caption("The workload as a file; save it as workload.json or change it and paste it above")
        st.code(facts.document_text(run), language="json", wrap_lines=True)


def _probe_options(chosen: RunOptions) -> None:
    least, most, _ = BUDGETS_S
    st.pills(
        "Frameworks to measure; none picked means all",
        installed(),
        selection_mode="multi",
        key=link.follow("runtime", list(chosen.runtimes)),
        on_change=link.write("runtime"),
    )
    st.segmented_control(
        "How far",
        tuple(DEPTHS),
        format_func=DEPTHS.__getitem__,
        required=True,
        key=link.follow("probe", chosen.probe),
        on_change=link.write("probe"),
        help="Until settled: goes on until more measuring would hardly change the choice",
    )
    st.number_input(
        "Seconds of measuring, at most",
        least,
        most,
        step=10,
        key=link.follow("budget", int(chosen.budget_s)),
        on_change=link.write("budget"),
    )


def _take_where() -> None:
    kind = st.session_state["where"]
    link.put("pools", {"all": None, "attached": "attached"}.get(kind, "h100-sxm=8,tpu-v6e=16"))


def _start(given: workloads.Understood, chosen: RunOptions) -> None:
    try:
        run_id = runs.start(given.document, chosen)
    except TandemError as error:
        refuse(error)
        return
    st.switch_page("pages/run.py", query_params={"id": run_id})
