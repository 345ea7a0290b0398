"""Numbers of system calls, and which of them a reader needs: the data of the filter, no code that runs it.

What is not listed as free or checked is denied, so that a call which the kernel will learn one day is denied too. Nothing that
starts a process, opens a connection, sends a signal to another, reads another's memory or changes what a file is called,
who owns it or what it may be used for is among them.

Source: `asm/unistd_64.h` (x86-64) and `asm-generic/unistd.h` (aarch64) of Linux 6.1; seccomp(2).
"""

import os
from functools import cache

_COLUMNS = {"x86_64": 1, "AMD64": 1, "aarch64": 2, "arm64": 2}
AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "AMD64": 0xC000003E, "aarch64": 0xC00000B7, "arm64": 0xC00000B7}
"""What `seccomp_data.arch` holds, by the machine's name as `uname` gives it."""

# name, number on x86-64, number on aarch64; a dash where there is no such call
_FREE = """
read 0 63 | write 1 64 | readv 19 65 | writev 20 66 | pread64 17 67 | pwrite64 18 68 | preadv 295 69 | pwritev 296 70
preadv2 327 286 | pwritev2 328 287
lseek 8 62 | close 3 57 | close_range 436 436 | access 21 - | faccessat 269 48 | faccessat2 439 439 | readlink 89 -
readlinkat 267 78 | stat 4 - | lstat 6 - | fstat 5 80 | newfstatat 262 79 | statx 332 291 | statfs 137 43
fstatfs 138 44 | getdents 78 - | getdents64 217 61 | getcwd 79 17 | dup 32 23 | dup2 33 - | dup3 292 24
ftruncate 77 46 | fsync 74 82 | fdatasync 75 83 | fadvise64 221 223 | mmap 9 222 | munmap 11 215 | mprotect 10 226
mremap 25 216 | madvise 28 233 | msync 26 227 | mincore 27 232 | brk 12 214 | membarrier 324 283 | futex 202 98
futex_waitv 449 449 | set_robust_list 273 99 | get_robust_list 274 100 | rseq 334 293 | set_tid_address 218 96
restart_syscall 219 128 | rt_sigaction 13 134 | rt_sigprocmask 14 135 | rt_sigreturn 15 139 | rt_sigpending 127 136
rt_sigtimedwait 128 137 | rt_sigsuspend 130 133 | sigaltstack 131 132 | sched_yield 24 124 | sched_getaffinity 204 123
sched_getparam 143 121 | sched_getscheduler 145 120 | sched_get_priority_max 146 125 | sched_get_priority_min 147 126
getcpu 309 168 | getpid 39 172 | gettid 186 178 | getppid 110 173 | getuid 102 174 | geteuid 107 175 | getgid 104 176
getegid 108 177 | getpgrp 111 - | getpgid 121 155 | getsid 124 156 | getrlimit 97 163 | getrusage 98 165
sysinfo 99 179 | uname 63 160 | times 100 153 | time 201 - | getrandom 318 278 | clock_gettime 228 113
clock_getres 229 114 | clock_nanosleep 230 115 | nanosleep 35 101 | gettimeofday 96 169 | pipe 22 - | pipe2 293 59
eventfd2 290 19 | epoll_create1 291 20 | epoll_ctl 233 21 | epoll_wait 232 - | epoll_pwait 281 22 | poll 7 -
ppoll 271 73 | select 23 - | pselect6 270 72 | exit 60 93 | exit_group 231 94 | arch_prctl 158 -
"""
_CHECKED = """
open 2 - | openat 257 56 | clone 56 220 | clone3 435 435 | openat2 437 437 | prctl 157 167 | prlimit64 302 261
kill 62 129 | tgkill 234 131 | fcntl 72 25 | ioctl 16 29 | sched_setaffinity 203 122 | recvmsg 47 212
"""
_FORBIDDEN = """
ptrace 101 117 | process_vm_readv 310 270 | io_uring_setup 425 425 | keyctl 250 219 | bpf 321 280 | mount 165 40
unshare 272 97 | perf_event_open 298 241 | seccomp 317 277 | landlock_create_ruleset 444 444
landlock_add_rule 445 445 | landlock_restrict_self 446 446 | execve 59 221
"""


@cache
def _numbers(table: str, machine: str) -> dict[str, int]:
    column = _COLUMNS.get(machine)
    if column is None:
        return {}
    rows = (cell.split() for line in table.strip().split("\n") for cell in line.split(" | "))
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def free_calls(machine: str) -> dict[str, int]:
    """Return the calls that are allowed whatever their arguments are."""
    return _numbers(_FREE, machine)


def checked_calls(machine: str) -> dict[str, int]:
    """Return the calls that are allowed with some arguments only."""
    return _numbers(_CHECKED, machine)


@cache
def call_number(name: str) -> int | None:
    """Return the number of any call that is named here, on this machine; None where it has none or the machine is another."""
    machine = os.uname().machine
    return _numbers(_FREE + _CHECKED.lstrip("\n") + _FORBIDDEN.lstrip("\n"), machine).get(name)
