"""The spread over runs: what is judged, what a flag excuses, and what falls short."""

import pytest

from bench.spread import Point, main, points, verdict
from core.probe import Measurement, Probe, Timing


def _point(medians: tuple[float, ...], doubted: tuple[bool, ...] = (False,) * 5) -> Point:
    return Point("matmul_chain n=2048", "jax", medians, medians, (0.01,) * len(medians), doubted)


STEADY = (0.100, 0.101, 0.102, 0.1005, 0.1015)
OFF = (0.100, 0.101, 0.120, 0.1005, 0.1015)


def test_a_steady_point_holds() -> None:
    assert _point(STEADY).holds
    assert verdict([_point(STEADY)], [], None)[0]


def test_a_point_that_is_off_in_one_run_holds_only_with_a_flag_in_that_run() -> None:
    assert not _point(OFF).holds
    assert not _point(OFF, (True, True, False, True, True)).holds
    assert _point(OFF, (False, False, True, False, False)).holds


def test_a_short_point_is_not_judged() -> None:
    short = _point(tuple(value / 100 for value in OFF))
    assert short.holds
    held, said = verdict([short], [], None)
    assert not held
    assert "no point was long enough" in said


def test_a_probe_that_failed_in_one_run_falls_short_by_name() -> None:
    held, said = verdict([_point(STEADY)], ["launch in jax: killed"], None)
    assert not held
    assert "launch in jax: killed" in said


def test_measuring_must_take_most_of_a_full_tier() -> None:
    mostly = {"import": 10.0, "compile": 20.0, "warm-up": 10.0, "samples": 50.0, "other": 10.0}
    held, said = verdict([_point(STEADY)], [], mostly)
    assert held
    assert "80% is measuring" in said
    assert not verdict([_point(STEADY)], [], mostly | {"other": 60.0})[0]


def measured(ns: int) -> Measurement:
    probe = Probe("matmul_chain", "kernel", (("n", 8),), "fp32", "jax", "cpu:0")
    timings = (Timing(1, 1, (ns, ns + 10)), Timing(5, 1, (5 * ns, 5 * ns + 50)))
    return Measurement(probe, timings, "slope", 8, 0, None, (), True, (), "cpu-1", "2026-11-30T00:00:00+00:00")


def test_a_drift_from_the_run_before_is_a_flag_and_tells_of_the_first_run_too() -> None:
    (later,) = points([[measured(ns)] for ns in (100_000, 100_500, 130_000)])
    assert later.doubted == (False, False, True)
    (first,) = points([[measured(ns)] for ns in (130_000, 100_000, 100_500)])
    assert first.doubted == (True, True, True)
    assert first.unsteady
    assert not points([[measured(ns)] for ns in (100_000, 100_500, 101_000)])[0].unsteady


def test_points_are_paired_over_runs_by_their_probe() -> None:
    (point,) = points([[measured(1000)], [measured(2000)], [measured(3000)]])
    assert [round(value * 1e9) for value in point.minima_s] == [1000, 2000, 3000]
    assert round(point.spread, 2) == 1.0
    assert points([[measured(1000)], []]) == []


def test_a_full_tier_alone_is_judged_by_its_share() -> None:
    assert verdict([], [], {"samples": 80.0, "other": 20.0}) == (True, "HOLDS: full tier: 80% is measuring")
    assert not verdict([], [], {"samples": 60.0, "other": 40.0})[0]
    assert not verdict([], [], None)[0]


@pytest.mark.parametrize("flags", [("--runs", "2"), ("--runs", "0", "--skip-full")])
def test_too_few_runs_are_refused(flags: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        main(flags)
