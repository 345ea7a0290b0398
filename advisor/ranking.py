"""Orders candidates for an objective and says which cannot be told apart from the best.

Every estimate is a log-normal belief. Two candidates on one kind of chip share part of their error (the chip's datasheet or
the state of the machine), so their difference is surer than either figure. Penalties of rules act on the order alone.
"""

from dataclasses import dataclass
from math import erf, inf, log, sqrt

from advisor.beliefs import BELIEFS, UNCOMPILED_RUNTIMES
from advisor.charges import steps_charged
from core.advice import Estimate, Plan
from core.format import seconds
from core.probe import RUNTIME_IDS
from core.quantity import TIERS, Quantity, total
from core.workload import Workload

NEARLY = 0.02
"""Difference of two figures, as a fraction, that is not worth a choice; the regret at which probing stops is the same."""
UNFELT = NEARLY / 4
"""Standard deviation of a difference below which it is as good as known."""
LIKELY = 0.75
"""Chance of fitting in memory below which what is as good and fits is chosen."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A candidate as the ranking sees it.

    Args:
        estimate: as shown.
        value: the objective, as shown.
        excess: 1, and for each target that it misses by how many times what is allowed; 1 where all are met.
        familiar: whether it runs the framework that the code is written in; settles ties.
    """

    estimate: Estimate
    value: Quantity
    excess: float = 1.0
    familiar: bool = False

    @property
    def late(self) -> bool:
        """Whether it misses a target."""
        return self.excess > 1

    @property
    def score(self) -> float:
        """What is ordered, lower is better: the shown value over the penalty factor."""
        return self.value.mid / self.estimate.penalty

    @property
    def device(self) -> str:
        """The kind of chip that it runs on."""
        return self.estimate.candidate.pools[0].accelerator

    @property
    def work(self) -> tuple[str, str, int, Plan]:
        """What runs on what, whoever sells it: the same figure with the same error."""
        candidate = self.estimate.candidate
        return candidate.runtime, self.device, candidate.pools[0].count, candidate.plan

    @property
    def step_s(self) -> float:
        """Step time over the penalty factor: settles equal scores, as of owned machines that cost nothing."""
        step = self.estimate.step_time_s
        return 0.0 if step is None else step.mid / self.estimate.penalty

    @property
    def compared(self) -> Quantity:
        """What chances are told from: the objective, or the step time where the objective is nothing for both."""
        step = self.estimate.step_time_s
        return self.value if self.value.mid > 0 or step is None else step

    @property
    def spread(self) -> tuple[float, float]:
        """Standard deviations of the logarithm of what is compared, by its chips and by its input.

        Each counts as far as it is likely to be the longer; where no input is reckoned with, all of it is the chips'.
        """
        fed, step = self.estimate.fed, self.estimate.step_time_s
        if fed is None or step is None or step.sigma <= 0:
            return self.compared.sigma, 0.0
        waits, carried = fed.chance_waiting, self.compared.sigma / step.sigma
        return (1 - waits) * fed.chips_s.sigma * carried, waits * fed.input_s.sigma * carried

    @property
    def tier(self) -> str:
        """The tier of what its chips take, by which errors are shared."""
        fed = self.estimate.fed
        return self.compared.tier if fed is None else fed.chips_s.tier

    @property
    def order(self) -> tuple[float, float, float, float, int, bool, int, float, str, str]:
        """Sort key: the least missed, score, how surely targets are met, step time, tier, known framework, runtime, price, names.

        How surely counts where the score has no band: what is paid while requests come is the same however they are answered.
        """
        candidate, tier = self.estimate.candidate, TIERS.index(self.value.tier)
        pool, runtime = candidate.pools[0], _listed(candidate.runtime)
        price = inf if pool.price_usd_per_h is None else pool.price_usd_per_h
        figures = (self.excess, self.score, _unsure(self), self.step_s)
        return (*figures, tier, not self.familiar, runtime, price, candidate.label, pool.where)


def _listed(runtime: str) -> int:
    """Return the place of a runtime in the list of all: frameworks themselves stand before Keras on them."""
    return RUNTIME_IDS.index(runtime) if runtime in RUNTIME_IDS else len(RUNTIME_IDS)


