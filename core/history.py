"""The history of devices: what the same probe gave over time, how that drifts, and how a device stands to others of its kind.

A series is of one device (by UUID), one runtime and one probe with its settings; the number that a device had then does not
matter. Times are compared only under equal versions: a change of version is marked, not called a drift.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from core import format as write
from core.probe import Measurement, Probe
from core.statistics import LEAST_CHANGE, Change, Summary, against_peers, change, range_share

DRIFT, SPREAD = "drift: ", "spread: "
"""How a warning begins that tells of a drift from the last trusted run, and of medians that differ over the last few."""
FEW, RECENT = 3, 5
"""Trusted runs of equal versions over which medians are held against each other: so many at least, and at most."""


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement of a series.

    Args:
        taken_at: UTC, ISO 8601.
        figures: of its raw samples, seconds.
        trusted: False when it was quarantined; it is shown, and nothing is held against it.
        contended: whether other work used the device meanwhile; what follows is held against it only for want of a better one.
        versions: distribution and version pairs.
        changed: which versions are others than before, one phrase each.
        drift: against the last trusted point of the same versions; None where there is none.
        reference: when that was taken; empty where there is none.
    """

    taken_at: str
    figures: Summary
    trusted: bool
    contended: bool = False
    versions: tuple[tuple[str, str], ...] = ()
    changed: tuple[str, ...] = ()
    drift: Change | None = None
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """What one probe gave in one runtime on one device, oldest first.

    Args:
        device_uuid: of the device.
        probe: with the device left out.
        points: at least one.
        peers: how its newest trusted point stands to those of other devices of its kind; None without any.
        peer_count: how many those are.
    """

    device_uuid: str
    probe: Probe
    points: tuple[Point, ...]
    peers: Change | None = None
    peer_count: int = 0

    @property
    def name(self) -> str:
        """Probe and runtime in one short line."""
        return f"{self.probe.label} in {self.probe.runtime}"

    @property
    def newest(self) -> Point | None:
        """The newest trusted point."""
        return next((point for point in reversed(self.points) if point.trusted), None)

    @property
    def recent(self) -> tuple[Point, ...]:
        """The last trusted and undisturbed points of the newest one's versions, `RECENT` at most."""
        calm = [one for one in self.points if one.trusted and not one.contended]
        return tuple(one for one in calm if one.versions == calm[-1].versions)[-RECENT:]

    @property
    def spread(self) -> float:
        """Greatest less least of the recent medians, over their median; 0 for fewer than `FEW`."""
        return range_share([one.figures.median for one in self.recent]) if len(self.recent) >= FEW else 0.0

    @property
    def flags(self) -> tuple[str, ...]:
        """What a person should know, one sentence each: a drift of the last point or else its spread; slower than its peers."""
        last = self.points[-1]
        said: list[str] = []
        if last.drift is not None and last.drift.beyond_noise:
            said.append(f"{self.name} is {drift_words(last)}.")
        elif self.spread > LEAST_CHANGE:
            said.append(f"{self.name} is not steady: {unsteady_words(self)}.")
        if self.peers is not None and self.peers.fraction > 0 and self.peers.beyond_noise:
            others = "another device" if self.peer_count == 1 else f"{self.peer_count} other devices"
            noise = write.percent(self.peers.noise)
            said.append(f"{self.name} is {compared(self.peers)} on {others} of this kind, more than the noise of {noise}.")
        return tuple(said)


@dataclass(frozen=True, slots=True)
class DeviceHistory:
    """All series of one device.

    Args:
        uuid, name: of the device; the name is empty when no run told it.
        id: its present id where it is attached, else empty.
        series: flagged ones first, then the longest.
        peers: UUIDs of the other devices of its kind that were measured.
    """

    uuid: str
    name: str
    id: str
    series: tuple[Series, ...]
    peers: tuple[str, ...] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        """What a person should know, one sentence each."""
        return tuple(flag for one in self.series for flag in one.flags)

    @property
    def unflagged(self) -> str:
        """What is said where nothing is flagged."""
        if all(len(one.points) < 2 for one in self.series):
            return "Everything was measured once: there is nothing to compare yet."
        return "Nothing drifted by more than its noise."


def drift_words(point: Point) -> str:
    """Return the drift of a point in words: how much, against when, and what to do."""
    assert point.drift is not None
    when = f"{point.reference[:16].replace('T', ' ')} UTC"
    how = f"{compared(point.drift)} the last trusted run ({when})"
    why = ", while other work used the machine" if point.contended else ""
    return f"{how}, more than the noise of {write.percent(point.drift.noise)}{why}: probe again"


