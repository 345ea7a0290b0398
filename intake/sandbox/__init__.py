"""The sandbox in which files and code of strangers are read: a process that can take one input and give one answer, and no more.

`read_in_sandbox` runs a reader of `intake.readers` on an input. It comes to one of three ends: the value that the reader gives, a
refusal in the reader's words, or a line that says which limit was met or how the process ended; all but the first are a
`BadInput`. Nothing else comes out: no file, no process, no connection, no code of the input in the portal.

Levels: 0 process with limits, 1 system calls (seccomp), 2 files (Landlock), 3 namespaces. `level` finds out by trying.
"""

from collections.abc import Mapping
from pathlib import Path

from intake.sandbox.limits import Limits, ReaderFault, Refused, Stopped
from intake.sandbox.session import Sandbox
from intake.sandbox.strength import SandboxLevel, level, require
from intake.sandbox.wire import JSON

__all__ = [
    "JSON",
    "Limits",
    "ReaderFault",
    "Refused",
    "Sandbox",
    "SandboxLevel",
    "Stopped",
    "level",
    "read_in_sandbox",
    "require",
]


def read_in_sandbox(
    reader: str,
    source: Path | bytes,
    limits: Limits | None = None,
    *,
    options: Mapping[str, JSON] | None = None,
    name: str = "",
    package: str = "intake.readers",
) -> JSON:
    """Return what a reader makes of one input, read in a process of its own that is gone afterwards.

    Args:
        reader: name of a module of `package`.
        source: a file or folder that the user may read, or bytes.
        limits: by default those of a reader of its kind.
        options: for the reader.
        name: what the input is called; by default the last part of its path.
        package: where readers are.

    Raises:
        BadInput: `Refused` with the reader's words, `Stopped` by a limit or another ending, `ReaderFault`, or no such input.
        WorkerError: no process can be started.
    """
    with Sandbox(reader, limits, package=package) as sandbox:
        return sandbox.read(source, options, name)
