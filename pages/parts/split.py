"""The answer to a split: verdict first, pools with the link between, one step over time, curves, and one pool alone beside it."""

from typing import Any

import streamlit as st

from core import format as write
from core.split import Bar, Curve, Split, pool_words
from core.workload import Workload
from pages.parts.tables import small_table
from pages.parts.text import TIER_COLOR, plain, tier_label, tier_legend
from reports import split_text as text
from reports.charts import split_curve, split_pools, split_timeline
from reports.split_prices import price_note
from reports.split_run_text import timeline_rows
from reports.view import UNKNOWN, Figure, figure

ROWS_SHOWN, ROW_PX = 10, 35
SIDES, CARDS = 2, 6
BAND = "Its 80 % band: meant to hold the truth four times in five"


def answer(found: Split) -> None:
    """Draw the verdict in one sentence, by how much, why, and what it rests on."""
    said = text.headline(found)
    st.header(plain(said.sentence, 600), anchor=False)
    with st.container(horizontal=True, gap="xsmall"):
        st.badge(
            plain(said.verdict),
            icon=":material/call_split:" if said.good else ":material/looks_one:",
            color="green" if said.good else "orange",
        )
        lost = found.saving is not None and found.saving < 0
        st.badge(plain(said.saving[:1].upper() + said.saving[1:], 120), color="red" if lost else "gray")
        st.badge(plain(text.mode_name(found.mode)), color="gray", help=plain(text.mode_meaning(found.mode)))
    st.markdown(f"**Why:** {plain(said.why, 600)}")
    st.markdown(f"**Rests on:** {plain(said.rests_on, 600)}")


def metrics(found: Split, workload: Workload) -> None:
    """Draw step time, cost, saving and the best single pool in one row; nothing where none of them is known."""
    best = found.best_single
    if best is None and found.seconds is None:
        return
    lost = found.saving is not None and found.saving < 0
    shown = (
        (f"{text.time_title(found.mode)}, together", figure(found.seconds), ""),
        ("Cost, together", figure(found.cost_usd, write.usd), f"of {text.amount_of(found.mode, workload)}"),
        (
            "Hybrid loses by" if lost else "Saves",
            Figure(UNKNOWN if found.saving is None else text.percent(abs(found.saving))),
            f"of {found.objective}; worth it from {text.percent(found.least_saving)}",
        ),
        (
            "Best single pool",
            text.objective_figure(best, found.objective) if best else Figure(UNKNOWN),
            text.side_label(best.runtime, best.pool) if best else "none can do it alone",
        ),
    )
    with st.grid(4, min_column_width=170, gap="small"):
        for title, number, note in shown:
            with st.container(border=True, height="stretch", gap="xsmall"):
                st.metric(plain(title), plain(number.text))
                if number.band:
                    st.caption(plain(number.band), help="Its 80 % band: meant to hold the truth four times in five")
                if note:
                    st.caption(plain(note))
                if number.tier:
                    st.badge(tier_label(number.tier), color=TIER_COLOR.get(number.tier, "gray"))


def pools_and_link(found: Split) -> None:
    """Draw the pools side by side with the link between them, then who has which share."""
    rows = text.share_rows(found)
    st.subheader("Who does what", anchor=False)
    if len(rows) > CARDS:
        _pools_table(rows)
    else:
        _cards(rows, found)
    if len(rows) != SIDES:
        with st.container(border=True, gap="xsmall"):
            _link(found)
    _chart("shares", found)


def timeline(bars: tuple[Bar, ...], title: str, key: str, end_s: float | None = None, pools: tuple[str, ...] = ()) -> None:
    """Draw a timeline and, folded, its twin as a table.

    Args:
        bars: of one step or of the job.
        title: above the chart.
        key: tells it from others of the page.
        end_s: end of the axis; the last bar's when None.
        pools: lanes of pools in the order in which they are drawn.
    """
    spec = _timeline_spec(bars, title, end_s, pools, _theme())
    if spec is None:
        st.caption("There is no timeline.")
        return
    _draw(spec, f"timeline:{key}")
    with st.expander(f"{title}, as a table", icon=":material/table_rows:"):
        rows = [
            {"Who": lane, "Does": kind, "What": what, "From (s)": start, "To (s)": stop}
            for lane, kind, what, start, stop in timeline_rows(bars)
        ]
        number = st.column_config.NumberColumn(format="%.4g")
        _table(rows, split_timeline.describe_timeline(bars, title), **{"From (s)": number, "To (s)": number})


