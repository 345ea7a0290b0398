"""Where drills happen: a home of its own on a small file system, the processes of a run found by their mark, and the checks."""

import json
import os
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from bench.compiled import build
from core.errors import BadInput
from services.context import Context, make_context
from services.processes import RUN_VARIABLE

REPOSITORY = Path(__file__).resolve().parent.parent.parent
SPACE = "64m"
"""Size of the file system that the home lies on."""
END_S = 10.0
_CHECK = (
    "import json, sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=10); "
    "said = [r[0] for r in c.execute('PRAGMA integrity_check')]; "
    "said += ['broken reference %s' % (r,) for r in c.execute('PRAGMA foreign_key_check')]; print(json.dumps(said))"
)
DOCUMENT: dict[str, Any] = {
    "schema": 1,
    "name": "drill",
    "task": "infer",
    "batch": 8,
    "dtype": "fp32",
    "model": {
        "blocks": [
            {
                "name": f"tower {width}",
                "kind": "dense_tower",
                "repeats": 1,
                "widths": [width, width],
                "activation": "relu",
                "last_activation": "relu",
                "first": 1,
            }
            for width in (64, 96, 128, 160, 192, 224, 256, 320)
        ]
    },
}


@contextmanager
def small_disk(folder: Path) -> Generator[bool]:
    """Mount a small file system in memory on a folder while root may; yields whether it did."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ("mount", "-t", "tmpfs", "-o", f"size={SPACE},mode=0700", "tandem-drill", str(folder))
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(("umount", "--lazy", str(folder)), check=False)


def fill(folder: Path) -> Path:
    """Write a file until the file system is full, and return it."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        size = 2**20
        while size >= 1:
            try:
                file.write(b"\0" * size)
            except OSError:
                size //= 2
    return filler


