"""Whatever is killed, an outcome that was acknowledged is there afterwards."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core.run import Run
from db import Store
from db.engines import Engines

Add = Callable[..., Run]
ROOT = Path(__file__).resolve().parents[3]
WRITER = """
import sys
from dataclasses import replace
from db import Store
from tests.samples.runs import sample_run
store, run_id, name, limit = Store(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
sample = sample_run().outcomes[0]
for number in range(limit):
    store.save_outcome(run_id, replace(sample, taken_at=f"{name} {number}"))
    print(f"{name} {number}", flush=True)
"""


def writer(url: str, run_id: str, name: str, limit: int) -> subprocess.Popen[bytes]:
    """Start a writer; its pipes are read unbuffered, so that no half of a line is lost between two ways of reading."""
    command = [sys.executable, "-c", WRITER, url, run_id, name, str(limit)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)


def is_sound(engines: Engines) -> bool:
    return engines.outside("PRAGMA integrity_check") == ("ok",)


@pytest.mark.parametrize("after", [1, 40])
def test_no_acknowledged_outcome_is_lost_when_two_writers_are_killed(url: str, store: Store, add_run: Add, after: int) -> None:
    run = add_run()
    children = [writer(url, run.id, name, 10**6) for name in ("left", "right")]
    lines: list[bytes] = []
    for child in children:
        assert child.stdout is not None
        lines.extend(child.stdout.readline() for _ in range(after))
    for child in children:
        child.kill()
    for child in children:
        rest, errors = child.communicate()
        lines.extend(line for line in rest.splitlines(keepends=True) if line.endswith(b"\n"))
        assert errors == b""
    acknowledged = {line.decode().strip() for line in lines}
    kept = [outcome.taken_at for outcome in store.run(run.id).outcomes]
    assert len(acknowledged) >= 2 * after
    assert acknowledged <= set(kept)
    assert len(kept) == len(set(kept))
    assert is_sound(store._engines)


def test_writers_at_once_never_meet_a_lock(url: str, store: Store, add_run: Add) -> None:
    run = add_run()
    children = [writer(url, run.id, name, 100) for name in ("one", "two", "three")]
    answers = [child.communicate() for child in children]
    assert [errors for _, errors in answers] == [b"", b"", b""]
    assert [child.returncode for child in children] == [0, 0, 0]
    assert len(store.run(run.id).outcomes) == 300
