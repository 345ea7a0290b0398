"""Runs are started, watched, cancelled, found, done again, deleted, and held to what really happened."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from core.errors import BadInput, NotFound, StoreError
from core.run import Progress, Run, RunOptions
from services import processes, runs
from services.context import Context
from services.processes import alive
from tests.samples.parts import sample_document
from tests.samples.runs import sample_run

Add = Callable[..., Run]
Launch = Callable[..., subprocess.Popen[str]]
DOCUMENT = json.loads(sample_document())
WAITS = "print('ready', flush=True); input()"
FINISHES = """
import os, sys
from db import Store
from services.supervision import Heart
from core.run import Progress
store, run_id = Store(os.environ["TANDEM_DATABASE_URL"]), sys.argv[1]
store.set_state(run_id, "running")
with Heart(store, run_id, lambda: Progress("measuring", 1, 1)):
    print("said by", os.environ["TANDEM_OWNER"], os.getsid(0) == os.getpid(), os.environ["TANDEM_RUN_ID"] == run_id, flush=True)
store.finish(run_id, "done", None)
"""
OBEYS = """
import os, sys
from db import Store
from services.supervision import Heart
from core.run import Progress
store, run_id = Store(os.environ["TANDEM_DATABASE_URL"]), sys.argv[1]
store.set_state(run_id, "running")
with Heart(store, run_id, lambda: Progress("measuring", 1, 2), 0.02) as heart:
    heart.wait_cancelled(60)
