"""The side of the portal: starts a worker, hands it inputs, takes one answer for each, and leaves nothing behind.

What a worker sends is never trusted: an answer is taken only as one whole frame of JSON with the mark of this read, from a
process that then ended by itself. Everything else is one line that says which limit was met or how the process ended.
"""

import contextlib
import json
import os
import secrets
import selectors
import socket
import subprocess
import sys
import sysconfig
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Self

from core.codec import from_plain
from core.errors import WorkerError, one_line
from intake.sandbox.closing import Closed
from intake.sandbox.endings import end_all
from intake.sandbox.limits import LOG_BYTES, LOG_KEPT_BYTES, WITH_LIBRARIES, Limits
from intake.sandbox.offering import Offer, bytes_descriptor
from intake.sandbox.outcome import Ending, judge
from intake.sandbox.scratch import Scratch, is_full, remove_stale
from intake.sandbox.wire import JSON, MARK_BYTES, SPARE_BYTES, STATUS, Frames, Malformed, decode

ROOT = Path(__file__).resolve().parent.parent.parent
_WATCH_S = 0.1
_ROOMS = ("core", "catalog", "intake")
_START = """
import sys, types
root, control, parent = sys.argv[1:]
for name in ("intake", "intake.sandbox"):
    package = types.ModuleType(name)
    package.__path__ = [root + "/" + name.replace(".", "/")]
    sys.modules[name] = package
sys.path.append(root)
from intake.sandbox.worker import main
main(int(control), int(parent))
"""
"""Starts the worker; the two packages are entered without their contents, which a reader has no use for."""
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "JAX_PLATFORMS": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}


