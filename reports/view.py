"""A run as rows of text: the one place that turns the words into what people read.

Pages, HTML, Markdown and CSV all show these rows, so a number reads the same everywhere. Nothing is computed here beyond
choosing and writing: figures come from the run, their form from `core.format`. Nothing is escaped here; each format does that.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core import format as write
from core.advice import SURE, Candidate, Estimate, Plan, Recommendation
from core.device import Pool
from core.errors import one_line
from core.quantity import Quantity
from core.run import Run
from core.spread import spread_words
from core.workload import Workload
from reports.prices import price_text
from reports.standing import sure_text

UNKNOWN = write.MISSING
LONGEST = 1000
WORTH_TELLING = 0.01
"""Chance of a target below which it is missed, and that is all."""
"""Characters of one text at most."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number as it is shown.

    Args:
        text: the middle of the band, with its unit; a dash when unknown.
        band: `low to high`, with units; empty when exact or unknown.
        tier: where it comes from; empty when unknown.
        evidence: one phrase each.
        quantity: the number itself, for sorting and for machines.
    """

    text: str
    band: str = ""
    tier: str = ""
    evidence: tuple[str, ...] = ()
    quantity: Quantity | None = None

    @property
    def full(self) -> str:
        """Text and band in one: `8.68 ms (5.23 ms to 14.4 ms)`."""
        return f"{self.text} ({self.band})" if self.band else self.text


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate of the recommendation.

    Args:
        rank: 1 for the best; None for one that lacks a step time.
        mark: `✔` chosen, `≈` cannot be told apart from it, or empty.
        label: names it: `jax on 16 x tpu-v6e`.
        where: its pools.
        plan: how the work is divided, in words.
        memory: of one chip.
        capacity: `of 29.8 GiB`, empty when unknown; `memory_text` says both in one.
        fits: `fits`, with its chance where that is low, `does not fit` or `unknown`.
        tier: of its step time; empty when unknown.
        missing: what is not known.
        further: figures that only some jobs have, by name: the time of the whole job, latencies at a rate of requests.
        price: of each pool that has one, with its seller, terms and age; empty without.
        held_back: factor by which rules lower its rank, such as `x 0.8`; empty without.
        targets: `met, 93 % sure` or what is missed; empty where the workload has no target that can be told.
        library: whose published programs its step time is of; empty where the runtime's own, or nothing published is.
    """

    rank: int | None
    mark: str
    label: str
    runtime: str
    where: str
    plan: str
    step_time: Figure
    throughput: Figure
    memory: Figure
    memory_text: str
    capacity: str
    capacity_bytes: float | None
    fits: str
    compile: Figure
    cost: Figure
    energy: Figure
    tier: str
    missing: tuple[str, ...]
    further: tuple[tuple[str, Figure], ...] = ()
    price: str = ""
    held_back: str = ""
    targets: str = ""
    library: str = ""


@dataclass(frozen=True, slots=True)
class Headline:
    """What is said first.

    Args:
        title: name of the workload, as typed but printable and on one line.
        subtitle: task, batch and length, dtype and objective.
        sentence, why, rests_on: the three sentences; for a run without advice they say so.
        sure: how sure, one sentence.
        best: the chosen candidate, None when there is none.
        state: of the run.
        error: one line when it failed.
    """

    title: str
    subtitle: str
    sentence: str
    why: str
    rests_on: str
    sure: str
    best: CandidateRow | None
    state: str
    error: str


@dataclass(frozen=True, slots=True)
class SideColumn:
    """The best candidate of one side: this machine, one GPU pool, one TPU pool; `row` is None with the reason in `note`."""

    title: str
    row: CandidateRow | None
    note: str


@dataclass(frozen=True, slots=True)
class ShareRow:
    """One slice of one candidate's step time."""

    label: str
    term: str
    block: str
    time: Figure
    share: str


NO_FIGURE = Figure(UNKNOWN)
WHOLE_JOB = "whole job"
UTILISATION = "model FLOPs utilisation"
MOST_SERVED, HALF_WITHIN, NEARLY_ALL_WITHIN = "most that it serves", "latency of half", "latency of 99 in 100"
"""Names of the further figures: of a job, and of what serves at a rate of requests."""


def figure(quantity: Quantity | None, written: Callable[[float], str] = write.seconds) -> Figure:
    """Return a quantity as it is shown, with one of `core.format`'s writers."""
    if quantity is None:
        return Figure(UNKNOWN)
    band = "" if quantity.low == quantity.high else f"{written(quantity.low)} to {written(quantity.high)}"
    return Figure(written(quantity.mid), band, quantity.tier, quantity.evidence, quantity)


def plan_text(plan: Plan) -> str:
    """Return how the work is divided, in words: `data 16`, `fsdp 4 x tensor 2, remat`; `one chip` when it is not."""
    degrees = (
        ("data", plan.data),
        ("fsdp", plan.fsdp),
        ("tensor", plan.tensor),
        ("pipeline", plan.pipeline),
        ("expert", plan.expert),
        ("context", plan.context),
    )
    parts = [" x ".join(f"{name} {degree}" for name, degree in degrees if degree > 1) or "one chip"]
    if plan.micro_batch is not None:
        parts.append(f"micro-batch {plan.micro_batch}")
    if plan.remat:
        parts.append("remat")
    return ", ".join(parts)


