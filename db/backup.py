"""A copy of the live database, made by SQLite itself.

The file is never opened or copied by us: closing any descriptor on it would drop the locks of this process and let others
write into a database that is in use.

Source: https://www.sqlite.org/lang_vacuum.html (VACUUM INTO); https://www.sqlite.org/howtocorrupt.html (section 2.2).
"""

import os
from pathlib import Path

from core.errors import BadInput, StoreError
from db.engines import Engines, sync_folder
from db.library import sqlite_library


def back_up(engines: Engines, path: Path) -> None:
    """Write a checked, durable copy to a path that does not exist yet; it appears whole or not at all.

    Raises:
        BadInput: the path exists, or the database is not SQLite.
        StoreError: the copy is not sound.
    """
    if not engines.is_sqlite:
        raise BadInput("a database on a server", "a SQLite file", "use its own tool, e.g. pg_dump")
    path = path.absolute()
    if path.exists():
        raise BadInput(f"{path}, which exists", "a path that is free", "name another file")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    try:
        engines.outside("VACUUM INTO ?", str(part))
        _check(part)
        os.link(part, path)
    except FileExistsError:
        raise BadInput(f"{path}, which exists", "a path that is free", "name another file") from None
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)


def _check(copy: Path) -> None:
    connection = sqlite_library().connect(str(copy), isolation_level=None)
    try:
        verdict = connection.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        connection.close()
    if verdict != "ok":
        raise StoreError(f"got a backup that is not sound ({verdict}); expected integrity_check to say ok; check the disk")
    descriptor = os.open(copy, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
