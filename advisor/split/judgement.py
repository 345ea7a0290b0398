"""Whether a split is worth it: its best plan against the best pool alone, after the rules, with what two stacks must earn.

Operating two stacks costs people's time that no price list holds: a split is advised only when it saves a good part (a fifth,
settable) of what is to be saved. Where no pool alone will do, any split that does is better than none.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from core import format as fmt
from core.advice import Verdict
from core.device import Link
from core.quantity import Quantity
from core.split import Bar, BreakEven, Curve, Move, Share, Single, Split, other_side, pool_words

SAME = 0.005
"""Two plans nearer than that are the same."""
OF_ONE_PLAN = ("R108", "R109", "R131")
"""Rules whose figures are of one plan."""
ROUNDING = 1e-9
"""What a saving may fall short of its bound by arithmetic alone."""


Curves: TypeAlias = tuple[tuple[Curve, ...], tuple[BreakEven, ...]]


def no_curves() -> Curves:
    """Return none, for a plan that varies with nothing."""
    return (), ()


@dataclass(frozen=True, slots=True)
class Planned:
    """The best plan of one way of dividing, or why there is none.

    Args:
        mode: one of `core.split.MODES`.
        seconds, cost_usd, energy_j: as `core.split.Split` has them; seconds None where there is no plan, and `missing` says why.
        verdicts: what the rules say of this plan.
        curves: works out the curves and where the link or the batch turns the choice; called for the plan that is shown.
        said: one phrase on the plan.
        singles: each pool alone, where the planner itself tells that; empty leaves it to the estimates.
        caution: fraction by which it has to be better than another plan to be shown before it: it changes what is trained.
        feasible: whether it meets what is asked for (deadline, budget, latency).
    """

    mode: str
    seconds: Quantity | None = None
    cost_usd: Quantity | None = None
    energy_j: Quantity | None = None
    terms: tuple[tuple[str, float], ...] = ()
    shares: tuple[Share, ...] = ()
    moves: tuple[Move, ...] = ()
    timeline: tuple[Bar, ...] = ()
    break_even: tuple[BreakEven, ...] = ()
    curves: Callable[[], Curves] = no_curves
    verdicts: tuple[Verdict, ...] = ()
    said: str = ""
    caution: float = 0.0
    feasible: bool = True
    missing: tuple[str, ...] = ()
    singles: tuple[Single, ...] = ()

    @property
    def excluded(self) -> Verdict | None:
        """The first rule that forbids it, or None."""
        return next((one for one in self.verdicts if one.effect == "exclude"), None)


def value_of(one: Planned | Single | Split, objective: str) -> float | None:
    """Return what an objective compares: middle of the seconds, of the cost or of the energy; None where it is not known.

    Args:
        one: a plan or a pool alone.
        objective: one of `core.workload.OBJECTIVES`.
    """
    quantity = {"time": one.seconds, "cost": one.cost_usd, "energy": one.energy_j}[objective]
    return None if quantity is None else quantity.mid


def best_single(singles: Iterable[Single], objective: str) -> Single | None:
    """Return the best pool alone of those that will do; None when none does."""
    known = [(value, single) for single in singles if single.feasible and (value := value_of(single, objective)) is not None]
    return min(known, key=lambda pair: (pair[0], pair[1].pool.accelerator, pair[1].pool.count), default=(0.0, None))[1]


def saving_of(split: float | None, single: float | None) -> float | None:
    """Return what part of the single's value the split saves; negative when it loses; None where one is not known."""
    if split is None or single is None or (single <= 0 and split > 0):
        return None
    return 1.0 - split / single if single > 0 else 0.0


def judge(
    plans: Sequence[Planned], singles: tuple[Single, ...], objective: str, least_saving: float, link: Link | None,
    stage: str = "a step",
) -> Split:
    """Return the answer: the best plan that the rules allow, against the best pool alone.

    Args:
        plans: at least one; those of unknown value count last.
        singles: every pool alone.
        objective: what is to be saved.
        least_saving: fraction from which two stacks are worth it.
        link: between the pools.
        stage: what the seconds are of, for the sentence.
    """
    allowed = [plan for plan in plans if plan.excluded is None and plan.feasible and plan.seconds is not None]
    shown = min(allowed or plans, key=lambda plan: (plan.seconds is None, _rank(plan, objective), plans.index(plan)))
    alone = best_single(singles, objective)
    open_question = alone is None and any(single.feasible is not False for single in singles)
    saving = saving_of(value_of(shown, objective), None if alone is None else value_of(alone, objective))
    worth = bool(allowed) and (saving >= least_saving - ROUNDING if saving is not None else alone is None)
    one_pool = sum(share.fraction > 0 for share in shown.shares) == 1
    verdict = "hybrid" if worth and not one_pool else "single"
    alone_missing = (f"{pool_words(one.pool)}: {one.missing}" for one in singles if one.missing)
    missing = tuple(dict.fromkeys((*shown.missing, *alone_missing)))
    curves, turns = shown.curves()
    return Split(
        shown.mode, objective, verdict, saving, least_saving, link, shown.seconds, shown.cost_usd, shown.energy_j, shown.terms,
        shown.shares, shown.moves, shown.timeline, curves, (*turns, *shown.break_even), singles, alone,
        tuple(_other(plan) for plan in plans if plan is not shown), _verdicts(shown, plans), missing,
        _sentence(shown, alone, saving, verdict, objective, stage, open_question),
        _why(shown, alone, saving, least_saving, objective),
    )


