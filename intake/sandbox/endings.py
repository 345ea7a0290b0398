"""Ends what a read started, to the last process; each is found by its descent, which it cannot change."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

_ROUNDS = 20


def end_all(process: subprocess.Popen[bytes], *, sealed: bool) -> None:
    """End a worker, its group and its descendants.

    Args:
        process: leader of its group and session, which adopts every orphan among its descendants.
        sealed: whether its children cannot start others, so that the group is all there is.
    """
    if not sealed:
        _end_descendants(process.pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end_descendants(leader: int) -> None:
    """End what descends from a process until nothing is left, whatever group or session it moved to.

    The leader is held still meanwhile: it waits for none of them, so that no link of a descent is lost between two looks.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(leader, signal.SIGSTOP)
    empty = 0
    for _ in range(_ROUNDS):
        found = descendants(leader)
        empty = 0 if found else empty + 1
        if empty == 2:
            return
        for number in (signal.SIGSTOP, signal.SIGKILL):  # all are held still before the first is ended: none can replace another
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)


def descendants(leader: int) -> tuple[int, ...]:
    """Return the living processes that descend from one, through dead ones too; none where there is no /proc."""
    parents: dict[int, int] = {}
    dead: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            columns = entry.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            pid = int(entry.parent.name)
            parents[pid] = int(columns[1])
            if columns[0] in "ZX":
                dead.add(pid)
    found: set[int] = set()
    grown = True
    while grown:
        below = {pid for pid, parent in parents.items() if parent == leader or parent in found}
        grown = below != found
        found = below
    return tuple(sorted(found - dead))
