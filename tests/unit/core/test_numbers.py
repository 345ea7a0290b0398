"""Statistics, quantities, operations and how numbers are written."""

from math import isclose, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import format as fmt
from core.ops import DIMS, Op
from core.quantity import TIERS, Quantity, exact, log_normal, total, worst_tier
from core.statistics import iqr, median, modified_z_scores, quantile, relative_error_of_median, slope_samples

SAMPLES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30)
BANDS = st.builds(log_normal, st.floats(1e-6, 1e6), st.floats(0, 1), st.sampled_from(TIERS), st.just("x"))


@given(SAMPLES, st.floats(0, 1))
def test_a_quantile_lies_between_the_ends_and_ignores_order(samples: list[float], fraction: float) -> None:
    value = quantile(samples, fraction)
    assert min(samples) <= value <= max(samples) or isclose(value, max(samples))
    assert value == quantile(samples[::-1], fraction)


@pytest.mark.parametrize(("samples", "fraction"), [([], 0.5), ([1.0], 1.5), ([1.0], -0.1)])
def test_a_quantile_of_nothing_or_outside_is_refused(samples: list[float], fraction: float) -> None:
    with pytest.raises(ValueError, match="expected at least one"):
        quantile(samples, fraction)


def test_median_and_quartiles_of_known_samples() -> None:
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 2, 3]) == 2.5
    assert iqr([1, 2, 3, 4, 5]) == 2


def test_one_far_sample_has_a_large_score_and_the_rest_do_not() -> None:
    scores = modified_z_scores([10.0, 10.1, 9.9, 10.05, 9.95, 20.0])
    assert abs(scores[-1]) > 14.826
    assert max(abs(z) for z in scores[:-1]) < 2


def test_equal_samples_have_no_scores() -> None:
    assert modified_z_scores([5.0, 5.0, 5.0]) == (0.0, 0.0, 0.0)


@given(st.integers(1, 10**6), st.integers(0, 10**9), st.integers(2, 9))
def test_a_slope_is_free_of_what_each_call_costs_besides(copy_ns: int, frame_ns: int, depth: int) -> None:
    series = ((1, [frame_ns + copy_ns] * 3), (depth, [frame_ns + depth * copy_ns] * 3))
    assert all(isclose(s, copy_ns * 1e-9, rel_tol=1e-9) for s in slope_samples(series))


def test_a_slope_is_free_of_drift_that_falls_on_both() -> None:
    series = ((0, [100, 200, 300]), (1, [150, 250, 350]))
    assert slope_samples(series) == pytest.approx((50e-9, 50e-9, 50e-9))


@pytest.mark.parametrize("series", [(), ((0, [1]),)])
def test_a_slope_needs_a_copy_of_the_subject(series: tuple[tuple[int, list[int]], ...]) -> None:
    with pytest.raises(ValueError, match="expected at least one"):
        slope_samples(series)


def test_the_error_of_a_median_shrinks_with_more_samples() -> None:
    few, many = [9.0, 10.0, 11.0, 10.0], [9.0, 10.0, 11.0, 10.0] * 16
    assert relative_error_of_median(many) < relative_error_of_median(few) < 0.1
    assert relative_error_of_median([1.0]) == 1.0


@given(st.lists(BANDS, min_size=1, max_size=8), st.floats(0, 1))
def test_a_sum_holds_its_parts_and_is_never_surer_than_independence(parts: list[Quantity], correlation: float) -> None:
    result = total(tuple(parts), correlation)
    assert isclose(result.mid, sum(p.mid for p in parts), rel_tol=1e-9)
    assert result.low <= result.mid <= result.high
    assert result.tier == worst_tier(tuple(p.tier for p in parts))
    assert result.sigma <= max(p.sigma for p in parts) * (1 + 1e-6)


