"""Between words and rows: what a `Run`, an `Outcome` or an `Actual` looks like in a table, and back."""

from hashlib import sha256
from typing import Any, TypeAlias

from core.advice import Recommendation
from core.codec import from_json, to_json
from core.device import Device
from core.probe import Measurement, Outcome, Probe, ProbeFailure
from core.run import Actual, Identity, Progress, Run, RunOptions, RunSummary
from core.split import SplitRun
from core.workload import Workload

Values = dict[str, Any]
"""Column values of one row, as SQLAlchemy takes them."""

AnyRow: TypeAlias = Any
"""A `sqlalchemy.Row`, which is typed by its columns, one by one, and so has no common type."""


def digest(value: Probe | Outcome | Actual) -> str:
    """Return the SHA-256 of a word's canonical JSON, in hexadecimal."""
    return sha256(to_json(value).encode()).hexdigest()


def run_values(run: Run) -> Values:
    """Return the columns of a run, without its outcomes and actuals, which have tables of their own."""
    return {
        "id": run.id, "created_at": run.created_at, "finished_at": run.finished_at, "state": run.state,
        "name": run.workload.name, "task": run.workload.task, "owner": run.owner, "host": run.host,
        "note": run.note, "error": run.error, "document": run.document,
        "options": to_json(run.options), "workload": to_json(run.workload),
        "devices": to_json(run.devices), "versions": to_json(run.versions), "progress": to_json(run.progress),
        **recommendation_values(run.recommendation), **split_values(run.split),
    }


def recommendation_values(recommendation: Recommendation | None) -> Values:
    """Return the columns that a recommendation fills, the two that the history shows among them."""
    best = recommendation.best if recommendation else None
    return {
        "recommendation": to_json(recommendation) if recommendation else None,
        "best": best.candidate.label if best else "",
        "step_time_s": best.step_time_s.mid if best and best.step_time_s else None,
    }


def split_values(split: SplitRun | None) -> Values:
    """Return the columns that a split fills; nothing without one, so that those of a recommendation stay."""
    if split is None:
        return {}
    told = split.split
    alone = told.verdict == "single" and told.best_single is not None
    seconds = told.best_single.seconds if alone and told.best_single is not None else told.seconds
    return {"split": to_json(split), "best": told.label, "step_time_s": seconds.mid if seconds else None}


def outcome_values(outcome: Outcome) -> Values:
    """Return the columns of an outcome, without its run and its number."""
    measured = isinstance(outcome, Measurement)
    return {
        "digest": digest(outcome), "probe_key": digest(outcome.probe),
        "subject": outcome.probe.subject, "runtime": outcome.probe.runtime,
        "device_uuid": outcome.device_uuid if measured else None, "ok": int(measured),
        "trusted": int(measured and outcome.trusted), "taken_at": outcome.taken_at, "outcome": to_json(outcome),
    }


def identity_values(identity: Identity) -> Values:
    """Return the columns that name the process of a run."""
    return {"process_host": identity.host, "process_boot_id": identity.boot_id,
            "process_pid": identity.pid, "process_start_ticks": identity.start_ticks}


def read_outcome(row: AnyRow) -> Outcome:
    """Return the outcome of a row with the columns `ok` and `outcome`."""
    return from_json(Measurement if row.ok else ProbeFailure, row.outcome)


def read_identity(row: AnyRow) -> Identity | None:
    """Return the process of a row of runs, or None when none was ever named."""
    if row.process_pid is None:
        return None
    return Identity(row.process_host, row.process_boot_id, row.process_pid, row.process_start_ticks)


def read_progress(row: AnyRow) -> Progress:
    """Return the progress of a row of runs."""
    return from_json(Progress, row.progress)


def read_devices(row: AnyRow) -> tuple[Device, ...]:
    """Return the devices of a row of runs."""
    return from_json(tuple[Device, ...], row.devices)


def read_run(row: AnyRow, outcomes: tuple[Outcome, ...], actuals: tuple[Actual, ...]) -> Run:
    """Return a whole run out of its row and what belongs to it."""
    return Run(
        id=row.id, created_at=row.created_at, finished_at=row.finished_at, state=row.state, document=row.document,
        options=from_json(RunOptions, row.options), workload=from_json(Workload, row.workload),
        devices=read_devices(row), outcomes=outcomes,
        recommendation=from_json(Recommendation, row.recommendation) if row.recommendation is not None else None,
        progress=read_progress(row), versions=from_json(tuple[tuple[str, str], ...], row.versions),
        host=row.host, owner=row.owner, error=row.error, note=row.note, actuals=actuals,
        split=from_json(SplitRun, row.split) if row.split is not None else None,
    )


def read_actual(row: AnyRow) -> Actual:
    """Return what really happened, out of a row of actuals."""
    return Actual(row.run_id, row.runtime, row.accelerator, row.step_time_s, row.entered_at, row.note)


def read_summary(row: AnyRow) -> RunSummary:
    """Return one line of the history."""
    return RunSummary(row.id, row.created_at, row.state, row.name, row.task, row.best, row.step_time_s, row.owner, row.note)
