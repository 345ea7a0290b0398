"""Roofline of the attached device with the workload's own blocks and operations on it."""

from math import log10

import altair as alt

from core import format as write
from core.run import Run
from reports.charts.frame import SI_LABEL, Layered, Row, cut, finish, inline, legend, log_domain, log_ticks, tooltips
from reports.describe import describe
from reports.roof import OpMark, Point, Roof, device_of, op_marks, points_of, roof_of
from reports.theme import RUNTIME_LOOKS, Theme, theme_named

HEIGHT = 340
NAMED_OPS, NAMED_BLOCKS = 5, 4
ASIDE = 3.5
"""Pixels between the points of two runtimes, which share their intensity."""
APART = 0.16
"""Decades of intensity that two names of operations need between them."""


def roofline(run: Run, theme: str = "light") -> Layered | None:
    """Draw the roof of the device that was measured, its blocks by runtime, and its operations on the roof.

    Args:
        run: of any state; what is there is drawn.
        theme: `light` or `dark`.

    Returns:
        The chart, or None when no block was measured on an attached device.
    """
    device = device_of(run)
    points = points_of(run, device) if device else ()
    if device is None or not points:
        return None
    look = theme_named(theme)
    roof = roof_of(run, device)
    marks = op_marks(run.workload)
    ends = log_domain([p.intensity for p in points] + [m.intensity for m in marks], 2.2)
    x_axis, y_axis = _axes(points, marks, roof, ends)
    layers = [*_points(points, look, x_axis, y_axis), *_block_names(points, look, x_axis, y_axis, ends)]
    if roof.flop_per_s is not None or roof.bytes_per_s is not None:
        layers = [*_roof(roof, marks, look, x_axis, y_axis, ends), *layers]
    known = (
        f"roof {roof.tier}: {write.count(roof.flop_per_s, 'FLOP/s')}, {write.count(roof.bytes_per_s, 'B/s')}"
        if roof.flop_per_s or roof.bytes_per_s
        else "the roof is not known: no kernel was measured"
    )
    subtitle = f"{known}; points are blocks by runtime, ticks are kinds of operation"
    return finish(layers, [], look, f"Roofline of {device.id}, {run.workload.dtype}", subtitle, describe("roofline", run), HEIGHT)


def _axes(points: tuple[Point, ...], marks: tuple[OpMark, ...], roof: Roof, ends: tuple[float, float]) -> tuple[alt.X, alt.Y]:
    left, right = ends
    rates = [p.flop_per_s for p in points] + [rate for m in marks if (rate := roof.attainable(m.intensity))]
    rates += [roof.flop_per_s] if roof.flop_per_s else []
    low, high = log_domain(rates, 1.8)
    x = alt.X(
        "intensity",
        type="quantitative",
        scale=alt.Scale(type="log", domain=[left, right], nice=False),
        axis=alt.Axis(
            title="arithmetic intensity (FLOP/byte), logarithmic",
            values=log_ticks(left, right),
            format="~g",
            labelOverlap="greedy",
        ),
    )
    y = alt.Y(
        "rate",
        type="quantitative",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(title="FLOP/s, logarithmic", values=log_ticks(low, high), labelExpr=SI_LABEL, labelOverlap="greedy"),
    )
    return x, y


