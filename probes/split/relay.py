"""Between the coordinator and a side on a node of a Ray cluster: to the one it is the side, to the other the coordinator.

`python -m probes.split.relay PARENT READ_FD WRITE_FD SIDE MEMORY`, in a Python that holds the cluster's release of Ray. It takes
the pipes of `probes.split.side`, starts an actor where the cluster has what the side needs, passes lines on, and ends as the side
does: with its exit code, or by its signal, so that nobody above has to know where it ran. When the pipe closes it lets the actor
go. Ray is imported inside functions, here and in `probes.split.far`.
"""

import os
import signal
import sys
import threading
from importlib import import_module
from typing import IO, Any

from core.codec import from_json
from core.errors import BadInput, TandemError, WorkerError, one_line
from probes.environment import ROOT
from probes.process import die_with_parent
from probes.split.cluster import check_has, told, wanted
from probes.split.messages import Faulted, write
from probes.split.words import Reach, SideSpec

PLACE_S = 90.0
"""Seconds that the cluster may take to find a node and to start the side there."""
HEARD_S = 1.0
CLOSE_S = 5.0
LEFT_OUT = (".git", ".venv", "tests", "docs", "bench", "**/__pycache__", "*.db")
STDERR_KEPT = 4096


class Relay:
    """One side on a node, from its start to its end.

    Args:
        spec: of the side, with where it is reached.
        memory_bytes: resident size that it is held to there.
    """

    def __init__(self, spec: SideSpec, memory_bytes: int) -> None:
        self.spec, self.memory_bytes = spec, memory_bytes
        self.ray: Any = import_module("ray")
        self.far: Any = None
        self._settled = threading.Event()

    def run(self, replies: IO[bytes]) -> tuple[int, str]:
        """Start the side, pass on what it says, and return its exit code and the end of its standard error."""
        try:
            assert self.spec.reach is not None
            left_out = {"working_dir": str(ROOT), "excludes": list(LEFT_OUT)}
            self.ray.init(self.spec.reach.address, log_to_driver=False, configure_logging=False, runtime_env=left_out)
            self.far = _placed(self.ray, self.spec, self.spec.reach, self.memory_bytes)
        finally:
            self._settled.set()
        while True:
            try:
                lines, code, tail = self.ray.get(self.far.heard.remote(HEARD_S))
            except self.ray.exceptions.RayActorError:
                got = f"the end of the actor of side {self.spec.name}, or of its node"
                raise WorkerError(f"got {got}; expected it to live; see Ray's dashboard, and run it again") from None
            if code is not None:
                self.let_go()
                return code, tail
            _pass(replies, lines)

    def serve(self, requests: IO[bytes]) -> None:
        """Pass on each line; when the pipe ends, the actor and this process end."""
        for line in requests:
            self._settled.wait()
            if self.far is not None:
                self.far.tell.remote(line)
        try:
            self.let_go()
        finally:
            os._exit(0)

    def let_go(self) -> None:
        """End the side and give back what the cluster gave; one that is not given back is kept for whoever might connect anew."""
        if self.far is not None:
            self.ray.get(self.far.close.remote(), timeout=CLOSE_S)
            self.ray.kill(self.far)
        self.ray.shutdown()


def main(parent: int, read_fd: int, write_fd: int, side: str, memory_bytes: int) -> None:
    """Pass lines on until the pipe closes or the side ends."""
    die_with_parent(parent)
    with os.fdopen(read_fd, "rb") as requests, os.fdopen(write_fd, "wb", 0) as replies:
        try:
            relay = Relay(from_json(SideSpec, side), memory_bytes)
            threading.Thread(target=relay.serve, args=(requests,), daemon=True).start()
            code, tail = relay.run(replies)
        except Exception as error:  # noqa: BLE001 - outermost frame of a process: whatever Ray throws becomes data
            _pass(replies, write(Faulted("", one_line(_said(error)))))
            threading.Event().wait()  # the other thread ends this when nobody asks any more
            return
        _end_as(code, tail)


def _placed(ray: Any, spec: SideSpec, reach: Reach, memory_bytes: int) -> Any:
    """Return the actor, started where the cluster has what is asked for.

    Raises:
        BadInput: nothing of the cluster has it, or it is taken.
    """
    from probes.split.far import Far  # what it imports, Ray brings along

    needs: dict[str, Any] = {"num_cpus": 0}
    if reach.resource == "CPU":
        needs["num_cpus"] = reach.amount
    elif reach.resource == "GPU":
        needs["num_gpus"] = reach.amount
    else:
        needs["resources"] = {reach.resource: reach.amount}
    if reach.model:
        needs["accelerator_type"] = reach.model
    resources = ray.cluster_resources()
    check_has(resources, reach)
    actor = ray.remote(Far).options(max_restarts=0, max_concurrency=2, **needs)
    cores = reach.amount if reach.resource == "CPU" else 0
    far = actor.remote(spec.runtime, spec.device_kind, spec.name, cores, memory_bytes)
    try:
        ray.get(far.pid.remote(), timeout=PLACE_S)
    except ray.exceptions.GetTimeoutError:
        expected = f"one within {PLACE_S:.0f} s; the cluster has {told(resources)}"
        raise BadInput(f"no node with {wanted(reach)} free", expected, "wait for the other run, or ask for less") from None
    return far


def _pass(replies: IO[bytes], lines: bytes) -> None:
    rest = memoryview(lines)
    while rest:
        rest = rest[replies.write(rest) :]


def _said(error: Exception) -> str:
    """Return our own words, or the last line of Ray's: before it stands where that came from."""
    if isinstance(error, TandemError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else 'no word'}"


def _end_as(code: int, tail: str) -> None:
    """End with an exit code, or by the signal that a negative one stands for."""
    sys.stderr.write(tail[-STDERR_KEPT:])
    sys.stderr.flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(max(code, 0))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
