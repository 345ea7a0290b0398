"""Candidates as points with their 80 % bands on one logarithmic axis: overlap says too close to call."""

import altair as alt

from core.advice import Estimate, Recommendation
from core.quantity import TIERS
from reports.charts.frame import (
    MARK_AT,
    OBJECTIVE_LABELS,
    ROW_HEIGHT,
    Layered,
    Row,
    cut,
    finish,
    legend,
    log_domain,
    log_ticks,
    row_axis,
    row_names,
    row_picks,
    tooltips,
)
from reports.describe import describe
from reports.ranked_by import RankedBy, ranked_by
from reports.theme import TIER_LOOKS, Theme, theme_named
from reports.view import UNKNOWN, figure, mark_of, shortlist


def candidates(recommendation: Recommendation | None, theme: str = "light", limit: int = 24) -> Layered | None:
    """Draw what candidates are ranked by with its band, best first; those without it follow, marked as unknown.

    That is the step time, the cost or the energy.

    Args:
        recommendation: None or an empty one draws nothing.
        theme: `light` or `dark`.
        limit: rows at most, see `reports.view.shortlist`.

    Returns:
        The chart, or None when no candidate has such a figure.
    """
    if recommendation is None or not recommendation.ranked:
        return None
    look = theme_named(theme)
    every = recommendation.ranked + recommendation.unranked
    what = ranked_by(recommendation)
    shown = _rows(recommendation, shortlist(every, limit), what)
    known = [value for row in shown if "mid" in row for value in (row["low"], row["high"])]
    if not known:
        return None
    low, high = log_domain(known)
    axis = alt.Axis(
        title=f"{what.name}, logarithmic", values=log_ticks(low, high), labelExpr=OBJECTIVE_LABELS[what.objective], grid=True,
        labelOverlap="greedy",
    )  # fmt: skip
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    layers = [_chosen(look), *_marks(shown, look, axis, scale), *row_names(look), *row_picks(look, _tooltip(what.name))]
    hidden = len(every) - len(shown)
    subtitle = "points with 80 % bands, best first; overlapping bands are too close to call" + (
        f"; {hidden} more are not drawn" if hidden else ""
    ) + ("; each of as many requests as it takes at once" if any(one.candidate.requests for one in every) else "")
    return finish(
        layers, shown, look, f"{what.name.capitalize()} of each candidate", subtitle, describe("candidates", recommendation),
        alt.Step(ROW_HEIGHT),
    )  # fmt: skip


def _rows(recommendation: Recommendation, estimates: tuple[Estimate, ...], what: RankedBy) -> list[Row]:
    rows: list[Row] = []
    for estimate in estimates:
        value = what.of(estimate)
        shown = figure(value, what.written)
        mark = mark_of(recommendation, estimate)
        label = estimate.candidate.label
        row: Row = {
            "row": len(rows),
            "candidate": label,
            "mark": mark,
            "name": cut(label),
            "strong": mark == "✔",
            "value": shown.text,
            "band": shown.band or UNKNOWN,
            "tier": shown.tier or "missing",
        }
        if value is not None and value.low > 0:
            row |= {"low": value.low, "mid": value.mid, "high": value.high}
        if value is None:
            row["value"] = "not known yet"
        rows.append(row)
    return rows


def _chosen(theme: Theme) -> alt.Chart:
    band = (
        alt.Chart()
        .mark_rect(color=theme.tint, cornerRadius=4, aria=False)
        .encode(x=alt.value(-4), x2=alt.value("width"), y=alt.Y(**row_axis()))
    )
    return band.transform_filter(alt.datum.strong)


def _tooltip(name: str) -> list[alt.Tooltip]:
    return tooltips(("candidate", "candidate"), ("value", name), ("band", "80 % band"), ("tier", "tier"))


def _marks(rows: list[Row], theme: Theme, axis: alt.Axis, scale: alt.Scale) -> list[alt.Chart]:
    present = [tier for tier in TIERS if any(row["tier"] == tier for row in rows)]
    colours = alt.Scale(domain=present, range=[theme.tier(tier) for tier in present])
    shapes = alt.Scale(domain=present, range=[TIER_LOOKS[tier].shape for tier in present])
    key = legend("where the number comes from", 5, 3)
    y = alt.Y(**row_axis()).bandPosition(MARK_AT)
    x = alt.X("mid", type="quantitative", axis=axis, scale=scale)
    low = alt.X("low", type="quantitative", axis=axis, scale=scale)
    bands = (
        alt.Chart()
        .mark_rule(strokeWidth=7, strokeCap="round", opacity=0.32)
        .encode(x=low, x2="high", y=y, color=alt.Color("tier", type="nominal", scale=colours, legend=key))
    )
    points = (
        alt.Chart()
        .mark_point(filled=True, size=95, opacity=1)
        .encode(
            x=x,
            y=y,
            color=alt.Color("tier", type="nominal", scale=colours, legend=key),
            shape=alt.Shape("tier", type="nominal", scale=shapes, legend=key),
        )
    )
    known = "isValid(datum.mid)"
    return [bands.transform_filter(known), points.transform_filter(known)]
