"""What is paid besides arithmetic: launches of each runtime, and classes of operations against the runtime's own roof."""

import altair as alt

from core import format as write
from core.roofline import DeviceRoof, LaunchCost
from reports.charts.frame import (
    MARK_AT,
    ROW_HEIGHT,
    SECONDS_LABEL,
    Layered,
    Row,
    finish,
    inline,
    legend,
    log_domain,
    log_ticks,
    row_axis,
    row_names,
    tooltips,
)
from reports.charts.suite_marks import POINT_TIPS, log_axis, row_of, runtimes_of, scales
from reports.suite_text import class_of, describe_suite
from reports.theme import RUNTIME_LOOKS, theme_named

PARTS = ("a call", "each further operation")
ROOM_FOR_TEXT = 2.5
"""Factor by which the axis goes on under the texts at the right."""
NO_NAME: Row = {"strong": False, "mark": "", "name": "", "value": ""}
"""Texts of a row of data that is a mark and not the name above it."""


def launch_costs(device: DeviceRoof, dtype: str = "fp32", theme: str = "light") -> Layered | None:
    """Draw what a call and a further operation in it cost in each runtime.

    Args:
        device: what was measured.
        dtype: of the roofs; launches are measured in float32 and the same for all.
        theme: `light` or `dark`.

    Returns:
        The chart, or None when no launch was measured.
    """
    roofs = {roof.runtime: roof.launch for roof in device.runtimes}
    names = [name for name in RUNTIME_LOOKS if name in roofs and (roofs[name].call_s or roofs[name].operation_s)]
    if not names:
        return None
    look = theme_named(theme)
    rows = [row for place, name in enumerate(names) for row in _launch_rows(place, name, roofs[name])]
    found = [row for row in rows if row["part"]]
    ends = log_domain([row["low"] for row in found] + [row["high"] for row in found], 1.5)
    x = alt.X(**log_axis("x", ends, "seconds, logarithmic", log_ticks(*ends), labelExpr=SECONDS_LABEL))
    low = x.copy()
    low["field"] = "low"
    y = alt.Y(**row_axis()).bandPosition(MARK_AT)
    key = legend("cost of", 2, 1)
    colour = alt.Color("part", type="nominal", scale=alt.Scale(domain=list(PARTS), range=[look.primary, look.muted]), legend=key)
    shape = alt.Shape("part", type="nominal", scale=alt.Scale(domain=list(PARTS), range=["circle", "diamond"]), legend=key)
    tip = tooltips(("runtime", "runtime"), ("part", "cost of"), ("time", "median"), ("band", "80 %"), ("source", "from"))
    layers = [
        alt.Chart()
        .mark_rule(strokeWidth=2, opacity=0.5, aria=False)
        .encode(x=low, x2=alt.X2("high"), y=y, color=colour)
        .transform_filter("datum.part"),
        alt.Chart()
        .mark_point(filled=True, size=70)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tip)
        .transform_filter("datum.part"),
        *row_names(look, indent=0),
    ]
    title = f"Launch cost on {device.device.id}"
    subtitle = "at the right: a bare call, and each further operation in it"
    return finish(layers, rows, look, title, subtitle, describe_suite("launch_costs", device, dtype), alt.Step(ROW_HEIGHT))


def _launch_rows(place: int, name: str, launch: LaunchCost) -> list[Row]:
    costs = (launch.call_s, launch.operation_s)
    shown = ", ".join(write.seconds(None if cost is None else cost.mid) for cost in costs)
    rows: list[Row] = [{"row": place, "strong": False, "mark": "", "name": name, "value": shown, "part": None}]
    for part, cost in zip(PARTS, costs, strict=True):
        if cost is not None:
            mark = {
                "row": place,
                "runtime": name,
                "part": part,
                "x": cost.mid,
                "low": cost.low,
                "high": cost.high,
                "time": write.seconds(cost.mid),
                "band": f"{write.seconds(cost.low)} to {write.seconds(cost.high)}",
                "source": "; ".join(cost.evidence),
            }
            rows.append(NO_NAME | mark)
    return rows


def operator_rates(device: DeviceRoof, dtype: str = "fp32", theme: str = "light") -> Layered | None:
    """Draw each class of operations as a share of what the runtime's own roof allows at its intensity.

    Args:
        device: what was measured.
        dtype: of the operations.
        theme: `light` or `dark`.

    Returns:
        The chart, or None when no operation has both a rate and a roof.
    """
    roofs = device.of(dtype)
    points = [p for roof in roofs for p in roof.operators if p.roof_share is not None]
    if not points:
        return None
    look = theme_named(theme)
    classes = list(dict.fromkeys(class_of(p) for p in sorted(points, key=class_of)))
    rows: list[Row] = []
    for place, name in enumerate(classes):
        own = [p for p in points if class_of(p) == name]
        best = max(p.roof_share or 0.0 for p in own)
        title = {"row": place, "strong": False, "mark": "", "name": name, "value": f"best {write.percent(best)}", "told": None}
        rows.append(title)
        for point in own:
            row = row_of(point, point.roof_share or 0.0, 0.0, share=True)
            rows.append(row | NO_NAME | {"row": place, "share": write.percent(point.roof_share)})
    found = [row for row in rows if row["told"] is not None]
    left, right = log_domain([row["low"] for row in found] + [row["high"] for row in found] + [1.0], 1.2)
    ends = left, right * ROOM_FOR_TEXT
    x = alt.X(**log_axis("x", ends, "share of the runtime's own roof, logarithmic", log_ticks(*ends), format=".3~%"))
    y = alt.Y(**row_axis()).bandPosition(MARK_AT)
    colour, shape, _ = scales(runtimes_of(roofs), look)
    tip = tooltips(*POINT_TIPS[:3], ("share", "share of the roof"), *POINT_TIPS[3:])
    roof_mark = alt.Chart(inline([{"x": 1.0}])).mark_rule(color=look.muted, strokeDash=[4, 4], aria=False)
    low = x.copy()
    low["field"] = "low"
    bands = alt.Chart().mark_rule(strokeWidth=2, opacity=0.4, aria=False).encode(x=low, x2=alt.X2("high"), y=y, color=colour)
    points_layer = alt.Chart().mark_point(filled=True, size=60, opacity=0.85)
    layers = [
        roof_mark.encode(x=x),
        bands.transform_filter("datum.told"),
        points_layer.encode(x=x, y=y, color=colour, shape=shape, tooltip=tip).transform_filter("datum.told"),
        *row_names(look, indent=0),
    ]
    title = f"Classes of operations on {device.device.id}, {dtype}"
    subtitle = "a point beyond the dashed line works in a cache; the roof is that of memory"
    return finish(layers, rows, look, title, subtitle, describe_suite("operator_rates", device, dtype), alt.Step(ROW_HEIGHT))
