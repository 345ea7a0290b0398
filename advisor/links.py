"""Alpha-beta models of links out of measured sizes: pure functions.

t(S) = alpha + S / rate, fitted by least squares with weights 1 / t^2, so that each size counts by its relative error: otherwise
the largest message alone would decide, and the latency be lost in its noise.
"""

from collections.abc import Iterable, Mapping, Sequence

from core.device import Accelerator
from core.links import LinkModel, LinkPoint, LinkSeries
from core.probe import Measurement
from core.statistics import iqr, quantile

KINDS = ("host_device", "device_device", "collective", "hand_off")
FEWEST_SIZES = 2
_WAYS = {"to_device": "host to device", "to_host": "device to host", "both": "both ways at once"}


def bus_factor(collective: str, ranks: int) -> float:
    """Return bus rate over algorithm rate.

    Args:
        collective: `all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`; anything else has factor 1.
        ranks: how many take part.

    Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md.
    """
    if ranks < 2:
        return 1.0
    share = (ranks - 1) / ranks
    factors = {"all_reduce": 2 * share, "all_gather": share, "reduce_scatter": share, "all_to_all": share}
    return factors.get(collective, 1.0)


def fit(points: Sequence[tuple[float, float]]) -> LinkModel | None:
    """Return the model of (bytes, seconds) points, or None with fewer than two sizes.

    Neither latency nor the time of a byte can be below nothing: where the best line says so, the best one without it is taken.

    Args:
        points: bytes and seconds, seconds above zero.

    Source: weighted least squares, closed form for a line; weights 1 / t^2.
    """
    if len({size for size, _ in points}) < FEWEST_SIZES:
        return None
    weights = [1 / (seconds * seconds) for _, seconds in points]
    total = sum(weights)
    mean_size = sum(w * s for w, (s, _) in zip(weights, points, strict=True)) / total
    mean_time = sum(w * t for w, (_, t) in zip(weights, points, strict=True)) / total
    spread = sum(w * (s - mean_size) ** 2 for w, (s, _) in zip(weights, points, strict=True))
    together = sum(w * (s - mean_size) * (t - mean_time) for w, (s, t) in zip(weights, points, strict=True))
    slope = together / spread
    latency = mean_time - slope * mean_size
    if slope <= 0:
        slope, latency = 0.0, mean_time
    elif latency < 0:
        squares = sum(w * s * s for w, (s, _) in zip(weights, points, strict=True))
        slope, latency = sum(w * s * t for w, (s, t) in zip(weights, points, strict=True)) / squares, 0.0
    plain = LinkModel(latency, 1 / slope if slope > 0 else None, 1.0, 1.0)
    ratios = [seconds / plain.seconds(size) for size, seconds in points]
    return LinkModel(plain.latency_s, plain.bytes_per_s, min(1.0, quantile(ratios, 0.1)), max(1.0, quantile(ratios, 0.9)))


def series(measured: Iterable[Measurement], chips: Mapping[str, Accelerator]) -> tuple[LinkSeries, ...]:
    """Return one series for each kind, direction or collective, runtime, device and count of devices, with its fitted model.

    Quarantined measurements are left out; doubtful ones keep their doubts.

    Args:
        measured: of any family.
        chips: catalog entry of each device id that has one, for the maker's figures.
    """
    groups: dict[tuple[str, str, str, str, int], list[Measurement]] = {}
    for one in measured:
        if one.probe.family == "system" and one.probe.subject in KINDS and one.trusted and one.median_s > 0:
            sizes = dict(one.probe.sizes)
            key = (one.probe.subject, _what(sizes), one.probe.runtime, one.probe.device, _count(sizes))
            groups.setdefault(key, []).append(one)
    order = sorted(groups, key=lambda key: (KINDS.index(key[0]), *key[1:]))
    return tuple(_series(key, groups[key], chips.get(key[3])) for key in order)


def _series(key: tuple[str, str, str, str, int], measured: list[Measurement], chip: Accelerator | None) -> LinkSeries:
    kind, what, runtime, device, count = key
    points = tuple(sorted((_point(one) for one in measured), key=lambda point: point.size_bytes))
    peak = None if chip is None else {"host_device": chip.host_bytes_per_s, "hand_off": None}.get(kind, chip.link_bytes_per_s)
    source = f"{chip.name}, {chip.source} ({chip.source_date})" if chip and peak else ""
    factor = bus_factor(str(dict(measured[0].probe.sizes).get("collective", "")), count)
    model = fit([(point.size_bytes, point.seconds) for point in points])
    taken = max(one.taken_at for one in measured)
    return LinkSeries(kind, what, runtime, device, count, factor, points, model, peak, source, taken)


def _point(one: Measurement) -> LinkPoint:
    samples = one.samples_s
    return LinkPoint(one.traffic_bytes, one.median_s, iqr(samples) / one.median_s, len(samples), one.warnings)


def _what(sizes: Mapping[str, object]) -> str:
    if "collective" in sizes:
        return str(sizes["collective"]).replace("_", "-")
    if "way" in sizes:
        return f"{_WAYS[str(sizes['way'])]}, {sizes['memory']}"
    return f"to {sizes['to']}" if "to" in sizes else "ring of sends"


def _count(sizes: Mapping[str, object]) -> int:
    count = sizes.get("devices", 1)
    return count if isinstance(count, int) else 1
