"""The rest of a run as rows of text: reasons, gaps, failures, measurements, facts; companion of `view.py`.

Same rule: everything is text as people read it, nothing is escaped, nothing is decided.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core import format as write
from core.advice import Estimate, Gap
from core.codec import parse_json
from core.errors import BadInput
from core.probe import Measurement, Probe, ProbeFailure
from core.quantity import TIERS
from core.run import Run, RunOptions
from reports.gather import concerns, gathered_phrases, listed, without_accelerator
from reports.theme import TIER_LOOKS
from reports.view import UNKNOWN

GAPS_APART = 6
"""Figures of one device that was not measured at all up to which each has a row of its own."""


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """What a rule said, and of whom; `href` is set only when the source is an https address."""

    effect: str
    applies_to: str
    reason: str
    source: str
    href: str
    as_of: str
    flag: str
    rule: str


@dataclass(frozen=True, slots=True)
class GapRow:
    """Something that is not known, what would tell, and how long that takes."""

    what: str
    remedy: str
    cost: str


@dataclass(frozen=True, slots=True)
class FailureRow:
    """A probe that was not answered."""

    subject: str
    runtime: str
    device: str
    stage: str
    error: str
    exit_code: str
    stderr_tail: str


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    """One measurement: what, where, and the statistics of its raw samples."""

    subject: str
    runtime: str
    device: str
    median: str
    iqr: str
    minimum: str
    n: int
    method: str
    compile: str
    memory: str
    warnings: tuple[str, ...]
    trusted: bool


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One block of the workload; parameters and FLOPs are of one repeat."""

    name: str
    kind: str
    sizes: str
    repeats: str
    parameters: str
    flop_forward: str
    flop_backward: str


@dataclass(frozen=True, slots=True)
class ActualRow:
    """What really happened beside what was said; `error` is signed, positive when it was slower than said."""

    label: str
    actual: str
    predicted: str
    error: str
    inside_band: str
    note: str


def https_only(source: str) -> str:
    """Return `source` when it is one plain https address, else nothing: only such may become a link."""
    plain = source.startswith("https://") and all(c.isalnum() or c in "-._~:/?#@!$&+,;=%" for c in source)
    return source if plain and source.isascii() else ""


def reason_rows(run: Run) -> tuple[ReasonRow, ...]:
    """Return what the rules said that excludes nothing: penalties, warnings, then suggestions; equal ones in one row."""
    order = {"penalise": 0, "warn": 1, "suggest": 2}
    verdicts = [v for v in run.recommendation.verdicts if v.effect in order] if run.recommendation else []
    said = [
        (v.runtime, v.accelerator, v.reason + (f" (x {write.three_digits(v.factor)})" if v.factor != 1 else ""), v)
        for v in sorted(verdicts, key=lambda v: order[v.effect])
    ]
    return _gathered(
        [(who, where, ReasonRow(v.effect, "", text, v.source, "", v.as_of, v.flag, v.rule)) for who, where, text, v in said]
    )


def excluded_rows(run: Run) -> tuple[ReasonRow, ...]:
    """Return what was excluded and why, equal reasons in one row."""
    excluded = run.recommendation.excluded if run.recommendation else ()
    rows = [(e.runtime, e.accelerator, ReasonRow("exclude", "", e.reason, e.source, "", "", e.flag, e.rule)) for e in excluded]
    return _gathered(rows)


def gap_rows(run: Run) -> tuple[GapRow, ...]:
    """Return what is not known: the gaps that the advice names, then what single candidates lack."""
    advice = run.recommendation
    if advice is None:
        return ()
    unmeasured = _unmeasured(advice.gaps)
    rows = _gaps_by_device(advice.gaps, unmeasured)
    lacking = gathered_phrases(
        (phrase, f"{e.candidate.runtime} on {pool.accelerator}", e.candidate.label)
        for e in advice.ranked + advice.unranked
        for pool in e.candidate.pools[:1]
        if pool.accelerator not in unmeasured
        for phrase in e.missing
    )
    rows += [GapRow(phrase, f"concerns {listed(labels)}", UNKNOWN) for phrase, labels in lacking.items()]
    return tuple(rows)


