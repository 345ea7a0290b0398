"""Charts of a device's own measurements: valid, complete, and honest about what cannot be told."""

import json
import re
from dataclasses import replace
from functools import cache
from typing import Any

import altair as alt
import pytest

from advisor.roofline import NOT_TOLD, device_roof
from core.device import Device
from core.probe import Measurement, Probe, Timing
from core.roofline import DeviceRoof
from reports import charts
from reports.picture import to_svg
from reports.suite_text import SUITE_CHARTS, describe_suite, point_rows, roof_line, summary_rows
from services.suite import references_of

GPU = Device("gpu:0", "gpu", "made up", "GPU-made-up", 141 * 10**9, None, "h200")
EACH = pytest.mark.parametrize("name", SUITE_CHARTS)
COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")


def kernel(
    subject: str, sizes: dict[str, int | str], flop: int, traffic: int, *samples: int, runtime: str = "jax"
) -> Measurement:
    probe = Probe(subject, "kernel", tuple(sorted(sizes.items())), "fp32", runtime, "gpu:0")
    timing = Timing(1, 1, samples)
    return Measurement(
        probe, (timing,), "direct", flop, traffic, None, (), True, (("jax", "0.10.2"),), GPU.uuid, "2026-11-30T09:00:00+00:00"
    )


def of_runtime(runtime: str) -> tuple[Measurement, ...]:
    return (
        kernel("matmul_chain", {"n": 1024}, 2**31, 12 * 2**20, 100_000, 110_000, 120_000, 115_000, runtime=runtime),
        kernel("matmul_chain", {"n": 4096}, 2**37, 192 * 2**20, 4_000_000, 4_100_000, 4_200_000, 4_150_000, runtime=runtime),
        kernel("memory_triad", {"bytes": 2**30}, 0, 3 * 2**30, 900_000, 910_000, 905_000, 912_000, runtime=runtime),
        kernel("memory_triad", {"bytes": 2**20}, 0, 3 * 2**20, -5, 10, 20, 30, runtime=runtime),
        kernel("vector_fma", {"elements": 2**26, "flop_each": 64}, 2**32, 2**29, 100_000, 101_000, 99_000, runtime=runtime),
        kernel("softmax", {"rows": 64, "width": 64}, 5 * 2**12, 2**15, 10_000, 11_000, 12_000, 11_500, runtime=runtime),
        kernel("launch_chain", {"n": 8, "count": 1}, 0, 0, 9_000, 9_100, 9_200, 9_300, runtime=runtime),
    )


ROOF = device_roof(GPU, (*of_runtime("jax"), *of_runtime("torch-eager")), references_of(GPU))
EMPTY = DeviceRoof(GPU, (), ())


@cache
def spec_of(name: str, theme: str = "light", roof: DeviceRoof = ROOF) -> dict[str, Any]:
    chart = getattr(charts, name)(roof, "fp32", theme)
    assert chart is not None
    return chart.to_dict()


def values_of(layer: dict[str, Any]) -> list[dict[str, Any]]:
    data = layer.get("data", {})
    return data.get("values") or spec_of("memory_curve").get("datasets", {}).get(data.get("name"), [])


@EACH
def test_a_chart_of_a_device_is_a_valid_specification_that_fetches_nothing(name: str) -> None:
    spec = spec_of(name)
    assert spec["width"] == "container"
    assert '"url"' not in json.dumps(spec)
    assert alt.LayerChart.from_dict(spec).to_dict(validate=True)["layer"]
    assert spec["description"] == describe_suite(name, ROOF, "fp32")


@EACH
def test_both_themes_of_a_chart_of_a_device_differ_in_colours_only(name: str) -> None:
    light, dark = (json.dumps(spec_of(name, theme)) for theme in ("light", "dark"))
    assert light != dark
    assert COLOUR.sub("", light) == COLOUR.sub("", dark)


@EACH
@pytest.mark.parametrize("width", [330, 940])
def test_a_chart_of_a_device_draws_as_a_picture_without_stray_words(name: str, width: int) -> None:
    svg = to_svg(spec_of(name), width)
    assert svg.startswith("<svg")
    assert spec_of(name)["title"]["text"] in svg
    assert ">null<" not in svg
    assert ">undefined<" not in svg
    assert "NaN" not in svg


@EACH
def test_nothing_is_drawn_where_nothing_was_measured(name: str) -> None:
    assert getattr(charts, name)(EMPTY, "fp32", "light") is None


def test_a_point_that_cannot_be_told_from_noise_is_drawn_and_listed_as_such() -> None:
    drawn = [row for layer in spec_of("memory_curve")["layer"] for row in values_of(layer) if row.get("told") is False]
    assert {row["runtime"] for row in drawn} == {"jax", "torch-eager"}
    assert {row["reached"] for row in drawn} == {"cannot be told from noise"}
    rows = [row for row in point_rows(ROOF) if row.rate is None]
    assert [row.runtime for row in rows] == ["jax", "torch-eager"]
    assert all(NOT_TOLD in row.doubts for row in rows)


def test_the_makers_peak_and_published_figures_stand_beside_with_their_sources() -> None:
    shown = json.dumps(spec_of("memory_curve"), ensure_ascii=False)
    for reference in ROOF.references:
        if reference.kind == "memory":
            assert reference.source in shown
            assert reference.label in shown
    assert {True, False} == {r.vendor for r in ROOF.references if r.kind == "memory"}


def test_a_device_that_the_catalog_does_not_know_has_no_references() -> None:
    assert references_of(replace(GPU, accelerator=None)) == ()
    assert references_of(replace(GPU, accelerator="no-such-chip")) == ()


def test_the_roof_is_the_lesser_of_both_limits() -> None:
    roof = ROOF.of("fp32")[0]
    assert roof.flop_per_s is not None
    assert roof.bytes_per_s is not None
    stops = roof_line(roof, (0.1, 1000.0))
    assert stops[0] == (0.1, 0.1 * roof.bytes_per_s.mid)
    assert stops[-1] == (1000.0, roof.flop_per_s.mid)
    assert stops[1][0] == pytest.approx(roof.flop_per_s.mid / roof.bytes_per_s.mid)
    assert roof_line(replace(roof, bytes_per_s=None, flop_per_s=None), (0.1, 1000.0)) == []


def test_the_table_names_every_runtime_with_its_figures() -> None:
    rows = summary_rows(ROOF)
    assert [row.runtime for row in rows] == ["jax", "torch-eager"]
    assert all("TFLOP/s" in row.matmul and "TB/s" in row.memory for row in rows)
    assert all(row.operation == "—" for row in rows)


def test_an_unknown_chart_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of"):
        describe_suite("pie", ROOF, "fp32")
