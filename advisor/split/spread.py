"""The band of a split: the slower of several uncertain sides, whose shares were fixed before anyone knew."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from random import Random

from core.quantity import Quantity, worst_tier
from core.statistics import quantile

DRAWS = 1000
TOGETHER = 0.5
"""Correlation of the errors of two sides: one cost model, two chips."""


@dataclass(frozen=True, slots=True)
class Uncertain:
    """One side's part of a step: seconds, the deviation of ln(truth / estimate), and its tier."""

    seconds: float
    sigma: float
    tier: str


def spread(step_s: float, parts: Sequence[Uncertain], seed: int, *evidence: str) -> Quantity:
    """Return the band of a step that lasts as long as its longest part, and whatever else there is, which is certain.

    Shares are balanced for the middles: whichever side is slower than thought holds up the step, so that the band leans upwards.

    Args:
        step_s: planned.
        parts: of the sides.
        seed: of the draws.
        evidence: where it comes from.
    """
    longest = max((part.seconds for part in parts), default=0.0)
    fixed = max(0.0, step_s - longest)
    random = Random(seed)
    own, shared = (1.0 - TOGETHER) ** 0.5, TOGETHER**0.5
    drawn: list[float] = []
    for _ in range(DRAWS):
        common = random.gauss(0.0, 1.0)
        drawn.append(fixed + max(
            (part.seconds * exp(part.sigma * (shared * common + own * random.gauss(0.0, 1.0))) for part in parts), default=0.0,
        ))
    low, high = quantile(drawn, 0.1), quantile(drawn, 0.9)
    tier = worst_tier(tuple(part.tier for part in parts)) if parts else "datasheet"
    return Quantity(min(low, step_s), step_s, max(high, step_s), tier, tuple(evidence))
