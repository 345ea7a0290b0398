"""A page never shows a dead run as running, never loses what it measured, and never ends one that lives."""

import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from core.run import Progress, Run
from db.clock import boot_id
from services import supervision
from services.context import Context
from services.processes import alive, identity
from services.supervision import Heart, settle, sweep
from tests.samples.runs import sample_run

Add = Callable[..., Run]
Launch = Callable[..., subprocess.Popen[str]]
WAITS = "print('ready', flush=True); input()"
MEASURES = """
import os, sys
from core.run import Progress
from db import Store
from services.processes import identity
from tests.samples.runs import sample_run
store, run_id = Store(os.environ["DATABASE"]), os.environ["TANDEM_RUN_ID"]
store.beat(run_id, Progress("measuring", 7, 12), identity())
for outcome in sample_run().outcomes[:7]:
    store.save_outcome(run_id, outcome)
print("ready", flush=True)
input()
"""
THREE_DAYS_S = 3 * 86400


def rewrite(here: Context, change: str) -> None:
    here.store._engines.write(lambda c: c.execute(text(f"UPDATE runs SET {change}")))


def beat_as(here: Context, run: Run, child: subprocess.Popen[str], progress: Progress | None = None) -> None:
    here.store.beat(run.id, progress or run.progress, identity(child.pid))


def test_a_killed_run_becomes_interrupted_and_keeps_what_it_measured(here: Context, add_run: Add, launch: Launch) -> None:
    run = add_run()
    child = launch(MEASURES)
    assert sweep(here.store) == ()
    child.kill()
    child.wait()
    assert sweep(here.store) == (run.id,)
    again = here.store.run(run.id)
    assert (again.state, again.error) == ("interrupted", "its process was killed or crashed; kept 7 of 12 probes")
    assert again.outcomes == sample_run().outcomes[:7]
    assert again.finished_at is not None
    assert sweep(here.store) == ()


def test_workers_that_a_killed_run_left_behind_are_ended(here: Context, add_run: Add, launch: Launch) -> None:
    run = add_run()
    child, worker = launch(WAITS), launch(WAITS)
    beat_as(here, run, child)
    child.kill()
    child.wait()
    assert settle(here.store, run.id) is True
    assert worker.wait(5) == -signal.SIGTERM


def test_a_run_whose_process_id_belongs_to_another_process_now_is_dead_and_that_process_lives(
        here: Context, add_run: Add, launch: Launch) -> None:
    run = add_run()
    stranger = launch(WAITS, marked=False)
    who = identity(stranger.pid)
    here.store.beat(run.id, run.progress, replace(who, start_ticks=who.start_ticks - 500))
    assert settle(here.store, run.id) is True
    assert here.store.run(run.id).state == "interrupted"
    assert alive(who) is True


@pytest.mark.parametrize("jump_s", [THREE_DAYS_S, -THREE_DAYS_S])
def test_a_run_that_lives_is_not_ended_when_the_clock_jumps(here: Context, add_run: Add, launch: Launch, jump_s: int) -> None:
    run = add_run()
    child = launch(WAITS)
    beat_as(here, run, child)
    rewrite(here, f"beat_at_s = beat_at_s - {jump_s}")
    assert sweep(here.store) == ()
    assert here.store.run(run.id).state == "running"
    assert child.poll() is None


@pytest.mark.parametrize("stopped", [False, True])
def test_a_run_that_lives_but_does_not_answer_is_ended_with_its_group(
        here: Context, add_run: Add, launch: Launch, stopped: bool) -> None:
    run = add_run()
    child = launch(WAITS)
    beat_as(here, run, child)
    if stopped:
        child.send_signal(signal.SIGSTOP)
    rewrite(here, "beat_monotonic_s = beat_monotonic_s - 61")
    assert settle(here.store, run.id, 0.2) is True
    assert child.wait(5) in (-signal.SIGTERM, -signal.SIGKILL)
    assert here.store.run(run.id).error.startswith("its process did not answer for 61 s and was ended; kept 0 of 12")


def test_a_run_on_another_host_is_judged_by_its_heartbeat_alone(here: Context, add_run: Add) -> None:
    run = add_run()
    here.store.beat(run.id, run.progress, replace(identity(), host="elsewhere"))
    assert sweep(here.store) == ()
    rewrite(here, "beat_at_s = beat_at_s - 61, beat_boot_id = 'theirs'")
    assert sweep(here.store) == (run.id,)
    assert here.store.run(run.id).error.startswith("its process on elsewhere did not answer for 61 s;")


def test_a_run_of_an_earlier_boot_is_over(here: Context, add_run: Add) -> None:
    run = add_run()
    here.store.beat(run.id, run.progress, replace(identity(), boot_id="before"))
    assert settle(here.store, run.id) is True
    assert here.store.run(run.id).error.startswith("the machine was restarted;")


