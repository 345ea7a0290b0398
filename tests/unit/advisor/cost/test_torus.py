"""Links of a slice: shapes and wraps by hand, against the catalog's topologies."""

import pytest

import catalog
from advisor.cost.torus import links_used


@pytest.mark.parametrize(("key", "chips", "topology", "used"), [
    ("tpu-v5e", 4, (2, 2), (0.5, 0.25)),
    ("tpu-v5e", 16, (4, 4), (0.5, 0.25)),
    ("tpu-v5e", 256, (16, 16), (1.0, 0.5)),
    ("tpu-v5p", 4, (2, 2, 1), (2 / 6, 1 / 6)),
    ("tpu-v5p", 64, (4, 4, 4), (1.0, 2 / 6)),
    ("tpu-v4", 512, (8, 8, 8), (1.0, 2 / 6)),
])  # fmt: skip
def test_a_ring_uses_two_links_of_its_axis_and_a_line_one(
    key: str, chips: int, topology: tuple[int, ...], used: tuple[float, float]
) -> None:
    known = catalog.slice_of(key, chips)
    assert known is not None
    assert sorted(known.topology) == sorted(topology)
    assert links_used(key, chips) == pytest.approx(used)


@pytest.mark.parametrize(("key", "chips"), [("h100-sxm", 8), ("tpu-v5p", 1), ("tpu-v5p", 7), ("a100-80", 64)])
def test_what_is_no_slice_uses_its_links_whole(key: str, chips: int) -> None:
    assert links_used(key, chips) == (1.0, 1.0)


def test_no_slice_uses_more_than_its_links() -> None:
    for key in catalog.generations():
        for chips in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
            whole, axis = links_used(key, chips)
            assert 0 < axis <= whole <= 1
