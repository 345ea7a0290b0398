"""Words for what moves between devices: a fitted link and what it was fitted to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinkPoint:
    """One measured transfer or collective.

    Args:
        size_bytes: of the message, as nccl-tests counts it for collectives.
        seconds: median of one call.
        spread: interquartile range over the median.
        samples: how many.
        doubts: what the gates said, one phrase each.
    """

    size_bytes: int
    seconds: float
    spread: float
    samples: int
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkModel:
    """Seconds of a message as latency plus bytes over rate, fitted to points.

    Args:
        latency_s: alpha; includes what one call costs to start.
        bytes_per_s: 1 / beta, of the message; None when time does not grow with bytes within what was measured.
        low, high: factors on the model between which 80 % of the points lie.
    """

    latency_s: float
    bytes_per_s: float | None
    low: float
    high: float

    def seconds(self, size_bytes: float) -> float:
        """Return the seconds that a message of a size takes by the model."""
        return self.latency_s + (size_bytes / self.bytes_per_s if self.bytes_per_s else 0.0)


@dataclass(frozen=True, slots=True)
class LinkSeries:
    """All sizes of one link as one runtime measured it on one device.

    Args:
        kind: subject of the probe: `host_device`, `device_device`, `collective` or `hand_off`.
        what: direction, collective or far end, for people.
        runtime, device: ids.
        devices: how many took part.
        bus_factor: bus rate over message rate, as nccl-tests defines it; 1 where it defines none.
        points: by size.
        model: None when there are too few sizes for one.
        peak_bytes_per_s: the maker's figure for this link, from the catalog; None when there is none.
        peak_source: where that is from.
        taken_at: of the newest point, UTC.
    """

    kind: str
    what: str
    runtime: str
    device: str
    devices: int
    bus_factor: float
    points: tuple[LinkPoint, ...]
    model: LinkModel | None
    peak_bytes_per_s: float | None
    peak_source: str
    taken_at: str

    @property
    def bus_bytes_per_s(self) -> float | None:
        """Bus rate of the largest message, or None without points."""
        if not self.points or self.points[-1].seconds <= 0:
            return None
        return self.bus_factor * self.points[-1].size_bytes / self.points[-1].seconds
