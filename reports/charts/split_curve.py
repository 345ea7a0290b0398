"""Step time of a split against the first pool's share or the link's bandwidth; planned, fastest and break-even are marked."""

from bisect import bisect_left
from collections.abc import Sequence
from math import log
from typing import Any

import altair as alt

from core import format as write
from core.split import Curve
from reports.charts.frame import SECONDS_LABEL, SI_LABEL, Layered, Row, finish, inline, legend, log_ticks, tooltips
from reports.split_text import curve_x, percent
from reports.theme import Theme, theme_named

HEIGHT = 260
STEEP = 8.0
"""Above this ratio of the longest to the shortest time the axis of seconds is logarithmic."""
FEW = 40
"""Points up to which each has a dot."""
FAR = 16.0
"""Times the best single pool's seconds from which on a slower link is not drawn."""
TITLES = {"share": "Step time against the share", "bandwidth": "Step time against the link"}
MARKS = (("planned", "circle", "primary"), ("fastest", "diamond", "compute"), ("break-even", "cross", "alarm"))


def curve(one: Curve, theme: str = "light", who: str = "the first pool", least_saving: float | None = None) -> Layered | None:
    """Draw a curve with its marks, and the best single pool as a dashed line.

    Args:
        one: what is drawn.
        theme: `light` or `dark`.
        who: whose share it is.
        least_saving: draws from where on two stacks are worth it; None where seconds do not decide that.

    Returns:
        The chart, or None when there are fewer than two points.
    """
    points = near(one)
    if len(points) < 2:
        return None
    look = theme_named(theme)
    floor = one.single_s * (1 - least_saving) if least_saving and _has_single(one) else None
    heights = [y for _, y in points] + ([one.single_s, floor or one.single_s] if _has_single(one) else [])
    x, y = _axes(one, points, who, (min(heights), max(heights)))
    rows: list[Row] = [{"x": _shown(one, a), "y": b, "at": curve_x(one, a), "takes": write.seconds(b)} for a, b in points]
    layers = [
        *_rules(one, look, y, floor),
        alt.Chart(inline(rows)).mark_line(strokeWidth=2.2, color=look.muted, clip=True, aria=False).encode(x=x, y=y),
        *_places_planned(rows, look, x, y),
        *_marks(one, points, look, x, y),
    ]
    subtitle = "below the dashed line the split is faster" if _has_single(one) else "all else as planned"
    return finish(layers, rows, look, TITLES[one.what], subtitle, describe_curve(one, who), HEIGHT)


def describe_curve(one: Curve, who: str = "the first pool") -> str:
    """Return the curve in words."""
    points = drawable(one)
    if len(points) < 2:
        return "There is no curve to draw."
    what = f"the share of {who}" if one.what == "share" else "the bandwidth of the link"
    (first_x, first_y), (last_x, last_y) = points[0], points[-1]
    text = f"Step time against {what}: {write.seconds(first_y)} at {curve_x(one, first_x)}, "
    text += f"{write.seconds(last_y)} at {curve_x(one, last_x)}"
    text += f"; best single pool {write.seconds(one.single_s)}." if _has_single(one) else "; no single pool can do it."
    return " ".join([text, *(f"{name[:1].upper()}{name[1:]} at {said}." for name, said in _said(one, points).items())])


def drawable(one: Curve) -> tuple[tuple[float, float], ...]:
    """Return the points that can be drawn: finite seconds above zero, on the axis."""
    least = 0.0 if one.what == "share" else 1e-300
    return tuple((x, y) for x, y in one.points if x >= least and 0 < y < float("inf"))


def near(one: Curve) -> tuple[tuple[float, float], ...]:
    """Return the points that are drawn: of links so slow that nobody would share over them, only the one next to the rest.

    What is marked on the curve is always among them.
    """
    points = drawable(one)
    if one.what == "share" or not _has_single(one):
        return points
    marks = [x for x in (one.now, one.best, one.break_even) if x is not None]
    far = [
        index
        for index, (_, y) in enumerate(points[:-1])
        if y > FAR * one.single_s and all(mark >= points[index + 1][0] for mark in marks)
    ]
    return points[max(far, default=0) :]


def height_at(one: Curve, x: float) -> float | None:
    """Return seconds at a place of the curve, on the line between its points; None beyond its ends.

    Args:
        one: a curve with two points or more.
        x: on its axis; bandwidths are interpolated by their logarithms, as they are drawn.
    """
    points = drawable(one)
    places = [place for place, _ in points]
    if not places or not places[0] <= x <= places[-1]:
        return None
    index = min(max(bisect_left(places, x), 1), len(points) - 1)
    (left, low), (right, high) = points[index - 1], points[index]
    part = (x - left) / (right - left) if one.what == "share" else log(x / left) / log(right / left)
    return low + (high - low) * part


def _has_single(one: Curve) -> bool:
    return 0 < one.single_s < float("inf")


def _said(one: Curve, points: Sequence[tuple[float, float]]) -> dict[str, str]:
    """Return each mark that lies on the axis, in words."""
    said: dict[str, str] = {}
    for name, x, y in _places(one):
        if points[0][0] <= x <= points[-1][0]:
            said[name] = f"{curve_x(one, x)}, {write.seconds(y)}"
    return said


def _places(one: Curve) -> list[tuple[str, float, float]]:
    found: list[tuple[str, float, float]] = []
    for (name, _, _), x in zip(MARKS, (one.now, one.best, one.break_even), strict=True):
        y = None if x is None else one.single_s if name == "break-even" else height_at(one, x)
        if x is not None and y is not None and 0 < y < float("inf"):
            found.append((name, x, y))
    return found


