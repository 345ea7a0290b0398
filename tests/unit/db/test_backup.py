"""A backup is made while the database is in use, whole or not at all."""

from pathlib import Path

import pytest

from core.errors import BadInput
from db import Store
from tests.samples.runs import sample_run


def test_a_backup_of_a_database_in_use_opens_with_everything_in_it(store: Store, tmp_path: Path) -> None:
    run = sample_run()
    store.create_run(run)
    path = tmp_path / "kept" / "copy.db"
    store.backup(path)
    store.delete_run(run.id)
    copy = Store(f"sqlite:///{path}")
    copy.migrate()
    assert copy.run(run.id) == run
    copy.close()
    assert [left.name for left in path.parent.glob("*.part")] == []


def test_a_backup_never_replaces_a_file(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(BadInput, match="exists"):
        store.backup(path)
    assert path.read_text(encoding="utf-8") == "mine"
