"""The empirical roofline: from stored kernel measurements to rates with bands, caches, ridges and launch costs, pure.

Every measurement becomes a point. One that cannot be told from noise keeps its place without a rate, and one that the gates
quarantined keeps its rate, but nothing rests on either. Bands are the middle 80 % of the samples themselves.

Source: Williams, Waterman, Patterson (2009), Roofline; Lo et al. (2014), Roofline Model Toolkit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import exp, hypot, isqrt, log

from core.device import Device
from core.probe import Measurement
from core.quantity import TIER_SIGMA, Z_80, Quantity, log_normal
from core.roofline import DeviceRoof, Knee, LaunchCost, RatePoint, Reference, RuntimeRoof
from core.statistics import median, quantile

MATMUL = "matmul_chain"
STREAMS = ("memory_copy", "memory_add", "memory_triad", "memory_read")
MEMORY = (*STREAMS, "memory_gather")
VECTOR = "vector_fma"
LAUNCHES = ("launch", "launch_chain", "launch_add", "step_frame")
BEYOND_CACHE = 4
ASSUMED_BEYOND = {"cpu": 2**27}
BEYOND_OTHERWISE = 2**30
"""Working set that no cache holds where the device does not tell its cache."""
FEWEST_SAMPLES = 4
"""With fewer, quartiles say little: the band is at least the one that a measurement starts with."""
KNEE_FALL = 0.8
"""A rate that falls to less than this share of the one before, bands apart, has left a cache."""
NOT_TOLD = "cannot be told from noise"
HANDED_OVER = "Keras hands whole arrays in and out at every call, and that is counted"


def device_roof(device: Device, measurements: Iterable[Measurement], references: tuple[Reference, ...] = ()) -> DeviceRoof:
    """Return what was measured of a device, by runtime and dtype.

    Args:
        device: attached; measurements of others are left out.
        measurements: any order; of equal probes the newest trusted one counts.
        references: what others say of this type of device.
    """
    own = _newest(m for m in measurements if m.device_uuid == device.uuid and m.probe.family == "kernel" and m.timings)
    beyond = beyond_caches(device)
    places = sorted({(m.probe.runtime, m.probe.dtype) for m in own if m.probe.subject not in LAUNCHES})
    places = places or sorted({(m.probe.runtime, m.probe.dtype) for m in own})
    return DeviceRoof(device, tuple(_runtime_roof(own, runtime, dtype, beyond) for runtime, dtype in places), references)


def beyond_caches(device: Device) -> float:
    """Return the bytes of a working set that no cache of the device holds."""
    return BEYOND_CACHE * device.cache_bytes if device.cache_bytes else ASSUMED_BEYOND.get(device.kind, BEYOND_OTHERWISE)


def _newest(measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
    found: dict[tuple[object, ...], Measurement] = {}
    for one in sorted(measurements, key=lambda m: (m.trusted, m.taken_at, m.timings[-1].samples_ns)):
        probe = one.probe
        found[probe.subject, probe.sizes, probe.dtype, probe.runtime, probe.mode] = one
    return tuple(found[key] for key in sorted(found, key=str))


def _runtime_roof(own: Sequence[Measurement], runtime: str, dtype: str, beyond: float) -> RuntimeRoof:
    here = [m for m in own if m.probe.runtime == runtime]
    points = sorted((rate_point(m) for m in here if m.probe.dtype == dtype and m.probe.subject not in LAUNCHES), key=_place)
    matmul = tuple(p for p in points if p.subject == MATMUL)
    memory = tuple(p for p in points if p.subject in MEMORY)
    vector = tuple(p for p in points if p.subject == VECTOR)
    flop_per_s, vector_flop_per_s = _best(matmul), _best(vector)
    bytes_per_s = _best(tuple(p for p in memory if p.subject in STREAMS and p.size >= beyond))
    top = flop_per_s or vector_flop_per_s
    others = tuple(
        _with_share(p, top, bytes_per_s)
        for p in points
        if p.subject != MATMUL and p.subject not in MEMORY and p.subject != VECTOR
    )
    knees = tuple(knee for subject in STREAMS for knee in find_knees([p for p in memory if p.subject == subject]))
    launch = launch_cost([m for m in here if m.probe.subject in LAUNCHES and m.probe.dtype == "fp32"])
    return RuntimeRoof(
        runtime,
        dtype,
        matmul,
        memory,
        vector,
        others,
        flop_per_s,
        bytes_per_s,
        vector_flop_per_s,
        quotient(vector_flop_per_s, bytes_per_s),
        quotient(flop_per_s, bytes_per_s),
        knees,
        launch,
    )


def _place(point: RatePoint) -> tuple[str, float, str]:
    return (point.subject, point.size, str(point.sizes))


def rate_point(measurement: Measurement) -> RatePoint:
    """Return one measurement as a rate with the band of its own samples.

    The rate is of FLOPs where they are counted, else of bytes; passes over memory are always a rate of bytes.
    """
    probe = measurement.probe
    work = measurement.traffic_bytes if probe.subject in MEMORY or not measurement.flop else measurement.flop
    seconds = band_of(measurement.samples_s, _evidence(measurement))
    rate = None
    if seconds is not None and work > 0:
        rate = Quantity(work / seconds.high, work / seconds.mid, work / seconds.low, "measured", seconds.evidence)
    doubts = measurement.warnings
    if seconds is None:
        doubts = (*doubts, NOT_TOLD)
    if probe.runtime.startswith("keras-") and (probe.subject in MEMORY or probe.subject == VECTOR):
        doubts = (*doubts, HANDED_OVER)
    counted = measurement.flop and measurement.traffic_bytes
    return RatePoint(
        probe.subject,
        probe.runtime,
        probe.dtype,
        probe.sizes,
        _size(measurement),
        measurement.flop / measurement.traffic_bytes if counted else None,
        measurement.median_s,
        rate,
        None,
        measurement.trusted,
        doubts,
        ", ".join((*(f"{name} {version}" for name, version in measurement.versions), measurement.taken_at[:10])),
    )


def band_of(samples: Sequence[float], *evidence: str) -> Quantity | None:
    """Return the median with the middle 80 % of the samples, or None when they reach zero: then it is no more than noise.

    Args:
        samples: seconds, at least one, any order; differences may be negative.
        evidence: where they come from.
    """
    low, middle, high = (quantile(samples, part) for part in (0.1, 0.5, 0.9))
    if low <= 0:
        return None
    if len(samples) < FEWEST_SAMPLES:
        spread = exp(Z_80 * TIER_SIGMA["measured"])
        low, high = min(low, middle / spread), max(high, middle * spread)
    return Quantity(low, middle, high, "measured", evidence)


def _evidence(measurement: Measurement) -> str:
    probe, count = measurement.probe, len(measurement.samples_s)
    return f"measured {measurement.taken_at[:10]}: {probe.label} in {probe.runtime} on {probe.device}, {count} samples"


def _size(measurement: Measurement) -> float:
    sizes = dict(measurement.probe.sizes)
    if measurement.probe.subject in MEMORY:
        return float(measurement.traffic_bytes)
    wanted = "flop_each" if measurement.probe.subject == VECTOR else "n"
    value = sizes.get(wanted)
    if isinstance(value, (int, float)):
        return float(value)
    return float(isqrt(max(0, measurement.traffic_bytes)))


def _best(points: Sequence[RatePoint]) -> Quantity | None:
    """Return the highest trusted rate, or None."""
    return max((p.rate for p in points if p.rate is not None and p.trusted), key=lambda rate: rate.mid, default=None)


def _with_share(point: RatePoint, flop_per_s: Quantity | None, bytes_per_s: Quantity | None) -> RatePoint:
    """Return a point with its share of what the roof allows at its intensity."""
    if point.rate is None or bytes_per_s is None:
        return point
    if point.intensity is None:
        return replace(point, roof_share=point.rate.mid / bytes_per_s.mid)
    if flop_per_s is None:
        return point
    return replace(point, roof_share=point.rate.mid / min(flop_per_s.mid, point.intensity * bytes_per_s.mid))


def quotient(above: Quantity | None, below: Quantity | None) -> Quantity | None:
    """Return one quantity over another with the band of both, taken as independent; None when either is unknown or zero."""
    if above is None or below is None or min(above.low, below.low) <= 0:
        return None
    sigma = hypot(above.sigma, below.sigma)
    return log_normal(above.mid / below.mid, sigma, "measured", *above.evidence, *below.evidence)


def rate_at(points: Sequence[RatePoint], size: float) -> Quantity | None:
    """Return the rate at a size: as measured there, read in log space between two, or the nearest one beyond the ends.

    Args:
        points: of one kernel; those without a rate or trust are passed over.
        size: positive.

    Returns:
        The rate, `measured`, `interpolated` or (beyond the ends) `transferred`; None when no point can be used.
    """
    used = [(p.size, p.rate) for p in sorted(points, key=_place) if p.rate is not None and p.trusted and p.size > 0]
    if not used:
        return None
    below = [item for item in used if item[0] <= size]
    above = [item for item in used if item[0] >= size]
    if not below or not above:
        rate = (below[-1] if below else above[0])[1]
        return Quantity(rate.low, rate.mid, rate.high, "transferred", rate.evidence)
    (left, low), (right, high) = below[-1], above[0]
    if left == right:
        return low
    part = log(size / left) / log(right / left)
    ends = [exp((1 - part) * log(a) + part * log(b)) for a, b in zip(_three(low), _three(high), strict=True)]
    low_rate, middle, high_rate = sorted(ends)
    return Quantity(low_rate, middle, high_rate, "interpolated", (*low.evidence, *high.evidence))


def _three(rate: Quantity) -> tuple[float, float, float]:
    return rate.low, rate.mid, rate.high


def find_knees(points: Sequence[RatePoint]) -> tuple[Knee, ...]:
    """Return where the rate falls by more than its noise as the working set grows; falls that follow each other are one.

    Args:
        points: of one kernel over its working set.
    """
    told = [p for p in sorted(points, key=_place) if p.rate is not None and p.trusted]
    knees: list[Knee] = []
    for before, after in pairwise(told):
        assert before.rate is not None
        assert after.rate is not None
        if after.rate.high >= before.rate.low or after.rate.mid >= KNEE_FALL * before.rate.mid:
            continue
        if knees and knees[-1].to_bytes == before.size:
            last = knees.pop()
            knees.append(Knee(before.subject, last.from_bytes, after.size, last.before, after.rate.mid))
        else:
            knees.append(Knee(before.subject, before.size, after.size, before.rate.mid, after.rate.mid))
    return tuple(knees)


def launch_cost(measurements: Sequence[Measurement]) -> LaunchCost:
    """Return what a call and an operation cost: from a line through times over counts, or from what there is of it.

    Args:
        measurements: of one runtime; `launch` (slope of a chain) and `launch_chain` (whole calls) are used.
    """
    chain = [m for m in measurements if m.probe.subject == "launch_chain" and m.trusted]
    series = sorted(((_count(m), m) for m in chain), key=lambda item: item[0])
    slopes = [m for m in measurements if m.probe.subject == "launch" and m.trusted]
    by_slope = band_of(slopes[0].samples_s, _evidence(slopes[0])) if slopes else None
    if not series:
        return LaunchCost(None, by_slope)
    bare = band_of(series[0][1].samples_s, _evidence(series[0][1]))
    if len(series) < 3:
        return LaunchCost(bare, by_slope)
    fits = [
        fit_line([(count, quantile(m.samples_s, part)) for count, m in series if median(m.samples_s) > 0])
        for part in (0.1, 0.5, 0.9)
    ]
    evidence = tuple(_evidence(m) for _, m in series)
    starts, steps = (sorted(fit[i] for fit in fits) for i in (0, 1))
    call = Quantity(starts[0], starts[1], starts[2], "measured", evidence) if starts[0] > 0 else bare
    each = Quantity(steps[0], steps[1], steps[2], "measured", evidence) if steps[0] > 0 else by_slope
    return LaunchCost(call, each)


def _count(measurement: Measurement) -> float:
    value = dict(measurement.probe.sizes).get("count")
    return float(value) if isinstance(value, (int, float)) else 1.0


def fit_line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return (start, slope) of the line with the least relative errors.

    Args:
        points: at least two of different x, y positive.

    Source: weighted least squares with weights 1 / y^2, since times over three decades have relative errors, not absolute ones.
    """
    weights = [1 / y**2 for _, y in points]
    total = sum(weights)
    x_mean = sum(w * x for w, (x, _) in zip(weights, points, strict=True)) / total
    y_mean = sum(w * y for w, (_, y) in zip(weights, points, strict=True)) / total
    spread = sum(w * (x - x_mean) ** 2 for w, (x, _) in zip(weights, points, strict=True))
    slope = sum(w * (x - x_mean) * (y - y_mean) for w, (x, y) in zip(weights, points, strict=True)) / spread
    return y_mean - slope * x_mean, slope
