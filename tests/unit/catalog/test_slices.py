"""Slices: the shapes that Google's pages list, their hosts and rings, and counts that nobody can have."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import count_fault, count_note, generations, legal_counts, nearest_counts, slice_of, slice_with

NOTE = "of the machines known here (1, 2, 4, 8 x h100-sxm) none has 5: see that it can be rented, or take 4 or 8"
LISTED = (
    ("tpu-v5e", 4, "2x2", 1, (False, False)),
    ("tpu-v5e", 128, "8x16", 32, (False, True)),
    ("tpu-v6e", 256, "16x16", 64, (True, True)),
    ("tpu-v4", 32, "2x4x4", 8, (False, False, False)),
    ("tpu-v5p", 64, "4x4x4", 16, (True, True, True)),
    ("tpu-v5p", 128, "4x4x8", 32, (True, True, True)),
    ("tpu-v5p", 1024, "8x8x16", 256, (True, True, True)),
    ("tpu-v5p", 2048, "8x16x16", 512, (True, True, True)),
    ("tpu-v5p", 6144, "16x16x24", 1536, (True, True, True)),
    ("tpu-v7", 9216, "16x24x24", 2304, (True, True, True)),
    ("tpu-v3", 1024, "32x32", 256, (True, True)),
)


@pytest.mark.parametrize(("key", "chips", "shape", "hosts", "wraps"), LISTED)
def test_a_listed_slice_has_its_shape_hosts_and_rings(
    key: str, chips: int, shape: str, hosts: int, wraps: tuple[bool, ...]
) -> None:
    known = slice_of(key, chips)
    assert known is not None
    assert (known.shape, known.hosts, known.wraps, known.slices) == (shape, hosts, wraps, 1)


@pytest.mark.parametrize(
    ("key", "chips", "slices", "shape"),
    [
        ("tpu-v6e", 512, 2, "16x16"), ("tpu-v6e", 384, 3, "8x16"), ("tpu-v5p", 18432, 3, "16x16x24"),
        ("tpu-v5p", 8960, 2, "8x20x28"),
    ],
)  # fmt: skip
def test_a_count_over_the_largest_slice_is_the_fewest_equal_slices(key: str, chips: int, slices: int, shape: str) -> None:
    known = slice_of(key, chips)
    assert known is not None
    assert (known.slices, known.shape, known.chips) == (slices, shape, chips)


def test_gpus_come_in_machines_and_over_one_in_whole_ones() -> None:
    assert legal_counts("h100-sxm", 32) == (1, 2, 4, 8, 16, 24, 32)
    assert legal_counts("gb200", 12) == (4, 8, 12)
    two = slice_of("b200", 16)
    assert two is not None
    assert (two.hosts, two.topology, two.machine) == (2, (), "")
    assert slice_of("h100-sxm", 12) is None


def test_an_announced_chip_has_no_known_slices_and_nothing_is_ruled_out_for_it() -> None:
    assert legal_counts("tpu-8i", 64) == ()
    assert (slice_of("tpu-8i", 4), count_fault("tpu-8i", 4), count_note("rubin", 3)) == (None, None, None)


def test_a_count_that_no_slice_has_is_told_with_the_nearest() -> None:
    fault = count_fault("tpu-v6e", 12)
    assert fault is not None
    assert "slices have 1, 4, 8, 16, 32, 64, 128, 256 chips" in fault
    assert fault.endswith("the nearest counts are 8 and 16")
    assert count_fault("tpu-v6e", 16) is None
    assert nearest_counts("tpu-v4", 1) == (4,)


def test_a_count_of_gpus_that_no_machine_has_is_a_note_and_no_fault() -> None:
    assert count_fault("h100-sxm", 5) is None
    assert count_note("h100-sxm", 5) == NOTE
    assert count_note("h100-sxm", 8) is None


@given(st.sampled_from(["tpu-v2", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7", "h100-sxm", "l4", "gb200", "mi300x"]),
       st.integers(1, 20_000))  # fmt: skip
def test_a_count_is_legal_just_when_there_is_a_slice_and_its_shape_holds_it(key: str, chips: int) -> None:
    known = slice_of(key, chips)
    assert (known is not None) == (chips in legal_counts(key, chips))
    if known is not None:
        assert known.chips == chips
        assert 1 <= known.hosts <= chips
        if known.topology:
            assert prod(known.topology) * known.slices == chips
            assert chips // known.slices <= generations()[key].largest_chips


@given(st.sampled_from(sorted(generations())), st.integers(1, 2000))
def test_a_slice_is_found_again_by_its_shape_in_any_order(key: str, chips: int) -> None:
    known = slice_of(key, chips)
    if known is None or known.slices > 1:
        return
    found = slice_with(key, tuple(reversed(known.topology)))
    assert found is not None
    assert (found.chips, found.hosts) == (chips, known.hosts)


@pytest.mark.parametrize("topology", [(3, 4, 4), (4, 4), (2, 2, 8), (4, 6, 8), (400, 400, 400)])
def test_a_shape_that_is_not_sold_is_none(topology: tuple[int, ...]) -> None:
    assert slice_with("tpu-v5p", topology) is None
