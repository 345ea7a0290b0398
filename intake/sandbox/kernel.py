"""Raw requests to the Linux kernel, through ctypes: filter, Landlock, namespaces, capabilities, death with the parent.

Each function either does what it says or returns that it could not; which of them are needed is for others to decide. Where
there is no Linux, nothing works and nothing fails. No dependency: six system calls do all of it.

Source: Landlock https://docs.kernel.org/userspace-api/landlock.html; seccomp(2), prctl(2), unshare(2), capset(2).
"""

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from intake.sandbox.filter import Instruction
from intake.sandbox.syscalls import call_number

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_SIGKILL = 9
_SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_TSYNC = 1, 1
_LANDLOCK_VERSION, _LANDLOCK_BENEATH = 1, 1
_CAPABILITY_VERSION_3 = 0x20080522

NAMESPACES = (("user", 0x10000000), ("mount", 0x00020000), ("pid", 0x20000000), ("net", 0x40000000), ("ipc", 0x08000000))
"""Names and flags of what is put apart, all at once or not at all."""

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, MAKE_REG, TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 8, 1 << 14
"""Rights of Landlock that are ever granted."""
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
_RIGHTS_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_RIGHTS_SINCE_5 = (1 << 16) - 1
_NETWORK_SINCE_4, _SCOPES_SINCE_6 = 0b11, 0b11


def _library() -> ctypes.CDLL | None:
    return ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


def system_call(name: str, *arguments: ctypes.c_void_p | bytes | int | None) -> int:
    """Make a system call by its name.

    Returns:
        What the kernel gave, or the negative number of the error; -38 (ENOSYS) where the call is not known here.
    """
    library, number = _library(), call_number(name)
    if library is None or number is None:
        return -38
    wide = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    ctypes.set_errno(0)
    given = int(library.syscall(ctypes.c_long(number), *wide))
    return -ctypes.get_errno() if given == -1 else given


def _prctl(option: int, value: int) -> bool:
    library = _library()
    return library is not None and library.prctl(option, ctypes.c_ulong(value), 0, 0, 0) == 0


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none can hide."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def first_to_be_killed() -> None:
    """Have the kernel choose this process and its children before the portal when the machine runs out of memory."""
    _tell_kernel(Path("/proc/self/oom_score_adj"), "900")


def forgo_privileges() -> bool:
    """Give up gaining any privilege, and all capabilities that are there; returns whether both were done."""
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    library = _library()
    dropped = library is not None and library.capset(header, bytes(24)) == 0
    return _prctl(_PR_SET_NO_NEW_PRIVS, 1) and dropped


def put_apart() -> tuple[str, ...]:
    """Move this process, and the children that it will have, into namespaces of their own.

    Returns:
        Their names; none where the kernel does not allow it.
    """
    library = _library()
    user, group = os.getuid(), os.getgid()
    if library is None or library.unshare(sum(flag for _, flag in NAMESPACES)) != 0:
        return ()
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        _tell_kernel(Path("/proc/self") / name, text)
    return tuple(name for name, _ in NAMESPACES)


def _tell_kernel(path: Path, text: str) -> None:
    """Write to a file of the kernel; without a map of users the process keeps its rights to files, and loses its name only."""
    try:
        with path.open("w", encoding="ascii") as file:
            file.write(text)
    except OSError:
        return


def install_filter(program: Sequence[Instruction]) -> bool:
    """Install a filter of system calls for every thread; returns whether it is in force."""
    packed = b"".join(instruction.packed() for instruction in program)
    lines = ctypes.create_string_buffer(packed, len(packed))
    head = struct.pack("=HxxxxxxQ", len(program), ctypes.addressof(lines))
    return system_call("seccomp", _SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_TSYNC, head) == 0


def landlock_version() -> int:
    """Return the version of Landlock that the kernel offers; 0 for none."""
    return max(0, system_call("landlock_create_ruleset", None, 0, _LANDLOCK_VERSION))


def confine_files(grants: Iterable[tuple[str, int]]) -> int:
    """Deny this thread and its descendants every file but those granted, all of TCP, and signals to others where possible.

    Args:
        grants: paths, each with the rights on it and on what lies below; what does not exist is left out.

    Returns:
        The version of Landlock that is in force; 0 when files are not confined.
    """
    version = landlock_version()
    if version == 0:
        return 0
    handled = _RIGHTS_BY_VERSION.get(version, _RIGHTS_SINCE_5)
    network, scopes = (_NETWORK_SINCE_4 if version >= 4 else 0), (_SCOPES_SINCE_6 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = system_call("landlock_create_ruleset", struct.pack("=QQQ", handled, network, scopes), size, 0)
    if rules < 0:
        return 0
    try:
        for path, rights in grants:
            _grant(rules, path, rights & handled)
        return version if system_call("landlock_restrict_self", rules, 0) == 0 else 0
    finally:
        os.close(rules)


def _grant(rules: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _FILE_RIGHTS
        system_call("landlock_add_rule", rules, _LANDLOCK_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)
