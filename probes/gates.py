"""Gates: what a measurement must pass before it is believed. A doubt is a warning, an impossibility a quarantine.

Source of the limits: rules 11 and 12 of the measurement protocol (docs/guide.md): interquartile range over 10 % of the median,
first sample over 1.5 x the median, modified z-score over 14.826, samples under 1 ms, more than 105 % of the dense peak. A copy
that takes longer than 10 ms has no clock and no dispatch to excuse it: its range may be 5 %, the least change that counts as a
drift from run to run.
What the worker saw of its programs (`probes.evidence`) is judged here too. Each phrase begins with the name of its gate.
"""

from dataclasses import dataclass

from core.probe import Timing
from core.statistics import iqr, median, modified_z_scores, slope_samples
from probes.evidence import NOTHING_SEEN, Evidence
from probes.proof import work_doubt
from probes.trend import drift_doubt

PEAK_MARGIN = 1.05
NOISY_IQR = 0.10
NOISY_IQR_OF_LONG = 0.05
LONG_S = 0.010
FEWEST = 3
"""Samples that have quartiles."""
OUTLIER_Z = 14.826
SLOW_FIRST = 1.5
SHORT_SAMPLE_NS = 1_000_000
SUSPECT_SHARE = 0.20
LEAST_GROWTH = 0.20
GROWTH_NOISE = 0.5
"""Quartiles further apart than this share of the median tell nothing about growth."""
CACHE_MULTIPLE = 2
"""Bytes moved, over those of the last-level cache, from which on memory is measured."""


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
    evidence: Evidence = NOTHING_SEEN,
    cache_bytes: int | None = None,
) -> GateResult:
    """Judge raw samples against statistics and physics.

    Args:
        timings: of every depth.
        flop: of one copy of the subject.
        traffic_bytes: of one copy, 0 when not counted.
        peak_flop_per_s: dense peak of the device for this dtype; None when unknown.
        peak_bytes_per_s: peak memory rate; None when unknown.
        large_aligned: a matrix product that should come near the peak.
        evidence: what the worker saw of the programs.
        cache_bytes: of the last level; None when unknown.
    """
    seconds = slope_samples(tuple((t.depth, t.samples_ns) for t in timings))
    middle = median(seconds)
    seen = [*evidence.doubts, *filter(None, [work_doubt(evidence.counted, flop)])]
    if middle <= 0:
        return _result(["slope: the copy costs nothing that can be told from noise", *seen], flop == 0)
    warnings, trusted = [*_noise(timings, seconds), *seen], True
    if traffic_bytes and not flop and cache_bytes and traffic_bytes < CACHE_MULTIPLE * cache_bytes:
        warnings.append(f"hot: {traffic_bytes / 1e6:.0f} MB fit into a cache of {cache_bytes / 1e6:.0f} MB; no rate of memory")
    growth = _growth(timings, middle)
    if large_aligned and growth is not None and growth < LEAST_GROWTH and iqr(seconds) < GROWTH_NOISE * middle:
        shared = f"quarantined: slope: only {growth:.0%} of the deepest call grows with its copies; work is shared or hoisted"
        warnings.append(shared)
    rate = flop / middle
    if peak_flop_per_s and rate > PEAK_MARGIN * peak_flop_per_s:
        warnings.append(
            f"quarantined: peak: {rate / 1e9:.0f} GFLOP/s is over 105 % of the peak of {peak_flop_per_s / 1e9:.0f}; "
            "work was skipped or not waited for"
        )
        trusted = False
    if peak_bytes_per_s and traffic_bytes / middle > PEAK_MARGIN * peak_bytes_per_s:
        warnings.append("quarantined: memory rate: over 105 % of the peak; a cache was measured or work was skipped")
        trusted = False
    if large_aligned and peak_flop_per_s and rate < SUSPECT_SHARE * peak_flop_per_s:
        warnings.append(f"suspect path: {rate / peak_flop_per_s:.0%} of the peak on a large aligned product")
    return _result(warnings, trusted)


def gate_of(warning: str) -> str:
    """Return the name of the gate that raised a warning."""
    return warning.removeprefix("quarantined: ").split(":")[0]


def _result(warnings: list[str], trusted: bool) -> GateResult:
    """Return warnings, each once; one that quarantines takes the trust away."""
    return GateResult(tuple(dict.fromkeys(warnings)), trusted and not any(w.startswith("quarantined") for w in warnings))


def _growth(timings: tuple[Timing, ...], seconds: float) -> float | None:
    """Return the share of the deepest call that grows with the copies; None with one depth only."""
    deepest = max(timings, key=lambda timing: timing.depth)
    if len(timings) < 2 or not deepest.samples_ns:
        return None
    return seconds * deepest.depth * 1e9 / median(deepest.samples_ns)


def _noise(timings: tuple[Timing, ...], seconds: tuple[float, ...]) -> list[str]:
    warnings: list[str] = []
    middle = median(seconds)
    if len(seconds) >= FEWEST and iqr(seconds) > (NOISY_IQR_OF_LONG if middle > LONG_S else NOISY_IQR) * middle:
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
    drifting = drift_doubt(max(timings, key=lambda timing: timing.depth).samples_ns)
    if drifting:
        warnings.append(drifting)
    far = sum(1 for z in modified_z_scores(seconds) if abs(z) > OUTLIER_Z)
    if far:
        warnings.append(f"outliers: {far} of {len(seconds)} samples, kept")
    return warnings
