"""A home of its own for each test, and small real processes in place of whole runs."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from core.run import Progress, Run
from services.context import Context, make_context
from tests.samples.runs import sample_run

ROOT = Path(__file__).resolve().parents[3]
RUN_ID = f"{os.getpid():012x}"
"""One for each process of the suite: what ends the processes of a run must not meet those of another test."""
Launch = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Context]:
    made = make_context({"TANDEM_HOME": str(tmp_path / "home"), "TANDEM_OWNER": "tests"})
    yield made
    made.store.close()


@pytest.fixture
def add_run(here: Context) -> Callable[..., Run]:
    """Keep a running run without outcomes; any field may be given."""

    def add(run_id: str = RUN_ID, **fields: object) -> Run:
        empty = {"state": "running", "finished_at": None, "recommendation": None, "outcomes": (), "actuals": (),
                 "progress": Progress("measuring", 0, 12), "id": run_id}
        run = replace(sample_run(), **{**empty, **fields})
        here.store.create_run(run)
        return run

    return add


@pytest.fixture
def launch(here: Context) -> Iterator[Launch]:
    """Start `python -c CODE` in a session of its own, wait for its first line, and end it with the test."""
    with ExitStack() as stack:
        def start(code: str, run_id: str = RUN_ID, marked: bool = True) -> subprocess.Popen[str]:
            environment = {"PATH": "/usr/bin:/bin", "DATABASE": here.settings.database_url}
            if marked:
                environment["TANDEM_RUN_ID"] = run_id
            child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment, text=True, start_new_session=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            stack.callback(child.communicate)
            stack.callback(child.kill)
            assert child.stdout is not None
            assert child.stdout.readline().strip() == "ready"
            return child

        yield start
