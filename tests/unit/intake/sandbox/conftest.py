"""What the tests of the sandbox share: readers under `tests/samples`, and a temporary folder that must be empty afterwards."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module", autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Have temporary files of the module in a folder of its own, and find it empty at the end."""
    folder = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        yield folder
    assert list(folder.iterdir()) == []
