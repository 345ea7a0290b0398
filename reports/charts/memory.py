"""Memory of one chip by its parts, against what the chip has."""

import altair as alt

from core import format as write
from core.advice import Estimate, Recommendation
from reports.charts.frame import (
    BAR_DOWN,
    BAR_HEIGHT,
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
from reports.describe import describe
from reports.theme import Theme, theme_named
from reports.view import mark_of, shortlist


def memory(recommendation: Recommendation | None, theme: str = "light", limit: int = 8) -> Layered | None:
    """Draw the memory parts of the first candidates as shares of their chip's capacity, with the capacity as a rule.

    Args:
        recommendation: None or one without memory parts draws nothing.
        theme: `light` or `dark`.
        limit: bars at most; candidates that need the same on the same chips share one.

    Returns:
        The chart, or None when no candidate has both parts and a capacity.
    """
    groups = _groups(recommendation, limit) if recommendation else []
    if recommendation is None or not groups:
        return None
    look = theme_named(theme)
    names = list(dict.fromkeys(name for group in groups for name, _ in group[0].memory_parts))
    rows = [row for index, group in enumerate(groups) for row in _rows(recommendation, index, group, names)]
    reach = max(sum(size for _, size in e.memory_parts) / (e.capacity_bytes or 1.0) for e, *_ in groups)
    layers = [_bars(names, look, max(1.04, 1.04 * reach)), _capacity(look), *row_names(look)]
    return finish(
        layers,
        rows,
        look,
        "Memory of one chip against its capacity",
        "parts as a share of what one chip has; past the red mark it does not fit",
        describe("memory", recommendation),
        alt.Step(ROW_HEIGHT),
    )


def _groups(recommendation: Recommendation, limit: int) -> list[list[Estimate]]:
    """Return candidates grouped by equal need on equal pools, in rank order."""
    groups: dict[object, list[Estimate]] = {}
    for estimate in recommendation.ranked + recommendation.unranked:
        if estimate.memory_parts and estimate.capacity_bytes:
            key = (estimate.candidate.pools, estimate.candidate.plan, estimate.memory_parts, estimate.capacity_bytes)
            groups.setdefault(key, []).append(estimate)
    shown = shortlist([group[0] for group in groups.values()], limit)
    return [group for group in groups.values() if group[0] in shown]


def _rows(recommendation: Recommendation, index: int, group: list[Estimate], names: list[str]) -> list[Row]:
    first = group[0]
    capacity = first.capacity_bytes or 1.0
    strong = any(mark_of(recommendation, estimate) == "✔" for estimate in group)
    where = first.candidate.label[len(first.candidate.runtime) + len(" on ") :]
    who = first.candidate.runtime if len(group) == 1 else f"{first.candidate.runtime} +{len(group) - 1}"
    used = sum(size for _, size in first.memory_parts)
    return [
        {
            "row": index,
            "candidate": ", ".join(e.candidate.runtime for e in group) + f" on {where}",
            "strong": strong,
            "mark": "✔" if strong and not place else "",
            "name": "" if place else cut(f"{who} on {where}"),
            "capacity": 1.0,
            "value": "" if place else _of(write.memory(used), write.memory(capacity)),
            "part": name,
            "order": names.index(name),
            "share": size / capacity,
            "bytes": write.memory(size),
        }
        for place, (name, size) in enumerate(first.memory_parts)
    ]


def _of(used: str, capacity: str) -> str:
    """Return `3.48 of 29.8 GiB`, the unit once when it is the same."""
    amount, unit = used.rsplit(" ", 1)
    return f"{amount if capacity.endswith(f' {unit}') else used} of {capacity}"


def _capacity(theme: Theme) -> alt.Chart:
    return (
        alt.Chart()
        .mark_tick(orient="vertical", color=theme.alarm, thickness=2.5, opacity=1, size=BAR_HEIGHT + 6, yOffset=BAR_DOWN)
        .encode(
            x=alt.X("capacity", type="quantitative"),
            y=alt.Y(**row_axis()),
            tooltip=tooltips(("candidate", "candidate"), ("value", "capacity")),
        )
        .transform_filter("datum.order == 0")
    )


def _bars(names: list[str], theme: Theme, reach: float) -> alt.Chart:
    colours = [theme.parts[index % len(theme.parts)] for index in range(len(names))]
    tooltip = tooltips(("candidate", "candidate"), ("part", "part"), ("bytes", "size"))
    tooltip.append(alt.Tooltip(field="share", type="quantitative", title="share of capacity", format=".1%"))
    return (
        alt.Chart()
        .mark_bar(height=BAR_HEIGHT, yOffset=BAR_DOWN, stroke=theme.card, strokeWidth=1)
        .encode(
            x=alt.X(
                "share",
                type="quantitative",
                stack="zero",
                scale=alt.Scale(domain=[0, reach], nice=False),
                axis=alt.Axis(title="share of one chip's memory", format=".0%", tickCount=5),
            ),
            y=alt.Y(**row_axis()),
            color=alt.Color("part", type="nominal", scale=alt.Scale(domain=names, range=colours), legend=legend("part", 5, 2)),
            order=alt.Order("order", type="quantitative"),
            tooltip=tooltip,
        )
    )
