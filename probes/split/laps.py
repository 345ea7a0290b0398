"""Where the time of a step goes on one side."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass
class Laps:
    """The bars of the step under way.

    Args:
        clock: seconds, shared by all processes of a host where the system's clock allows.
    """

    clock: Callable[[], float] = time.perf_counter
    bars: list[tuple[str, float, float, str]] = field(default_factory=list[tuple[str, float, float, str]])

    @contextmanager
    def during(self, kind: str, what: str) -> Generator[None]:
        """Count what happens inside as one bar."""
        start = self.clock()
        yield
        self.bars.append((kind, start, self.clock(), what))

    def received(self, start_s: float, sent_s: float, what: str) -> None:
        """Divide the waiting for a message that has just come: before it was sent this side waited, then it was under way."""
        stop_s = self.clock()
        offered_s = min(stop_s, max(start_s, sent_s))
        if offered_s > start_s:
            self.bars.append(("wait", start_s, offered_s, f"waits for {what}"))
        self.bars.append(("move", offered_s, stop_s, what))

    def take(self) -> tuple[tuple[str, float, float, str], ...]:
        """Return the bars and begin anew."""
        bars, self.bars = tuple(self.bars), []
        return bars


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds that something takes, and what it returns."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result
