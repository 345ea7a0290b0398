"""Processes that cannot be mistaken for others: who one is, whether it lives, and how it is ended with all its children.

A process id alone proves nothing: it is used again after the process ends, and on another machine it names someone else.
A process is therefore known by host, boot, id and start time; it is signalled through a descriptor (pidfd) that is compared
with that identity after it was opened, so that a signal never reaches a stranger. Workers are found by the run id in their
environment, since they may have left the group of their run.

Source: https://man7.org/linux/man-pages/man2/pidfd_open.2.html; https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html.
"""

import ctypes
import os
import select
import signal
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from core.errors import StoreError
from core.run import Identity
from db.clock import boot_id

RUN_VARIABLE = "TANDEM_RUN_ID"
"""Name of the environment variable that marks every process of a run."""

_PROC = Path("/proc")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_AGAIN_S = 0.05


@dataclass(frozen=True, slots=True)
class _Status:
    state: str
    group: int
    session: int
    start_ticks: int


def identity(pid: int | None = None) -> Identity:
    """Return who a process is; the present one when no id is given.

    Raises:
        ProcessLookupError: it does not exist.
    """
    pid = os.getpid() if pid is None else pid
    status = _status(pid)
    if status is None:
        raise ProcessLookupError(pid)
    return Identity(socket.gethostname(), boot_id(), pid, status.start_ticks)


def alive(who: Identity) -> bool | None:
    """Return whether a process lives, or None when it ran on another host, which cannot be told from here.

    A zombie, a process of an earlier boot and a later process with the same id count as dead.
    """
    if who.host != socket.gethostname():
        return None
    if who.boot_id != boot_id():
        return False
    status = _status(who.pid)
    return status is not None and status.state not in "ZX" and status.start_ticks == who.start_ticks


def send(who: Identity, number: signal.Signals) -> bool:
    """Send a signal to exactly this process.

    Returns:
        Whether it was sent; False when that process is gone or lives elsewhere.
    """
    if not alive(who):
        return False
    if not hasattr(os, "pidfd_open"):
        with suppress(ProcessLookupError):
            os.kill(who.pid, number)
            return True
        return False
    try:
        descriptor = os.pidfd_open(who.pid)
    except ProcessLookupError:
        return False
    try:
        if not alive(who):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def kill_group(pid: int, grace_s: float = 5.0) -> int:
    """End a process, its group and its descendants: first politely, then by force.

    Args:
        pid: leader of the group.
        grace_s: seconds between SIGTERM and SIGKILL.

    Returns:
        How many processes were told to end; 0 when it was gone already.
    """
    try:
        leader = identity(pid)
    except ProcessLookupError:
        return 0
    return end((leader, *_family(leader)), grace_s)


def kill_marked(run_id: str, grace_s: float = 5.0) -> int:
    """End every process that carries this run in its environment, the present one and its ancestors excepted.

    Returns:
        How many were told to end.
    """
    return end(marked(run_id), grace_s)


def marked(run_id: str) -> tuple[Identity, ...]:
    """Return the living processes of this user that carry this run, except the present one and its ancestors."""
    mark = f"{RUN_VARIABLE}={run_id}".encode()
    spared = _ancestry()
    return tuple(_known(pid for pid in _pids() if pid not in spared and mark in _environment(pid)))


def end(processes: Iterable[Identity], grace_s: float) -> int:
    """End these processes: SIGTERM to all, SIGKILL to those that are left after the grace, and wait for the last.

    Returns:
        How many were there to be told.
    """
    told = [who for who in processes if send(who, signal.SIGTERM)]
    for who in told:
        send(who, signal.SIGCONT)
    left = _wait_for_all(told, grace_s)
    for who in left:
        send(who, signal.SIGKILL)
    _wait_for_all(left, grace_s)
    return len(told)


def become_subreaper() -> None:
    """Make this process the parent of every descendant whose own parent ends, so that none is lost; Linux only, else nothing."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent ends, which may be now. Linux only, else nothing.

    Args:
        parent_pid: id of the parent, taken before this process was started.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if not _PROC.joinpath("self/stat").exists():
        return
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, value, 0, 0, 0) != 0:
        raise StoreError(f"got error {ctypes.get_errno()} from prctl({option}); expected it to work; use Linux 3.4 or newer")


def _status(pid: int) -> _Status | None:
    if not _PROC.joinpath("self/stat").exists():
        return _status_elsewhere(pid)
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    columns = text.rpartition(")")[2].split()
    return _Status(columns[0], int(columns[2]), int(columns[3]), int(columns[19]))


def _status_elsewhere(pid: int) -> _Status | None:
    try:
        process = psutil.Process(pid)
        state = "Z" if process.status() == psutil.STATUS_ZOMBIE else "R"
        return _Status(state, os.getpgid(pid), os.getsid(pid), round(process.create_time() * 100))
    except (psutil.Error, ProcessLookupError, PermissionError):
        return None


def _pids() -> tuple[int, ...]:
    return tuple(psutil.pids())


def _environment(pid: int) -> tuple[bytes, ...]:
    try:
        return tuple((_PROC / str(pid) / "environ").read_bytes().split(b"\0"))
    except OSError:
        return ()


def _known(pids: Iterable[int]) -> Iterable[Identity]:
    for pid in pids:
        with suppress(ProcessLookupError):
            who = identity(pid)
            if alive(who):
                yield who


def _family(leader: Identity) -> tuple[Identity, ...]:
    members = {pid for pid in _pids() if (status := _status(pid)) is not None and status.group == leader.pid}
    with suppress(psutil.Error):
        members |= {child.pid for child in psutil.Process(leader.pid).children(recursive=True)}
    return tuple(_known(members - {leader.pid} - _ancestry()))


def _ancestry() -> frozenset[int]:
    own = psutil.Process()
    return frozenset({own.pid, *(parent.pid for parent in own.parents())})


def _wait_for_all(processes: Iterable[Identity], limit_s: float) -> tuple[Identity, ...]:
    deadline = time.monotonic() + limit_s
    left = tuple(who for who in processes if alive(who))
    while left and (remaining_s := deadline - time.monotonic()) > 0:
        _wait_for_one(left[0], remaining_s)
        left = tuple(who for who in left if alive(who))
    return left


def _wait_for_one(who: Identity, limit_s: float) -> None:
    if not hasattr(os, "pidfd_open"):
        time.sleep(min(_LOOK_AGAIN_S, limit_s))
        return
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(who.pid)
        try:
            waiter = select.poll()
            waiter.register(descriptor, select.POLLIN)
            waiter.poll(limit_s * 1000)
        finally:
            os.close(descriptor)
