"""What charts of a device's own measurements share: points by runtime with bands, doubted ones hollow, untold ones below.

A point that cannot be told from noise has no rate; it is drawn as a cross on the lower edge, where its size is, and says so.
"""

from collections.abc import Callable, Sequence
from typing import Any

import altair as alt

from core import format as write
from core.roofline import RatePoint, Reference, RuntimeRoof
from reports.charts.frame import Row, inline, legend, tooltips
from reports.theme import RUNTIME_LOOKS, Theme

SIZE = 64
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 6])
POINT_TIPS = (
    ("kernel", "kernel"),
    ("runtime", "runtime"),
    ("sizes", "sizes"),
    ("reached", "reached"),
    ("band", "80 % of samples"),
    ("time", "time of one"),
    ("doubts", "doubts"),
    ("provenance", "measured"),
)
BYTES_LABEL = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, '~g') + ' GiB'"
    " : datum.value >= 1048576 ? format(datum.value / 1048576, '~g') + ' MiB'"
    " : format(datum.value / 1024, '~g') + ' KiB'"
)


def rate_text(point: RatePoint, value: float | None) -> str:
    """Return a rate of a point in its unit, bytes in GB."""
    return write.count(value, unit_of(point))


def unit_of(point: RatePoint) -> str:
    """Return the unit of a point's rate: passes over memory and what computes nothing are told in bytes."""
    return "B/s" if point.intensity is None else "FLOP/s"


def sizes_text(point: RatePoint) -> str:
    """Return the sizes of a point, bytes in binary units."""
    return " ".join(
        f"{name} {write.memory(float(value)) if name == 'bytes' and isinstance(value, (int, float)) else value}"
        for name, value in point.sizes
    )


def row_of(point: RatePoint, x: float, floor: float, share: bool = False) -> Row:
    """Return one point as a row of data.

    Args:
        point: measured.
        x: where it stands.
        floor: value of the lower edge, for points without a rate.
        share: whether it is drawn by its share of the roof.
    """
    rate = point.rate
    factor = point.roof_share / rate.mid if share and rate is not None and point.roof_share is not None else 1.0
    return {
        "x": x,
        "value": floor if rate is None else rate.mid * factor,
        "low": floor if rate is None else rate.low * factor,
        "high": floor if rate is None else rate.high * factor,
        "told": rate is not None,
        "sure": rate is not None and point.trusted,
        "kernel": point.subject,
        "runtime": point.runtime,
        "sizes": sizes_text(point),
        "reached": "cannot be told from noise" if rate is None else rate_text(point, rate.mid),
        "band": "" if rate is None else f"{rate_text(point, rate.low)} to {rate_text(point, rate.high)}",
        "time": write.seconds(point.seconds),
        "doubts": "; ".join(point.doubts) or "none",
        "provenance": point.provenance,
    }


def scales(runtimes: Sequence[str], theme: Theme) -> tuple[alt.Color, alt.Shape, list[str]]:
    """Return colour and shape by runtime, and the runtimes in their usual order."""
    present = [name for name in RUNTIME_LOOKS if name in runtimes]
    colours = alt.Scale(domain=present, range=[dict(theme.frameworks)[RUNTIME_LOOKS[name][0]] for name in present])
    shapes = alt.Scale(domain=present, range=[RUNTIME_LOOKS[name][1] for name in present])
    key = legend("runtime", 4, 2)
    return (
        alt.Color("runtime", type="nominal", scale=colours, legend=key),
        alt.Shape("runtime", type="nominal", scale=shapes, legend=key),
        present,
    )


def marks(rows: Sequence[Row], runtimes: Sequence[str], theme: Theme, x: alt.X, y: alt.Y, lines: bool) -> list[alt.Chart]:
    """Return layers of bands, points and, when asked, lines that join the points of one kernel in one runtime."""
    colour, shape, _ = scales(runtimes, theme)
    tip = tooltips(*POINT_TIPS)
    low = y.copy()
    low["field"] = "low"
    base = alt.Chart(inline(rows))
    layers: list[alt.Chart] = []
    if lines:
        kernels = sorted({row["kernel"] for row in rows if row["sure"]})
        dashes = alt.Scale(domain=kernels, range=[DASHES[place % len(DASHES)] for place in range(len(kernels))])
        key = legend("kernel", 3, 1) if len(kernels) > 1 else None
        layers.append(
            base.mark_line(strokeWidth=1.5, opacity=0.8, aria=False)
            .encode(x=x, y=y, color=colour, strokeDash=alt.StrokeDash("kernel", type="nominal", scale=dashes, legend=key))
            .transform_filter("datum.sure")
        )
    layers.append(
        base.mark_rule(strokeWidth=2, opacity=0.45, clip=True, aria=False)
        .encode(x=x, y=low, y2=alt.Y2("high"), color=colour)
        .transform_filter("datum.told")
    )
    layers.append(
        base.mark_point(filled=True, size=SIZE, opacity=0.95)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tip)
        .transform_filter("datum.sure")
    )
    layers.append(
        base.mark_point(filled=False, size=SIZE, strokeWidth=1.5)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tip)
        .transform_filter("datum.told && !datum.sure")
    )
    layers.append(
        base.mark_point(shape="M-1,-1L1,1M-1,1L1,-1", size=SIZE, strokeWidth=2, filled=False)
        .encode(x=x, y=y, color=colour, tooltip=tip)
        .transform_filter("!datum.told")
    )
    return layers


def log_axis(field: str, ends: tuple[float, float], title: str, ticks: list[float], **label: Any) -> dict[str, Any]:
    """Return the options of one logarithmic axis."""
    return {
        "field": field,
        "type": "quantitative",
        "scale": alt.Scale(type="log", domain=list(ends), nice=False),
        "axis": alt.Axis(title=title, values=ticks, labelOverlap="greedy", **label),
    }


def level_lines(
    references: Sequence[Reference], at: Callable[[Reference], list[tuple[float, float]]], theme: Theme, x: alt.X, y: alt.Y
) -> list[alt.Chart]:
    """Return layers of what others say: peaks of makers dashed, published measurements dotted, each named at its right end.

    Args:
        references: to draw.
        at: the (x, y) stops of the line of one.
    """
    layers: list[alt.Chart] = []
    for place, one in enumerate(references):
        rows = [{"x": a, "value": b, "label": one.label, "source": one.source} for a, b in at(one)]
        layers.append(
            alt.Chart(inline(rows))
            .mark_line(color=theme.muted, strokeWidth=1.5, strokeDash=[7, 4] if one.vendor else [2, 3], clip=True)
            .encode(x=x, y=y, tooltip=tooltips(("label", "figure"), ("source", "source")))
        )
        layers.append(
            alt.Chart(inline(rows[-1:]))
            .mark_text(align="right", dy=-6 - 13 * (place % 2), color=theme.muted, aria=False, fontSize=11)
            .encode(x=x, y=y, text=alt.Text("label", type="nominal"))
        )
    return layers


def runtimes_of(roofs: Sequence[RuntimeRoof]) -> list[str]:
    """Return the runtimes of some roofs, each once."""
    return list(dict.fromkeys(roof.runtime for roof in roofs))
