"""What launcher and worker say to each other: one JSON document a line, over pipes of their own.

Nothing else travels there: stdout and stderr of the worker are kept apart, so that a framework that prints breaks nothing.
"""

from dataclasses import dataclass
from typing import TypeAlias

from core.probe import Probe, Timing


@dataclass(frozen=True, slots=True)
class Open:
    """Import the framework and assert the device."""

    runtime: str
    device_kind: str


@dataclass(frozen=True, slots=True)
class Prepare:
    """Check the answer, build the programs, run each once and warm up."""

    probe: Probe


@dataclass(frozen=True, slots=True)
class Sample:
    """Take more samples of what is prepared."""

    budget_s: float
    fewest: int


@dataclass(frozen=True, slots=True)
class Finish:
    """Hand over all samples and free the programs."""

    discard: bool = False


Request: TypeAlias = Open | Prepare | Sample | Finish


@dataclass(frozen=True, slots=True)
class Ready:
    """The framework is there."""

    versions: tuple[tuple[str, str], ...]
    device: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """The programs run; `call_s` is a steady call of the deepest one."""

    call_s: float
    stage_s: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Sampled:
    """So many samples of each program are there."""

    samples: int


@dataclass(frozen=True, slots=True)
class Finished:
    """All raw samples."""

    timings: tuple[Timing, ...]
    peak_memory_bytes: int | None
    largest_error: float | None


@dataclass(frozen=True, slots=True)
class Broken:
    """The request failed inside the worker, which lives on."""

    stage: str
    error: str


Reply: TypeAlias = Ready | Prepared | Sampled | Finished | Broken


@dataclass(frozen=True, slots=True)
class RequestEnvelope:
    """One line to the worker."""

    name: str
    open: Open | None = None
    prepare: Prepare | None = None
    sample: Sample | None = None
    finish: Finish | None = None


@dataclass(frozen=True, slots=True)
class ReplyEnvelope:
    """One line from the worker."""

    ready: Ready | None = None
    prepared: Prepared | None = None
    sampled: Sampled | None = None
    finished: Finished | None = None
    broken: Broken | None = None


def seal(message: "Request | Reply") -> "RequestEnvelope | ReplyEnvelope":
    """Put a message into the envelope of its direction."""
    name = type(message).__name__.lower()
    if isinstance(message, (Open, Prepare, Sample, Finish)):
        return RequestEnvelope(name, **{name: message})
    return ReplyEnvelope(**{name: message})


def unseal(envelope: "RequestEnvelope | ReplyEnvelope") -> "Request | Reply":
    """Take the message out; raises ValueError when the envelope is empty."""
    for name in ("open", "prepare", "sample", "finish", "ready", "prepared", "sampled", "finished", "broken"):
        message = getattr(envelope, name, None)
        if message is not None:
            return message
    raise ValueError("got an empty envelope; expected one message")
