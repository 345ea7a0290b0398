"""The outcome file of `bench.gpu_check`: raw samples with their device; what they come to is judged anew each time."""

from dataclasses import dataclass
from pathlib import Path

from bench.published import TOLERANCE, Published, published_for
from core.codec import from_json, to_json
from core.device import Device
from core.errors import BadInput
from core.probe import Measurement, Outcome, ProbeFailure
from probes.gates import judge

SCHEMA = 1
LARGE = (2048, 4096, 8192, 16384)
"""Sides of products that should come near the peak, as a plan marks them."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One check of one device.

    Args:
        schema_version: of this file.
        device: that was checked.
        outcomes: of every probe, raw samples included.
        peaks: (dtype, dense peak in FLOP/s or None) that the gates used.
        budget_s: seconds of probing that were allowed.
        seconds: that it took.
        verdict: the line that the check ended with.
    """

    schema_version: int
    device: Device
    outcomes: tuple[Outcome, ...]
    peaks: tuple[tuple[str, float | None], ...]
    budget_s: float
    seconds: float
    verdict: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured rate beside the published one.

    Args:
        published: what it is held against.
        runtime: that measured it; empty when none did.
        rate: FLOP/s or bytes/s; None when nothing was measured.
        reason: why not.
    """

    published: Published
    runtime: str
    rate: float | None
    reason: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the rate is within the tolerance of what was published; None when there is none."""
        if self.rate is None:
            return None
        return self.published.low * (1 - TOLERANCE) <= self.rate <= self.published.high * (1 + TOLERANCE)


def write(path: Path, value: Recorded) -> None:
    """Write the file, whole or not at all."""
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(to_json(value) + "\n", encoding="utf-8")
    part.replace(path)


def read(path: Path) -> Recorded:
    """Read what `write` wrote.

    Raises:
        BadInput: the file cannot be read, is of another schema or holds something else.
    """
    try:
        value = from_json(Recorded, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path.name} ({error.strerror})", "a file that gpu_check wrote", "record it again") from None
    if value.schema_version != SCHEMA:
        raise BadInput(f"schema {value.schema_version} of {path.name}", f"schema {SCHEMA}", "record it again")
    return value


def failed_gates(value: Recorded) -> list[str]:
    """Return the measurements whose raw samples come to another judgement today than the one that was recorded."""
    peaks = dict(value.peaks)
    found: list[str] = []
    for outcome in value.outcomes:
        if isinstance(outcome, ProbeFailure) or outcome.method == "direct":
            continue
        large = outcome.probe.subject == "matmul_chain" and any(
            key == "n" and value in LARGE for key, value in outcome.probe.sizes
        )
        peak = peaks.get(outcome.probe.dtype)
        again = judge(outcome.timings, outcome.flop, outcome.traffic_bytes, peak, None, large)
        if outcome.trusted and not again.trusted:
            found.append(f"{outcome.probe.label} in {outcome.probe.runtime}: {'; '.join(again.warnings)}")
    return found


def figures(value: Recorded) -> tuple[Figure, ...]:
    """Return every published rate of the device beside each runtime that measured it."""
    result: list[Figure] = []
    for row in published_for(value.device.accelerator):
        same = [outcome for outcome in value.outcomes if _repeats(outcome, row)]
        best: dict[str, float] = {}
        for outcome in same:
            if isinstance(outcome, Measurement) and outcome.trusted:
                best[outcome.probe.runtime] = max(best.get(outcome.probe.runtime, 0.0), rate(outcome))
        result.extend(Figure(row, runtime, found) for runtime, found in best.items())
        if not best:
            result.append(Figure(row, "", None, _why(same)))
    return tuple(result)


def rate(measurement: Measurement) -> float:
    """Return FLOP/s of a product, bytes/s of anything else; a copy's bytes are read and written, as they are published."""
    work = measurement.flop if measurement.probe.subject.startswith("matmul") else measurement.traffic_bytes
    return work / measurement.median_s


def verdict(value: Recorded) -> tuple[bool, str]:
    """Return whether the check holds, and its one line.

    It holds when every figure that was measured is within the tolerance, every needed one was measured, every probe was answered,
    and nothing is quarantined.
    """
    found = figures(value)
    measured = [one for one in found if one.rate is not None]
    short = [f"{one.published.title} in {one.runtime} {told(one.rate, one.published.unit)}" for one in measured if not one.holds]
    absent = [one for one in found if one.rate is None and one.published.needed]
    short += [f"{one.published.title} was not measured ({one.reason})" for one in absent]
    failed = [o for o in value.outcomes if isinstance(o, ProbeFailure)]
    short += [f"{o.probe.label} in {o.probe.runtime} failed at {o.stage}: {o.error}" for o in failed]
    doubted = [o for o in value.outcomes if isinstance(o, Measurement) and not o.trusted]
    short += [f"{o.probe.label} in {o.probe.runtime} is quarantined" for o in doubted]
    if not found:
        short.append(f"nothing is published here for {value.device.name}")
    if value.seconds > 600:
        short.append(f"it took {value.seconds:.0f} s")
    said = (
        f"{value.device.name}: {len(measured) - sum(not one.holds for one in measured)} of {len(measured)} figures within "
        f"{TOLERANCE:.0%} of published ones, {len(value.outcomes)} probes in {value.seconds:.0f} s"
    )
    return not short, f"HOLDS: {said}" if not short else f"FALLS SHORT: {said}; {'; '.join(short)}"


def told(value: float | None, unit: str) -> str:
    """Return a rate for people."""
    if value is None:
        return "-"
    return f"{value / 1e12:.1f} TFLOP/s" if unit == "FLOP/s" else f"{value / 1e9:.1f} GB/s"


def _repeats(outcome: Outcome, row: Published) -> bool:
    probe = outcome.probe
    named = (probe.family, probe.subject, probe.dtype) == (row.family, row.subject, row.dtype)
    return named and set(row.sizes) <= set(probe.sizes)


def _why(same: list[Outcome]) -> str:
    failure = next((outcome for outcome in same if isinstance(outcome, ProbeFailure)), None)
    if failure is not None:
        return f"failed at {failure.stage}: {failure.error}"
    return "quarantined" if same else "no probe of this kind and dtype"