def _points(points: tuple[Point, ...], theme: Theme, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    present = [name for name in RUNTIME_LOOKS if any(point.runtime == name for point in points)]
    colours = alt.Scale(domain=present, range=[dict(theme.frameworks)[RUNTIME_LOOKS[name][0]] for name in present])
    shapes = alt.Scale(domain=present, range=[RUNTIME_LOOKS[name][1] for name in present])
    key = legend("runtime", 4, 2)
    layers: list[alt.Chart] = []
    for place, name in enumerate(present):
        rows = [
            {
                "block": p.block,
                "runtime": p.runtime,
                "intensity": p.intensity,
                "rate": p.flop_per_s,
                "time": write.seconds(p.seconds),
                "reached": write.count(p.flop_per_s, "FLOP/s"),
                "at": f"{write.three_digits(p.intensity)} FLOP/byte",
            }
            for p in points
            if p.runtime == name
        ]
        beside = ASIDE * (place - (len(present) - 1) / 2)
        layers.append(
            alt.Chart(inline(rows))
            .mark_point(filled=True, size=70, opacity=0.9, xOffset=beside)
            .encode(
                x=x,
                y=y,
                color=alt.Color("runtime", type="nominal", scale=colours, legend=key),
                shape=alt.Shape("runtime", type="nominal", scale=shapes, legend=key),
                tooltip=tooltips(
                    ("block", "block"),
                    ("runtime", "runtime"),
                    ("reached", "reached"),
                    ("at", "intensity"),
                    ("time", "time of one"),
                ),
            )
        )
    return layers


def _block_names(points: tuple[Point, ...], theme: Theme, x: alt.X, y: alt.Y, ends: tuple[float, float]) -> list[alt.Chart]:
    lowest: dict[str, Point] = {}
    for point in points:
        if point.block not in lowest or point.flop_per_s < lowest[point.block].flop_per_s:
            lowest[point.block] = point
    middle = (ends[0] * ends[1]) ** 0.5
    under = min(point.flop_per_s for point in points)
    layers: list[alt.Chart] = []
    longest = sorted(lowest.values(), key=lambda point: -point.seconds)[:NAMED_BLOCKS]
    for place, point in enumerate(sorted(longest, key=lambda point: point.intensity)):
        align = "right" if point.intensity > middle else "left"
        row = [{"intensity": point.intensity, "rate": under, "block": cut(point.block, 28)}]
        layers.append(
            alt.Chart(inline(row))
            .mark_text(align=align, dx=14 if align == "right" else -14, dy=18 + 15 * place, aria=False, color=theme.muted)
            .encode(x=x, y=y, text=alt.Text("block", type="nominal"))
        )
    return layers


def _roof(roof: Roof, marks: tuple[OpMark, ...], theme: Theme, x: alt.X, y: alt.Y, ends: tuple[float, float]) -> list[alt.Chart]:
    left, right = ends
    corner = roof.flop_per_s / roof.bytes_per_s if roof.flop_per_s and roof.bytes_per_s else None
    stops = sorted({left, right} | ({corner} if corner and left < corner < right else set()))
    line: list[Row] = [{"intensity": stop, "rate": roof.attainable(stop)} for stop in stops]
    named: list[Row] = []
    for mark in marks:
        clear = all(abs(log10(mark.intensity / row["intensity"])) > APART for row in named if row["name"])
        name = mark.kind if clear and sum(bool(row["name"]) for row in named) < NAMED_OPS else ""
        named.append(
            {
                "kind": mark.kind,
                "name": name,
                "intensity": mark.intensity,
                "rate": roof.attainable(mark.intensity),
                "share": write.percent(mark.share),
                "at": f"{write.three_digits(mark.intensity)} FLOP/byte",
                "limit": write.count(roof.attainable(mark.intensity), "FLOP/s"),
                "flat": corner is None or mark.intensity >= corner,
            }
        )
    tooltip = tooltips(("kind", "operation"), ("share", "share of FLOPs"), ("at", "intensity"), ("limit", "at most"))
    over = alt.Chart(inline(named)).mark_text(dy=-14, color=theme.text, aria=False).transform_filter("datum.flat")
    beside = (
        alt.Chart(inline(named)).mark_text(dx=9, dy=5, align="left", color=theme.text, aria=False).transform_filter("!datum.flat")
    )
    text = alt.Text("name", type="nominal")
    return [
        alt.Chart(inline(line)).mark_line(color=theme.muted, strokeWidth=2, clip=True, aria=False).encode(x=x, y=y),
        alt.Chart(inline(named))
        .mark_tick(orient="vertical", color=theme.text, thickness=2, size=12)
        .encode(x=x, y=y, tooltip=tooltip),
        over.encode(x=x, y=y, text=text),
        beside.encode(x=x, y=y, text=text),
    ]