def over_time(found: Split) -> None:
    """Draw who computes, who waits and what moves in one step."""
    if found.timeline:
        title = text.course_title(found.mode)
        st.subheader(f"{title} over time", anchor=False)
        timeline(found.timeline, f"{title}, planned", "planned", pools=tuple(pool_words(share.pool) for share in found.shares))


def curves(found: Split) -> None:
    """Draw step time against share and bandwidth, with what is marked there as tables, and where the choice turns."""
    drawn = [one for one in found.curves if len(split_curve.drawable(one)) > 1]
    turns = text.break_even_rows(found)
    if drawn or turns:
        st.subheader("Where the choice turns", anchor=False)
    with st.grid(2, min_column_width=380, gap="medium"):
        for one in drawn:
            with st.container(gap="small"):
                _curve(found, one)
    for what, _, _, words in turns:
        st.markdown(f"- **{plain(what.capitalize())}**: {plain(words[:1].upper() + words[1:], 400)}")


def beside_single(found: Split, workload: Workload) -> None:
    """Draw the split beside each pool alone: time and cost as bars, and a table."""
    st.subheader("Beside one pool alone", anchor=False)
    second = "energy" if found.objective == "energy" else "cost"
    with st.grid(2, min_column_width=380, gap="medium"):
        for what in ("time", second):
            with st.container(gap="small"):
                _chart(f"singles:{what}", found, text.amount_of(found.mode, workload))
    rows = text.single_rows(found)
    amount = text.amount_of(found.mode, workload)
    _table(
        [
            {
                "✔": row.mark,
                "Pools": row.label,
                text.time_title(found.mode): row.seconds.full,
                f"Cost, {amount}": row.cost.full,
                f"Energy, {amount}": row.energy.full,
                "Can": row.fits,
                "Rests on": tier_label(row.tier),
            }
            for row in rows
        ],
        "The split and each pool alone, with 80 % bands",
    )
    if note := price_note(found):
        st.caption(plain(note, 1000))
    for row in rows[1:]:
        if row.missing:
            st.caption(plain(f"{row.label}: {row.missing}", 400))


def more(found: Split) -> None:
    """Draw, folded, the parts of the step, what else was planned, what the rules say, and what is not known."""
    others, reasons = text.other_rows(found), text.reason_rows(found)
    if found.terms:
        with st.expander("Where the time goes", icon=":material/stacked_bar_chart:"):
            terms = text.term_rows(found)
            columns = {name: [plain(row[index]) for row in terms] for index, name in enumerate(("Part", "Time", "Share"))}
            small_table(columns)
    if others:
        with st.expander(f"{len(others)} other ways of dividing were planned", icon=":material/alt_route:"):
            small_table(
                {
                    "Way": [plain(row[0]) for row in others],
                    "Time": [row[1] for row in others],
                    "In a phrase": [plain(row[2], 300) for row in others],
                }
            )
    if reasons:
        with st.expander(f"What {len(reasons)} rule{'s say' if len(reasons) > 1 else ' says'}", icon=":material/gavel:"):
            for row in reasons:
                st.markdown(f"**{plain(row.effect.capitalize())}** · {plain(row.applies_to)} · {plain(row.reason, 600)}")
                source = f"[{plain(row.source, 120)}](<{row.href}>)" if row.href else plain(row.source, 200)
                st.markdown(
                    f":small[Source: {source}, as of {plain(row.as_of)} · rule {plain(row.rule)}, flag {plain(row.flag)}]"
                )
    evidence = text.evidence_rows(found)
    if evidence:
        with st.expander("What the numbers rest on", icon=":material/fact_check:"):
            for whose, phrase in evidence:
                st.markdown(f"- **{plain(whose)}**: {plain(phrase, 600)}")
    if found.missing:
        with st.expander("What is not known, or taken as usual", icon=":material/help:"):
            for phrase in found.missing:
                st.markdown(f"- {plain(phrase, 400)}")
    st.caption(tier_legend())


def details(found: Split, workload: Workload, *, timed: bool = True) -> None:
    """Draw everything about a planned split that follows its answer.

    Args:
        found: the answer.
        workload: that it is of.
        timed: whether its timeline is drawn; False where it already stands beside the measured one.
    """
    if found.shares:
        pools_and_link(found)
    if timed:
        over_time(found)
    curves(found)
    beside_single(found, workload)
    more(found)


def _cards(rows: tuple[text.ShareRow, ...], found: Split) -> None:
    with st.grid(3, min_column_width=240, gap="small"):
        for index, row in enumerate(rows):
            if index == 1 and len(rows) == SIDES:
                with st.container(border=True, height="stretch", gap="xsmall"):
                    _link(found)
            with st.container(border=True, height="stretch", gap="xsmall"):
                _pool(row)