def test_a_run_whose_process_never_started_is_given_up_after_a_minute(here: Context, add_run: Add) -> None:
    run = add_run(state="queued", progress=Progress("queued"))
    assert settle(here.store, run.id) is False
    rewrite(here, "beat_monotonic_s = beat_monotonic_s - 61")
    assert settle(here.store, run.id) is True
    assert here.store.run(run.id).error == "its process never started; nothing had been measured"


def test_a_cancelled_run_whose_process_is_gone_is_cancelled_not_interrupted(here: Context, add_run: Add, launch: Launch) -> None:
    run = add_run()
    child = launch(MEASURES)
    here.store.ask_cancel(run.id)
    assert settle(here.store, run.id) is False
    child.kill()
    child.wait()
    assert settle(here.store, run.id) is True
    again = here.store.run(run.id)
    assert (again.state, again.error) == ("cancelled", "cancelled; kept 7 of 12 probes")


def test_a_run_that_is_deaf_to_a_cancel_is_ended_by_force(here: Context, add_run: Add, launch: Launch) -> None:
    run = add_run()
    child = launch(WAITS)
    beat_as(here, run, child)
    here.store.ask_cancel(run.id)
    rewrite(here, "cancel_asked_at_s = cancel_asked_at_s - 16")
    assert settle(here.store, run.id, 0.2) is True
    assert child.wait(5) == -signal.SIGTERM
    assert here.store.run(run.id).state == "cancelled"


@pytest.mark.parametrize("state", ["done", "failed", "cancelled", "interrupted"])
def test_a_run_that_has_ended_is_left_alone(here: Context, add_run: Add, state: str) -> None:
    run = add_run()
    here.store.beat(run.id, run.progress, replace(identity(), boot_id="before"))
    here.store.finish(run.id, state, None, "its own words")
    assert settle(here.store, run.id) is False
    assert here.store.run(run.id).error == "its own words"


def test_a_heart_beats_from_the_start_and_carries_the_progress(here: Context, add_run: Add) -> None:
    run = add_run()
    asked = iter(range(1000))
    second, third = threading.Event(), threading.Event()

    def progress() -> Progress:
        number = next(asked)
        if number in (1, 2):
            (second if number == 1 else third).set()
        return Progress("measuring", number, 1000)

    with Heart(here.store, run.id, progress, 0.01) as heart:
        assert here.store.pulse(run.id).identity == identity()
        assert second.wait(10)
        assert third.wait(10)
        assert here.store.pulse(run.id).progress.done >= 1
        assert heart.cancelled() is False
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("heart")] == []


def test_a_heart_notices_a_cancel(here: Context, add_run: Add) -> None:
    run = add_run()
    with Heart(here.store, run.id, lambda: run.progress, 0.01) as heart:
        assert heart.cancelled() is False
        here.store.ask_cancel(run.id)
        assert heart.wait_cancelled(10) is True
        assert heart.cancelled() is True


@pytest.mark.parametrize("end", [lambda store, run_id: store.set_state(run_id, "interrupted", "given up"),
                                 lambda store, run_id: store.delete_run(run_id)])
def test_a_heart_stops_the_work_of_a_run_that_was_given_up_or_deleted(
        here: Context, add_run: Add, end: Callable[..., object]) -> None:
    run = add_run()
    with Heart(here.store, run.id, lambda: run.progress, 0.01) as heart:
        end(here.store, run.id)
        assert heart.wait_cancelled(10) is True


def test_a_heart_survives_a_database_that_fails_for_a_moment(here: Context, add_run: Add) -> None:
    run = add_run()
    failed, healed = threading.Event(), threading.Event()
    beat = here.store.beat

    class Unsteady:
        def beat(self, *arguments: object) -> bool:
            if threading.current_thread().name.startswith("heart") and not failed.is_set():
                failed.set()
                raise supervision.StoreError("busy")
            if failed.is_set():
                healed.set()
            return beat(*arguments)  # type: ignore[arg-type]

    with Heart(Unsteady(), run.id, lambda: run.progress, 0.01):  # type: ignore[arg-type]
        assert failed.wait(10)
        assert healed.wait(10)


def test_a_log_that_grows_without_end_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "run.log"
    monkeypatch.delenv("TANDEM_RUN_ID", raising=False)
    with log.open("ab") as stream:
        monkeypatch.setattr(supervision, "_OUTPUTS", (stream.fileno(),))
        monkeypatch.setattr(supervision, "LOG_LIMIT_BYTES", 1000)
        stream.write(b"x" * 1001)
        stream.flush()
        supervision._cap_output()
        assert log.stat().st_size == 1001
        monkeypatch.setenv("TANDEM_RUN_ID", "x")
        supervision._cap_output()
        stream.write(b"after")
    assert log.read_bytes() == b"(what came before was cut: the log had grown too long)\nafter"


def test_this_boot_has_an_id_here() -> None:
    assert boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