class Sandbox:
    """Reads inputs one after the other, each in a process of its own that is closed off before it sees the input.

    It belongs to one thread: the kernel ends the worker with the thread that made the first read.

    Args:
        reader: name of a module of `package` with `read(source, options)` and, where it asks libraries, `NEEDS`, their names, and
            maybe `prepare()`, which imports those parts of them that it will use.
        limits: for each input; by default those of a reader of its kind.
        package: where readers are.
        preload: import the libraries once, before the sandbox is closed, rather than for each input.
    """

    def __init__(
        self, reader: str, limits: Limits | None = None, *, package: str = "intake.readers", preload: bool = False
    ) -> None:
        module = import_module(f"{package}.{reader}")
        self.reader = reader
        self.needs: tuple[str, ...] = tuple(getattr(module, "NEEDS", ()))
        self.limits = limits or (WITH_LIBRARIES if self.needs else Limits())
        self.closed: Closed | None = None
        folder = Path(str(module.__file__)).resolve().parent
        root = folder.parents[package.count(".")]
        libraries = [path for path in dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))) if self.needs]
        self._setup = {
            "reader": module.__name__,
            "needs": self.needs,
            "preload": preload,
            "limits": asdict(self.limits),
            "paths": [*([] if root == ROOT else [str(root)]), *libraries],
            "readable": [*_interpreter_paths(), *(str(ROOT / room) for room in _ROOMS), str(folder), *libraries],
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._log_read = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def leader(self) -> int | None:
        """Process id of the worker, which is that of its group and session; None while there is none."""
        return self._process.pid if self._process else None

    def read(self, source: Path | bytes, options: Mapping[str, JSON] | None = None, name: str = "") -> JSON:
        """Return what the reader makes of an input.

        Args:
            source: a file or folder that the user may read, or bytes.
            options: for the reader.
            name: what the input is called; by default the last part of its path.

        Raises:
            BadInput: `Refused` with the reader's words, `Stopped` by a limit or another ending, `ReaderFault`, or no such input.
            WorkerError: no process can be started.
        """
        offer = Offer(source, name)
        alive = False
        scratch = Scratch()
        try:
            ending = self._ask(offer, scratch.path, dict(options or {}))
            alive = ending.status is not None
        finally:
            if not alive:
                self.close()
            offer.close()
            # last, when nobody is left who could write to it
            scratch.remove()
        return judge(ending, offer.shown, self.reader, self.limits)

    def close(self) -> None:
        """End the worker and whatever it started; may be called twice."""
        process, self._process = self._process, None
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if process is not None:
            end_all(process, sealed=self.closed is not None and self.closed.filtered)
        if self._log_read >= 0:
            os.close(self._log_read)
            self._log_read = -1

    def _start(self) -> socket.socket:
        """Start a worker unless one is there."""
        if self._channel is not None:
            return self._channel
        remove_stale()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._log_read, log_write = os.pipe()
        os.set_blocking(self._log_read, False)
        command = [sys.executable, "-I", "-S", "-c", _START, str(ROOT), str(theirs.fileno()), str(os.getpid())]
        self._channel = ours
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own module in our own interpreter
                command,
                stdin=subprocess.DEVNULL,
                stdout=log_write,
                stderr=log_write,
                env=_ENVIRONMENT,
                cwd="/",
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError as error:
            self.close()
            reason = f"got no process to read in: {error}; expected one; free some memory or processes"
            raise WorkerError(one_line(reason)) from None
        finally:
            theirs.close()
            os.close(log_write)
        setup = bytes_descriptor(json.dumps(self._setup).encode())
        with contextlib.suppress(OSError):
            socket.send_fds(ours, [b"S"], [setup])
        os.close(setup)
        return ours

    def _ask(self, offer: Offer, scratch: Path, options: dict[str, JSON]) -> Ending:
        """Hand over one input and follow the worker until it ends or meets a limit."""
        channel = self._start()
        mark = secrets.token_bytes(MARK_BYTES)
        question = {
            "scratch": str(scratch.resolve()),
            "name": offer.name,
            "files": offer.files,
            "options": options,
            "mark": mark.hex(),
        }
        asked = bytes_descriptor(json.dumps(question).encode())
        answer_read, answer_write = os.pipe()
        os.set_blocking(answer_read, False)
        try:
            with contextlib.suppress(OSError):
                socket.send_fds(channel, [b"R"], [asked, answer_write, offer.given])
            os.close(answer_write)
            answer_write = -1
            offer.close_given()
            follower = _Follower(channel, answer_read, self._log_read, offer, scratch, mark, self.limits)
            ending = follower.follow()
        finally:
            for descriptor in (asked, answer_read, answer_write):
                if descriptor >= 0:
                    os.close(descriptor)
        if follower.frames.bodies:
            with contextlib.suppress(Malformed):
                self.closed = from_plain(Closed, decode(follower.frames.bodies[0]))
        return ending


def _interpreter_paths() -> tuple[str, ...]:
    """Return where the standard library lies: its folders, and the archive that it may be in."""
    paths = (sysconfig.get_path("stdlib"), *(one for one in sys.path if one.endswith((".zip", "lib-dynload"))))
    return tuple(dict.fromkeys(str(Path(path).resolve()) for path in paths))


class _Follower:
    """Follows one read to its end."""

    def __init__(
        self, channel: socket.socket, answer: int, log: int, offer: Offer, scratch: Path, mark: bytes, limits: Limits
    ) -> None:
        self.frames = Frames(mark, limits.result_bytes + SPARE_BYTES)
        self._channel, self._answer, self._log, self._offer = channel, answer, log, offer
        self._scratch, self._limits = scratch, limits
        self._status = bytearray()
        self._printed = 0
        self._tail: deque[bytes] = deque(maxlen=2)
        self._stop = ""

    def follow(self) -> Ending:
        """Return how the read ended."""
        started = time.monotonic()
        deadline, look = started + self._limits.wall_s, started + _WATCH_S
        over = False
        with selectors.DefaultSelector() as selector:
            for descriptor in (self._channel.fileno(), self._answer, self._log):
                selector.register(descriptor, selectors.EVENT_READ)
            if self._offer.broker is not None:
                selector.register(self._offer.broker, selectors.EVENT_READ)
            while not over and not self._stop:
                for key, _ in selector.select(_WATCH_S):
                    over = self._take(selector, key.fd) or over
                now = time.monotonic()
                if now > deadline and not over:
                    self._stop = "time"
                elif now > look:
                    look = now + _WATCH_S
                    self._watch_scratch()
        if over:
            # the child has ended: what it said lies in the pipes
            self._drain()
            self._watch_scratch()
        tail = b"".join(self._tail)[-LOG_KEPT_BYTES:].decode("utf-8", "replace")
        status, used_us = STATUS.unpack(self._status) if len(self._status) == STATUS.size else (None, 0)
        return Ending(self._stop, None if self._stop else status, used_us * 1e-6, self.frames, tail)

    def _take(self, selector: selectors.BaseSelector, descriptor: int) -> bool:
        """Take what one of the descriptors has; returns whether the read is over."""
        if descriptor == self._channel.fileno():
            part = _heard(self._channel, STATUS.size - len(self._status))
            self._status += part
            return not part or len(self._status) == STATUS.size
        if self._offer.broker is not None and descriptor == self._offer.broker.fileno():
            if not self._offer.serve():
                selector.unregister(self._offer.broker)
                self._offer.hang_up()
            return False
        more = self._take_answer() if descriptor == self._answer else self._take_log()
        if not more:
            selector.unregister(descriptor)
        return False

    def _drain(self) -> None:
        while not self._stop and self._take_answer():
            pass
        while not self._stop and self._take_log():
            pass

    def _take_answer(self) -> bool:
        """Take some of the answer; returns whether there may be more."""
        part = _some(self._answer)
        try:
            self.frames.take(part)
        except Malformed as error:
            self._stop = str(error)
        return bool(part)

    def _take_log(self) -> bool:
        part = _some(self._log)
        self._printed += len(part)
        if part:
            self._tail.append(part[-LOG_KEPT_BYTES:])
        if self._printed > LOG_BYTES:
            self._stop = "output"
        return bool(part)

    def _watch_scratch(self) -> None:
        if not self._stop and is_full(self._scratch, self._limits.scratch_bytes):
            self._stop = "scratch"


def _heard(channel: socket.socket, most: int) -> bytes:
    """Return what the worker tells; nothing when it is gone, even if it left something unread."""
    try:
        return channel.recv(most)
    except ConnectionError:
        return b""


def _some(descriptor: int) -> bytes:
    """Return what is there to be read now; nothing at the end, and nothing when there is nothing."""
    try:
        return os.read(descriptor, 2**18)
    except BlockingIOError:
        return b""