class Scene:
    """One home, one folder of leases, and the preloaded clock, for all drills.

    Args:
        folder: for everything.
        mounted: whether the home lies on a file system that may be filled.
    """

    def __init__(self, folder: Path, *, mounted: bool) -> None:
        self.folder, self.mounted = folder, mounted
        self.home, self.leases = folder / "home", folder / "leases"
        self.database = self.home / "tandem.db"
        self.clock_file = folder / "clock"
        self.preload = self._compile()
        self.set_clock(0)
        self.here: Context = make_context(self.environment())

    def environment(self) -> dict[str, str]:
        """Return the environment of a supervisor without faults."""
        plain = {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")}
        return plain | {
            "TANDEM_HOME": str(self.home),
            "TANDEM_LEASES": str(self.leases),
            "PYTHONPATH": str(REPOSITORY),
            "TANDEM_OWNER": "drill",
        }

    def set_clock(self, jump_s: int) -> None:
        """Move the wall clock of every process that has it preloaded."""
        with self.clock_file.open("r+b" if self.clock_file.exists() else "wb") as file:
            file.write(struct.pack("=q", jump_s))

    def preloaded(self) -> dict[str, str]:
        """Return the variables that preload the clock."""
        if self.preload is None:
            return {}
        return {"LD_PRELOAD": str(self.preload), "CLOCK_JUMP_FILE": str(self.clock_file)}

    def wrapper(self) -> Path:
        """Return an interpreter that preloads the clock, for a worker."""
        script = self.folder / "python-with-clock"
        words = " ".join(f"{name}='{value}'" for name, value in self.preloaded().items())
        script.write_text(f'#!/bin/sh\nexec env {words} "{sys.executable}" "$@"\n', encoding="utf-8")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return script

    def _compile(self) -> Path | None:
        try:
            return build("clock_jump.c", self.folder, "-fPIC", "-shared", "-ldl")
        except BadInput:
            return None


class Stage:
    """One run with its supervisor; everything that it told is kept."""

    def __init__(self, scene: Scene, request: dict[str, Any], environment: dict[str, str]) -> None:
        self.scene = scene
        self.run_id = ""
        self.told: list[tuple[str, str, str]] = []
        self.errors: list[str] = []
        self.seen: dict[int, float] = {}
        self.acknowledged = threading.Event()
        self.supervisor = subprocess.Popen(
            (sys.executable, "-P", "-m", "bench.drills.supervisor", json.dumps(request)),
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.supervisor.stdout is not None
        for line in self.supervisor.stdout:
            with suppress(ValueError):
                said = json.loads(line)
                if "run" in said:
                    self.run_id = said["run"]
                    self.acknowledged.set()
                elif "outcome" in said:
                    self.told.append(tuple(said["outcome"]))
                elif "error" in said:
                    self.errors.append(said["error"])
        self.acknowledged.set()

    def processes(self) -> dict[str, list[int]]:
        """Return the living processes of the run by part, and remember them."""
        found: dict[str, list[int]] = {"run": [], "worker": [], "other": []}
        for pid in marked_pids(self.run_id):
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                words = process.cmdline()
                part = "worker" if "probes.worker" in words else "run" if "work" in words else "other"
                self.seen[pid] = process.create_time()
                found[part].append(pid)
        return found

    def wait_for(self, part: str, limit_s: float, over: Callable[[], bool]) -> int | None:
        """Return a process of the run, waiting for it; None when the run is over before."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end and not over():
            found = [self.supervisor.pid] if part == "supervisor" else self.processes()[part]
            if found:
                return found[0]
            time.sleep(0.05)
        return None

    def end(self) -> None:
        """End the supervisor, so that nothing of a drill reaches into the next."""
        with suppress(ProcessLookupError):
            os.kill(self.supervisor.pid, signal.SIGCONT)
        try:
            self.supervisor.wait(END_S)
        except subprocess.TimeoutExpired:
            self.supervisor.kill()
            self.supervisor.wait()
        self._reader.join(END_S)
        if self.supervisor.stdout:
            self.supervisor.stdout.close()


def marked_pids(run_id: str) -> list[int]:
    """Return every process that carries a run in its environment, read here from /proc and not by Tandem's own code."""
    mark = f"{RUN_VARIABLE}={run_id}".encode()
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if run_id and entry.name.isdigit():
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def left_over(stage: Stage) -> list[str]:
    """Return what lives on or was never waited for, after giving it a moment to end."""
    end = time.monotonic() + END_S
    while (living := marked_pids(stage.run_id)) and time.monotonic() < end:
        time.sleep(0.1)
    findings = [f"left over: {_words(pid)}" for pid in living]
    return findings + [f"zombie: {pid} of parent {parent}" for pid, parent in zombies(stage.seen)]


def zombies(seen: dict[int, float]) -> list[tuple[int, int]]:
    """Return (process, parent) of those that ended and were not waited for by their parent; our own are waited for here."""
    found: list[tuple[int, int]] = []
    for pid, born in seen.items():
        with suppress(psutil.Error, ChildProcessError):
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE and process.create_time() == born:
                if process.ppid() == os.getpid():
                    os.waitpid(pid, os.WNOHANG)
                else:
                    found.append((pid, process.ppid()))
    return found


def held_leases(folder: Path) -> list[str]:
    """Return the leases that cannot be had."""
    held: list[str] = []
    for path in sorted(folder.glob("*.lock")):
        try:
            with FileLock(path, timeout=0):
                pass
        except Timeout:
            held.append(f"lease left: {path.name}")
    return held


def harmed(database: Path) -> list[str]:
    """Return what SQLite's own checks say about a database; nothing when it is intact.

    They run in a process of their own: two copies of SQLite in one process would undo each other's locks.
    """
    done = subprocess.run((sys.executable, "-c", _CHECK, str(database)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [f"database: cannot be read: {done.stderr.strip().splitlines()[-1:]}"]
    return [f"database: {line}" for line in json.loads(done.stdout) if line != "ok"]


def _words(pid: int) -> str:
    with suppress(psutil.Error):
        return " ".join(psutil.Process(pid).cmdline())[:120]
    return str(pid)
