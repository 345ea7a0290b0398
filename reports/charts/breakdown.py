"""Where the step time goes: one stacked bar for each of the first candidates, by term and block."""

from collections.abc import Sequence

import altair as alt

from core.advice import BREAKDOWN_TERMS, Estimate, Recommendation
from reports.charts.frame import (
    BAR_DOWN,
    BAR_HEIGHT,
    ROW_HEIGHT,
    SECONDS_LABEL,
    Layered,
    Row,
    cut,
    finish,
    legend,
    row_axis,
    row_names,
    tooltips,
)
from reports.describe import describe
from reports.theme import Theme, shades, theme_named
from reports.view import figure, mark_of, share_rows, shortlist

MOST_SLICES = 9
COMPARABLE = 4.0
"""Step times within this factor are drawn in seconds; wider ones as shares, or the short ones could not be seen."""


def breakdown(recommendation: Recommendation | None, theme: str = "light", limit: int = 8) -> Layered | None:
    """Draw where the step time of the first candidates goes.

    Args:
        recommendation: None or one without breakdowns draws nothing.
        theme: `light` or `dark`.
        limit: bars at most, see `reports.view.shortlist`.

    Returns:
        The chart, or None when there is nothing to draw.
    """
    shown = shortlist([e for e in recommendation.ranked if e.breakdown and e.step_time_s], limit) if recommendation else ()
    if recommendation is None or not shown:
        return None
    look = theme_named(theme)
    times = [sum(share.seconds.mid for share in e.breakdown) for e in shown]
    in_seconds = max(times) <= COMPARABLE * min(times)
    names = _slices(shown)
    rows = [row for index, estimate in enumerate(shown) for row in _rows(recommendation, index, estimate, names)]
    layers = [_bars(names, look, in_seconds), *row_names(look)]
    subtitle = f"{'seconds' if in_seconds else 'share'} of a step by term and block"
    if len(shown) < len(recommendation.ranked):
        subtitle += f"; {len(shown)} of {len(recommendation.ranked)} candidates"
    return finish(
        layers, rows, look, "Where the step time goes", subtitle, describe("breakdown", recommendation), alt.Step(ROW_HEIGHT)
    )


def _slice_name(term: str, block: str) -> str:
    return f"{term}: {block}" if block else term


def _slices(estimates: Sequence[Estimate]) -> list[tuple[str, str]]:
    """Return (term, block) of each colour, in the order of terms; small blocks of a term share one."""
    weights: dict[tuple[str, str], float] = {}
    for estimate in estimates:
        whole = sum(share.seconds.mid for share in estimate.breakdown) or 1.0
        for share in estimate.breakdown:
            key = (share.term, share.block)
            weights[key] = max(weights.get(key, 0.0), share.seconds.mid / whole)
    own = set(sorted(weights, key=lambda key: -weights[key])[:MOST_SLICES])
    kept = {key if key in own else (key[0], "other") for key in weights}
    order = {term: index for index, term in enumerate(BREAKDOWN_TERMS)}
    return sorted(kept, key=lambda key: (order.get(key[0], len(order)), key[1] == "other", -weights.get(key, 0.0)))


def _rows(recommendation: Recommendation, index: int, estimate: Estimate, names: list[tuple[str, str]]) -> list[Row]:
    step = figure(estimate.step_time_s)
    mark = mark_of(recommendation, estimate)
    rows: list[Row] = []
    ordered = sorted(estimate.breakdown, key=lambda share: -share.seconds.mid)
    for place, (share, shown) in enumerate(zip(ordered, share_rows(estimate), strict=True)):
        key = (share.term, share.block) if (share.term, share.block) in names else (share.term, "other")
        rows.append(
            {
                "row": index,
                "candidate": estimate.candidate.label,
                "strong": mark == "✔",
                "slice": _slice_name(*key),
                "order": names.index(key),
                "mark": "" if place else mark,
                "name": "" if place else cut(estimate.candidate.label),
                "value": "" if place else step.text,
                "seconds": share.seconds.mid,
                "part": _slice_name(share.term, share.block),
                "time": shown.time.full,
                "share": shown.share,
            }
        )
    return rows


def _bars(names: list[tuple[str, str]], theme: Theme, in_seconds: bool) -> alt.Chart:
    colours: list[str] = []
    for term in dict.fromkeys(term for term, _ in names):
        colours += shades(dict(theme.terms).get(term, theme.muted), sum(t == term for t, _ in names), theme.card)
    scale = alt.Scale(domain=[_slice_name(*name) for name in names], range=colours)
    axis = (
        alt.Axis(title="step time", labelExpr=SECONDS_LABEL, tickCount=5)
        if in_seconds
        else alt.Axis(title="share of the step", format=".0%", tickCount=5)
    )
    tooltip = tooltips(("candidate", "candidate"), ("part", "part"), ("time", "time"), ("share", "share"))
    return (
        alt.Chart()
        .mark_bar(height=BAR_HEIGHT, yOffset=BAR_DOWN, stroke=theme.card, strokeWidth=1)
        .encode(
            x=alt.X(
                "seconds",
                type="quantitative",
                stack="zero" if in_seconds else "normalize",
                axis=axis,
                scale=alt.Scale(nice=False),
            ),
            y=alt.Y(**row_axis()),
            color=alt.Color("slice", type="nominal", scale=scale, legend=legend("term: block")),
            order=alt.Order("order", type="quantitative"),
            tooltip=tooltip,
        )
    )
