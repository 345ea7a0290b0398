"""What every use case stands on is made once, in a folder for its user alone."""

from pathlib import Path

import pytest

from core.errors import StoreError
from services.context import context, make_context


def test_the_home_is_made_for_this_user_alone_with_a_database_that_works(tmp_path: Path) -> None:
    made = make_context({"TANDEM_HOME": str(tmp_path / "a" / "home"), "USER": "ann"})
    assert made.settings.home.stat().st_mode & 0o777 == 0o700
    assert made.settings.owner == "ann"
    assert made.store.count() == 0
    made.store.close()


def test_a_home_that_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="set TANDEM_HOME to another one"):
        make_context({"TANDEM_HOME": str(tmp_path / "file" / "home")})


def test_the_context_of_a_process_is_made_once(tandem_home: Path) -> None:
    assert context() is context()
    assert context().settings.home == tandem_home