def _unmeasured(gaps: Sequence[Gap]) -> dict[str, list[Probe]]:
    """Return the open probes of each device of which nothing tells anything, where they are many."""
    probes: dict[str, list[Probe]] = {}
    for gap in gaps:
        if gap.probe is not None and gap.seconds is None:
            probes.setdefault(gap.probe.device, []).append(gap.probe)
    return {device: found for device, found in probes.items() if len(found) > GAPS_APART}


def _gaps_by_device(gaps: Sequence[Gap], unmeasured: dict[str, list[Probe]]) -> list[GapRow]:
    """Return a row for each gap, and one for all of a device that was not measured."""
    rows = [
        GapRow(
            f"times on {device} in {listed(tuple(dict.fromkeys(probe.runtime for probe in probes)))}",
            "not measured: advise with --probe quick, or settle", UNKNOWN,
        )
        for device, probes in unmeasured.items()
    ]  # fmt: skip
    rows += [
        GapRow(gap.what, gap.remedy, write.seconds(gap.seconds))
        for gap in gaps
        if gap.probe is None or gap.seconds is not None or gap.probe.device not in unmeasured
    ]
    return rows


def flip_rows(run: Run) -> tuple[tuple[str, str, str, str], ...]:
    """Return the smallest changes that change the choice, as (what, now, changes at, then choose)."""
    flips = run.recommendation.flips if run.recommendation else ()
    return tuple((flip.what, _amount(flip.now, flip.unit), _amount(flip.at, flip.unit), flip.winner) for flip in flips)


def failure_rows(run: Run) -> tuple[FailureRow, ...]:
    """Return the probes that were not answered."""
    return tuple(
        FailureRow(
            o.probe.label,
            o.probe.runtime,
            o.probe.device,
            o.stage,
            o.error,
            UNKNOWN if o.exit_code is None else str(o.exit_code),
            o.stderr_tail,
        )
        for o in run.outcomes
        if isinstance(o, ProbeFailure)
    )


def measurement_rows(run: Run) -> tuple[MeasurementRow, ...]:
    """Return every measurement in the order in which it was taken."""
    return tuple(_measurement_row(o) for o in run.outcomes if isinstance(o, Measurement))


def workload_facts(run: Run) -> tuple[tuple[str, str], ...]:
    """Return the workload as (name, value): sizes, parameters, FLOPs."""
    work = run.workload
    blocks = ", ".join(block.name if block.repeats == 1 else f"{block.repeats} x {block.name}" for block in work.blocks)
    facts = [
        ("task", work.task),
        ("blocks", blocks or UNKNOWN),
        ("parameters", f"{work.parameter_count:,}"),
        ("batch", f"{work.batch:,}"),
        ("length", f"{work.length:,}" if work.length else UNKNOWN),
        (f"{work.unit} in a step", f"{work.units_per_step:,.0f}"),
        ("type", work.dtype),
        ("optimizer", work.optimizer),
        *((("adapters", f"rank {work.lora.rank}, {work.lora.parameter_count:,} parameters"),) if work.lora else ()),
        ("FLOPs forward", write.count(work.flop_forward, "FLOP")),
        ("FLOPs in a step", write.count(work.flop_per_step, "FLOP")),
        ("activations kept", write.memory(work.activation_bytes) if work.trains else UNKNOWN),
        ("total", f"{work.total_steps:,.0f} steps" if work.total_steps is not None else "not given"),
        ("objective", run.options.objective or work.objective),
        ("source", work.source or UNKNOWN),
    ]
    return tuple(facts)


def block_rows(run: Run) -> tuple[BlockRow, ...]:
    """Return the blocks of the workload in the order of the model."""
    return tuple(
        BlockRow(
            b.name,
            b.kind,
            " ".join(f"{name}={value}" for name, value in b.sizes),
            str(b.repeats),
            f"{b.parameter_count:,}",
            write.count(b.flop_forward, "FLOP"),
            write.count(run.workload.flop_backward_of(b), "FLOP"),
        )
        for b in run.workload.blocks
    )


def device_facts(run: Run) -> tuple[tuple[str, str], ...]:
    """Return the attached devices as (id, what it is)."""
    return tuple(
        (d.id, ", ".join([d.name, write.memory(d.memory_bytes), *([f"{d.cores} cores"] if d.cores else []), *d.detail]))
        for d in run.devices
    )


