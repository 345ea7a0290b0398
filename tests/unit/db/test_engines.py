"""Transactions wait their turn, are whole, and fail in one line that says what to do."""

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from core.errors import BadInput, StoreError
from core.run import Run
from db import Store, engines
from db.engines import Engines
from db.library import sqlite_library

Add = Callable[..., Run]
ROOT = Path(__file__).resolve().parents[3]


def setting(name: str) -> Callable[[Connection], object]:
    return lambda connection: connection.execute(text(f"PRAGMA {name}")).scalar()


@pytest.mark.parametrize(("name", "value"), [
    ("journal_mode", "wal"), ("synchronous", 1), ("busy_timeout", 5000), ("foreign_keys", 1), ("trusted_schema", 0),
    ("mmap_size", 0),
])
def test_every_connection_is_set_by_the_rules(store: Store, name: str, value: object) -> None:
    assert store._engines.read(setting(name)) == value
    assert store._engines.write(setting(name)) == value


def test_the_read_engine_cannot_write(store: Store) -> None:
    assert store._engines.read(setting("query_only")) == 1
    with pytest.raises(StoreError, match="readonly"):
        store._engines.read(lambda c: c.execute(text("DELETE FROM runs")))


def test_a_unit_that_reads_and_then_writes_is_not_overtaken(url: str, store: Store, add_run: Add) -> None:
    run = add_run()
    other, overtaken = Store(url), threading.Event()

    def overtake() -> None:
        other.set_note(run.id, "other")
        overtaken.set()

    def work(connection: Connection) -> bool:
        before = connection.execute(text("SELECT note FROM runs")).scalar_one()
        thread.start()
        early = overtaken.wait(0.2)
        connection.execute(text("UPDATE runs SET note = :note"), {"note": before + "first"})
        return early

    thread = threading.Thread(target=overtake)
    assert store._engines.write(work) is False
    thread.join()
    assert store.run(run.id).note == "other"
    other.close()


def test_a_reader_is_not_held_up_by_a_writer(store: Store, add_run: Add) -> None:
    run = add_run()

    def work(connection: Connection) -> str:
        connection.execute(text("UPDATE runs SET note = 'new'"))
        return store.run(run.id).note

    assert store._engines.write(work) == run.note
    assert store.run(run.id).note == "new"


def test_a_unit_that_fails_leaves_nothing_behind(store: Store, add_run: Add) -> None:
    run = add_run()

    def work(connection: Connection) -> None:
        connection.execute(text("UPDATE runs SET note = 'half'"))
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        store._engines.write(work)
    assert store.run(run.id).note == run.note


@pytest.mark.usefixtures("store")
def test_a_database_that_stays_busy_is_tried_five_times_and_then_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_PRAGMAS", ("busy_timeout=1",))
    monkeypatch.setattr(engines, "_PAUSE_S", 0.0001)
    holder = sqlite_library().connect(url.removeprefix("sqlite:///"), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    hurried = Store(url)
    with pytest.raises(StoreError, match="stayed busy for 5 attempts"):
        hurried.delete_run("x")
    holder.execute("ROLLBACK")
    hurried.delete_run("x")
    holder.close()
    hurried.close()


@pytest.mark.usefixtures("store")
def test_a_unit_is_tried_again_when_the_database_was_busy_for_a_moment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_PRAGMAS", ("busy_timeout=1",))
    holder = sqlite_library().connect(url.removeprefix("sqlite:///"), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        holder.execute("ROLLBACK")

    monkeypatch.setattr(engines.time, "sleep", pause)
    hurried = Store(url)
    hurried.delete_run("x")
    assert len(pauses) == 1
    holder.close()
    hurried.close()


def test_threads_that_write_at_once_lose_nothing(store: Store, add_run: Add) -> None:
    run = add_run(note="")

    def add_letter(connection: Connection) -> None:
        connection.execute(text("UPDATE runs SET note = note || 'x'"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: store._engines.write(add_letter), range(80)))
    assert store.run(run.id).note == "x" * 80


@pytest.mark.parametrize(("make", "remedy"), [
    (lambda path: path.write_bytes(b"this is not a database" * 300), "restore a backup"),
    (lambda path: path.mkdir(), "check that the folder exists"),
])
def test_a_file_that_is_no_database_gives_one_line_with_a_remedy(
        tmp_path: Path, make: Callable[[Path], object], remedy: str) -> None:
    path = tmp_path / "odd.db"
    make(path)
    with pytest.raises(StoreError, match=remedy) as caught:
        Store(f"sqlite:///{path}").migrate()
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("store")
def test_a_connection_does_not_cross_a_fork(url: str) -> None:
    code = ("import os, sys; from db import Store; s = Store(sys.argv[1]); s.count(); child = os.fork(); "
            "pool = s._engines.reading.pool; before = pool._pool.queue[0].dbapi_connection; s.count(); "
            "same = pool._pool.queue[0].dbapi_connection is before; "
            "os.write(1, f'{\"parent\" if child else \"child\"} {same}\\n'.encode()); "
            "child and os.waitpid(child, 0)")
    done = subprocess.run([sys.executable, "-c", code, url], cwd=ROOT, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.splitlines()) == ["child False", "parent True"]
    assert done.stderr == ""


def test_a_missing_driver_is_bad_input_that_says_what_to_install() -> None:
    with pytest.raises(BadInput, match="psycopg") as caught:
        Store("postgresql+nodriver://ann:secret@host/t")
    assert "secret" not in str(caught.value)


def test_a_password_in_an_address_is_never_shown() -> None:
    engine = SimpleNamespace(url=make_url("postgresql://ann:secret@host/t"))
    made = Engines.__new__(Engines)
    made.is_sqlite, made.file, made.writing = False, None, engine
    cause = RuntimeError("server is gone")
    told = made._explained(OperationalError("x", None, cause), cause)
    assert isinstance(told, StoreError)
    assert "ann" in str(told)
    assert "secret" not in str(told)
