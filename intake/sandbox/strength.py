"""How strong the sandbox is on this machine: what is in force, what a worker that tried could not do, and what is missing.

The level is found by trying (`intake.sandbox.selftest`), never from the version of a kernel. It counts only what holds together:
an attempt that a level should stop and did not brings the level down, and is named.
"""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from core.errors import BadInput, WorkerError
from intake.sandbox.closing import Closed
from intake.sandbox.limits import Limits
from intake.sandbox.session import Sandbox

LEAST_LEVEL = 2
"""What reading a stranger's file needs."""
_FILES = frozenset(
    {
        "write outside the scratch folder",
        "read a file of the user",
        "list the user's home",
        "read the parent's memory",
        "read the parent's environment",
    }
)
"""Attempts on what is reached as a file, which calls alone do not tell apart."""
_NOTICES = (
    "L1 is missing: network, processes and other dangerous calls are not blocked (seccomp)",
    "L2 is missing: files are not confined (Landlock)",
    "L3 is missing: no namespaces of its own (user, mount, pid, net, ipc)",
    "L4 is missing: no cgroup; memory is held by a limit on address space",
)


@dataclass(frozen=True, slots=True)
class SandboxLevel:
    """How strong the sandbox is.

    Args:
        level: 0 a process with limits, 1 dangerous calls denied, 2 files confined, 3 namespaces of its own; each with all below.
        stopped: what was tried in vain.
        open: what was tried and came through.
        notices: one line for each part that is missing.
    """

    level: int
    stopped: tuple[str, ...]
    open: tuple[str, ...]
    notices: tuple[str, ...]


def level() -> SandboxLevel:
    """Return how strong the sandbox is here, by trying; takes a fraction of a second, so keep it.

    Where no worker can be started or no attempt comes to an end, the level is 0 and a notice says why.
    """
    with (
        tempfile.TemporaryDirectory(prefix="tandem-level-") as folder,
        Sandbox("selftest", Limits(wall_s=30.0), package="intake.sandbox") as sandbox,
    ):
        secret = Path(folder) / "secret"
        secret.write_text("of the user", encoding="utf-8")
        try:
            said = sandbox.read(
                b"",
                {
                    "parent": os.getpid(),
                    "outside": f"{folder}/outside",
                    "secret": str(secret),
                    "home": str(Path("~").expanduser()),
                },
            )
        except (BadInput, WorkerError) as error:
            return SandboxLevel(0, (), (), (f"the test of the sandbox came to no end: {error}", *_NOTICES))
        tried = cast("dict[str, list[str]]", said)
        return graded(sandbox.closed, tuple(tried["stopped"]), tuple(tried["open"]))


def graded(closed: Closed | None, stopped: tuple[str, ...], left: tuple[str, ...]) -> SandboxLevel:
    """Return the level that follows from what is in force and what was tried. Pure.

    Args:
        closed: what the worker said to be in force before it tried anything; None when it said nothing.
        stopped: names of what was stopped.
        left: names of what came through.
    """
    calls_held = closed is not None and closed.filtered and closed.unprivileged and set(left) <= _FILES
    files_held = closed is not None and closed.landlock > 0 and not left
    apart = closed is not None and {"user", "mount", "pid", "net", "ipc"} <= set(closed.namespaces)
    holds = (calls_held, files_held, apart)
    reached = holds.index(False) if False in holds else len(holds)
    missing = [notice for held, notice in zip((*holds, False), _NOTICES, strict=True) if not held]
    return SandboxLevel(reached, stopped, left, (*missing, *(f"not stopped: {name}" for name in left)))


def require(found: SandboxLevel, accepted: bool) -> None:
    """Refuse to read files of strangers where the sandbox is too weak for it.

    Args:
        found: what `level` gave.
        accepted: whether an administrator takes the risk of a weaker sandbox.

    Raises:
        BadInput: it is; one line that says what is missing.
    """
    if found.level >= LEAST_LEVEL or accepted:
        return
    raise BadInput(
        f"a sandbox of level {found.level} ({'; '.join(found.notices[:2])})",
        f"level {LEAST_LEVEL} or higher to read uploaded files",
        "use Linux 5.13 or newer with Landlock, or have an administrator set TANDEM_ACCEPT_WEAK_SANDBOX=1",
    )
