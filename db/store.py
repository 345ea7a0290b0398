"""The one store: every word that Tandem remembers goes in and out here.

Each method is one unit of work in one transaction: short, whole, and safe to be tried again. A finished run is final: a
process that was given up for dead and wakes later cannot change it, though what it measured is still kept.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Executable, delete, func, insert, select, update

from core.advice import Recommendation
from core.codec import to_json
from core.device import Device
from core.errors import BadInput, NotFound
from core.probe import Measurement, Outcome, Probe
from core.run import FINAL_STATES, RUN_STATES, Actual, Identity, Progress, Run, RunSummary
from core.split import SplitRun
from db import rows
from db.backup import back_up
from db.clock import age_s, boot_id, boot_seconds, wall_clock
from db.engines import Engines
from db.migrate import migrate
from db.tables import UNFINISHED_STATES, actuals, outcomes, runs

T = TypeVar("T")
_SUMMARY = (runs.c.id, runs.c.created_at, runs.c.state, runs.c.name, runs.c.task, runs.c.best, runs.c.step_time_s, runs.c.owner,
            runs.c.note)
_PULSE = (runs.c.id, runs.c.state, runs.c.progress, runs.c.error, runs.c.cancel_asked_at_s,
          runs.c.beat_at_s, runs.c.beat_boot_id, runs.c.beat_monotonic_s, wall_clock().label("now_s"),
          runs.c.process_host, runs.c.process_boot_id, runs.c.process_pid, runs.c.process_start_ticks)
"""What a poll reads: never the long texts of a run."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """How a run stands, in one read.

    Args:
        age_s: seconds since its last heartbeat.
        cancel_age_s: seconds since a cancel was asked; None when none was.
        answered: outcomes that are kept.
        error: one line when the run did not end well.
    """

    state: str
    progress: Progress
    identity: Identity | None
    age_s: float
    cancel_age_s: float | None
    answered: int
    error: str


class Store:
    """One database, opened by its address."""

    def __init__(self, database_url: str) -> None:
        """Prepare the store; the database is opened by the first call.

        Args:
            database_url: SQLAlchemy address, `sqlite:////folder/tandem.db` or `postgresql+psycopg://...`.

        Raises:
            BadInput: another kind of address.
            StoreError: a SQLite library or a file system that loses data.
        """
        self._engines = Engines(database_url)

    def migrate(self) -> None:
        """Create or upgrade the tables; safe beside other processes, and cheap when up to date.

        Raises:
            StoreError: the database was written by a newer Tandem.
        """
        migrate(self._engines)

    def close(self) -> None:
        """Close the connections of this process."""
        self._engines.close()

    def backup(self, path: Path) -> None:
        """Write a checked copy of the database, while it is in use, to a path that does not exist yet.

        Raises:
            BadInput: the path exists, or the database is not SQLite.
            StoreError: the copy is not sound.
        """
        back_up(self._engines, path)

    def create_run(self, run: Run) -> None:
        """Add a run; one that is there already, by its id, is left as it is."""
        values = {**rows.run_values(run), **_beat_values()}

        def work(connection: Connection) -> None:
            if connection.execute(select(runs.c.id).where(runs.c.id == run.id)).first() is not None:
                return
            connection.execute(insert(runs).values(values))
            for outcome in run.outcomes:
                _add_outcome(connection, run.id, outcome)
            for actual in run.actuals:
                _add_actual(connection, actual)

        self._engines.write(work)

    def save_facts(self, run_id: str, devices: tuple[Device, ...], versions: tuple[tuple[str, str], ...]) -> None:
        """Keep what the process of a run found: attached devices and the versions of the runtimes."""
        self._change(run_id, devices=to_json(devices), versions=to_json(versions))

    def save_outcome(self, run_id: str, outcome: Outcome) -> int:
        """Keep an outcome with its raw samples; once this returns, it survives a kill of any process.

        Returns:
            Its number within the run, from 0; the same one when it was saved before.
        """
        def work(connection: Connection) -> int:
            _lock_run(connection, run_id)
            return _add_outcome(connection, run_id, outcome)

        return self._engines.write(work)

    def keep_loose(self, outcome: Outcome) -> None:
        """Keep an outcome that belongs to no run, such as one of a device's kernels; it serves later advice all the same."""
        self._engines.write(lambda connection: _add_outcome(connection, None, outcome) and None)

    def beat(self, run_id: str, progress: Progress, identity: Identity) -> bool:
        """Say that the process of a run lives and how far it is.

        Returns:
            Whether the run must stop: a cancel was asked, or someone ended it.
        """
        values = {"progress": to_json(progress), **rows.identity_values(identity), **_beat_values()}

        def work(connection: Connection) -> bool:
            unfinished = (runs.c.id == run_id) & runs.c.state.in_(UNFINISHED_STATES)
            connection.execute(update(runs).where(unfinished).values(values))
            row = connection.execute(select(runs.c.state, runs.c.cancel_asked_at_s).where(runs.c.id == run_id)).first()
            return row is None or row.state in FINAL_STATES or row.cancel_asked_at_s is not None

        return self._engines.write(work)

    def name_process(self, run_id: str, identity: Identity) -> None:
        """Keep which process was started for a run, unless that process has said so itself by now."""
        unnamed = (runs.c.id == run_id) & runs.c.process_pid.is_(None)
        values = rows.identity_values(identity)
        self._engines.write(lambda connection: connection.execute(update(runs).where(unnamed).values(values)) and None)

    def set_state(self, run_id: str, state: str, error: str = "") -> bool:
        """Move a run to another state; a finished run stays as it is.

        Returns:
            Whether it was moved.

        Raises:
            BadInput: no such state.
            NotFound: no such run.
        """
        return self._move(run_id, state, error, {})

    def finish(self, run_id: str, state: str, recommendation: Recommendation | None, error: str = "",
               split: SplitRun | None = None) -> bool:
        """End a run with its recommendation, and its split where one was asked; a finished run stays as it is.

        Returns:
            Whether it was ended by this call.

        Raises:
            BadInput: not a final state.
            NotFound: no such run.
        """
        if state not in FINAL_STATES:
            raise BadInput(f"state {state!r} as an end", "one of " + ", ".join(FINAL_STATES), "use set_state for the others")
        return self._move(run_id, state, error, {**rows.recommendation_values(recommendation), **rows.split_values(split)})

    def ask_cancel(self, run_id: str) -> None:
        """Ask a run to stop; its process sees it at its next heartbeat. Asking again changes nothing."""
        self._change(run_id, cancel_asked_at_s=func.coalesce(runs.c.cancel_asked_at_s, wall_clock()))

    def cancel_asked(self, run_id: str) -> bool:
        """Return whether a run was asked to stop."""
        return self._one(run_id, runs.c.cancel_asked_at_s).cancel_asked_at_s is not None

    def set_note(self, run_id: str, note: str) -> None:
        """Keep a person's note on a run."""
        self._change(run_id, note=note)

    def run(self, run_id: str) -> Run:
        """Return a whole run.

        Raises:
            NotFound: no such run.
        """
        def work(connection: Connection) -> Run:
            row = connection.execute(select(runs).where(runs.c.id == run_id)).first()
            if row is None:
                raise _no_run(run_id)
            mine = connection.execute(select(outcomes.c.ok, outcomes.c.outcome).where(outcomes.c.run_id == run_id)
                                      .order_by(outcomes.c.sequence))
            real = connection.execute(select(actuals).where(actuals.c.run_id == run_id).order_by(actuals.c.id))
            return rows.read_run(row, tuple(rows.read_outcome(r) for r in mine), tuple(rows.read_actual(r) for r in real))

        return self._engines.read(work)

    def progress(self, run_id: str) -> tuple[str, Progress, Identity | None, float]:
        """Return state, progress, process and seconds since the last heartbeat of a run.

        Raises:
            NotFound: no such run.
        """
        pulse = self.pulse(run_id)
        return pulse.state, pulse.progress, pulse.identity, pulse.age_s

    def pulse(self, run_id: str) -> Pulse:
        """Return how a run stands.

        Raises:
            NotFound: no such run.
        """
        answered = select(func.count()).where(outcomes.c.run_id == run_id).scalar_subquery().label("answered")
        row = self._one(run_id, *_PULSE, answered)
        cancel_age_s = None if row.cancel_asked_at_s is None else max(0.0, row.now_s - row.cancel_asked_at_s)
        return Pulse(row.state, rows.read_progress(row), rows.read_identity(row), _age_s(row), cancel_age_s,
                     row.answered, row.error)

    def recent_outcomes(self, run_id: str, limit: int) -> tuple[Outcome, ...]:
        """Return the newest outcomes of a run, oldest first."""
        newest = (select(outcomes.c.ok, outcomes.c.outcome).where(outcomes.c.run_id == run_id)
                  .order_by(outcomes.c.sequence.desc()).limit(limit))
        return tuple(reversed(self._all(newest, rows.read_outcome)))

    def history(self, search: str = "", task: str | None = None, state: str | None = None, owner: str | None = None,
                limit: int = 50, offset: int = 0) -> tuple[RunSummary, ...]:
        """Return runs, newest first.

        Args:
            search: part of a name, note, id or recommendation, in any case; empty finds all.
            task, state, owner: equal to this; None or empty finds all.
            limit, offset: at most this many, after this many.
        """
        query = (select(*_SUMMARY).where(*_wanted(search, task, state, owner))
                 .order_by(runs.c.created_at.desc(), runs.c.id).limit(limit).offset(offset))
        return self._all(query, rows.read_summary)

    def count(self, search: str = "", task: str | None = None, state: str | None = None, owner: str | None = None) -> int:
        """Return how many runs `history` would find."""
        query = select(func.count()).select_from(runs).where(*_wanted(search, task, state, owner))
        return self._engines.read(lambda connection: connection.execute(query).scalar_one())

    def known(self, run_ids: tuple[str, ...]) -> frozenset[str]:
        """Return those of the ids that are runs."""
        query = select(runs.c.id).where(runs.c.id.in_(run_ids))
        return frozenset(self._engines.read(lambda connection: connection.execute(query).scalars().all()))

    def delete_run(self, run_id: str) -> None:
        """Remove a run with its outcomes and actuals; one that is gone already is no fault."""
        self._engines.write(lambda connection: connection.execute(delete(runs).where(runs.c.id == run_id)) and None)

    def measurements(self, device_uuids: tuple[str, ...]) -> tuple[Measurement, ...]:
        """Return the newest measurement of each probe on these devices; a trusted one goes before a quarantined one."""
        place = func.row_number().over(
            partition_by=(outcomes.c.device_uuid, outcomes.c.probe_key),
            order_by=(outcomes.c.trusted.desc(), outcomes.c.taken_at.desc(), outcomes.c.id.desc())).label("place")
        here = outcomes.c.device_uuid.in_(device_uuids)
        numbered = select(outcomes.c.id, outcomes.c.ok, outcomes.c.outcome, place).where(here).subquery()
        found = self._all(select(numbered).where(numbered.c.place == 1).order_by(numbered.c.id), rows.read_outcome)
        return tuple(outcome for outcome in found if isinstance(outcome, Measurement))

    def series(self, subjects: tuple[str, ...], each: int, most: int) -> tuple[Measurement, ...]:
        """Return what was measured over time, quarantined measurements included, oldest first.

        Args:
            subjects: what was measured.
            each: the newest so many of each probe on each device.
            most: the newest so many of all.
        """
        place = func.row_number().over(
            partition_by=(outcomes.c.device_uuid, outcomes.c.probe_key), order_by=outcomes.c.id.desc()).label("place")
        wanted = (outcomes.c.ok == 1) & outcomes.c.subject.in_(subjects)
        numbered = select(outcomes.c.id, outcomes.c.ok, outcomes.c.outcome, place).where(wanted).subquery()
        newest = select(numbered).where(numbered.c.place <= each).order_by(numbered.c.id.desc()).limit(most)
        found = reversed(self._all(newest, rows.read_outcome))
        return tuple(outcome for outcome in found if isinstance(outcome, Measurement))

    def trusted_before(self, device_uuid: str, probe: Probe, most: int) -> tuple[Measurement, ...]:
        """Return the newest trusted measurements of a probe on a device, newest first, at most so many."""
        same = (outcomes.c.device_uuid == device_uuid) & (outcomes.c.probe_key == rows.digest(probe)) & (outcomes.c.trusted == 1)
        query = select(outcomes.c.ok, outcomes.c.outcome).where(same).order_by(outcomes.c.id.desc()).limit(most)
        return tuple(outcome for outcome in self._all(query, rows.read_outcome) if isinstance(outcome, Measurement))

    def devices_seen(self) -> tuple[Device, ...]:
        """Return every device that a run found, each UUID once, as it was found last."""
        query = select(runs.c.devices).group_by(runs.c.devices).order_by(func.max(runs.c.created_at))
        lists = self._all(query, rows.read_devices)
        return tuple({device.uuid: device for devices in lists for device in devices}.values())

    def add_actual(self, actual: Actual) -> None:
        """Keep what really happened; saving the same again changes nothing.

        Raises:
            NotFound: no such run.
        """
        def work(connection: Connection) -> None:
            _lock_run(connection, actual.run_id)
            _add_actual(connection, actual)

        self._engines.write(work)

    def unfinished(self) -> tuple[tuple[str, Identity | None, float], ...]:
        """Return id, process and seconds since the last heartbeat of every run that has not ended, oldest first."""
        query = select(*_PULSE).where(runs.c.state.in_(UNFINISHED_STATES)).order_by(runs.c.created_at)
        return self._all(query, lambda row: (row.id, rows.read_identity(row), _age_s(row)))

    def _move(self, run_id: str, state: str, error: str, values: rows.Values) -> bool:
        if state not in RUN_STATES:
            raise BadInput(f"state {state!r}", "one of " + ", ".join(RUN_STATES), "use a word of core.run")
        finished_at = datetime.now(UTC).isoformat() if state in FINAL_STATES else None

        def work(connection: Connection) -> bool:
            _lock_run(connection, run_id)
            movable = (runs.c.id == run_id) & runs.c.state.in_(UNFINISHED_STATES)
            new = {"state": state, "error": error, "finished_at": finished_at, **values}
            return connection.execute(update(runs).where(movable).values(new)).rowcount == 1

        return self._engines.write(work)

    def _change(self, run_id: str, **values: Any) -> None:
        def work(connection: Connection) -> None:
            if connection.execute(update(runs).where(runs.c.id == run_id).values(**values)).rowcount == 0:
                raise _no_run(run_id)

        self._engines.write(work)

    def _one(self, run_id: str, *columns: Any) -> rows.AnyRow:
        query = select(*columns).where(runs.c.id == run_id)
        row = self._engines.read(lambda connection: connection.execute(query).first())
        if row is None:
            raise _no_run(run_id)
        return row

    def _all(self, query: Executable, read: Callable[[rows.AnyRow], T]) -> tuple[T, ...]:
        found = self._engines.read(lambda connection: connection.execute(query).all())
        return tuple(read(row) for row in found)


