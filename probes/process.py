"""What a worker and its launcher need from the operating system; each step degrades quietly where Linux is not there."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends; exit at once when it has ended already.

    Args:
        parent: process id of the parent as it was told to this process.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)


def first_to_be_killed() -> None:
    """Make the kernel choose this process before others when memory runs out; needs no privilege."""
    with contextlib.suppress(OSError), Path("/proc/self/oom_score_adj").open("w", encoding="ascii") as file:
        file.write("900")


def kill_group(pid: int) -> None:
    """Kill a whole process group; it is fine when it has gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


@contextlib.contextmanager
def bounded(process: subprocess.Popen[Any], limit_s: float | None) -> Generator[threading.Event]:
    """Kill the group that a process leads at a limit, and at the end in any case; the event tells whether the limit was met.

    Args:
        process: started in a session of its own.
        limit_s: seconds that it may take; None for no limit.
    """
    late = threading.Event()

    def stop() -> None:
        late.set()
        kill_group(process.pid)

    watch = threading.Timer(limit_s or threading.TIMEOUT_MAX, stop)
    watch.daemon = True
    watch.start()
    try:
        yield late
    finally:
        watch.cancel()
        kill_group(process.pid)
        process.wait()


def peak_resident_bytes() -> int | None:
    """Return the greatest resident size of this process so far, or None where it is not told."""
    try:
        import resource
    except ImportError:
        return None
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024
