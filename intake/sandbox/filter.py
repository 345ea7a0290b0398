"""The filter of system calls as a program for the kernel: pure, so that it can be read and tested without being installed.

The program is classic BPF over `struct seccomp_data`: a jump for each allowed call, tests of arguments where a call is harmless
with some of them only, and refusal with an error for everything else, so that a library which tries something finds out and
goes on. Calls of another architecture, through which numbers could be mistaken, end the process.

Source: https://docs.kernel.org/userspace-api/seccomp_filter.html; seccomp(2); `linux/bpf_common.h`, `linux/seccomp.h`.
"""

import errno
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from intake.sandbox.syscalls import AUDIT_ARCHITECTURES, checked_calls, free_calls

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_X32 = 0x40000000
_CLONE_THREAD = 0x00010000
_O_TMPFILE = 0o20000000
_PRCTL_NAMES = (15, 16, 0x53564D41)  # set and get a thread's name; name a mapping, as the allocator of the C library does
_FCNTL_PLAIN = (0, 1, 2, 3, 4, 1030)  # duplicate, flags of descriptor and file, duplicate with close-on-exec; no owner, no lock
_IOCTL_ASKS = (0x5401, 0x541B, 0x5450, 0x5451, 0x5421)  # is it a terminal, bytes to read, close-on-exec off and on, non-blocking


@dataclass(frozen=True, slots=True)
class Instruction:
    """One `struct sock_filter`."""

    code: int
    jump_true: int
    jump_false: int
    operand: int

    def packed(self) -> bytes:
        """Return its eight bytes."""
        return struct.pack("=HBBI", self.code, self.jump_true, self.jump_false, self.operand)


def reader_filter(machine: str, pid: int, with_folder: bool) -> tuple[Instruction, ...]:
    """Return the program for a reader.

    Args:
        machine: as `uname` names it.
        pid: of the process that the filter is for, as it sees itself.
        with_folder: whether files are fetched over a socket that is open already.

    Raises:
        KeyError: the machine's calls are not known.
    """
    program = list(free_part(machine))
    checks = _checks(pid, with_folder)
    for name, number in checked_calls(machine).items():
        program += [_jump(_EQUAL, number, 0, len(checks[name])), *checks[name]]
    return (*program, _give(_ERROR | errno.EPERM))


@cache
def free_part(machine: str) -> tuple[Instruction, ...]:
    """Return the beginning of the program, which is the same for every reader: the architecture, and what is free.

    Raises:
        KeyError: the machine's calls are not known.
    """
    program = [
        _load(4),
        _jump(_EQUAL, AUDIT_ARCHITECTURES[machine], 1, 0),
        _give(_KILL),
        _load(0),
        _jump(_AT_LEAST, _X32, 0, 1),
        _give(_KILL),
    ]
    for number in free_calls(machine).values():
        program += [_jump(_EQUAL, number, 0, 1), _give(_ALLOW)]
    return tuple(program)


def denying_filter(machine: str, numbers: Mapping[str, int], error: int) -> tuple[Instruction, ...]:
    """Return a program that allows everything but a few calls: it plays a kernel that lacks them.

    Args:
        machine: as `uname` names it.
        numbers: the calls by name.
        error: number of the error that they give.
    """
    program = [_load(4), _jump(_EQUAL, AUDIT_ARCHITECTURES[machine], 1, 0), _give(_KILL), _load(0)]
    for number in numbers.values():
        program += [_jump(_EQUAL, number, 0, 1), _give(_ERROR | error)]
    return (*program, _give(_ALLOW))


def _checks(pid: int, with_folder: bool) -> dict[str, list[Instruction]]:
    """Return what is run for each call that is allowed with some arguments only; each ends the program."""
    allow, deny, unknown = _give(_ALLOW), _give(_ERROR | errno.EPERM), _give(_ERROR | errno.ENOSYS)
    return {
        # a file without a name would escape the count of what the scratch folder holds
        "open": _without_bits(1, _O_TMPFILE),
        "openat": _without_bits(2, _O_TMPFILE),
        "clone": [_argument(0), _jump(_ANY_BIT, _CLONE_THREAD, 0, 1), allow, deny],
        # their arguments lie in memory, where a filter cannot look: the C library falls back to the older calls
        "clone3": [unknown],
        "openat2": [unknown],
        "prctl": _one_of(0, _PRCTL_NAMES),
        "prlimit64": [_argument(2), _jump(_EQUAL, 0, 0, 3), _argument(2, high=True), _jump(_EQUAL, 0, 0, 1), allow, deny],
        "kill": _one_of(0, (pid,)),
        "tgkill": _one_of(0, (pid,)),
        "fcntl": _one_of(1, _FCNTL_PLAIN),
        "ioctl": _one_of(1, _IOCTL_ASKS),
        "sched_setaffinity": _one_of(0, (0,)),
        "recvmsg": [allow] if with_folder else [deny],
    }


def _one_of(index: int, values: tuple[int, ...]) -> list[Instruction]:
    tests = [part for value in values for part in (_jump(_EQUAL, value, 0, 1), _give(_ALLOW))]
    return [_argument(index), *tests, _give(_ERROR | errno.EPERM)]


def _without_bits(index: int, bits: int) -> list[Instruction]:
    return [_argument(index), _jump(_ANY_BIT, bits, 0, 1), _give(_ERROR | errno.EPERM), _give(_ALLOW)]


def _argument(index: int, *, high: bool = False) -> Instruction:
    """Load half of an argument; both architectures have the low half first."""
    return _load(16 + 8 * index + (4 if high else 0))


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, 0, 0, offset)


def _jump(code: int, operand: int, jump_true: int, jump_false: int) -> Instruction:
    return Instruction(code, jump_true, jump_false, operand)


def _give(value: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, value)
