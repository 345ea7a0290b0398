"""Closes the sandbox around the present process, for good: what it may use, and what it may do, before it sees any input.

In this order: limits of resources, no privilege, files by Landlock, calls by seccomp. Each step is taken where the kernel
offers it, and what was in force is told; whether that is enough is judged outside.
"""

import contextlib
import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass

from intake.sandbox import kernel
from intake.sandbox.filter import free_part, reader_filter
from intake.sandbox.limits import OPEN_FILES, TASKS, Limits

_READ = kernel.READ_FILE | kernel.READ_DIR
_SCRATCH = _READ | kernel.WRITE_FILE | kernel.MAKE_REG | kernel.TRUNCATE
_SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
_ABOUT_THE_MACHINE = ("/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu", "/sys/devices/system/node")
_DEVICES = ("/dev/urandom", "/dev/zero")


@dataclass(frozen=True, slots=True)
class Closed:
    """What is in force.

    Args:
        namespaces: names of those that are this process's own.
        filtered: whether a filter of system calls is installed.
        landlock: version that is in force; 0 for none.
        unprivileged: whether no privilege is left and none can be gained.
    """

    namespaces: tuple[str, ...]
    filtered: bool
    landlock: int
    unprivileged: bool


def prepare() -> None:
    """Work out once what every child would work out again; nothing is closed by it."""
    kernel.landlock_version()
    with contextlib.suppress(KeyError):
        free_part(os.uname().machine)


def close_sandbox(
    limits: Limits, scratch: str, readable: Sequence[str], namespaces: tuple[str, ...], *, with_folder: bool
) -> Closed:
    """Close the sandbox around this process.

    Args:
        limits: what it may use.
        scratch: the one folder that it may write to.
        readable: files and folders of the interpreter, of our own code, and of the libraries that the reader needs.
        namespaces: those that the process is in already.
        with_folder: whether it fetches files over a socket.
    """
    set_resource_limits(limits, alone="user" in namespaces)
    unprivileged = kernel.forgo_privileges()
    read = [*readable, *_SYSTEM_LIBRARIES, *_ABOUT_THE_MACHINE, *_DEVICES]
    grants = [*((path, _READ) for path in read), ("/dev/null", _READ | kernel.WRITE_FILE), (scratch, _SCRATCH)]
    version = kernel.confine_files(grants)
    return Closed(namespaces, _filter_calls(with_folder), version, unprivileged)


def _filter_calls(with_folder: bool) -> bool:
    try:
        program = reader_filter(os.uname().machine, os.getpid(), with_folder)
    except KeyError:
        return False
    return kernel.install_filter(program)


def set_resource_limits(limits: Limits, *, alone: bool) -> None:
    """Set what the kernel can hold a process to; a smaller limit that is there already stays.

    Args:
        limits: what is allowed.
        alone: whether the user's other processes are not counted with this one.
    """
    wanted = [
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.scratch_bytes),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ]
    if alone:
        wanted.append((resource.RLIMIT_NPROC, TASKS))
    for kind, most in wanted:
        _, hard = resource.getrlimit(kind)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # a second beyond the soft limit of processor time ends even a process that ignores the signal
        beyond = 1 if kind == resource.RLIMIT_CPU and least == most else 0
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (least, least + beyond))
