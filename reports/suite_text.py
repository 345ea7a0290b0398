"""A device's own measurements in words and rows: what a chart shows, and the table that is its twin."""

from dataclasses import dataclass

from core import format as write
from core.quantity import Quantity
from core.roofline import DeviceRoof, RatePoint, RuntimeRoof

SUITE_CHARTS = ("device_roofline", "memory_curve", "matmul_rates", "launch_costs", "operator_rates")
CLASSES = {
    "attention": "attention",
    "softmax": "softmax",
    "embedding_rows": "embedding lookup",
    "convolution": "convolution",
    "matmul_skinny": "product, few rows",
    "matmul_batched": "product, batched",
    "matmul_misaligned": "product, misaligned",
    "matmul_shape": "product, a workload's shape",
}


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One runtime in one dtype, as texts; unknown is a dash."""

    runtime: str
    dtype: str
    matmul: str
    memory: str
    vector: str
    ridge: str
    call: str
    operation: str
    caches: str


@dataclass(frozen=True, slots=True)
class PointRow:
    """One measured point; rate in FLOP/s or bytes/s, None when it cannot be told from noise."""

    kernel: str
    runtime: str
    dtype: str
    sizes: str
    seconds: float
    rate: float | None
    unit: str
    band: str
    doubts: str
    provenance: str


def class_of(point: RatePoint) -> str:
    """Return the class of operations that a point belongs to."""
    if point.subject == "normalisation":
        return "RMS norm" if dict(point.sizes).get("norm") == "rms" else "layer norm"
    return CLASSES.get(point.subject, point.subject.replace("_", " "))


def roof_line(roof: RuntimeRoof, ends: tuple[float, float]) -> list[tuple[float, float]]:
    """Return the (intensity, FLOP/s) stops of a runtime's roof; none when it has neither rate.

    Source: Williams, Waterman, Patterson (2009), Roofline: attainable = min(peak, intensity x memory rate).
    """
    top = roof.flop_per_s.mid if roof.flop_per_s else None
    rate = roof.bytes_per_s.mid if roof.bytes_per_s else None
    left, right = ends
    if rate is None:
        return [] if top is None else [(left, top), (right, top)]
    if top is None:
        return [(left, left * rate), (right, right * rate)]
    corner = min(max(top / rate, left), right)
    return [(left, min(top, left * rate)), (corner, min(top, corner * rate)), (right, min(top, right * rate))]


def banded(quantity: Quantity | None, unit: str) -> str:
    """Return a rate with its band, `35.0 GFLOP/s (23.1 to 41.0)`, or a dash; the ends carry a unit where it is another one."""
    if quantity is None:
        return write.MISSING
    middle = write.count(quantity.mid, unit)
    written = middle.partition(" ")[2]
    low, high = (write.count(end, unit).removesuffix(f" {written}" if written else "") for end in (quantity.low, quantity.high))
    return f"{middle} ({low} to {high})"


def summary_rows(device: DeviceRoof) -> tuple[SummaryRow, ...]:
    """Return what each runtime reached, in the order that it was found."""
    return tuple(
        SummaryRow(
            roof.runtime,
            roof.dtype,
            banded(roof.flop_per_s, "FLOP/s"),
            banded(roof.bytes_per_s, "B/s"),
            banded(roof.vector_flop_per_s, "FLOP/s"),
            banded(roof.ridge, ""),
            write.seconds(roof.launch.call_s.mid if roof.launch.call_s else None),
            write.seconds(roof.launch.operation_s.mid if roof.launch.operation_s else None),
            "; ".join(
                f"{write.memory(knee.from_bytes)} to {write.memory(knee.to_bytes)}:"
                f" {write.count(knee.before, 'B/s')} to {write.count(knee.after, 'B/s')}"
                for knee in roof.knees
            )
            or write.MISSING,
        )
        for roof in device.runtimes
    )


def point_rows(device: DeviceRoof) -> tuple[PointRow, ...]:
    """Return every measured point, doubted and untold ones too."""
    return tuple(
        PointRow(
            point.subject,
            point.runtime,
            point.dtype,
            " ".join(f"{name}={value}" for name, value in point.sizes),
            point.seconds,
            None if point.rate is None else point.rate.mid,
            "B/s" if point.intensity is None else "FLOP/s",
            banded(point.rate, "B/s" if point.intensity is None else "FLOP/s"),
            "; ".join(point.doubts),
            point.provenance,
        )
        for roof in device.runtimes
        for point in roof.points
    )


def describe_suite(chart: str, device: DeviceRoof, dtype: str) -> str:
    """Return what a chart of a device shows, in a few sentences, for people who cannot see it.

    Args:
        chart: one of `SUITE_CHARTS`.
        device: what was measured.
        dtype: that is drawn.

    Raises:
        ValueError: an unknown chart.
    """
    roofs = device.of(dtype)
    match chart:
        case "device_roofline":
            told = [f"{r.runtime} {banded(r.flop_per_s, 'FLOP/s')} and {banded(r.bytes_per_s, 'B/s')}" for r in roofs]
            others = [f"{r.label} {write.count(r.value, 'B/s' if r.kind == 'memory' else 'FLOP/s')}" for r in device.references]
            text = f"Best product and memory rate in {dtype}: {'; '.join(told)}."
            return text + (f" Others' figures: {'; '.join(others)}." if others else "")
        case "memory_curve":
            told = [f"{r.runtime} {banded(r.bytes_per_s, 'B/s')}" for r in roofs]
            return f"Rate of passes over memory by working set; beyond caches: {'; '.join(told)}."
        case "matmul_rates":
            told = [f"{r.runtime} {banded(r.flop_per_s, 'FLOP/s')}" for r in roofs]
            return f"Rate of square products by side; best: {'; '.join(told)}."
        case "launch_costs":
            told = [f"{row.runtime}: a call {row.call}, a further operation {row.operation}" for row in summary_rows(device)]
            return f"Cost of launches. {'; '.join(dict.fromkeys(told))}."
        case "operator_rates":
            best: dict[str, float] = {}
            for point in (p for r in roofs for p in r.operators if p.roof_share is not None):
                best[class_of(point)] = max(best.get(class_of(point), 0.0), point.roof_share or 0.0)
            told = [f"{name} {write.percent(share)}" for name, share in sorted(best.items())]
            return f"Best share of the runtime's own roof by class of operations: {', '.join(told)}."
        case _:
            raise ValueError(f"got chart {chart!r}; expected one of {', '.join(SUITE_CHARTS)}")