def value_of(estimate: Estimate, objective: str, workload: Workload) -> Quantity | None:
    """Return the number that an objective ranks by; None when it is not known.

    `time` is the step time, or with a total the time of the job with its compilation, where that is known, and interruptions;
    where requests come at a rate it is what 99 of 100 are answered within.
    """
    if objective != "time":
        return estimate.of(objective)
    if estimate.served is not None:
        return estimate.served.total_s[-1] if estimate.served.total_s else estimate.step_time_s
    if estimate.step_time_s is None or workload.total_steps is None:
        return estimate.step_time_s
    if estimate.job_s is not None:
        return estimate.job_s
    running = estimate.step_time_s.scaled(steps_charged(workload))
    return running if estimate.compile_s is None else total((running, estimate.compile_s), 0.0)


def chance_faster(other: Contender, best: Contender) -> float:
    """Return the probability that `other` is truly better than `best`, from the shown values, penalties left out.

    Of two figures without a band, the lower is better where anybody would feel the difference.

    Source: difference of two correlated normal variables.
    """
    if (other.value.mid > 0) != (best.value.mid > 0):
        return float(other.value.mid <= 0)
    spread = difference_sigma(other, best)
    gap = log(other.compared.mid / best.compared.mid) if other.compared.mid > 0 and best.compared.mid > 0 else 0.0
    if spread < UNFELT:
        return 0.5 if abs(gap) <= NEARLY else float(gap < 0)
    return 0.5 * (1 + erf(-gap / spread / sqrt(2)))


def difference_sigma(first: Contender, second: Contender) -> float:
    """Return the standard deviation of ln(first / second): part of their errors is the same, or all, on another seller.

    What is wrong of the input is wrong of all alike: one rate of decoding is taken for every host.
    """
    if first.work == second.work:
        return 0.0
    (a, mine), (b, theirs) = first.spread, second.spread
    of = BELIEFS.shared if first.device == second.device else BELIEFS.common
    shared = min(of(first.tier), of(second.tier))
    return sqrt(max(0.0, a * a + b * b - 2 * shared * a * b + (mine - theirs) ** 2))


def nearly(other: Contender, best: Contender) -> bool:
    """Return whether two figures are so near that nobody would feel the difference: then other things settle the choice."""
    mine, theirs = (best.score, other.score) if best.value.mid > 0 and other.value.mid > 0 else (best.step_s, other.step_s)
    return abs(theirs - mine) <= NEARLY * mine


def chosen_by(best: Contender, equal: tuple[Contender, ...]) -> str:
    """Return why the choice fell on `best` among candidates that cannot be told apart; empty when there are no others.

    Args:
        best: chosen by `ranked`.
        equal: from `ranked`.
    """
    if not equal:
        return ""
    ahead = [c for c in equal if (c.score, c.step_s) < (best.score, best.step_s)]
    if ahead and all(_tight(c) for c in ahead) and not _tight(best):
        return "what needs less may not fit"
    others = [c for c in equal if c.value.sigma == 0 and nearly(c, best)]
    if others and all(_unsure(c) > _unsure(best) for c in others):
        return "it meets the targets more surely at the same figure"
    held_back = [c for c in equal if c.estimate.penalty < best.estimate.penalty]
    less = [c for c in held_back if c.value.mid < (1 - NEARLY * (c.value.sigma == 0)) * best.value.mid]
    if less:
        return f"rules hold back {_named(less)}, which may need less"
    if len(held_back) == len(equal):
        return f"rules hold back {_named(held_back)}"
    if any(TIERS.index(c.value.tier) > TIERS.index(best.value.tier) for c in ahead):
        return "its figure is better founded"
    level = ahead or [c for c in equal if (c.score, c.step_s) == (best.score, best.step_s)]
    if not level:
        same = all(c.value.sigma == 0 and abs(c.value.mid - best.value.mid) <= NEARLY * best.value.mid for c in equal)
        return "at the same figure its step is the shortest" if same else "its figure is the lowest"
    if best.familiar and not all(c.familiar for c in level):
        return "the code is written in its framework"
    if not _taken_eager(best) and all(_taken_eager(c) for c in level):
        return "it compiles, which the others' figures take for granted"
    if all(_hourly(c) > _hourly(best) for c in level):
        return "it costs less an hour"
    compile_s = best.estimate.compile_s
    if compile_s is not None and all(_compile_s(c) > compile_s.mid for c in level):
        return f"it compiles sooner ({seconds(compile_s.mid)})" if compile_s.mid > 0 else "it compiles nothing"
    return "nothing but name and price parts them"


