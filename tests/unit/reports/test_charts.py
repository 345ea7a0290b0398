"""Charts: valid specifications that hold every candidate, draw as vectors, fetch nothing and vanish when empty."""

import json
import re
from dataclasses import replace
from functools import cache
from typing import Any

import altair as alt
import pytest

from core.advice import Recommendation, Share
from core.device import Device
from core.probe import Measurement
from core.quantity import log_normal
from core.run import Run
from reports import charts
from reports.charts.frame import cut, log_domain, log_ticks, wrap
from reports.describe import CHARTS, describe
from reports.picture import to_png, to_svg
from reports.roof import OpMark, Roof, device_of, op_marks, points_of, roof_of
from reports.theme import THEMES
from tests.samples.runs import sample_hostile, sample_nothing_feasible, sample_run, sample_running

RUN = sample_run()
OF_ADVICE = ("candidates", "breakdown", "memory")


def advice_of(run: Run) -> Recommendation:
    assert run.recommendation is not None
    return run.recommendation


def subject_of(name: str, run: Run) -> Recommendation | Run:
    return advice_of(run) if name in OF_ADVICE else run


@cache
def spec_of(name: str, run: Run = RUN, theme: str = "light") -> dict[str, Any]:
    chart = getattr(charts, name)(subject_of(name, run), theme)
    assert chart is not None
    return chart.to_dict()


def data_of(spec: dict[str, Any]) -> str:
    """Return everything that the chart holds as data, as text."""
    return json.dumps(
        [spec.get("data"), spec.get("datasets"), [layer.get("data") for layer in spec["layer"]]], ensure_ascii=False
    )


