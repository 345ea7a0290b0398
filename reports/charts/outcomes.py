"""Block times as they arrive: for each runtime what each block of the workload took, and what failed."""

import altair as alt

from core import format as write
from core.probe import RUNTIME_IDS, Measurement, Outcome
from core.run import Run
from core.statistics import quantile
from core.workload import Size
from reports.charts.frame import (
    MARK_AT,
    ROW_HEIGHT,
    SECONDS_LABEL,
    Layered,
    Row,
    finish,
    legend,
    log_domain,
    log_ticks,
    row_axis,
    row_names,
    tooltips,
)
from reports.describe import describe
from reports.theme import Theme, theme_named

SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left")


def outcomes(run: Run, theme: str = "light") -> Layered | None:
    """Draw the median time of every block in every runtime that has answered, with quartiles; failures are said in words.

    Args:
        run: in any state; rows keep their place while others arrive.
        theme: `light` or `dark`.

    Returns:
        The chart, or None before the first block was measured.
    """
    blocks = [o for o in run.outcomes if o.probe.family == "block"]
    if not any(isinstance(o, Measurement) and o.median_s > 0 for o in blocks):
        return None
    look = theme_named(theme)
    names = {(block.kind, block.sizes): block.name for block in run.workload.blocks}
    rows = _rows(blocks, names)
    low, high = log_domain([row[key] for row in rows if "mid" in row for key in ("low", "high")])
    axis = alt.Axis(
        title="time of one block, logarithmic", values=log_ticks(low, high), labelExpr=SECONDS_LABEL, labelOverlap="greedy"
    )
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    kinds = list(dict.fromkeys([*names.values(), *(row["block"] for row in rows)]))
    layers = [
        *_marks([kind for kind in kinds if any(row["block"] == kind for row in rows)], look, axis, scale),
        *row_names(look, 0),
    ]
    return finish(
        layers,
        rows,
        look,
        "Measured times of the workload's blocks",
        "medians with quartiles, one copy of each block",
        describe("outcomes", run),
        alt.Step(ROW_HEIGHT),
    )


def _rows(blocks: list[Outcome], names: dict[tuple[str, tuple[tuple[str, Size], ...]], str]) -> list[Row]:
    runtimes = [runtime for runtime in RUNTIME_IDS if any(o.probe.runtime == runtime for o in blocks)]
    rows: list[Row] = []
    for outcome in sorted(blocks, key=lambda o: runtimes.index(o.probe.runtime)):
        probe = outcome.probe
        place = runtimes.index(probe.runtime)
        row: Row = {
            "row": place,
            "runtime": probe.runtime,
            "block": names.get((probe.subject, probe.sizes), probe.subject),
            "strong": False,
            "device": probe.device,
            "mark": "",
            "name": "",
            "value": "",
        }
        if all(other["row"] != place for other in rows):
            mine = [o for o in blocks if o.probe.runtime == probe.runtime]
            failed = [o for o in mine if not isinstance(o, Measurement)]
            row["name"] = probe.runtime
            row["value"] = f"{len(failed)} of {len(mine)} failed" if failed else f"{len(mine)} measured"
        if isinstance(outcome, Measurement) and outcome.median_s > 0:
            samples = outcome.samples_s
            figures = outcome.figures
            middle = figures.median
            row |= {
                "mid": middle,
                "low": max(quantile(samples, 0.25), middle / 100),
                "high": quantile(samples, 0.75),
                "time": write.seconds(middle),
                "spread": write.seconds(figures.iqr),
                "least": write.seconds(figures.minimum),
                "samples": figures.count,
            }
        rows.append(row)
    return rows


def _marks(kinds: list[str], theme: Theme, axis: alt.Axis, scale: alt.Scale) -> list[alt.Chart]:
    colours = alt.Scale(domain=kinds, range=[theme.parts[index % len(theme.parts)] for index in range(len(kinds))])
    shapes = alt.Scale(domain=kinds, range=[SHAPES[index % len(SHAPES)] for index in range(len(kinds))])
    key = legend("block", 3, 1)
    colour = alt.Color("block", type="nominal", scale=colours, legend=key)
    tooltip = tooltips(*((name, name) for name in ("runtime", "block", "time", "spread", "least", "samples", "device")))
    y = alt.Y(**row_axis()).bandPosition(MARK_AT)
    low, x = (alt.X(field, type="quantitative", axis=axis, scale=scale) for field in ("low", "mid"))
    spread = (
        alt.Chart()
        .mark_rule(strokeWidth=6, strokeCap="round", opacity=0.35)
        .encode(x=low, x2="high", y=y, color=colour, tooltip=tooltip)
    )
    points = (
        alt.Chart()
        .mark_point(filled=True, size=85, opacity=1)
        .encode(x=x, y=y, color=colour, shape=alt.Shape("block", type="nominal", scale=shapes, legend=key), tooltip=tooltip)
    )
    known = "isValid(datum.mid)"
    return [spread.transform_filter(known), points.transform_filter(known)]