def unsteady_words(series: Series) -> str:
    """Return in words by how much the recent medians of a series differ."""
    return f"the medians of the last {len(series.recent)} undisturbed runs differ by {write.percent(series.spread)}"


def compared(found: Change) -> str:
    """Return a change in words, up to the name of what it is held against; from twice on as a factor."""
    if found.fraction >= 1:
        return f"{1 + found.fraction:.1f} times as slow as"
    return f"{write.percent(abs(found.fraction))} {'slower' if found.fraction > 0 else 'faster'} than"


def with_history(now: Measurement, earlier: Iterable[Measurement]) -> Measurement:
    """Return a measurement with what its series makes one doubt: a drift from the last trusted run, medians that are not steady.

    Args:
        now: just taken.
        earlier: what was measured before, in any order; others than of the same series are left out.
    """
    same = [one for one in earlier if key_of(one) == key_of(now) and one.taken_at <= now.taken_at and one is not now]
    warnings: list[str] = []
    for series in series_of([*same, now]):
        last = series.points[-1]
        if last.drift is not None and last.drift.beyond_noise:
            warnings.append(f"{DRIFT}{drift_words(last)}")
        if last in series.recent and series.spread > LEAST_CHANGE:
            warnings.append(f"{SPREAD}{unsteady_words(series)}")
    return replace(now, warnings=(*now.warnings, *warnings)) if warnings else now


def key_of(measurement: Measurement) -> tuple[str, Probe]:
    """Return what a series is of: the device by its UUID, and the probe whatever number the device had."""
    return measurement.device_uuid, replace(measurement.probe, device="")


def series_of(measurements: Iterable[Measurement]) -> tuple[Series, ...]:
    """Return measurements as series, each in the order in which it was taken; what has no samples is left out.

    Args:
        measurements: of any devices; of equal times the one that is given later counts as later.
    """
    piles: dict[tuple[str, Probe], list[Measurement]] = {}
    for one in measurements:
        if any(timing.samples_ns for timing in one.timings):
            piles.setdefault(key_of(one), []).append(one)
    found: list[Series] = []
    for (uuid, probe), pile in piles.items():
        points: list[Point] = []
        trusted: dict[tuple[tuple[str, str], ...], Point] = {}
        for one in sorted(pile, key=lambda measurement: measurement.taken_at):
            points.append(_point(one, points[-1] if points else None, trusted.get(one.versions)))
            before = trusted.get(one.versions)
            if one.trusted and (before is None or before.contended or not one.contended):
                trusted[one.versions] = points[-1]
        found.append(Series(uuid, probe, tuple(points)))
    return tuple(found)


def histories_of(
    series: Iterable[Series], names: Mapping[str, str], kinds: Mapping[str, str], ids: Mapping[str, str]
) -> tuple[DeviceHistory, ...]:
    """Return the histories of devices, attached ones first, each series held against those of its peers.

    Args:
        series: of any devices.
        names: of devices by UUID.
        kinds: what makes devices peers, by UUID: the catalog key where it is known, else the name.
        ids: of the attached devices, by UUID.
    """
    every = tuple(series)
    of_device: dict[str, list[Series]] = {}
    for one in every:
        of_device.setdefault(one.device_uuid, []).append(one)
    found: list[DeviceHistory] = []
    for uuid, mine in of_device.items():
        kind = kinds.get(uuid)
        peers = tuple(other for other in of_device if other != uuid and kind is not None and kinds.get(other) == kind)
        held = [_beside(one, [other for peer in peers for other in of_device[peer]]) for one in mine]
        held.sort(key=lambda one: (not one.flags, -len(one.points), one.name))
        found.append(DeviceHistory(uuid, names.get(uuid, ""), ids.get(uuid, ""), tuple(held), peers))
    return tuple(sorted(found, key=lambda history: (not history.id, history.id, history.uuid)))


def _point(one: Measurement, before: Point | None, reference: Point | None) -> Point:
    figures = one.figures
    then = dict(before.versions) if before else {}
    changed = tuple(f"{name} {then[name]} to {version}" for name, version in one.versions if then.get(name, version) != version)
    drift = change(reference.figures, figures) if reference else None
    against = reference.taken_at if reference and drift else ""
    return Point(one.taken_at, figures, one.trusted, one.contended, one.versions, changed, drift, against)


def _beside(mine: Series, others: Iterable[Series]) -> Series:
    """Return a series held against the newest trusted points of the same probe and versions on other devices."""
    newest = mine.newest
    if newest is None:
        return mine
    theirs = [other.newest for other in others if other.probe == mine.probe]
    same = [point.figures for point in theirs if point is not None and point.versions == newest.versions]
    return replace(mine, peers=against_peers(newest.figures, same), peer_count=len(same))
