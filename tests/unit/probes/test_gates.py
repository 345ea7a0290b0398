"""The gates: impossible figures are quarantined, doubtful ones are flagged, nothing is dropped."""

import pytest

from core.probe import Timing
from probes.gates import judge

STEADY = tuple([10_000_000] * 10)
THREE = tuple([30_000_000] * 10)


def test_a_rate_over_the_peak_is_quarantined() -> None:
    result = judge((Timing(1, 1, STEADY), Timing(3, 1, THREE)), 7_360 * 10**7, 0, 200e9, None, large_aligned=False)
    assert not result.trusted
    assert "over 105 % of the peak" in " ".join(result.warnings)


def test_an_honest_rate_is_trusted_without_a_word() -> None:
    result = judge((Timing(1, 1, STEADY), Timing(3, 1, THREE)), 10**9, 0, 200e9, None, large_aligned=False)
    assert result.trusted
    assert result.warnings == ()


def test_an_unsynchronised_program_whose_copies_cost_nothing_is_not_trusted() -> None:
    result = judge((Timing(1, 1, STEADY), Timing(3, 1, STEADY)), 10**9, 0, None, None, large_aligned=False)
    assert not result.trusted


def test_a_frame_that_costs_nothing_is_fine_when_no_work_is_claimed() -> None:
    assert judge((Timing(1, 1, STEADY), Timing(3, 1, STEADY)), 0, 0, None, None, large_aligned=False).trusted


def test_a_memory_rate_over_the_peak_is_quarantined() -> None:
    result = judge((Timing(1, 1, STEADY),), 0, 10**10, None, 1e11, large_aligned=False)
    assert not result.trusted


def test_a_wide_spread_is_flagged_and_kept() -> None:
    noisy = tuple(10_000_000 + 1_000_000 * (i % 5) for i in range(20))
    result = judge((Timing(1, 1, noisy),), 0, 0, None, None, large_aligned=False)
    assert result.trusted
    assert any(w.startswith("noisy") for w in result.warnings)


@pytest.mark.parametrize(("middle_ns", "flagged"), [(5_000_000, False), (20_000_000, True)])
def test_a_long_copy_has_less_excuse_for_its_spread(middle_ns: int, flagged: bool) -> None:
    samples = tuple(round(middle_ns * (1 + 0.035 * (i % 3 - 1))) for i in range(21))  # quartiles 7 % apart
    result = judge((Timing(1, 1, samples),), 0, 0, None, None, large_aligned=False)
    assert any(w.startswith("noisy") for w in result.warnings) == flagged


def test_a_slow_first_sample_is_flagged() -> None:
    result = judge((Timing(1, 1, (40_000_000, *STEADY)),), 0, 0, None, None, large_aligned=False)
    assert any(w.startswith("slow start") for w in result.warnings)


def test_samples_that_are_too_short_for_the_clock_are_flagged() -> None:
    result = judge((Timing(1, 2, tuple([100_000] * 10)),), 0, 0, None, None, large_aligned=False)
    assert any(w.startswith("short") for w in result.warnings)


def test_a_large_product_far_below_the_peak_is_a_suspect_path() -> None:
    result = judge((Timing(1, 1, STEADY), Timing(3, 1, THREE)), 10**8, 0, 200e9, None, large_aligned=True)
    assert any(w.startswith("suspect path") for w in result.warnings)


def test_outliers_are_counted_and_kept() -> None:
    samples = tuple([10_000_000 + i * 1000 for i in range(20)] + [500_000_000])
    result = judge((Timing(1, 1, samples),), 0, 0, None, None, large_aligned=False)
    assert any("1 of 21 samples, kept" in w for w in result.warnings)
