"""The course of steps that two sides take together, from what each does in a step and what it waits for from the other.

Two sides that send and wait have no formula in general: one may run ahead, a message may be late in every second step. So what
they do is played through, step after step, until steps follow each other evenly. A link carries one message at a time each way;
sending costs the sender nothing unless it waits until all is gone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from core.device import Link
from core.split import Bar

STEPS = 24
"""Steps that are played; the second half is looked at."""


@dataclass(frozen=True, slots=True)
class Do:
    """Work of its own; `kind` is one of `core.split.BAR_KINDS`."""

    kind: str
    what: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Give:
    """A message to the other side; `waits` until the last byte is with it."""

    what: str
    size_bytes: float
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Take:
    """Wait for the next message of a kind."""

    what: str


Program: TypeAlias = tuple[Do | Give | Take, ...]


@dataclass(frozen=True, slots=True)
class Course:
    """How steps follow each other.

    Args:
        seconds: from the end of one step to the end of the next, the later of both sides ending each.
        busy: part of the time in which each side works.
        bars: of one step, on the lanes of both sides and of the link each way, from its start on.
    """

    seconds: float
    busy: tuple[float, float]
    bars: tuple[Bar, ...]


@dataclass
class _Side:
    """Where one side is: its clock, the steps that it has begun, what comes next in its program."""

    name: str
    program: Program
    clock_s: float = 0.0
    step: int = 0
    at: int = 0
    free_s: float = 0.0
    arrived: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    taken: dict[str, int] = field(default_factory=dict[str, int])
    ends: list[float] = field(default_factory=list[float])
    bars: list[tuple[int, Bar]] = field(default_factory=list[tuple[int, Bar]])


def course(
    programs: tuple[Program, Program], names: tuple[str, str], link: Link, stock: Sequence[Mapping[str, int]] = ({}, {})
) -> Course:
    """Return how steps of two sides follow each other.

    Args:
        programs: what each side does in every step, in order.
        names: of both.
        link: each way.
        stock: messages by kind that each side has at the beginning: what it needs not wait for in its first steps.

    Raises:
        ValueError: programs in which both sides wait for each other.
    """
    sides = (_Side(names[0], programs[0]), _Side(names[1], programs[1]))
    for side, kinds in zip(sides, stock, strict=True):
        side.arrived = {what: [0.0] * count for what, count in kinds.items()}
    while any(side.step < STEPS for side in sides):
        if not [side for side, other in (sides, sides[::-1]) if _goes_on(side, other, link)]:
            raise ValueError(f"got programs {programs}; expected that not both sides wait for each other")
    ends = [max(pair) for pair in zip(*(side.ends for side in sides), strict=True)]
    half = STEPS // 2
    seconds = (ends[-1] - ends[half - 1]) / (STEPS - half)
    works = [sum(one.seconds for one in side.program if isinstance(one, Do)) for side in sides]
    first, second = (min(1.0, work / seconds) if seconds > 0 else 0.0 for work in works)
    return Course(seconds, (first, second), _drawn(sides, half))


def _goes_on(side: _Side, other: _Side, link: Link) -> bool:
    """Let one side work until it waits for what the other has not sent yet; return whether it did anything."""
    begun = (side.step, side.at)
    while side.step < STEPS:
        if not _does(side, other, link):
            break
        side.at += 1
        if side.at == len(side.program):
            side.ends.append(side.clock_s)
            side.step, side.at = side.step + 1, 0
    return (side.step, side.at) != begun


def _does(side: _Side, other: _Side, link: Link) -> bool:
    """Do what comes next; False where its message has not been sent."""
    now, start_s = side.program[side.at], side.clock_s
    match now:
        case Do(kind, what, seconds):
            side.clock_s += seconds
            _draw(side, side.name, start_s, side.clock_s, kind, what)
        case Give(what, size_bytes, waits):
            leaves_s = max(start_s, side.free_s)
            side.free_s = leaves_s + size_bytes / link.bytes_per_s
            arrives_s = side.free_s + link.latency_s
            other.arrived.setdefault(what, []).append(arrives_s)
            _draw(side, f"{side.name} to {other.name}", leaves_s, arrives_s, "move", what)
            if waits:
                side.clock_s = arrives_s
                _draw(side, side.name, start_s, arrives_s, "move", f"sends {what}")
        case Take(what):
            number = side.taken.get(what, 0)
            if number >= len(side.arrived.get(what, ())):
                return False
            side.taken[what] = number + 1
            side.clock_s = max(start_s, side.arrived[what][number])
            _draw(side, side.name, start_s, side.clock_s, "wait", f"waits for {what}")
    return True


def _draw(side: _Side, lane: str, start_s: float, stop_s: float, kind: str, what: str) -> None:
    if stop_s > start_s:
        side.bars.append((side.step, Bar(lane, start_s, stop_s, kind, what)))


def _drawn(sides: tuple[_Side, _Side], step: int) -> tuple[Bar, ...]:
    """Return the bars of one step from its start on."""
    bars = [bar for side in sides for at, bar in side.bars if at == step]
    begin_s = min((bar.start_s for bar in bars), default=0.0)
    moved = [Bar(bar.lane, bar.start_s - begin_s, bar.stop_s - begin_s, bar.kind, bar.what) for bar in bars]
    return tuple(sorted(moved, key=lambda bar: (bar.start_s, bar.stop_s, bar.lane)))
