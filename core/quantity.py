"""A number that is shown: always with a band, a tier and its evidence.

The band `low..high` is meant to hold the truth 80 % of the time. Unknown is `None` in place of a Quantity, never a default.
"""

from dataclasses import dataclass
from math import erf, exp, hypot, log, sqrt

TIERS = ("measured", "interpolated", "transferred", "published", "datasheet")
"""Where a number comes from, best first."""

TIER_SIGMA: dict[str, float] = {
    "measured": 0.103,
    "interpolated": 0.12,
    "transferred": 0.25,
    "published": 0.30,
    "datasheet": 0.50,
}
"""Standard deviation of ln(truth / estimate) that a tier starts with, before anything is learnt from residuals.

Source: `bench/attached.py` for `measured`: over two of its runs, one on a calm host and one on a busy one (160 steps), the bands
that this gives hold 82.5 %, the middle of the 75 to 90 % that they are held to. The others are priors, widened until the bench or
a fit replaces them.
"""

Z_80 = 1.2815515655446004
"""Half width of the central 80 % of a normal distribution, in standard deviations."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A positive or zero value with its 80 % band.

    Args:
        low, mid, high: same unit, `low <= mid <= high`; the unit is in the name of the field that holds it.
        tier: one of `TIERS`.
        evidence: where it comes from, one short phrase each (probe ids, source addresses, formulas).
    """

    low: float
    mid: float
    high: float
    tier: str
    evidence: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (0 <= self.low <= self.mid <= self.high < float("inf")):
            raise ValueError(f"got band {self.low}, {self.mid}, {self.high}; expected 0 <= low <= mid <= high, finite")
        if self.tier not in TIERS:
            raise ValueError(f"got tier {self.tier!r}; expected one of {', '.join(TIERS)}")

    @property
    def sigma(self) -> float:
        """Standard deviation of ln(truth / mid) that the band stands for."""
        if self.mid <= 0 or self.low <= 0:
            return 0.0
        return log(self.high / self.low) / (2 * Z_80)

    def chance_within(self, limit: float) -> float:
        """Return the probability that the truth is at most a limit, in the unit of this."""
        if self.mid <= 0 or self.sigma <= 0 or limit <= 0:
            return float(self.mid <= limit)
        return 0.5 * (1 + erf(log(limit / self.mid) / self.sigma / sqrt(2)))

    def scaled(self, factor: float, *evidence: str) -> "Quantity":
        """Return this times a known positive factor, with more evidence."""
        return Quantity(self.low * factor, self.mid * factor, self.high * factor, self.tier, self.evidence + evidence)

    def at_least(self, floor: float) -> "Quantity":
        """Return this with nothing of its band below what cannot be undercut, in the unit of this.

        The band is cut and not moved, so its `sigma` shrinks, by half at most: as that of a normal does, whose lower half is cut.
        """
        low, mid, high = (max(value, floor) for value in (self.low, self.mid, self.high))
        return Quantity(low, mid, high, self.tier, self.evidence)


def log_normal(mid: float, sigma: float, tier: str, *evidence: str) -> Quantity:
    """Return the 80 % band of a log-normal belief around `mid`.

    Args:
        mid: the median, positive or zero.
        sigma: standard deviation of the logarithm.
        tier: one of `TIERS`.
        evidence: where it comes from.
    """
    spread = exp(Z_80 * sigma)
    return Quantity(mid / spread, mid, mid * spread, tier, tuple(evidence))


def longer(first: Quantity, second: Quantity) -> Quantity:
    """Return the band of what takes as long as the longer of two that are wrong apart from each other, in their unit.

    The middle is the longer middle, so that parts which are told beside it add up; the limits are those within which the longer
    of two independent log-normal values lies 10 and 90 % of the time, told as of the one with the longer middle.

    Args:
        first, second: of one unit.
    """
    leads, other = (first, second) if first.mid >= second.mid else (second, first)
    if leads.mid <= 0 or other.mid <= 0:
        return leads

    def at(chance: float) -> float:
        least, most = min(first.low, second.low), max(leads.high, other.high, leads.mid) * 1e3
        for _ in range(60):
            middle = (least * most) ** 0.5
            within = first.chance_within(middle) * second.chance_within(middle)
            least, most = (least, middle) if within >= chance else (middle, most)
        return most

    if leads.low > 0 and other.low > 0:
        low, high = at(0.1), at(0.9)
    else:
        low, high = max(first.low, second.low), max(first.high, second.high)
    return Quantity(min(low, leads.mid), leads.mid, max(high, leads.mid), leads.tier, leads.evidence)


def exact(value: float, tier: str, *evidence: str) -> Quantity:
    """Return a quantity without a band: arithmetic on known sizes."""
    return Quantity(value, value, value, tier, tuple(evidence))


def worst_tier(tiers: tuple[str, ...]) -> str:
    """Return the least trustworthy of `tiers`; raises ValueError when there is none."""
    return max(tiers, key=TIERS.index)


def total(parts: tuple[Quantity, ...], correlation: float = 0.5) -> Quantity:
    """Return the sum of parts, its band by adding deviations that are partly correlated.

    Args:
        parts: at least one quantity of one unit.
        correlation: correlation between the parts' errors, 0 (independent) to 1 (the same error everywhere).

    Source: variance of a sum, Var = sum of variances + correlation x sum over pairs of products of deviations.
    """
    mid = sum(part.mid for part in parts)
    evidence = tuple(dict.fromkeys(text for part in parts for text in part.evidence))
    tier = worst_tier(tuple(part.tier for part in parts))
    if mid <= 0:
        return Quantity(mid, mid, mid, tier, evidence)
    deviations = [part.mid * part.sigma for part in parts]
    independent = hypot(*deviations)
    together = sum(deviations)
    deviation = (correlation * together**2 + (1 - correlation) * independent**2) ** 0.5
    return log_normal(mid, deviation / mid, tier, *evidence)
