"""The empirical roofline finds what was put into made-up measurements, and loses none of them."""

from dataclasses import replace
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.roofline import (
    HANDED_OVER,
    NOT_TOLD,
    band_of,
    device_roof,
    find_knees,
    fit_line,
    launch_cost,
    quotient,
    rate_at,
    rate_point,
)
from core.device import Device
from core.probe import Measurement, Probe, Timing
from core.quantity import Quantity, exact
from core.roofline import RatePoint

CPU = Device("cpu:0", "cpu", "made up", "cpu-made-up", 16 * 2**30, 2, None, 2**22)
DAY = "2026-11-30T09:00:00+00:00"


def near(found: Quantity | None, value: float, tolerance: float) -> bool:
    return found is not None and isclose(found.mid, value, rel_tol=tolerance)


def measured(
    subject: str, sizes: dict[str, int | str], seconds: float, flop: int = 0, traffic: int = 0, runtime: str = "jax",
    dtype: str = "fp32", spread: float = 0.01, taken_at: str = DAY,
) -> Measurement:
    """Return a measurement whose samples lie evenly within `spread` of a time."""
    samples = tuple(round(seconds * 1e9 * (1 + spread * (i - 5) / 5)) for i in range(11))
    probe = Probe(subject, "kernel", tuple(sorted(sizes.items())), dtype, runtime, "cpu:0")
    return Measurement(
        probe, (Timing(1, 1, samples),), "direct", flop, traffic, None, (), True, (("jax", "0.10.2"),), CPU.uuid, taken_at
    )


def product(n: int, flop_per_s: float, **changes: object) -> Measurement:
    return measured("matmul_chain", {"n": n}, 2 * n**3 / flop_per_s, 2 * n**3, 12 * n**2, **changes)  # type: ignore[arg-type]


