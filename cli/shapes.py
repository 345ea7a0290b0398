"""The JSON documents that scripts rely on, built out of the words.

Why not the words' own codec: the words may change their fields between versions, these documents may only grow.
`./tandem report RUN --format json` is the other kind: everything, as the codec writes it, to be read back.
"""

from typing import Any

from core.advice import Estimate, Recommendation, Served
from core.codec import to_plain
from core.device import Device, Pool
from core.picture import WORD, Picture
from core.probe import Measurement, Outcome, Probe, Runtime
from core.quantity import Quantity
from core.run import Run, RunSummary
from core.split import BREAK_EVENS, Single, Split, SplitRun, Verified
from core.statistics import iqr, median
from core.workload import Block, Workload
from services import code, models
from services.code import CodeReport
from services.devices import DevicesReport
from services.runtimes import EnvironmentState
from services.workloads import Description

Plain = dict[str, Any]


def quantity(value: Quantity | None) -> Plain | None:
    """Return the band, tier and evidence of a number; None when it is unknown."""
    return None if value is None else to_plain(value)


def pool(value: Pool) -> Plain:
    """Return one pool by its accelerator and count, with price and place."""
    return {
        "accelerator": value.accelerator, "count": value.count, "attached": value.attached,
        "price_usd_per_h": value.price_usd_per_h, "where": value.where,
    }


def estimate(value: Estimate) -> Plain:
    """Return one candidate with what it would do."""
    return {
        "runtime": value.candidate.runtime,
        "pools": [pool(one) for one in value.candidate.pools],
        "plan": to_plain(value.candidate.plan),
        "requests": value.candidate.requests,
        "label": value.candidate.label,
        "estimate": {
            "step_time_s": quantity(value.step_time_s),
            "throughput": quantity(value.throughput),
            "memory_bytes_per_chip": quantity(value.memory_bytes_per_chip),
            "compile_s": quantity(value.compile_s),
            "cost_usd": quantity(value.cost_usd),
            "energy_j": quantity(value.energy_j),
            "job_s": quantity(value.job_s),
        },
        "served": None if value.served is None else served(value.served),
        "breakdown": [{"term": one.term, "block": one.block, "seconds": quantity(one.seconds)} for one in value.breakdown],
        "memory_parts": dict(value.memory_parts),
        "capacity_bytes": value.capacity_bytes,
        "bounds_s": {"lower": value.lower_s, "upper": value.upper_s},
        "fits": value.fits, "fit_chance": value.fit_chance,
        "misses": list(value.misses), "target_chance": value.target_chance,
        "missing": list(value.missing),
        "published_of": value.published_of,
        "utilisation": quantity(value.utilisation),
        "fed": None if value.fed is None else {"chips_s": quantity(value.fed.chips_s), "input_s": quantity(value.fed.input_s)},
    }


def served(value: Served) -> Plain:
    """Return what requests meet at a rate, latencies by their percentile."""
    def told(quantities: tuple[Quantity, ...]) -> Plain | None:
        return {name: quantity(one) for name, one in zip(("p50", "p95", "p99"), quantities, strict=True)} if quantities else None

    return {
        "requests_per_s": value.requests_per_s, "limit_per_s": value.limit_per_s, "utilisation": value.utilisation,
        "first_token_s": told(value.first_token_s), "per_token_s": told(value.per_token_s), "total_s": told(value.total_s),
    }


def recommendation(value: Recommendation, run_id: str | None) -> Plain:
    """Return the document of `advise`."""
    return {
        "run_id": run_id,
        "objective": value.objective,
        "sentence": value.sentence, "why": value.why, "rests_on": value.rests_on,
        "best": None if value.best is None else estimate(value.best),
        "ranked": [estimate(one) for one in value.ranked],
        "unranked": [estimate(one) for one in value.unranked],
        "equal": list(value.equal),
        "excluded": to_plain(value.excluded),
        "verdicts": to_plain(value.verdicts),
        "flips": to_plain(value.flips),
        "gaps": [
            {"what": one.what, "probe": probe(one.probe) if one.probe else None, "seconds": one.seconds, "remedy": one.remedy}
            for one in value.gaps
        ],
        "confidence": to_plain(value.confidence),
    }


