"""What is computed inside what: cheap operations for each of their readers, dear ones once, long rows by themselves."""

import pytest

from intake.xla_cpu.fusion import kernels_of
from intake.xla_cpu.hlo import Maker, Op

SIZES = (8, 16)


def _each(make: Maker, name: str, *operands: int) -> int:
    return make.add(Op(name, operands, SIZES, "fp32"))


def _product(make: Maker, at: int) -> int:
    flags = {"m": (8,), "k": (16,), "n": (16,), "turned": (0, 0), "lead": (0,)}
    return make.add(Op("dot", (at, make.parameter((16, 16), "fp32")), SIZES, "fp32", flags))


@pytest.mark.parametrize(("name", "stored"), [("negate", False), ("tanh", True)])
def test_what_two_sums_read_is_done_again_for_each_where_it_is_cheap(name, stored):
    make = Maker()
    x = make.parameter(SIZES, "fp32")
    middle = _each(make, name, x)
    ends = tuple(_each(make, "add", middle, make.parameter(SIZES, "fp32")) for _ in range(2))
    make.body.returns = ends
    kernels = kernels_of(make.body)
    assert set(kernels) == ({middle, *ends} if stored else set(ends))
    assert (middle if stored else x) in kernels[ends[0]].reads(make.body)


def test_what_a_product_reads_is_stored():
    make = Maker()
    middle = _each(make, "negate", make.parameter(SIZES, "fp32"))
    end = _product(make, middle)
    make.body.returns = (end,)
    assert set(kernels_of(make.body)) == {middle, end}


def test_what_is_dear_is_not_done_again_for_each_place_that_it_is_repeated_to():
    make = Maker()
    row = make.add(Op("tanh", (make.parameter((16,), "fp32"),), (16,), "fp32"))
    end = _each(make, "add", make.broadcast(row, SIZES, (1,)), make.parameter(SIZES, "fp32"))
    make.body.returns = (end,)
    assert set(kernels_of(make.body)) == {row, end}


@pytest.mark.parametrize(("width", "axis", "stored"), [(64, 1, True), (63, 1, False), (64, 0, False)])
def test_parts_of_long_rows_are_stored_before_they_are_joined(width, axis, stored):
    make = Maker()
    parts = tuple(make.add(Op("tanh", (make.parameter((8, width), "fp32"),), (8, width), "fp32")) for _ in range(2))
    shape = (16, width) if axis == 0 else (8, 2 * width)
    end = make.add(Op("concatenate", parts, shape, "fp32", {"dimension": (axis,)}))
    make.body.returns = (end,)
    assert set(kernels_of(make.body)) == ({*parts, end} if stored else {end})


def test_a_result_takes_the_place_of_what_is_read_element_by_element_alone():
    make = Maker()
    x, y = make.parameter(SIZES, "fp32"), make.parameter(SIZES, "fp32")
    end = _each(make, "add", x, make.add(Op("reverse", (y,), SIZES, "fp32", {"dimensions": (0,)})))
    make.body.returns = (end,)
    assert kernels_of(make.body)[end].shared(make.body) == [x]


def test_an_update_is_written_into_what_it_updates():
    make = Maker()
    whole, row, at = make.parameter(SIZES, "fp32"), make.parameter((1, 16), "fp32"), make.parameter((), "int32")
    end = make.add(Op("dynamic_update_slice", (whole, row, at, at), SIZES, "fp32"))
    make.body.returns = (end,)
    assert kernels_of(make.body)[end].shared(make.body) == [whole]
