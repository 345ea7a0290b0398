"""Two engines on one database: one that writes, one that only reads.

SQLite's driver begins no transaction before a SELECT, and a transaction that reads first and writes later fails at once with
SQLITE_BUSY_SNAPSHOT, whatever the time limit. So the driver's own transactions are off; the write engine says BEGIN IMMEDIATE
and waits its turn, and the read engine says BEGIN and never takes the one writer's slot. A whole unit of work is tried again
when the database is busy, never a single statement.

Source: https://docs.sqlalchemy.org/en/21/dialects/sqlite.html (transactions); https://www.sqlite.org/isolation.html.
"""

import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, NoSuchModuleError, OperationalError
from sqlalchemy.pool import QueuePool

from core.errors import BadInput, StoreError, one_line
from db.library import check_place, sqlite_library

T = TypeVar("T")
ATTEMPTS = 5
_BUSY_TIMEOUT_MS = 5000
_PAUSE_S = 0.05
_PRAGMAS = (f"busy_timeout={_BUSY_TIMEOUT_MS}", "synchronous=NORMAL", "foreign_keys=ON", "trusted_schema=OFF", "mmap_size=0")
_POSTGRES_LIMITS = "-c statement_timeout=30000 -c lock_timeout=10000"
_BUSY_SQLITE = frozenset({5, 6})
_BUSY_POSTGRES = frozenset({"40001", "40P01", "55P03"})
_REMEDIES: dict[int, str] = {
    8: "make the folder and the file writable",
    10: "check the disk, then start again",
    11: "restore a backup; do not write to this file",
    13: "free disk space",
    14: "check that the folder exists and is writable",
    26: "set TANDEM_HOME to another folder, or restore a backup",
}
"""What to do on SQLite's primary result codes. Source: https://www.sqlite.org/rescode.html."""


class Engines:
    """The write and the read engine of one database address."""

    def __init__(self, database_url: str) -> None:
        """Prepare both engines; nothing is opened yet.

        Args:
            database_url: SQLAlchemy address of a SQLite file or a Postgres database.

        Raises:
            BadInput: an address that is neither.
            StoreError: a SQLite library or a file system that loses data.
        """
        try:
            url = make_url(database_url)
        except ArgumentError:
            raise BadInput("a database address that cannot be read", "sqlite:////folder/tandem.db or postgresql://host/name",
                           "correct TANDEM_DATABASE_URL") from None
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.file: Path | None = None
        self._driver_error: type[BaseException] = DBAPIError
        if not self.is_sqlite:
            self._for_server(database_url)
            return
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise BadInput("a SQLite address without a file", "sqlite:////folder/tandem.db", "name a file in TANDEM_DATABASE_URL")
        self.file = Path(url.database).absolute()
        check_place(self.file.parent)
        library = sqlite_library()
        self._driver_error = library.Error
        options: dict[str, Any] = {"module": library, "poolclass": QueuePool, "connect_args": {"check_same_thread": False}}
        self.writing = create_engine(url, pool_size=1, max_overflow=0, **options)
        self.reading = create_engine(url, pool_size=4, max_overflow=16, **options)
        _prepare(self.writing, "BEGIN IMMEDIATE", _PRAGMAS)
        _prepare(self.reading, "BEGIN", (*_PRAGMAS, "query_only=ON"))

    def _for_server(self, database_url: str) -> None:
        try:
            options = {"options": _POSTGRES_LIMITS}
            self.writing = self.reading = create_engine(database_url, pool_pre_ping=True, connect_args=options)
        except (NoSuchModuleError, ImportError) as error:
            raise BadInput(one_line(f"a database address whose driver is missing ({error})"), "SQLite or Postgres",
                           "install the driver, e.g. psycopg, and use postgresql+psycopg://") from None

    def read(self, work: Callable[[Connection], T]) -> T:
        """Do one unit of reading in one transaction and return what it returns; it must end before anything is rendered."""
        return self._unit(self.reading, work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do one unit of writing in one transaction, all of it or nothing; it may be tried more than once.

        Raises:
            StoreError: the database stayed busy, or it cannot be used; one line says what to do.
        """
        return self._unit(self.writing, work)

    def close(self) -> None:
        """Close every connection of this process."""
        self.writing.dispose()
        self.reading.dispose()

    def outside(self, statement: str, *values: str) -> tuple[Any, ...] | None:
        """Run one SQLite statement that no transaction may hold (a pragma, VACUUM) and return its first row."""
        return self._patiently(lambda: self._outside(statement, values))

    def _outside(self, statement: str, values: tuple[str, ...]) -> tuple[Any, ...] | None:
        connection = self.writing.raw_connection()
        try:
            cursor = connection.cursor()
            cursor.execute(statement, values)
            row = cursor.fetchone()
            cursor.close()
            return row
        finally:
            connection.close()

    def _unit(self, engine: Engine, work: Callable[[Connection], T]) -> T:
        def once() -> T:
            with engine.begin() as connection:
                return work(connection)

        return self._patiently(once)

    def _patiently(self, action: Callable[[], T]) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return action()
            except (DBAPIError, self._driver_error) as error:
                cause = error.orig if isinstance(error, DBAPIError) else error
                if not _is_busy(cause):
                    raise self._explained(error, cause) from error
                if attempt < ATTEMPTS:
                    time.sleep(random.uniform(0.5, 1.5) * _PAUSE_S * attempt)
        raise StoreError(f"got a database that stayed busy for {ATTEMPTS} attempts; expected a free moment; "
                         "end the program that holds it, then try again")

    def _explained(self, error: BaseException, cause: BaseException | None) -> BaseException:
        if self.is_sqlite:
            remedy = _REMEDIES.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF)
        else:
            remedy = "check that the server is up and the address is right" if isinstance(error, OperationalError) else None
        if remedy is None:
            return error
        where = self.file or self.writing.url.render_as_string(hide_password=True)
        return StoreError(one_line(f"got {cause} from {where}; expected a database that works; {remedy}"))


def _is_busy(cause: BaseException | None) -> bool:
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None:
        return (code & 0xFF) in _BUSY_SQLITE
    return getattr(cause, "sqlstate", None) in _BUSY_POSTGRES


def _prepare(engine: Engine, begin: str, pragmas: tuple[str, ...]) -> None:
    def on_connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()
        record.info["pid"] = os.getpid()

    def on_checkout(_connection: Any, record: Any, proxy: Any) -> None:
        if record.info["pid"] != os.getpid():
            record.dbapi_connection = proxy.dbapi_connection = None
            raise DisconnectionError("a SQLite connection must not cross a fork")

    def on_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "checkout", on_checkout)
    event.listen(engine, "begin", on_begin)


def sync_folder(folder: Path) -> None:
    """Make a rename inside a folder durable; a file system that cannot is left alone."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