def _verdicts(shown: Planned, plans: Sequence[Planned]) -> tuple[Verdict, ...]:
    """Return what the rules say of the plan that is shown, and what else they warn of in other ways of dividing."""
    rules = {verdict.rule for verdict in shown.verdicts}
    others = {verdict.rule: verdict for plan in plans for verdict in plan.verdicts if verdict.effect == "warn"}
    told = (*rules, *OF_ONE_PLAN)
    return (*shown.verdicts, *(verdict for rule, verdict in sorted(others.items()) if rule not in told))


def _rank(plan: Planned, objective: str) -> float:
    value = value_of(plan, objective)
    return float("inf") if value is None else value * (1.0 + plan.caution)


def _other(plan: Planned) -> tuple[str, float | None, str]:
    out = plan.excluded
    said = f"{out.rule}: {out.reason}" if out is not None else plan.said or "; ".join(plan.missing)
    return plan.mode, None if plan.seconds is None else plan.seconds.mid, said


def _sentence(
    plan: Planned, alone: Single | None, saving: float | None, verdict: str, objective: str, stage: str, open_question: bool,
) -> str:
    one_pool = sum(share.fraction > 0 for share in plan.shares) == 1
    if one_pool and plan.feasible and (saving is None or abs(saving) < SAME):
        return f"Keep to one pool: {plan.said}; no share of another would save {objective}."
    if verdict == "hybrid" and plan.seconds is not None:
        gain = "" if saving is None else f", {fmt.percent(saving)} less {objective} than {_words(alone)} alone"
        unknown = f"; what one pool alone would take in {objective} is not known"
        beside = other_side(objective, plan.seconds, plan.cost_usd, alone)
        gain += f"; it {beside}" if gain and beside else ""
        gain = gain or (unknown if open_question else ", and no pool alone will do")
        return f"Share it: {plan.said}: {fmt.seconds(plan.seconds.mid)} {stage}{gain}."
    if alone is None:
        why = "; ".join(plan.missing) or _barred(plan)
        none = "There is no figure yet, neither for one pool alone nor for both together"
        return f"{none if open_question else 'Neither pool alone nor both together will do'}: {why}."
    if saving is None or plan.excluded is not None or plan.seconds is None or not plan.feasible:
        return f"Keep to {_words(alone)} alone: {_barred(plan)}."
    if saving < 0:
        return f"Keep to {_words(alone)} alone: hybrid loses by {fmt.percent(-saving)} in {objective}."
    return f"Keep to {_words(alone)} alone: hybrid saves {100 * saving:.3g} % in {objective}, too little for two stacks."


def _barred(plan: Planned) -> str:
    """Return why a plan is none."""
    if plan.excluded is not None:
        return plan.excluded.reason
    if plan.seconds is None or not plan.feasible:
        return "; ".join(plan.missing) or "the split misses what is asked for"
    return "what the split would save is not known"


def _why(plan: Planned, alone: Single | None, saving: float | None, least_saving: float, objective: str) -> str:
    if plan.seconds is None:
        return "There is no plan: " + ("; ".join(plan.missing) or "nothing is known") + "."
    longest = sorted(plan.terms, key=lambda term: -term[1])[:3]
    spent = ", ".join(f"{name} {fmt.seconds(seconds)}" for name, seconds in longest if seconds > 0)
    single = "" if alone is None or alone.seconds is None else f"; {_words(alone)} alone takes {fmt.seconds(alone.seconds.mid)}"
    asked = f" Two stacks are worth it from {fmt.percent(least_saving)} of {objective} saved" if saving is not None else ""
    return f"The split takes {fmt.seconds(plan.seconds.mid)} ({spent}){single}.{asked}{'.' if asked else ''}"


def _words(single: Single | None) -> str:
    return "" if single is None else pool_words(single.pool) + (f" ({single.runtime})" if single.pool.attached else "")
