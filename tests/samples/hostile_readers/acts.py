"""One reader with many faults: `options["act"]` names the one that it commits."""

import ctypes
import fcntl
import json
import mmap
import os
import pickle
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.errors import BadInput

_HELD: list[Any] = []


def _answer_descriptor() -> int:
    """Find the pipe on which the answer is sent: the only one open for writing besides what is printed."""
    for number in range(3, 64):
        try:
            if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
                return number
        except OSError:
            continue
    raise AssertionError("no pipe")


def _mark() -> bytes:
    """Find the mark of this read in the frames of the callers, as code that took over could."""
    frame = sys._getframe()
    while frame is not None:
        if isinstance(frame.f_locals.get("mark"), bytes):
            return frame.f_locals["mark"]
        frame = frame.f_back
    raise AssertionError("no mark")


def _send(*parts: bytes) -> None:
    for part in parts:
        os.write(_answer_descriptor(), part)
    os._exit(0)


def _frame(body: bytes, length: int | None = None, mark: bytes | None = None) -> bytes:
    return struct.pack("<16sQ", mark or _mark(), len(body) if length is None else length) + body


def slowly(options: dict[str, Any]) -> None:
    while True:
        _HELD.append(bytearray(4 * 2**20))


def at_once(options: dict[str, Any]) -> None:
    _HELD.append(bytearray(2**44))


def mapped(options: dict[str, Any]) -> None:
    while True:
        _HELD.append(mmap.mmap(-1, 64 * 2**20))


def burn(options: dict[str, Any]) -> None:
    while True:
        pass


def burn_deaf(options: dict[str, Any]) -> None:
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while True:
        pass


def burn_threads(options: dict[str, Any]) -> None:
    for _ in range(4):
        threading.Thread(target=burn, args=(options,), daemon=True).start()
    burn(options)


def sleep_for_ever(options: dict[str, Any]) -> None:
    while True:
        time.sleep(3600)


