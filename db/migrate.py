"""Brings a database to the present schema, once, safely beside other processes.

Alembic does the work, driven from here: a folder of revisions is all it needs, so there is no `alembic.ini` and no `env.py`.
To change the schema, change `db/tables.py`, add `db/migrations/versions/<number>_<what>.py`, and set `HEAD`; a test holds the
three against each other. An up-to-date database costs one SELECT: Alembic is imported only when there is something to do.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from core.errors import StoreError
from db.engines import Engines

HEAD = "0002"
"""Revision that `db/tables.py` describes."""

_FOLDER = Path(__file__).parent / "migrations"
_POSTGRES_LOCK = 0x7A4DE3
_LOCK_TIMEOUT_S = 60


def migrate(engines: Engines) -> None:
    """Create or upgrade the schema; does nothing when it is up to date.

    Raises:
        StoreError: the database was written by a newer Tandem, or another process upgrades it for too long.
    """
    if engines.file is not None and not engines.file.exists():
        engines.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    elif engines.read(present_revision) == HEAD:
        return
    with _alone(engines):
        _prefer_wal(engines)
        engines.write(_upgrade)


def present_revision(connection: Connection) -> str | None:
    """Return the revision of a database, or None when it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


@contextmanager
def _alone(engines: Engines) -> Generator[None]:
    if engines.file is None:
        yield
        return
    from filelock import FileLock, Timeout

    try:
        with FileLock(f"{engines.file}.migrate.lock", timeout=_LOCK_TIMEOUT_S):
            yield
    except Timeout:
        raise StoreError(f"got a database that another process has been upgrading for {_LOCK_TIMEOUT_S} s; expected it to end; "
                         "end that process, then try again") from None


def _prefer_wal(engines: Engines) -> None:
    if engines.is_sqlite and (mode := engines.outside("PRAGMA journal_mode=WAL")) != ("wal",):
        raise StoreError(f"got journal mode {mode} for {engines.file}; expected WAL; set TANDEM_HOME to a folder on a local disk")


def _upgrade(connection: Connection) -> None:
    from alembic.config import Config  # 0.3 s that an up-to-date database must not pay
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRES_LOCK})
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    present = present_revision(connection)
    known = {revision.revision for revision in scripts.walk_revisions()}
    if present is not None and present not in known:
        raise StoreError(f"got a database of schema {present}, which a newer Tandem wrote; expected at most {HEAD}; "
                         "install the newer Tandem, or set TANDEM_HOME to another folder")

    def steps(revision: Any, _context: Any) -> Any:
        return scripts._upgrade_revs(HEAD, revision)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (what alembic.command.upgrade itself calls)

    with EnvironmentContext(config, scripts, fn=steps, destination_rev=HEAD) as environment:
        environment.configure(connection=connection, transactional_ddl=True, transaction_per_migration=False)
        environment.run_migrations()
