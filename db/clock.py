"""The clocks that heartbeats are read against.

A wall clock can be set by hand, by NTP or by a resumed laptop; the monotonic clock of one boot cannot, and it stands still
while the machine sleeps. A heartbeat therefore carries both: its age is taken from the monotonic clock when it was written
in the present boot, and from the wall clock of the database otherwise.
"""

import time
from functools import cache
from pathlib import Path

from sqlalchemy import Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class wall_clock(FunctionElement[float]):  # noqa: N801  (a SQL function is written in lower case)
    """Seconds since 1970 by the clock of the database, not frozen at the start of the transaction."""

    type: TypeEngine[float] = Double()
    inherit_cache = True


@compiles(wall_clock, "sqlite")
def _on_sqlite(_element: wall_clock, _compiler: SQLCompiler, **_keywords: object) -> str:
    return "unixepoch('now', 'subsec')"


@compiles(wall_clock)
def _elsewhere(_element: wall_clock, _compiler: SQLCompiler, **_keywords: object) -> str:
    return "extract(epoch FROM clock_timestamp())::double precision"


@cache
def boot_id() -> str:
    """Return the random id of the present boot of this kernel; empty where the system has none."""
    return _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else ""


def boot_seconds() -> float:
    """Return seconds of the monotonic clock, which every process of one boot shares."""
    return time.monotonic()


def age_s(wall_age_s: float, written_in: str, written_at_s: float) -> float:
    """Return how long ago a heartbeat was written.

    Args:
        wall_age_s: seconds by the clock of the database.
        written_in: boot id of the writer.
        written_at_s: monotonic seconds of the writer.

    Returns:
        Seconds, never negative.
    """
    same_boot = written_in != "" and written_in == boot_id()
    return max(0.0, boot_seconds() - written_at_s if same_boot else wall_age_s)
