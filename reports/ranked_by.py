"""What a chart of candidates shows: the figure that they were ranked by, so that its order is the order of its points."""

from collections.abc import Callable
from dataclasses import dataclass

from core import format as write
from core.advice import Estimate, Recommendation
from core.quantity import Quantity


@dataclass(frozen=True, slots=True)
class RankedBy:
    """One figure of every candidate.

    Args:
        objective: one of `core.workload.OBJECTIVES`.
        name: as it is written under an axis.
        written: writes it with its unit.
    """

    objective: str
    name: str
    written: Callable[[float], str]

    def of(self, estimate: Estimate) -> Quantity | None:
        """Return it of one candidate; None where it is not known."""
        return estimate.of(self.objective)


_TIME = RankedBy("time", "step time", write.seconds)
_ALL = {"time": _TIME, "cost": RankedBy("cost", "cost", write.usd), "energy": RankedBy("energy", "energy", write.energy)}


def ranked_by(advice: Recommendation) -> RankedBy:
    """Return the figure that candidates were ranked by; the step time for `time`, and where no candidate has another.

    Args:
        advice: with its objective.
    """
    found = _ALL[advice.objective]
    return found if any((value := found.of(one)) is not None and value.low > 0 for one in advice.ranked) else _TIME
