"""Charts of a split hold the figures of the plan: bars of the timeline, marks of the curves, shares, and each pool alone."""

import json
from dataclasses import replace
from typing import Any

import pytest

from core.device import Pool
from core.split import Bar, Curve, Single
from reports.charts.split_curve import curve, describe_curve, height_at, near
from reports.charts.split_pools import describe_shares, describe_singles, shares, singles
from reports.charts.split_timeline import MOST_BARS, describe_timeline, lane_order, merged, placed_bars, timeline
from reports.charts.split_verified import verified
from reports.picture import to_svg
from tests.samples.splits import HOSTILE, SLOW, sample_hostile_split, sample_split, sample_verified

SPLIT = sample_split()
SHARE, BANDWIDTH = SPLIT.curves


def spec_of(chart: Any) -> dict[str, Any]:
    assert chart is not None
    return chart.to_dict()


def rows_of(spec: dict[str, Any], wanted: str) -> list[dict[str, Any]]:
    """Return every row of every data set of a chart that has a field."""
    return [row for rows in spec["datasets"].values() for row in rows if wanted in row]


def micro_batches(count: int) -> tuple[Bar, ...]:
    """Return a pipeline's timeline: each of two lanes computes for 2 ms and waits for 1 ms, `count` times."""
    bars: list[Bar] = []
    for lane in ("gpu", "tpu"):
        for index in range(count):
            at = index * 3e-3
            bars += [Bar(lane, at, at + 2e-3, "compute", f"forward {index}"), Bar(lane, at + 2e-3, at + 3e-3, "wait", "waits")]
    return tuple(bars)


def test_every_bar_of_a_timeline_is_drawn_where_it_is() -> None:
    rows = rows_of(spec_of(timeline(SPLIT.timeline)), "start")
    drawn = {(row["lane"], row["kind"], round(row["start"], 6), round(row["stop"], 6)) for row in rows}
    assert len(rows) == 7
    assert ("8 x h100-sxm", "computes", 0, round(10 * 455 / 1024, 6)) in drawn
    assert ("link", "moves", round(8 * 569 / 1024, 6), round(8 * 569 / 1024 + 0.64, 6)) in drawn


def test_the_link_stands_between_two_pools() -> None:
    assert lane_order(SPLIT.timeline) == ("8 x h100-sxm", "link", "16 x tpu-v6e")
    names = rows_of(spec_of(timeline(SPLIT.timeline)), "name")
    assert [row["lane"] for row in names] == ["8 x h100-sxm", "link", "16 x tpu-v6e"]


def test_of_three_pools_the_links_come_last() -> None:
    bars = tuple(Bar(lane, 0, 1, kind, "") for lane, kind in (("a", "compute"), ("a-b", "move"), ("b", "wait"), ("c", "compute")))
    assert lane_order(bars) == ("a", "b", "c", "a-b")


def test_pools_are_drawn_in_the_order_that_is_asked_for() -> None:
    assert lane_order(SPLIT.timeline, ("16 x tpu-v6e", "8 x h100-sxm")) == ("16 x tpu-v6e", "link", "8 x h100-sxm")


def test_a_lane_says_what_it_does_in_all() -> None:
    value = rows_of(spec_of(timeline(sample_verified().timeline)), "name")[0]["value"]
    assert value == "computes 80.0 ms, waits 18.0 ms, updates 5.00 ms"


def test_a_wait_is_thinner_than_work() -> None:
    rows = rows_of(spec_of(timeline(SPLIT.timeline)), "start")
    height = {row["kind"]: row["bottom"] - row["top"] for row in rows}
    assert height["waits"] < 0.5 * height["computes"]


def test_bars_of_one_lane_that_overlap_stand_on_tracks_of_their_own() -> None:
    bars = (Bar("a", 0, 2, "compute", ""), Bar("a", 1, 3, "move", ""), Bar("a", 2, 3, "update", ""))
    assert [(placed.track, placed.tracks) for placed in placed_bars(bars)] == [(0, 2), (1, 2), (0, 2)]


def test_two_timelines_can_share_one_axis() -> None:
    spec = spec_of(timeline(SPLIT.timeline, end_s=9.0))
    assert '"domain": [0, 9.0]' in json.dumps(spec)


def test_few_bars_are_left_as_they_are() -> None:
    bars = micro_batches(40)
    assert merged(bars) == bars