def _named(contenders: list[Contender]) -> str:
    """Return the labels of candidates: the first, and how many more there are."""
    labels = list(dict.fromkeys(c.estimate.candidate.label for c in contenders))
    return labels[0] + (f" and {len(labels) - 1} more" if len(labels) > 1 else "")


def _tight(contender: Contender) -> bool:
    """Return whether it may well not fit in memory."""
    chance = contender.estimate.fit_chance
    return chance is not None and chance < LIKELY


def _unsure(contender: Contender) -> float:
    """Return how unsure the targets are, to a tenth, of a figure without a band: what is paid while requests come is known."""
    chance = contender.estimate.target_chance
    return 0.0 if chance is None or contender.value.sigma > 0 else round(1 - chance, 1)


def _same_cost_s(contender: Contender) -> float:
    """Return the step time of a candidate whose figure has no band, to two digits: at the same cost the faster is the better."""
    return 0.0 if contender.value.sigma > 0 or contender.step_s <= 0 else float(f"{contender.step_s:.1e}")


def _taken_eager(contender: Contender) -> bool:
    """Return whether a figure that was not measured is of a runtime without a compiler: at best that of compiled ones."""
    return contender.estimate.candidate.runtime in UNCOMPILED_RUNTIMES and contender.value.tier in ("published", "datasheet")


def _hourly(contender: Contender) -> float:
    """Return the price of its pool an hour; one that is not known comes last."""
    price = contender.estimate.candidate.pools[0].price_usd_per_h
    return inf if price is None else price


def _compile_s(contender: Contender) -> float:
    compile_s = contender.estimate.compile_s
    return inf if compile_s is None else compile_s.mid


def indistinguishable(other: Contender, best: Contender) -> bool:
    """Return whether two candidates cannot be told apart: a fair chance of the other, or a gap below its own error."""
    if other.late or best.late:
        return False
    return chance_faster(other, best) > BELIEFS.tie


def ranked(contenders: list[Contender]) -> tuple[tuple[Contender, ...], tuple[Contender, ...]]:
    """Return all contenders, best first, and those that cannot be told apart from the best.

    Among those what meets the targets more surely leads where figures have no band, then the better tier: what was measured is
    preferred to what was read from a datasheet. Where figures are nearly the same, the framework of the code leads, then the
    lower price, then what compiles sooner.
    """
    ordered = sorted(contenders, key=lambda c: c.order)
    if not ordered:
        return (), ()
    first = ordered[0]
    level = [c for c in ordered[1:] if c.estimate.penalty >= first.estimate.penalty and indistinguishable(c, first)]
    lead = min([first, *level], key=lambda c: (_tight(c), _unsure(c), TIERS.index(c.value.tier), c.order))
    alike = [c for c in (first, *level) if (_tight(c), _unsure(c)) == (_tight(lead), _unsure(lead))]
    near = [c for c in alike if c.value.tier == lead.value.tier and nearly(c, lead)]
    best = min(near, key=lambda c: (not c.familiar, _taken_eager(c), _same_cost_s(c), _hourly(c), _compile_s(c), c.order))
    rest = tuple(c for c in ordered if c is not best)
    equal = tuple(c for c in rest if indistinguishable(c, best))
    return (best, *rest), equal


def log_score(contender: Contender) -> float:
    """Return the logarithm of the score, or of the step time where the objective is nothing; 0 where both are."""
    score = contender.score if contender.value.mid > 0 else contender.step_s
    return log(score) if score > 0 else 0.0
