"""The answer: one sentence and how sure, why, what it rests on; three places side by side; what was assumed.

Everything here is drawn from a `Run`. An instant answer is shown as a run that was never stored, so both read the same.
"""

import json
from collections.abc import Mapping
from typing import Any

import streamlit as st

from core import format as write
from core.advice import Recommendation
from core.run import Progress, Run, RunOptions
from core.workload import Workload
from pages.parts.text import TIER_COLOR, plain, tier_label
from reports import standing, view

EVIDENCE_SHOWN = 4


def unsaved(workload: Workload, document: Mapping[str, Any], options: RunOptions, recommendation: Recommendation) -> Run:
    """Return an instant answer as a run without an id, so that it is shown like any other."""
    return Run(
        "",
        "",
        None,
        "done",
        json.dumps(document, sort_keys=True, default=str),
        options,
        workload,
        (),
        (),
        recommendation,
        Progress("finished"),
        (),
        "",
        "",
    )


def show_answer(run: Run) -> None:
    """Draw the three sentences, and how sure the first one is."""
    said = view.headline(run)
    st.header(plain(said.sentence, 600), anchor=False)
    advice = run.recommendation
    if advice is not None and advice.best is not None and advice.best.misses:
        _targets_badge(said.best)
    if advice is not None and advice.confidence is not None and advice.best is not None:
        sure = advice.confidence.p_best
        with st.container(horizontal=True, gap="xsmall"):
            st.badge(
                standing.standing_text(advice, sure),
                icon=":material/target:",
                color="green" if sure >= 0.8 else "blue" if sure >= 0.5 else "orange",
            )
            st.badge(
                f"{write.percent(advice.confidence.expected_regret)} expected loss against the true best",
                color="gray",
                help="What choosing it is expected to cost, as a share of the objective, averaged over what is not known",
            )
            _targets_badge(said.best)
            if advice.equal:
                tied = plain("; ".join(advice.equal), 600)
                st.badge(standing.ties_title(advice), icon=":material/balance:", color="orange", help=tied)
    st.markdown(f"**Why:** {plain(said.why, 600)}")
    st.markdown(f"**Rests on:** {plain(said.rests_on, 600)}")
    if said.best is not None and said.best.price:
        st.caption(plain(f"Price: {said.best.price}", 400))


def _targets_badge(best: view.CandidateRow | None) -> None:
    """Draw whether the choice meets the targets, where there are any."""
    if best is not None and best.targets:
        met = best.targets.startswith("met")
        text = f"Targets {best.targets}" if met else "Misses the targets"
        st.badge(plain(text, 160), icon=":material/flag:", color="blue" if met else "red", help=plain(best.targets, 600))


def show_places(run: Run) -> None:
    """Draw the attached machine, the best GPU pool and the best TPU pool side by side."""
    with st.grid(3, min_column_width=240, gap="small"):
        for side in view.side_by_side(run):
            with st.container(border=True, height="stretch", gap="xsmall"):
                if side.row is None:
                    st.caption(side.title)
                    st.markdown(plain(_why_empty(side, run), 400))
                else:
                    _place(side.title, side.row, run.workload)


def _side_of(accelerator: str) -> str:
    if ":" in accelerator:
        return "This machine"
    return "TPU pool" if accelerator.startswith("tpu-") else "GPU pool"


def _why_empty(side: view.SideColumn, run: Run) -> str:
    every = run.recommendation.excluded if run.recommendation else ()
    excluded = [row for row in every if row.accelerator and _side_of(row.accelerator) == side.title]
    if not excluded:
        return side.note[:1].upper() + side.note[1:] + "."
    others = f" {len(excluded) - 1} more are listed as excluded." if len(excluded) > 1 else ""
    return f"Nothing here can run it. {excluded[0].runtime} on {excluded[0].accelerator}: {excluded[0].reason}.{others}"


def show_assumptions(workload: Workload, where: str) -> None:
    """Draw what Tandem filled in, one chip each.

    Args:
        where: how to change them, one short phrase.
    """
    if workload.assumptions:
        with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
            st.caption("Assumed", width="content", help=where)
            for assumption in workload.assumptions:
                st.badge(plain(assumption, 120), color="gray")


def figures(row: view.CandidateRow, workload: Workload) -> tuple[tuple[str, view.Figure], ...]:
    """Return the numbers of one candidate by name, each with what it is counted for."""
    amount = workload.amount
    return (
        ("Step time", row.step_time),
        ("Throughput", row.throughput),
        ("Memory per chip", row.memory),
        ("Compile time", row.compile),
        (f"Cost, {amount}", row.cost),
        (f"Energy, {amount}", row.energy),
        *((name.capitalize(), found) for name, found in row.further),
    )


def _place(title: str, row: view.CandidateRow, workload: Workload) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(title, width="content")
        if row.mark == "✔":
            st.badge("Chosen", icon=":material/check:", color="green")
        elif row.mark:
            st.badge("As good", icon=":material/balance:", color="orange")
    st.markdown(f"**{plain(row.label)}**")
    further = {name: found.text for name, found in row.further}
    answered = dict(row.further).get(view.NEARLY_ALL_WITHIN)
    leading = answered or row.step_time
    st.metric("99 of 100 requests answered within" if answered else "Step time", leading.text)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if leading.band:
            st.caption(leading.band, width="content", help="Its 80 % band: meant to hold the truth four times in five")
        st.badge(tier_label(row.tier), color=TIER_COLOR.get(row.tier, "gray"))
    if row.rank is None:
        st.markdown(plain(row.missing[0] if row.missing else "It was not measured yet.", 160))
    lines = (
        *((("Serves at most", further.get(view.MOST_SERVED, view.UNKNOWN)), ("Step", row.step_time.full)) if answered else ()),
        ("Throughput", row.throughput.text),
        ("Memory a chip", f"{row.memory_text}, {row.fits}"),
        (f"Cost, {workload.amount}", row.cost.text),
        ("Split", row.plan),
        *((("Model FLOPs utilisation", further[view.UTILISATION]),) if view.UTILISATION in further else ()),
        *((("Targets", row.targets),) if row.targets else ()),
    )
    st.markdown("  \n".join(f"{name}: {plain(text)}" for name, text in lines if row.rank or text != view.UNKNOWN))
    with st.popover("From where?", type="tertiary", icon=":material/fact_check:", key=f"where:{title}"):
        for name, figure in figures(row, workload):
            _evidence(name, figure)
        for phrase in row.missing:
            st.caption("Missing: " + plain(phrase))


def _evidence(name: str, figure: view.Figure) -> None:
    st.markdown(f"**{name}** {plain(figure.full)} · {tier_label(figure.tier)}")
    if figure.evidence:
        rest = len(figure.evidence) - EVIDENCE_SHOWN
        st.caption(plain("; ".join(figure.evidence[:EVIDENCE_SHOWN]) + (f" and {rest} more" if rest > 0 else ""), 500))
