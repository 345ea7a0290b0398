"""A database is brought to the present schema once, whole, and by one process at a time."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import CheckConstraint, text
from sqlalchemy.dialects import postgresql

from core.errors import StoreError
from core.run import Run
from db import Store
from db.migrate import HEAD, present_revision
from db.tables import metadata

ROOT = Path(__file__).resolve().parents[3]
KILLED_MIDWAY = """
import os, signal, sys
from sqlalchemy import event
from db import Store
store = Store(sys.argv[1])
@event.listens_for(store._engines.writing, "after_cursor_execute")
def die(connection, cursor, statement, *rest):
    if "CREATE TABLE outcomes" in statement:
        os.kill(os.getpid(), signal.SIGKILL)
store.migrate()
"""


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *arguments], cwd=ROOT, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_the_migrations_give_exactly_the_tables_that_the_code_describes(store: Store) -> None:
    def differences(connection: object) -> list[object]:
        return compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata)  # type: ignore[arg-type]

    assert store._engines.read(differences) == []
    assert store._engines.read(present_revision) == HEAD


def test_the_checks_of_the_tables_are_those_of_the_migrations(store: Store) -> None:
    query = text("SELECT sql FROM sqlite_master WHERE type = 'table'")
    flat = " ".join(store._engines.read(lambda c: " ".join(c.execute(query).scalars())).split())
    checks = [item for table in metadata.tables.values() for item in table.constraints if isinstance(item, CheckConstraint)]
    assert len(checks) == flat.count("CHECK (") == 6
    assert [str(item.name) for item in checks if f"CONSTRAINT {item.name} CHECK ({item.sqltext})" not in flat] == []


@pytest.mark.usefixtures("store")
def test_migrating_again_changes_nothing_and_loads_no_alembic(url: str) -> None:
    code = "import sys; from db import Store; s = Store(sys.argv[1]); s.migrate(); print(s.count(), 'alembic' in sys.modules)"
    child = python(code, url)
    assert child.communicate() == ("0 False\n", "")


def test_a_newer_schema_is_refused_with_one_line(url: str, store: Store) -> None:
    store._engines.write(lambda c: c.execute(text("UPDATE alembic_version SET version_num = '9999'")))
    with pytest.raises(StoreError, match="schema 9999, which a newer Tandem wrote") as caught:
        Store(url).migrate()
    assert "\n" not in str(caught.value)


def test_what_was_kept_before_splits_is_read_as_before(url: str, store: Store, add_run: Callable[..., Run]) -> None:
    kept = add_run()
    store._engines.write(lambda c: c.execute(text("ALTER TABLE runs DROP COLUMN split")))
    store._engines.write(lambda c: c.execute(text("UPDATE alembic_version SET version_num = '0001'")))
    newer = Store(url)
    newer.migrate()
    assert newer._engines.read(present_revision) == HEAD
    assert newer.run(kept.id) == kept
    newer.close()


def test_a_migration_killed_midway_leaves_nothing_and_the_next_one_completes(url: str) -> None:
    child = python(KILLED_MIDWAY, url)
    child.communicate()
    assert child.returncode == -9
    store = Store(url)
    assert store._engines.read(present_revision) is None
    store.migrate()
    assert store.count() == 0
    store.close()


def test_processes_that_migrate_at_once_all_find_it_done(url: str) -> None:
    code = "import sys; from db import Store; s = Store(sys.argv[1]); input(); s.migrate(); print(s.count())"
    children = [python(code, url) for _ in range(3)]
    assert [child.communicate("go\n") for child in children] == [("0\n", "")] * 3


def test_the_migrations_can_be_written_for_postgres() -> None:
    lines: list[str] = []
    context = MigrationContext.configure(dialect=postgresql.dialect(), opts={"as_sql": True, "output_buffer": Lines(lines)})
    with Operations.context(context):
        for one in revisions():
            one.upgrade()
    script = "".join(lines)
    assert script.count("CREATE TABLE") == 3
    assert script.count("ALTER TABLE runs ADD COLUMN split TEXT") == 1
    assert "id SERIAL NOT NULL" in script
    assert "process_start_ticks BIGINT" in script


class Lines:
    """Takes what Alembic writes."""

    def __init__(self, lines: list[str]) -> None:
        self.write, self.flush = lines.append, lambda: None


def revisions() -> list[Any]:
    """Return every migration, first to last."""
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(ROOT / "db" / "migrations"))
    return [one.module for one in ScriptDirectory.from_config(config).walk_revisions("base", HEAD)][::-1]
