"""What a read comes to: the value, the reader's refusal, or one line on the limit that was met or how the process ended. Pure."""

import os
import signal
from dataclasses import dataclass

from core.errors import one_line
from core.format import memory as written_size
from intake.sandbox.limits import LOG_BYTES, Limits, ReaderFault, Refused, Stopped
from intake.sandbox.wire import JSON, Frames, Malformed, decode

_LAST_WORDS = 160


@dataclass(frozen=True, slots=True)
class Ending:
    """How a read ended.

    Args:
        stop: which limit the parent saw met, or what was wrong with what the worker sent; empty for neither.
        status: of the child as `waitpid` gives it; None when the worker was ended, or ended itself.
        used_s: processor time of the child.
        frames: what it sent.
        tail: the last of what it printed.
    """

    stop: str
    status: int | None
    used_s: float
    frames: Frames
    tail: str


def judge(ending: Ending, shown: str, reader: str, limits: Limits) -> JSON:
    """Return the value that was read.

    Args:
        ending: how the read ended.
        shown: what the input is called, fit to be shown.
        reader: name of the reader.
        limits: those of the read.

    Raises:
        Refused, Stopped, ReaderFault: it ended otherwise.
    """
    if ending.stop:
        raise _stopped(ending.stop, shown, limits)
    if ending.status != 0 or len(ending.frames.bodies) != 2 or not ending.frames.whole:
        raise _ended(ending, shown, limits)
    try:
        said = decode(ending.frames.bodies[1])
    except Malformed as error:
        raise _stopped(str(error), shown, limits) from None
    match said:
        case {"value": value}:
            return value
        case {"refused": [str(got), str(expected), str(remedy)]}:
            raise Refused(got, expected, remedy)
        case {"limit": str(limit)}:
            raise _stopped(limit, shown, limits)
        case {"fault": str(fault)}:
            raise ReaderFault(
                f"{shown}, at which the reader {reader} failed ({one_line(fault, 200)})",
                "a file that it has words for",
                "tell us, and give another form of the model",
            )
        case {"denied": str(what)}:
            tried = f"{shown}, whose reading tried what the sandbox denies ({one_line(what, 200)})"
            raise Stopped("denied", tried, "a file that can be read without", "check where it came from")
        case _:
            raise _stopped("what it sent is no answer", shown, limits)


def _stopped(limit: str, shown: str, limits: Limits) -> Stopped:
    """Return the line on a limit that was met; any other word is what was wrong with the answer."""
    most = {
        "memory": f"took more than {written_size(limits.memory_bytes)} of memory",
        "processor time": f"took more than {limits.cpu_s} s of processor time",
        "time": f"took more than {limits.wall_s:g} s",
        "result": f"gave an answer of more than {written_size(limits.result_bytes)}",
        "scratch": f"made more than {written_size(limits.scratch_bytes)} of files, or too many",
        "output": f"printed more than {written_size(LOG_BYTES)} of text",
    }.get(limit)
    if most is None:
        return _other(f"whose reading was stopped: {limit}", shown)
    return Stopped(limit, f"{shown}, whose reading {most}", "less than that", "give a smaller or intact file")


def _ended(ending: Ending, shown: str, limits: Limits) -> Stopped:
    """Return the line on a process that ended without a whole answer."""
    status, words = ending.status, one_line(ending.tail[-_LAST_WORDS:])
    last = f" (it last said: {words})" if words else ""
    if status is None:
        return _other(f"whose reading ended with its worker{last}", shown)
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGXCPU or (number == signal.SIGKILL and ending.used_s >= limits.cpu_s):
        return _stopped("processor time", shown, limits)
    if number == signal.SIGXFSZ:
        return _stopped("scratch", shown, limits)
    if number and any(mark in ending.tail for mark in ("bad_alloc", "MemoryError", "annot allocate memory")):
        return _stopped("memory", shown, limits)
    if number:
        return _other(f"whose reading was {_SIGNALS.get(number, f'ended by signal {number}')}{last}", shown)
    if os.WEXITSTATUS(status):
        return _other(f"whose reading ended with exit code {os.WEXITSTATUS(status)}{last}", shown)
    if ending.frames.bodies and not ending.frames.whole:
        return _other("whose reading ended in the middle of its answer", shown)
    if len(ending.frames.bodies) > 2:
        return _other("whose reading gave more than one answer", shown)
    return _other(f"whose reading ended without an answer{last}", shown)


_SIGNALS: dict[int, str] = {
    signal.SIGKILL: "killed (SIGKILL), by someone or by the kernel for lack of memory",
    signal.SIGABRT: "aborted (SIGABRT), a failed check in native code",
    signal.SIGSEGV: "ended by a crash (SIGSEGV), bad memory access in native code",
    signal.SIGBUS: "ended by a crash (SIGBUS), a file that shrank or bad memory access",
    signal.SIGILL: "ended by a crash (SIGILL), an instruction that this processor lacks",
    signal.SIGFPE: "ended by a crash (SIGFPE), bad arithmetic in native code",
}


def _other(what: str, shown: str) -> Stopped:
    return Stopped("ended", f"{shown}, {what}", "an answer of the reader", "check that the file is whole; if it is, tell us")
