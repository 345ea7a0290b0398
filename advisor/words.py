"""The three sentences of an answer: what to do, why, and what it rests on."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from advisor.question import Question
from advisor.ranking import Contender, chosen_by
from advisor.spare import spare_words
from advisor.targets import aims_of
from core import format as written
from core.advice import ALL_BLOCKS, SURE, Candidate, Confidence, Estimate, Exclusion, Plan
from core.device import Pool
from core.quantity import TIERS
from core.spread import spread_words
from core.workload import Workload

_MEASURED = re.compile(r"(?:^|: )measured \d{4}-\d{2}-\d{2}: ")
_BETTER = {"time": "faster", "cost": "cheaper", "energy": "more frugal"}
_BEST = {"time": "fastest", "cost": "cheapest", "energy": "most frugal"}
WORTH_NAMING = 0.1
"""Part of a step from which on its longest block is named."""
TIES_NAMED = 2
"""Candidates equal to the choice that the sentence names; the list of equal ones has them all."""
_TIER_WORDS = {
    "measured": "measured here", "interpolated": "read between measured batches",
    "transferred": "put together from measured kernels",
    "published": "taken from published measurements", "datasheet": "computed from datasheets",
}


def place_words(pool: Pool, name: str | None = None) -> str:
    """Return a pool as it is named in a sentence."""
    if pool.attached:
        return f"the attached {pool.accelerator}" if pool.count == 1 else f"{pool.count} attached chips like {pool.accelerator}"
    return f"{pool.count} x {name}" if name else pool.label


def candidate_words(estimate: Estimate, titles: Mapping[str, str]) -> str:
    """Return runtime and place of an estimate as they are named in a sentence."""
    candidate = estimate.candidate
    return f"{titles.get(candidate.runtime, candidate.runtime)} on {place_words(candidate.pools[0])}"


def plan_words(plan: Plan, chips: int) -> str:
    """Return how the work is divided, or nothing when there is nothing to say."""
    within = [
        f"{name} over {degree}"
        for name, degree in (
            ("tensor parallel", plan.tensor), ("a pipeline", plan.pipeline), ("sequences", plan.context),
            ("experts", plan.expert),
        )
        if degree > 1
    ]  # fmt: skip
    words: list[str] = []
    if plan.fsdp > 1:
        words.append(f"fully sharded (FSDP) over {plan.fsdp}" if within else "fully sharded (FSDP)")
    elif plan.data > 1:
        words.append(f"data parallel over {plan.data}" if within else "data parallel")
    words.extend(within)
    if plan.micro_batch is not None:
        whose = "a replica" if plan.tensor * plan.pipeline * plan.context > 1 else "a chip"
        words.append(f"{plan.micro_batch} sample{'s' if plan.micro_batch > 1 else ''} {whose} at a time")
    if plan.remat:
        words.append("activations computed again")
    return ", ".join((*words, *spare_words(plan, chips)))


def _per(candidate: Candidate) -> str:
    """Return what a step time is of: a step, or as many requests at once as it takes where that was left open."""
    return "a step" if candidate.requests is None else f"for {candidate.requests:,} requests at once"


def sentence_of(
    order: tuple[Contender, ...], equal: tuple[Contender, ...], question: Question, sure: Confidence | None,
    titles: Mapping[str, str],
) -> str:
    """Return what to do: framework, chips, count, step time, cost, what is equal to it, and how sure that is."""
    best = order[0].estimate
    pool = best.candidate.pools[0]
    told = (plan_words(best.candidate.plan, pool.count), *spread_words(best.candidate, question.workload))
    plan = ", ".join(filter(None, told))
    where = candidate_words(best, titles) + (f" ({plan})" if plan else "")
    of = f" as {best.published_of} runs it" if best.published_of else ""
    step = _met_words(best, of) or f"{written.band(best.step_time_s)} {_per(best.candidate)}{of}"
    charge = _job_words(best, question.workload) + _charge_words(best, question.objective, question.workload)
    ties = _tie_words(order[0], equal)
    lead = _late_words(order) if order[0].late else _sure_words(order, equal, question.objective, sure)
    return f"Use {where}: {step}{charge}; {_target_words(best, question.workload)}{ties}{lead}."


def tight_words(best: Estimate, trains: bool) -> str:
    """Return how full the memory of a chip is where it may not suffice; empty where it surely does."""
    chance, need = best.fit_chance, best.memory_bytes_per_chip
    if chance is None or need is None or chance >= SURE:
        return ""
    room = f"{written.memory(need.mid)} of {written.memory(best.capacity_bytes)}"
    sure = written.chance(chance)
    return f"memory is tight: {room} of a chip, {sure} sure to fit; {_easing(best.candidate.plan, trains)} would ease it"


def _easing(plan: Plan, trains: bool) -> str:
    """Return what would make a plan need less memory, of what it does not do yet."""
    micro = plan.micro_batch
    ways = ("computing activations again (remat)",) if trains and not plan.remat else ()
    ways += ("a smaller part of the batch at a time",) if micro is not None and micro > 1 else ()
    return " or ".join(ways) or "more chips, or fewer samples at once"


def _tie_words(best: Contender, equal: tuple[Contender, ...]) -> str:
    """Return which candidates are equal to the choice as far as can be told, and by what it was chosen among them."""
    if not equal:
        return ""
    labels = tuple(dict.fromkeys(c.estimate.candidate.label for c in equal))
    more = len(labels) - TIES_NAMED
    names = " and ".join(labels) if more <= 0 else f"{', '.join(labels[:TIES_NAMED])} and {more} more"
    return f"equal to {names} as far as can be told, chosen because {chosen_by(best, equal)}; "


def _met_words(best: Estimate, of: str) -> str:
    """Return what all requests but one in a hundred meet at the asked rate, and how many more may come; empty without a rate."""
    served, at_once = best.served, best.candidate.requests
    if served is None or not served.total_s:
        return ""
    most = f"up to {written.three_digits(served.limit_per_s)} a second" + ("" if at_once is None else f" and {at_once:,} at once")
    return f"99 of 100 requests answered within {written.band(served.total_s[-1])}{of}, {most}"


def _job_words(best: Estimate, workload: Workload) -> str:
    """Return how long the whole job takes, compilation and interruptions with it; empty where its amount is not given."""
    return f", {written.band(best.job_s)} for the whole job" if _is_of_job(best, workload) else ""


def _is_of_job(best: Estimate, workload: Workload) -> bool:
    return workload.total_steps is not None and workload.task != "serve" and best.job_s is not None


def _charge_words(best: Estimate, objective: str, workload: Workload) -> str:
    span = "for it" if _is_of_job(best, workload) else "for " + workload.amount.replace("whole", "the whole")
    if objective == "energy" and best.energy_j is not None:
        return f", {written.band(best.energy_j, written.energy)} {span}"
    if best.cost_usd is None or (best.cost_usd.mid == 0 and objective != "cost"):
        return ""
    return f", {written.band(best.cost_usd, written.usd)} {span}"


def _target_words(best: Estimate, workload: Workload) -> str:
    """Return how sure it is that the targets are met; empty where there are none or one is missed."""
    if best.target_chance is None or best.misses:
        return ""
    names = " and ".join(f"the {aim.name}" for aim in aims_of(best, workload))
    return f"{written.chance(best.target_chance)} sure to meet {names}; "


def _late_words(order: tuple[Contender, ...]) -> str:
    """Return by how much the first misses what is asked for, where every candidate misses it."""
    missed = " and the ".join(order[0].estimate.misses)
    if len(order) == 1:
        return f"it is the only candidate with a known figure and misses the {missed}"
    return f"none of {len(order)} candidates meets every target; this one comes nearest and misses the {missed}"


def _sure_words(
    order: tuple[Contender, ...], equal: tuple[Contender, ...], objective: str, sure: Confidence | None
) -> str:
    if len(order) == 1:
        return "it is the only candidate with a known figure"
    able = sum(not c.late for c in order)
    field = f"{able} candidates" if able == len(order) else f"the {able} of {len(order)} candidates that meet the targets"
    if able == 1:
        return f"it is the only one of {len(order)} candidates that meets the targets"
    if sure is None:
        return f"it leads {field}"
    at = "at these prices " if objective == "cost" else ""
    tied = equal and sure.p_best >= SURE
    said = f"none of {field} is {_BETTER[objective]}" if tied else f"it is the {_BEST[objective]} of {field}"
    chance = order[0].estimate.target_chance
    nearest = ", or comes nearest should none meet them" if chance is not None and chance < SURE and not tied else ""
    return f"{written.chance(sure.p_best)} sure that {at}{said}{nearest}"


def surer_words(order: tuple[Contender, ...], titles: Mapping[str, str]) -> str:
    """Return the first candidate that meets the targets almost surely, where the choice does not; empty where it does."""
    chance = order[0].estimate.target_chance
    if chance is None or chance >= SURE:
        return ""
    surer = next((c.estimate for c in order[1:] if (c.estimate.target_chance or 0.0) >= SURE), None)
    if surer is None:
        return "" if order[0].late else f"no other candidate is {written.percent(SURE)} sure to meet the targets"
    figures = [f"{written.band(surer.step_time_s)} {_per(surer.candidate)}"]
    figures += [written.band(surer.cost_usd, written.usd)] if surer.cost_usd is not None and surer.cost_usd.mid > 0 else []
    sure = written.chance(surer.target_chance)
    return f"surer to meet the targets ({sure}) is {candidate_words(surer, titles)}: {', '.join(figures)}"


def why_of(
    order: tuple[Contender, ...], equal: tuple[Contender, ...], objective: str, titles: Mapping[str, str]
) -> str:
    """Return the margin to the runner-up and what dominates the step time."""
    best = order[0]
    leads = _dominant(best.estimate)
    if len(order) == 1:
        return f"Nothing else has a known figure; {leads}."
    runner = order[1]
    other = next((c for c in order[1:] if c.estimate.candidate.pools != best.estimate.candidate.pools), None)
    if other is not None and _same_figure(best, runner):
        words = _margin(best, other, other in equal, objective, candidate_words(other.estimate, titles))
        return f"{words}; other compilers on the chosen pool have its figure, since nothing published tells them apart; {leads}."
    return f"{_margin(best, runner, runner in equal, objective, candidate_words(runner.estimate, titles))}; {leads}."


def _same_figure(best: Contender, runner: Contender) -> bool:
    """Return whether two runtimes on one pool share a figure that was not measured here."""
    same = best.estimate.candidate.pools == runner.estimate.candidate.pools
    return same and best.value.tier in ("published", "datasheet") and best.step_s > 0 and _step(best) == _step(runner)


def _step(contender: Contender) -> float | None:
    step = contender.estimate.step_time_s
    return None if step is None else step.mid


def _margin(best: Contender, runner: Contender, tied: bool, objective: str, other: str) -> str:
    if runner.late:
        missed = " and the ".join(runner.estimate.misses)
        met = f"It meets the targets, which the next, {other}, does not"
        return f"The next, {other}, misses the {missed}" if best.late else met
    if best.value.mid <= 0:
        unlike = f"It costs nothing to use, unlike {other}"
        return unlike if runner.value.mid > 0 else f"It costs as little as {other} and takes less time"
    ratio = runner.value.mid / best.value.mid
    if ratio < 1 and runner.score < best.score and TIERS.index(runner.value.tier) > TIERS.index(best.value.tier):
        return f"The next, {other}, may need less {objective} but its figure is less certain"
    if tied:
        how = "the same" if abs(ratio - 1) < 0.005 else f"{ratio:.2f} times as high"
        return f"The next, {other}, is equal as far as can be told: its figure is {how}"
    if ratio < 1:
        less = f"{written.percent(1 - ratio)} less {objective}"
        return f"The next, {other}, needs {less} but is held back by rules (see the reasons)"
    if ratio < 1.005:
        return f"The next, {other}, needs as much {objective}"
    return f"The next, {other}, needs {_times(ratio)} the {objective}"


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 10 else f"{ratio:,.0f} times"


def _dominant(estimate: Estimate) -> str:
    """Return which term and which block take most of the step, or that it waits for its input."""
    terms: defaultdict[str, float] = defaultdict(float)
    blocks: defaultdict[str, float] = defaultdict(float)
    for share in estimate.breakdown:
        terms[share.term] += share.seconds.mid
        if share.block != ALL_BLOCKS:
            blocks[share.block] += share.seconds.mid
    whole = sum(terms.values())
    if not whole:
        return "where its step time goes is not known"
    if terms["input"] > 0:
        waits = written.percent(terms["input"] / whole)
        return f"its input takes longer than its arithmetic, which waits for {waits} of the step"
    term = max(terms, key=lambda k: (terms[k], k))
    said = f"most of its step is {term} ({written.percent(terms[term] / whole)})"
    block = max(blocks, key=lambda k: (blocks[k], k), default="")
    if not block or blocks[block] < WORTH_NAMING * whole:
        return said
    return f"{said}, the block that takes most of it is {block} ({written.percent(blocks[block] / whole)})"


def measurements_of(order: tuple[Contender, ...]) -> int:
    """Return how many measurements stand in the evidence of the ranked step times."""
    steps = (c.estimate.step_time_s for c in order)
    texts = {text for step in steps if step is not None for text in step.evidence}
    return sum(1 for text in texts if _MEASURED.search(text))


def rests_on_of(order: tuple[Contender, ...], count_used: int, devices: tuple[str, ...], today: str) -> str:
    """Return what the answer rests on: how many measurements, where, and how many figures are of which tier."""
    tiers = Counter(c.estimate.step_time_s.tier for c in order if c.estimate.step_time_s is not None)
    best = order[0].estimate.step_time_s
    lead = f"The figure of the choice is {_TIER_WORDS[best.tier]}" if best is not None else "The choice has no step time"
    counted = ", ".join(f"{count} {_TIER_WORDS[tier]}" for tier, count in sorted(tiers.items()))
    where = f" on {', '.join(devices)}" if devices and count_used else ""
    used = "no measurement" if count_used == 0 else "1 measurement" if count_used == 1 else f"{count_used} measurements"
    busy = best is not None and any("contended" in text for text in best.evidence)
    doubt = " Other work used this machine while the choice was measured: measure again when it is quiet." if busy else ""
    if order[0].estimate.published_of:
        lead += f" of programs in {order[0].estimate.published_of}, as their authors tuned them{_elsewhere(order)}"
    return f"{lead}; the answer rests on {used}{where} and the catalog as of {today} ({counted}).{doubt}"


def _elsewhere(order: tuple[Contender, ...]) -> str:
    """Return what the same job needs in another library of the choice's framework: how much of the figure is the library's."""
    best, own = order[0].estimate, order[0].estimate.step_time_s
    for other in (c.estimate for c in order[1:]):
        theirs = other.step_time_s
        alike = _framework(other) == _framework(best) and other.candidate.pools == best.candidate.pools
        if not alike or other.published_of in ("", best.published_of) or own is None or theirs is None:
            continue
        if theirs.mid > (1 + WORTH_NAMING) * own.mid:
            times = _times(theirs.mid / own.mid)
            return f" (in {other.published_of} the same job needs {times} the time, and code in neither may need more)"
    return ""


def _framework(estimate: Estimate) -> str:
    return estimate.candidate.runtime.partition("-")[0]


def nothing_words(excluded: tuple[Exclusion, ...], unranked: tuple[Estimate, ...], objective: str) -> tuple[str, str]:
    """Return the sentence and the reason when nothing can be recommended."""
    if unranked:
        first = sorted(unranked, key=lambda estimate: estimate.candidate.pools[0].attached)
        missing = next((phrase for estimate in first for phrase in estimate.missing), f"the {objective} of every candidate")
        return (
            f"Nothing can be recommended yet: {len(unranked)} candidates could run this workload, none has a known {objective}.",
            f"The first thing that is missing: {missing}.",
        )
    if not excluded:
        return "Nothing can be recommended: no pool was given that a runtime could use.", "There was nothing to compare."
    flags = Counter(item.flag for item in excluded)
    flag = max(flags, key=lambda word: (flags[word], word))
    example = next(item for item in excluded if item.flag == flag)
    return (
        f"Nothing here can run this workload: all {len(excluded)} combinations of runtime and accelerator are out.",
        f"Most often: {flag.replace('_', ' ')} ({flags[flag]}), as {example.runtime} on {example.accelerator}: {example.reason}.",
    )
