"""One side's process, from the outside: start, tell, notice every way to end, leave nothing behind."""

import contextlib
import os
import subprocess
import threading
from collections import deque
from collections.abc import Mapping

import psutil

from core.codec import to_json
from core.errors import BadInput, WorkerError, one_line
from probes.environment import ROOT, worker_environment
from probes.launcher import say_exit
from probes.process import kill_group
from probes.split.messages import Reply, Request, read_reply, write
from probes.split.side import CORES
from probes.split.words import SideSpec

LONGEST_LINE = 2**24
STDERR_KEPT = 4096
FAR_END_S = 10.0
"""Seconds that a relay may take to end its side on the other host."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class SideLost(WorkerError):
    """A side ended, or its work failed; what is needed for a `SplitFailure`."""

    def __init__(self, stage: str, reason: str, side: str = "", exit_code: int | None = None, stderr_tail: str = "") -> None:
        """Keep the parts."""
        super().__init__(one_line(reason))
        self.stage, self.side, self.exit_code, self.stderr_tail = stage, side, exit_code, stderr_tail


def side_environment(spec: SideSpec, inherited: Mapping[str, str], home: str, run_id: str) -> dict[str, str]:
    """Return the whole environment of one side.

    Args:
        spec: of the side.
        inherited: the coordinator's own.
        home: data directory, for compile caches.
        run_id: marks the process.
    """
    from pathlib import Path

    result = worker_environment(spec.runtime, spec.device_kind, inherited, Path(home), run_id, spec.vendor)
    result |= dict(spec.visible)
    if spec.cores:
        result[CORES] = ",".join(str(core) for core in spec.cores)
        result |= dict.fromkeys(THREADS, str(len(spec.cores)))
    return result


class SideHandle:
    """One running side.

    Args:
        spec: of the side; one that is reached through Ray is started by a relay.
        environment: complete.
        keep: descriptors that it takes over.
        memory_bytes: resident size that a relay holds it to; here its owner does, by `resident_bytes`.

    Raises:
        SideLost: it could not be started.
    """

    def __init__(self, spec: SideSpec, environment: Mapping[str, str], keep: tuple[int, ...], memory_bytes: int = 0) -> None:
        self.spec = spec
        request_read, self._requests = os.pipe()
        self.replies, reply_write = os.pipe()
        os.set_blocking(self.replies, False)
        pipes = [str(os.getpid()), str(request_read), str(reply_write)]
        command = [spec.interpreter, "-m", "probes.split.side", *pipes]
        if spec.reach is not None:
            command = [spec.interpreter, "-m", "probes.split.relay", *pipes, to_json(spec), str(memory_bytes)]
        try:
            self.process = subprocess.Popen(  # noqa: S603 - our own module in an interpreter that the user chose
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=dict(environment),
                cwd=ROOT,
                pass_fds=(request_read, reply_write, *keep),
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._requests)
            os.close(self.replies)
            reason = f"got no process from {spec.interpreter}: {error}; expected a Python; check the path"
            raise SideLost("start", reason, spec.name) from None
        finally:
            os.close(request_read)
            os.close(reply_write)
        self._buffer = bytearray()
        self._tail: deque[bytes] = deque(maxlen=8)
        self._drain = threading.Thread(target=self._keep_stderr, daemon=True)
        self._drain.start()
        self._open = True

    def tell(self, request: Request) -> None:
        """Send a request without waiting; raises SideLost when the side is not there."""
        self.pass_on(write(request))

    def pass_on(self, line: bytes) -> None:
        """Send a request as it is written; as `tell`."""
        try:
            os.write(self._requests, line)
        except OSError:
            raise self.lost("start") from None

    def heard(self, stage: str) -> tuple[Reply, ...]:
        """Return the replies that are there, without waiting.

        Args:
            stage: of the work, for the failure.

        Raises:
            SideLost: it ended, or sent something else.
        """
        try:
            return tuple(read_reply(line) for line in self.lines(stage).splitlines())
        except BadInput as error:
            raise SideLost(stage, f"got a reply that is not one: {error}", self.spec.name) from None

    def lines(self, stage: str) -> bytes:
        """Return the whole lines that are there, without waiting; as `heard`."""
        try:
            part = os.read(self.replies, 2**20)
        except BlockingIOError:
            return b""
        if not part:
            raise self.lost(stage)
        self._buffer += part
        if len(self._buffer) > LONGEST_LINE:
            raise SideLost(stage, "got a reply without end; expected lines; the side was killed", self.spec.name)
        end = self._buffer.rfind(b"\n") + 1
        lines, self._buffer = bytes(self._buffer[:end]), self._buffer[end:]
        return lines

    def lost(self, stage: str) -> SideLost:
        """Return how it ended, having waited for it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=2)
        self._drain.join(timeout=1)
        tail = b"".join(self._tail)[-STDERR_KEPT:].decode("utf-8", "replace")
        code = self.process.poll()
        reason = say_exit(code).replace("the worker", f"side {self.spec.name}", 1)
        return SideLost(stage, reason, self.spec.name, code, tail)

    def resident_bytes(self) -> int:
        """Return its resident size; 0 when it cannot be told."""
        try:
            return int(psutil.Process(self.process.pid).memory_info().rss)
        except psutil.Error:
            return 0

    def close(self) -> None:
        """End it and everything that it started; may be called twice."""
        if not self._open:
            return
        self._open = False
        os.close(self._requests)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=0.5 if self.spec.reach is None else FAR_END_S)
        kill_group(self.process.pid)
        self.process.wait()
        self._drain.join(timeout=2)
        os.close(self.replies)
        if self.process.stderr:
            self.process.stderr.close()

    def _keep_stderr(self) -> None:
        stream = self.process.stderr
        assert stream is not None
        with contextlib.suppress(OSError, ValueError):
            while part := os.read(stream.fileno(), 2**16):
                self._tail.append(part[-STDERR_KEPT:])
