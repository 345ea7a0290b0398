"""The candidates as a table for spreadsheets: raw numbers in SI units beside the text that people read elsewhere.

A spreadsheet runs a cell that starts like a formula, so such cells get an apostrophe in front.
Source: OWASP, CSV Injection, https://owasp.org/www-community/attacks/CSV_Injection
"""

import csv
import io

from core.run import Run
from core.split import SplitRun
from reports.split_run_text import pace_rows
from reports.split_text import single_rows
from reports.view import (
    HALF_WITHIN,
    MOST_SERVED,
    NEARLY_ALL_WITHIN,
    NO_FIGURE,
    UTILISATION,
    WHOLE_JOB,
    CandidateRow,
    Figure,
    candidate_rows,
)

MEDIA_TYPE = "text/csv; charset=utf-8"
DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n")
FURTHER = {
    "job_s": WHOLE_JOB, "most_served_per_s": MOST_SERVED, "latency_half_s": HALF_WITHIN, "latency_99_in_100_s": NEARLY_ALL_WITHIN,
    "utilisation": UTILISATION,
}  # fmt: skip
"""Columns of figures that only some jobs have, and their names in a row."""
FIGURES = ("step_time_s", "throughput_per_s", "memory_bytes_per_chip", "compile_s", "cost_usd", "energy_j", *FURTHER)
HEADER = (
    "run",
    "workload",
    "rank",
    "chosen",
    "runtime",
    "pools",
    "plan",
    "step_time",
    *(f"{name}_{part}" for name in FIGURES for part in ("low", "mid", "high", "tier")),
    "capacity_bytes",
    "fits",
    "missing",
    "price",
    "targets",
)
SPLIT_HEADER = (
    "run", "workload", "figures", "mode", "pools", "chosen",
    *(f"{name}_{part}" for name in ("seconds", "cost_usd", "energy_j") for part in ("low", "mid", "high", "tier")),
    "fits", "missing",
)  # fmt: skip


def render(run: Run) -> bytes:
    """Return one line for each candidate, best first, unranked ones last; unknown is an empty cell.

    Of a split: the pools together, each alone, and what was measured of them.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(HEADER if run.split is None else SPLIT_HEADER)
    rows = [_cells(row) for row in candidate_rows(run)] if run.split is None else _split_cells(run.split)
    for row in rows:
        writer.writerow([inert(cell) for cell in (run.id, run.workload.name, *row)])
    return out.getvalue().encode("utf-8", "replace")


def _split_cells(told: SplitRun) -> list[list[str]]:
    """Return a line for the pools together and for each alone, as planned, and those that were measured after them."""
    rows = [
        ["planned", told.split.mode if place == 0 else "", row.label, "yes" if row.mark else "", *_numbers(row.seconds),
         *_numbers(row.cost), *_numbers(row.energy), row.fits if place else "", row.missing]
        for place, row in enumerate(single_rows(told.split))
    ]  # fmt: skip
    if told.verified is None:
        return rows
    for row in pace_rows(told.verified):
        if row.what != "planned":
            known = ["measured", told.verified.mode if row.what == "measured" else "", row.label, "", *_numbers(row.figure)]
            rows.append(known + [""] * (len(rows[0]) - len(known)))
    return rows


def inert(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if cell.startswith(DANGEROUS) else cell


def _cells(row: CandidateRow) -> list[str]:
    cells = [
        str(row.rank or ""),
        "yes" if row.mark == "✔" else "",
        row.runtime,
        row.where,
        row.plan,
        row.step_time.text if row.step_time.quantity else "",
    ]
    known = dict(row.further)
    further = (known.get(name, NO_FIGURE) for name in FURTHER.values())
    for figure in (row.step_time, row.throughput, row.memory, row.compile, row.cost, row.energy, *further):
        cells += _numbers(figure)
    capacity = "" if row.capacity_bytes is None else repr(row.capacity_bytes)
    return [*cells, capacity, row.fits, "; ".join(row.missing), row.price, row.targets]


def _numbers(figure: Figure) -> list[str]:
    quantity = figure.quantity
    return [""] * 4 if quantity is None else [repr(quantity.low), repr(quantity.mid), repr(quantity.high), quantity.tier]
