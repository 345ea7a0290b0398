"""What system probes say beside links: droop under load, scaling over cores, overlap, compile cost, capacity. Pure functions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.probe import Measurement
from core.statistics import median

THROTTLED = 0.05
"""Droop from which on a device is said to throttle, or to be shared; the drift that starts a new probe elsewhere too."""


@dataclass(frozen=True, slots=True)
class Load:
    """A product under load and after rest.

    Args:
        sustained_flop_per_s: median of the second half of the samples.
        burst_flop_per_s: median after rest; None when it was not measured.
        droop: 1 - sustained / burst; None without a burst.
        seconds: of timed samples under load.
    """

    runtime: str
    device: str
    sustained_flop_per_s: float
    burst_flop_per_s: float | None
    droop: float | None
    seconds: float
    taken_at: str

    @property
    def throttled(self) -> bool:
        """Whether the droop is more than noise; by heat, power or a neighbour, which the samples alone cannot tell."""
        return self.droop is not None and self.droop > THROTTLED


@dataclass(frozen=True, slots=True)
class Scaling:
    """One kernel on so many cores, against one core.

    Args:
        kernel: `matmul_chain` or `memory_triad`.
        rate: FLOP/s or byte/s.
        speedup: over one core; None when that was not measured.
    """

    runtime: str
    device: str
    kernel: str
    cores: int
    rate: float
    speedup: float | None
    taken_at: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """Something that moves beside a product; seconds of each alone and of both, and the hidden share of the shorter."""

    runtime: str
    device: str
    beside: str
    product_s: float
    beside_s: float
    together_s: float
    fraction: float
    taken_at: str


@dataclass(frozen=True, slots=True)
class Compiling:
    """Seconds of one way to compile."""

    runtime: str
    device: str
    what: str
    layers: int
    seconds: float
    samples: int
    taken_at: str


@dataclass(frozen=True, slots=True)
class Capacity:
    """The largest block of memory, the cap that it was looked for under, and what the runtime held at rest."""

    runtime: str
    device: str
    largest_bytes: int
    cap_bytes: int
    at_rest_bytes: int
    taken_at: str

    @property
    def capped(self) -> bool:
        """Whether the cap was reached, so that the device may hold more."""
        return self.largest_bytes + 2**24 > self.cap_bytes


def overlap_fraction(first_s: Sequence[float], second_s: Sequence[float], together_s: Sequence[float]) -> float:
    """Return the share of the shorter that hides behind the longer: 1 all of it, 0 none, less than 0 when they hinder each other.

    Args:
        first_s, second_s: samples of each alone, above zero.
        together_s: samples of both.
    """
    first, second = median(first_s), median(second_s)
    return (first + second - median(together_s)) / min(first, second)


def droop(sustained_flop_per_s: float, burst_flop_per_s: float) -> float:
    """Return the share of the burst rate that is lost under load; negative when load is faster than the burst."""
    return 1 - sustained_flop_per_s / burst_flop_per_s


def loads(measured: Iterable[Measurement]) -> tuple[Load, ...]:
    """Return load against burst for each runtime and device; newest measurements are expected, one of each probe."""
    found = _of("sustained_load", measured)
    bursts = {_place(one): one.flop / one.median_s for one in found if dict(one.probe.sizes)["phase"] == "burst"}
    rows: list[Load] = []
    for one in found:
        if dict(one.probe.sizes)["phase"] == "burst":
            continue
        samples = one.samples_s
        rate = one.flop / median(samples[len(samples) // 2 :])
        burst = bursts.get(_place(one))
        lasted = sum(sum(t.samples_ns) * t.loops for t in one.timings) * 1e-9
        lost = None if burst is None else droop(rate, burst)
        rows.append(Load(one.probe.runtime, one.probe.device, rate, burst, lost, lasted, one.taken_at))
    return tuple(rows)


def scalings(measured: Iterable[Measurement]) -> tuple[Scaling, ...]:
    """Return the rate of each kernel on each count of cores, fewest cores first."""
    found = _of("cpu_scaling", measured)
    rates: dict[tuple[str, str, str, int], tuple[float, str]] = {}
    for one in found:
        sizes = dict(one.probe.sizes)
        kernel, cores = str(sizes["kernel"]), sizes["cores"]
        assert isinstance(cores, int)
        work = one.traffic_bytes if kernel == "memory_triad" else one.flop
        rates[*_place(one), kernel, cores] = (work / one.median_s, one.taken_at)
    rows: list[Scaling] = []
    for (runtime, device, kernel, cores), (rate, taken_at) in sorted(rates.items()):
        alone = rates.get((runtime, device, kernel, 1))
        rows.append(Scaling(runtime, device, kernel, cores, rate, rate / alone[0] if alone else None, taken_at))
    return tuple(rows)


def overlaps(measured: Iterable[Measurement]) -> tuple[Overlap, ...]:
    """Return what hides behind a product, for each runtime and device."""
    rows: list[Overlap] = []
    for one in _of("overlap", measured):
        product, beside = one.part_s("product"), one.part_s("beside")
        if product and beside:
            fraction = overlap_fraction(product, beside, one.samples_s)
            what = str(dict(one.probe.sizes)["with"]).replace("_", "-")
            rows.append(Overlap(*_place(one), what, median(product), median(beside), one.median_s, fraction, one.taken_at))
    return tuple(rows)


def compilings(measured: Iterable[Measurement]) -> tuple[Compiling, ...]:
    """Return seconds of each way to compile, fewest layers first."""
    rows: list[Compiling] = []
    for one in _of("compile_cost", measured):
        sizes = dict(one.probe.sizes)
        layers = sizes["layers"]
        assert isinstance(layers, int)
        rows.append(Compiling(*_place(one), str(sizes["what"]), layers, one.median_s, len(one.samples_s), one.taken_at))
    return tuple(sorted(rows, key=lambda row: (row.runtime, row.device, row.what, row.layers)))


def capacities(measured: Iterable[Measurement]) -> tuple[Capacity, ...]:
    """Return the largest block of each runtime and device, the one under the highest cap."""
    best: dict[tuple[str, str], Capacity] = {}
    for one in _of("memory_capacity", measured):
        counts = dict(one.counts)
        if {"largest_bytes", "cap_bytes", "at_rest_bytes"} <= counts.keys():
            row = Capacity(
                *_place(one),
                int(counts["largest_bytes"]),
                int(counts["cap_bytes"]),
                int(counts["at_rest_bytes"]),
                one.taken_at,
            )
            kept = best.get(_place(one))
            if kept is None or row.cap_bytes > kept.cap_bytes:
                best[_place(one)] = row
    return tuple(best.values())


def _of(subject: str, measured: Iterable[Measurement]) -> list[Measurement]:
    return [one for one in measured if one.probe.family == "system" and one.probe.subject == subject and one.median_s > 0]


def _place(one: Measurement) -> tuple[str, str]:
    return (one.probe.runtime, one.probe.device)
