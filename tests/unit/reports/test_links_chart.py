"""The chart of links is a complete specification that says where its figures are from."""

import json
from dataclasses import replace

import pytest

from core.links import LinkModel, LinkPoint, LinkSeries
from reports.charts.links import describe_links, links

POINTS = (LinkPoint(4096, 1e-5, 0.1, 12), LinkPoint(2**20, 1e-4, 0.2, 12, ("noisy",)), LinkPoint(2**26, 5e-3, 0.1, 3))
SERIES = LinkSeries("collective", "all-reduce", "jax", "gpu:0", 2, 1.0, POINTS, LinkModel(1e-5, 1.3e10, 0.8, 1.2), None, "", "t")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_points_lines_and_the_makers_figure_are_drawn(theme: str):
    other = replace(SERIES, runtime="torch-eager", peak_bytes_per_s=4.5e11, peak_source="sheet")
    drawn = links((SERIES, other), theme)
    assert drawn is not None
    spec = drawn.to_dict()
    said = json.dumps(spec)
    assert len(spec["layer"]) == 3
    assert "all-reduce, 2 devices" in said
    assert "maker's figure: 450 GB/s" in said
    assert "13.0 GB/s" in spec["description"]


def test_nothing_measured_draws_nothing():
    assert links(()) is None
    assert links((replace(SERIES, points=()),)) is None


def test_a_series_without_a_model_has_points_only_and_says_why():
    bare = replace(SERIES, model=None)
    drawn = links((bare,))
    assert drawn is not None
    assert len(drawn.to_dict()["layer"]) == 1
    assert "too few sizes" in describe_links((bare,))


def test_a_model_without_growth_says_so():
    assert "no growth" in describe_links((replace(SERIES, model=LinkModel(1e-5, None, 1, 1)),))
