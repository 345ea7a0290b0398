"""Keeps the truth about runs: a heart that beats while one lives, and a sweep that ends those that do not.

Whether a process lives is asked of the kernel, never guessed from a clock: the heartbeat decides only what the kernel cannot
tell, namely a process that lives but does not answer, and one on another host. Whoever looks at a run settles it first, so
that a page never shows a dead run as running. A run that was given up stays given up; what it measured is kept.
"""

import os
import stat
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from core.errors import StoreError
from core.run import FINAL_STATES, Identity, Progress
from db import Store
from db.clock import boot_id
from db.store import Pulse
from services.processes import (
    RUN_VARIABLE,
    alive,
    become_subreaper,
    die_with_parent,
    identity,
    kill_group,
    kill_marked,
    marked,
    send,
)

__all__ = [
    "BEAT_S", "RUN_VARIABLE", "SILENT_S", "Heart", "alive", "become_subreaper", "boot_id", "die_with_parent", "identity",
    "kill_group", "kill_marked", "marked", "send", "settle", "sweep",
]

BEAT_S = 2.0
"""Seconds between two heartbeats."""

SILENT_S = 60.0
"""Seconds without a heartbeat after which a living process counts as hung."""

CANCEL_S = 15.0
"""Seconds that a run has to end itself after a cancel was asked."""

GRACE_S = 5.0
LOG_LIMIT_BYTES = 4 * 2**20
_OUTPUTS = (1, 2)


def sweep(store: Store, grace_s: float = GRACE_S) -> tuple[str, ...]:
    """Settle every run that has not ended.

    Returns:
        Ids of the runs that this call ended.
    """
    return tuple(run_id for run_id, _, _ in store.unfinished() if settle(store, run_id, grace_s))


def settle(store: Store, run_id: str, grace_s: float = GRACE_S) -> bool:
    """End a run whose process is dead, hung or deaf to a cancel, with one line that says what was kept.

    Args:
        store: where the run is kept.
        run_id: any run; one that has ended is left alone.
        grace_s: seconds between SIGTERM and SIGKILL.

    Returns:
        Whether this call ended it.

    Raises:
        NotFound: no such run.
    """
    pulse = store.pulse(run_id)
    reason = _why_over(pulse)
    if reason is None:
        return False
    here = pulse.identity is not None and alive(pulse.identity)
    if here and pulse.identity is not None:
        kill_group(pulse.identity.pid, grace_s)
    kill_marked(run_id, grace_s)
    kept = store.pulse(run_id).answered
    state = "interrupted" if pulse.cancel_age_s is None else "cancelled"
    return store.set_state(run_id, state, f"{reason}; {_kept(kept, pulse.progress)}")


def _why_over(pulse: Pulse) -> str | None:
    if pulse.state in FINAL_STATES:
        return None
    lives = None if pulse.identity is None else alive(pulse.identity)
    if pulse.identity is None:
        return "its process never started" if pulse.age_s > SILENT_S or pulse.cancel_age_s is not None else None
    if lives is False:
        return _how_it_died(pulse, pulse.identity)
    if pulse.age_s > SILENT_S:
        where = "" if lives else f" on {pulse.identity.host}"
        return f"its process{where} did not answer for {pulse.age_s:.0f} s" + (" and was ended" if lives else "")
    if lives and pulse.cancel_age_s is not None and pulse.cancel_age_s > CANCEL_S:
        return f"cancelled, and ended by force after {pulse.cancel_age_s:.0f} s"
    return None


def _how_it_died(pulse: Pulse, who: Identity) -> str:
    if pulse.cancel_age_s is not None:
        return "cancelled"
    if who.boot_id != boot_id():
        return "the machine was restarted"
    return "its process was killed or crashed"


def _kept(answered: int, progress: Progress) -> str:
    total = max(answered, progress.total)
    return f"kept {answered} of {total} probes" if total else "nothing had been measured"


class Heart:
    """Beats for the process of a run, from a thread of its own, and notices when the run must stop.

    Two clocks tell two things: the heartbeat says that the process lives, the progress it carries says how far the work is.
    """

    def __init__(self, store: Store, run_id: str, get_progress: Callable[[], Progress], beat_s: float = BEAT_S) -> None:
        """Prepare the heart; it beats inside `with`.

        Args:
            store: where the run is kept.
            run_id: the run of this process.
            get_progress: called from the heart's thread before each beat.
            beat_s: seconds between two beats.
        """
        self._store, self._run_id, self._get_progress, self._beat_s = store, run_id, get_progress, beat_s
        self._identity = identity()
        self._stop = threading.Event()
        self._cancelled = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heart {run_id}", daemon=True)

    def __enter__(self) -> Self:
        """Beat once, so that the run is known to live, and go on beating."""
        self.beat()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop beating; the run itself is ended by whoever did its work."""
        self._stop.set()
        self._thread.join()

    def beat(self) -> None:
        """Beat now, so that a page sees the progress at once.

        Raises:
            NotFound, StoreError: the store cannot be used.
        """
        if self._store.beat(self._run_id, self._get_progress(), self._identity):
            self._cancelled.set()

    def cancelled(self) -> bool:
        """Return whether the run must stop: a cancel was asked, or someone ended or deleted it."""
        return self._cancelled.is_set()

    def wait_cancelled(self, limit_s: float) -> bool:
        """Wait at most so many seconds for a reason to stop, and return whether there is one."""
        return self._cancelled.wait(limit_s)

    def _run(self) -> None:
        while not self._stop.wait(self._beat_s):
            _cap_output()
            try:
                self.beat()
            except StoreError:
                continue  # a busy or full disk: the next beat tries again, and the sweep has the last word


def _cap_output() -> None:
    if RUN_VARIABLE not in os.environ:
        return
    for descriptor in _OUTPUTS:
        try:
            found = os.fstat(descriptor)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and found.st_size > LOG_LIMIT_BYTES:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, b"(what came before was cut: the log had grown too long)\n")
