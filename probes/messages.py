"""What launcher and worker say to each other: one JSON document a line, over pipes of their own.

Nothing else travels there: stdout and stderr of the worker are kept apart, so that a framework that prints breaks nothing.
Each message has a required field that no other of its direction has, which is how the codec tells them apart. `spent` says where
a worker's time went (`probes.accounting`).
"""

from dataclasses import dataclass
from typing import TypeAlias, cast

from core.codec import from_json, to_json
from core.probe import Probe, Timing
from probes.accounting import StageSeconds
from probes.evidence import NOTHING_SEEN, Evidence


@dataclass(frozen=True, slots=True)
class Open:
    """Import the framework and assert the device; `agreed` is the folder of what the device agreed on before, or empty."""

    runtime: str
    device_kind: str
    agreed: str = ""


@dataclass(frozen=True, slots=True)
class Prepare:
    """Check the answer, build the programs, run each once and warm up."""

    probe: Probe


@dataclass(frozen=True, slots=True)
class Sample:
    """Take more samples of what is prepared; `again` puts those taken so far among the warm-up calls."""

    budget_s: float
    fewest: int
    again: bool = False


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
    spent: StageSeconds = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """The programs run; `call_s` is a steady call of the deepest one."""

    call_s: float
    spent: StageSeconds = ()


@dataclass(frozen=True, slots=True)
class Sampled:
    """So many samples of each program are there."""

    samples: int
    spent: StageSeconds = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """All raw samples, and what was seen of the programs."""

    timings: tuple[Timing, ...]
    peak_memory_bytes: int | None
    largest_error: float | None
    evidence: Evidence = NOTHING_SEEN
    spent: StageSeconds = ()
    counts: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Broken:
    """The request failed inside the worker, which lives on."""

    stage: str
    error: str
    spent: StageSeconds = ()


Reply: TypeAlias = Ready | Prepared | Sampled | Finished | Broken


def write(message: Request | Reply) -> bytes:
    """Return a message as one line."""
    return to_json(message).encode() + b"\n"


def read_request(line: str | bytes) -> Request:
    """Read one line of the launcher; raises BadInput when it is none of the requests."""
    return from_json(cast("type[Request]", Request), line)


def read_reply(line: str | bytes) -> Reply:
    """Read one line of the worker; raises BadInput when it is none of the replies."""
    return from_json(cast("type[Reply]", Reply), line)
