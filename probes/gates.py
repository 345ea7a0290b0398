"""Gates: what a measurement must pass before it is believed. A doubt is a warning, an impossibility a quarantine.

Source of the limits: rules 11 and 12 of the measurement protocol (docs/guide.md): interquartile range over 10 % of the median,
first sample over 1.5 x the median, modified z-score over 14.826, samples under 1 ms, more than 105 % of the dense peak.
"""

from dataclasses import dataclass

from core.probe import Timing
from core.statistics import iqr, median, modified_z_scores, slope_samples

PEAK_MARGIN = 1.05
NOISY_IQR = 0.10
OUTLIER_Z = 14.826
SLOW_FIRST = 1.5
SHORT_SAMPLE_NS = 1_000_000
SUSPECT_SHARE = 0.20


@dataclass(frozen=True, slots=True)
class GateResult:
    """Warnings, and whether the measurement may be used."""

    warnings: tuple[str, ...]
    trusted: bool


def judge(
    timings: tuple[Timing, ...],
    flop: int,
    traffic_bytes: int,
    peak_flop_per_s: float | None,
    peak_bytes_per_s: float | None,
    large_aligned: bool,
) -> GateResult:
    """Judge raw samples against statistics and physics.

    Args:
        timings: of every depth.
        flop: of one copy of the subject.
        traffic_bytes: of one copy, 0 when not counted.
        peak_flop_per_s: dense peak of the device for this dtype; None when unknown.
        peak_bytes_per_s: peak memory rate; None when unknown.
        large_aligned: a matrix product that should come near the peak.
    """
    seconds = slope_samples(tuple((t.depth, t.samples_ns) for t in timings))
    middle = median(seconds)
    if middle <= 0:
        return GateResult(("the copy costs nothing that can be told from noise",), flop == 0)
    warnings, trusted = _noise(timings, seconds), True
    rate = flop / middle
    if peak_flop_per_s and rate > PEAK_MARGIN * peak_flop_per_s:
        warnings.append(
            f"quarantined: {rate / 1e9:.0f} GFLOP/s is over 105 % of the peak of {peak_flop_per_s / 1e9:.0f}; "
            "work was skipped or not waited for"
        )
        trusted = False
    if peak_bytes_per_s and traffic_bytes / middle > PEAK_MARGIN * peak_bytes_per_s:
        warnings.append("quarantined: memory rate is over 105 % of the peak; a cache was measured or work was skipped")
        trusted = False
    if large_aligned and peak_flop_per_s and rate < SUSPECT_SHARE * peak_flop_per_s:
        warnings.append(f"suspect path: {rate / peak_flop_per_s:.0%} of the peak on a large aligned product")
    return GateResult(tuple(warnings), trusted)


def _noise(timings: tuple[Timing, ...], seconds: tuple[float, ...]) -> list[str]:
    warnings: list[str] = []
    middle = median(seconds)
    if len(seconds) >= 4 and iqr(seconds) > NOISY_IQR * middle:
        warnings.append(f"noisy: interquartile range is {iqr(seconds) / middle:.0%} of the median")
    for timing in timings:
        if not timing.samples_ns:
            continue
        own = median(timing.samples_ns)
        if timing.samples_ns[0] > SLOW_FIRST * own:
            warnings.append(
                f"slow start: first sample at depth {timing.depth} took {timing.samples_ns[0] / own:.1f} x the median"
            )
        if own * timing.loops < SHORT_SAMPLE_NS:
            warnings.append(f"short: samples at depth {timing.depth} are under 1 ms")
    far = sum(1 for z in modified_z_scores(seconds) if abs(z) > OUTLIER_Z)
    if far:
        warnings.append(f"outliers: {far} of {len(seconds)} samples, kept")
    return warnings
