"""From a question to a recommendation: candidates, estimates, rules, ranking, explanation."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import catalog
from advisor.answered import EMPTY, Answered, sort_outcomes
from advisor.attached import Place, Reading, best_peaks, read_place
from advisor.batches import Batches
from advisor.compiling import compiled_here
from advisor.confidence import confidence_of
from advisor.flips import flips_of
from advisor.gaps import gaps_of, unheld
from advisor.interruptions import interruption_words
from advisor.keeping_up import enough_words
from advisor.question import Facts, Question
from advisor.ranking import Contender, ranked, value_of
from advisor.rules.case import Code, code_of
from advisor.screening import Screening, gathered, overall, screen
from advisor.served import service_words
from advisor.targets import aims_of, chance_of_all, excess, missed, untold
from advisor.words import measurements_of, nothing_words, rests_on_of, sentence_of, surer_words, tight_words, why_of
from core.advice import SURE, Estimate, Exclusion, Recommendation, Verdict
from core.device import Accelerator, Device, Pool
from core.errors import NotFound
from core.probe import Runtime
from core.workload import Workload

SUPPORT = "support"
MEMORY = "memory"
PLAN = "plan"
INSTALLED = "installed"
LEADING = 40
"""Candidates whose step is broken down by block: an answer over a whole catalog is kept with its run, and stays readable."""


@dataclass(slots=True)
class _Draft:
    """What is collected on the way."""

    estimates: list[Estimate]
    readings: list[Reading]
    excluded: dict[tuple[str, str, str, str], Exclusion]
    verdicts: list[Verdict]
    pairs: set[tuple[str, str]]
    code: Code
    datasheets: Batches | None = None

    def put_out(self, exclusion: Exclusion) -> None:
        """Keep an exclusion once."""
        self.excluded.setdefault((exclusion.runtime, exclusion.accelerator, exclusion.rule, exclusion.reason), exclusion)


def advise(question: Question) -> Recommendation:
    """Return the recommendation for a question; the same question always gives the same answer.

    Args:
        question: everything that may be known.

    Raises:
        NotFound: a pool names an accelerator that the catalog does not have.
        BrokenRuleError: a rule file cannot be used.
    """
    facts: Facts = question.facts or catalog
    draft = _Draft([], [], {}, [], set(), code_of(question.workload, question.today, question.pools))
    _add_attached(question, facts, draft)
    _add_catalog(question, facts, draft)
    draft.verdicts.extend(overall(draft.code))
    titles = {identity: spec.title for identity, spec in facts.runtime_specs().items()}
    return _recommend(question, draft, titles)


def _add_attached(question: Question, facts: Facts, draft: _Draft) -> None:
    kinds = frozenset(block.kind for block in question.workload.blocks)
    answered = sort_outcomes(question.outcomes, question.devices, question.runtimes, kinds)
    devices = {device.id: device for device in question.devices}
    for pool in dict.fromkeys(question.pools):
        if not pool.attached:
            continue
        device = devices[pool.accelerator]
        chip = _chip_of(device, facts)
        best = best_peaks(answered, device, question.workload.dtype)
        for runtime in question.runtimes:
            known = answered.get((runtime.id, device.id), EMPTY)
            screening = _screen(question, runtime, pool, chip, facts, draft)
            if screening is None or _absent(runtime, pool, known, draft):
                continue
            reading = read_place(Place(question.workload, runtime, pool, device, chip, known, best))
            kept = _keep(question, reading.estimate, screening, draft)
            if kept is not None:
                draft.readings.append(Reading(kept, reading.gaps))


def _add_catalog(question: Question, facts: Facts, draft: _Draft) -> None:
    rented = [(pool, facts.accelerator(pool.accelerator)) for pool in dict.fromkeys(question.pools) if not pool.attached]
    if not rented:
        return
    here = compiled_here(question.workload, question.outcomes)
    datasheets = draft.datasheets = Batches(question.batches or (question.workload,), rented, here)
    runtimes = _all_runtimes(question.runtimes, facts)
    screened: dict[tuple[str, str], Screening | None] = {}
    for pool, chip in rented:
        for runtime in runtimes:
            pair = (runtime.id, chip.key)
            if pair not in screened:
                screened[pair] = _screen(question, runtime, pool, chip, facts, draft)
            screening = screened[pair]
            if screening is None:
                continue
            found = datasheets.estimate(runtime, pool, chip)
            if isinstance(found, str):
                draft.put_out(Exclusion(runtime.id, chip.key, PLAN, "topology", f"{pool.count} x {chip.key}: {found}", "planner"))
            else:
                _keep(question, found, screening, draft)


def _all_runtimes(known: tuple[Runtime, ...], facts: Facts) -> tuple[Runtime, ...]:
    """Return what is known of each runtime here, then those that only the catalog knows, in a fixed order."""
    found = {runtime.id: runtime for runtime in known}
    for identity, spec in facts.runtime_specs().items():
        found.setdefault(identity, Runtime(identity, spec.framework, spec.mode))
    return tuple(found[identity] for identity in sorted(found))


def _chip_of(device: Device, facts: Facts) -> Accelerator | None:
    """Return the catalog entry of an attached device, or None when the catalog has none."""
    if device.accelerator is None:
        return None
    try:
        return facts.accelerator(device.accelerator)
    except NotFound:
        return None


def _absent(runtime: Runtime, pool: Pool, known: Answered, draft: _Draft) -> bool:
    """Put out a runtime that is not installed here and was never measured here."""
    if runtime.installed or known is not EMPTY:
        return False
    reason = runtime.reason or f"{runtime.id} is not installed here"
    source = "inventory of this machine"
    draft.put_out(Exclusion(runtime.id, pool.accelerator, INSTALLED, "runtime_not_used", reason, source))
    return True


def _screen(
    question: Question, runtime: Runtime, pool: Pool, chip: Accelerator | None, facts: Facts, draft: _Draft
) -> Screening | None:
    """Return what the rules say of a pair, or None when a rule or the support table keeps it out."""
    screening = screen(question.workload, draft.code, runtime, pool.kind, chip, pool.accelerator, _counts(question, pool))
    if screening.exclusion is not None:
        draft.pairs.add((runtime.id, pool.accelerator))
        draft.verdicts.extend(screening.verdicts)
        draft.put_out(screening.exclusion)
        return None
    if _unsupported(runtime, pool, chip, facts, draft):
        return None
    draft.pairs.add((runtime.id, pool.accelerator))
    draft.verdicts.extend(screening.verdicts)
    return screening


def _counts(question: Question, pool: Pool) -> tuple[int, ...] | None:
    """Return the counts of an accelerator that an option asked for; None where the workload names its pools, or nobody did."""
    if question.workload.pools or not question.named:
        return None
    return tuple(sorted({one.count for one in question.pools if one.accelerator == pool.accelerator}))


def _unsupported(runtime: Runtime, pool: Pool, chip: Accelerator | None, facts: Facts, draft: _Draft) -> bool:
    if chip is not None:
        support, name = facts.support(runtime.id, chip), chip.name
    elif pool.kind in ("cpu", "tpu"):
        support, name = facts.support_of_family(runtime.id, pool.kind.upper()), f"a {pool.kind.upper()}"
    else:
        return False
    if support.status != "unsupported":
        return False
    reason = f"{runtime.id} does not run on {name}" + (f": {support.restrictions}" if support.restrictions else "")
    source = f"{support.source} ({support.source_date})" if support.source_date else support.source
    draft.put_out(Exclusion(runtime.id, pool.accelerator, SUPPORT, "op_not_lowered", reason, source))
    return True


def _keep(question: Question, estimate: Estimate, screening: Screening, draft: _Draft) -> Estimate | None:
    """Keep an estimate that fits, with its penalty and missed targets; put out one that does not."""
    pool = estimate.candidate.pools[0]
    if estimate.fits is False and estimate.memory_bytes_per_chip is not None:
        need, have = estimate.memory_bytes_per_chip.mid / 2**30, (estimate.capacity_bytes or 0.0) / 2**30
        reason = f"{pool.count} x {pool.accelerator}: needs {need:.1f} GiB on each chip, which has {have:.1f} GiB"
        source = "counted from the sizes of the workload"
        draft.put_out(Exclusion(estimate.candidate.runtime, pool.accelerator, MEMORY, "per_chip_memory", reason, source))
        return None
    kept = _held(replace(estimate, penalty=screening.penalty_of(pool.count)), question.workload)
    draft.estimates.append(kept)
    return kept


def _held(estimate: Estimate, workload: Workload) -> Estimate:
    """Return an estimate held against the targets."""
    aims = aims_of(estimate, workload)
    chance = None if untold(estimate, workload) else chance_of_all(aims)
    return replace(estimate, misses=missed(aims), target_chance=chance)


def _recommend(question: Question, draft: _Draft, titles: Mapping[str, str]) -> Recommendation:
    contenders, unranked = _contenders(question, draft.estimates)
    contenders = _queued(question, contenders, draft.datasheets)
    plain, tied = ranked(contenders)
    order = _told_by_block(plain, draft.datasheets)
    equal = tuple(told for told, before in zip(order, plain, strict=True) if before in tied)
    excluded = tuple(sorted(draft.excluded.values(), key=lambda out: (out.accelerator, out.runtime, out.rule, out.reason)))
    verdicts = gathered(draft.verdicts, frozenset(draft.pairs))
    gaps = unheld(question.workload) + gaps_of(tuple(draft.readings), order, bool(order))
    if not order:
        sentence, why = nothing_words(excluded, unranked, question.objective)
        rests = f"This rests on the catalog and the outcomes as of {question.today}."
        told = (sentence, why, rests)
        return Recommendation(question.objective, None, (), unranked, excluded, verdicts, (), gaps, None, (), *told)
    sure = confidence_of(order, question.seed)
    devices = tuple(sorted(device.id for device in question.devices))
    return Recommendation(
        question.objective, order[0].estimate, tuple(c.estimate for c in order), unranked, excluded, verdicts,
        flips_of(order, question.objective, question.workload), gaps, sure, tuple(c.estimate.candidate.label for c in equal),
        sentence_of(order, equal, question, sure, titles),
        _why(order, equal, question, titles),
        rests_on_of(order, measurements_of(order), devices, question.today),
    )


def _why(
    order: tuple[Contender, ...], equal: tuple[Contender, ...], question: Question, titles: Mapping[str, str]
) -> str:
    """Return why the first leads, with what requests meet there and what interruptions cost it."""
    best = order[0].estimate
    waits = "" if best.served is not None else interruption_words(question.workload, best)
    tight = tight_words(best, question.workload.trains)
    more = (surer_words(order, titles), enough_words(best), tight, service_words(best.served), waits)
    return "; ".join((why_of(order, equal, question.objective, titles).removesuffix("."), *filter(None, more))) + "."


def _queued(question: Question, contenders: list[Contender], datasheets: Batches | None) -> list[Contender]:
    """Return the candidates with what requests meet at the asked rate, and late where that is so."""
    if datasheets is None or question.workload.task != "serve" or question.workload.targets.requests_per_s is None:
        return contenders
    return [_served(question, one, datasheets) for one in contenders]


def _served(question: Question, one: Contender, datasheets: Batches) -> Contender:
    estimate = datasheets.served(one.estimate)
    if estimate is one.estimate:
        return one
    held = _held(estimate, question.workload)
    if question.workload.targets.latency_ms is not None and (held.target_chance or 0.0) < SURE:
        held = _surest(question.workload, held, datasheets)
    value = value_of(held, question.objective, question.workload) or one.value
    return replace(one, estimate=held, value=value, excess=excess(aims_of(held, question.workload)))


def _surest(workload: Workload, unsure: Estimate, datasheets: Batches) -> Estimate:
    """Return what meets the targets most surely, of an estimate that may miss them and the same pool in larger replicas."""
    best, within_s = unsure, (workload.targets.latency_ms or 0.0) / 1e3
    for other in datasheets.sooner(unsure, within_s):
        held = _held(datasheets.served(other), workload)
        best = min(best, held, key=lambda one: (excess(aims_of(one, workload)), -(one.target_chance or 0.0)))
        if (best.target_chance or 0.0) >= SURE:
            break
    return best


def _told_by_block(order: tuple[Contender, ...], datasheets: Batches | None) -> tuple[Contender, ...]:
    """Return the candidates, best first, with the step of the leading ones told by block."""
    if datasheets is None:
        return order
    leading = (replace(c, estimate=datasheets.in_blocks(c.estimate)) for c in order[:LEADING])
    return (*leading, *order[LEADING:])


def _contenders(question: Question, estimates: Iterable[Estimate]) -> tuple[list[Contender], tuple[Estimate, ...]]:
    contenders: list[Contender] = []
    unranked: list[Estimate] = []
    for estimate in estimates:
        value = value_of(estimate, question.objective, question.workload)
        if value is None or estimate.step_time_s is None:
            unranked.append(estimate)
        else:
            over = excess(aims_of(estimate, question.workload))
            contenders.append(Contender(estimate, value, over, _familiar(estimate, question.workload.existing.framework)))
    unranked.sort(key=_place_of)
    return contenders, tuple(unranked)


def _place_of(estimate: Estimate) -> tuple[bool, bool, str, float, str]:
    """Sort key of candidates without a figure: those with a step time, then the attached ones, then by name and price."""
    pool = estimate.candidate.pools[0]
    price = -1.0 if pool.price_usd_per_h is None else pool.price_usd_per_h
    return (estimate.step_time_s is None, not pool.attached, estimate.candidate.label, price, pool.where)


def _familiar(estimate: Estimate, framework: str | None) -> bool:
    """Return whether a candidate runs the framework of the existing code (`torch` or `torch-xla`, as the user wrote it)."""
    if not framework:
        return False
    runtime = estimate.candidate.runtime
    asked = {"tensorflow": "tf", "pytorch": "torch"}.get(framework.lower(), framework.lower())
    return runtime == asked or runtime.split("-")[0] == asked