def memory(working_set: int, bytes_per_s: float, subject: str = "memory_triad", **changes: object) -> Measurement:
    return measured(subject, {"bytes": working_set // 3}, working_set / bytes_per_s, 0, working_set, **changes)  # type: ignore[arg-type]


KNOWN = (
    product(512, 40e9), product(1024, 80e9), product(2048, 100e9),
    memory(2**16, 80e9), memory(2**20, 78e9), memory(2**24, 20e9), memory(2**28, 19.5e9),
    measured("vector_fma", {"elements": 2**20, "flop_each": 8}, 8 * 2**20 / 20e9, 8 * 2**20, 2**23),
    measured("vector_fma", {"elements": 2**20, "flop_each": 64}, 64 * 2**20 / 60e9, 64 * 2**20, 2**23),
    measured("softmax", {"rows": 1024, "width": 512}, 2**22 / 10e9, 5 * 2**19, 2**22),
    *(measured("launch_chain", {"n": 8, "count": c}, 20e-6 + c * 3e-6) for c in (1, 10, 100, 1000)),
)


def test_a_made_up_device_is_found_again() -> None:
    (roof,) = device_roof(CPU, KNOWN).runtimes
    assert near(roof.flop_per_s, 100e9, 1e-3)
    assert near(roof.bytes_per_s, 20e9, 1e-3)
    assert near(roof.vector_flop_per_s, 60e9, 1e-3)
    assert near(roof.ridge, 3.0, 1e-3)
    assert near(roof.matmul_ridge, 5.0, 1e-3)
    assert [(knee.from_bytes, knee.to_bytes) for knee in roof.knees] == [(2**20, 2**24)]
    assert near(roof.launch.call_s, 20e-6, 1e-2)
    assert near(roof.launch.operation_s, 3e-6, 1e-2)
    (softmax,) = roof.operators
    assert softmax.roof_share == pytest.approx(0.5, rel=1e-2)


def test_every_figure_has_a_band_and_says_what_it_rests_on() -> None:
    (roof,) = device_roof(CPU, KNOWN).runtimes
    for figure in (roof.flop_per_s, roof.bytes_per_s, roof.vector_flop_per_s, roof.ridge, roof.matmul_ridge, roof.launch.call_s):
        assert figure is not None
        assert figure.low < figure.mid < figure.high
        assert any("measured 2026-11-30" in text for text in figure.evidence)


def test_a_point_that_cannot_be_told_from_noise_is_kept_without_a_rate() -> None:
    noise = Timing(0, 1, (100,) * 6), Timing(1, 1, (90, 95, 100, 110, 120, 130))
    unclear = replace(memory(2**18, 1e9), timings=noise, method="difference")
    (roof,) = device_roof(CPU, (*KNOWN, unclear)).runtimes
    (point,) = (p for p in roof.memory if p.size == 2**18)
    assert point.rate is None
    assert NOT_TOLD in point.doubts
    assert len(roof.memory) == 5


def test_nothing_rests_on_a_quarantined_point_but_it_is_shown() -> None:
    too_fast = replace(product(4096, 900e9), trusted=False, warnings=("quarantined: over the peak",))
    (roof,) = device_roof(CPU, (*KNOWN, too_fast)).runtimes
    assert near(roof.flop_per_s, 100e9, 1e-3)
    (point,) = (p for p in roof.matmul if p.size == 4096)
    assert point.rate is not None
    assert not point.trusted
    assert point.doubts == ("quarantined: over the peak",)


def test_of_equal_probes_the_newest_trusted_one_counts() -> None:
    older = product(2048, 50e9, taken_at="2026-11-01T09:00:00+00:00")
    newer = replace(product(2048, 300e9, taken_at="2026-12-01T09:00:00+00:00"), trusted=False)
    (roof,) = device_roof(CPU, (older, *KNOWN, newer)).runtimes
    assert [near(p.rate, 100e9, 1e-3) for p in roof.matmul if p.size == 2048] == [True]


def test_measurements_of_another_device_are_left_out() -> None:
    assert device_roof(replace(CPU, uuid="other"), KNOWN).runtimes == ()


def test_a_working_set_that_a_cache_holds_is_not_the_rate_of_memory() -> None:
    (roof,) = device_roof(CPU, (memory(2**20, 90e9),)).runtimes
    assert roof.bytes_per_s is None
    assert roof.ridge is None


def test_each_dtype_has_a_roof_of_its_own() -> None:
    both = device_roof(CPU, (*KNOWN, product(1024, 400e9, dtype="bf16")))
    assert both.dtypes == ("fp32", "bf16")
    assert [roof.flop_per_s is not None and round(roof.flop_per_s.mid / 1e9) for roof in both.of("bf16")] == [400]


def test_keras_is_said_to_hand_arrays_over() -> None:
    assert HANDED_OVER in rate_point(memory(2**28, 1e9, runtime="keras-jax")).doubts
    assert HANDED_OVER not in rate_point(memory(2**28, 1e9)).doubts


def test_falls_that_follow_each_other_are_one_knee_and_noise_is_none() -> None:
    steps = [rate_point(memory(2 ** (16 + 2 * i), rate)) for i, rate in enumerate((90e9, 50e9, 20e9, 19e9))]
    (knee,) = find_knees(steps)
    assert (knee.from_bytes, knee.to_bytes) == (2**16, 2**20)
    wide = [rate_point(memory(2 ** (16 + 2 * i), rate, spread=0.9)) for i, rate in enumerate((90e9, 50e9, 20e9))]
    assert find_knees(wide) == ()


def test_without_a_sweep_the_bare_call_and_the_slope_stand_alone() -> None:
    bare = measured("launch_chain", {"n": 8, "count": 1}, 12e-6)
    slope = measured("launch", {"n": 8}, 2e-6)
    cost = launch_cost((bare, slope))
    assert near(cost.call_s, 12e-6, 1e-3)
    assert near(cost.operation_s, 2e-6, 1e-3)
    assert launch_cost(()).call_s is None


@given(st.floats(1e-6, 1e-3), st.floats(1e-8, 1e-4))
def test_a_line_without_noise_is_found_exactly(start: float, slope: float) -> None:
    found = fit_line([(count, start + slope * count) for count in (1.0, 10.0, 100.0, 1000.0)])
    assert found == pytest.approx((start, slope), rel=1e-6)


@given(st.lists(st.floats(-1e-3, 1.0), min_size=1, max_size=30))
def test_a_band_holds_its_median_or_is_none(samples: list[float]) -> None:
    band = band_of(samples)
    assert band is None or 0 < band.low <= band.mid <= band.high


def points(rates: list[float]) -> list[RatePoint]:
    return [rate_point(product(64 * 2**i, rate)) for i, rate in enumerate(rates)]


@given(st.lists(st.floats(1e9, 1e12), min_size=1, max_size=6), st.floats(16, 2**14))
def test_a_rate_read_from_a_curve_lies_among_the_measured_ones(rates: list[float], size: float) -> None:
    found = rate_at(points(rates), size)
    assert found is not None
    assert min(rates) * 0.999 <= found.mid <= max(rates) * 1.001
    inside = 64 <= size <= 64 * 2 ** (len(rates) - 1)
    assert (found.tier == "transferred") != inside


def test_a_rate_at_a_measured_size_is_the_measured_one() -> None:
    curve = points([1e9, 4e9])
    assert rate_at(curve, 64) == curve[0].rate
    between = rate_at(curve, 64 * 2**0.5)
    assert near(between, 2e9, 1e-3)
    assert between is not None
    assert between.tier == "interpolated"
    assert rate_at([], 64) is None


def test_a_quotient_of_unknowns_is_unknown() -> None:
    one = exact(1.0, "measured")
    assert quotient(None, one) is None
    assert quotient(one, exact(0.0, "measured")) is None
    assert quotient(exact(6.0, "measured"), exact(2.0, "measured")) is not None


@given(st.permutations(KNOWN))
def test_the_order_of_measurements_does_not_matter(shuffled: list[Measurement]) -> None:
    assert device_roof(CPU, shuffled) == device_roof(CPU, KNOWN)
