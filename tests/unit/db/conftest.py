"""A fresh database for each test, in a file, because what is tested is what files do."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.run import Progress, Run
from db import Store
from tests.samples.runs import sample_run


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/tandem.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = Store(url)
    store.migrate()
    yield store
    store.close()


@pytest.fixture
def add_run(store: Store) -> Callable[..., Run]:
    """Keep a queued run without outcomes; any field may be given."""

    def add(run_id: str = "0123456789ab", **fields: object) -> Run:
        empty = {"state": "queued", "finished_at": None, "recommendation": None, "outcomes": (), "actuals": (),
                 "progress": Progress("queued"), "id": run_id}
        run = replace(sample_run(), **{**empty, **fields})
        store.create_run(run)
        return run

    return add
