"""What system probes say beside links."""

import pytest

from advisor import system
from core.probe import Measurement, Probe, Timing


def measured(subject: str, timings: tuple[Timing, ...], flop: int = 0, traffic: int = 0, **sizes: object) -> Measurement:
    probe = Probe(subject, "system", tuple(sorted(sizes.items())), "fp32", "jax", "cpu:0")  # type: ignore[arg-type]
    return Measurement(probe, timings, "direct", flop, traffic, None, (), True, (), "u", "2026-11-30T20:00:00+00:00")


def once(seconds: float, count: int = 5, part: str = "") -> Timing:
    return Timing(1, 1, (round(seconds * 1e9),) * count, part=part)


@pytest.mark.parametrize(("together", "fraction"), [(10.0, 1.0), (14.0, 0.0), (12.0, 0.5), (16.0, -0.5)])
def test_overlap_is_the_hidden_share_of_the_shorter(together: float, fraction: float):
    assert system.overlap_fraction([10.0], [4.0], [together]) == pytest.approx(fraction)


def test_overlap_is_read_from_parts_that_were_timed_beside_it():
    one = measured("overlap", (once(0.012), once(0.010, part="product"), once(0.004, part="beside")), **{"with": "all_reduce"})
    (row,) = system.overlaps((one,))
    assert one.median_s == pytest.approx(0.012)
    assert (row.beside, row.fraction) == ("all-reduce", pytest.approx(0.5))


def test_a_droop_of_more_than_five_percent_is_flagged():
    hot = Timing(1, 1, (10_000_000,) * 10 + (12_500_000,) * 10)
    burst = measured("sustained_load", (once(0.01),), 10**9, phase="burst", n=1024)
    (row,) = system.loads((measured("sustained_load", (hot,), 10**9, phase="sustained", n=1024), burst))
    assert row.sustained_flop_per_s == pytest.approx(8e10)
    assert row.burst_flop_per_s == pytest.approx(1e11)
    assert row.droop == pytest.approx(0.2)
    assert row.throttled
    assert row.seconds == pytest.approx(0.225)


def test_load_without_a_burst_has_no_droop():
    (row,) = system.loads((measured("sustained_load", (once(0.01),), 10**9, phase="sustained", n=1024),))
    assert row.droop is None
    assert not row.throttled


def test_scaling_is_held_against_one_core_of_the_same_kernel():
    found = system.scalings(
        (
            measured("cpu_scaling", (once(0.02),), 10**9, 1, kernel="matmul_chain", cores=1),
            measured("cpu_scaling", (once(0.0125),), 10**9, 1, kernel="matmul_chain", cores=2),
            measured("cpu_scaling", (once(0.02),), 1, 10**8, kernel="memory_triad", cores=2),
        )
    )
    assert [(row.kernel, row.cores, row.speedup) for row in found] == [
        ("matmul_chain", 1, pytest.approx(1.0)),
        ("matmul_chain", 2, pytest.approx(1.6)),
        ("memory_triad", 2, None),
    ]
    assert found[2].rate == pytest.approx(5e9)


def test_compiling_is_listed_with_the_fewest_layers_first():
    found = system.compilings(
        tuple(measured("compile_cost", (once(0.1 * n),), what="first", layers=n) for n in (16, 4))
    )
    assert [(row.layers, row.seconds, row.samples) for row in found] == [(4, pytest.approx(0.4), 5), (16, pytest.approx(1.6), 5)]


def test_a_block_that_reached_the_cap_is_at_least_that():
    from dataclasses import replace

    counts = (("largest_bytes", 2.0**30), ("cap_bytes", 2.0**30 + 5), ("at_rest_bytes", 2.0**27))
    one = replace(measured("memory_capacity", (once(0.1),), cap_bytes=2**40), counts=counts)
    short = replace(one, probe=replace(one.probe, runtime="torch-eager"), counts=(counts[0], ("cap_bytes", 2.0**31), counts[2]))
    found = {row.runtime: row for row in system.capacities((one, short, measured("memory_capacity", (once(1.0),))))}
    assert found["jax"].capped
    assert not found["torch-eager"].capped
    assert found["jax"].largest_bytes == 2**30