def split(value: SplitRun, run_id: str | None) -> Plain:
    """Return the document of `split`."""
    told: Split = value.split
    return {
        "run_id": run_id,
        "mode": told.mode, "objective": told.objective, "verdict": told.verdict,
        "saving": told.saving, "least_saving": told.least_saving,
        "sentence": told.sentence, "why": told.why,
        "best_single": None if told.best_single is None else _single(told.best_single),
        "singles": [_single(one) for one in told.singles],
        "link": None if told.link is None else to_plain(told.link),
        "shares": [
            {"pool": pool(one.pool), "runtime": one.runtime, "fraction": one.fraction, "amount": one.amount, "unit": one.unit,
             "busy_s": one.busy_s, "wait_s": one.wait_s, "memory_bytes": one.memory_bytes, "detail": one.detail}
            for one in told.shares
        ],
        "step": {"seconds": quantity(told.seconds), "cost_usd": quantity(told.cost_usd), "energy_j": quantity(told.energy_j),
                 "terms": dict(told.terms), "timeline": to_plain(told.timeline)},
        "moves": to_plain(told.moves),
        "break_even": {what: [{"unit": one.unit, "now": one.now, "at": one.at, "words": one.words}
                              for one in told.break_even if one.what == what] for what in BREAK_EVENS},
        "curves": to_plain(told.curves),
        "others": [{"mode": mode, "seconds": seconds, "said": said} for mode, seconds, said in told.others],
        "verdicts": to_plain(told.verdicts),
        "missing": list(told.missing),
        "verified": None if value.verified is None else _verified(value.verified),
    }


def _single(value: Single) -> Plain:
    return {"pool": pool(value.pool), "runtime": value.runtime, "seconds": quantity(value.seconds),
            "cost_usd": quantity(value.cost_usd), "energy_j": quantity(value.energy_j), "feasible": value.feasible,
            "missing": value.missing}


def _verified(value: Verified) -> Plain:
    steps = value.step_s
    return {
        "mode": value.mode, "sides": list(value.sides), "shares": list(value.shares),
        "planned_s": quantity(value.planned_s), "median_s": median(steps) if steps else None,
        "iqr_s": iqr(steps) if steps else None, "n": len(steps), "step_s": list(steps), "single_s": list(value.single_s),
        "checks": [{"what": one.what, "difference": one.difference, "tolerance": one.tolerance, "ok": one.holds}
                   for one in value.checks],
        "losses": list(value.losses), "link": None if value.link is None else to_plain(value.link),
        "timeline": to_plain(value.timeline), "ended": value.ended,
    }


def probe(value: Probe) -> Plain:
    """Return what was asked of a runtime."""
    return {
        "subject": value.subject, "family": value.family, "sizes": {name: to_plain(size) for name, size in value.sizes},
        "dtype": value.dtype, "mode": value.mode, "optimizer": value.optimizer, "tier": value.tier,
    }


def outcome(value: Outcome) -> Plain:
    """Return one answer of a probe, or why there is none."""
    shape: Plain = {"probe": probe(value.probe), "runtime": value.probe.runtime, "device": value.probe.device}
    if isinstance(value, Measurement):
        figures = value.figures
        return {
            **shape, "ok": value.trusted, "median_s": figures.median, "iqr_s": figures.iqr, "min_s": figures.minimum,
            "n": figures.count,
            "method": value.method, "compile_s": value.compile_s, "warnings": list(value.warnings),
            "error": None if value.trusted else "; ".join(value.warnings) or "quarantined",
        }
    return {
        **shape, "ok": False, "median_s": None, "iqr_s": None, "min_s": None, "n": 0, "method": None, "compile_s": None,
        "warnings": [], "error": f"{value.stage}: {value.error}",
    }


def runtime(value: Runtime) -> Plain:
    """Return one runtime; its version is that of its framework."""
    return {
        "id": value.id, "framework": value.framework, "mode": value.mode, "version": framework_version(value),
        "versions": dict(value.versions), "installed": value.installed, "reason": value.reason,
    }


def environment(value: EnvironmentState) -> Plain:
    """Return one environment of its own with its state."""
    return {
        "id": value.id, "runtimes": list(value.runtimes), "state": value.state, "size_bytes": value.size_bytes,
        "build_s": value.build_s, "disk_bytes": value.disk_bytes, "notes": value.notes, "obstacle": value.obstacle,
    }


def device(value: Device, usable: tuple[tuple[str, str, bool, str, str], ...]) -> Plain:
    """Return one attached device with what could use it.

    Args:
        value: the device.
        usable: (device, runtime, ok, reason, remedy) of every device.
    """
    return {
        **to_plain(value),
        "usable_by": [
            {"runtime": runtime, "ok": ok, "reason": reason, "remedy": remedy}
            for where, runtime, ok, reason, remedy in usable if where == value.id
        ],
    }