@pytest.mark.parametrize("count", [51, 400, 5000])
def test_many_bars_are_drawn_as_the_kind_that_prevails(count: int) -> None:
    shown = merged(micro_batches(count))
    assert len(shown) <= MOST_BARS
    assert {bar.lane for bar in shown} == {"gpu", "tpu"}
    end = max(bar.stop_s for bar in shown)
    assert end == pytest.approx(3e-3 * count)
    assert all(bar.what for bar in shown)
    if count > 400:  # slots are then longer than a bar, and two thirds of each are work
        assert {bar.kind for bar in shown} == {"compute"}


def test_a_stretch_in_which_nothing_happens_stays_empty_when_bars_are_merged() -> None:
    early = micro_batches(300)
    late = tuple(replace(bar, start_s=bar.start_s + 10, stop_s=bar.stop_s + 10) for bar in early)
    shown = [bar for bar in merged(early + late) if bar.lane == "gpu"]
    assert not any(bar.start_s < 5 < bar.stop_s for bar in shown)


def test_no_bar_draws_no_timeline_and_says_so() -> None:
    assert timeline(()) is None
    assert timeline((Bar("a", 1, 1, "compute", ""),)) is None
    assert describe_timeline(()) == "There is no timeline."


def test_a_curve_marks_what_is_planned_fastest_and_break_even() -> None:
    marks = {row["name"]: (row["x"], row["y"]) for row in rows_of(spec_of(curve(SHARE)), "mark")}
    assert marks["planned"] == pytest.approx((455 / 1024, 8 * 569 / 1024 + 0.64))
    assert marks["fastest"] == pytest.approx((4 / 9, 40 / 9 + 0.64))
    assert marks["break-even"] == pytest.approx((0.08, 8.0))


def test_a_link_is_drawn_in_bits_on_a_logarithmic_axis() -> None:
    spec = spec_of(curve(BANDWIDTH))
    marks = {row["name"]: row["x"] for row in rows_of(spec, "mark")}
    assert marks["planned"] == pytest.approx(2e11)
    assert marks["break-even"] == pytest.approx(8 * 16e9 / (8 - 8 * 569 / 1024))
    assert '"title": "link, bit/s, logarithmic"' in json.dumps(spec)


def test_the_best_single_pool_and_what_is_worth_two_stacks_are_rules() -> None:
    spec = spec_of(curve(SHARE, least_saving=0.2))
    rules = {row["text"]: row["y"] for row in rows_of(spec, "text")}
    assert rules == {"best single pool 8.00 s": 8.0, "20 % less: 6.40 s": 6.4}


def test_without_a_single_pool_there_is_no_rule() -> None:
    lonely = replace(SHARE, single_s=float("inf"), break_even=None)
    assert rows_of(spec_of(curve(lonely, least_saving=0.2)), "text") == []
    assert "no single pool can do it" in describe_curve(lonely)


def test_a_mark_beyond_the_axis_is_left_out() -> None:
    marks = rows_of(spec_of(curve(replace(BANDWIDTH, now=1e15, best=None))), "mark")
    assert [row["name"] for row in marks] == ["break-even"]


def test_links_too_slow_for_anybody_are_not_drawn() -> None:
    shown = near(BANDWIDTH)
    assert shown[-1] == BANDWIDTH.points[-1]
    assert shown[0][1] > 16 * 8.0 > shown[1][1]
    slow = replace(BANDWIDTH, now=BANDWIDTH.points[0][0])
    assert near(slow) == slow.points
    assert near(SHARE) == SHARE.points


def test_each_planned_place_has_a_dot_where_there_are_few() -> None:
    few = Curve("share", ((0, 4), (0.5, 2), (1, 6)), 0.5, None, None, 4)
    many = replace(few, points=tuple((i / 100, 4.0 - i / 100) for i in range(101)))
    assert [len(spec_of(curve(one))["layer"]) for one in (few, many)] == [7, 6]


@pytest.mark.parametrize(
    ("one", "x", "seconds"),
    [
        (Curve("share", ((0, 4), (1, 2)), None, None, None, 3), 0.25, 3.5),
        (Curve("bandwidth", ((1e8, 4), (1e10, 2)), None, None, None, 3), 1e9, 3.0),
        (Curve("share", ((0.2, 4), (1, 2)), None, None, None, 3), 0.1, None),
    ],
)
def test_between_points_a_curve_is_read_as_it_is_drawn(one: Curve, x: float, seconds: float | None) -> None:
    assert height_at(one, x) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("points", [(), ((0.5, 1.0),), ((0.0, float("inf")), (1.0, float("nan")))])
