"""A timeline of one step over pools and the links between them: who computes, who waits, what moves.

Lanes stand in rows with their names above them; waiting is a thin line, so that it can be told apart without colours. What
overlaps in one lane stands on tracks of its own. More bars than can be seen are drawn as the kind that prevails.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import altair as alt

from core import format as write
from core.split import BAR_KINDS, Bar
from reports.charts.frame import SECONDS_LABEL, Layered, Row, cut, finish, inline, legend, tooltips
from reports.split_run_text import KIND_WORDS, lane_totals, lanes_of
from reports.theme import Theme, theme_named

MOST_BARS = 200
MOST_TRACKS = 3
LANE_HEIGHT = 50
NAME_AT, TOP, BOTTOM = 0.2, 0.4, 0.92
"""Where in its lane the name and the bars stand, as fractions of the height."""
WAIT_PART = 0.28
"""Height of a wait, as a part of a bar's."""
LETTER_PX = 7.4
"""About how wide a letter of a bar's text is; a text that would not fit is left out."""
_TERMS = {"compute": "compute", "move": "communication", "wait": "launch", "update": "input"}
"""The term of a breakdown whose colour each kind has."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A bar on one of the tracks of its lane."""

    bar: Bar
    track: int
    tracks: int


def timeline(
    bars: Sequence[Bar],
    theme: str = "light",
    title: str = "One step",
    end_s: float | None = None,
    pools: Sequence[str] = (),
) -> Layered | None:
    """Draw a timeline.

    Args:
        bars: of one step, or of the job.
        theme: `light` or `dark`.
        title: above it.
        end_s: end of the axis, so that two can be compared; the last bar's when None.
        pools: lanes of pools in the order in which they are drawn; others follow in the order of their first bars.

    Returns:
        The chart, or None when there is no bar.
    """
    shown = merged(bars)
    if not shown:
        return None
    look = theme_named(theme)
    order = lane_order(bars, pools)
    end = max(end_s or 0.0, *(bar.stop_s for bar in shown))
    lanes = {lane: index for index, lane in enumerate(order)}
    totals = lane_totals(bars)
    names: list[Row] = [
        {
            "lane": cut(lane, 44),
            "top": index + TOP,
            "bottom": index + BOTTOM,
            "name": index + NAME_AT,
            "end": end,
            "value": totals[lane],
        }
        for lane, index in lanes.items()
    ]
    rows = [_row(placed, lanes[placed.bar.lane]) for placed in placed_bars(shown)]
    subtitle = f"{write.seconds(max(bar.stop_s for bar in shown))} from start to end; a thin line is waiting"
    layers = [*_lanes(names, look, len(order)), *_bars(look, len(order), end, [bar.kind for bar in shown])]
    return finish(layers, rows, look, title, subtitle, describe_timeline(bars, title), LANE_HEIGHT * len(order))


def describe_timeline(bars: Sequence[Bar], title: str = "One step") -> str:
    """Return the chart in words."""
    if not bars:
        return "There is no timeline."
    totals = lane_totals(bars)
    lanes = "; ".join(f"{lane} {totals[lane]}" for lane in lane_order(bars))
    return f"{title}: timeline over {write.seconds(max(bar.stop_s for bar in bars))}. {lanes}."


