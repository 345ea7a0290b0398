"""Environments of their own, under the user's data directory: built when asked for, whole or not at all, shared by all clones.

The name of a folder holds a digest of the requirements and of the interpreter, so that other pins are another environment. It is
built beside its place under a lock and moved there when its modules could be imported; what an interrupted build leaves is swept.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from catalog import EnvironmentSpec, runtime_specs
from core.errors import BadInput, StoreError, TandemError, one_line
from core.format import count
from probes.environment import ROOT, runtimes_folder, worker_environment
from probes.process import bounded

READY = "ready.json"
SMOKE_S = 300.0
POLL_S = 0.5
LAST_LINES = 6
_LIST = (
    "import json\nfrom importlib import metadata\n"
    "print(json.dumps(sorted((d.metadata['Name'], d.version) for d in metadata.distributions())))"
)

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Built:
    """An environment that is there.

    Args:
        id: of its spec.
        folder: where it lives.
        seconds: that building it took.
        size_bytes: of its files.
        versions: of every distribution in it, by name as it names itself.
    """

    id: str
    folder: Path
    seconds: float
    size_bytes: int
    versions: tuple[tuple[str, str], ...]

    @property
    def interpreter(self) -> Path:
        """Its Python."""
        return self.folder / "bin" / "python"


class Environments:
    """All environments of one user.

    Args:
        home: data directory.
        root: of the repository that holds the requirements.
    """

    def __init__(self, home: Path, root: Path = ROOT) -> None:
        self.folder, self.root = runtimes_folder(home), root

    def find(self, spec: EnvironmentSpec) -> Built | None:
        """Return an environment that is there and whose Python can run, or None; never waits."""
        place = self._place(spec)
        if place is None:
            return None
        try:
            facts = json.loads((place / READY).read_text(encoding="utf-8"))
            versions = tuple((str(name), str(version)) for name, version in facts["versions"])
            built = Built(spec.id, place, float(facts["seconds"]), int(facts["size_bytes"]), versions)
            return built if os.access(built.interpreter, os.X_OK) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def is_being_built(self, spec: EnvironmentSpec) -> bool:
        """Whether some process builds it now."""
        place = self._place(spec)
        return place is not None and _building(place).exists() and not self._is_free(place)

    def obstacle(self, spec: EnvironmentSpec) -> str:
        """Return why this machine cannot hold an environment, in one line; empty when it is there or could be built."""
        if self.find(spec):
            return ""
        if self._python(spec) is None:
            return str(_no_python(spec))
        try:
            self._check_space(spec)
        except BadInput as error:
            return str(error)
        return ""

    def build(self, spec: EnvironmentSpec, tell: Tell) -> Built:
        """Build an environment, or return the one that is there.

        Args:
            spec: from the catalog.
            tell: hears what is done, a line at a time.

        Raises:
            BadInput: no fitting Python, or too little space.
            StoreError: pip or an import failed; nothing is left behind.
        """
        if found := self.find(spec):
            return found
        python, place = self._python(spec), self._place(spec)
        if python is None or place is None:
            raise _no_python(spec)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from None
        self.sweep()
        with self._alone(place, tell):
            if found := self.find(spec):
                return found
            self._check_space(spec)
            fresh = _building(place)
            shutil.rmtree(fresh, ignore_errors=True)
            started = time.monotonic()
            try:
                versions = self._fill(spec, python, fresh, tell)
                facts = {"seconds": round(time.monotonic() - started, 1), "size_bytes": _size(fresh), "versions": versions}
                (fresh / READY).write_text(json.dumps(facts), encoding="utf-8")
                self._put_away(place)
                fresh.replace(place)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
        built = self.find(spec)
        assert built is not None
        return built

    def remove(self, spec: EnvironmentSpec) -> int:
        """Remove an environment, a damaged one too, and return the bytes that were freed.

        Raises:
            BadInput: it is not there, or a process runs from it.
        """
        self.sweep()
        place = self._place(spec)
        if place is None or not place.is_dir():
            raise BadInput(f"environment {spec.id}, which is not built", "one that is", "see ./tandem runtimes list")
        with self._alone(place, lambda _line: None):
            if users := _users(place):
                raise BadInput(
                    f"environment {spec.id} in use by process {users[0]}",
                    "one that nothing runs from",
                    "wait for the run or cancel it",
                )
            size = _size(place)
            self._put_away(place)
        return size

    def _put_away(self, place: Path) -> None:
        """Remove what stands at a place, if anything does: out of the way in one move first."""
        if place.is_dir():
            gone = place.with_suffix(".removing")
            shutil.rmtree(gone, ignore_errors=True)
            place.replace(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def sweep(self) -> None:
        """Remove what builds and removals left that were killed; those that still run hold their lock and are passed over."""
        for rest in (*self.folder.glob("*.building"), *self.folder.glob("*.removing")):
            if self._is_free(rest.with_suffix("")):
                shutil.rmtree(rest, ignore_errors=True)

    def _place(self, spec: EnvironmentSpec) -> Path | None:
        python = self._python(spec)
        if python is None:
            return None
        said = (self.root / spec.requirements).read_bytes(), python[1], platform.machine(), platform.system()
        return self.folder / f"{spec.id}-{sha256(repr(said).encode()).hexdigest()[:12]}"

    def _python(self, spec: EnvironmentSpec) -> tuple[str, tuple[int, int]] | None:
        """Return an interpreter that the packages are built for and its version: this one, else the newest on the path."""
        own = sys.version_info[:2]
        if spec.python_from <= own <= spec.python_to:
            return getattr(sys, "_base_executable", sys.executable), own
        for minor in range(spec.python_to[1], spec.python_from[1] - 1, -1):
            if found := shutil.which(f"python3.{minor}"):
                return found, (3, minor)
        return None

    def _check_space(self, spec: EnvironmentSpec) -> None:
        there = next(folder for folder in (self.folder, *self.folder.parents) if folder.exists())
        free = shutil.disk_usage(there).free
        if free < spec.disk_bytes:
            raise BadInput(
                f"{count(free, 'B')} free at {self.folder}",
                f"{count(spec.disk_bytes, 'B')} for {spec.id}",
                "free some space, or set TANDEM_HOME to a larger disk",
            )

    def _fill(self, spec: EnvironmentSpec, python: tuple[str, tuple[int, int]], fresh: Path, tell: Tell) -> object:
        """Install, import, and return (name, version) of every distribution."""
        requirements = self.root / spec.requirements
        tell(f"making an environment with Python {'.'.join(map(str, python[1]))}")
        _run([python[0], "-m", "venv", str(fresh)], tell)
        own = str(fresh / "bin" / "python")
        pip = [own, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
        total = sum("==" in line and not line.lstrip().startswith("#") for line in requirements.read_text("utf-8").splitlines())
        _run([*pip, "-r", str(requirements)], _counting(tell, total))
        tried = [(runtime, runtime_specs()[runtime].modules) for runtime in spec.runtimes]
        for runtime, modules in (*tried, *([("", spec.modules)] if spec.modules else [])):
            said = ", ".join(modules)
            tell(f"importing {said}")
            environment = worker_environment(runtime, spec.kind, os.environ, self.folder.parent, "")
            _run([own, "-c", f"import {said}"], tell, environment, SMOKE_S)
        return json.loads(_run([own, "-c", _LIST], lambda _line: None, None, SMOKE_S))

    @contextmanager
    def _alone(self, place: Path, tell: Tell) -> Generator[None]:
        lock = FileLock(place.with_suffix(".lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            tell("another process builds it; waiting")
            lock.acquire(poll_interval=POLL_S)
        except OSError as error:
            raise self._unusable(error) from None
        try:
            yield
        finally:
            lock.release()

    def _is_free(self, place: Path) -> bool:
        try:
            with FileLock(place.with_suffix(".lock"), timeout=0):
                return True
        except OSError:  # a timeout is one
            return False

    def _unusable(self, error: OSError) -> BadInput:
        return BadInput(
            f"{error.strerror or type(error).__name__} for {error.filename or self.folder}",
            "a folder for environments that can be written",
            "mend it, or set TANDEM_HOME to another one",
        )


def _building(place: Path) -> Path:
    return place.with_suffix(".building")


def _no_python(spec: EnvironmentSpec) -> TandemError:
    low, high = (".".join(map(str, version)) for version in (spec.python_from, spec.python_to))
    return BadInput(
        f"Python {platform.python_version()} and no other on the path",
        f"Python {low} to {high} for {spec.id}",
        f"install python{high}",
    )


def _counting(tell: Tell, total: int) -> Tell:
    """Return a listener of pip's lines that tells which package of how many is fetched."""
    found = 0

    def hear(line: str) -> None:
        nonlocal found
        if line.startswith("Collecting "):
            found += 1
            tell(f"{found} of {max(total, found)} packages: {line.removeprefix('Collecting ').split(' ')[0]}")
        elif line.startswith("Installing collected"):
            tell("unpacking")

    return hear


