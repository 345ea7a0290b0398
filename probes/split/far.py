"""A side on another host: an actor of a Ray cluster that starts it there, hands lines to and fro and ends with it.

Which node it is, Ray decides by what is asked for; it also shows the actor no other accelerator than its own. The framework's
Python is the node's: `TANDEM_PYTHON_<RUNTIME>` where the node has it set, else the one that Ray itself runs in.
"""

import os
import selectors
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from core.errors import WorkerError
from probes.split.handle import SideHandle, SideLost, side_environment
from probes.split.side import HOST
from probes.split.words import SideSpec

SHOWN = (
    "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "TPU_VISIBLE_CHIPS", "TPU_CHIPS_PER_HOST_BOUNDS",
    "TPU_HOST_BOUNDS",
)  # fmt: skip
"""Variables by which Ray shows an actor its own accelerators."""
LEASES = Path(tempfile.gettempdir()) / "tandem-leases"
HOME = Path(tempfile.gettempdir()) / "tandem-fleet"


class Far:
    """The actor: one side, from its start to its end.

    Args:
        runtime, kind: of the side.
        name: of the side, for words.
        cores: that it is kept on where it runs on a processor; 0 for no limit.
        memory_bytes: resident size that it is ended at.

    Raises:
        WorkerError: it could not be started.
    """

    def __init__(self, runtime: str, kind: str, name: str, cores: int, memory_bytes: int) -> None:
        ray: Any = import_module("ray")
        python = os.environ.get(f"TANDEM_PYTHON_{runtime.upper().replace('-', '_')}", sys.executable)
        self._held: list[Any] = []
        self._memory_bytes = memory_bytes
        mine = self._cores(cores) if kind == "cpu" and cores and hasattr(os, "sched_getaffinity") else ()
        shown = tuple((variable, os.environ[variable]) for variable in SHOWN if kind != "cpu" and variable in os.environ)
        spec = SideSpec(name, runtime, kind, python, mine, visible=shown)
        environment = side_environment(spec, os.environ, str(HOME), "") | {HOST: ray.util.get_node_ip_address()}
        self._side = SideHandle(spec, environment, ())

    def _cores(self, wanted: int) -> tuple[int, ...]:
        """Hold so many cores that no other side of this host holds; Ray counts processors, but keeps nobody on his own."""
        found: list[int] = []
        LEASES.mkdir(parents=True, exist_ok=True)
        for core in sorted(os.sched_getaffinity(0)):
            if len(found) == wanted:
                break
            lock: Any = FileLock(LEASES / f"core-{core}.lock", mode=0o666, thread_local=False)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            self._held.append(lock)
            found.append(core)
        if len(found) < wanted:
            raise WorkerError(f"got {len(found)} free cores; expected {wanted}; ask for fewer, or wait for the other run")
        return tuple(found)

    def pid(self) -> int:
        """Return the process id of the side."""
        return self._side.process.pid

    def tell(self, line: bytes) -> None:
        """Pass a request on; that the side has ended is told by `heard`."""
        try:
            self._side.pass_on(line)
        except SideLost:
            return

    def heard(self, wait_s: float) -> tuple[bytes, int | None, str]:
        """Return the lines that came within a time, and how the side ended.

        Args:
            wait_s: seconds to wait for the first.

        Returns:
            Lines; the exit code, None while it lives; the end of its standard error.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._side.replies, selectors.EVENT_READ)
            selector.select(wait_s)
        if self._side.resident_bytes() > self._memory_bytes:
            self.close()
            return b"", -9, f"more than {self._memory_bytes / 2**30:.1f} GiB resident"
        try:
            return self._side.lines("run"), None, ""
        except SideLost as lost:
            self.close()
            return b"", 0 if lost.exit_code is None else lost.exit_code, lost.stderr_tail

    def close(self) -> None:
        """End the side and give its cores back; may be called twice."""
        self._side.close()
        for lock in self._held:
            lock.release()
