"""How sure a choice is, in words, and what stands beside it that cannot be told apart."""

from core import format as write
from core.advice import SURE, Recommendation
from reports.gather import listed


def sure_text(advice: Recommendation) -> str:
    """Return how sure the choice is, one sentence; empty when nothing was chosen."""
    if advice.best is None:
        return ""
    if advice.best.misses:
        return "Nothing meets every target: the choice is what comes nearest."
    if advice.confidence is None:
        return "How sure this is, is not known."
    chosen = standing_text(advice, advice.confidence.p_best)
    regret = f"choosing it is expected to cost {write.percent(advice.confidence.expected_regret)} against the true best"
    said = f"{chosen[0].upper()}{chosen[1:]}; {regret}."
    return f"{said} {ties_title(advice)}: {listed(advice.equal)}." if advice.equal else said


def ties_title(advice: Recommendation) -> str:
    """Return what is said before candidates that cannot be told apart from the choice: figures without a band are just equal."""
    return "Others as good" if advice.confidence is not None and advice.confidence.p_best >= SURE else "Too close to call"


def standing_text(advice: Recommendation, p_best: float) -> str:
    """Return how likely the choice is the best, or as good as any where others are equal and none is better.

    Args:
        advice: with a choice. p_best: its probability of being best.
    """
    able = sum(not one.misses for one in advice.ranked)
    chance = None if advice.best is None else advice.best.target_chance
    unsure = chance is not None and chance < SURE
    nearest = f", or nearest to the targets should none meet them ({write.chance(chance)} sure to meet them)" if unsure else ""
    if able == 1 < len(advice.ranked):
        only = f"the only one of {len(advice.ranked)} that meets the targets"
        return f"{only}; {write.chance(p_best)} likely to be the best choice{nearest}"
    place = "as good as any of" if advice.equal and p_best >= SURE else "the best of"
    return f"{write.chance(p_best)} likely to be {place} {able}{nearest}"
