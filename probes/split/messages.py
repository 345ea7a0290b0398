"""What the coordinator and a side say to each other: one JSON document a line, over pipes of their own.

As in `probes.messages`, each message has a required field that no other of its direction has. Tensors never travel here.
"""

from dataclasses import dataclass
from typing import TypeAlias, cast

from core.codec import from_json, to_json
from core.split import Check
from probes.split.words import SideStep, SplitTask


@dataclass(frozen=True, slots=True)
class Open:
    """Import the framework and assert the device."""

    runtime: str
    device_kind: str
    models: str
    index: int


@dataclass(frozen=True, slots=True)
class Map:
    """Join the other side through shared memory that was handed over at the start."""

    ends: tuple[int, int, int]
    ring_bytes: int


@dataclass(frozen=True, slots=True)
class Serve:
    """Offer a port, at the address of this host that others reach it by, to the other side, which must know the secret."""

    secret: str


@dataclass(frozen=True, slots=True)
class Connect:
    """Join the other side at the address that it serves."""

    address: str
    key: str


@dataclass(frozen=True, slots=True)
class Tune:
    """Set this side's clock by that of the first side, in so many rounds; the first side answers them."""

    rounds: int


@dataclass(frozen=True, slots=True)
class Shape:
    """Hold what is sent from now on to a rate and a latency, and say whether gradients travel in sixteen bits."""

    bytes_per_s: float | None
    latency_s: float
    sixteen_bit: bool


@dataclass(frozen=True, slots=True)
class Begin:
    """Make ready for a task; `fresh` opens the model anew, else one that is open already is gone on with."""

    task: SplitTask
    fresh: bool
    number: int


@dataclass(frozen=True, slots=True)
class Steps:
    """Do so many steps, each told when it is done."""

    count: int


@dataclass(frozen=True, slots=True)
class Prove:
    """Compare with one runtime alone, and with the other side; `last` leaves out what only the first steps can show."""

    last: bool


@dataclass(frozen=True, slots=True)
class Rehearse:
    """Do this side's work on so many rows, without the other side, for a time; each piece of it is timed."""

    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Trade:
    """Exchange so many bytes with the other side, or (`one_way`) send them from the first to the second; each time is told."""

    size_bytes: int
    times: int
    one_way: bool


Request: TypeAlias = Open | Map | Serve | Connect | Tune | Shape | Begin | Steps | Prove | Rehearse | Trade


@dataclass(frozen=True, slots=True)
class Opened:
    """The framework is there."""

    versions: tuple[tuple[str, str], ...]
    device: str


@dataclass(frozen=True, slots=True)
class Served:
    """HOST:PORT that is offered."""

    served: str


@dataclass(frozen=True, slots=True)
class Begun:
    """A task is ready; the counts are of the whole model and of the part on this side, the bytes of a whole batch at the cut."""

    parameter_count: int
    own_parameters: int
    activation_bytes: int


@dataclass(frozen=True, slots=True)
class Stepped:
    """One step is done."""

    step: SideStep


@dataclass(frozen=True, slots=True)
class Proven:
    """What was compared on this side."""

    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """Times of what was rehearsed or traded: (what, seconds) each."""

    times: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What was asked for is done and there is nothing to tell."""

    done: bool


@dataclass(frozen=True, slots=True)
class Faulted:
    """It could not be done; the side lives on, unless `stage` is empty: then it has ended, on the host where it was."""

    stage: str
    error: str


Reply: TypeAlias = Opened | Served | Begun | Stepped | Proven | Taken | Faulted | Done


def write(message: Request | Reply) -> bytes:
    """Return one line."""
    return to_json(message).encode() + b"\n"


def read_request(line: bytes) -> Request:
    """Read a request; raises BadInput when it is none."""
    return from_json(cast("type[Request]", Request), line)


def read_reply(line: bytes) -> Reply:
    """Read a reply; raises BadInput when it is none."""
    return from_json(cast("type[Reply]", Reply), line)
