"""One worker process, from the outside: start, ask with limits, notice every way to end, leave nothing behind."""

import contextlib
import os
import selectors
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from core.errors import BadInput, WorkerError, one_line
from probes.environment import ROOT
from probes.messages import Reply, Request, read_reply, write
from probes.process import kill_group

LONGEST_LINE = 64 * 2**20
STDERR_KEPT = 4096
WATCH_S = 0.25


class WorkerGone(WorkerError):
    """The worker died, hung, used too much memory or broke the protocol."""

    def __init__(self, reason: str, exit_code: int | None, stderr_tail: str) -> None:
        """Keep what a `ProbeFailure` needs."""
        super().__init__(reason)
        self.reason, self.exit_code, self.stderr_tail = reason, exit_code, stderr_tail


@dataclass(frozen=True, slots=True)
class Limits:
    """What one worker may use.

    Args:
        open_s, prepare_s: seconds for importing, and for agreeing, compiling and warming up.
        sample_extra_s: seconds beyond the budget of one sampling request.
        memory_bytes: resident size at most.
    """

    open_s: float = 120.0
    prepare_s: float = 180.0
    sample_extra_s: float = 60.0
    memory_bytes: int = 8 * 2**30


class WorkerHandle:
    """One running worker.

    Args:
        interpreter: path of its Python.
        environment: complete.
        limits: what it may use.
    """

    def __init__(self, interpreter: str, environment: Mapping[str, str], limits: Limits) -> None:
        self.limits = limits
        request_read, self._request_write = os.pipe()
        self._reply_read, reply_write = os.pipe()
        command = [interpreter, "-m", "probes.worker", str(os.getpid()), str(request_read), str(reply_write)]
        try:
            self.process = subprocess.Popen(  # noqa: S603 - our own module in an interpreter that the user chose
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=dict(environment),
                cwd=ROOT,
                pass_fds=(request_read, reply_write),
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._request_write)
            os.close(self._reply_read)
            raise WorkerGone(
                one_line(f"got no process from {interpreter}: {error}; expected a Python; check the path"), None, ""
            ) from None
        finally:
            os.close(request_read)
            os.close(reply_write)
        self._tail: deque[bytes] = deque(maxlen=8)
        self._drain = threading.Thread(target=self._keep_stderr, daemon=True)
        self._drain.start()
        self._buffer = bytearray()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._reply_read, selectors.EVENT_READ)

    def tell(self, request: Request) -> None:
        """Send a request without waiting; raises WorkerGone when the worker is not there."""
        try:
            os.write(self._request_write, write(request))
        except OSError:
            raise self._gone("the worker ended before it could be asked") from None

    def hear(self, limit_s: float) -> Reply:
        """Wait for the reply to the last request.

        Raises:
            WorkerGone: it ended, took longer than `limit_s`, used too much memory, or sent something else.
        """
        deadline = time.monotonic() + limit_s
        while b"\n" not in self._buffer:
            if time.monotonic() > deadline:
                raise self._gone(f"no answer within {limit_s:.0f} s; the worker was killed")
            for _ in self._selector.select(WATCH_S):
                part = os.read(self._reply_read, 2**16)
                if not part:
                    raise self._gone("")
                self._buffer += part
            if len(self._buffer) > LONGEST_LINE:
                raise self._gone("a reply without end; the worker was killed")
            self._watch_memory()
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        try:
            return read_reply(line)
        except BadInput as error:
            raise self._gone(one_line(f"a reply that is not one: {error}", 160)) from None

    def ask(self, request: Request, limit_s: float) -> Reply:
        """Send a request and wait for its reply; raises WorkerGone as `hear` does."""
        self.tell(request)
        return self.hear(limit_s)

    def close(self) -> None:
        """End the worker and everything that it started; may be called twice."""
        with contextlib.suppress(OSError):
            os.close(self._request_write)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=0.5)
        kill_group(self.process.pid)
        self.process.wait()
        self._drain.join(timeout=2)
        with contextlib.suppress(OSError, KeyError, ValueError):
            self._selector.close()
            os.close(self._reply_read)
        if self.process.stderr:
            self.process.stderr.close()

    def _watch_memory(self) -> None:
        try:
            resident = psutil.Process(self.process.pid).memory_info().rss
        except psutil.Error:
            return
        if resident > self.limits.memory_bytes:
            used, allowed = resident / 2**30, self.limits.memory_bytes / 2**30
            raise self._gone(f"out of memory: {used:.1f} GiB resident of {allowed:.1f} GiB allowed; the worker was killed")

    def _gone(self, reason: str) -> WorkerGone:
        if not reason:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=2)
            reason = say_exit(self.process.poll())
        self.close()
        tail = b"".join(self._tail)[-STDERR_KEPT:].decode("utf-8", "replace")
        return WorkerGone(reason, self.process.returncode, tail)

    def _keep_stderr(self) -> None:
        stream = self.process.stderr
        assert stream is not None
        with contextlib.suppress(OSError, ValueError):
            while part := os.read(stream.fileno(), 2**16):
                self._tail.append(part[-STDERR_KEPT:])


def say_exit(code: int | None) -> str:
    """Return in words how a worker ended; each kind has its own sentence."""
    if code is None:
        return "the worker closed its pipe but did not end; it was killed"
    if code == 0:
        return "the worker ended without an answer"
    if code > 0:
        return f"the worker ended with exit code {code}"
    names = {
        -9: "killed (SIGKILL), by someone or by the kernel for lack of memory",
        -6: "aborted (SIGABRT), a failed check in native code",
        -11: "crashed (SIGSEGV), bad memory access in native code",
        -4: "crashed (SIGILL), an instruction that this processor lacks",
    }
    return f"the worker was {names.get(code, f'ended by signal {-code}')}"


def default_interpreter() -> str:
    """Return the interpreter of the base environment."""
    return sys.executable
