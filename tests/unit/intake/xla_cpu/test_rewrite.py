"""Operations that are written out as others: which copies, partial sums and products that leaves."""

from collections.abc import Sequence

import pytest

from intake.xla_cpu.hlo import Maker
from intake.xla_cpu.rewrite import convolution, folded, product, reduction, select_and_scatter

TWO_AXES = {
    "input_batch_dimension": (0,), "input_spatial_dimensions": (1, 2), "input_feature_dimension": (3,),
    "kernel_spatial_dimensions": (0, 1), "kernel_input_feature_dimension": (2,), "kernel_output_feature_dimension": (3,),
    "output_batch_dimension": (0,), "output_spatial_dimensions": (1, 2), "output_feature_dimension": (3,),
}  # fmt: skip


def _names(make: Maker, at: int) -> list[str]:
    """Return the names of what something rests on, parameters and constants left out."""
    make.body.returns = (at,)
    return [op.name for op in make.body.without_dead().ops.values() if op.name not in {"parameter", "constant"}]


def _product(make: Maker, left: Sequence[int], right: Sequence[int], axes: tuple[int, int], shape: tuple[int, ...]) -> int:
    first, second = make.parameter(tuple(left), "fp32"), make.parameter(tuple(right), "fp32")
    numbers = {"lhs_contracting_dimensions": (axes[0],), "rhs_contracting_dimensions": (axes[1],)}
    return product(make, first, second, numbers, shape, "fp32")


@pytest.mark.parametrize(("left", "axis", "turned"), [((8, 16), 1, 0), ((16, 8), 0, 1)])
def test_a_matrix_that_is_turned_over_is_read_so(left, axis, turned):
    make = Maker()
    at = _product(make, left, (16, 4), (axis, 0), (8, 4))
    assert _names(make, at) == ["dot"]
    assert make[at].attributes["turned"] == (turned, 0)


def test_what_has_several_axes_out_of_order_is_copied():
    make = Maker()
    assert _names(make, _product(make, (8, 16, 2), (16, 4), (1, 0), (8, 2, 4))) == ["transpose", "reshape", "dot", "reshape"]


def test_a_product_that_is_turned_over_is_made_the_other_way_round():
    make = Maker()
    at = _product(make, (8, 16), (16, 4), (1, 0), (8, 4))
    other = folded(make, at, (1, 0))
    assert other is not None
    assert make[other].shape == (4, 8)
    assert make[other].operands == make[at].operands[::-1]
    assert folded(make, make.parameter((8, 4), "fp32"), (1, 0)) is None


@pytest.mark.parametrize(
    ("shape", "windows"),
    [((8, 128), (8, 4)), ((8, 100), (8, 4)), ((8, 32), None), ((64, 128), None)],  # short; the library's
)
def test_small_sums_over_long_axes_are_made_in_windows(shape, windows):
    make = Maker()
    at = reduction(make, make.parameter(shape, "fp32"), make.scalar("fp32"), (1,), "add")
    assert make[at].shape == shape[:1]
    found = [op.shape for op in make.body.ops.values() if op.name == "reduce_window"]
    assert found == ([windows] if windows else [])


@pytest.mark.parametrize(("channels", "name"), [(16, "dot"), (17, "convolution")])
def test_a_convolution_of_one_place_is_a_product_unless_the_library_takes_it(channels, name):
    make = Maker()
    given = make.parameter((2, 8, 8, channels), "fp32"), make.parameter((1, 1, channels, 4), "fp32")
    assert name in _names(make, convolution(make, *given, TWO_AXES, (2, 8, 8, 4), "fp32"))


@pytest.mark.parametrize(("groups", "widest"), [(24, 3 * 3 * 24 * 24), (4, 3 * 3 * 6 * 24)])
def test_the_gradient_of_a_kernel_of_groups(groups, widest):
    """With one channel each it is made for all pairs of channels, of which those of one channel are kept."""
    numbers = {
        **TWO_AXES, "input_batch_dimension": (3,), "input_feature_dimension": (0,), "kernel_spatial_dimensions": (1, 2),
        "kernel_input_feature_dimension": (0,), "output_batch_dimension": (2,), "output_spatial_dimensions": (0, 1),
        "batch_group_count": (groups,), "padding": (1, 1, 1, 1),
    }  # fmt: skip
    make = Maker()
    given = make.parameter((2, 16, 16, 24), "fp32"), make.parameter((2, 16, 16, 24), "fp32")
    at = convolution(make, *given, numbers, (3, 3, 24 // groups, 24), "fp32")
    assert make[at].shape == (3, 3, 24 // groups, 24)
    (made,) = (op for op in make.body.ops.values() if op.name == "convolution")
    assert made.elements == widest
    assert ("select" in _names(make, at)) is (groups == 24)


def test_pooling_backwards_finds_places_and_scatters_to_them():
    make = Maker()
    source, updates = make.parameter((2, 8, 8, 4), "fp32"), make.parameter((2, 4, 4, 4), "fp32")
    numbers = {"window_dimensions": (1, 2, 2, 1)}
    at = select_and_scatter(make, source, updates, make.scalar("fp32"), numbers)
    assert make[at].shape == (2, 8, 8, 4)
    (found,) = (op for op in make.body.ops.values() if op.name == "reduce_window")
    assert found.parts == (2 * 4 * 4 * 4 * 4,) * 5  # the greatest, and its place on each of four axes
    padded = select_and_scatter(make, source, updates, make.scalar("fp32"), {**numbers, "padding": (0, 0, 0, 1, 0, 1, 0, 0)})
    assert make[padded].name == "slice"
    assert make[padded].shape == (2, 8, 8, 4)
