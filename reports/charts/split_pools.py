"""Pools of a split: one stacked bar of their shares, and bars of the split beside each pool alone."""

from collections.abc import Iterator

import altair as alt

from core.split import Share, Split
from reports.charts.frame import (
    BAR_DOWN,
    BAR_HEIGHT,
    MARK_AT,
    OBJECTIVE_LABELS,
    ROW_HEIGHT,
    Layered,
    Row,
    cut,
    finish,
    legend,
    row_axis,
    row_names,
    tooltips,
)
from reports.split_text import ShareRow, SingleRow, share_rows, side_label, single_rows, time_title
from reports.theme import Theme, theme_named
from reports.view import UNKNOWN, Figure

SHARE_HEIGHT = 34
TITLES = {"time": "Time", "cost": "Cost", "energy": "Energy"}


def shares(split: Split, theme: str = "light") -> Layered | None:
    """Draw who has which share as one stacked bar.

    Args:
        split: the answer.
        theme: `light` or `dark`.

    Returns:
        The chart, or None when nothing is shared.
    """
    rows = _share_rows(split)
    if not rows:
        return None
    look = theme_named(theme)
    colours = [look.parts[index % len(look.parts)] for index in range(len(rows))]
    scale = alt.Scale(domain=[row["key"] for row in rows], range=colours)
    x = alt.X("from", type="quantitative", scale=alt.Scale(domain=[0, 1], nice=False), axis=None)
    tooltip = tooltips(("pool", "pool"), ("share", "share"), ("amount", "amount"), ("detail", "how"))
    top, bottom = alt.value(0), alt.value(SHARE_HEIGHT)
    bar = alt.Chart().mark_rect(stroke=look.card, strokeWidth=2)
    words = alt.ExprRef("datum.fraction * width > 46 ? datum.share : ''")
    text = alt.Chart().mark_text(fontWeight=600, color=look.card, aria=False, text=words)
    layers = [
        bar.encode(
            x=x,
            x2="to",
            y=top,
            y2=bottom,
            tooltip=tooltip,
            color=alt.Color("key", type="nominal", scale=scale, legend=legend("", 2, 1)),
        ),
        text.encode(x=alt.X("middle", type="quantitative"), y=alt.value(SHARE_HEIGHT / 2)),
    ]
    return finish(
        layers, rows, look, "Who does how much", "parts of the work, all of it together", describe_shares(split), SHARE_HEIGHT
    )


def describe_shares(split: Split) -> str:
    """Return the shares in words."""
    if not split.shares:
        return "Nothing is shared."
    said = "; ".join(f"{side_label(s.runtime, s.pool)} {row.fraction}, {row.amount}" for s, row in _pairs(split))
    return f"Shares of the work: {said}."


def singles(split: Split, what: str = "time", theme: str = "light", amount: str = "") -> Layered | None:
    """Draw the split beside each pool alone, as bars from zero with their 80 % bands.

    Args:
        split: the answer.
        what: one of `core.workload.OBJECTIVES`.
        theme: `light` or `dark`.
        amount: what cost and energy are of, `whole job`.

    Returns:
        The chart, or None when none of them has a number.
    """
    rows = [_single(index, row, what, split.objective) for index, row in enumerate(single_rows(split))]
    known = [row["high"] for row in rows if "high" in row]
    if not known:
        return None
    look = theme_named(theme)
    axis = alt.Axis(title=None, labelExpr=OBJECTIVE_LABELS[what], tickCount=4, labelOverlap="greedy")
    x = alt.X("mid", type="quantitative", axis=axis, scale=alt.Scale(domain=[0, max(known) * 1.04 or 1.0], nice=False))
    title = time_title(split.mode) if what == "time" else ", ".join(filter(None, (TITLES[what], amount)))
    subtitle = "with 80 % bands; what is recommended is in colour"
    layers = [*_bars(look, x), *row_names(look)]
    return finish(layers, rows, look, title, subtitle, describe_singles(split, what), alt.Step(ROW_HEIGHT))


def describe_singles(split: Split, what: str = "time") -> str:
    """Return the bars in words."""
    said = "; ".join(f"{row.label} {_figure(row, what).full}" for row in single_rows(split))
    return f"{TITLES[what]} of the split and of each pool alone: {said}."


def _pairs(split: Split) -> Iterator[tuple[Share, ShareRow]]:
    return zip(split.shares, share_rows(split), strict=True)


def _share_rows(split: Split) -> list[Row]:
    whole = sum(share.fraction for share in split.shares)
    rows: list[Row] = []
    at = 0.0
    for share, said in _pairs(split):
        if whole <= 0:
            break
        part = share.fraction / whole
        rows.append(
            {
                "key": cut(f"{side_label(share.runtime, share.pool)}: {said.fraction}, {said.amount}", 60),
                "pool": said.label,
                "share": said.fraction,
                "amount": said.amount,
                "detail": said.detail or UNKNOWN,
                "fraction": part,
                "from": at,
                "middle": at + part / 2,
                "to": at + part,
            }
        )
        at += part
    return rows


def _figure(row: SingleRow, what: str) -> Figure:
    return {"time": row.seconds, "cost": row.cost, "energy": row.energy}[what]


def _single(index: int, said: SingleRow, what: str, objective: str) -> Row:
    figure = _figure(said, what)
    fits = said.fits != "no"
    row: Row = {
        "row": index,
        "mark": said.mark if what == objective else "",
        "name": cut(said.label, 44),
        "strong": bool(said.mark),
        "value": figure.text if fits else f"{figure.text}, cannot",
        "label": said.label,
        "band": figure.band or UNKNOWN,
        "tier": figure.tier or "missing",
        "note": said.missing or "none",
        "fits": fits,
    }
    if figure.quantity is None:
        row["value"] = "not known" if fits else "cannot"
        return row
    return row | {"low": figure.quantity.low, "mid": figure.quantity.mid, "high": figure.quantity.high}


def _bars(theme: Theme, x: alt.X) -> list[alt.Chart]:
    y = alt.Y(**row_axis())
    fields = ("label", "pools"), ("value", "about"), ("band", "80 % band"), ("tier", "rests on"), ("note", "missing")
    known = "isValid(datum.mid)"
    bar = alt.Chart().mark_bar(height=BAR_HEIGHT, yOffset=BAR_DOWN, cornerRadiusEnd=2)
    band = alt.Chart().mark_rule(strokeWidth=2, color=theme.text, opacity=0.75, aria=False)
    ends = alt.Chart().mark_point(shape="M0,-0.5L0,0.5", size=110, strokeWidth=2, color=theme.text, opacity=0.75, aria=False)
    colour = alt.when(alt.datum.strong).then(alt.value(theme.primary)).otherwise(alt.value(theme.muted))
    opacity = alt.when(alt.datum.fits).then(alt.value(0.9)).otherwise(alt.value(0.3))
    at = alt.Y(**row_axis()).bandPosition(MARK_AT)
    low, high = alt.X("low", type="quantitative"), alt.X("high", type="quantitative")
    return [
        bar.encode(x=x, y=y, color=colour, opacity=opacity, tooltip=tooltips(*fields)).transform_filter(known),
        band.encode(x=low, x2="high", y=at).transform_filter(known),
        ends.encode(x=low, y=at).transform_filter(known),
        ends.encode(x=high, y=at).transform_filter(known),
    ]