def _shown(one: Curve, x: float) -> float:
    """Return a place as it is drawn: links are known by bits."""
    return x if one.what == "share" else 8 * x


def _axes(one: Curve, points: Sequence[tuple[float, float]], who: str, heights: tuple[float, float]) -> tuple[alt.X, alt.Y]:
    low, high = heights
    if one.what == "share":
        axis, scale = alt.Axis(title=f"share of {who}", format=".0%", tickCount=5, grid=False), alt.Scale(nice=False)
    else:
        ends = [8 * points[0][0], 8 * points[-1][0]]
        axis = alt.Axis(
            title="link, bit/s, logarithmic", values=log_ticks(*ends), labelExpr=SI_LABEL, labelOverlap="greedy", grid=False
        )
        scale = alt.Scale(type="log", domain=ends, nice=False)
    steep = high > STEEP * low
    room = (high / low) ** 0.06 if steep else 1.0
    span = 0.08 * (high - low)
    domain = [low / room, high * room] if steep else [max(0.0, low - span), high + span]
    heights_axis = alt.Axis(
        title="step time" + (", logarithmic" if steep else ""), labelExpr=SECONDS_LABEL, tickCount=5, labelOverlap="greedy"
    )
    if steep:
        heights_axis["values"] = log_ticks(*domain)
    y = alt.Y(
        "y",
        type="quantitative",
        axis=heights_axis,
        scale=alt.Scale(type="log" if steep else "linear", domain=domain, nice=False, zero=False),
    )
    return alt.X("x", type="quantitative", axis=axis, scale=scale), y


def _places_planned(rows: Sequence[Row], theme: Theme, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Return a dot for each place that was planned, where there are few: between them nothing was."""
    if len(rows) > FEW:
        return []
    dots = alt.Chart(inline(rows)).mark_point(filled=True, size=34, opacity=1, color=theme.muted, aria=False)
    return [dots.encode(x=x, y=y, tooltip=tooltips(("at", "at"), ("takes", "step time")))]


def _rules(one: Curve, theme: Theme, y: alt.Y, floor: float | None) -> list[alt.Chart]:
    """Return the best single pool as a dashed line, and where the split begins to be worth it as a dotted one."""
    rules: list[tuple[float, str, list[int], Any, int]] = []
    if _has_single(one):
        rules.append((one.single_s, f"best single pool {write.seconds(one.single_s)}", [6, 4], "bottom", -4))
    if floor:
        rules.append((floor, f"{percent(1 - floor / one.single_s)} less: {write.seconds(floor)}", [2, 3], "top", 5))
    layers: list[alt.Chart] = []
    for height, words, dash, baseline, down in rules:
        at, align = _beside(one, dashed=height == one.single_s)
        data = inline([{"y": height, "text": words}])
        line = alt.Chart(data).mark_rule(strokeDash=dash, color=theme.text, strokeWidth=1.2, aria=False)
        text = alt.Chart(data).mark_text(align=align, baseline=baseline, dy=down, color=theme.text, aria=False)
        layers += [line.encode(y=y), text.encode(x=at, y=y, text=alt.Text("text", type="nominal"))]
    return layers


def _beside(one: Curve, dashed: bool) -> tuple[Any, Any]:
    """Return where the text of a line stands so that the curve does not cross it.

    In the valley of a share the upper text stands in its middle, the lower one under its right slope; on a falling curve both
    stand at the left where the curve is above them, else at the right.
    """
    if one.what == "share" and dashed:
        return alt.value({"expr": "width / 2"}), "center"
    left = one.what != "share" and drawable(one)[0][1] > one.single_s
    return (alt.value(6), "left") if left else (alt.value({"expr": "width"}), "right")


def _marks(one: Curve, points: Sequence[tuple[float, float]], theme: Theme, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    said = _said(one, points)
    colours = {"primary": theme.primary, "compute": dict(theme.terms)["memory traffic"], "alarm": theme.alarm}
    rows: list[Row] = [
        {"x": _shown(one, place), "y": height, "mark": f"{name}: {said[name]}", "name": name, "where": said[name]}
        for name, place, height in _places(one)
        if name in said
    ]
    if not rows:
        return []
    present = [mark for mark in MARKS if mark[0] in said]
    domain = [f"{name}: {said[name]}" for name, _, _ in present]
    key = legend("", 3, 1)
    colour = alt.Color(
        "mark", type="nominal", legend=key, scale=alt.Scale(domain=domain, range=[colours[tint] for _, _, tint in present])
    )
    shape = alt.Shape(
        "mark", type="nominal", legend=key, scale=alt.Scale(domain=domain, range=[shape for _, shape, _ in present])
    )
    tooltip = tooltips(("name", "mark"), ("where", "at"))
    data = inline(rows)
    drop = alt.Chart(data).mark_rule(strokeWidth=1, opacity=0.7, aria=False).encode(x=x, y=y, color=colour)
    ring = (
        alt.Chart(data)
        .mark_point(filled=False, size=230, strokeWidth=2)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tooltip)
    )
    full = (
        alt.Chart(data).mark_point(filled=True, size=90, opacity=1).encode(x=x, y=y, color=colour, shape=shape, tooltip=tooltip)
    )
    return [
        drop.encode(y2=alt.value("height")),
        ring.transform_filter("datum.name == 'fastest'"),
        full.transform_filter("datum.name != 'fastest'"),
    ]
