"""The faults, each with what a run may be marked as afterwards; pure data, so that a test can hold it against the run states."""

import random
from dataclasses import dataclass

DAY_S = 86_400
TARGETS = ("worker", "run", "supervisor", "disk")
STARTING_SHARE = 0.25
START_S = 2.0
"""A run takes longer from its acknowledgement to its first outcome, on any machine: two interpreters and a framework start."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of mishap.

    Args:
        target: which process, or the disk.
        action: `none`, a signal (`KILL`, `TERM`, `INT`, `HUP`), `pause` (STOP, then CONT), `hang` (STOP, then the user cancels),
            `full` (no space until the run is over), `full briefly`, `file limit` (RLIMIT_FSIZE), or `clock`.
        states: what the run may be marked as when it is over.
    """

    target: str
    action: str
    states: tuple[str, ...]

    @property
    def name(self) -> str:
        """For the table."""
        return f"{self.target}: {self.action}"


DONE = ("done",)
DIED = ("interrupted", "done")
SPACE = ("done", "failed", "interrupted")
FAULTS = (
    Fault("run", "none", DONE),
    *(Fault("worker", name, DONE) for name in ("KILL", "TERM", "INT", "HUP", "pause", "clock")),
    Fault("worker", "hang", ("cancelled", "done")),
    *(Fault("run", name, DIED) for name in ("KILL", "TERM", "HUP")),
    Fault("run", "INT", ("cancelled", "interrupted", "done")),
    *(Fault("run", name, DONE) for name in ("pause", "clock")),
    Fault("run", "hang", ("cancelled", "done")),
    *(Fault("supervisor", name, DONE) for name in ("KILL", "TERM", "INT", "HUP", "pause", "clock")),
    *(Fault("disk", name, SPACE) for name in ("full", "full briefly", "file limit")),
)


@dataclass(frozen=True, slots=True)
class Drill:
    """One fault at one moment.

    Args:
        fault: what happens.
        moment: when, as a share of what the run is to do: see `strike_at`.
        starting: strike while the run starts, within that share of `START_S` from its acknowledgement, before there is anything
            to lose; otherwise while it measures or answers.
        jump_s: of the wall clock, for `clock`.
        lasting_s: of a pause, and of a disk that is full briefly.
    """

    fault: Fault
    moment: float
    starting: bool
    jump_s: int
    lasting_s: float


def strike_at(drill: Drill, total: int) -> tuple[int, float]:
    """Return after how many of the planned probes a fault strikes, and after which share of a usual probe beyond them.

    What a worker is hit in has to be one that still works: never after the last probe. All others may strike in the answer too.

    Args:
        drill: that does not strike at the start.
        total: probes that are planned.
    """
    place = drill.moment * (total if drill.fault.target == "worker" else total + 1)
    return int(place), place % 1


def drills(count: int, seed: int, faults: tuple[Fault, ...] = FAULTS) -> tuple[Drill, ...]:
    """Return `count` drills: the first undisturbed, then every fault in random order, again and again.

    Args:
        count: of all drills.
        seed: equal seeds give equal drills.
        faults: to choose from.
    """
    order = random.Random(seed)
    found: list[Drill] = [Drill(FAULTS[0], 0.0, False, 0, 0.0)]
    while len(found) < count:
        for fault in order.sample(faults, len(faults)):
            jump_s = order.choice((-DAY_S, -3600, -5, 5, 3600, DAY_S))
            found.append(Drill(fault, order.random(), order.random() < STARTING_SHARE, jump_s, order.uniform(0.2, 2.0)))
    return tuple(found[:count])
