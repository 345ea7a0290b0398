"""Where the time of a session goes: what each second was spent on, so that measuring can be held to its own share.

A worker says how long its own stages took with each reply; the session adds what its clock shows beside them as `other`. The
sums of one session therefore add up to its wall time, and nothing is counted twice: its stages follow each
other, imports that run side by side are counted once, by the wall. A full tier must spend 70 % in `PRODUCTIVE` stages.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

SPENDING: tuple[str, ...] = ("import", "agree", "compile", "warm-up", "samples", "other")
"""What a second can be spent on: frameworks loading, answers compared, first calls, warming, timed samples, the rest."""
PRODUCTIVE = ("compile", "warm-up", "samples")
"""What measuring is for; the rest is overhead of our own."""
StageSeconds: TypeAlias = tuple[tuple[str, float], ...]
"""(stage, seconds) pairs as a worker tells them."""


@dataclass(frozen=True, slots=True)
class Spent:
    """So many seconds of a session went into one stage.

    Args:
        stage: one of `SPENDING`.
        seconds: of the session's wall.
        runtime: whose they were; empty when they belong to the session.
    """

    stage: str
    seconds: float
    runtime: str = ""


@dataclass
class Laps:
    """Cuts a stretch of time into stages; used inside a worker.

    Args:
        clock: seconds, monotonic.
    """

    clock: Callable[[], float] = time.monotonic
    spent: dict[str, float] = field(default_factory=dict[str, float])
    _since: float = field(init=False)

    def __post_init__(self) -> None:
        """Start the first lap."""
        self._since = self.clock()

    def lap(self, stage: str) -> None:
        """Count everything since the last lap to a stage."""
        now = self.clock()
        self.spent[stage] = self.spent.get(stage, 0.0) + now - self._since
        self._since = now

    def move(self, source: str, target: str, seconds: float) -> None:
        """Count seconds that fell into one stage to another; no more than are there."""
        moved = min(seconds, self.spent.get(source, 0.0))
        self.spent[source] = self.spent.get(source, 0.0) - moved
        self.spent[target] = self.spent.get(target, 0.0) + moved

    def seconds(self) -> StageSeconds:
        """Return what was counted so far."""
        return tuple(self.spent.items())


@dataclass
class Account:
    """Adds up a session and tells each part as `Spent`.

    Args:
        tell: hears of every part.
        clock: seconds, monotonic.
    """

    tell: Callable[[Spent], None]
    clock: Callable[[], float] = time.monotonic
    _told: float = 0.0
    _start: float = field(init=False)

    def __post_init__(self) -> None:
        """Start the wall clock."""
        self.start()

    def start(self) -> None:
        """Start the wall clock anew; what was told before is not counted again."""
        self._start, self._told = self.clock(), 0.0

    def add(self, stages: Iterable[tuple[str, float]], runtime: str = "") -> None:
        """Take in what a worker told."""
        for stage, seconds in stages:
            self._told += seconds
            self.tell(Spent(stage, seconds, runtime))

    def close(self) -> None:
        """Tell as `other` what the wall clock shows beyond all stages."""
        beside = self.clock() - self._start - self._told
        if beside > 0:
            self._told += beside
            self.tell(Spent("other", beside))


def totals(spent: Iterable[Spent]) -> dict[str, float]:
    """Return seconds by stage, every stage of `SPENDING` present."""
    result = dict.fromkeys(SPENDING, 0.0)
    for one in spent:
        result[one.stage] = result.get(one.stage, 0.0) + one.seconds
    return result


def productive_share(seconds: Mapping[str, float]) -> float | None:
    """Return the share of `PRODUCTIVE` stages in all of them, or None when nothing was spent.

    Args:
        seconds: by stage, as `totals` returns them.
    """
    whole = sum(seconds.values())
    return sum(seconds.get(stage, 0.0) for stage in PRODUCTIVE) / whole if whole > 0 else None
