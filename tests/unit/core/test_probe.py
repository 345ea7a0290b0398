"""The figures of a measurement: what stands for its raw samples."""

import pytest

from core.probe import Measurement, Probe, Timing


def _measured(*timings: Timing) -> Measurement:
    probe = Probe("matmul_chain", "kernel", (("n", 512),), "fp32", "jax", "cpu:0")
    return Measurement(probe, timings, "slope", 0, 0, None, (), True, (), "cpu-1", "2026-12-01T00:00:00+00:00")


def test_the_minimum_is_what_the_least_samples_give_and_no_artefact_of_a_pair() -> None:
    shallow, deep = Timing(1, 1, (20_000_000, 2_000_000, 2_100_000)), Timing(5, 1, (22_000_000, 30_000_000, 31_000_000))
    figures = _measured(shallow, deep).figures
    assert min(_measured(shallow, deep).samples_s) == pytest.approx(0.0005)  # the slow shallow call beside the fast deep one
    assert figures.minimum == pytest.approx(0.005)
    assert figures.minimum <= figures.median
    assert figures.count == 3


def test_the_minimum_of_one_program_is_its_least_sample() -> None:
    assert _measured(Timing(1, 1, (3_000, 1_000, 2_000))).figures.minimum == pytest.approx(1e-6)