def rows_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that the layers of a chart share."""
    return spec["datasets"][spec["data"]["name"]]


EACH = pytest.mark.parametrize("name", CHARTS)
COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")


@EACH
def test_a_chart_is_a_valid_specification_that_fills_its_container(name: str) -> None:
    spec = spec_of(name)
    assert spec["width"] == "container"
    assert spec["title"]["text"]
    assert alt.LayerChart.from_dict(spec).to_dict(validate=True)["layer"]


@EACH
@pytest.mark.parametrize("width", [330, 940])
def test_a_chart_draws_as_a_vector_picture_with_its_title_and_without_script(name: str, width: int) -> None:
    spec = spec_of(name)
    svg = to_svg(spec, width)
    assert svg.startswith("<svg")
    assert spec["title"]["text"] in svg.replace("&#39;", "'").replace("&apos;", "'")
    assert "<script" not in svg
    assert "href" not in svg


def test_a_chart_draws_as_a_png_in_both_themes() -> None:
    for theme in THEMES:
        assert to_png(spec_of("candidates", theme=theme), 330, theme, 1.0).startswith(b"\x89PNG")


@EACH
def test_a_chart_says_in_words_what_it_shows(name: str) -> None:
    assert spec_of(name)["description"] == describe(name, subject_of(name, RUN))


@EACH
def test_a_chart_names_no_address_to_fetch(name: str) -> None:
    assert '"url"' not in json.dumps(spec_of(name))


@EACH
def test_both_themes_of_a_chart_differ_in_colours_only(name: str) -> None:
    light, dark = (json.dumps(spec_of(name, theme=theme)) for theme in ("light", "dark"))
    assert light != dark
    assert COLOUR.sub("", light) == COLOUR.sub("", dark)


def test_each_colour_of_a_theme_stands_where_its_like_stands_in_the_other() -> None:
    light, dark = (json.dumps(spec_of("candidates", theme=theme)) for theme in ("light", "dark"))
    for name in ("background", "card", "text", "muted", "line", "primary", "tint", "alarm", "tiers"):
        pairs = zip(*([getattr(theme, name)] if name != "tiers" else theme.tiers for theme in THEMES.values()), strict=True)
        for ours, theirs in pairs:
            light = light.replace(ours, theirs)
    assert light == dark


def test_the_candidates_chart_holds_every_candidate_with_its_band() -> None:
    rows = rows_of(spec_of("candidates"))
    advice = advice_of(RUN)
    assert [row["candidate"] for row in rows] == [e.candidate.label for e in advice.ranked + advice.unranked]
    for row, estimate in zip(rows, advice.ranked, strict=False):
        assert estimate.step_time_s is not None
        assert (row["low"], row["mid"], row["high"]) == (
            estimate.step_time_s.low,
            estimate.step_time_s.mid,
            estimate.step_time_s.high,
        )


@pytest.mark.parametrize(("objective", "field"), [("cost", "cost_usd"), ("energy", "energy_j")])
def test_candidates_that_were_ranked_by_another_figure_are_drawn_by_it(objective: str, field: str) -> None:
    chart = charts.candidates(replace(advice_of(RUN), objective=objective))
    assert chart is not None
    spec = chart.to_dict()
    assert spec["title"]["text"] == f"{objective.capitalize()} of each candidate"
    assert spec["description"].startswith(f"{objective.capitalize()} of ")
    drawn = {row["candidate"]: row.get("mid") for row in rows_of(spec)}
    told = {one.candidate.label: getattr(one, field) for one in advice_of(RUN).ranked}
    assert any(drawn.values())
    assert all(drawn[label] == (None if value is None or not value.mid else value.mid) for label, value in told.items())


def test_a_candidate_without_a_step_time_is_named_but_not_drawn_at_zero() -> None:
    row = rows_of(spec_of("candidates"))[-1]
    assert (row["name"], row["value"]) == ("keras-torch on cpu:0", "not known yet")
    assert "mid" not in row


def test_a_chart_that_leaves_candidates_out_says_how_many() -> None:
    chart = charts.candidates(advice_of(RUN), limit=6)
    assert chart is not None
    spec = chart.to_dict()
    assert len(rows_of(spec)) == 6
    assert "8 more are not drawn" in " ".join(spec["title"]["subtitle"])


def test_the_breakdown_holds_every_slice_of_what_it_shows() -> None:
    chart = charts.breakdown(advice_of(RUN), limit=50)
    assert chart is not None
    rows = rows_of(chart.to_dict())
    for estimate in advice_of(RUN).ranked:
        mine = [row for row in rows if row["candidate"] == estimate.candidate.label]
        assert sum(row["seconds"] for row in mine) == pytest.approx(sum(share.seconds.mid for share in estimate.breakdown))


def test_step_times_far_apart_are_drawn_as_shares_and_near_ones_in_seconds() -> None:
    advice = advice_of(RUN)
    here = tuple(e for e in advice.ranked if e.candidate.pools[0].attached)
    near = charts.breakdown(replace(advice, best=here[0], ranked=here))
    assert near is not None
    assert "seconds of a step" in near.to_dict()["title"]["subtitle"][0]
    assert "share of a step" in spec_of("breakdown")["title"]["subtitle"][0]


def test_many_small_slices_share_one_colour() -> None:
    advice = advice_of(RUN)
    shares = tuple(Share("compute", f"stage {n}", log_normal(1.0 + n, 0.1, "measured")) for n in range(20))
    chart = charts.breakdown(replace(advice, ranked=(replace(advice.ranked[0], breakdown=shares),)))
    assert chart is not None
    names = {row["slice"] for row in rows_of(chart.to_dict())}
    assert len(names) == 10
    assert "compute: other" in names


def test_memory_is_drawn_as_a_share_of_what_one_chip_has() -> None:
    rows = rows_of(spec_of("memory"))
    first = advice_of(RUN).ranked[0]
    assert first.capacity_bytes is not None
    mine = [row["share"] for row in rows if row["row"] == 0]
    assert sum(mine) == pytest.approx(sum(size for _, size in first.memory_parts) / first.capacity_bytes)


def test_candidates_that_need_the_same_share_one_memory_bar_which_names_them_all() -> None:
    rows = rows_of(spec_of("memory"))
    assert [row["name"] for row in rows if row["name"]] == [
        "jax +1 on 16 x tpu-v6e",
        "jax +3 on 8 x h100-sxm",
        "torch-compile +7 on cpu:0",
    ]
    assert rows[0]["candidate"] == "jax, keras-jax on 16 x tpu-v6e"


def test_the_roofline_holds_every_trusted_block_and_the_operations_of_the_workload() -> None:
    held = data_of(spec_of("roofline"))
    blocks = [o for o in RUN.outcomes if isinstance(o, Measurement) and o.probe.family == "block"]
    assert held.count('"reached"') == len(blocks) == 15
    for kind in ("matmul", "attention", "elementwise"):
        assert f'"kind": "{kind}"' in held


def test_the_outcomes_chart_shows_failures_in_words() -> None:
    assert "1 of 2 failed" in data_of(spec_of("outcomes"))


def test_the_outcomes_chart_draws_while_a_run_still_measures() -> None:
    partial = charts.outcomes(sample_running())
    assert partial is not None
    assert data_of(partial.to_dict()).count('"mid"') == sum(
        o.probe.family == "block" and isinstance(o, Measurement) for o in sample_running().outcomes
    )


def test_nothing_to_draw_gives_no_chart() -> None:
    nothing = sample_nothing_feasible()
    for name in CHARTS:
        assert getattr(charts, name)(subject_of(name, nothing)) is None
        assert describe(name, subject_of(name, nothing))
    for name in OF_ADVICE:
        assert getattr(charts, name)(None) is None


def test_names_typed_by_people_stay_text_in_a_picture() -> None:
    run = sample_hostile()
    hostile = replace(run.workload.blocks[0], name="<script>alert(1)</script>")
    run = replace(run, workload=replace(run.workload, blocks=(hostile, *run.workload.blocks[1:])))
    svg = to_svg(spec_of("outcomes", run), 330)
    assert "<script" not in svg
    assert "&lt;script" in svg


def test_a_description_of_the_wrong_subject_is_refused() -> None:
    with pytest.raises(ValueError, match="got chart 'roofline' of a Recommendation"):
        describe("roofline", advice_of(RUN))
    with pytest.raises(ValueError, match="got chart 'pie' of a Run"):
        describe("pie", RUN)


def test_the_roof_is_the_best_that_trusted_kernels_reached() -> None:
    device = device_of(RUN)
    assert device is not None
    roof = roof_of(RUN, device)
    chains = [o for o in RUN.outcomes if isinstance(o, Measurement) and o.probe.subject == "matmul_chain"]
    sweeps = [o for o in RUN.outcomes if isinstance(o, Measurement) and o.probe.subject in ("copy", "triad")]
    assert roof == Roof(max(o.flop / o.median_s for o in chains), max(o.traffic_bytes / o.median_s for o in sweeps), "measured")


def test_a_quarantined_kernel_does_not_lift_the_roof() -> None:
    device = device_of(RUN)
    assert device is not None
    doubted = tuple(
        replace(o, trusted=False) if isinstance(o, Measurement) and o.probe.runtime == "jax" and o.probe.family == "kernel" else o
        for o in RUN.outcomes
    )
    lowered, full = roof_of(replace(RUN, outcomes=doubted), device), roof_of(RUN, device)
    assert lowered.flop_per_s is not None
    assert full.flop_per_s is not None
    assert lowered.flop_per_s < full.flop_per_s


def test_without_kernels_the_data_sheet_stands_in_and_says_so() -> None:
    gpu = Device("gpu:0", "gpu", "H100", "GPU-1", 80_000_000_000, accelerator="h100-sxm")
    bare = replace(RUN, outcomes=(), workload=replace(RUN.workload, dtype="bf16"))
    roof = roof_of(bare, gpu)
    assert roof.tier == "datasheet"
    assert roof.flop_per_s is not None
    assert roof.bytes_per_s is not None
    assert roof.attainable(1.0) == roof.bytes_per_s
    assert roof.attainable(1e9) == roof.flop_per_s


def test_a_device_that_nothing_is_known_of_has_no_roof() -> None:
    bare = replace(RUN, outcomes=())
    assert roof_of(bare, RUN.devices[0]).attainable(10.0) is None
    assert roof_of(bare, replace(RUN.devices[0], accelerator="no-such-chip")).attainable(10.0) is None
    assert device_of(bare) is None


def test_a_roofline_without_a_roof_still_shows_the_points() -> None:
    blocks = tuple(o for o in RUN.outcomes if o.probe.family == "block")
    chart = charts.roofline(replace(RUN, outcomes=blocks))
    assert chart is not None
    assert "not known" in " ".join(chart.to_dict()["title"]["subtitle"])


def test_points_lie_at_flops_over_bytes_and_flops_over_seconds() -> None:
    device = device_of(RUN)
    assert device is not None
    point = points_of(RUN, device)[0]
    block = RUN.workload.blocks[0]
    moved = sum(op.bytes_read + op.bytes_written for op in block.ops_forward + block.ops_backward)
    assert point.intensity == pytest.approx((block.flop_forward + block.flop_backward) / moved)
    assert point.flop_per_s == pytest.approx((block.flop_forward + block.flop_backward) / point.seconds)


def test_operations_are_told_by_their_share_of_the_work() -> None:
    marks = op_marks(RUN.workload)
    assert marks[0] == OpMark("matmul", marks[0].intensity, max(mark.share for mark in marks))
    assert sum(mark.share for mark in marks) == pytest.approx(1, abs=0.01)


def test_logarithmic_ticks_are_round_few_and_inside() -> None:
    for low, high in ((0.9, 1.4), (1.0, 3.0), (0.004, 0.09), (1e-6, 20.0), (1e-9, 1e6)):
        ticks = log_ticks(*log_domain([low, high]))
        assert 1 <= len(ticks) <= 12
        assert all(low / 1.2 <= tick <= high * 1.2 for tick in ticks)


def test_texts_are_wrapped_and_cut_to_a_telephone() -> None:
    assert wrap("one two three", 7) == ["one two", "three"]
    assert cut("short") == "short"
    assert cut("x" * 50) == "x" * 37 + "…"
