"""What has been measured: outcomes sorted by device, runtime and subject, the newest of equal probes first.

A measurement counts for a device when it was taken on that very device (by UUID), whatever number the device had then.
Quarantined measurements are kept apart, so that an answer can name them without resting on them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.device import Device
from core.probe import Measurement, Outcome, Probe, ProbeFailure, Runtime
from core.statistics import median, relative_error_of_median
from core.workload import Size

Sizes = tuple[tuple[str, Size], ...]
FRAMEWORK_DISTRIBUTIONS = ("jax", "jaxlib", "torch", "torch_xla", "torch_tpu", "tensorflow", "keras", "mxnet")


@dataclass(frozen=True, slots=True)
class Answer:
    """A trusted measurement, read once.

    Args:
        measurement: what was measured.
        seconds: median of one copy.
        error: standard error of that median as a fraction.
        old_version: (distribution, measured, installed) when another version is installed now.
    """

    measurement: Measurement
    seconds: float
    error: float
    old_version: tuple[str, str, str] | None = None

    @property
    def evidence(self) -> str:
        """One phrase that names the measurement to a person, with the doubts that its gates raised."""
        probe = self.measurement.probe
        count = len(self.measurement.samples_s)
        taken = self.measurement.taken_at[:10]
        doubts = "".join(f"; {warning}" for warning in self.measurement.warnings)
        return f"measured {taken}: {probe.label} in {probe.runtime} on {probe.device}, {count} samples{doubts}"


def without_batch(sizes: Sizes) -> Sizes:
    """Return sizes with the batch taken out: what must be equal to interpolate between batches."""
    return tuple(item for item in sizes if item[0] != "batch")


def batch_of(sizes: Sizes) -> int | None:
    """Return the batch among sizes, or None when there is none."""
    value = dict(sizes).get("batch")
    return int(value) if isinstance(value, (int, float)) else None


@dataclass(frozen=True, slots=True)
class Answered:
    """Outcomes of one runtime on one device.

    Args:
        exact: newest trusted answer by probe key.
        families: answers that differ in batch only, by probe key without batch.
        kernels: newest trusted answers by kernel subject.
        quarantined: newest distrusted measurement by probe key, where no trusted one is newer.
        failures: newest failure by probe key, where nothing was measured.
        since_failed: newest failure by probe key, where what was measured is older.
    """

    exact: Mapping[tuple[object, ...], Answer]
    families: Mapping[tuple[object, ...], tuple[Answer, ...]]
    kernels: Mapping[str, tuple[Answer, ...]]
    quarantined: Mapping[tuple[object, ...], Measurement]
    failures: Mapping[tuple[object, ...], ProbeFailure]
    since_failed: Mapping[tuple[object, ...], ProbeFailure]

    def latest_failure(self) -> ProbeFailure | None:
        """Return the newest failure to start, import or find the device: it stands for the whole runtime."""
        whole = [f for f in self.failures.values() if f.stage in ("start", "import", "device")]
        return max(whole, key=lambda f: (f.taken_at, f.error), default=None)


EMPTY = Answered({}, {}, {}, {}, {}, {})


def key_of(probe: Probe) -> tuple[object, ...]:
    """Return what makes two probes the same question; tier and seed do not."""
    return (probe.subject, probe.family, probe.sizes, probe.dtype, probe.mode, probe.optimizer)


def family_of(probe: Probe) -> tuple[object, ...]:
    """Return what makes two probes the same but for their batch."""
    return (probe.subject, probe.family, without_batch(probe.sizes), probe.dtype, probe.mode, probe.optimizer)


def sort_outcomes(
    outcomes: Iterable[Outcome], devices: tuple[Device, ...], runtimes: tuple[Runtime, ...], kinds: frozenset[str]
) -> dict[tuple[str, str], Answered]:
    """Return what is known by (runtime id, device id).

    Args:
        outcomes: any order, any devices; those of other devices are left out.
        devices: the attached ones.
        runtimes: what is installed now, to notice measurements of another version.
        kinds: block kinds of the workload; blocks of other kinds say nothing about it and are left out.
    """
    by_uuid = {device.uuid: device.id for device in devices}
    known = {device.id for device in devices}
    installed = {runtime.id: dict(runtime.versions) for runtime in runtimes}
    piles: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.probe.family == "system" or (outcome.probe.family == "block" and outcome.probe.subject not in kinds):
            continue
        device = _device_of(outcome, by_uuid, known)
        if device is not None:
            piles.setdefault((outcome.probe.runtime, device), []).append(outcome)
    return {place: _sort_pile(pile, installed.get(place[0], {})) for place, pile in piles.items()}


def _device_of(outcome: Outcome, by_uuid: Mapping[str, str], known: set[str]) -> str | None:
    if isinstance(outcome, Measurement) and outcome.device_uuid:
        return by_uuid.get(outcome.device_uuid)
    return outcome.probe.device if outcome.probe.device in known else None


def _sort_pile(pile: list[Outcome], installed: Mapping[str, str]) -> Answered:
    pile.sort(key=_age_key, reverse=True)
    exact: dict[tuple[object, ...], Answer] = {}
    quarantined: dict[tuple[object, ...], Measurement] = {}
    failures: dict[tuple[object, ...], ProbeFailure] = {}
    for outcome in pile:
        key = key_of(outcome.probe)
        if isinstance(outcome, ProbeFailure):
            failures.setdefault(key, outcome)
            continue
        answer = _read(outcome, installed)
        if answer is None:
            quarantined.setdefault(key, outcome)
        elif key not in exact or (exact[key].old_version and not answer.old_version):
            exact[key] = answer
    families: dict[tuple[object, ...], list[Answer]] = {}
    kernels: dict[str, list[Answer]] = {}
    for answer in exact.values():
        probe = answer.measurement.probe
        if probe.family == "kernel":
            kernels.setdefault(probe.subject, []).append(answer)
        else:
            families.setdefault(family_of(probe), []).append(answer)
    return Answered(
        exact,
        {key: tuple(answers) for key, answers in families.items()},
        {subject: tuple(answers) for subject, answers in kernels.items()},
        {key: m for key, m in quarantined.items() if key not in exact},
        {key: f for key, f in failures.items() if key not in exact},
        {key: f for key, f in failures.items() if key in exact and f.taken_at > exact[key].measurement.taken_at},
    )


def _age_key(outcome: Outcome) -> tuple[str, int, str]:
    """Order by age; equal ages by content, so that the order in which outcomes are given never matters."""
    if isinstance(outcome, ProbeFailure):
        return (outcome.taken_at, -1, outcome.error)
    return (outcome.taken_at, sum(sum(timing.samples_ns) for timing in outcome.timings), outcome.method)


def _read(measurement: Measurement, installed: Mapping[str, str]) -> Answer | None:
    if not measurement.trusted:
        return None
    try:
        samples = measurement.samples_s
    except ValueError:
        return None
    if not samples or median(samples) <= 0:
        return None
    return Answer(measurement, median(samples), relative_error_of_median(samples), _other_version(measurement, installed))


def _other_version(measurement: Measurement, installed: Mapping[str, str]) -> tuple[str, str, str] | None:
    for name, version in measurement.versions:
        now = installed.get(name)
        if name in FRAMEWORK_DISTRIBUTIONS and now is not None and now != version:
            return (name, version, now)
    return None
