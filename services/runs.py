"""Runs as a person meets them: start, watch, cancel, open, find, do again, delete, and say what really happened.

A run is a process of its own, in a session of its own: it outlives the page, the browser and the portal that started it.
Nothing here waits for it; whoever looks at it reads the database, and settles it first when its process is gone.
"""

import json
import math
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import catalog
import intake
from core.errors import BadInput, StoreError, one_line
from core.probe import Outcome
from core.run import FINAL_STATES, Actual, Progress, Run, RunOptions, RunSummary
from services import supervision
from services.context import Context, context
from services.fleet import devices_for
from services.pools import pools_for, with_names_said

REPOSITORY = Path(__file__).resolve().parent.parent
WORK_COMMAND = (sys.executable, "-m", "cli", "work")
"""What a run's process is; the id of the run follows."""

NOTE_LIMIT = 2000
RECENT = 12


@dataclass(frozen=True, slots=True)
class Watch:
    """How a run stands at this moment.

    Args:
        state: one of `core.run.RUN_STATES`.
        age_s: seconds since its last heartbeat.
        answered: outcomes that are kept.
        error: one line when it did not end well.
        recent: its newest outcomes, oldest first.
    """

    run_id: str
    state: str
    progress: Progress
    age_s: float
    cancel_asked: bool
    answered: int
    error: str
    recent: tuple[Outcome, ...]

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state in FINAL_STATES


def start(document: Mapping[str, Any], options: RunOptions, owner: str = "", *, here: Context | None = None,
          command: tuple[str, ...] = WORK_COMMAND) -> str:
    """Keep a new run and start its process.

    Args:
        document: a workload as in a workload file.
        options: how it is to be probed.
        owner: whose it is; the owner in the settings when empty.
        here: the context; that of this process when None.
        command: what to start; the id of the run is added.

    Returns:
        The id of the run. Once it is returned, the run is kept whatever happens.

    Raises:
        BadInput: the document is not a workload, or a pool is neither a catalog key nor attached.
        StoreError: the run cannot be kept or its process cannot be started.
    """
    here = here or context()
    run = _queued(document, options, owner, here)
    _spawn(here, run, command)
    return run.id


def create(document: Mapping[str, Any], options: RunOptions, owner: str = "", *, here: Context | None = None) -> str:
    """Keep a new run without starting a process: the caller does its work itself, in the foreground.

    Raises:
        BadInput: the document is not a workload.
        StoreError: the run cannot be kept.
    """
    return _queued(document, options, owner, here or context()).id


def _queued(document: Mapping[str, Any], options: RunOptions, owner: str, here: Context) -> Run:
    workload = with_names_said(intake.read_document(document), options.pools)
    pools_for(workload, devices_for(options.split.pools if options.split else ()), options.pools)
    run = Run(
        id=secrets.token_hex(6), created_at=_now(), finished_at=None, state="queued",
        document=json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False), options=options,
        workload=workload, devices=(), outcomes=(), recommendation=None,
        progress=Progress("queued"), versions=(), host=socket.gethostname(), owner=owner or here.settings.owner)
    here.store.create_run(run)
    return run


def watch(run_id: str, recent: int = RECENT, *, here: Context | None = None) -> Watch:
    """Return how a run stands, after settling it when its process is gone.

    Args:
        run_id: the run.
        recent: how many of its newest outcomes to return.
        here: the context; that of this process when None.

    Raises:
        NotFound: no such run.
    """
    store = (here or context()).store
    supervision.settle(store, run_id)
    pulse = store.pulse(run_id)
    return Watch(run_id, pulse.state, pulse.progress, pulse.age_s, pulse.cancel_age_s is not None, pulse.answered, pulse.error,
                 store.recent_outcomes(run_id, recent))


def cancel(run_id: str, *, here: Context | None = None) -> None:
    """Ask a run to stop; it keeps what it measured. It sees this within two seconds, and is ended by force when it does not.

    Raises:
        NotFound: no such run.
    """
    store = (here or context()).store
    store.ask_cancel(run_id)
    supervision.settle(store, run_id)


def open_run(run_id: str, *, here: Context | None = None) -> Run:
    """Return a whole run.

    Raises:
        NotFound: no such run.
    """
    return (here or context()).store.run(run_id)


def history(search: str = "", task: str | None = None, state: str | None = None, owner: str | None = None,
            limit: int = 50, offset: int = 0, *, here: Context | None = None) -> tuple[RunSummary, ...]:
    """Return runs, newest first.

    Args:
        search: part of a name, note, id or recommendation; empty finds all.
        task, state, owner: equal to this; None or empty finds all.
        limit, offset: at most this many, after this many.
        here: the context; that of this process when None.
    """
    return (here or context()).store.history(search, task, state, owner, limit, offset)


def count(search: str = "", task: str | None = None, state: str | None = None, owner: str | None = None, *,
          here: Context | None = None) -> int:
    """Return how many runs `history` would find in all."""
    return (here or context()).store.count(search, task, state, owner)