def _pools_table(rows: tuple[text.ShareRow, ...]) -> None:
    _table(
        [
            {
                "Pool": row.label,
                "Framework": row.runtime,
                "Share": row.fraction,
                "Does": row.amount,
                "How": row.detail,
                "Busy": row.busy,
                "Waits": row.wait,
                "Memory a chip": row.memory,
                "Price": row.price,
            }
            for row in rows
        ],
        "What each pool does",
    )


def _table(rows: list[dict[str, Any]], alt: str, **columns: Any) -> None:
    """Draw rows as a table that scrolls sideways in a narrow window; columns in which nothing is known are left out."""
    kept = [name for name in rows[0] if any(row[name] not in ("", None, UNKNOWN) for row in rows)]
    st.dataframe(  # pyright: ignore[reportUnknownMemberType]
        [{name: row[name] for name in kept} for row in rows],
        hide_index=True,
        height=ROW_PX * (min(len(rows), ROWS_SHOWN) + 1) + 3,
        alt=alt,
        placeholder=write.MISSING,
        column_config=columns,
    )


def _pool(row: text.ShareRow) -> None:
    st.caption(plain(row.runtime))
    st.markdown(f"**{plain(row.label)}**")
    st.metric("Share", row.fraction)
    lines = (
        ("Does", row.amount),
        ("How", row.detail),
        ("Busy", row.busy),
        ("Waits", row.wait),
        ("Memory a chip", row.memory),
        ("Price", row.price),
        ("Where", row.where),
    )
    st.markdown("  \n".join(f"{name}: {plain(value)}" for name, value in lines if value not in ("", UNKNOWN)))


def _link(found: Split) -> None:
    st.caption("Between them")
    rate, _, latency = text.link_text(found.link).partition(", ")
    st.markdown(":material/sync_alt: **Link**")
    st.metric("Rate, one way", rate)
    if latency:
        st.markdown(f"Latency: {plain(latency)}")
    for row in text.move_rows(found):
        takes = f"{row.size} in {row.seconds}, {row.exposed} waited for, {row.hidden} hidden"
        st.markdown(f"**{plain(row.what)}** {plain(row.way)}  \n{takes}")
    if not any(bar.kind == "move" for bar in found.timeline):
        st.markdown("Nothing crosses.")


def _curve(found: Split, one: Curve) -> None:
    who = text.side_label(found.shares[0].runtime, found.shares[0].pool) if found.shares else "the first pool"
    least = found.least_saving if found.objective == "time" else None
    spec = _curve_spec(one, who, least, _theme())
    if spec is not None:
        _draw(spec, f"curve:{one.what}")
    with st.expander("This curve as a table", icon=":material/table_rows:"):
        places = [{"At": text.curve_x(one, x), "Seconds": seconds} for x, seconds in split_curve.drawable(one)]
        _table(places, split_curve.describe_curve(one, who), Seconds=st.column_config.NumberColumn(format="%.4g"))


def _chart(name: str, found: Split, amount: str = "") -> None:
    spec = _spec(name, found, amount, _theme())
    if spec is not None:
        _draw(spec, f"split:{name}")


def _theme() -> str:
    return "dark" if st.context.theme.type == "dark" else "light"


def _draw(spec: dict[str, Any], key: str) -> None:
    st.vega_lite_chart(spec=spec, theme=None, width="stretch", key=key)  # pyright: ignore[reportUnknownMemberType]


@st.cache_data(max_entries=128, show_spinner=False)
def _spec(name: str, found: Split, amount: str, theme: str) -> dict[str, Any] | None:
    kind, _, what = name.partition(":")
    drawn = split_pools.shares(found, theme) if kind == "shares" else split_pools.singles(found, what, theme, amount)
    return None if drawn is None else drawn.to_dict()


@st.cache_data(max_entries=128, show_spinner=False)
def _curve_spec(one: Curve, who: str, least: float | None, theme: str) -> dict[str, Any] | None:
    drawn = split_curve.curve(one, theme, who, least)
    return None if drawn is None else drawn.to_dict()


@st.cache_data(max_entries=128, show_spinner=False)
def _timeline_spec(
    bars: tuple[Bar, ...], title: str, end_s: float | None, pools: tuple[str, ...], theme: str
) -> dict[str, Any] | None:
    drawn = split_timeline.timeline(bars, theme, title, end_s, pools)
    return None if drawn is None else drawn.to_dict()
