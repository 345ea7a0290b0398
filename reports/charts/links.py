"""Time of a message over its size, both logarithmic: measured points, the fitted line, and the maker's figure if there is one."""

from collections.abc import Sequence

import altair as alt

from core import format as write
from core.links import LinkSeries
from reports.charts.frame import Layered, Row, finish, inline, legend, log_domain, log_ticks, tooltips
from reports.theme import RUNTIME_LOOKS, Theme, theme_named

HEIGHT = 320
STEPS = 40
"""Points that a fitted line is drawn through: a sum of a constant and a line is curved on logarithmic axes."""
TITLES = {
    "host_device": "Copies between host and device",
    "device_device": "Device to device",
    "collective": "Collectives",
    "hand_off": "Hand-off between two runtimes",
}
_TIME_LABEL = (
    "datum.value >= 1 ? format(datum.value, '~g') + ' s' : datum.value >= 1e-3 ? format(datum.value * 1e3, '~g') + ' ms' : "
    "format(datum.value * 1e6, '~g') + ' µs'"
)
_SIZE_LABEL = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, '~g') + ' GiB' : datum.value >= 1048576 ? "
    "format(datum.value / 1048576, '~g') + ' MiB' : datum.value >= 1024 ? format(datum.value / 1024, '~g') + ' KiB' : "
    "format(datum.value, '~g') + ' B'"
)


def links(series: Sequence[LinkSeries], theme: str = "light") -> Layered | None:
    """Draw the links of one kind.

    Args:
        series: of one kind; at most nine differ in what they are.
        theme: `light` or `dark`.

    Returns:
        The chart, or None when nothing was measured.
    """
    shown = [one for one in series if one.points]
    if not shown:
        return None
    look = theme_named(theme)
    sizes = [float(point.size_bytes) for one in shown for point in one.points]
    times = [point.seconds for one in shown for point in one.points]
    x, y = _axes(log_domain(sizes, 1.6), log_domain(times, 1.8))
    layers = [*_lines(shown, look, x, y), _points(shown, look, x, y), *_makers(shown, look, x, y)]
    fitted = sum(one.model is not None for one in shown)
    subtitle = f"medians measured here; lines: latency plus bytes over rate, fitted to {fitted} of {len(shown)} links"
    return finish(layers, [], look, TITLES[shown[0].kind], subtitle, describe_links(shown), HEIGHT)


def describe_links(series: Sequence[LinkSeries]) -> str:
    """Return what a chart of links shows, for people who cannot see it."""
    said = [f"{_name(one)} in {one.runtime}: {say_model(one)}" for one in series]
    return "Time of a message over its size, measured on this machine. " + "; ".join(said) + "."


def say_model(one: LinkSeries) -> str:
    """Return the fitted model of a link as a phrase."""
    if one.model is None:
        return "too few sizes for a model"
    rate = write.count(one.model.bytes_per_s, "B/s") if one.model.bytes_per_s else "no growth with bytes within what was measured"
    return f"{write.seconds(one.model.latency_s)} and {rate}"


def _name(one: LinkSeries) -> str:
    return one.what if one.devices < 2 else f"{one.what}, {one.devices} devices"


def _axes(sizes: tuple[float, float], times: tuple[float, float]) -> tuple[alt.X, alt.Y]:
    powers = [float(2**n) for n in range(64) if sizes[0] <= 2**n <= sizes[1]]
    x = alt.X(
        "size",
        type="quantitative",
        scale=alt.Scale(type="log", base=2, domain=list(sizes), nice=False),
        axis=alt.Axis(
            title="size of the message, logarithmic", values=powers[:: max(1, len(powers) // 8)], labelExpr=_SIZE_LABEL,
            labelOverlap="greedy",
        ),
    )
    y = alt.Y(
        "time",
        type="quantitative",
        scale=alt.Scale(type="log", domain=list(times), nice=False),
        axis=alt.Axis(title="time of one, logarithmic", values=log_ticks(*times), labelExpr=_TIME_LABEL, labelOverlap="greedy"),
    )
    return x, y


def _colours(series: Sequence[LinkSeries], theme: Theme) -> alt.Color:
    names = list(dict.fromkeys(_name(one) for one in series))
    scale = alt.Scale(domain=names, range=list(theme.parts[: len(names)]))
    return alt.Color("what", type="nominal", scale=scale, legend=legend("link", 3, 1))


def _shapes(series: Sequence[LinkSeries], theme: Theme) -> alt.Shape:
    names = [name for name in RUNTIME_LOOKS if any(one.runtime == name for one in series)]
    scale = alt.Scale(domain=names, range=[RUNTIME_LOOKS[name][1] for name in names])
    key = legend("runtime", 4, 2)
    key["symbolFillColor"] = key["symbolStrokeColor"] = theme.muted
    return alt.Shape("runtime", type="nominal", scale=scale, legend=key)


def _points(series: Sequence[LinkSeries], theme: Theme, x: alt.X, y: alt.Y) -> alt.Chart:
    rows: list[Row] = [
        {
            "what": _name(one),
            "runtime": one.runtime,
            "size": point.size_bytes,
            "time": point.seconds,
            "said": write.seconds(point.seconds),
            "bytes": write.memory(point.size_bytes),
            "rate": write.count(point.size_bytes / point.seconds, "B/s"),
            "spread": f"{write.percent(point.spread)} of the median, {point.samples} samples",
            "doubts": "; ".join(point.doubts) or "none",
        }
        for one in series
        for point in one.points
    ]
    fields = ("what", "link"), ("runtime", "runtime"), ("bytes", "size"), ("said", "time"), ("rate", "rate"), ("spread", "spread")
    return (
        alt.Chart(inline(rows))
        .mark_point(filled=True, size=70, opacity=0.9)
        .encode(
            x=x,
            y=y,
            color=_colours(series, theme),
            shape=_shapes(series, theme),
            tooltip=tooltips(*fields, ("doubts", "remarks")),
        )
    )


def _lines(series: Sequence[LinkSeries], theme: Theme, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    rows: list[Row] = []
    for one in series:
        if one.model is None:
            continue
        first, last = one.points[0].size_bytes, one.points[-1].size_bytes
        for step in range(STEPS + 1):
            size = first * (last / first) ** (step / STEPS)
            rows.append({"what": _name(one), "runtime": one.runtime, "size": size, "time": one.model.seconds(size)})
    if not rows:
        return []
    line = alt.Chart(inline(rows)).mark_line(strokeWidth=1.5, opacity=0.8, aria=False)
    return [line.encode(x=x, y=y, color=_colours(series, theme), detail="runtime:N")]


def _makers(series: Sequence[LinkSeries], theme: Theme, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    rows: list[Row] = []
    for peak in {one.peak_bytes_per_s for one in series if one.peak_bytes_per_s}:
        sizes = sorted(point.size_bytes for one in series if one.peak_bytes_per_s == peak for point in one.points)
        said = write.count(peak, "B/s")
        rows += [{"size": size, "time": size / peak, "peak": f"maker's figure: {said}"} for size in (sizes[0], sizes[-1])]
    if not rows:
        return []
    line = alt.Chart(inline(rows)).mark_line(strokeWidth=1.5, strokeDash=[5, 4], color=theme.muted, clip=True)
    return [line.encode(x=x, y=y, detail="peak:N", tooltip=tooltips(("peak", "maker")))]
