"""The history of devices: figures of raw samples, what counts as a drift, and how a device stands to its peers."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.history import DRIFT, SPREAD, drift_words, histories_of, series_of, with_history
from core.probe import Measurement, Probe, Timing
from core.statistics import LEAST_CHANGE, Summary, against_peers, change, iqr, median, summary

PATIENT = settings(deadline=None)
PROBE = Probe("matmul_chain", "kernel", (("n", 512),), "fp32", "jax", "cpu:0")
SAMPLES = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=30)
FIGURES = st.builds(summary, SAMPLES)


def taken(day: int, seconds: float, spread: float = 0.0, uuid: str = "uuid-0", **changes: object) -> Measurement:
    """Return a measurement of five samples around a time, `spread` being the distance between its quartiles."""
    samples = tuple(round(1e9 * (seconds + spread * step)) for step in (-1.0, -0.5, 0.0, 0.5, 1.0))
    made = Measurement(PROBE, (Timing(1, 1, samples),), "direct", 1, 0, None, (), True, (("jax", "1"),), uuid,
                       f"2026-03-{day:02d}T10:00:00+00:00")
    return replace(made, **changes)  # type: ignore[arg-type]


@PATIENT
@given(SAMPLES)
def test_the_figures_of_samples_are_what_they_say(samples: list[float]) -> None:
    figures = summary(samples)
    assert (figures.median, figures.iqr) == (median(samples), iqr(samples))
    assert (figures.minimum, figures.count) == (min(samples), len(samples))
    assert figures.minimum <= figures.median or figures.minimum == pytest.approx(figures.median)


@PATIENT
@given(FIGURES, FIGURES)
def test_a_change_is_beyond_the_noise_only_above_five_percent_and_both_spreads(before: Summary, now: Summary) -> None:
    found = change(before, now)
    assert found is not None
    moved = abs(now.median - before.median)
    if found.beyond_noise:
        assert moved > LEAST_CHANGE * before.median * (1 - 1e-9)
        assert moved >= max(before.iqr, now.iqr) * (1 - 1e-9)
    else:
        assert moved <= max(LEAST_CHANGE * before.median, before.iqr, now.iqr) * (1 + 1e-9)


@PATIENT
@given(FIGURES)
def test_nothing_drifts_from_itself_and_no_device_is_slower_than_its_like(figures: Summary) -> None:
    same = change(figures, figures)
    assert same is not None
    assert not same.beyond_noise
    beside = against_peers(figures, [figures, figures])
    assert beside is not None
    assert not beside.beyond_noise


@PATIENT
@given(FIGURES, st.lists(FIGURES, min_size=1, max_size=6), st.floats(1e-3, 1e3))
def test_the_unit_of_time_changes_no_judgement(mine: Summary, peers: list[Summary], factor: float) -> None:
    def scaled(one: Summary) -> Summary:
        return Summary(one.median * factor, one.iqr * factor, one.minimum * factor, one.count)

    plain, other = against_peers(mine, peers), against_peers(scaled(mine), [scaled(peer) for peer in peers])
    assert plain is not None
    assert other is not None
    assert 1 + other.fraction == pytest.approx(1 + plain.fraction)
    assert other.noise == pytest.approx(plain.noise)


def test_a_time_that_is_not_positive_is_compared_with_nothing() -> None:
    nothing, something = Summary(0.0, 0.0, 0.0, 1), Summary(1.0, 0.0, 1.0, 1)
    assert change(nothing, something) is None
    assert change(something, nothing) is None
    assert against_peers(something, []) is None
    assert nothing.spread == 0.0


@pytest.mark.parametrize(("seconds", "spread", "flagged"), [
    (0.104, 0.0, False), (0.106, 0.0, True), (0.094, 0.0, True), (0.106, 0.01, False), (0.120, 0.01, True),
], ids=["under 5 %", "over 5 %", "faster", "within the noise", "beyond the noise"])
def test_a_drift_is_told_where_it_is_one(seconds: float, spread: float, flagged: bool) -> None:
    before, now = taken(1, 0.100, spread), taken(2, seconds, spread)
    marked = with_history(now, [before])
    assert bool(marked.warnings) is flagged
    if flagged:
        assert marked.warnings[0].startswith(DRIFT)
        assert "2026-03-01 10:00 UTC" in marked.warnings[0]
        assert marked.warnings[0].endswith("probe again")
    assert marked.timings == now.timings


def test_a_drift_is_told_against_the_last_trusted_one_of_the_same_versions() -> None:
    old, doubted = taken(1, 0.100), taken(2, 0.300, trusted=False)
    other = taken(3, 0.300, versions=(("jax", "2"),))
    assert with_history(taken(4, 0.101), [old, doubted, other]).warnings == ()
    assert "2.0 times as slow as" in with_history(taken(4, 0.200), [other, old, doubted]).warnings[0]
    assert with_history(taken(4, 0.200, versions=(("jax", "3"),)), [old, doubted, other]).warnings == ()


@pytest.mark.parametrize(("seconds", "told"), [
    ((0.100, 0.103, 0.106), "the medians of the last 3 undisturbed runs differ by 6 %"),
    ((0.100, 0.102, 0.104), None),
    ((0.100, 0.106), None),
    ((0.200, 0.100, 0.101, 0.102, 0.103, 0.104), None),
], ids=["each near the one before, the first far from the last", "near", "too few", "long ago"])
def test_medians_that_wander_are_told(seconds: tuple[float, ...], told: str | None) -> None:
    points = [taken(day, value, 0.2) for day, value in enumerate(seconds, 1)]
    warnings = with_history(points[-1], points[:-1]).warnings
    assert warnings == ((f"{SPREAD}{told}",) if told else ())
    flags = series_of(points)[0].flags
    assert [flag.endswith(f"is not steady: {told}.") for flag in flags] == ([True] if told else [])


def test_disturbed_runs_and_other_versions_make_nothing_unsteady() -> None:
    busy = ("contended: other processes used 50% of the machine meanwhile",)
    calm = [taken(1, 0.100), taken(2, 0.101), taken(4, 0.102)]
    assert series_of([*calm, taken(3, 0.300, warnings=busy)])[0].spread == pytest.approx(0.002 / 0.101)
    assert with_history(taken(5, 0.300, 0.9, versions=(("jax", "2"),)), calm).warnings == ()


def test_a_disturbed_measurement_is_a_reference_only_for_want_of_a_better_one() -> None:
    busy = ("contended: other processes used 50% of the machine meanwhile",)
    quiet, disturbed = taken(1, 0.100), taken(2, 0.200, warnings=busy)
    assert with_history(taken(3, 0.101), [quiet, disturbed]).warnings == ()
    assert "faster" in with_history(taken(3, 0.101), [disturbed]).warnings[0]
    assert "while other work used the machine" in with_history(disturbed, [quiet]).warnings[-1]


def test_other_devices_probes_and_later_ones_are_no_reference() -> None:
    strangers = [taken(1, 0.1, uuid="uuid-1"), taken(1, 0.1, probe=replace(PROBE, dtype="bf16")), taken(9, 0.1)]
    assert with_history(taken(4, 0.5), strangers).warnings == ()


def test_the_number_of_a_device_does_not_part_its_series_and_a_change_of_version_is_marked() -> None:
    moved = replace(PROBE, device="cpu:1")
    series = series_of([taken(2, 0.2, probe=moved, versions=(("jax", "2"),)), taken(1, 0.1), taken(3, 0.2, trusted=False)])
    assert len(series) == 1
    assert [point.taken_at[8:10] for point in series[0].points] == ["01", "02", "03"]
    assert [point.changed for point in series[0].points] == [(), ("jax 1 to 2",), ("jax 2 to 1",)]
    assert series[0].points[1].drift is None
    assert series[0].newest == series[0].points[1]


@PATIENT
@given(st.permutations([taken(day, 0.1 + 0.01 * day) for day in range(1, 6)]))
def test_the_order_in_which_measurements_are_found_changes_nothing(found: list[Measurement]) -> None:
    assert series_of(found) == series_of(sorted(found, key=lambda one: one.taken_at))


def test_a_device_that_is_slower_than_its_peers_by_more_than_the_noise_is_flagged() -> None:
    kinds = {"uuid-0": "h100", "uuid-1": "h100", "uuid-2": "h100", "uuid-3": "a100"}
    found = [taken(1, 0.12), *(taken(1, 0.1, uuid=f"uuid-{index}") for index in (1, 2)), taken(1, 0.01, uuid="uuid-3")]
    histories = histories_of(series_of(found), {"uuid-0": "Card"}, kinds, {"uuid-1": "gpu:0"})
    assert [one.uuid for one in histories] == ["uuid-1", "uuid-0", "uuid-2", "uuid-3"]
    flags = {one.uuid: one.flags for one in histories}
    said = "matmul_chain n=512 fp32 forward in jax is 20 % slower than on 2 other devices of this kind"
    assert flags["uuid-0"] == (f"{said}, more than the noise of 0 %.",)
    assert [flags[f"uuid-{index}"] for index in (1, 2, 3)] == [(), (), ()]
    assert histories[3].peers == ()


def test_peers_are_held_against_each_other_under_equal_versions_only_and_within_their_noise_not_at_all() -> None:
    kinds = {"uuid-0": "h100", "uuid-1": "h100"}
    other = taken(1, 0.1, uuid="uuid-1", versions=(("jax", "2"),))
    assert histories_of(series_of([taken(1, 0.2), other]), {}, kinds, {})[0].flags == ()
    near = [taken(1, 0.12, 0.03), taken(1, 0.1, 0.03, "uuid-1")]
    assert histories_of(series_of(near), {}, kinds, {})[0].flags == ()
    unknown = [taken(1, 0.2), taken(1, 0.1, uuid="uuid-1")]
    assert [one.peers for one in histories_of(series_of(unknown), {}, {}, {})] == [(), ()]


def test_a_quarantined_series_has_no_newest_and_no_peers() -> None:
    series = series_of([taken(1, 0.1, trusted=False)])
    assert series[0].newest is None
    kinds = {"uuid-0": "k", "uuid-1": "k"}
    histories = histories_of([*series, *series_of([taken(1, 0.1, uuid="uuid-1")])], {}, kinds, {})
    assert histories[0].flags == ()


def test_drifted_series_come_first_and_say_what_to_do() -> None:
    calm = replace(PROBE, subject="calm")
    found = [taken(1, 0.1), taken(2, 0.2), *(taken(day, 0.1, probe=calm) for day in (1, 2, 3))]
    first, second = histories_of(series_of(found), {}, {}, {})[0].series
    assert (first.probe.subject, second.probe.subject) == ("matmul_chain", "calm")
    assert first.flags[0].endswith(f"is {drift_words(first.points[-1])}.")
    assert second.flags == ()