def _beat_values() -> rows.Values:
    return {"beat_at_s": wall_clock(), "beat_boot_id": boot_id(), "beat_monotonic_s": boot_seconds()}


def _age_s(row: rows.AnyRow) -> float:
    return age_s(row.now_s - row.beat_at_s, row.beat_boot_id, row.beat_monotonic_s)


def _no_run(run_id: str) -> NotFound:
    return NotFound(f"run {run_id[:40]!r}", "the id of a run in the history", "list them with `./tandem history`")


def _lock_run(connection: Connection, run_id: str) -> None:
    if connection.execute(select(runs.c.id).where(runs.c.id == run_id).with_for_update()).first() is None:
        raise _no_run(run_id)


def _add_outcome(connection: Connection, run_id: str | None, outcome: Outcome) -> int:
    values = rows.outcome_values(outcome)
    same = (outcomes.c.run_id == run_id) & (outcomes.c.digest == values["digest"])
    before = connection.execute(select(outcomes.c.sequence).where(same)).scalar()
    if before is not None:
        return before
    last = connection.execute(select(func.max(outcomes.c.sequence)).where(outcomes.c.run_id == run_id)).scalar()
    sequence = 0 if last is None else last + 1
    connection.execute(insert(outcomes).values(run_id=run_id, sequence=sequence, **values))
    return sequence


def _add_actual(connection: Connection, actual: Actual) -> None:
    digest = rows.digest(actual)
    same = (actuals.c.run_id == actual.run_id) & (actuals.c.digest == digest)
    if connection.execute(select(actuals.c.id).where(same)).first() is None:
        connection.execute(insert(actuals).values(
            run_id=actual.run_id, digest=digest, runtime=actual.runtime, accelerator=actual.accelerator,
            step_time_s=actual.step_time_s, entered_at=actual.entered_at, note=actual.note))


def _wanted(search: str, task: str | None, state: str | None, owner: str | None) -> list[ColumnElement[bool]]:
    equal = [column == value for column, value in ((runs.c.task, task), (runs.c.state, state), (runs.c.owner, owner)) if value]
    if not search.strip():
        return equal
    places = (runs.c.name, runs.c.note, runs.c.id, runs.c.best)
    found = [place.icontains(search.strip(), autoescape=True) for place in places]
    return [*equal, found[0] | found[1] | found[2] | found[3]]
