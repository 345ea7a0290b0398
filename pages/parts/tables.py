"""Tables: every chart has its twin here, sortable, searchable and downloadable; unknown is a dash, never zero.

Rows come from `reports`, so a number reads the same on the page and in the report; only what must sort is passed as a number.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core import format as write
from core.advice import Estimate
from core.device import Pool
from core.probe import Measurement, Outcome
from core.run import Run
from core.workload import Workload
from pages.parts import picks
from pages.parts.text import tier_label
from reports import facts, view

ROW_PX = 35
ROWS_SHOWN = 12
LINES_PX = 68
"""A row of three lines, for tables of sentences; Streamlit wraps text in rows that are higher than 64 pixels."""
NAMES_SHOWN = 6
PARTS_OF = 24
"""Candidates whose parts are listed; the same ones that the charts draw first."""
Columns = dict[str, Any]


def small_table(columns: Mapping[str, object], heads: bool = True) -> None:
    """Draw a few rows as a plain table, which reads aloud and prints.

    Args:
        columns: cells by heading, each already fit for Markdown; without heads, one value for each name.
        heads: whether the first line names the columns.
    """
    st.table(  # pyright: ignore[reportUnknownMemberType]
        columns, border="horizontal", hide_index=heads, hide_header=not heads
    )


def candidates_table(run: Run) -> None:
    """Draw all feasible candidates, best first, the chosen one marked; those that lack a step time come last."""
    config, amount = st.column_config, run.workload.amount
    labels = picks.labels_of(run)
    key = picks.follow_rows("candidates", labels, picks.checked(run))
    prices = [_hourly(estimate.candidate.pools) for estimate in _estimates(run)]
    rows = [_candidate(row, price) for row, price in zip(view.candidate_rows(run), prices, strict=True)]
    _table(
        rows,
        "Candidates with step time, band, memory and cost, best first",
        {
            "mark": config.TextColumn("Chosen", width="small", help="✔ chosen, ≈ cannot be told apart from it"),
            "runtime": config.TextColumn("Framework"),
            "where": config.TextColumn("On"),
            "step": config.NumberColumn("Step time (s)", format="%.4g"),
            "band": config.TextColumn("80 % band", help="Meant to hold the truth four times in five"),
            "tier": config.TextColumn("Rests on"),
            "library": config.TextColumn("As run by", help="Whose published programs, tuned by their authors"),
            "cost": config.NumberColumn(f"Cost, {amount} ($)", format="%.4g"),
            "hourly": config.NumberColumn("Price per hour ($)", format="%.2f", help="Of the whole pool"),
            "rate": config.NumberColumn(f"{run.workload.unit.capitalize()}/s", format="localized"),
            "memory": config.TextColumn("Memory a chip"),
            "fits": config.TextColumn("Fits"),
            "targets": config.TextColumn("Targets"),
            "held": config.TextColumn("Rank by rules", help="Factor by which rules lower its rank; figures are without it"),
            "plan": config.TextColumn("Split"),
            "energy": config.NumberColumn(f"Energy, {amount} (kWh)", format="%.4g"),
            "compile": config.NumberColumn("Compile (s)", format="%.3g"),
            "missing": config.TextColumn("Missing"),
        },
        key=key,
        on_select=picks.from_rows(key, labels),
    )


def breakdown_table(run: Run) -> None:
    """Draw where the step time of each ranked candidate goes."""
    rows = [
        {
            "label": row.label,
            "term": row.term,
            "block": row.block or None,
            "seconds": _mid(row.time),
            "share": row.share,
            "band": row.time.band or None,
            "tier": tier_label(row.time.tier),
        }
        for e in view.shortlist(_ranked(run), PARTS_OF)
        for row in view.share_rows(e)
    ]
    _table(
        rows,
        "Parts of the step time",
        {
            "label": "Candidate",
            "term": "Part",
            "block": "Block",
            "seconds": st.column_config.NumberColumn("Seconds", format="%.4g"),
            "share": "Share",
            "band": "80 % band",
            "tier": "Rests on",
        },
    )


def memory_table(run: Run) -> None:
    """Draw what fills the memory of one chip, for each candidate, in GiB."""
    rows = [
        {
            "label": e.candidate.label,
            "part": name,
            "gib": size / 2**30,
            "capacity": None if e.capacity_bytes is None else e.capacity_bytes / 2**30,
        }
        for e in view.shortlist(_estimates(run), PARTS_OF)
        for name, size in e.memory_parts
    ]
    _table(
        rows,
        "Parts of the memory of one chip",
        {
            "label": "Candidate",
            "part": "Part",
            "gib": st.column_config.NumberColumn("GiB", format="%.3g"),
            "capacity": st.column_config.NumberColumn("Capacity (GiB)", format="%.1f"),
        },
    )


def operations_table(workload: Workload) -> None:
    """Draw the operations of each block with their arithmetic and traffic, over a whole step."""
    rows = [
        {
            "block": block.name,
            "op": op.kind,
            "phase": op.phase,
            "shape": " x ".join(map(str, op.dims)),
            "count": op.count * block.repeats,
            "gflop": op.flop * block.repeats / 1e9,
            "mb": (op.bytes_read + op.bytes_written) * block.repeats / 1e6,
        }
        for block in workload.blocks
        for op in (*block.ops_forward, *(block.ops_backward if workload.trains else ()))
    ]
    number = st.column_config.NumberColumn
    _table(
        rows,
        "Operations of the workload",
        {
            "block": "Block",
            "op": "Operation",
            "phase": "Phase",
            "shape": "Shape",
            "count": number("Times a step"),
            "gflop": number("GFLOP a step", format="%.4g"),
            "mb": number("MB a step", format="%.4g"),
        },
    )


def excluded_table(run: Run) -> None:
    """Draw what was excluded, by which rule, and where that can be read."""
    text = st.column_config.TextColumn
    _sentences(
        [
            {
                "about": _first(r.applies_to.split(", ")),
                "reason": r.reason,
                "rule": r.rule,
                "flag": r.flag,
                "source": r.source,
                "href": r.href or None,
            }
            for r in facts.excluded_rows(run)
        ],
        "Excluded candidates with the reason",
        {
            "about": text("About", width="medium"),
            "reason": text("Reason", width="large"),
            "rule": "Rule",
            "flag": "Flag",
            "source": text("Source", width="medium"),
            "href": st.column_config.LinkColumn("Read", display_text="open"),
        },
    )


def gaps_table(run: Run) -> None:
    """Draw what is not known and what would tell."""
    _sentences(
        [{"what": r.what, "remedy": r.remedy, "cost": None if r.cost == view.UNKNOWN else r.cost} for r in facts.gap_rows(run)],
        "What is not known",
        {
            "what": st.column_config.TextColumn("Not known", width="large"),
            "remedy": st.column_config.TextColumn("What would tell", width="large"),
            "cost": "Takes",
        },
    )


def failures_table(run: Run) -> None:
    """Draw the probes that were not answered, with stage and reason."""
    _sentences(
        [
            {
                "subject": r.subject,
                "runtime": r.runtime,
                "device": r.device,
                "stage": r.stage,
                "error": r.error,
                "exit": None if r.exit_code == view.UNKNOWN else r.exit_code,
            }
            for r in facts.failure_rows(run)
        ],
        "Probes that failed",
        {
            "subject": "What",
            "runtime": "Framework",
            "device": "On",
            "stage": "Stage",
            "error": st.column_config.TextColumn("Reason", width="large"),
            "exit": "Exit code",
        },
    )


def flips_table(run: Run) -> None:
    """Draw the smallest changes that change the choice."""
    _sentences(
        [dict(zip(("what", "now", "at", "winner"), row, strict=True)) for row in facts.flip_rows(run)],
        "What would change the choice",
        {"what": "If this changes", "now": "Now", "at": "Changes at", "winner": "Then choose"},
    )


def actuals_table(run: Run) -> None:
    """Draw what really happened beside what was said."""
    _table(
        [
            {
                "label": r.label,
                "actual": r.actual,
                "predicted": r.predicted,
                "error": r.error,
                "inside": r.inside_band,
                "note": r.note or None,
            }
            for r in facts.actual_rows(run)
        ],
        "Predictions held to account",
        {
            "label": "Candidate",
            "actual": "Really took",
            "predicted": "Was predicted",
            "error": "Off by",
            "inside": "Inside the band",
            "note": "Note",
        },
    )


def outcomes_table(outcomes: Sequence[Outcome], height: int | None = None) -> None:
    """Draw what was measured, newest first; a probe that failed is a row like any other."""
    number = st.column_config.NumberColumn
    _table(
        [_outcome(outcome) for outcome in reversed(outcomes)],
        "Measurements, newest first",
        {
            "result": "Result",
            "runtime": "Framework",
            "median": number("Median (s)", format="%.4g"),
            "spread": number("Spread (%)", format="%.1f", help="Distance between the quartiles, of the median"),
            "minimum": number("Least (s)", format="%.4g"),
            "rate": number("GFLOP/s", format="%.4g"),
            "compile": number("Compile (s)", format="%.3g"),
            "subject": st.column_config.TextColumn("What", width="medium"),
            "device": "On",
            "n": number("Samples"),
            "note": st.column_config.TextColumn("Note", width="large"),
            "taken": "Taken (UTC)",
        },
        height,
    )


def _first(names: Sequence[str]) -> str:
    """Return names as one phrase, those beyond the first few as a count; the report has them all."""
    more = len(names) - NAMES_SHOWN
    return ", ".join(names) if more < 2 else f"{', '.join(names[:NAMES_SHOWN])} and {more} more"


def _sentences(rows: Sequence[dict[str, Any]], alt: str, columns: Columns) -> None:
    """Draw a table whose cells hold sentences: three lines a row, wrapped."""
    fitting = LINES_PX * min(len(rows), ROWS_SHOWN // 2) + ROW_PX + 3
    _table(rows, alt, columns, fitting, row_height=LINES_PX)


def _table(rows: Sequence[dict[str, Any]], alt: str, columns: Columns, height: int | None = None, **more: Any) -> None:
    if not rows:
        st.caption("Nothing to list.")
        return
    filled = {name: column for name, column in columns.items() if any(row.get(name) not in (None, "") for row in rows)}
    data = {name: [row.get(name) for row in rows] for name in filled}
    fitting = ROW_PX * (min(len(rows), ROWS_SHOWN) + 1) + 3
    st.dataframe(  # pyright: ignore[reportUnknownMemberType]
        data, column_config=filled, hide_index=True, placeholder=write.MISSING, alt=alt, height=height or fitting, **more
    )


def _candidate(row: view.CandidateRow, hourly: float | None) -> dict[str, Any]:
    energy, rate = _mid(row.energy), _mid(row.throughput)
    return {
        "mark": row.mark,
        "runtime": row.runtime,
        "where": row.where,
        "plan": row.plan,
        "step": _mid(row.step_time),
        "band": row.step_time.band or None,
        "tier": tier_label(row.tier),
        "library": row.library or None,
        "rate": rate if rate is None or rate < 100 else round(rate),
        "memory": row.memory_text,
        "fits": row.fits,
        "hourly": hourly,
        "cost": _mid(row.cost),
        "energy": None if energy is None else energy / 3.6e6,
        "compile": _mid(row.compile),
        "targets": row.targets or None,
        "held": row.held_back or None,
        "missing": "; ".join(row.missing) or None,
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    probe = outcome.probe
    row: dict[str, Any] = {
        "subject": probe.label,
        "runtime": probe.runtime,
        "device": probe.device,
        "taken": outcome.taken_at.replace("T", " ")[:19],
    }
    if not isinstance(outcome, Measurement):
        return row | {"result": "✘ failed", "note": f"{outcome.stage}: {outcome.error}"}
    figures = outcome.figures
    median = figures.median
    return row | {
        "result": "✔ measured" if outcome.trusted else "▲ doubted",
        "median": median,
        "n": figures.count,
        "spread": 100 * figures.spread if median > 0 else None,
        "minimum": figures.minimum,
        "rate": outcome.flop / median / 1e9 if outcome.flop and median > 0 else None,
        "compile": outcome.compile_s,
        "note": "; ".join(outcome.warnings) or None,
    }


def _ranked(run: Run) -> tuple[Estimate, ...]:
    return run.recommendation.ranked if run.recommendation else ()


def _estimates(run: Run) -> tuple[Estimate, ...]:
    advice = run.recommendation
    return advice.ranked + advice.unranked if advice else ()


def _hourly(pools: tuple[Pool, ...]) -> float | None:
    prices = [pool.price_usd_per_h for pool in pools if pool.price_usd_per_h is not None]
    return sum(prices) if len(prices) == len(pools) else None


def _mid(figure: view.Figure) -> float | None:
    return None if figure.quantity is None else figure.quantity.mid
