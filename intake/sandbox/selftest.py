"""A reader that reads nothing: it tries, for real, what a reader must not be able to do, and tells what came of it.

It is run in the sandbox at every start, since only an attempt shows that a guard is in force. Each attempt does no harm where it
succeeds: the file lies in a folder that is removed, children end at once, the signal is one that is ignored, and the tracing
ends with the process.
"""

import errno
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from intake.sandbox.kernel import system_call
from intake.source import Source

_PTRACE_SEIZE = 0x4206
_KEY_OF_THE_SESSION = -3
_CLONE_NEWNS = 0x00020000
_REFUSALS = (
    errno.EPERM,
    errno.EACCES,
    errno.ENOSYS,
    errno.EAFNOSUPPORT,
    errno.ENETUNREACH,
    errno.ENETDOWN,
    errno.ESRCH,
    errno.EROFS,
)
"""Errors that mean that the attempt was stopped; any other error means that it came further than it should."""


def read(source: Source, options: dict[str, Any]) -> dict[str, list[str]]:  # noqa: ARG001 - a reader's signature
    """Try everything once.

    Args:
        source: not looked at.
        options: `parent`, a process id; `outside`, a path in a folder that this user may write to; `secret`, a file that this
            user may read; `home`, the folder of this user.

    Returns:
        Names of what was `stopped` and of what is `open`.
    """
    parent = int(options["parent"])
    attempts: dict[str, Callable[[], int]] = {
        "write outside the scratch folder": lambda: _write(options["outside"]),
        "read a file of the user": lambda: _read(options["secret"]),
        "list the user's home": lambda: _read(options["home"]),
        "connect over TCP": lambda: _connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 9)),
        "send over UDP": lambda: _connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 9)),
        "connect over a unix socket": lambda: _connect(socket.AF_UNIX, socket.SOCK_STREAM, options["outside"]),
        "start a process": _fork,
        "start a program": lambda: _run_program(str(options["outside"])),
        "signal the parent": lambda: _signal(parent),
        "trace the parent": lambda: system_call("ptrace", _PTRACE_SEIZE, parent, 0, 0),
        "read the parent's memory": lambda: _read(f"/proc/{parent}/mem"),
        "read the parent's environment": lambda: _read(f"/proc/{parent}/environ"),
        "copy the parent's memory": lambda: system_call("process_vm_readv", parent, None, 0, None, 0, 0),
        "set up io_uring": lambda: system_call("io_uring_setup", 1, bytes(120)),
        "use the kernel's keys": lambda: system_call("keyctl", 0, _KEY_OF_THE_SESSION, 1),
        "load a program into the kernel": lambda: system_call("bpf", 0, bytes(128), 128),
        "count events of the processor": lambda: system_call("perf_event_open", bytes(128), 0, -1, -1, 0),
        "mount a file system": lambda: system_call("mount", b"none", b"/", None, 1 << 18, None),
        "enter namespaces": lambda: system_call("unshare", _CLONE_NEWNS),
    }
    stopped: list[str] = []
    left: list[str] = []
    for name, attempt in attempts.items():
        (stopped if _is_stopped(attempt) else left).append(name)
    return {"stopped": stopped, "open": left}


def _is_stopped(attempt: Callable[[], int]) -> bool:
    try:
        given = attempt()
    except OSError as error:
        return error.errno in _REFUSALS
    return -given in _REFUSALS


def _write(path: str) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.close(descriptor)
    with suppress(OSError):
        Path(path).unlink()
    return 0


def _read(path: str) -> int:
    os.close(os.open(path, os.O_RDONLY))
    return 0


def _connect(family: int, kind: int, address: Any) -> int:
    with socket.socket(family, kind) as attempt:
        attempt.settimeout(1)
        attempt.connect(address)
        if kind == socket.SOCK_DGRAM:
            attempt.send(b"?")
    return 0


def _fork() -> int:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return 0


def _run_program(path: str) -> int:
    # the file is not there: a call that is let through says so, and this process goes on
    os.execv(path, [path])  # noqa: S606 - an attempt
    return 0


def _signal(parent: int) -> int:
    os.kill(parent, signal.SIGURG)
    return 0
