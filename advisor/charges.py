"""What a step time comes to: throughput, cost and energy, with bands that carry through."""

from math import hypot, log

from advisor.beliefs import BELIEFS
from core.device import Accelerator, Pool
from core.quantity import Z_80, Quantity, log_normal
from core.workload import Workload

STEPS_WITHOUT_TOTAL = 1000.0
"""Steps that cost and energy are told for when the job has no total."""


def steps_charged(workload: Workload) -> float:
    """Return the steps that cost and energy count: the whole job, or 1,000."""
    total = workload.total_steps
    return STEPS_WITHOUT_TOTAL if total is None else total


def throughput_of(workload: Workload, step: Quantity) -> Quantity | None:
    """Return units per second; None for a step of no time."""
    if step.low <= 0:
        return None
    units = workload.units_per_step
    evidence = (*step.evidence, f"{units:g} {workload.unit} a step")
    return Quantity(units / step.high, units / step.mid, units / step.low, step.tier, evidence)


def cost_of(workload: Workload, pool: Pool, step: Quantity) -> Quantity | None:
    """Return US dollars of the job (or 1,000 steps) by price x hours; None when the price is not known."""
    if pool.price_usd_per_h is None:
        return None
    where = f" ({pool.where})" if pool.where else ""
    note = f"{pool.price_usd_per_h:g} USD an hour for {pool.count} x {pool.accelerator}{where}"
    return step.scaled(pool.price_usd_per_h * steps_charged(workload) / 3600.0, note)


def energy_of(workload: Workload, chip: Accelerator | None, count: int, step: Quantity) -> Quantity | None:
    """Return joules of the job (or 1,000 steps) from the board power limit; None when that is not known.

    A busy chip draws 60 to 90 % of its limit: modelled, not metered.
    """
    if chip is None or chip.power_w is None:
        return None
    low, high = BELIEFS.power_share
    middle = (low * high) ** 0.5
    joules = chip.power_w * count * middle * step.mid * steps_charged(workload)
    sigma = hypot(step.sigma, log(high / low) / (2 * Z_80))
    note = f"{low:.0%} to {high:.0%} of the board power limit of {chip.power_w:g} W, modelled, not metered"
    return log_normal(joules, sigma, "datasheet", *step.evidence, note)