def print_for_ever(options: dict[str, Any]) -> None:
    block = b"x\x1b[31m" * 2**15
    for _ in range(2**30 // len(block)):
        os.write(1, block)


def print_little(options: dict[str, Any]) -> str:
    os.write(2, b"\x1b]0;title\x07 \xff\n")
    return "said"


def fork(options: dict[str, Any]) -> None:
    if os.fork() == 0:
        time.sleep(3600)


def fork_and_detach(options: dict[str, Any]) -> str:
    """Leave a grandchild in a session of its own, wherever that is not denied."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(3600)
        os._exit(0)
    return "left one behind"


def fork_bomb(options: dict[str, Any]) -> None:
    while True:
        os.fork()


def threads(options: dict[str, Any]) -> None:
    while True:
        threading.Thread(target=sleep_for_ever, args=(options,), daemon=True).start()


def descriptors(options: dict[str, Any]) -> None:
    _HELD.extend(os.pipe() for _ in range(100_000))


def program(options: dict[str, Any]) -> None:
    os.execv("/bin/sh", ["sh", "-c", f"echo taken > {options['target']}"])


def write_file(options: dict[str, Any]) -> None:
    Path(options["target"]).write_text("taken", encoding="utf-8")


def read_file(options: dict[str, Any]) -> str:
    return Path(options["target"]).read_text(encoding="utf-8")


def link_out(options: dict[str, Any]) -> str:
    Path("link").symlink_to(options["target"])
    return Path("link").read_text(encoding="utf-8")


def change_mode(options: dict[str, Any]) -> None:
    Path(options["target"]).chmod(0o777)


def connect(options: dict[str, Any]) -> None:
    socket.create_connection(("127.0.0.1", options["port"]), timeout=5)


def datagram(options: dict[str, Any]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.sendto(b"taken", ("127.0.0.1", options["port"]))


def kill_parent(options: dict[str, Any]) -> None:
    os.kill(options["parent"], signal.SIGKILL)


def kill_leader(options: dict[str, Any]) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    os.killpg(os.getpgid(0), signal.SIGKILL)


def kill_all(options: dict[str, Any]) -> None:
    os.kill(-1, signal.SIGKILL)


def fill_scratch(options: dict[str, Any]) -> None:
    number = 0
    while True:
        Path(str(number)).write_bytes(bytes(2**20))
        number += 1


def fill_one_file(options: dict[str, Any]) -> None:
    with Path("one").open("wb") as file:
        while True:
            file.write(bytes(2**20))


def many_files(options: dict[str, Any]) -> None:
    number = 0
    while True:
        Path(str(number)).touch()
        number += 1


def nameless_file(options: dict[str, Any]) -> None:
    os.open(".", os.O_TMPFILE | os.O_WRONLY)


def hidden_memory(options: dict[str, Any]) -> None:
    os.memfd_create("hidden")


def use_scratch(options: dict[str, Any]) -> str:
    Path("note").write_text("kept for a while", encoding="utf-8")
    return Path("note").read_text(encoding="utf-8")


def crash(options: dict[str, Any]) -> None:
    ctypes.string_at(0)


def abort(options: dict[str, Any]) -> None:
    os.abort()


def illegal(options: dict[str, Any]) -> None:
    signal.raise_signal(signal.SIGILL)


def kill_itself(options: dict[str, Any]) -> None:
    signal.raise_signal(signal.SIGKILL)


def exit_0(options: dict[str, Any]) -> None:
    os._exit(0)


def exit_7(options: dict[str, Any]) -> None:
    os._exit(7)


def leave(options: dict[str, Any]) -> None:
    sys.exit("going")


def recurse(options: dict[str, Any]) -> None:
    recurse(options)


def half_a_message(options: dict[str, Any]) -> None:
    _send(_frame(b'{"value":', 4000))


def half_a_header(options: dict[str, Any]) -> None:
    _send(_frame(b"")[:20])


def great_length(options: dict[str, Any]) -> None:
    _send(_frame(b"", 10 * 2**30))


def another_run(options: dict[str, Any]) -> None:
    _send(_frame(b'{"value":1}', mark=bytes(16)))


def pickled(options: dict[str, Any]) -> None:
    class Taken:
        def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
            return os.mkdir, (options["target"],)

    body = pickle.dumps({"value": Taken()})
    _send(_frame(body))


def two_answers(options: dict[str, Any]) -> None:
    _send(_frame(b'{"value":1}'), _frame(b'{"value":2}'))


def answer_and_stay(options: dict[str, Any]) -> None:
    os.write(_answer_descriptor(), _frame(b'{"value":1}'))
    sleep_for_ever(options)


def answer_and_crash(options: dict[str, Any]) -> None:
    os.write(_answer_descriptor(), _frame(b'{"value":1}'))
    crash(options)


def deep_answer(options: dict[str, Any]) -> None:
    _send(_frame(b'{"value":' + b"[" * 100_000 + b"]" * 100_000 + b"}"))


def infinite_answer(options: dict[str, Any]) -> None:
    _send(_frame(b'{"value":1e999}'))


def huge_number(options: dict[str, Any]) -> None:
    _send(_frame(b'{"value":' + b"9" * 10_000 + b"}"))


def half_a_pair(options: dict[str, Any]) -> None:
    _send(_frame(b'{"value":"\\ud800"}'))


def other_answer(options: dict[str, Any]) -> None:
    _send(_frame(json.dumps({"refused": ["one"]}).encode()))


def long_answer(options: dict[str, Any]) -> str:
    return "x" * options["length"]


def endless_answer(options: dict[str, Any]) -> None:
    while True:
        os.write(_answer_descriptor(), bytes(2**16))


def no_json(options: dict[str, Any]) -> Any:
    return {1j: object()}


def not_a_number(options: dict[str, Any]) -> float:
    return float("nan")


def fault(options: dict[str, Any]) -> Any:
    return {}["missing"]


def refuse(options: dict[str, Any]) -> None:
    raise BadInput("a file\nof two \x1b[31mlines", "one", "mend it")


def read(source: Any, options: dict[str, Any]) -> Any:
    """Commit the fault that the options name."""
    return globals()[options["act"]](options)