def lane_order(bars: Sequence[Bar], pools: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the lanes in the order in which they are drawn; those that `pools` names come first, in its order."""
    present = dict.fromkeys(bar.lane for bar in bars)
    lanes = list(dict.fromkeys([*(pool for pool in pools if pool in present), *present]))
    moving = [lane for lane in lanes if all(bar.kind == "move" for bar in bars if bar.lane == lane)]
    return lanes_of(lanes, moving)


def merged(bars: Sequence[Bar], most: int = MOST_BARS) -> tuple[Bar, ...]:
    """Return at most `most` bars that look alike: a lane with too many is cut into equal slots, each of the kind that prevails.

    Args:
        bars: any number; those without length are left out.
        most: bars at most, at least one for each lane.
    """
    long = [bar for bar in bars if bar.stop_s > bar.start_s]
    if len(long) <= most:
        return tuple(long)
    lanes = dict.fromkeys(bar.lane for bar in long)
    budget = max(1, most // len(lanes))
    shown: list[Bar] = []
    for lane in lanes:
        own = [bar for bar in long if bar.lane == lane]
        shown += own if len(own) <= budget else _prevailing(own, budget)
    return tuple(shown)


def placed_bars(bars: Sequence[Bar]) -> tuple[Placed, ...]:
    """Return each bar with its track: those of one lane that overlap stand on different ones, as far as there are enough."""
    placed: list[Placed] = []
    for lane in dict.fromkeys(bar.lane for bar in bars):
        ends: list[float] = []
        own: list[tuple[Bar, int]] = []
        for bar in sorted((bar for bar in bars if bar.lane == lane), key=lambda bar: (bar.start_s, -bar.stop_s)):
            free = next((track for track, end in enumerate(ends) if bar.start_s >= end - 1e-9 * abs(end)), None)
            if free is None and len(ends) < MOST_TRACKS:
                ends.append(0.0)
                free = len(ends) - 1
            track = len(ends) - 1 if free is None else free
            ends[track] = max(ends[track], bar.stop_s)
            own.append((bar, track))
        placed += [Placed(bar, track, len(ends)) for bar, track in own]
    return tuple(placed)


def _prevailing(bars: Sequence[Bar], slots: int) -> list[Bar]:
    """Return the bars of one lane as at most `slots` bars."""
    first, last = min(bar.start_s for bar in bars), max(bar.stop_s for bar in bars)
    width = (last - first) / slots
    weights: list[dict[str, float]] = [{} for _ in range(slots)]
    for bar in bars:
        for slot in range(int((bar.start_s - first) / width), min(int((bar.stop_s - first) / width) + 1, slots)):
            low, high = first + slot * width, first + (slot + 1) * width
            overlap = max(0.0, min(bar.stop_s, high) - max(bar.start_s, low))
            weights[slot][bar.kind] = weights[slot].get(bar.kind, 0.0) + overlap
    found: list[Bar] = []
    for slot, weight in enumerate(weights):
        if sum(weight.values()) < width / 2:
            continue
        kind = max(weight, key=lambda name: weight[name])
        start, stop = first + slot * width, first + (slot + 1) * width
        if found and found[-1].kind == kind and found[-1].stop_s >= start - width / 2:
            found[-1] = replace(found[-1], stop_s=stop)
        else:
            found.append(Bar(bars[0].lane, start, stop, kind, ""))
    return [replace(bar, what=f"mostly {KIND_WORDS[bar.kind]}: {_held(bars, bar)} bars drawn as one") for bar in found]


def _held(bars: Sequence[Bar], whole: Bar) -> int:
    return sum(bar.start_s < whole.stop_s and bar.stop_s > whole.start_s for bar in bars)


def _row(placed: Placed, lane: int) -> Row:
    bar = placed.bar
    height = (BOTTOM - TOP) / placed.tracks
    top = lane + TOP + placed.track * height
    room = (1 - WAIT_PART) / 2 * height if bar.kind == "wait" else 0.02
    return {
        "lane": bar.lane,
        "kind": KIND_WORDS.get(bar.kind, bar.kind),
        "what": bar.what,
        "label": "" if bar.kind == "wait" or placed.tracks > 1 else cut(bar.what, 40),
        "start": bar.start_s,
        "stop": bar.stop_s,
        "top": top + room,
        "bottom": top + height - room,
        "takes": write.seconds(bar.stop_s - bar.start_s),
        "from": f"{write.seconds(bar.start_s)} to {write.seconds(bar.stop_s)}",
    }


def _height(field: str, lanes: int) -> alt.Y:
    return alt.Y(field, type="quantitative", axis=None, scale=alt.Scale(domain=[0, lanes], reverse=True, nice=False, zero=False))


def _lanes(names: list[Row], theme: Theme, lanes: int) -> list[alt.Chart]:
    """Return what stands behind and above the bars: an empty track for each lane, its name, and what it does in all."""
    data = inline(names)
    track = alt.Chart(data).mark_rect(color=theme.line, opacity=0.45, cornerRadius=2, aria=False)
    name = alt.Chart(data).mark_text(align="left", baseline="middle", fontWeight=600, color=theme.text, aria=False)
    room = f"width > {LETTER_PX} * (length(datum.lane) + length(datum.value)) + 16"
    words = alt.ExprRef(f"{room} ? datum.value : ''")
    value = alt.Chart(data).mark_text(align="right", baseline="middle", color=theme.muted, aria=False, text=words)
    at = _height("name", lanes)
    return [
        track.encode(x=alt.value(0), x2=alt.value("width"), y=_height("top", lanes), y2="bottom"),
        name.encode(x=alt.value(0), y=at, text=alt.Text("lane", type="nominal")),
        value.encode(x=alt.value("width"), y=at),
    ]


def _bars(theme: Theme, lanes: int, end: float, kinds: Sequence[str]) -> list[alt.Chart]:
    present = [kind for kind in BAR_KINDS if kind in kinds]
    colours = dict(theme.terms)
    scale = alt.Scale(domain=[KIND_WORDS[kind] for kind in present], range=[colours[_TERMS[kind]] for kind in present])
    axis = alt.Axis(title="from the start", labelExpr=SECONDS_LABEL, tickCount=6, labelOverlap="greedy", grid=False)
    x = alt.X("start", type="quantitative", axis=axis, scale=alt.Scale(domain=[0, end], nice=False))
    y = _height("top", lanes)
    fields = ("lane", "lane"), ("kind", "does"), ("what", "what"), ("from", "when"), ("takes", "takes")
    bar = alt.Chart().mark_rect(cornerRadius=2, stroke=theme.card, strokeWidth=0.6)
    wide = f"scale('x', datum.stop) - scale('x', datum.start) > {LETTER_PX} * length(datum.label) + 8"
    words = alt.ExprRef(f"{wide} ? datum.label : ''")
    text = alt.Chart().mark_text(align="left", baseline="middle", dx=5, color=theme.card, aria=False, text=words)
    return [
        bar.encode(
            x=x,
            x2="stop",
            y=y,
            y2="bottom",
            color=alt.Color("kind", type="nominal", scale=scale, legend=legend("", 4, 2)),
            tooltip=tooltips(*fields),
        ),
        text.transform_calculate(middle="(datum.top + datum.bottom) / 2").encode(x=x, y=_height("middle", lanes)),
    ]
