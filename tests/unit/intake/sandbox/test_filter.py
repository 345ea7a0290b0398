"""The filter of system calls, run by an interpreter of its own kind of program, for both architectures."""

import errno

import pytest

from intake.sandbox.filter import Instruction, reader_filter
from intake.sandbox.syscalls import AUDIT_ARCHITECTURES, checked_calls, free_calls

ALLOW, DENY, UNKNOWN, KILL = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS, 0x80000000
PID = 77
MACHINES = ("x86_64", "aarch64")


def run(program: tuple[Instruction, ...], number: int, arguments: tuple[int, ...] = (), architecture: int = 0) -> int:
    """Do as the kernel does with `struct seccomp_data`."""
    words = {0: number, 4: architecture}
    for index, argument in enumerate((*arguments, *[0] * (6 - len(arguments)))):
        words[16 + 8 * index], words[20 + 8 * index] = argument & 0xFFFFFFFF, argument >> 32
    accumulator = position = 0
    while True:
        step = program[position]
        position += 1
        if step.code == 0x20:
            accumulator = words[step.operand]
        elif step.code == 0x06:
            return step.operand
        else:
            holds = {0x15: accumulator == step.operand, 0x35: accumulator >= step.operand, 0x45: bool(accumulator & step.operand)}
            position += step.jump_true if holds[step.code] else step.jump_false


def verdict(machine: str, name: str, *arguments: int, with_folder: bool = False) -> int:
    numbers = {**free_calls(machine), **checked_calls(machine)}
    return run(reader_filter(machine, PID, with_folder), numbers[name], arguments, AUDIT_ARCHITECTURES[machine])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "arguments", "expected"), [
    ("read", (0, 0, 10), ALLOW),
    ("openat", (0, 0, 0o2), ALLOW),
    ("openat", (0, 0, 0o20200000), DENY),
    ("clone", (0x3D0F00,), ALLOW),
    ("clone", (0x11,), DENY),
    ("clone3", (0, 88), UNKNOWN),
    ("openat2", (0, 0, 0, 24), UNKNOWN),
    ("prlimit64", (0, 9, 0, 0x7FFF00000000), ALLOW),
    ("prlimit64", (0, 9, 0x7FFF00000000, 0), DENY),
    ("prlimit64", (0, 9, 0x1000, 0), DENY),
    ("kill", (PID, 6), ALLOW),
    ("kill", (PID + 1, 9), DENY),
    ("kill", (2**64 - 1, 9), DENY),
    ("tgkill", (PID, PID + 3, 6), ALLOW),
    ("tgkill", (1, 1, 9), DENY),
    ("fcntl", (3, 4), ALLOW),
    ("fcntl", (3, 8), DENY),
    ("ioctl", (1, 0x5401), ALLOW),
    ("ioctl", (1, 0x5412), DENY),
    ("prctl", (15,), ALLOW),
    ("prctl", (1,), DENY),
    ("sched_setaffinity", (0,), ALLOW),
    ("sched_setaffinity", (1,), DENY),
    ("recvmsg", (4,), DENY),
])  # fmt: skip
def test_a_call_is_judged_by_its_number_and_arguments(machine: str, name: str, arguments: tuple[int, ...], expected: int) -> None:
    assert verdict(machine, name, *arguments) == expected


@pytest.mark.parametrize("machine", MACHINES)
def test_files_of_a_folder_may_be_received(machine: str) -> None:
    assert verdict(machine, "recvmsg", 4, with_folder=True) == ALLOW


# numbers from asm/unistd_64.h and asm-generic/unistd.h
@pytest.mark.parametrize(("machine", "numbers"), [
    ("x86_64", {"socket": 41, "execve": 59, "fork": 57, "vfork": 58, "ptrace": 101, "unlink": 87, "rename": 82, "bpf": 321,
                "io_uring_setup": 425, "keyctl": 250, "memfd_create": 319, "setsid": 112, "pidfd_open": 434, "future": 600}),
    ("aarch64", {"socket": 198, "execve": 221, "ptrace": 117, "unlinkat": 35, "renameat": 38, "bpf": 280, "mkdirat": 34,
                 "io_uring_setup": 425, "keyctl": 219, "memfd_create": 279, "setsid": 157, "pidfd_open": 434, "future": 600}),
])  # fmt: skip
def test_whatever_is_not_listed_is_denied(machine: str, numbers: dict[str, int]) -> None:
    program = reader_filter(machine, PID, True)
    denied = {name: run(program, number, architecture=AUDIT_ARCHITECTURES[machine]) for name, number in numbers.items()}
    assert denied == dict.fromkeys(numbers, DENY)


def test_calls_of_another_architecture_end_the_process() -> None:
    program = reader_filter("x86_64", PID, False)
    assert run(program, 0, architecture=0x40000003) == KILL
    assert run(program, 0x40000000, architecture=AUDIT_ARCHITECTURES["x86_64"]) == KILL


def test_no_two_calls_share_a_number() -> None:
    for machine in MACHINES:
        numbers = [*free_calls(machine).values(), *checked_calls(machine).values()]
        assert len(numbers) == len(set(numbers)) > 90


def test_a_machine_whose_calls_are_not_known_has_no_filter() -> None:
    with pytest.raises(KeyError):
        reader_filter("riscv64", PID, False)
