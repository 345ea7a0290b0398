"""What comes of spoilt files? Mutants of good files go through the sandbox and their reader; three outcomes are allowed.

Allowed: read, refused with a reason, stopped by a limit (where a reader asks a native library, an abort of the worker is such a
limit: libraries are entitled to it). Anything else is a failure: a reader without words for what it met, an attempt at what the
sandbox denies, a crash of a reader of our own, a file outside the scratch folder, a process left over, or a good file that is
not read. Exit 0 only without any. Each mutant is read by a process of its own; mutants depend on the seed alone.

Run: `python -m bench.mutants [--count 2000] [--seed N] [--reader NAME] [--keep FOLDER] [--json] [FILE...]`. A FILE may be a
folder. Without any, the samples of every format that the tests hold: the mutants are dealt out evenly to the formats.
"""

import argparse
import json
import pkgutil
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path

from bench.mutations import mutant
from core.errors import BadInput
from intake.sandbox import Limits, ReaderFault, Refused, Sandbox, Stopped, level
from intake.sandbox.endings import descendants

OURS = Limits(memory_bytes=2**30, cpu_s=10, wall_s=20.0)
OF_LIBRARIES = Limits(memory_bytes=16 * 2**30, cpu_s=60, wall_s=90.0)
LOOK_EACH = 50
HEAD_BYTES = 4096
SHOWN = 20
READERS = "intake.readers"
SAMPLES = Path(__file__).resolve().parent.parent / "tests" / "samples" / "models"
"""One folder a format, named as its reader."""


@dataclass
class Tally:
    """What came of the mutants of one reader."""

    reader: str
    read: int = 0
    refused: int = 0
    stopped: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

    @property
    def total(self) -> int:
        """How many were read, in whichever way that ended."""
        return self.read + self.refused + self.stopped.total() + len(self.failures)


class Subject:
    """A good file, or a folder of which one file at a time is spoilt.

    Args:
        path: where it is.
        room: a folder to work in.
    """

    def __init__(self, path: Path, room: Path) -> None:
        self.name = path.name
        self._folder = room / path.name if path.is_dir() else None
        if self._folder is not None:
            shutil.copytree(path, self._folder, symlinks=True)
        paths = sorted(one for one in path.rglob("*") if one.is_file() and not one.is_symlink()) if path.is_dir() else [path]
        self._parts = [(one.relative_to(path), one.read_bytes()) for one in paths]
        if not self._parts:
            raise BadInput(f"{path}, a folder without files", "a good file or folder", "give another")

    @property
    def whole(self) -> Path | bytes:
        """The good one."""
        return self._folder or self._parts[0][1]

    @property
    def data(self) -> bytes:
        """Some of its bytes, to splice others with."""
        return self._parts[0][1]

    def spoilt(self, seed: int, number: int, other: bytes) -> tuple[str, Path | bytes, bytes]:
        """Return the kinds of fault, what is read, and the bytes that are bad; a folder is bad until `mend`."""
        part, data = self._parts[number % len(self._parts)]
        kinds, bad = mutant(seed, number, data, other)
        if self._folder is None:
            return kinds, bad, bad
        (self._folder / part).write_bytes(bad)
        return f"{part}: {kinds}", self._folder, bad

    def mend(self, number: int) -> None:
        """Put the good bytes back."""
        if self._folder is not None:
            part, data = self._parts[number % len(self._parts)]
            (self._folder / part).write_bytes(data)


def reader_for(path: Path, package: str) -> str:
    """Return the reader that a file fits, or a file of a folder: what describes others (JSON) last.

    Raises:
        BadInput: there is none.
    """
    files = sorted(path.rglob("*"), key=lambda one: (one.suffix == ".json", one)) if path.is_dir() else [path]
    folder = import_module(package)
    names = [found.name for found in pkgutil.iter_modules(folder.__path__)]
    for file in files:
        if not file.is_file():
            continue
        with file.open("rb") as opened:
            head = opened.read(HEAD_BYTES)
        for name in names:
            module = import_module(f"{package}.{name}")
            if hasattr(module, "fits") and module.fits(file.name, head):
                return name
    raise BadInput(str(path), f"a file that a reader of {package} fits", "name one with --reader")


def samples() -> list[tuple[str, Path]]:
    """Return reader and path of the samples of all formats: files, and folders that are read whole.

    Raises:
        BadInput: there are none.
    """
    names = [name for _, name, _ in pkgutil.iter_modules(import_module(READERS).__path__)]
    found = [(name, one) for name in names if (SAMPLES / name).is_dir() for one in sorted((SAMPLES / name).iterdir())
             if one.name != "expected.json"]  # fmt: skip
    if not found:
        raise BadInput(f"no samples in {SAMPLES}", "those of the tests", "name good files")
    return found


