"""What an attached device reaches, from its own kernel measurements: rates of arithmetic and of memory, and launch cost.

Rates depend on size, so each is kept as measured points and read between them in log space; beyond the ends it stays at
the last measured rate, because a rate that was never seen is not assumed.
"""

from bisect import bisect_left
from dataclasses import dataclass
from math import exp, log

from advisor.answered import Answered
from advisor.beliefs import CHIP_HABITS, FUSED_TRAFFIC, ChipHabits
from advisor.work import Work
from core.workload import Size

MATMULS = ("matmul_chain", "matmul_skinny")
COPIES = ("memory_copy", "memory_triad")


@dataclass(frozen=True, slots=True)
class Curve:
    """Measured rates over size, read by log-log interpolation; points sorted by size."""

    points: tuple[tuple[float, float], ...]

    def at(self, size: float) -> float:
        """Return the rate at a size; the nearest measured one outside the range."""
        sizes = [point[0] for point in self.points]
        place = bisect_left(sizes, size)
        if place == 0:
            return self.points[0][1]
        if place == len(sizes):
            return self.points[-1][1]
        (low, low_rate), (high, high_rate) = self.points[place - 1], self.points[place]
        part = log(size / low) / log(high / low)
        return exp(log(low_rate) + part * log(high_rate / low_rate))

    @property
    def best(self) -> float:
        """The highest measured rate."""
        return max(rate for _, rate in self.points)


@dataclass(frozen=True, slots=True)
class Peaks:
    """What one runtime reached on one device.

    Args:
        matmul: FLOP/s over n of square matmuls.
        skinny: FLOP/s over m of matmuls with few rows; None when not measured.
        memory: bytes/s over bytes; None when not measured.
        launch_s: seconds of one bare call; None when not measured.
        habits: how operations that no kernel stands for compare with matmuls on this kind of device.
        evidence: the measurements that it rests on.
    """

    matmul: Curve
    skinny: Curve | None
    memory: Curve | None
    launch_s: float | None
    habits: ChipHabits
    evidence: tuple[str, ...]


def peaks_of(answered: Answered, dtype: str, kind: str) -> Peaks | None:
    """Return what was measured of a runtime on a device, or None when no matmul of that dtype was."""
    square = _curve(answered, ("matmul_chain",), "n", dtype)
    if square is None:
        return None
    used = [a for subject in (*MATMULS, *COPIES, "launch") for a in answered.kernels.get(subject, ())]
    kept = sorted({a.evidence for a in used if a.measurement.probe.dtype == dtype or a.measurement.probe.subject not in MATMULS})
    launches = answered.kernels.get("launch", ())
    return Peaks(
        square,
        _curve(answered, ("matmul_skinny",), "m", dtype),
        _curve(answered, COPIES, "bytes", None),
        min((a.seconds for a in launches), default=None),
        CHIP_HABITS[kind],
        tuple(kept),
    )


def _curve(answered: Answered, subjects: tuple[str, ...], size: str, dtype: str | None) -> Curve | None:
    rates: dict[float, list[float]] = {}
    for answer in (a for subject in subjects for a in answered.kernels.get(subject, ())):
        probe = answer.measurement.probe
        if dtype is not None and probe.dtype != dtype:
            continue
        place = _number(dict(probe.sizes).get(size))
        amount = answer.measurement.flop if dtype is not None else answer.measurement.traffic_bytes
        if place and amount > 0:
            rates.setdefault(place, []).append(amount / answer.seconds)
    if not rates:
        return None
    return Curve(tuple((place, sum(found) / len(found)) for place, found in sorted(rates.items())))


def _number(value: Size | None) -> float | None:
    return float(value) if isinstance(value, (int, float)) and value > 0 else None


@dataclass(frozen=True, slots=True)
class Split:
    """Seconds of some work by breakdown term."""

    compute_s: float
    memory_s: float
    launch_s: float

    @property
    def total_s(self) -> float:
        """Sum of the terms."""
        return self.compute_s + self.memory_s + self.launch_s


def roofline_split(works: tuple[Work, ...], peaks: Peaks, fused: bool) -> Split:
    """Return the time of some work by the roofline of measured kernels: max(flop / rate, bytes / rate) + launch, per operation.

    Args:
        works: operations.
        peaks: what the device reached.
        fused: whether the runtime fuses element-wise operations into their neighbours: no launch, and part of the traffic.

    Source: Williams, Waterman, Patterson (2009), Roofline.
    """
    compute = memory = launch = 0.0
    for work in works:
        arithmetic, traffic = _arithmetic_s(work, peaks), _traffic_s(work, peaks, fused)
        if arithmetic >= traffic:
            compute += arithmetic
        else:
            memory += traffic
        if peaks.launch_s is not None and not fused:
            launch += peaks.launch_s * work.count * work.steps
    return Split(compute, memory, launch)


def _arithmetic_s(work: Work, peaks: Peaks) -> float:
    if not work.flop:
        return 0.0
    habits = peaks.habits
    if work.family in ("elementwise", "norm", "lookup", "sync"):
        return work.flop / (peaks.matmul.best * habits.vector_share)
    if work.family in ("depthwise", "other"):
        return work.flop / (peaks.matmul.best * (habits.depthwise if work.family == "depthwise" else habits.other))
    size = (max(1, work.rows) * max(1, work.columns) * max(1, work.depth)) ** (1 / 3)
    rate = peaks.matmul.at(size)
    if peaks.skinny is not None and work.rows < min(work.columns, work.depth) / 4:
        rate = min(rate, peaks.skinny.at(work.rows))
    loss = {"attention": habits.attention, "conv": habits.conv, "rnn": habits.rnn}.get(work.family, habits.matmul) / habits.matmul
    return work.flop / (rate * loss)


def _traffic_s(work: Work, peaks: Peaks, fused: bool) -> float:
    if peaks.memory is None or not work.traffic_bytes:
        return 0.0
    kept = FUSED_TRAFFIC.get(work.family, 1.0) if fused else 1.0
    return work.traffic_bytes * kept / peaks.memory.at(work.traffic_bytes / max(1, work.count))
