"""Predictions against truths: errors, coverage, choice, and the one verdict on them. Pure; the bench prints what it says."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.statistics import median, quantile

MEDIAN_APE, P90_APE = 0.08, 0.20
COVERAGE = (0.75, 0.90)
NEAR_BEST, GOOD_CHOICES = 0.03, 0.9
FEWEST_WORKLOADS = 10


@dataclass(frozen=True, slots=True)
class Row:
    """One workload in one runtime.

    Args:
        low_s, mid_s, high_s: the predicted step time and its 80 % band; None when nothing was predicted.
        truth_s: median of the true step times; None when the native could not run.
        note: why a number is missing, or what is special about the row.
    """

    case: str
    runtime: str
    low_s: float | None
    mid_s: float | None
    high_s: float | None
    truth_s: float | None
    note: str = ""

    @property
    def error(self) -> float | None:
        """(predicted - true) / true, or None when either is missing."""
        return None if self.mid_s is None or self.truth_s is None else (self.mid_s - self.truth_s) / self.truth_s

    @property
    def inside(self) -> bool | None:
        """Whether the band holds the truth, or None when either is missing."""
        if self.low_s is None or self.high_s is None or self.truth_s is None:
            return None
        return self.low_s <= self.truth_s <= self.high_s


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for a workload and what would have been best.

    Args:
        chosen: the runtime with the lowest prediction among those that were ranked.
        fastest: the runtime with the lowest true time.
        regret: true time of the chosen over that of the fastest, minus 1; None when the chosen one has no true time.
    """

    case: str
    chosen: str
    fastest: str
    regret: float | None

    @property
    def good(self) -> bool:
        """Whether the chosen runtime is within 3 % of the fastest."""
        return self.regret is not None and self.regret <= NEAR_BEST


@dataclass(frozen=True, slots=True)
class Verdict:
    """The figures of a whole bench; None when there is no row to take them from."""

    rows: int
    unpredicted: int
    workloads: int
    good_choices: int
    median_ape: float | None
    p90_ape: float | None
    coverage: float | None

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """Every bound that does not hold, one phrase each."""
        if self.median_ape is None or self.p90_ape is None or self.coverage is None:
            return ("nothing was compared",)
        checks = (
            (self.workloads >= FEWEST_WORKLOADS, f"{self.workloads} workloads, fewer than {FEWEST_WORKLOADS}"),
            (self.unpredicted == 0, f"{self.unpredicted} rows without a prediction"),
            (self.median_ape <= MEDIAN_APE, f"median error {self.median_ape:.1%} over {MEDIAN_APE:.0%}"),
            (self.p90_ape <= P90_APE, f"90th percentile {self.p90_ape:.1%} over {P90_APE:.0%}"),
            (COVERAGE[0] <= self.coverage <= COVERAGE[1],
             f"coverage {self.coverage:.1%} outside {COVERAGE[0]:.0%} to {COVERAGE[1]:.0%}"),
            (self.good_choices >= GOOD_CHOICES * self.workloads,
             f"{self.good_choices} of {self.workloads} choices within {NEAR_BEST:.0%}, fewer than {GOOD_CHOICES:.0%}"),
        )
        return tuple(phrase for holds, phrase in checks if not holds)


def choose(case: str, ranked: Sequence[str], rows: Sequence[Row]) -> Choice | None:
    """Hold the first of a ranking against the truly fastest.

    Args:
        case: the workload.
        ranked: runtime ids, best first.
        rows: all rows of this workload.

    Returns:
        None when nothing was ranked or no native ran.
    """
    truths = {row.runtime: row.truth_s for row in rows if row.truth_s is not None}
    if not ranked or not truths:
        return None
    fastest = min(truths, key=lambda runtime: truths[runtime])
    chosen = truths.get(ranked[0])
    return Choice(case, ranked[0], fastest, None if chosen is None else chosen / truths[fastest] - 1)


def judge(rows: Sequence[Row], choices: Sequence[Choice]) -> Verdict:
    """Return the figures of all rows; rows whose native could not run count nowhere."""
    ran = [row for row in rows if row.truth_s is not None]
    errors = [abs(row.error) for row in ran if row.error is not None]
    inside = [row.inside for row in ran if row.inside is not None]
    return Verdict(
        rows=len(errors), unpredicted=len(ran) - len(errors), workloads=len({row.case for row in ran}),
        good_choices=sum(choice.good for choice in choices),
        median_ape=median(errors) if errors else None, p90_ape=quantile(errors, 0.9) if errors else None,
        coverage=sum(inside) / len(inside) if inside else None,
    )
