"""Planner of a workflow over pools: which stage where and when, exactly or with the gap stated, and why nothing fits if so.

Time is found by CP-SAT; cost and energy by a mixed-integer programme while no deadline presses, and by CP-SAT when one does.
What is equal in the objective is then made best in the other of time and cost, as far as the time for it reaches: among the
fastest plans the cheapest, among the cheapest the fastest.

Pure numbers in and out; see `advisor.split.stages_words`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from time import monotonic

from advisor.split.stages_assignment import assign, drafted, least_seconds
from advisor.split.stages_barred import barred_by_words
from advisor.split.stages_list import Draft, Listing, least_of_all
from advisor.split.stages_model import Model, build_model
from advisor.split.stages_solver import LARGE, Found, Limits, search
from advisor.split.stages_tell import told
from advisor.split.stages_words import OnePool, StageOption, StagesPlan, StagesProblem
from core import format as write

LIMIT_S = 3.5
"""Seconds that a search may take unless said."""
SECOND_SHARE = 0.2
"""Part of the limit for what is best among equals."""
LEAST_S = 0.05
"""Seconds that a part of the search has at least."""


@dataclass(frozen=True, slots=True)
class Time:
    """What is left of the time for a search; `clock` counts seconds from any moment on."""

    clock: Callable[[], float]
    until: float

    @property
    def is_up(self) -> bool:
        """Whether nothing is left."""
        return self.clock() >= self.until

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return max(LEAST_S, self.until - self.clock())

    def part(self, share: float) -> "Time":
        """Return a part of what is left, as a time of its own."""
        return Time(self.clock, self.clock() + self.left_s * share)


def plan_stages(
    problem: StagesProblem, limit_s: float = LIMIT_S, *, singles: bool = True, clock: Callable[[], float] = monotonic
) -> StagesPlan:
    """Return the best placement of a workflow.

    Args:
        problem: stages, pools and the ways between.
        limit_s: seconds for the search, about; what is not proven by then has its gap stated.
        singles: whether every pool is tried alone, too.
        clock: seconds from any moment on.

    Returns:
        The plan; without a placement where nothing fits, and `barred` says why.

    Raises:
        BadInput: names that are twice or unknown, a cycle, numbers below zero.
    """
    time = Time(clock, clock() + limit_s)
    model = build_model(problem)
    said = barred_by_words(problem, model)
    plan = _bare(problem, said) if said else _planned(model, time)
    if not singles:
        return plan
    alone = tuple(_alone(problem, pool.name, limit_s / 4) for pool in problem.pools)
    feasible = [one for one in alone if one.feasible]
    best = min(feasible, key=lambda one: (_value(one, problem.objective), one.seconds or 0.0), default=None)
    return replace(plan, singles=alone, best_single=best.pool if best else "")


def single_problem(problem: StagesProblem, pool: str) -> StagesProblem:
    """Return the problem with one pool, and its hosts for the stages that may run anywhere.

    Args:
        problem: with all pools.
        pool: that is kept.
    """
    hosts = {one.name for one in problem.pools if one.host_of == pool or one.is_host}

    def kept(option: StageOption, anywhere: bool) -> bool:
        return option.pool == pool or (anywhere and option.pool in hosts)

    stages = tuple(
        replace(stage, options=tuple(option for option in stage.options if kept(option, stage.anywhere)))
        for stage in problem.stages
    )
    return replace(problem, stages=stages, most_pools=None)


def _alone(problem: StagesProblem, pool: str, limit_s: float) -> OnePool:
    one = plan_stages(single_problem(problem, pool), limit_s, singles=False)
    return OnePool(pool, one.seconds, one.cost_usd, one.energy_j, bool(one.placed), one.barred)


def _value(one: OnePool, objective: str) -> float:
    value = {"time": one.seconds, "cost": one.cost_usd, "energy": one.energy_j}[objective]
    return inf if value is None else value


def _bare(problem: StagesProblem, said: str) -> StagesPlan:
    return StagesPlan(problem.objective, (), None, None, None, None, None, barred=said)


def _planned(model: Model, time: Time) -> StagesPlan:
    """Return the plan of a problem that no word of it bars."""
    problem = model.problem
    limits = Limits(time.left_s, problem.deadline_s, problem.budget_usd)
    found = _best(model, problem.objective, limits, time.part(1 - SECOND_SHARE))
    if found.draft is None:
        return _bare(problem, _why_not(model, Time(time.clock, time.clock() + limits.seconds)))
    value, bound = found.draft.value(problem.objective), found.bound
    gap = max(0.0, (value - bound) / value) if value > 0 else 0.0
    draft = _second(model, found.draft, time)
    return told(model, draft, min(bound, value), gap if gap > 1e-9 else 0.0)


def _best(model: Model, objective: str, limits: Limits, time: Time) -> Found:
    """Return the best plan within limits for one objective."""
    listing = Listing(model, objective, limits.deadline_s, limits.budget_usd)
    drafts = [draft for cheapest in (False, True) if (draft := listing.first(cheapest)) is not None]
    large = sum(map(len, model.options)) > LARGE
    floor = least_of_all(model, objective)
    if large and objective == "time":
        floor = max(floor, least_seconds(model, time.left_s / 2))
    if objective != "time":
        assigned = assign(model, objective, time.left_s, limits.budget_usd)
        if assigned.impossible:
            return Found(None, inf, impossible=True)
        draft = drafted(model, assigned, listing.order)
        floor, drafts = max(floor, assigned.bound), [*drafts, draft] if draft else drafts
        if draft is not None and listing.worth(draft)[0] == 0:
            return Found(draft, floor)
    best = min(drafts, key=listing.worth, default=None)
    if best is not None and large:
        trying = time.part(0.25)
        best = listing.better(best, go_on=lambda: trying.clock() < trying.until)
    fits = best is not None and listing.worth(best)[0] == 0
    if fits and time.is_up:
        return Found(best, floor)
    found = search(model, objective, replace(limits, seconds=time.left_s), best if fits else None, floor)
    if found.draft is not None and listing.worth(found.draft)[0] > 0:
        found = search(model, objective, replace(limits, seconds=time.left_s, tight=True), None, floor)
    if best is None or not fits:
        return found
    if found.draft is None or listing.worth(best) < listing.worth(found.draft):
        return Found(best, found.bound if found.bound < inf else floor)
    return found


def _second(model: Model, best: Draft, time: Time) -> Draft:
    """Return a plan that is as good, and best in the other of time and cost."""
    problem = model.problem
    if time.is_up:
        return best
    margin = 1 + 1e-9
    if problem.objective == "time":
        if any(price is None for price in model.usd_per_s):
            return best
        limits, other = Limits(time.left_s, best.seconds * margin, problem.budget_usd), "cost"
    else:
        budget_j = best.joules * margin if problem.objective == "energy" else None
        budget_usd = best.usd * margin if problem.objective == "cost" else problem.budget_usd
        limits, other = Limits(time.left_s, problem.deadline_s, budget_usd, budget_j), "time"
    found = search(model, other, limits, best)
    if found.draft is None:
        return best
    listing = Listing(model, problem.objective, problem.deadline_s, problem.budget_usd)
    as_good = found.draft.value(problem.objective) <= best.value(problem.objective) * margin
    better = found.draft.value(other) < best.value(other)
    return found.draft if as_good and better and listing.worth(found.draft)[0] == 0 else best


def _why_not(model: Model, time: Time) -> str:
    """Return why no plan keeps the limits: what the least is that each of them would have to be."""
    free = Limits(time.left_s)
    said: list[str] = []
    problem = model.problem
    fastest = _best(model, "time", free, time.part(0.5))
    if fastest.draft is None:
        if not fastest.impossible:
            return "no placement was found in the time for the search: give it more, or leave out pools"
        return _crowded(model)
    if problem.deadline_s is not None:
        least = fastest.draft.seconds
        if least > problem.deadline_s:
            proven = fastest.bound > problem.deadline_s
            how = "the least that can be reached is" if proven else "the least that was found is"
            said.append(f"the deadline of {write.seconds(problem.deadline_s)}: {how} {write.seconds(least)}")
    if problem.budget_usd is not None:
        cheapest = _best(model, "cost", free, time.part(0.5))
        if cheapest.draft is not None and cheapest.draft.usd > problem.budget_usd:
            said.append(f"the budget of {problem.budget_usd:,.2f} USD: the least is {cheapest.draft.usd:,.2f} USD")
    if not said and problem.budget_usd is not None and problem.deadline_s is not None:
        within = _best(model, "cost", replace(free, deadline_s=problem.deadline_s), time)
        least = f"the least within that time is {within.draft.usd:,.2f} USD" if within.draft else "none was found"
        said.append(f"deadline and budget together: {least}")
    return "; ".join(said) or "no placement that keeps every limit was found in the time for the search"


def _crowded(model: Model) -> str:
    """Return why nothing fits even without deadline and budget: forms and ways, quotas, or the count of pools."""
    problem = model.problem
    open_pools = replace(problem, pools=tuple(replace(pool, quota_h=None) for pool in problem.pools), most_pools=None)
    if _try(open_pools) is None:
        return "stages that are joined have no pools in common that can hand over to each other, in forms that fit"
    if problem.most_pools is not None and _try(replace(problem, most_pools=None)) is not None:
        return f"no {problem.most_pools} of the pools can run every stage"
    quotas = ", ".join(f"{pool.name} {pool.quota_h:g} h" for pool in problem.pools if pool.quota_h is not None)
    return f"the quotas of hours: {quotas}"


def _try(problem: StagesProblem) -> Draft | None:
    """Return any plan of a problem, within a second."""
    time = Time(monotonic, monotonic() + 1.0)
    return _best(build_model(problem), "time", Limits(time.left_s), time).draft
