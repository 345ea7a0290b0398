"""Truths: one native in one fresh process, and a file that keeps them for scoring another prediction later."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.control import share_of_others, usage
from core.errors import BadInput, one_line
from core.statistics import iqr, median
from probes.lease import Lease
from services import devices
from services.context import context

REPOSITORY = Path(__file__).resolve().parent.parent
LIMIT_S = 300.0
"""Seconds after which a native is given up; compiling a whole network takes up to two minutes."""


@dataclass(frozen=True, slots=True)
class TruthRow:
    """What a native did, or why it did not.

    Args:
        samples_ns: nanoseconds of each timed step; empty when it failed.
        first_s: seconds of the first call, compilation included.
        parameter_count: trainable parameters of the native.
        peak_rss_bytes: of its process.
        control_s: seconds of the control kernel around it, before and after.
        others: fraction of all cores that anything else used meanwhile.
        error: one line; empty when it ran.
    """

    case: str
    runtime: str
    samples_ns: tuple[int, ...] = ()
    first_s: float | None = None
    parameter_count: int | None = None
    peak_rss_bytes: int | None = None
    control_s: tuple[float, ...] = ()
    others: float | None = None
    error: str = ""

    @property
    def median_s(self) -> float | None:
        """Median seconds of a step."""
        return median(self.samples_ns) * 1e-9 if self.samples_ns else None

    @property
    def spread(self) -> float | None:
        """Interquartile range over the median."""
        return iqr(self.samples_ns) / median(self.samples_ns) if self.samples_ns else None


def take(case: str, runtime: str, limit_s: float = LIMIT_S) -> TruthRow:
    """Run one native in a process of its own and return what it did; a failure is data.

    Args:
        case: name of the case.
        runtime: a runtime id.
        limit_s: seconds until it is given up.
    """
    with lease():
        return _take(case, runtime, limit_s)


@contextmanager
def lease() -> Iterator[None]:
    """Hold the processor as a measuring session does, so that no run of Tandem on this host measures at the same time."""
    settings = context().settings
    held = Lease(settings.leases, devices.report().devices[0].uuid, owner=settings.owner)
    held.acquire(lambda _place: None, lambda: False)
    try:
        yield
    finally:
        held.release()


def interpreter_of(runtime: str) -> str:
    """Return the Python that holds a runtime: an environment of its own, or this one.

    Raises:
        BadInput: it is not installed.
    """
    (found,) = (one for one in devices.report().runtimes if one.id == runtime)
    if not found.installed:
        raise BadInput(f"runtime {runtime} ({found.reason})", "one that is installed", "leave it out, or install it")
    return found.interpreter


def _take(case: str, runtime: str, limit_s: float) -> TruthRow:
    command = (interpreter_of(runtime), "-m", "bench.native.run", case, runtime)
    before = usage()
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=limit_s, check=False,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return TruthRow(case, runtime, error=f"gave no answer within {limit_s:.0f} s")
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        tail = done.stderr.strip().splitlines()[-1:] or ["no message"]
        return TruthRow(case, runtime, error=one_line(f"exit {done.returncode}: {tail[0]}", 200))
    answer = json.loads(lines[-1])
    return TruthRow(case, runtime, tuple(answer["samples_ns"]), answer["first_s"], answer["parameter_count"],
                    answer["peak_rss_bytes"], others=share_of_others(before, usage()))


def keep(path: Path, rows: Mapping[tuple[str, str], TruthRow]) -> None:
    """Write truths to a file, whole or not at all."""
    text = json.dumps({"schema_version": 1, "truths": [asdict(row) for row in rows.values()]}, indent=1)
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def read(path: Path) -> dict[tuple[str, str], TruthRow]:
    """Read what `keep` wrote.

    Raises:
        BadInput: the file cannot be read or holds something else.
    """
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))["truths"]
        rows = [TruthRow(**{**entry, "samples_ns": tuple(entry["samples_ns"]), "control_s": tuple(entry["control_s"])})
                for entry in plain]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path.name} ({one_line(str(error), 80)})", "a file that --keep-truth wrote", "measure again") from None
    return {(row.case, row.runtime): row for row in rows}
