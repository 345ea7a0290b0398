"""The tabs under an answer: what it is made of, what it rests on, what was left out. Only the open one is drawn."""

import streamlit as st

from core.run import Run
from pages.parts import tables
from pages.parts.charts import chart
from pages.parts.text import plain, tier_legend
from reports import facts

NAMES = ("Candidates", "Step time", "Memory", "Roofline", "Reasons", "Excluded", "Not known", "Measurements", "Facts")


def details(run: Run) -> None:
    """Draw the tabs of a finished run; the open one is `show` in the address."""
    wanted = st.query_params.get("show")
    if wanted is not None and wanted not in NAMES:
        st.warning(plain(f"The link asks for the tab “{wanted[:40]}”, which does not exist."), icon=":material/link_off:")
    drawers = (_candidates, _step_time, _memory, _roofline, _reasons, _excluded, _not_known, _measurements, _facts)
    for tab, draw in zip(st.tabs(NAMES, key="show", bind="query-params"), drawers, strict=True):
        if tab.open:
            with tab:
                draw(run)
    st.caption(tier_legend())


def _candidates(run: Run) -> None:
    chart(run, "candidates")
    tables.candidates_table(run)
    if run.recommendation is not None and run.recommendation.flips:
        st.markdown("##### What would change the choice")
        tables.flips_table(run)


def _step_time(run: Run) -> None:
    chart(run, "breakdown")
    tables.breakdown_table(run)


def _memory(run: Run) -> None:
    chart(run, "memory")
    tables.memory_table(run)


def _roofline(run: Run) -> None:
    chart(run, "roofline")
    tables.operations_table(run.workload)


def _reasons(run: Run) -> None:
    rows = facts.reason_rows(run)
    for row in rows:
        with st.container(border=True, gap="xsmall"):
            st.markdown(f"**{plain(row.effect.capitalize())}** · {plain(row.applies_to)}")
            st.markdown(plain(row.reason, 600))
            source = f"[{plain(row.source, 120)}](<{row.href}>)" if row.href else plain(row.source, 200)
            st.markdown(f":small[Source: {source}, as of {plain(row.as_of)} · rule {plain(row.rule)}, flag {plain(row.flag)}]")
    if not rows:
        st.caption("No rule had anything to say beyond what was excluded.")


def _excluded(run: Run) -> None:
    tables.excluded_table(run)


def _not_known(run: Run) -> None:
    tables.gaps_table(run)
    if facts.failure_rows(run):
        st.markdown("##### Probes that failed")
        tables.failures_table(run)
        with st.expander("What the failed workers said last"):
            for row in facts.failure_rows(run):
                st.caption(plain(f"{row.subject} in {row.runtime} on {row.device}"))
                st.code(row.stderr_tail or "nothing", language=None, wrap_lines=True)


def _measurements(run: Run) -> None:
    chart(run, "outcomes")
    tables.outcomes_table(run.outcomes)
    if run.actuals:
        st.markdown("##### Predictions held to account")
        tables.actuals_table(run)


def _facts(run: Run) -> None:
    sections = (
        ("Workload", facts.workload_facts(run)),
        ("Run", facts.run_facts(run)),
        ("Devices", facts.device_facts(run)),
        ("Versions", run.versions),
    )
    with st.grid(2, min_column_width=420, gap="large"):
        for title, rows in sections:
            with st.container(gap="small"):
                st.markdown(f"##### {title}")
                tables.small_table({plain(name): plain(value) for name, value in rows}, heads=False)
    st.markdown("##### The workload as a file")
    st.code(facts.document_text(run), language="json", wrap_lines=True)
