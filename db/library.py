"""Which SQLite library is used, and where its file may lie.

Two rules come from real damage. Libraries from 3.7.0 to 3.51.2 can corrupt a WAL database when a checkpoint races with a
writer, so they are refused. WAL needs memory that all its users share, which no network file system gives, so those are
refused too. The wheel `pysqlite3` brings a library of its own; the one of the standard library is taken only where that
wheel is missing, and never beside it, because two copies in one process drop each other's locks.

Source: https://www.sqlite.org/wal.html; https://www.sqlite.org/howtocorrupt.html (sections 2.2 and 2.3).
"""

import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType

from core.errors import StoreError

SAFE_SQLITE = (3, 51, 3)
"""First version without the WAL corruption fault."""

NETWORK_FILE_SYSTEMS = frozenset({
    "nfs", "nfs4", "cifs", "smbfs", "smb3", "9p", "afs", "ceph", "coda", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "ocfs2",
    "virtiofs",
})
_MOUNTS = Path("/proc/self/mountinfo")


def sqlite_library() -> ModuleType:
    """Return the database module to use.

    Raises:
        StoreError: the SQLite library can corrupt the database.
    """
    name = "pysqlite3.dbapi2" if importlib.util.find_spec("pysqlite3") else "sqlite3"
    library = importlib.import_module(name)
    check_version(library.sqlite_version_info, name)
    return library


def check_version(version: tuple[int, ...], name: str) -> None:
    """Raise StoreError when a SQLite library of that version can corrupt a database in WAL mode.

    Args:
        version: of the C library, not of the module.
        name: of the Python module that holds it.
    """
    if version < SAFE_SQLITE:
        raise StoreError(f"got SQLite {_dotted(version)} in {name}, which can corrupt its file; "
                         f"expected {_dotted(SAFE_SQLITE)} or newer; install the wheel `pysqlite3`, "
                         "or set TANDEM_DATABASE_URL to Postgres")


def check_place(folder: Path, mounts: str | None = None) -> None:
    """Raise StoreError when a folder lies on a network file system.

    Args:
        folder: where the database is to lie; need not exist yet.
        mounts: text of `/proc/self/mountinfo`; read from the system when None.
    """
    if mounts is None:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace") if _MOUNTS.exists() else ""
    kind = file_system(folder.resolve(), mounts)
    if kind is not None and (kind in NETWORK_FILE_SYSTEMS or kind.startswith("fuse")):
        raise StoreError(f"got a database folder on {kind} ({folder}), where SQLite loses data; expected a local disk; "
                         "set TANDEM_HOME to a local folder, or TANDEM_DATABASE_URL to Postgres")


def file_system(folder: Path, mounts: str) -> str | None:
    """Return the type of the file system that holds a folder, or None when no mount covers it.

    Args:
        folder: absolute, without symbolic links.
        mounts: text in the form of `/proc/self/mountinfo`; later lines lie over earlier ones.

    Source: https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html
    """
    best, kind = -1, None
    for line in mounts.splitlines():
        left, separator, right = line.partition(" - ")
        columns = left.split()
        if not separator or len(columns) < 5:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), columns[4]))
        depth = len(point.parts)
        if depth >= best and folder.is_relative_to(point):
            best, kind = depth, right.split()[0]
    return kind


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
