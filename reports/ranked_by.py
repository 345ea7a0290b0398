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
        of: returns it of one candidate; None where it is not known.
        written: writes it with its unit.
    """

    objective: str
    name: str
    of: Callable[[Estimate], Quantity | None]
    written: Callable[[float], str]


_TIME = RankedBy("time", "step time", lambda one: one.step_time_s, write.seconds)
_OTHERS = (
    RankedBy("cost", "cost", lambda one: one.cost_usd, write.usd),
    RankedBy("energy", "energy", lambda one: one.energy_j, write.energy),
)


def ranked_by(advice: Recommendation) -> RankedBy:
    """Return the figure that candidates were ranked by; the step time for `time`, and where no candidate has another.

    Args:
        advice: with its objective.
    """
    found = next((one for one in _OTHERS if one.objective == advice.objective), _TIME)
    return found if any((value := found.of(one)) is not None and value.low > 0 for one in advice.ranked) else _TIME