def test_fewer_than_two_points_draw_no_curve(points: tuple[tuple[float, float], ...]) -> None:
    one = replace(SHARE, points=points)
    assert curve(one) is None
    assert describe_curve(one) == "There is no curve to draw."


def test_shares_fill_the_bar() -> None:
    rows = rows_of(spec_of(shares(SPLIT)), "fraction")
    assert [(row["from"], row["to"]) for row in rows] == [pytest.approx((0, 455 / 1024)), pytest.approx((455 / 1024, 1))]
    assert rows[1]["key"] == "16 x tpu-v6e: 56 %, 569 samples"
    assert describe_shares(SPLIT) == "Shares of the work: jax on 8 x h100-sxm 44 %, 455 samples; 16 x tpu-v6e 56 %, 569 samples."


def test_nothing_shared_draws_nothing() -> None:
    assert shares(replace(SPLIT, shares=())) is None
    assert shares(replace(SPLIT, shares=(replace(SPLIT.shares[0], fraction=0.0),))) is None


def test_the_split_stands_beside_each_pool_alone_with_bands() -> None:
    rows = rows_of(spec_of(singles(SPLIT)), "mid")
    assert [row["mid"] for row in rows] == pytest.approx([8 * 569 / 1024 + 0.64, 10.0, 8.0])
    assert all(row["low"] < row["mid"] < row["high"] for row in rows)
    assert [row["strong"] for row in rows] == [True, False, False]


def test_over_a_slow_link_the_pool_alone_is_marked() -> None:
    rows = rows_of(spec_of(singles(sample_split(SLOW))), "mid")
    assert [row["mark"] for row in rows] == ["", "", "✔"]


def test_costs_are_those_of_a_thousand_steps() -> None:
    rows = rows_of(spec_of(singles(SPLIT, "cost", amount="1,000 steps")), "mid")
    assert rows[2]["mid"] == pytest.approx(1000 * 8 / 3600 * 16 * 2.70)
    assert "1,000 steps" in describe_singles(SPLIT, "cost") or rows[2]["value"] == "$96.00"


def test_a_pool_that_cannot_do_it_alone_says_so() -> None:
    small = Single(Pool("v100", 1, "gpu"), "jax", None, None, None, False, "does not fit")
    spec = spec_of(singles(replace(SPLIT, singles=(*SPLIT.singles, small))))
    assert [row["value"] for row in rows_of(spec, "value")][-1] == "cannot"


def test_no_number_draws_no_bars() -> None:
    unknown = tuple(replace(one, energy_j=None) for one in SPLIT.singles)
    assert singles(replace(SPLIT, singles=unknown), "energy") is None


def test_planned_and_measured_stand_on_one_axis_with_every_step() -> None:
    spec = spec_of(verified(sample_verified()))
    rows = {row["what"]: row for row in rows_of(spec, "what")}
    assert rows["planned"]["mid"] == 0.1
    assert rows["measured"]["mid"] == pytest.approx(0.103)
    assert rows["measured"]["off"] == "+3.0 %"
    assert len(rows_of(spec, "step")) == 20


def test_without_a_timed_step_nothing_is_drawn() -> None:
    assert verified(replace(sample_verified(), step_s=())) is None


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_chart_fills_its_container_says_itself_in_words_and_draws(theme: str) -> None:
    drawn = (
        timeline(SPLIT.timeline, theme),
        curve(SHARE, theme, least_saving=0.2),
        curve(BANDWIDTH, theme),
        shares(SPLIT, theme),
        singles(SPLIT, "time", theme),
        verified(sample_verified(), theme),
    )
    for chart in drawn:
        spec = spec_of(chart)
        assert spec["width"] == "container"
        assert len(spec["description"]) > 40
        if theme == "dark":  # both have the same layers; drawing takes most of this test's time
            assert spec["title"]["text"] in to_svg(spec, 330)


def test_hostile_words_are_drawn_as_text() -> None:
    whole = sample_hostile_split()
    svg = to_svg(spec_of(timeline(whole.timeline)), 900)
    assert HOSTILE[:8] not in svg
    assert "&lt;script&gt;" in svg
