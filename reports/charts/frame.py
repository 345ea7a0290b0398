"""What every chart shares: rows with their names above their marks, logarithmic axes with units, and the theme."""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any

import altair as alt

from reports.theme import Theme, chart_config

ROW_HEIGHT = 42
NAME_AT, MARK_AT = 0.24, 0.68
"""Where in its row the name and the mark stand, as fractions of the height."""
BAR_HEIGHT, BAR_DOWN = 13, 8
"""Pixels: of a bar, and how far under the middle of its row it is drawn (bars heed no position in the band)."""
MARK_WIDTH = 17
PICKED = "picked"
SECONDS_LABEL = (
    "datum.value == 0 ? '0' : datum.value >= 1 ? format(datum.value, ',.3~f') + ' s'"
    " : datum.value >= 1e-3 ? format(datum.value * 1e3, '.3~f') + ' ms'"
    " : datum.value >= 1e-6 ? format(datum.value * 1e6, '.3~f') + ' µs' : format(datum.value * 1e9, '.3~f') + ' ns'"
)
SI_LABEL = "replace(format(datum.value, '.3~s'), /([kMGTP])/, ' $1')"
OBJECTIVE_LABELS = {"time": SECONDS_LABEL, "cost": "'$' + format(datum.value, ',.3~r')", "energy": SI_LABEL + " + 'J'"}
"""Vega expressions that write an axis label in its natural unit; the last by objective."""

Row = dict[str, Any]
Layered = alt.LayerChart


def inline(rows: Sequence[Row]) -> alt.InlineData:
    """Return rows as data inside the chart: nothing is fetched, no data frame is needed."""
    return alt.InlineData(values=list(rows))


def row_axis(field: str = "row") -> dict[str, Any]:
    """Return the options of the vertical axis of row charts: in the order of the data, without labels."""
    return {"field": field, "type": "ordinal", "axis": None, "sort": None, "scale": alt.Scale(paddingInner=0, paddingOuter=0)}


def row_names(theme: Theme, indent: int = MARK_WIDTH) -> list[alt.Chart]:
    """Return the texts above each mark: `mark` and `name` at the left, `value` at the right; rows with `strong` set are bold.

    The mark stands alone because a character that the font lacks would change the font of a whole text.

    Args:
        indent: pixels left of the names for the marks; 0 where no row has one.
    """
    layers: list[alt.Chart] = []
    for is_strong in (True, False):
        weight: Any = 700 if is_strong else 400
        wanted = "datum.strong" if is_strong else "!datum.strong"
        y = alt.Y(**row_axis()).bandPosition(NAME_AT)
        places: tuple[tuple[str, Any, Any], ...] = (("mark", 0, "left"), ("name", indent, "left"), ("value", "width", "right"))
        for field, at, align in places:
            text = alt.Chart().mark_text(
                align=align, baseline="middle", fontWeight=weight, aria=False, color=theme.primary if is_strong else theme.text
            )
            layers.append(text.encode(x=alt.value(at), y=y, text=alt.Text(field, type="nominal")).transform_filter(wanted))
    return layers


def row_picks(theme: Theme, tooltip: list[alt.Tooltip]) -> list[alt.Chart]:
    """Return layers by which a row is picked: an outline around picked ones, and on top an unseen area that can be clicked.

    The parameter is called `PICKED` and holds candidates; a page may give it a value, which outlines the same rows.

    Args:
        tooltip: of the row, since the area lies over the marks.
    """
    picked = alt.selection_point(name=PICKED, fields=["candidate"], empty=False, toggle="true")
    left, right, y = alt.value(-4), alt.value("width"), alt.Y(**row_axis())
    outline = alt.Chart().mark_rect(filled=False, stroke=theme.primary, strokeWidth=2, cornerRadius=4, aria=False)
    area = alt.Chart().mark_rect(opacity=0, cursor="pointer", aria=False)
    return [
        outline.encode(x=left, x2=right, y=y).transform_filter(picked),
        area.encode(x=left, x2=right, y=y, tooltip=tooltip).add_params(picked),
    ]


def legend(title: str, wide: int = 2, narrow: int = 1) -> alt.Legend:
    """Return a legend in `wide` columns, or in `narrow` ones where the chart has less than 440 pixels."""
    columns: Any = alt.ExprRef(f"width < 440 ? {narrow} : {wide}")
    return alt.Legend(title=title, columns=columns, symbolOpacity=1, labelLimit=300)


def tooltips(*fields: tuple[str, str]) -> list[alt.Tooltip]:
    """Return tooltip lines out of (field, title) pairs of texts."""
    return [alt.Tooltip(field=field, type="nominal", title=title) for field, title in fields]


def log_domain(values: Sequence[float], room: float = 1.12) -> tuple[float, float]:
    """Return the ends of a logarithmic axis around positive values, with `room` as a factor at each end."""
    return min(values) / room, max(values) * room


def log_ticks(low: float, high: float) -> list[float]:
    """Return tick values from `low` to `high`: 1, 2, 5 over short spans, decades over long ones, at most about seven."""
    decades = log10(high / low)
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8) if decades < 0.5 else (1, 2, 5) if decades < 2 else (1,)
    every = max(1, ceil(decades / 7))
    exponents = range(floor(log10(low)), ceil(log10(high)) + 1)
    return [
        step * 10.0**e
        for e in exponents
        for step in steps
        if low <= step * 10.0**e <= high and (len(steps) > 1 or e % every == 0)
    ]


def finish(
    layers: Sequence[alt.Chart], rows: Sequence[Row], theme: Theme, title: str, subtitle: str, description: str, height: Any
) -> Layered:
    """Return the layers as one finished chart.

    Args:
        layers: bottom first.
        rows: the data of all layers that bring none of their own.
        title, subtitle: above the chart; the subtitle is cut at 52 characters a line so that it fits a telephone.
        description: the text for people who cannot see it.
        height: pixels, or an Altair step.
    """
    return alt.LayerChart(
        layer=list(layers),
        data=inline(rows),
        config=alt.Config.from_dict(chart_config(theme)),
        title=alt.TitleParams(title, subtitle=wrap(subtitle)),
        width="container",
        height=height,
        description=description,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        padding={"left": 4, "right": 8, "top": 4, "bottom": 4},
    )


def wrap(text: str, limit: int = 52) -> list[str]:
    """Return text in lines of at most `limit` characters, broken at spaces."""
    lines: list[str] = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > limit:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def cut(text: str, limit: int = 38) -> str:
    """Return text of at most `limit` characters; a cut is marked."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