def shared(count: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Return how many mutants each reader gets: by weight, and all of them together `count`."""
    whole = sum(weights.values())
    found = {name: count * weight // whole for name, weight in weights.items()}
    for name in list(found)[: count - sum(found.values())]:
        found[name] += 1
    return found


def attempt(sandbox: Sandbox, tally: Tally, source: Path | bytes, name: str, told: str) -> bool:
    """Read one mutant and count what came of it; returns whether that is allowed."""
    try:
        sandbox.read(source, name=name)
        tally.read += 1
    except Refused:
        tally.refused += 1
    except Stopped as stop:
        if stop.limit == "denied" or (stop.limit == "ended" and not sandbox.needs):
            tally.failures.append(f"{told}: {stop}")
            return False
        tally.stopped[stop.limit] += 1
    except ReaderFault as fault:
        tally.failures.append(f"{told}: {fault}")
        return False
    return True


def measure(
    reader: str, package: str, subjects: Sequence[Subject], count: int, seed: int, keep: Path | None, scratch: Path
) -> Tally:
    """Read the good files and their mutants with one reader.

    Args:
        reader, package: which.
        subjects: good files, in turn.
        count, seed: of the mutants.
        keep: where mutants that failed are kept, if anywhere.
        scratch: the folder of temporary files, which must be empty after each read.
    """
    tally = Tally(reader)
    limits = OF_LIBRARIES if Sandbox(reader, package=package).needs else OURS
    with Sandbox(reader, limits, package=package, preload=True) as sandbox:
        started = time.perf_counter()
        for subject in subjects:
            try:
                sandbox.read(subject.whole, name=subject.name)
            except BadInput as error:
                tally.failures.append(f"{subject.name}, which is whole: {error}")
        for number in range(count):
            subject, other = subjects[number % len(subjects)], subjects[(number // len(subjects)) % len(subjects)]
            kinds, source, bad = subject.spoilt(seed, number, other.data)
            told = f"{subject.name} number {number} ({kinds})"
            if not attempt(sandbox, tally, source, subject.name, told) and keep is not None:
                (keep / f"{reader}-{seed}-{number}-{subject.name}").write_bytes(bad)
            subject.mend(number)
            left = [one.name for one in scratch.iterdir()]
            if left:
                tally.failures.append(f"{told}: files left: {', '.join(left)}")
                shutil.rmtree(scratch)
                scratch.mkdir()
            if number % LOOK_EACH == 0 and sandbox.leader is not None and len(descendants(sandbox.leader)) > 1:
                tally.failures.append(f"{told}: processes left: {descendants(sandbox.leader)}")
        tally.seconds = time.perf_counter() - started
        leader = sandbox.leader
    if leader is not None and descendants(leader):
        tally.failures.append(f"processes left at the end: {descendants(leader)}")
    return tally


def table(tallies: Sequence[Tally]) -> str:
    """Return reader x outcome."""
    rows = ["| reader | read | refused | stopped by a limit | failures | a second |", "|---|---|---|---|---|---|"]
    for one in tallies:
        stops = ", ".join(f"{count} {limit}" for limit, count in sorted(one.stopped.items())) or "0"
        rate = one.total / one.seconds
        rows.append(f"| {one.reader} | {one.read} | {one.refused} | {stops} | {len(one.failures)} | {rate:.0f} |")
    return "\n".join(rows)


def verdict_line(tallies: Sequence[Tally], reached: int) -> str:
    """Return the one line that ends the bench."""
    total, failures = sum(one.total for one in tallies), sum(len(one.failures) for one in tallies)
    seconds = sum(one.seconds for one in tallies)
    figures = (
        f"{total} spoilt files at sandbox level {reached}: {sum(one.read for one in tallies)} read, "
        f"{sum(one.refused for one in tallies)} refused, {sum(one.stopped.total() for one in tallies)} stopped by a limit, "
        f"{failures} other; {total / seconds:.0f} a second"
    )
    return f"{'FALLS SHORT' if failures else 'HOLDS'}: {figures}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Spoil, read, count, and print the table, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="a good file or folder; by default all samples")
    parser.add_argument("--count", type=int, default=2000, help="mutants in all")
    parser.add_argument("--seed", type=int, default=1, help="which mutants")
    parser.add_argument("--reader", help="for all files; by default the one that fits")
    parser.add_argument("--package", default=READERS, help="where readers are")
    parser.add_argument("--keep", type=Path, help="folder for mutants that failed")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="tandem-mutants-") as room:
        reached = level().level
        scratch, before = Path(room) / "scratch", tempfile.tempdir
        scratch.mkdir()
        by_reader: dict[str, list[Subject]] = {}
        try:
            given = [(asked.reader or reader_for(path, asked.package), path) for path in asked.files] or samples()
            for number, (reader, path) in enumerate(given):
                by_reader.setdefault(reader, []).append(Subject(path, Path(room) / str(number)))
            if asked.keep:
                asked.keep.mkdir(parents=True, exist_ok=True)
            tempfile.tempdir = str(scratch)
            shares = shared(asked.count, {reader: 1 if not asked.files else len(one) for reader, one in by_reader.items()})
            tallies = [
                measure(reader, asked.package, subjects, shares[reader], asked.seed, asked.keep, scratch)
                for reader, subjects in by_reader.items()
            ]
        except (BadInput, OSError) as error:
            print(f"mutants: {error}", file=sys.stderr)
            return 2
        finally:
            tempfile.tempdir = before
    if asked.json:
        print(json.dumps({"level": reached, "readers": [asdict(one) for one in tallies]}))
    else:
        print(table(tallies))
        for one in tallies:
            for failure in one.failures[:SHOWN]:
                print(f"FAILED {one.reader}: {failure}", file=sys.stderr)
        print(verdict_line(tallies, reached))
    return 1 if any(one.failures for one in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