def known(run_ids: Sequence[str], *, here: Context | None = None) -> list[str]:
    """Return those of the ids that are runs, each once, in their order."""
    there = (here or context()).store.known(tuple(run_ids))
    return [run_id for run_id in dict.fromkeys(run_ids) if run_id in there]


def delete(run_id: str, *, here: Context | None = None) -> None:
    """Remove a run with everything it measured; one that is still at work is stopped first.

    Raises:
        NotFound: no such run.
    """
    here = here or context()
    pulse = here.store.pulse(run_id)
    if pulse.state not in FINAL_STATES:
        here.store.ask_cancel(run_id)
        if pulse.identity is not None and supervision.alive(pulse.identity):
            supervision.kill_group(pulse.identity.pid)
        supervision.kill_marked(run_id)
    here.store.delete_run(run_id)
    log_file(run_id, here=here).unlink(missing_ok=True)


def rerun(run_id: str, owner: str = "", *, here: Context | None = None, command: tuple[str, ...] = WORK_COMMAND) -> str:
    """Start a new run of the same document with the same options, and return its id.

    Raises:
        NotFound: no such run.
        BadInput: the document is not a workload for this version of Tandem.
    """
    run = open_run(run_id, here=here)
    return start(json.loads(run.document), run.options, owner or run.owner, here=here, command=command)


def record_actual(run_id: str, step_time_s: float, runtime: str | None = None, accelerator: str | None = None,
                  text: str = "", *, here: Context | None = None) -> Actual:
    """Keep what really happened.

    Args:
        run_id: the run that advised it.
        step_time_s: seconds of one step, as measured later.
        runtime, accelerator: where; those of the recommendation when None.
        text: a note.
        here: the context; that of this process when None.

    Raises:
        NotFound: no such run, or an accelerator that is neither in the catalog nor was attached.
        BadInput: not a time, or nothing was recommended and no runtime or accelerator was named.
    """
    store = (here or context()).store
    if not (math.isfinite(step_time_s) and step_time_s > 0):
        raise BadInput(f"a step time of {step_time_s}", "seconds greater than 0", "give the measured time of one step")
    run = store.run(run_id)
    best = run.recommendation
    candidate = best.best.candidate if best and best.best else None
    runtime = runtime or (candidate.runtime if candidate else None)
    accelerator = accelerator or (candidate.pools[0].accelerator if candidate and candidate.pools else None)
    if runtime is None or accelerator is None:
        raise BadInput("a run that recommended nothing", "where the step was timed", "name the runtime and the accelerator")
    if accelerator not in {device.id for device in run.devices}:
        catalog.accelerator(accelerator)
    actual = Actual(run_id, runtime, accelerator, float(step_time_s), _now(), _text(text))
    store.add_actual(actual)
    return actual


def note(run_id: str, text: str, *, here: Context | None = None) -> None:
    """Keep a person's note on a run; an empty one removes it.

    Raises:
        NotFound: no such run.
        BadInput: it is too long.
    """
    (here or context()).store.set_note(run_id, _text(text))


def sweep(*, here: Context | None = None) -> tuple[str, ...]:
    """Settle every run whose process is gone, and return the ids of those that this call ended."""
    return supervision.sweep((here or context()).store)


def log_file(run_id: str, *, here: Context | None = None) -> Path:
    """Return where the process of a run writes what it has to say beside its results."""
    return (here or context()).settings.home / "runs" / f"{run_id}.log"


def _spawn(here: Context, run: Run, command: tuple[str, ...]) -> None:
    settings = here.settings
    environment = {**os.environ, supervision.RUN_VARIABLE: run.id, "TANDEM_HOME": str(settings.home),
                   "TANDEM_DATABASE_URL": settings.database_url, "TANDEM_OWNER": run.owner}
    log = log_file(run.id, here=here)
    try:
        log.parent.mkdir(exist_ok=True, mode=0o700)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            process = subprocess.Popen((*command, run.id), cwd=REPOSITORY, env=environment,  # noqa: S603  (our own command)
                                       stdin=subprocess.DEVNULL, stdout=descriptor, stderr=descriptor, start_new_session=True)
        finally:
            os.close(descriptor)
    except OSError as error:
        reason = one_line(f"got {error.strerror} when starting {command[0]}; expected a process; "
                          "check the disk and the interpreter")
        here.store.set_state(run.id, "failed", reason)
        raise StoreError(reason) from None
    here.store.name_process(run.id, supervision.identity(process.pid))
    threading.Thread(target=process.wait, name=f"reaper {run.id}", daemon=True).start()


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _text(text: str) -> str:
    if len(text) > NOTE_LIMIT:
        raise BadInput(f"a note of {len(text):,} characters", f"at most {NOTE_LIMIT:,}", "shorten it")
    if any(0xD800 <= ord(character) <= 0xDFFF or character == "\0" for character in text):
        raise BadInput("a note with half a character in it", "text", "type it again")
    return text
