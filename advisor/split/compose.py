"""From a workload and its pools to an answer: each way of dividing that it allows, planned, held to the rules, judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from advisor.question import Question
from advisor.rules.case import code_of
from advisor.rules.split_case import EXACT, SplitCase
from advisor.rules.split_case import Side as RuleSide
from advisor.screening import split_verdicts
from advisor.split.between import link_between
from advisor.split.bill import price_break_evens
from advisor.split.compose_data import data_of
from advisor.split.compose_learning import learning_of
from advisor.split.compose_local import local_of
from advisor.split.compose_operators import operators_of
from advisor.split.compose_pipeline import pipeline_of
from advisor.split.compose_serving import serving_of
from advisor.split.given import Given, Links
from advisor.split.judgement import Planned, best_single, judge, saving_of, value_of
from advisor.split.sides import Asked, Side, Variant, sides_of
from core import format as fmt
from core.advice import Recommendation, Verdict
from core.device import Link
from core.errors import BadInput
from core.split import BreakEven, Single, Split, SplitOptions
from core.workload import Workload

PLANNERS: Mapping[str, Callable[[Given], Planned]] = {
    "data": data_of, "local": local_of, "pipeline": pipeline_of, "operators": operators_of, "serving": serving_of,
    "rl": learning_of,
}  # fmt: skip
MODES_OF: Mapping[str, tuple[str, ...]] = {
    "train": ("data", "local", "pipeline", "operators"),
    "finetune": ("data", "local", "pipeline", "operators"),
    "infer": ("data", "pipeline", "operators"),
    "preprocess": ("data", "pipeline"),
    "serve": ("serving",),
    "rl": ("rl",),
}
"""What may be planned for each task; stages and portfolios have documents of their own."""
BATCH_OF_FLEETS = 256
MEETS = {"data": True, "local": False}
"""Whether a mode sums over both pools in every step; others have no such sum."""
HANDS_OVER = ("data", "pipeline", "operators")
"""Modes whose moves are those of the step that is told."""
STAGES = {"serving": "a request", "rl": "an iteration"}
"""What the seconds of a mode are of, where it is no step."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """One workload over several pools.

    Args:
        question: over exactly these pools.
        asked: two or more, in order.
        variant: the same workload with other sizes.
        options: mode, link and what has to be saved.
    """

    question: Question
    asked: tuple[Asked, ...]
    variant: Variant
    options: SplitOptions


def compose(mixed: Mixed) -> tuple[Split, Recommendation]:
    """Return whether these pools should share the workload, and how; and the recommendation over each pool alone.

    Raises:
        BadInput: a mode that is not planned for this task.
    """
    workload, options = mixed.question.workload, mixed.options
    modes = modes_to_plan(workload, options)
    sides, answer = sides_of(mixed.question, mixed.asked, mixed.variant)
    if modes == ("serving",):  # whole requests need no network between pools: each is had where it is cheapest
        known = sides if all(side.alone is not None for side in sides) else _runnable(mixed, sides)
        sides = tuple(replace(side, joined=side.pool) for side in known)
    links, unknown, said = _links(sides, options)
    given = Given(workload, sides, links, unknown, mixed.variant, mixed.question.seed)
    plans = [PLANNERS[mode](given) for mode in modes]
    singles = next((plan.singles for plan in plans if plan.singles), tuple(side.single for side in sides))
    objective = "cost" if modes == ("serving",) else mixed.question.objective
    held = [_held(mixed, plan, given, singles, objective) for plan in plans]
    told = judge(held, singles, objective, options.least_saving, links[0][1], STAGES.get(modes[0], "a step"))
    why = " ".join((told.why, *_job_words(workload, told), *(f"{one[:1].upper()}{one[1:]}." for one in said[:1])))
    return replace(told, why=why, missing=tuple(dict.fromkeys((*told.missing, *unknown, *said)))), answer


def _job_words(workload: Workload, told: Split) -> tuple[str, ...]:
    """Return how long the whole job takes, together and on the best pool alone; nothing where its total is not known."""
    steps = workload.total_steps
    if steps is None or told.seconds is None or told.mode == "serving":
        return ()
    alone = "" if told.best_single is None or told.best_single.seconds is None else (
        f", {fmt.seconds(steps * told.best_single.seconds.mid)} on the best pool alone")
    return (f"The whole job: {fmt.seconds(steps * told.seconds.mid)} together{alone}.",)


def _runnable(mixed: Mixed, sides: tuple[Side, ...]) -> tuple[Side, ...]:
    """Return sides with the runtimes that they would have for a batch that divides over all chips: a fleet has no batch."""
    workload = mixed.variant({"batch": max(BATCH_OF_FLEETS, mixed.question.workload.batch)})
    others, _ = sides_of(replace(mixed.question, workload=workload), mixed.asked, mixed.variant)
    return tuple(
        side if side.alone is not None or other.alone is None else replace(side, runtime=other.runtime, missing="")
        for side, other in zip(sides, others, strict=True)
    )


def modes_to_plan(workload: Workload, options: SplitOptions) -> tuple[str, ...]:
    """Return the ways of dividing that are planned for a workload.

    Args:
        workload: the job.
        options: the only way, or empty for all that its task allows; a plan that is run here is made of measured pieces, and
            needs nothing said of rollouts.

    Raises:
        BadInput: a way that is none of its task, or a workload that does not say what its task needs for it.
    """
    allowed, asked = MODES_OF[workload.task], options.mode
    if workload.task == "rl" and workload.rollouts is None and not options.verify:
        expected = "rollouts: {prompt: N, output: N} in the workload"
        raise BadInput("task rl without rollouts", expected, "say how samples come about")
    if workload.task == "serve" and not workload.requests and workload.targets.requests_per_s is None:
        expected = "targets: {requests_per_s: N} or requests by class in the workload"
        raise BadInput("task serve without a rate of requests", expected, "say how many come")
    if not asked:
        return allowed
    if asked not in allowed:
        raise BadInput(
            f"mode {asked} for task {workload.task}", f"one of {', '.join(allowed)}",
            "choose one of these; stages and portfolio are planned from a document of stages or of workloads",
        )
    return (asked,)


def _links(sides: tuple[Side, ...], options: SplitOptions) -> tuple[Links, tuple[str, ...], tuple[str, ...]]:
    """Return the link between each pair of pools, why some are not known, and how those are that nobody gave."""
    given = None if options.link_bytes_per_s is None else Link(options.link_latency_s or 0.0, options.link_bytes_per_s)
    unknown: list[str] = []
    said: list[str] = []
    rows: list[list[Link | None]] = [[None] * len(sides) for _ in sides]
    for a, first in enumerate(sides):
        for b, second in enumerate(sides):
            if a >= b:
                continue
            found = link_between(first, second, given)
            if isinstance(found, str):
                unknown.append(found)
            else:
                rows[a][b] = rows[b][a] = found[0]
                if given is None:
                    said.append(f"link between {first.name} and {second.name}: {found[1]}")
    return tuple(tuple(row) for row in rows), tuple(unknown), tuple(said)


def _held(mixed: Mixed, plan: Planned, given: Given, singles: tuple[Single, ...], objective: str) -> Planned:
    """Return a plan with what the rules say of it, and with the prices at which the choice turns."""
    used = tuple(side for side in given.sides if any(share.pool == side.joined and share.fraction > 0 for share in plan.shares))
    verdicts = _verdicts(mixed, plan, used if used[1:] else given.sides, given.links, singles, objective)
    turns: tuple[BreakEven, ...] = ()
    if plan.seconds is not None and not plan.singles:
        turns = price_break_evens(used, plan.seconds.mid, singles, mixed.options.least_saving)
    missed = _missed(given.workload, plan)
    return replace(
        plan, verdicts=verdicts, break_even=(*plan.break_even, *turns), feasible=plan.feasible and not missed,
        missing=(*plan.missing, *missed),
    )


def _missed(workload: Workload, plan: Planned) -> tuple[str, ...]:
    """Return which of its deadline and its budget a job of a known total misses when it is shared so, one phrase each."""
    steps, targets = workload.total_steps, workload.targets
    if steps is None or plan.seconds is None or plan.mode == "serving":
        return ()
    missed: list[str] = []
    hours = steps * plan.seconds.mid / 3600.0
    if targets.deadline_h is not None and hours > targets.deadline_h:
        missed.append(f"the split takes {hours:.3g} h and misses the deadline of {targets.deadline_h:g} h")
    if targets.budget_usd is not None and plan.cost_usd is not None and plan.cost_usd.mid > targets.budget_usd:
        missed.append(f"the split costs {plan.cost_usd.mid:.4g} USD and misses the budget of {targets.budget_usd:g} USD")
    return tuple(missed)


def _verdicts(
    mixed: Mixed, plan: Planned, used: tuple[Side, ...], links: Links, singles: tuple[Single, ...], objective: str
) -> tuple[Verdict, ...]:
    """Return what the rules say of the first two unlike pools of a plan."""
    first = used[0]
    unlike = (side for side in used[1:] if _rule_side(side).family != _rule_side(first).family)
    second = next(unlike, used[1] if used[1:] else None)
    if second is None:
        return ()
    alone = best_single(singles, objective)
    code = code_of(mixed.question.workload, mixed.question.today)
    moved = sum(move.size_bytes for move in plan.moves) if plan.mode in HANDS_OVER else 0.0
    saving = saving_of(value_of(plan, objective), None if alone is None else value_of(alone, objective))
    link = links[0][1]
    case = SplitCase(
        code, (_rule_side(first), _rule_side(second)),
        synchronous=MEETS.get(plan.mode), staged=True, one_program=False,
        link_bytes_per_s=None if link is None else link.bytes_per_s, link_latency_s=None if link is None else link.latency_s,
        transfer_bytes=moved or None, stage_s=None if plan.seconds is None else plan.seconds.mid,
        meets_alone=alone is not None, saving=saving, reproducible=bool(code.names(*EXACT)) or None,
    )
    return split_verdicts(case)


def _rule_side(side: Side) -> RuleSide:
    vendor = "" if side.chip is None else side.chip.vendor.lower()
    return RuleSide(side.pool.accelerator, side.pool.kind, vendor, side.pool.count, side.chip, side.runtime, side.joined.where)
