"""A run as a file to take away: its bytes, a safe file name and a media type.

The report with charts is drawn in a process of its own, because drawing holds Python's lock for seconds and would freeze every
page of the portal. The name carries a few characters of the content's digest: a web server may address downloads by name,
length and parts of the content alone, and must never give one person the file of another.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from core.codec import to_json
from core.errors import BadInput, TandemError, one_line
from core.run import Run
from services import runs
from services.context import Context

TYPES = {"html": "text/html", "md": "text/markdown", "json": "application/json", "csv": "text/csv"}
"""Media type of each format."""

_REPOSITORY = Path(__file__).resolve().parent.parent
_DRAWN = ("html",)
_LIMIT_S = 180.0


class ExportError(TandemError):
    """A report could not be made."""


@dataclass(frozen=True, slots=True)
class Export:
    """A file to take away."""

    data: bytes
    filename: str
    mime: str


def export(run_id: str, format: str, *, here: Context | None = None) -> Export:  # noqa: A002  (the word of the command line)
    """Return a run in a format.

    Args:
        run_id: the run.
        format: a key of `TYPES`.
        here: the context; that of this process when None.

    Raises:
        BadInput: no such format.
        NotFound: no such run.
        ExportError: the report could not be made.
    """
    if format not in TYPES:
        raise BadInput(f"format {format[:40]!r}", "one of " + ", ".join(TYPES), "choose one of these")
    run = runs.open_run(run_id, here=here)
    data = _render_apart(run, format) if format in _DRAWN else _render(run, format)
    return Export(data, _file_name(run, format, data), TYPES[format])


def _render(run: Run, format: str) -> bytes:  # noqa: A002
    from reports import render  # charts and tables are heavy: only who exports loads them

    return render(run, format)


def _render_apart(run: Run, format: str) -> bytes:  # noqa: A002
    command = (sys.executable, "-m", "services.render", format)
    try:
        done = subprocess.run(command, cwd=_REPOSITORY, input=to_json(run).encode(),  # noqa: S603  (our own module)
                              capture_output=True, timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise ExportError(f"got no report within {_LIMIT_S:.0f} s; expected one in seconds; "
                          "try again when the machine is less busy") from None
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        reason = last or f"exit code {done.returncode}"
        raise ExportError(one_line(f"got no report ({reason}); expected {format}; try the json format"))
    return done.stdout


def _file_name(run: Run, format: str, data: bytes) -> str:  # noqa: A002
    words = re.sub(r"[^A-Za-z0-9]+", "-", run.workload.name).strip("-").lower()[:40].strip("-")
    return "-".join(part for part in ("tandem", words, run.id, sha256(data).hexdigest()[:8]) if part) + f".{format}"
