"""The faults, each with what a run may be marked as afterwards; pure data, so that a test can hold it against the run states."""

import random
from dataclasses import dataclass

DAY_S = 86_400
TARGETS = ("worker", "run", "supervisor", "disk")


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
        moment: when, as a share of how long an undisturbed run takes, from the moment that the run was acknowledged.
        after_first: count the moment, cut to a third, from the first outcome that was told, so that there is something to lose.
        jump_s: of the wall clock, for `clock`.
        lasting_s: of a pause, and of a disk that is full briefly.
    """

    fault: Fault
    moment: float
    after_first: bool
    jump_s: int
    lasting_s: float


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
            found.append(Drill(fault, order.random(), order.random() < 0.5, jump_s, order.uniform(0.2, 2.0)))
    return tuple(found[:count])
