"""Whether a candidate meets what is asked for, by how much it fails, and how likely it is to meet it within its bands.

Every figure is a log-normal belief, so the chance that it stays within a limit is closed. All figures of one candidate come from
the same step time: they are off together, and the least of the chances is that of all.
"""

from dataclasses import dataclass

from core.advice import Estimate, Served
from core.format import three_digits
from core.quantity import Quantity, log_normal
from core.workload import Targets, Workload

ENDLESS = 100.0
"""Times as far as the rate is missed that a limit on latency counts as missed where more comes than is served: what keeps up is
nearer, however late."""


@dataclass(frozen=True, slots=True)
class Aim:
    """One target, and what a candidate takes of it.

    Args:
        name: the target, with its limit.
        allowed: the limit.
        taken: the same of the candidate, in the same unit.
        told: what the candidate does, one clause.
        limits, unit: what is limited, and the unit of both; empty where it is not told in the unit of the target.
    """

    name: str
    allowed: float
    taken: Quantity
    told: str
    limits: str = ""
    unit: str = ""

    @property
    def times(self) -> float:
        """What is taken over what is allowed; above 1 the target is missed."""
        return self.taken.mid / self.allowed if self.allowed > 0 else 0.0 if self.taken.mid <= 0 else float("inf")

    @property
    def chance(self) -> float:
        """Probability that the target is met."""
        return self.taken.chance_within(self.allowed)


def aims_of(estimate: Estimate, workload: Workload) -> tuple[Aim, ...]:
    """Return the targets of a workload that can be told of a candidate, in the order of the document.

    Args:
        estimate: of the candidate.
        workload: the job.
    """
    targets, step = workload.targets, estimate.step_time_s
    found: list[Aim] = []
    if step is not None and targets.deadline_h is not None and workload.total_steps is not None:
        hours = (step.scaled(workload.total_steps) if estimate.job_s is None else estimate.job_s).scaled(1 / 3600.0)
        told = f"it takes {hours.mid:,.3g} h"
        found.append(Aim(f"deadline of {targets.deadline_h:g} h", targets.deadline_h, hours, told, "deadline", "hours"))
    cost = estimate.cost_usd
    if cost is not None and targets.budget_usd is not None and workload.total_steps is not None:
        name = f"budget of {targets.budget_usd:,.12g} USD"
        found.append(Aim(name, targets.budget_usd, cost, f"it costs {_whole(cost.mid)} USD", "budget", "USD"))
    if estimate.served is not None:
        found.extend(_of_service(estimate.served, targets, 0.0 if step is None else step.sigma))
    elif step is not None and targets.latency_ms is not None and not workload.trains:
        ms = step.scaled(1e3)
        told = f"a step takes {_whole(ms.mid)} ms"
        found.append(Aim(f"latency of {targets.latency_ms:g} ms", targets.latency_ms, ms, told, "latency", "ms"))
    return tuple(found)


def missed(aims: tuple[Aim, ...]) -> tuple[str, ...]:
    """Return the targets that are missed by middle values, one phrase each with what is done instead."""
    return tuple(f"{aim.name} ({aim.told})" for aim in aims if aim.times > 1)


def chance_of_all(aims: tuple[Aim, ...]) -> float | None:
    """Return the probability that all targets are met; None without any."""
    return min((aim.chance for aim in aims), default=None)


def untold(estimate: Estimate, workload: Workload) -> bool:
    """Return whether a target cannot be told of a candidate, as a budget without a price or a total: none is known to be met.

    Args:
        estimate: of the candidate.
        workload: the job.
    """
    targets = workload.targets
    served = estimate.served
    return (
        (targets.requests_per_s is not None and workload.task == "serve" and served is None)
        or (targets.budget_usd is not None and (workload.total_steps is None or estimate.cost_usd is None))
        or (targets.deadline_h is not None and (workload.total_steps is None or estimate.step_time_s is None))
        or (targets.latency_ms is not None and served is not None and served.utilisation < 1 and not served.total_s)
    )


def excess(aims: tuple[Aim, ...]) -> float:
    """Return 1 and, for each target that is missed, by how many times it is; 1 where all are met."""
    return 1.0 + sum(max(0.0, aim.times - 1.0) for aim in aims)


def _of_service(served: Served, targets: Targets, sigma: float) -> tuple[Aim, ...]:
    """Return whether a rate of requests can be served, and how long the slowest of a hundred takes where that is told."""
    asked, limit = served.requests_per_s, served.limit_per_s
    used = log_normal(served.utilisation, sigma, "datasheet")
    rate = Aim(f"rate of {asked:g} requests a second", 1.0, used, f"it serves {three_digits(limit)} at most")
    if targets.latency_ms is None:
        return (rate,)
    name = f"latency of {targets.latency_ms:g} ms"
    if served.utilisation >= 1:
        return rate, Aim(name, 1.0, used.scaled(ENDLESS), "its queue grows without end")
    if not served.total_s:
        return (rate,)
    slowest = served.total_s[-1].scaled(1e3)
    told = f"at {asked:g} requests a second one in a hundred takes over {_whole(slowest.mid)} ms"
    return rate, Aim(name, targets.latency_ms, slowest, told, "latency", "ms")


def _whole(value: float) -> str:
    """Return a figure to three digits, and to the unit where it has more: `1,234`."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
