"""A run as one self-contained HTML file: charts inside as vector pictures, no script, no address to fetch, prints well.

Text is escaped by the template engine everywhere, and a content security policy in the file forbids what nobody put there.
Charts are pictures behind `<img>`, where even a hostile drawing could not act.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from core.run import Run
from reports import charts, facts, view
from reports.describe import describe
from reports.document import sections, side_rows
from reports.picture import to_svg
from reports.theme import DARK, FONT, LIGHT, TIER_LOOKS

MEDIA_TYPE = "text/html; charset=utf-8"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
WIDE, NARROW = 940, 330
"""Pixels of the two drawings of each chart; the browser takes the one that suits its width."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One chart as two data addresses, with the text that stands for it."""

    wide: str
    narrow: str
    text: str


def render(run: Run) -> bytes:
    """Return the report as one HTML file."""
    html = (
        _environment()
        .get_template("report.html")
        .render(
            head=view.headline(run),
            sides=view.side_by_side(run),
            side_rows=side_rows,
            amount=run.workload.amount,
            sections=sections(run),
            pictures=pictures(run),
            run=run,
            light=LIGHT,
            dark=DARK,
            font=FONT,
            looks=TIER_LOOKS,
            policy=POLICY,
            command=facts.command(run),
            narrow_at=640,
        )
    )
    return html.encode("utf-8", "replace")


def pictures(run: Run) -> dict[str, Picture]:
    """Return every chart that has something to show, by name; light, because they stand on a white card."""
    advice = run.recommendation
    makers: dict[str, Callable[[], Any]] = {
        "candidates": lambda: charts.candidates(advice),
        "breakdown": lambda: charts.breakdown(advice),
        "memory": lambda: charts.memory(advice),
        "roofline": lambda: charts.roofline(run),
        "outcomes": lambda: charts.outcomes(run),
    }
    made = {name: chart.to_dict() for name, make in makers.items() if (chart := make()) is not None}
    return {
        name: Picture(_address(to_svg(chart, WIDE)), _address(to_svg(chart, NARROW)), _alternative(name, run))
        for name, chart in made.items()
    }


def _alternative(name: str, run: Run) -> str:
    subject = run if name in ("roofline", "outcomes") or run.recommendation is None else run.recommendation
    return describe(name, subject)


def _address(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
