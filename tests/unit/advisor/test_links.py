"""Alpha-beta models: known answers, limits, and what comes out of stored measurements."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.links import bus_factor, fit, series
from catalog import accelerators
from core.probe import Measurement, Probe, Timing

SIZES = (1024, 65536, 4194304, 268435456)


def measured(subject: str, seconds: float, size: int, trusted: bool = True, **sizes: object) -> Measurement:
    probe = Probe(subject, "system", tuple(sorted({**sizes, "bytes": size}.items())), "fp32", "jax", "gpu:0")  # type: ignore[arg-type]
    timing = Timing(1, 1, (round(seconds * 1e9),) * 5)
    return Measurement(probe, (timing,), "direct", 0, size, None, (), trusted, (), "u", "2026-11-30T20:00:00+00:00")


def test_a_link_without_noise_is_found_again():
    model = fit([(size, 5e-6 + size / 50e9) for size in SIZES])
    assert model is not None
    assert model.latency_s == pytest.approx(5e-6, rel=1e-9)
    assert model.bytes_per_s == pytest.approx(50e9, rel=1e-9)
    assert (model.low, model.high) == (pytest.approx(1), pytest.approx(1))
    assert model.seconds(100e9) == pytest.approx(2 + 5e-6)


@given(
    latency_s=st.floats(1e-7, 1e-3),
    bytes_per_s=st.floats(1e8, 1e12),
    noise=st.lists(st.floats(0.98, 1.02), min_size=4, max_size=4),
)
def test_noise_of_two_percent_moves_no_prediction_by_more_than_a_tenth(latency_s: float, bytes_per_s: float, noise: list[float]):
    true = [(float(size), latency_s + size / bytes_per_s) for size in SIZES]
    model = fit([(size, seconds * factor) for (size, seconds), factor in zip(true, noise, strict=True)])
    assert model is not None
    assert all(abs(model.seconds(size) / seconds - 1) < 0.1 for size, seconds in true)
    assert model.low <= 1 <= model.high


@given(points=st.lists(st.tuples(st.integers(1, 2**30), st.floats(1e-7, 10)), min_size=2, max_size=12))
def test_a_model_never_has_less_than_no_latency_or_less_time_for_more_bytes(points: list[tuple[int, float]]):
    model = fit([(float(size), seconds) for size, seconds in points])
    if len({size for size, _ in points}) < 2:
        assert model is None
        return
    assert model is not None
    assert model.latency_s >= 0
    assert all(model.seconds(b) >= model.seconds(a) for a, b in pairwise(SIZES))


def test_the_order_of_points_does_not_matter():
    points = [(1e3, 2e-6), (1e6, 3e-5), (1e9, 2e-2)]
    first, second = fit(points), fit(points[::-1])
    assert first is not None
    assert second is not None
    assert first.latency_s == pytest.approx(second.latency_s)
    assert first.bytes_per_s == pytest.approx(second.bytes_per_s)


def test_times_that_fall_with_size_give_a_latency_and_no_rate():
    model = fit([(1e3, 2e-5), (1e6, 1e-5)])
    assert model is not None
    assert model.bytes_per_s is None
    assert 1e-5 <= model.latency_s <= 2e-5


def test_a_latency_below_nothing_becomes_none_and_the_rate_is_fitted_alone():
    model = fit([(1e6, 1e-6), (1e9, 10.0)])
    assert model is not None
    assert model.latency_s == 0
    assert model.bytes_per_s is not None


def test_one_size_is_no_model():
    assert fit([(1e6, 1e-3), (1e6, 2e-3)]) is None
    assert fit([]) is None


def test_bus_factors_are_those_of_nccl_tests():
    assert bus_factor("all_reduce", 8) == pytest.approx(2 * 7 / 8)
    assert bus_factor("all_gather", 4) == bus_factor("reduce_scatter", 4) == bus_factor("all_to_all", 4) == pytest.approx(3 / 4)
    assert bus_factor("", 4) == 1
    assert bus_factor("all_reduce", 1) == 1


def test_series_part_collectives_by_name_and_count_and_leave_out_what_is_quarantined():
    found = series(
        (
            *(measured("collective", 1e-5 + s / 1e9, s, collective="all_reduce", devices=2) for s in SIZES),
            measured("collective", 9.0, 2**20, trusted=False, collective="all_reduce", devices=2),
            *(measured("collective", 1e-5 + s / 1e9, s, collective="all_reduce", devices=4) for s in SIZES[:1]),
            measured("overlap", 1.0, 2**20),
        ),
        {},
    )
    assert [(one.what, one.devices, len(one.points)) for one in found] == [("all-reduce", 2, 4), ("all-reduce", 4, 1)]
    assert found[0].model is not None
    assert found[1].model is None
    rate = SIZES[-1] / (1e-5 + SIZES[-1] / 1e9)
    assert found[0].bus_bytes_per_s == pytest.approx(rate)
    assert found[1].bus_factor == pytest.approx(1.5)


def test_the_makers_figure_stands_beside_a_link_of_a_known_chip_with_its_source():
    chip = accelerators()["h100-sxm"]
    found = series(
        (
            *(measured("host_device", 1e-5 + s / 5e10, s, way="to_device", memory="pinned") for s in SIZES),
            measured("device_device", 1e-3, 2**20, devices=2),
            measured("hand_off", 1e-3, 2**20, to="torch-eager"),
        ),
        {"gpu:0": chip},
    )
    by_kind = {one.kind: one for one in found}
    assert by_kind["host_device"].peak_bytes_per_s == chip.host_bytes_per_s
    assert by_kind["device_device"].peak_bytes_per_s == chip.link_bytes_per_s
    assert by_kind["hand_off"].peak_bytes_per_s is None
    assert chip.source in by_kind["device_device"].peak_source
    assert by_kind["host_device"].what == "host to device, pinned"
