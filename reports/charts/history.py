"""The history of a device as small multiples: for each probe its medians with their quartiles, one band above the other.

Every band has a scale of its own, its newest figure under its name: what matters is how far a point lies from the reference line,
which is the last trusted median before the newest one. Bands are layers of one chart, since only such keep the width of their
container.
"""

from dataclasses import dataclass
from typing import Any

import altair as alt

from core import format as write
from core.history import DeviceHistory, Point, Series, drift_words
from core.statistics import LEAST_CHANGE, Change
from reports.charts.frame import Layered, Row, finish, tooltips
from reports.theme import Theme, theme_named

BAND_PX = 112
MOST_SERIES = 12
_NAME_AT, _VALUE_AT, _TOP, _BOTTOM = 0.12, 0.29, 0.44, 0.92
"""Where in a band its name and its newest figure stand and where its points may lie, as fractions of its height."""
_CALM = 2 * LEAST_CHANGE
"""Half height of a band at least, as a fraction of the reference: a calm series must look calm."""


@dataclass(frozen=True, slots=True)
class _Scale:
    """How seconds become heights in one band."""

    place: int
    low: float
    high: float

    def at(self, seconds: float) -> float:
        """Return the height of a time: slow is up."""
        share = (seconds - self.low) / (self.high - self.low)
        return self.place + _BOTTOM + share * (_TOP - _BOTTOM)


def history(device: DeviceHistory, theme: str = "light", limit: int = MOST_SERIES) -> Layered | None:
    """Draw the series of one device, flagged ones first.

    Args:
        device: from `services.device_history`.
        theme: `light` or `dark`.
        limit: bands at most.

    Returns:
        The chart, or None when nothing was measured twice: a single point has nothing to be held against.
    """
    again = [one for one in device.series if len(one.points) > 1]
    shown = [one for one in again if any(point.figures.median > 0 for point in one.points)][:limit]
    if not shown:
        return None
    look = theme_named(theme)
    most = max(len(one.points) for one in shown)
    rows = [row for place, one in enumerate(shown) for row in _rows(one, place, most)]
    rest = len(device.series) - len(shown)
    subtitle = "median and quartiles of each measurement, oldest left; slow is up; dashed: the last trusted median before"
    return finish(
        _layers(look, len(shown), most),
        rows,
        look,
        f"History of {device.id or device.name or device.uuid}",
        subtitle + (f"; {rest} more in the table" if rest > 0 else ""),
        describe_history(device),
        BAND_PX * len(shown),
    )


def describe_history(device: DeviceHistory) -> str:
    """Return in words what the chart shows."""
    count = sum(len(one.points) for one in device.series)
    probes = len(device.series)
    counted = f"{count} measurement{'' if count == 1 else 's'} of {probes} probe{'' if probes == 1 else 's'}"
    text = f"{counted} on {device.id or device.name or device.uuid}."
    return " ".join([text, *(device.flags or (device.unflagged,))])


def _rows(one: Series, place: int, most: int) -> list[Row]:
    """Return the points of a series as rows, and one row for its name; the newest point stands at the right end."""
    points = [point for point in one.points if point.figures.median > 0]
    reference = _reference(points)
    edges = [reference * (1 - _CALM), reference * (1 + _CALM)]
    edges += [point.figures.median + sign * point.figures.iqr / 2 for point in points for sign in (-1, 1)]
    scale = _Scale(place, min(edges), max(edges))
    last = points[-1]
    start = most - len(points)
    name: Row = {
        "kind": "name",
        "y": place + _NAME_AT,
        "value_y": place + _VALUE_AT,
        "name": one.name,
        "value": write.seconds(last.figures.median) + (f", {_moved(last.drift)}" if last.drift else ""),
        "reference": scale.at(reference),
        "floor": place + 1,
        "strong": bool(one.flags),
    }
    return [name, *(_row(point, scale, start + index, one) for index, point in enumerate(points))]