@given(BANDS, st.floats(1e-3, 1e3))
def test_a_price_scales_a_band_as_a_whole(quantity: Quantity, factor: float) -> None:
    scaled = quantity.scaled(factor, "price")
    assert isclose(scaled.sigma, quantity.sigma, abs_tol=1e-9)
    assert scaled.evidence[-1] == "price"


@pytest.mark.parametrize("band", [(-1, 0, 1), (2, 1, 3), (1, 2, 1.5), (0, 1, float("inf"))])
def test_a_band_out_of_order_is_refused(band: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="got band"):
        Quantity(*band, tier="measured")


def test_an_unknown_tier_is_refused() -> None:
    with pytest.raises(ValueError, match="got tier"):
        Quantity(1, 1, 1, "guessed")


def test_nothing_at_all_sums_to_nothing() -> None:
    assert total((exact(0, "measured", "a"), exact(0, "datasheet", "b"))) == exact(0, "datasheet", "a", "b")


@pytest.mark.parametrize(
    ("op", "flop"),
    [
        (Op("matmul", (1, 2, 3, 4), "fp32"), 48),
        (Op("conv", (1, 8, 8, 3, 8, 8, 16, 3, 3, 1), "fp32"), 2 * 64 * 16 * 27),
        (Op("conv", (1, 8, 8, 4, 8, 8, 4, 3, 3, 4), "fp32"), 2 * 64 * 4 * 9),
        (Op("attention", (1, 2, 2, 8, 8, 16), "fp32"), 4 * 2 * 64 * 16),
        (Op("rnn", (5, 2, 8, 8, 4), "fp32"), 2 * 5 * 2 * 32 * 16),
        (Op("matmul", (1, 2, 3, 4), "bf16", count=3), 144),
    ],
)
def test_flops_of_known_operations(op: Op, flop: int) -> None:
    assert op.flop == flop


@given(st.sampled_from(sorted(DIMS)).flatmap(lambda k: st.tuples(st.just(k), st.tuples(*[st.integers(1, 50)] * len(DIMS[k])))))
def test_counts_grow_with_occurrences_and_halve_with_the_dtype(given_op: tuple[str, tuple[int, ...]]) -> None:
    kind, dims = given_op
    one, three, half = Op(kind, dims, "fp32"), Op(kind, dims, "fp32", 3), Op(kind, dims, "bf16")
    assert three.flop == 3 * one.flop
    assert three.bytes_read == 3 * one.bytes_read
    assert 2 * half.bytes_written == one.bytes_written
    assert min(one.flop, one.bytes_read, one.bytes_written) >= 0
    assert prod(dims) > 0


def test_an_operation_with_the_wrong_dims_is_refused() -> None:
    with pytest.raises(ValueError, match="got op 'matmul' with 2 dims"):
        Op("matmul", (1, 2), "fp32")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (fmt.seconds(0.0123), "12.3 ms"),
        (fmt.seconds(7200), "2.00 h"),
        (fmt.seconds(None), "—"),
        (fmt.seconds(0), "0 s"),
        (fmt.seconds(-2.2e-15), "0 s"),
        (fmt.seconds(2.5e-12), "0.0025 ns"),
        (fmt.count(124e6), "124 M"),
        (fmt.count(1.5e12, "FLOP"), "1.50 TFLOP"),
        (fmt.memory(3 * 2**30), "3.00 GiB"),
        (fmt.memory(512), "512 B"),
        (fmt.usd(1234.5), "$1,234"),
        (fmt.usd(0.004), "$0.004"),
        (fmt.percent(0.934), "93 %"),
        (fmt.energy(7.2e6), "2.00 kWh"),
        (fmt.band(Quantity(1, 2, 3, "measured")), "2.00 s (1.00 s to 3.00 s)"),
        (fmt.band(exact(2, "measured")), "2.00 s"),
        (fmt.band(None), "—"),
    ],
)
def test_numbers_are_written_for_people(written: str, expected: str) -> None:
    assert written == expected
