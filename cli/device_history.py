"""How `./tandem devices --history` tells what was measured over time."""

from typing import Any

from cli import shapes
from cli.output import table, write
from core import format as fmt
from core.history import DeviceHistory, Point, Series
from core.statistics import Change


def history_shape(value: DeviceHistory) -> dict[str, Any]:
    """Return the document of one device's history."""
    return {
        "uuid": value.uuid, "id": value.id or None, "name": value.name or None, "peers": list(value.peers),
        "flags": list(value.flags), "series": [_series(one) for one in value.series],
    }


def tell_history(found: tuple[DeviceHistory, ...]) -> None:
    """Write the newest point of each series on stdout, then what is flagged."""
    if not found:
        write("\nNothing was measured here yet; ./tandem probe begins a history.")
    for device in found:
        write(f"\nHistory of {device.id or device.uuid}{f', {device.name}' if device.name else ''}:")
        headings = ("probe", "points", "median", "spread (IQR)", "minimum", "samples", "change", "taken")
        table(headings, [_line(one) for one in device.series], right=(1, 2, 3, 4, 5, 6))
        for flag in device.flags or (device.unflagged,):
            write(flag)


def _line(one: Series) -> tuple[str, ...]:
    last = one.points[-1]
    figures = last.figures
    drift = fmt.MISSING if last.drift is None else f"{100 * last.drift.fraction:+.1f} %"
    shown = (fmt.seconds(figures.median), fmt.seconds(figures.iqr), fmt.seconds(figures.minimum), str(figures.count))
    return (one.name, str(len(one.points)), *shown, drift, last.taken_at)


def _series(one: Series) -> dict[str, Any]:
    return {
        "probe": shapes.probe(one.probe), "runtime": one.probe.runtime, "flags": list(one.flags),
        "points": [_point(point) for point in one.points],
        "against_peers": None if one.peers is None else {**_change(one.peers), "peers": one.peer_count},
    }


def _point(point: Point) -> dict[str, Any]:
    figures = point.figures
    return {
        "taken_at": point.taken_at, "median_s": figures.median, "iqr_s": figures.iqr, "min_s": figures.minimum,
        "n": figures.count, "trusted": point.trusted, "contended": point.contended,
        "versions": dict(point.versions), "changed": list(point.changed),
        "drift": None if point.drift is None else {**_change(point.drift), "against": point.reference},
    }


def _change(value: Change) -> dict[str, Any]:
    return {"fraction": value.fraction, "noise": value.noise, "flagged": value.beyond_noise}