def candidate_rows(run: Run) -> tuple[CandidateRow, ...]:
    """Return every feasible candidate, best first; those without a step time follow, unranked."""
    advice = run.recommendation
    if advice is None:
        return ()
    ranked = tuple(_candidate_row(run.workload, advice, estimate, rank) for rank, estimate in enumerate(advice.ranked, 1))
    return ranked + tuple(_candidate_row(run.workload, advice, estimate, None) for estimate in advice.unranked)


def mark_of(advice: Recommendation, estimate: Estimate) -> str:
    """Return `✔` for the chosen candidate, `≈` for one that cannot be told apart from it, else nothing."""
    if advice.best is not None and estimate.candidate == advice.best.candidate:
        return "✔"
    return "≈" if estimate.candidate.label in advice.equal else ""


def shortlist(estimates: Sequence[Estimate], limit: int) -> tuple[Estimate, ...]:
    """Return at most `limit` estimates in their order; up to two thirds of the places are kept for this machine's with a figure.

    Without that, what was measured here would vanish from a chart as soon as the catalog offers enough that is faster.
    """
    here = [e for e in estimates if e.step_time_s is not None and all(pool.attached for pool in e.candidate.pools)]
    elsewhere = _spread([e for e in estimates if e not in here], limit)
    kept = here[: max(2 * limit // 3, limit - len(elsewhere))]
    kept += elsewhere[: limit - len(kept)]
    return tuple(e for e in estimates if e in kept)


def _spread(estimates: Sequence[Estimate], limit: int) -> list[Estimate]:
    """Return estimates in their order; last those without a figure or of a pool with a quarter of `limit`.

    Where there is room for every pool, the best of each is first: somebody named them.
    """
    leading: list[Estimate] = []
    first: list[Estimate] = []
    later: list[Estimate] = []
    few = len({one.candidate.pools for one in estimates}) <= limit
    of_pool: Counter[tuple[Pool, ...]] = Counter()
    for one in estimates:
        of_pool[one.candidate.pools] += 1
        ahead = one.step_time_s is not None and of_pool[one.candidate.pools] <= max(2, limit // 4)
        (leading if ahead and few and of_pool[one.candidate.pools] == 1 else first if ahead else later).append(one)
    return leading + first + later


def shortlisted_rows(run: Run, limit: int) -> tuple[CandidateRow, ...]:
    """Return the rows of `shortlist`, with the ranks that they have among all."""
    advice = run.recommendation
    if advice is None:
        return ()
    every = advice.ranked + advice.unranked
    kept = shortlist(every, limit)
    return tuple(row for row, estimate in zip(candidate_rows(run), every, strict=True) if estimate in kept)


def headline(run: Run) -> Headline:
    """Return what is said first, for a run in any state."""
    work = run.workload
    advice = run.recommendation
    at_once = advice.best.candidate.requests if advice is not None and advice.best is not None else None
    batch = f"batch {work.batch:,}" if at_once is None else f"{at_once:,} requests at once"
    sizes = batch + (f" x {work.length:,}" if work.length else "")
    objective = advice.objective if advice else run.options.objective or work.objective
    subtitle = f"{work.task} · {sizes} · {work.dtype} · ranked for {objective}"
    if advice is None:
        said = (
            f"There is no advice: this run is {run.state}.",
            run.error or "It has not come to its advice.",
            f"What {len(run.outcomes)} {'probe' if len(run.outcomes) == 1 else 'probes'} gave is kept.",
            "",
        )
    elif run.split is not None:
        from reports.split_text import rests_on  # it imports this module

        told = run.split.split
        said = (told.sentence, told.why, f"Rests on {rests_on(told)}.", "")
    else:
        said = (advice.sentence, advice.why, advice.rests_on, sure_text(advice))
    best = None if run.split is not None else next((row for row in candidate_rows(run) if row.mark == "✔"), None)
    sentence, why, rests_on, sure = (one_line(text, LONGEST) for text in said)
    return Headline(one_line(work.name), subtitle, sentence, why, rests_on, sure, best, run.state, one_line(run.error))


def side_by_side(run: Run) -> tuple[SideColumn, ...]:
    """Return the best candidate of this machine, of one GPU pool and of one TPU pool, side by side."""
    advice = run.recommendation
    rows = candidate_rows(run)
    estimates = (advice.ranked + advice.unranked) if advice else ()
    sides: tuple[tuple[str, Callable[[Estimate], bool]], ...] = (
        ("This machine", lambda e: all(pool.attached for pool in e.candidate.pools)),
        ("GPU pool", lambda e: _only(e, "gpu")),
        ("TPU pool", lambda e: _only(e, "tpu")),
    )
    columns: list[SideColumn] = []
    for title, belongs in sides:
        row = next((row for row, estimate in zip(rows, estimates, strict=True) if belongs(estimate)), None)
        columns.append(SideColumn(title, row, "" if row else "no candidate: none was asked for, or all were excluded"))
    return tuple(columns)


def share_rows(estimate: Estimate) -> tuple[ShareRow, ...]:
    """Return where the step time of one candidate goes, longest first."""
    whole = sum(share.seconds.mid for share in estimate.breakdown)
    ordered = sorted(estimate.breakdown, key=lambda share: -share.seconds.mid)
    return tuple(
        ShareRow(
            estimate.candidate.label,
            share.term,
            share.block,
            figure(share.seconds),
            write.percent(share.seconds.mid / whole if whole else None),
        )
        for share in ordered
    )


def memory_rows(estimate: Estimate) -> tuple[tuple[str, str], ...]:
    """Return the parts of one chip's memory, as (name, bytes in words)."""
    return tuple((name, write.memory(size)) for name, size in estimate.memory_parts)


def throughput_writer(workload: Workload) -> Callable[[float], str]:
    """Return the writer of this workload's throughput: `236 k tokens/s`."""
    return lambda value: f"{write.count(value)} {workload.unit}/s"


def _only(estimate: Estimate, kind: str) -> bool:
    pools = estimate.candidate.pools
    return len(pools) == 1 and pools[0].kind == kind and not pools[0].attached


def _candidate_row(workload: Workload, advice: Recommendation, estimate: Estimate, rank: int | None) -> CandidateRow:
    candidate = estimate.candidate
    memory = figure(estimate.memory_bytes_per_chip, write.memory)
    capacity = "" if estimate.capacity_bytes is None else f"of {write.memory(estimate.capacity_bytes)}"
    return CandidateRow(
        rank=rank,
        mark=mark_of(advice, estimate),
        label=candidate.label,
        runtime=candidate.runtime,
        where=candidate.label[len(candidate.runtime) + len(" on ") :],
        plan=_plan_of(candidate, workload),
        step_time=figure(estimate.step_time_s),
        throughput=figure(estimate.throughput, throughput_writer(workload)),
        memory=memory,
        memory_text=f"{memory.text} {capacity}".strip(),
        capacity=capacity,
        capacity_bytes=estimate.capacity_bytes,
        fits=_fits(estimate),
        compile=figure(estimate.compile_s),
        cost=figure(estimate.cost_usd, write.usd),
        energy=figure(estimate.energy_j, write.energy),
        tier=estimate.step_time_s.tier if estimate.step_time_s else "",
        missing=estimate.missing,
        further=_further(estimate),
        price="; ".join(price_text(pool, workload) for pool in candidate.pools if pool.price_usd_per_h is not None),
        held_back="" if estimate.penalty == 1 else f"x {estimate.penalty:.2g}",
        targets=_targets(estimate),
        library=estimate.published_of,
    )


def _plan_of(candidate: Candidate, workload: Workload) -> str:
    requests = () if candidate.requests is None else (f"{candidate.requests:,} requests at once",)
    return ", ".join((plan_text(candidate.plan), *spread_words(candidate, workload), *requests))


def _fits(estimate: Estimate) -> str:
    """Return whether it fits, and how sure that is where it is not."""
    chance = estimate.fit_chance
    if estimate.fits and chance is not None and chance < SURE:
        return f"fits, {write.chance(chance)} sure"
    return {True: "fits", False: "does not fit", None: "unknown"}[estimate.fits]


def _targets(estimate: Estimate) -> str:
    if estimate.misses:
        chance = estimate.target_chance
        likely = "" if not chance or chance < WORTH_TELLING else f", {write.chance(chance)} likely to meet all the same"
        return "misses the " + " and the ".join(estimate.misses) + likely
    if estimate.target_chance is None:
        return ""
    served, slowest = estimate.served, ""
    if served is not None and served.total_s:
        most, slow = write.three_digits(served.limit_per_s), write.seconds(served.total_s[-1].mid)
        slowest = f"; serves {most} a second, 99 of 100 within {slow}"
    return f"met, {write.chance(estimate.target_chance)} sure{slowest}"


def _further(estimate: Estimate) -> tuple[tuple[str, Figure], ...]:
    """Return the time of the whole job and its utilisation; or the rate that it serves, latencies of half and of 99 in 100."""
    job = () if estimate.job_s is None or estimate.served is not None else ((WHOLE_JOB, figure(estimate.job_s)),)
    job += () if estimate.utilisation is None else ((UTILISATION, figure(estimate.utilisation, write.percent)),)
    served, step = estimate.served, estimate.step_time_s
    if served is None or step is None:
        return job
    most = step.scaled(served.limit_per_s / step.mid) if step.mid > 0 else None
    told = [(MOST_SERVED, figure(most, lambda rate: f"{write.three_digits(rate)} requests/s"))]
    if served.total_s:
        half, _, slowest = served.total_s
        told += [(HALF_WITHIN, figure(half)), (NEARLY_ALL_WITHIN, figure(slowest))]
    return tuple(told)
