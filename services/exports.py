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

import reports
from core.codec import to_json
from core.errors import TandemError, one_line
from core.run import Run
from services.context import Context
from services.runs import REPOSITORY, open_run

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


def export(run_id: str, format: str, *, here: Context | None = None) -> Export:  # noqa: A002  (the word of the contract)
    """Return a run in a format.

    Args:
        run_id: the run.
        format: one of `reports.formats()`.
        here: the context; that of this process when None.

    Raises:
        NotFound: no such run, or no such format.
        ExportError: the report could not be made.
    """
    mime = reports.media_type(format)
    run = open_run(run_id, here=here)
    data = _render_apart(run, format) if format in _DRAWN else reports.render(run, format)
    return Export(data, _file_name(run, format, data), mime)


def _render_apart(run: Run, name: str) -> bytes:
    command = (sys.executable, "-m", "services.render", name)
    try:
        done = subprocess.run(command, cwd=REPOSITORY, input=to_json(run).encode(),  # noqa: S603  (our own module)
                              capture_output=True, timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise ExportError(f"got no report within {_LIMIT_S:.0f} s; expected one in seconds; "
                          "try again when the machine is less busy") from None
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        reason = last or f"exit code {done.returncode}"
        raise ExportError(one_line(f"got no report ({reason}); expected {name}; try the json format"))
    return done.stdout


def _file_name(run: Run, ending: str, data: bytes) -> str:
    words = re.sub(r"[^A-Za-z0-9]+", "-", run.workload.name).strip("-").lower()[:40].strip("-")
    return "-".join(part for part in ("tandem", words, run.id, sha256(data).hexdigest()[:8]) if part) + f".{ending}"