def _run(command: list[str], tell: Tell, environment: dict[str, str] | None = None, limit_s: float | None = None) -> str:
    """Run one step, tell each line that it says, and return its last one; its whole process group ends with it.

    Raises:
        StoreError: it failed or took too long, with its last words.
    """
    last: deque[str] = deque(maxlen=LAST_LINES)
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        env=environment, start_new_session=True,
    )
    assert process.stdout is not None
    with bounded(process, limit_s):
        with process.stdout:
            for line in process.stdout:
                last.append(line.strip())
                tell(line.strip())
        process.wait()
    said = next((line for line in reversed(last) if line), "")
    if process.returncode != 0:
        step = " ".join(command[1:4])
        raise StoreError(
            one_line(f"got {said or 'no word'} from {step}, exit code {process.returncode}; expected an environment; "
                     "nothing was left behind; mend that and try again", 500)
        )
    return said


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())


def _users(folder: Path) -> list[int]:
    """Return the processes that were started from an environment."""
    real = Path(os.path.realpath(folder))
    return [
        process.pid for process in psutil.process_iter(["cmdline", "cwd"])
        if real in _program(process.info["cmdline"] or [""], process.info["cwd"] or os.sep).parents
    ]


def _program(command: list[str], cwd: str) -> Path:
    """Return the program of a process with the links of its folder resolved, not its own: an environment's Python is a link.

    A bare name was looked for on the path of the process, which is not known here: it stays bare.
    """
    program = Path(command[0])
    return Path(os.path.realpath(Path(cwd) / program.parent)) / program.name if os.sep in command[0] else program