store.finish(run_id, "cancelled", None, "asked to stop")
"""


def command(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def wait_for_end(here: Context, run_id: str) -> None:
    who = here.store.pulse(run_id).identity
    assert who is not None
    assert processes._wait_for_all((who,), 30) == ()


def test_a_run_is_a_process_of_its_own_that_finishes_by_itself(here: Context) -> None:
    run_id = runs.start(DOCUMENT, RunOptions("none"), "ann", here=here, command=command(FINISHES))
    wait_for_end(here, run_id)
    seen = runs.watch(run_id, here=here)
    assert (seen.state, seen.over, seen.error, seen.progress.stage) == ("done", True, "", "measuring")
    assert runs.log_file(run_id, here=here).read_text(encoding="utf-8") == "said by ann True True\n"
    run = runs.open_run(run_id, here=here)
    assert (json.loads(run.document), run.options, run.owner, len(run.id)) == (DOCUMENT, RunOptions("none"), "ann", 12)
    assert run.workload.name == DOCUMENT["name"]


def test_a_cancelled_run_ends_itself_and_says_so(here: Context) -> None:
    run_id = runs.start(DOCUMENT, RunOptions(), here=here, command=command(OBEYS))
    runs.cancel(run_id, here=here)
    assert runs.watch(run_id, here=here).cancel_asked is True
    wait_for_end(here, run_id)
    seen = runs.watch(run_id, here=here)
    assert (seen.state, seen.error) == ("cancelled", "asked to stop")
    assert runs.open_run(run_id, here=here).owner == "tests"


def test_whoever_watches_a_run_that_crashed_is_told_at_once(here: Context) -> None:
    run_id = runs.start(DOCUMENT, RunOptions(), here=here, command=command("import os; os.abort()"))
    wait_for_end(here, run_id)
    seen = runs.watch(run_id, here=here)
    assert (seen.state, seen.error) == ("interrupted", "its process was killed or crashed; nothing had been measured")


def test_a_run_whose_process_cannot_be_started_is_failed_and_says_why(here: Context) -> None:
    with pytest.raises(StoreError, match="No such file"):
        runs.start(DOCUMENT, RunOptions(), here=here, command=("/no/such/interpreter",))
    (summary,) = runs.history(here=here)
    assert summary.state == "failed"
    assert "/no/such/interpreter" in runs.open_run(summary.id, here=here).error


def test_a_document_that_is_no_workload_starts_nothing(here: Context) -> None:
    with pytest.raises(BadInput):
        runs.start({"schema": 1, "nonsense": True}, RunOptions(), here=here, command=("/no/such/interpreter",))
    assert runs.count(here=here) == 0


def test_watching_shows_the_newest_outcomes(here: Context, add_run: Add, launch: Launch) -> None:
    outcomes = sample_run().outcomes
    run = add_run(outcomes=outcomes, progress=Progress("measuring", len(outcomes), 30))
    child = launch(WAITS)
    here.store.beat(run.id, run.progress, processes.identity(child.pid))
    seen = runs.watch(run.id, 3, here=here)
    assert (seen.state, seen.over, seen.answered, seen.recent) == ("running", False, len(outcomes), outcomes[-3:])


def test_a_run_is_found_by_what_was_typed(here: Context, add_run: Add) -> None:
    add_run("a" * 12, note="for the board")
    add_run("b" * 12)
    assert [summary.id for summary in runs.history("board", here=here)] == ["a" * 12]
    assert runs.count(state="running", here=here) == 2


def test_a_run_done_again_asks_the_same_under_a_new_id(here: Context, add_run: Add) -> None:
    run = add_run(document=sample_document(), options=RunOptions("settle", 33.0, ("jax",)), owner="ann", state="done",
                  finished_at="2026-01-01")
    again = runs.open_run(runs.rerun(run.id, here=here, command=command("pass")), here=here)
    assert again.id != run.id
    assert (again.document, again.options, again.owner) == (run.document, run.options, "ann")


def test_deleting_a_run_at_work_ends_it_first(here: Context, add_run: Add, launch: Launch) -> None:
    run = add_run()
    child, worker = launch(WAITS), launch(WAITS)
    here.store.beat(run.id, run.progress, processes.identity(child.pid))
    log = runs.log_file(run.id, here=here)
    log.parent.mkdir()
    log.touch()
    runs.delete(run.id, here=here)
    assert (child.wait(5), worker.wait(5)) == (-signal.SIGTERM, -signal.SIGTERM)
    assert runs.count(here=here) == 0
    assert not log.exists()


def test_deleting_a_run_that_ended_touches_no_process(here: Context, add_run: Add, launch: Launch) -> None:
    run = add_run(state="done", finished_at="2026-01-01")
    bystander = launch(WAITS)
    runs.delete(run.id, here=here)
    assert alive(processes.identity(bystander.pid)) is True
    with pytest.raises(NotFound):
        runs.open_run(run.id, here=here)


def test_what_really_happened_is_kept_for_the_recommended_candidate(here: Context) -> None:
    run = replace(sample_run(), actuals=())
    here.store.create_run(run)
    assert run.recommendation is not None
    assert run.recommendation.best is not None
    actual = runs.record_actual(run.id, 1.5, text="on Tuesday", here=here)
    assert runs.open_run(run.id, here=here).actuals == (actual,)
    candidate = run.recommendation.best.candidate
    assert (actual.runtime, actual.accelerator, actual.step_time_s) == (candidate.runtime, candidate.pools[0].accelerator, 1.5)


def test_what_really_happened_elsewhere_needs_its_place(here: Context, add_run: Add) -> None:
    run = add_run()
    with pytest.raises(BadInput, match="name the runtime and the accelerator"):
        runs.record_actual(run.id, 1.5, here=here)
    assert runs.record_actual(run.id, 1.5, "jax", "tpu-v6e", here=here).accelerator == "tpu-v6e"


def test_what_really_happened_on_no_such_chip_is_refused(here: Context, add_run: Add) -> None:
    run = add_run()
    with pytest.raises(NotFound, match="bogus"):
        runs.record_actual(run.id, 1.5, "jax", "bogus", here=here)
    assert not runs.open_run(run.id, here=here).actuals


def test_known_runs_are_told_once_in_the_order_asked_for(here: Context, add_run: Add) -> None:
    first, second = add_run("a" * 12), add_run("b" * 12)
    assert runs.known([second.id, "gone", first.id, second.id], here=here) == [second.id, first.id]
    assert runs.known([], here=here) == []


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_step_time_that_is_none_is_refused(here: Context, add_run: Add, seconds: float) -> None:
    run = add_run()
    with pytest.raises(BadInput, match="greater than 0"):
        runs.record_actual(run.id, seconds, "jax", "cpu:0", here=here)


def test_a_note_is_kept_as_typed(here: Context, add_run: Add) -> None:
    run = add_run()
    runs.note(run.id, "<b>ask Ann</b> 🎈\n", here=here)
    assert runs.open_run(run.id, here=here).note == "<b>ask Ann</b> 🎈\n"


@pytest.mark.parametrize("text", ["x" * 2001, "half \ud83d", "zero \0"])
def test_a_note_that_cannot_be_kept_is_refused(here: Context, add_run: Add, text: str) -> None:
    run = add_run()
    with pytest.raises(BadInput):
        runs.note(run.id, text, here=here)


@pytest.mark.parametrize("call", [runs.watch, runs.cancel, runs.open_run, runs.delete, runs.rerun])
def test_a_run_that_does_not_exist_is_not_found(here: Context, call: Callable[..., object]) -> None:
    with pytest.raises(NotFound):
        call("nowhere", here=here)


def test_the_run_process_cannot_be_confused_with_the_one_that_started_it(here: Context) -> None:
    run_id = runs.start(DOCUMENT, RunOptions(), here=here, command=command("import sys; sys.stdin.read()"))
    who = here.store.pulse(run_id).identity
    assert who is not None
    assert who.pid != os.getpid()
    wait_for_end(here, run_id)