def _row(point: Point, scale: _Scale, at: int, one: Series) -> Row:
    figures = point.figures
    flagged = point.drift is not None and point.drift.beyond_noise
    return {
        "kind": "point",
        "x": at,
        "y": scale.at(figures.median),
        "low": scale.at(figures.median - figures.iqr / 2),
        "high": scale.at(figures.median + figures.iqr / 2),
        "top": scale.place + _TOP,
        "bottom": scale.place + _BOTTOM,
        "state": "drifted" if flagged else "as before" if point.trusted else "not trusted",
        "changed": bool(point.changed),
        "line": scale.place,
        "probe": one.name,
        "taken": f"{point.taken_at[:16].replace('T', ' ')} UTC",
        "median": write.seconds(figures.median),
        "spread": write.seconds(figures.iqr),
        "least": write.seconds(figures.minimum),
        "samples": figures.count,
        "note": "; ".join(_notes(point, flagged)) or "nothing",
    }


def _moved(drift: Change) -> str:
    return f"x {1 + drift.fraction:.1f}" if drift.fraction >= 1 else f"{100 * drift.fraction:+.0f} %"


def _notes(point: Point, flagged: bool) -> list[str]:
    disturbed = ["other work used the machine"] if point.contended and not flagged else []
    return [*point.changed, *disturbed, *([drift_words(point)] if flagged else [])]


def _reference(points: list[Point]) -> float:
    """Return the median that the newest point is held against, or that of the newest itself."""
    last = points[-1]
    held = next((point for point in reversed(points[:-1]) if point.trusted and point.taken_at == last.reference), last)
    return held.figures.median


def _layers(theme: Theme, bands: int, most: int) -> list[alt.Chart]:
    whole = alt.Scale(domain=[0, bands], reverse=True, nice=False, zero=False)
    heights = ("y", "floor", "reference", "top", "low", "value_y")
    y, floor, reference, top, low, value_y = (alt.Y(field, type="quantitative", axis=None, scale=whole) for field in heights)
    scale = alt.Scale(domain=[-0.5, max(most, 2) - 0.5], nice=False, zero=False)
    x = alt.X("x", type="quantitative", axis=None, scale=scale)
    states = ("as before", "drifted", "not trusted")
    colour = alt.Color(
        "state", type="nominal", legend=_legend(), scale=alt.Scale(domain=states, range=[theme.primary, theme.alarm, theme.muted])
    )
    shape = alt.Shape(
        "state", type="nominal", legend=_legend(), scale=alt.Scale(domain=states, range=["circle", "diamond", "cross"])
    )
    tooltip = tooltips(*((name, name) for name in ("probe", "taken", "median", "spread", "least", "samples", "note")))
    left, right = alt.value(0), alt.value("width")
    points, names = "datum.kind == 'point'", "datum.kind == 'name'"
    ink: dict[bool, Any] = {True: {"fontWeight": 700, "color": theme.alarm}, False: {"fontWeight": 400, "color": theme.text}}
    texts = [
        alt.Chart()
        .mark_text(align="left", baseline="middle", aria=False, **ink[strong])
        .encode(x=left, y=at, text=alt.Text(field, type="nominal"))
        .transform_filter(f"{names} && {'' if strong else '!'}datum.strong")
        for strong in (True, False)
        for field, at in (("name", y), ("value", value_y))
    ]
    return [
        alt.Chart().mark_rule(color=theme.line, aria=False).encode(x=left, x2=right, y=floor).transform_filter(names),
        alt.Chart()
        .mark_rule(color=theme.muted, strokeDash=[4, 4], aria=False)
        .encode(x=left, x2=right, y=reference)
        .transform_filter(names),
        alt.Chart()
        .mark_rule(color=theme.muted, strokeWidth=1.5, aria=False)
        .encode(x=x, y=top, y2="bottom", tooltip=tooltip)
        .transform_filter(f"{points} && datum.changed"),
        alt.Chart()
        .mark_line(strokeWidth=1.2, opacity=0.5, aria=False)
        .encode(x=x, y=y, detail=alt.Detail("line", type="nominal"), color=alt.value(theme.primary))
        .transform_filter(points),
        alt.Chart()
        .mark_rule(strokeWidth=5, strokeCap="round", opacity=0.35)
        .encode(x=x, y=low, y2="high", color=colour, tooltip=tooltip)
        .transform_filter(points),
        alt.Chart()
        .mark_point(filled=True, size=70, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tooltip)
        .transform_filter(points),
        *texts,
    ]


def _legend() -> alt.Legend:
    return alt.Legend(title=None, symbolOpacity=1, columns=3)
