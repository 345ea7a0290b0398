"""Tickets of a queue as files: their names say when they were drawn and by whom, so that nobody need open one to judge it.

A name is `wait-<nanosecond>-<boot>-<space>-<pid>-<start>-<number>`, or `hold-...` for the one that has the device. A ticket of
an earlier boot is dead. `space` stands for the space of process ids: only there does a process id name a process, so a ticket of
another container that shares the folder is judged by its beats alone. The clock is the monotonic one of the whole boot.

Source: https://man7.org/linux/man-pages/man2/clock_gettime.2.html (CLOCK_MONOTONIC); https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html.
"""

import itertools
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import cast

WAIT, HOLD = "wait", "hold"
_AHEAD_NS = 1_000_000_000
"""How far a beat may lie in the future: file systems round; more than this is of another boot."""
_NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True, order=True)
class Ticket:
    """One place in the queue; tickets are ordered by the moment at which they were drawn.

    Args:
        drawn_ns: monotonic nanosecond.
        boot, space: of the kernel and of its process ids, 8 hexadecimal digits each.
        pid, start: process id, and what tells it from a later one of the same id.
        number: tells apart the tickets of one process.
        state: `wait` or `hold`.
    """

    drawn_ns: int
    boot: str
    space: str
    pid: int
    start: int
    number: int
    state: str = WAIT

    @property
    def name(self) -> str:
        """Name of its file."""
        return f"{self.state}-{self.drawn_ns:020d}-{self.boot}-{self.space}-{self.pid}-{self.start}-{self.number}"


def parsed(name: str) -> Ticket | None:
    """Return the ticket that a file name stands for, or None when it is none."""
    parts = name.split("-")
    if len(parts) != 7 or parts[0] not in (WAIT, HOLD):
        return None
    state, drawn, boot, space, *rest = parts
    numbers = (drawn, *rest)
    if not all(part.isascii() and part.isdigit() for part in numbers):
        return None
    drawn_ns, pid, start, number = map(int, numbers)
    return Ticket(drawn_ns, boot, space, pid, start, number, state)


class Tickets:
    """The tickets of one device.

    Args:
        folder: where they lie; made by the first to draw one.
        fresh_s: seconds for which a beat counts.
    """

    def __init__(self, folder: Path, fresh_s: float) -> None:
        self._folder, self._fresh_ns = folder, int(fresh_s * 1e9)

    def draw(self, card: bytes) -> Ticket:
        """Add a ticket at the end.

        Args:
            card: what it says.

        Raises:
            OSError: it cannot be written; nothing is left of it.
        """
        self._folder.mkdir(exist_ok=True)
        with suppress(PermissionError):
            self._folder.chmod(0o1777)
        pid = os.getpid()
        ticket = Ticket(time.monotonic_ns(), *here(), pid, start_of(pid) or 0, next(_NUMBERS))
        path = self._folder / ticket.name
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        try:
            os.fchmod(descriptor, 0o644)
            os.write(descriptor, card)
            os.utime(descriptor, ns=(ticket.drawn_ns, ticket.drawn_ns))
        except OSError:
            with suppress(OSError):
                path.unlink()
            raise
        finally:
            os.close(descriptor)
        return ticket

    def beat(self, ticket: Ticket) -> bool:
        """Say that the waiter lives; False when its ticket is gone or can no longer be kept."""
        now = time.monotonic_ns()
        try:
            os.utime(self._folder / ticket.name, ns=(now, now))
        except OSError:
            return False
        return True

    def hold(self, ticket: Ticket, card: bytes) -> Ticket:
        """Turn a waiting ticket into one that holds the device, as far as the disk allows, and return it."""
        held = replace(ticket, state=HOLD)
        with suppress(OSError):
            (self._folder / ticket.name).rename(self._folder / held.name)
            descriptor = os.open(self._folder / held.name, os.O_WRONLY | os.O_NOFOLLOW)
            try:
                os.pwrite(descriptor, card, 0)
            finally:
                os.close(descriptor)
        return held

    def remove(self, ticket: Ticket) -> None:
        """Take a ticket out of the queue; one that is gone already is no fault."""
        for state in (WAIT, HOLD):
            with suppress(OSError):
                (self._folder / replace(ticket, state=state).name).unlink()

    def before(self, mine: Ticket) -> int:
        """Return how many living waiters drew their ticket before mine; tickets of the dead are swept away."""
        return sum(1 for ticket in self._all(WAIT, mine.drawn_ns) if ticket < mine and self._waits(ticket))

    def holding(self) -> Ticket | None:
        """Return the ticket that holds the device and whose process may live, one of here first; the lock is not asked."""
        return max(self._all(HOLD), key=lambda ticket: (ticket.space == here()[1], ticket), default=None)

    def read(self, ticket: Ticket, limit: int) -> dict[str, str]:
        """Return what a ticket says; nothing when it cannot be read or is not what we write (others may write here)."""
        try:
            descriptor = os.open(self._folder / ticket.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return {}
        try:
            content: object = json.loads(os.read(descriptor, limit))
        except (OSError, ValueError):
            return {}
        finally:
            os.close(descriptor)
        if not isinstance(content, dict):
            return {}
        return {str(k): str(v) for k, v in cast("dict[object, object]", content).items()}

    def _all(self, state: str, before: int | None = None) -> Iterator[Ticket]:
        """Yield the tickets whose process lives, or cannot be judged from here; the others are removed where that is allowed.

        Args:
            state: only those in this state.
            before: only those drawn until this monotonic nanosecond.
        """
        try:
            names = [path.name for path in self._folder.iterdir() if path.name.startswith(state)]
        except OSError:
            return
        starts: dict[int, int | None] = {}
        for ticket in filter(None, map(parsed, names)):
            if before is not None and ticket.drawn_ns > before:
                continue
            if ticket.pid not in starts:
                starts[ticket.pid] = start_of(ticket.pid)
            if _is_dead(ticket, starts[ticket.pid]):
                with suppress(OSError):
                    (self._folder / ticket.name).unlink()
            else:
                yield ticket

    def _waits(self, ticket: Ticket) -> bool:
        try:
            beaten_ns = (self._folder / ticket.name).stat().st_mtime_ns
        except OSError:
            return False
        return -_AHEAD_NS <= time.monotonic_ns() - beaten_ns <= self._fresh_ns


def _is_dead(ticket: Ticket, start: int | None) -> bool:
    boot, space = here()
    return ticket.boot != boot or (ticket.space == space and start != ticket.start)


@cache
def here() -> tuple[str, str]:
    """Return what stands for the present boot and for the present space of process ids, 8 hexadecimal digits each."""
    boot = space = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    with suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink())
    return sha256(boot.encode()).hexdigest()[:8], sha256(space.encode()).hexdigest()[:8]


def start_of(pid: int) -> int | None:
    """Return when a process started, in ticks since the boot; None when it has ended, a zombie counting as ended.

    Where there is no /proc, every process that exists started at 0: a process id that was used again is then taken for the first.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None if Path("/proc/self/stat").exists() or not _exists(pid) else 0
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
