"""What a plan promised beside what happened: planned and measured step time on one axis, and each side alone."""

import altair as alt

from core.split import Verified
from reports.charts.frame import (
    MARK_AT,
    ROW_HEIGHT,
    SECONDS_LABEL,
    Layered,
    Row,
    cut,
    finish,
    inline,
    row_axis,
    row_names,
    tooltips,
)
from reports.split_run_text import PaceRow, pace_rows, verified_sentence
from reports.theme import Theme, theme_named
from reports.view import UNKNOWN


def verified(found: Verified, theme: str = "light") -> Layered | None:
    """Draw planned and measured step time with their 80 % bands, every timed step as a tick, and each side alone.

    Args:
        found: what came of a run.
        theme: `light` or `dark`.

    Returns:
        The chart, or None when no step was timed.
    """
    if not found.step_s:
        return None
    look = theme_named(theme)
    rows = [_row(index, said) for index, said in enumerate(pace_rows(found))]
    known = [row[end] for row in rows for end in ("low", "high") if end in row] + list(found.step_s)
    low, high = min(known), max(known)
    room = 0.08 * (high - low) or 0.05 * high
    axis = alt.Axis(title="step time", labelExpr=SECONDS_LABEL, tickCount=5, labelOverlap="greedy")
    scale = alt.Scale(domain=[max(0.0, low - room), high + room], nice=False, zero=False)
    layers = [*_marks(look, axis, scale, found), *row_names(look, 0)]
    subtitle = "with 80 % bands; a tick for each step that was timed"
    return finish(layers, rows, look, "Planned and measured", subtitle, verified_sentence(found), alt.Step(ROW_HEIGHT))


def _row(index: int, said: PaceRow) -> Row:
    figure = said.figure
    row: Row = {
        "row": index,
        "mark": "",
        "name": cut(said.label, 44),
        "strong": said.what == "measured",
        "what": said.what,
        "value": figure.text,
        "band": figure.band or UNKNOWN,
        "off": said.off or UNKNOWN,
    }
    if figure.quantity is None:
        return row | {"value": "not known"}
    return row | {"low": figure.quantity.low, "mid": figure.quantity.mid, "high": figure.quantity.high}


def _marks(theme: Theme, axis: alt.Axis, scale: alt.Scale, found: Verified) -> list[alt.Chart]:
    y = alt.Y(**row_axis()).bandPosition(MARK_AT)
    measured = next(index for index, said in enumerate(pace_rows(found)) if said.what == "measured")
    fields = tooltips(("name", "what"), ("value", "middle"), ("band", "80 % band"), ("off", "against the plan"))
    colours = alt.Scale(
        domain=["planned", "measured", "alone"], range=[dict(theme.terms)["memory traffic"], theme.primary, theme.muted]
    )
    shapes = alt.Scale(domain=["planned", "measured", "alone"], range=["diamond", "circle", "square"])
    colour = alt.Color("what", type="nominal", scale=colours, legend=None)
    shape = alt.Shape("what", type="nominal", scale=shapes, legend=None)
    low, mid = (alt.X(end, type="quantitative", axis=axis, scale=scale) for end in ("low", "mid"))
    ticks = alt.Chart(inline([{"row": measured, "step": seconds} for seconds in found.step_s]))
    known = "isValid(datum.mid)"
    return [
        alt.Chart()
        .mark_rule(strokeWidth=7, strokeCap="round", opacity=0.32)
        .encode(x=low, x2="high", y=y, color=colour)
        .transform_filter(known),
        ticks.mark_point(shape="M0,-0.5L0,0.5", size=160, strokeWidth=1.2, opacity=0.6, color=theme.primary, aria=False).encode(
            x=alt.X("step", type="quantitative", axis=axis, scale=scale), y=y
        ),
        alt.Chart()
        .mark_point(filled=True, size=95, opacity=1)
        .encode(x=mid, y=y, color=colour, shape=shape, tooltip=fields)
        .transform_filter(known),
    ]
