"""How rates depend on size: memory over its working set, with the fall at each cache, and products over their side."""

import altair as alt

from core import format as write
from core.roofline import DeviceRoof
from reports.charts.frame import SI_LABEL, Layered, finish, inline, log_domain, log_ticks, tooltips
from reports.charts.suite_marks import BYTES_LABEL, level_lines, log_axis, marks, row_of, runtimes_of
from reports.suite_text import describe_suite
from reports.theme import Theme, theme_named

HEIGHT = 320


def memory_curve(device: DeviceRoof, dtype: str = "fp32", theme: str = "light") -> Layered | None:
    """Draw bytes per second of each pass over memory against its working set.

    Args:
        device: what was measured.
        dtype: of the elements.
        theme: `light` or `dark`.

    Returns:
        The chart, or None when no pass over memory was measured in that dtype.
    """
    roofs = device.of(dtype)
    points = [p for roof in roofs for p in roof.memory]
    told = [p.rate.mid for p in points if p.rate is not None]
    if not told:
        return None
    look = theme_named(theme)
    references = [r for r in device.references if r.kind == "memory"]
    ends = log_domain([p.size for p in points], 1.6)
    low, high = log_domain([*told, *(r.value for r in references)], 1.8)
    ticks = [2.0**power for power in range(10, 44, 4) if ends[0] <= 2.0**power <= ends[1]]
    x = alt.X(**log_axis("x", ends, "working set, logarithmic", ticks, labelExpr=BYTES_LABEL))
    y = alt.Y(
        **log_axis("value", (low, high), "bytes/s, read and written, logarithmic", log_ticks(low, high), labelExpr=SI_LABEL)
    )
    rows = [row_of(p, p.size, low * 1.1) for p in points]
    layers = [
        *level_lines(references, lambda one: [(ends[0], one.value), (ends[1], one.value)], look, x, y),
        *_cache(device, ends, look, x),
        *marks(rows, runtimes_of(roofs), look, x, y, lines=True),
    ]
    subtitle = "each line is one kernel in one runtime; results go to fresh memory, as frameworks allocate it"
    title = f"Memory of {device.device.id}, {dtype}"
    return finish(layers, [], look, title, subtitle, describe_suite("memory_curve", device, dtype), HEIGHT)


def _cache(device: DeviceRoof, ends: tuple[float, float], theme: Theme, x: alt.X) -> list[alt.Chart]:
    size = device.device.cache_bytes
    if not size or not ends[0] < size < ends[1]:
        return []
    row = [{"x": size, "label": f"last-level cache, {write.memory(size)}"}]
    rule = alt.Chart(inline(row)).mark_rule(color=theme.muted, strokeDash=[4, 4])
    text = alt.Chart(inline(row)).mark_text(align="right", dx=-5, dy=10, color=theme.muted, aria=False, fontSize=11)
    return [
        rule.encode(x=x, tooltip=tooltips(("label", "cache"))),
        text.encode(x=x, y=alt.value(0), text=alt.Text("label", type="nominal")),
    ]


def matmul_rates(device: DeviceRoof, dtype: str = "fp32", theme: str = "light") -> Layered | None:
    """Draw the rate of square products against their side.

    Args:
        device: what was measured.
        dtype: of the operands.
        theme: `light` or `dark`.

    Returns:
        The chart, or None when no square product was measured in that dtype.
    """
    roofs = device.of(dtype)
    wanted = ("matmul_chain", "matmul_misaligned")
    points = [p for roof in roofs for p in (*roof.matmul, *roof.operators) if p.subject in wanted]
    told = [p.rate.mid for p in points if p.rate is not None]
    if not told:
        return None
    look = theme_named(theme)
    references = [r for r in device.references if r.kind == "matmul" and r.dtype == dtype]
    ends = log_domain([p.size for p in points], 1.25)
    low, high = log_domain([*told, *(r.value for r in references)], 1.6)
    sides = [2.0**power for power in range(5, 17) if ends[0] <= 2.0**power <= ends[1]]
    x = alt.X(**log_axis("x", ends, "side of the matrices, logarithmic", sides, format="d"))
    y = alt.Y(**log_axis("value", (low, high), "FLOP/s, logarithmic", log_ticks(low, high), labelExpr=SI_LABEL))
    rows = [row_of(p, p.size, low * 1.1) for p in points]
    layers = [
        *level_lines(references, lambda one: [(ends[0], one.value), (ends[1], one.value)], look, x, y),
        *marks(rows, runtimes_of(roofs), look, x, y, lines=True),
    ]
    title = f"Square products on {device.device.id}, {dtype}"
    subtitle = "two lines of one runtime: sides that fill the tiles of the hardware, and sides that miss them by a little"
    if not any(p.subject == "matmul_misaligned" for p in points):
        subtitle = "each needs the one before; bars hold 80 % of the samples"
    return finish(layers, [], look, title, subtitle, describe_suite("matmul_rates", device, dtype), HEIGHT)
