"""A planned workflow or portfolio as a split: shares, timeline, each pool alone, and whether several are worth it."""

from collections.abc import Mapping

from advisor.split.judgement import Planned, judge
from advisor.split.portfolio_words import PortfolioPlan, PortfolioProblem
from advisor.split.stages_words import OnePool, StagesPlan, StagesProblem
from core.advice import Verdict
from core.device import Pool
from core.quantity import Quantity, exact
from core.split import Share, Single, Split

NAMED = 4
"""So many workloads of a pool are named in the sentence."""
EVIDENCE = "seconds as given, or estimated for each stage"


def stages_split(
    problem: StagesProblem, plan: StagesPlan, pools: Mapping[str, Pool], least_saving: float, assumptions: tuple[str, ...],
    verdicts: tuple[Verdict, ...] = (),
) -> Split:
    """Return the split of a workflow.

    Args:
        problem, plan: as planned, with each pool alone.
        pools: by name.
        least_saving: fraction from which several pools are worth it.
        assumptions: of the document.
        verdicts: what the rules say of the hand-overs.
    """
    hosts = {pool.name for pool in problem.pools if pool.is_host or pool.host_of}
    singles = tuple(_single(one, pools[one.pool]) for one in plan.singles if one.pool not in hosts)
    if not plan.placed:
        barred = Planned("stages", missing=(plan.barred,), said=plan.barred, feasible=False)
        return judge([barred], singles, problem.objective, least_saving, None, "in all")
    where: dict[str, list[str]] = {}
    for placed in plan.placed:
        where.setdefault(placed.pool, []).append(placed.stage)
    shares = tuple(
        Share(pools[use.pool], "", use.fraction, float(use.stages), "stages", use.busy_s, use.wait_s,
              detail=", ".join(where.get(use.pool, ())))
        for use in plan.uses
    )  # fmt: skip
    said = "; ".join(f"{', '.join(stages)} on {name}" for name, stages in where.items())
    gap = () if plan.proven or plan.gap is None else (f"at most {plan.gap:.1%} above the best there is",)
    whole = Planned(
        "stages", _exact(plan.seconds), _exact(plan.cost_usd), _exact(plan.energy_j), plan.terms, shares, plan.moves,
        plan.timeline, said=said, verdicts=verdicts, missing=(*plan.warnings, *gap, *assumptions),
    )
    return judge([whole], singles, problem.objective, least_saving, None, "in all")


def _single(one: OnePool, pool: Pool) -> Single:
    return Single(pool, "", _exact(one.seconds), _exact(one.cost_usd), _exact(one.energy_j), one.feasible, one.missing)


def portfolio_split(
    problem: PortfolioProblem, plan: PortfolioPlan, pools: Mapping[str, Pool], least_saving: float, assumptions: tuple[str, ...]
) -> Split:
    """Return the split of a portfolio; a pool alone is one that could do all of it.

    Args:
        problem, plan: as planned.
        pools: by name.
        least_saving: fraction from which several pools are worth it.
        assumptions: of the document.
    """
    singles = tuple(
        Single(pools[name], "", None, _exact(usd) if count == len(problem.works) else None, None, count == len(problem.works),
               "" if count == len(problem.works) else f"it could do {count} of {len(problem.works)} workloads")
        for name, count, usd in plan.alone
    )  # fmt: skip
    where: dict[str, list[str]] = {}
    for placed in plan.placed:
        where.setdefault(placed.pool, []).append(placed.work)
    shares = tuple(
        Share(pools[use.pool], "", use.fraction, float(use.works), "workloads", use.busy * plan.end_s,
              (1 - use.busy) * plan.end_s, detail=", ".join(where.get(use.pool, ())))
        for use in plan.uses
    )  # fmt: skip
    unplaced = tuple(f"{one.work} finds no place: {one.why}" for one in plan.unplaced)
    gap = () if plan.gap <= 1e-6 else (f"at most {plan.gap:.1%} above the best there is",)
    said = "; ".join(f"{', '.join(works) if len(works) <= NAMED else f'{len(works)} workloads'} on {name}"
                     for name, works in where.items())
    if plan.unplaced:
        said = f"{said or 'nothing'} ({len(plan.unplaced)} of {len(problem.works)} workloads find no place)"
    if not plan.placed:
        barred = Planned("portfolio", missing=(*unplaced, *assumptions), said=said, feasible=False)
        return judge([barred], singles, problem.objective, least_saving, None, "in all")
    objective = problem.objective
    whole = Planned(
        "portfolio", _exact(plan.end_s), _exact(plan.cost_usd), _exact(plan.energy_j),
        (("until the last has ended", plan.end_s),), shares, (), plan.timeline, said=said,
        missing=(*unplaced, *gap, *assumptions), feasible=bool(plan.placed),
    )
    return judge([whole], singles, objective, least_saving, None, "in all")


def _exact(value: float | None) -> Quantity | None:
    return None if value is None else exact(value, "datasheet", EVIDENCE)