def devices(report: DevicesReport) -> Plain:
    """Return the document of `devices`; `views` is empty unless the frameworks were asked."""
    return {"devices": [device(one, report.usable) for one in report.devices], "views": to_plain(report.views)}


def inspection(value: Workload, described: Description, seen: Picture | None = None) -> Plain:
    """Return the document of `inspect`.

    Args:
        value: the workload.
        described: what it amounts to.
        seen: of the model file that it was read from; None where there was none.
    """
    return {
        "name": value.name, "task": value.task, "batch": value.batch, "length": value.length, "dtype": value.dtype,
        "optimizer": value.optimizer, "unit": value.unit, "units_per_step": value.units_per_step,
        "lora": None if value.lora is None else to_plain(value.lora),
        "parameter_count": described.parameter_count, "flop_per_step": described.flop_per_step,
        "flop_forward": described.flop_forward, "flop_backward": described.flop_backward,
        "blocks": [block(one, value) for one in value.blocks],
        "operations": dict(described.operations),
        "memory": {
            "saved_activation_bytes": described.activation_bytes,
            "one_chip_bytes": sum(size for _, size in described.memory),
            "parts": dict(described.memory),
            "program": None if seen is None else program(seen),
        },
        "findings": [],
        "assumptions": list(value.assumptions),
        "picture": None if seen is None else picture(value, seen),
    }


def program(seen: Picture) -> Plain | None:
    """Return the memory of the program that a file holds, in each way in which it is told; None where it holds none."""
    found: Plain = {}
    for one in models.program_memory(seen):
        sizes: Plain = {} if one.memory is None else to_plain(one.memory) | {"total_bytes": one.memory.total_bytes}
        found[one.key] = {"for": one.title, "how": one.how, **sizes}
    return found or None


def code_report(value: CodeReport) -> Plain:
    """Return the document of `inspect` for code: scores, facts, and each finding on each target."""
    return {
        "name": value.name,
        "files": dict(value.scan.read), "truncated": value.scan.truncated, "notes": list(value.scan.notes),
        "scores": [
            {"target": one.target, "score": one.score, "work_low_h": one.work_low_h, "work_high_h": one.work_high_h}
            for one in value.scores
        ],
        "existing": code.existing_of(value),
        "findings": [to_plain(found) for one in value.scores for found in one.findings],
    }


def picture(value: Workload, seen: Picture) -> Plain:
    """Return what only a model that was read tells."""
    found = models.adapter(seen)
    return {
        "format": seen.format, "parameter_count": seen.parameter_count, "derived_backward": seen.derived,
        "symbols": {name: size for name, size in seen.symbols if name != WORD},
        "facts": dict(seen.facts), "notes": list(seen.notes),
        "peaks": None if value.peaks is None else to_plain(value.peaks),
        "optimizer_state_bytes": {one.name: one.size_bytes for one in models.optimizer_states(seen)},
        "lora": {"rank": found.rank, "parameter_count": found.parameter_count, "adamw_bytes": found.state_bytes},
        "portability": [{**to_plain(one), "meaning": models.mark_meaning(one.mark)} for one in seen.operations],
    }


def block(value: Block, workload: Workload) -> Plain:
    """Return one layer of a workload by its sizes and counts; FLOPs, parameters and bytes are of one repeat."""
    return {
        "name": value.name, "kind": value.kind, "repeats": value.repeats,
        "sizes": {name: to_plain(size) for name, size in value.sizes},
        "parameter_count": value.parameter_count, "flop_forward": value.flop_forward,
        "flop_backward": workload.flop_backward_of(value),
        "activation_bytes": value.activation_bytes,
    }


def framework_version(value: Runtime) -> str | None:
    """Return the version of a runtime's framework, whose distribution may have a suffix (`tensorflow-cpu`)."""
    return next((version for name, version in value.versions if name.startswith(value.framework)), None)


def run_summary(value: RunSummary) -> Plain:
    """Return one row of the history."""
    return to_plain(value)


def run(value: Run) -> Plain:
    """Return the document of `show`."""
    return {
        "id": value.id, "created_at": value.created_at, "finished_at": value.finished_at,
        "state": value.state, "error": value.error,
        "name": value.workload.name, "task": value.workload.task, "owner": value.owner, "host": value.host, "note": value.note,
        "versions": dict(value.versions), "options": to_plain(value.options),
        "recommendation": None if value.recommendation is None else recommendation(value.recommendation, value.id),
        "split": None if value.split is None else split(value.split, value.id),
        "outcomes": [outcome(one) for one in value.outcomes],
        "actuals": to_plain(value.actuals),
    }