def run_facts(run: Run) -> tuple[tuple[str, str], ...]:
    """Return what identifies the run as (name, value)."""
    failed = sum(isinstance(o, ProbeFailure) for o in run.outcomes)
    return (
        ("run", run.id),
        ("asked at", run.created_at),
        ("finished at", run.finished_at or UNKNOWN),
        ("state", run.state),
        ("asked by", run.owner or UNKNOWN),
        ("host", run.host or UNKNOWN),
        ("note", run.note or UNKNOWN),
        ("probes", f"{len(run.outcomes) - failed} answered, {failed} failed"),
    )


def actual_rows(run: Run) -> tuple[ActualRow, ...]:
    """Return what really happened beside what was said."""
    estimates: dict[tuple[str, str], Estimate] = {}
    if run.recommendation:
        for estimate in run.recommendation.ranked:
            for pool in estimate.candidate.pools:
                estimates.setdefault((estimate.candidate.runtime, pool.accelerator), estimate)
    rows: list[ActualRow] = []
    for actual in run.actuals:
        estimate = estimates.get((actual.runtime, actual.accelerator))
        said = estimate.step_time_s if estimate else None
        error = f"{100 * (actual.step_time_s / said.mid - 1):+.1f} %" if said and said.mid else UNKNOWN
        inside = UNKNOWN if said is None else "yes" if said.low <= actual.step_time_s <= said.high else "no"
        rows.append(
            ActualRow(
                f"{actual.runtime} on {actual.accelerator}",
                write.seconds(actual.step_time_s),
                write.band(said),
                error,
                inside,
                actual.note,
            )
        )
    return tuple(rows)


def tier_legend() -> tuple[tuple[str, str, str], ...]:
    """Return the legend of tiers as (symbol, word, meaning), best first."""
    return tuple((TIER_LOOKS[t].symbol, TIER_LOOKS[t].word, TIER_LOOKS[t].meaning) for t in TIERS)


def command(run: Run, file: str = "workload.json") -> str:
    """Return the command line that asks the same question, safe to paste into a shell.

    Args:
        file: where the document of the run was saved.
    """
    options = run.options
    pools = () if options.pools == RunOptions().pools else ("--pools", options.pools)  # said, it puts a file's own pools aside
    objective = options.objective or run.workload.objective
    words = ("./tandem", "advise", file, "--objective", objective, *pools, "--probe", options.probe)
    return shlex.join((*words, "--budget-s", f"{options.budget_s:g}"))


def document_text(run: Run) -> str:
    """Return the workload file as it was given, indented."""
    try:
        return json.dumps(parse_json(run.document), indent=2, ensure_ascii=False, sort_keys=True)
    except BadInput:
        return run.document


def _measurement_row(outcome: Measurement) -> MeasurementRow:
    figures = outcome.figures
    probe = outcome.probe
    return MeasurementRow(
        probe.label,
        probe.runtime,
        probe.device,
        write.seconds(figures.median),
        write.seconds(figures.iqr),
        write.seconds(figures.minimum),
        figures.count,
        outcome.method,
        write.seconds(outcome.compile_s),
        write.memory(outcome.peak_memory_bytes),
        outcome.warnings,
        outcome.trusted,
    )


def _gathered(rows: list[tuple[str, str, ReasonRow]]) -> tuple[ReasonRow, ...]:
    """Return (runtime, accelerator, row) with rows that differ in their accelerator only put into one."""
    groups: dict[ReasonRow, list[tuple[str, str, ReasonRow]]] = {}
    for runtime, accelerator, row in rows:
        groups.setdefault(replace(row, reason=without_accelerator(row.reason, accelerator)), []).append(
            (runtime, accelerator, row)
        )
    gathered: list[ReasonRow] = []
    for members in groups.values():
        first = members[0][2]
        differ = any(row.reason != first.reason for _, _, row in members)
        about = concerns([(runtime, accelerator) for runtime, accelerator, _ in members])
        reason = f"{first.reason}; likewise on the others" if differ else first.reason
        gathered.append(replace(first, applies_to=about, reason=reason, href=https_only(first.source)))
    return tuple(gathered)


def _amount(value: float, unit: str) -> str:
    if unit == "s":
        return write.seconds(value)
    number = f"{value:,.0f}" if value == int(value) and abs(value) < 1e6 else write.count(value)
    return f"{number} {unit}".strip()
