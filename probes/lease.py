"""The lease of a device: one measures, the others wait in a fair queue, and nobody waits for the dead.

Two things, kept apart. That never two hold a device is the kernel's word alone: an exclusive lock on one file (flock), which is
freed when its holder ends, however it ends. Who is next is told by tickets, one small file a waiter, whose name carries the
monotonic nanosecond at which it was drawn and the process that drew it. Only the first of the living tickets tries the lock. A
ticket can be lost, forged or unwritable without harm: the worst is an unfair order, never two holders.

A waiter lives as long as its process does (process id and start time in one boot), and keeps its place as long as it beats: it
sets the file's modification time to the monotonic clock, which needs neither room on the disk nor the wall clock. One that was
stopped loses its place after `FRESH_S` and draws a new ticket when it wakes. A holder that is stopped keeps the device, since it
would go on measuring when it wakes; the supervision of runs ends one that stays silent.

What the lease does not say: each device has its own, so a probe of a GPU may load the processor while another session measures
that. The contention gate sees this and flags what it disturbed; see docs/decisions/0007-a-queue-of-tickets.md.
"""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from core.errors import BadInput, one_line
from probes.tickets import Ticket, Tickets

POLL_S = 0.25
FRESH_S = 15.0
"""Seconds without a beat after which a waiter no longer holds up those behind it."""
_SLOWEST = 8
"""Those far behind look less often, up to so many times."""
_CARD_BYTES = 512
"""Every ticket is written to this length at once, so that it can be rewritten on a full disk."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who measures now, as its ticket says; for people, nothing rests on it.

    Args:
        run_id: of the run; empty outside a run.
        owner: name of the user; empty when unknown.
        pid: process id.
        since: UTC, ISO 8601; empty when unknown.
    """

    run_id: str
    owner: str
    pid: int
    since: str

    @property
    def words(self) -> str:
        """One phrase: `run 0a1b2c since 14:02 UTC`."""
        who = f"run {self.run_id}" if self.run_id else f"process {self.pid}"
        of = f" of {self.owner}" if self.owner else ""
        since = f" since {self.since[11:16]} UTC" if self.since else ""
        return f"{who}{of}{since}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a waiter stands.

    Args:
        number: 1 for the next; None when there is no ticket to tell it.
        holder: None when the holder left no ticket.
        note: why there is no place; empty otherwise.
    """

    number: int | None
    holder: Holder | None
    note: str = ""

    @property
    def words(self) -> str:
        """One phrase: `place 2, held by run 0a1b2c since 14:02 UTC`."""
        place = f"place {self.number}" if self.number is not None else f"no place in the queue ({self.note})"
        return f"{place}, held by {self.holder.words if self.holder else 'another process'}"


class Lease:
    """One lease on one device: drawn, held once, released.

    Args:
        folder: of all leases of this host, shared by its users.
        device_uuid: of the device.
        run_id, owner: told to those who wait.
        fresh_s, poll_s: seconds, see above.
    """

    def __init__(
        self, folder: Path, device_uuid: str, run_id: str = "", owner: str = "", fresh_s: float = FRESH_S, poll_s: float = POLL_S
    ) -> None:
        name = device_uuid.replace("/", "_")
        self._folder, self._poll_s, self._fresh_s = folder, poll_s, fresh_s
        self._lock = FileLock(folder / f"{name}.lock", mode=0o666, thread_local=False)
        self._tickets = Tickets(folder / f"{name}.queue", fresh_s)
        self._who = {"run_id": run_id, "owner": owner}
        self._ticket: Ticket | None = None
        self._beaten_s = 0.0
        self._note = ""

    def acquire(self, on_wait: Callable[[Place], None], should_stop: Callable[[], bool]) -> bool:
        """Wait for the device and hold it.

        Args:
            on_wait: hears of the place whenever it changes, and never when nobody is before.
            should_stop: asked several times a second.

        Returns:
            Whether it is held; False when stopped before.

        Raises:
            BadInput: the folder of leases cannot be used.
        """
        _make_shared(self._folder)
        held = False
        self._draw()
        try:
            held = self._wait(on_wait, should_stop)
        finally:
            if not held:
                self._leave()
        return held

    def release(self) -> None:
        """Give the device back; nothing happens when it is not held."""
        self._leave()
        self._lock.release()

    def holder(self) -> Holder | None:
        """Return who holds the device by its ticket, or None when there is no such ticket."""
        found = self._tickets.holding()
        if found is None:
            return None
        said = self._tickets.read(found, _CARD_BYTES)
        run_id, owner, since = (one_line(said.get(name, ""), 40) for name in ("run_id", "owner", "since"))
        return Holder(run_id, owner, found.pid, since)

    def _wait(self, on_wait: Callable[[Place], None], should_stop: Callable[[], bool]) -> bool:
        told: Place | None = None
        while not should_stop():
            self._beat()
            ahead = self._tickets.before(self._ticket) if self._ticket else None
            if not ahead and self._take():
                return True
            place = Place(None if ahead is None else ahead + 1, self.holder(), self._note)
            if place != told:
                on_wait(place)
                told = place
            time.sleep(self._poll_s * min(1 + (ahead or 0), _SLOWEST))
        return False

    def _draw(self) -> None:
        """Draw a ticket; where none can be written the lock alone must do, and the reason is kept."""
        try:
            self._ticket = self._tickets.draw(_card(self._who))
        except OSError as error:
            self._ticket, self._note = None, error.strerror or type(error).__name__
        self._beaten_s = time.monotonic()

    def _beat(self) -> None:
        """Say that this waiter lives; after too long a silence, or when its ticket was swept away, it queues anew."""
        if self._ticket is None:
            return
        silent_s = time.monotonic() - self._beaten_s
        if silent_s > self._fresh_s:
            self._leave()
        if silent_s > self._fresh_s or not self._tickets.beat(self._ticket):
            self._draw()
        self._beaten_s = time.monotonic()

    def _take(self) -> bool:
        """Try the lock once; on success sweep what an earlier holder left, and turn the ticket into one that holds."""
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        except OSError as error:
            raise _unusable(self._folder, error) from None
        self._tickets.holding()
        if self._ticket is not None:
            since = datetime.now(UTC).isoformat(timespec="seconds")
            self._ticket = self._tickets.hold(self._ticket, _card({**self._who, "since": since}))
        return True

    def _leave(self) -> None:
        if self._ticket is not None:
            self._tickets.remove(self._ticket)
            self._ticket = None


def _card(content: dict[str, Any]) -> bytes:
    """Return what a ticket says, always of one length."""
    short = {name: one_line(value, 40) for name, value in content.items()}
    return json.dumps(short).encode("ascii").ljust(_CARD_BYTES)[:_CARD_BYTES]


def _make_shared(folder: Path) -> None:
    """Make the folder that all users of the host share: anyone may add, only the owner of a file may remove it."""
    if folder.is_dir():
        return  # whoever made it chose who may write: nothing of it is opened to others here
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from None
    with suppress(PermissionError):
        folder.chmod(0o1777)


def _unusable(folder: Path, error: OSError) -> BadInput:
    return BadInput(
        f"{error.strerror or type(error).__name__} for the folder of leases {folder}",
        "a folder on a local disk that every user of this host can write",
        "mend it, or set TANDEM_LEASES to another one, the same for everyone",
    )
