"""The empirical roofline of a device: what kernels reached by intensity, under each runtime's roof and beside others' figures."""

import altair as alt

from core.roofline import DeviceRoof, Reference, RuntimeRoof
from reports.charts.frame import SI_LABEL, Layered, finish, inline, log_domain, log_ticks
from reports.charts.suite_marks import level_lines, log_axis, marks, row_of, runtimes_of, scales
from reports.suite_text import describe_suite, roof_line
from reports.theme import Theme, theme_named

HEIGHT = 380
LEAST_INTENSITY, MOST_INTENSITY = 0.1, 3000.0


def device_roofline(device: DeviceRoof, dtype: str = "fp32", theme: str = "light") -> Layered | None:
    """Draw measured points over intensity, each runtime's roof, the maker's roof and published measurements.

    Args:
        device: what was measured.
        dtype: of the points and of the peaks.
        theme: `light` or `dark`.

    Returns:
        The chart, or None when nothing with arithmetic was measured in that dtype.
    """
    roofs = device.of(dtype)
    points = [p for roof in roofs for p in roof.points if p.intensity is not None]
    told = [p.rate.mid for p in points if p.rate is not None]
    if not told:
        return None
    look = theme_named(theme)
    references = [r for r in device.references if r.kind == "memory" or (r.kind == "matmul" and r.dtype == dtype)]
    levels = [r.value for r in references if r.kind == "matmul"]
    ends = log_domain([p.intensity for p in points if p.intensity], 2.0)
    ends = max(ends[0], LEAST_INTENSITY), min(max(ends[1], 10.0), MOST_INTENSITY)
    low, high = log_domain([*told, *levels], 2.2)
    x = alt.X(**log_axis("x", ends, "arithmetic intensity (FLOP/byte), logarithmic", log_ticks(*ends), format="~g"))
    y = alt.Y(**log_axis("value", (low, high), "FLOP/s, logarithmic", log_ticks(low, high), labelExpr=SI_LABEL))
    corner = next((r.value for r in references if r.vendor and r.kind == "memory"), None)
    top = next((r.value for r in references if r.vendor and r.kind == "matmul"), None)

    def stops(one: Reference) -> list[tuple[float, float]]:
        if one.kind == "memory":
            right = min(ends[1], max(ends[0], (top or high) / one.value))
            return [(ends[0], ends[0] * one.value), (right, right * one.value)]
        left = max(ends[0], one.value / corner) if corner else ends[0]
        return [(left, one.value), (ends[1], one.value)]

    rows = [row_of(p, p.intensity, low * 1.1) for p in points if p.intensity is not None]
    layers = [
        *level_lines(references, stops, look, x, y),
        *_roofs(roofs, ends, look, x, y),
        *marks(rows, runtimes_of(roofs), look, x, y, lines=False),
    ]
    subtitle = "points are kernels, lines what each runtime reached; dashed: the maker's peak, dotted: published measurements"
    return finish(
        layers,
        [],
        look,
        f"Empirical roofline of {device.device.id}, {dtype}",
        subtitle,
        describe_suite("device_roofline", device, dtype),
        HEIGHT,
    )


def _roofs(roofs: tuple[RuntimeRoof, ...], ends: tuple[float, float], theme: Theme, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    colour, _, _ = scales(runtimes_of(roofs), theme)
    rows = [
        {"x": at, "value": rate, "runtime": roof.runtime, "order": place}
        for roof in roofs
        for place, (at, rate) in enumerate(roof_line(roof, ends))
    ]
    if not rows:
        return []
    line = alt.Chart(inline(rows)).mark_line(strokeWidth=1.5, opacity=0.6, clip=True, aria=False)
    return [line.encode(x=x, y=y, color=colour, order=alt.Order("order", type="quantitative"))]
