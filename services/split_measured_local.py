"""Copies that meet seldom, planned from measured pieces of a round: inner steps by samples, the meeting, the exchange."""

from collections.abc import Sequence
from dataclasses import replace

from advisor.split.local import plan_local
from advisor.split.local_words import LocalPlan, LocalPool, LocalProblem
from probes.split.words import Calibrated, SplitTask
from services.split_measured import fixed_s, link_of, pace_of, single_s

INNER_STEPS = (2, 5, 10, 20)
"""Steps between two meetings that are tried: so few that rounds can be counted within a short run."""
BITS = 32


def local_problem(
    found: Calibrated, names: tuple[str, str], batch: int, inner_steps: Sequence[int] = INNER_STEPS
) -> LocalProblem | None:
    """Return the problem of copies on two measured sides; None where something was not measured.

    Args:
        found: calibration of a task in mode `local`.
        names: of the sides.
        batch: samples of a step.
        inner_steps: allowed steps between two meetings.
    """
    link = link_of(found.exchanges)
    paces = [pace_of(found, side, loaded=True) or pace_of(found, side, loaded=False) for side in (0, 1)]
    if link is None or paces[0] is None or paces[1] is None:
        return None
    pools = tuple(
        LocalPool(
            name, pace, fixed_s(found, side, "update", loaded=True),
            sum(fixed_s(found, side, what, loaded=True) for what in ("change", "reduce", "load")),
        )
        for side, (name, pace) in enumerate(zip(names, paces, strict=True)) if pace is not None
    )
    ways = ((None, link), (link, None))
    return LocalProblem(
        pools, batch, float(found.gradient_bytes), BITS, ways, tuple(inner_steps), ("plain",), least_pools=len(names)
    )


def plan_rounds(found: Calibrated, names: tuple[str, str], batch: int, longest_s: float) -> LocalPlan | None:
    """Return the best plan whose round is short enough to be run several times; the fewest steps where none is.

    Args:
        found, names, batch: as `local_problem` has them.
        longest_s: of a round.
    """
    problem = local_problem(found, names, batch)
    if problem is None:
        return None
    plans = [plan_local(replace(problem, inner_steps=(steps,))) for steps in INNER_STEPS]
    short = tuple(steps for steps, plan in zip(INNER_STEPS, plans, strict=True) if plan is not None and plan.round_s <= longest_s)
    return plan_local(replace(problem, inner_steps=short or INNER_STEPS[:1]))


def task_of_rounds(task: SplitTask, plan: LocalPlan) -> SplitTask:
    """Return a task with the shares and steps of a plan."""
    first, second = plan.shares
    return replace(task, rows=(first.samples, second.samples), inner_steps=(round(first.steps), round(second.steps)))


def alone_s(found: Calibrated, side: int, plan: LocalPlan, batch: int) -> float | None:
    """Return what one side alone takes for as many samples as both see in a round; None where it was not measured."""
    step_s = single_s(found, side, batch)
    seen = sum(share.samples * share.steps for share in plan.shares)
    return None if step_s is None else step_s * seen / batch
