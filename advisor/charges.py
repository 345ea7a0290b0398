"""What a step time comes to: throughput, the time of the whole job, cost and energy, with bands that carry through."""

from math import hypot, log

from advisor.beliefs import BELIEFS
from advisor.interruptions import interrupted
from core.device import Accelerator, Pool
from core.quantity import Z_80, Quantity, exact, log_normal, total, worst_tier
from core.workload import STEPS_WITHOUT_TOTAL, Workload

MINOR = 0.2
"""Part of a job below which compilation and interruptions do not lower the tier of its steps: they hardly move the figure."""


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


def job_of(workload: Workload, pool: Pool, step: Quantity, compile_s: Quantity | None, saved: float) -> Quantity | None:
    """Return the expected seconds of the whole job: compilation, steps and interruptions; None when it has no total.

    What comes beside the steps takes time too, so that the job is never told sooner than its steps alone.

    Args:
        workload: the job.
        pool: where it runs.
        step: seconds of a step.
        compile_s: before the first step, and again after each interruption; None where it is not known, which is left out.
        saved: bytes of a checkpoint, from `advisor.interruptions.saved_bytes`.
    """
    if workload.total_steps is None:
        return None
    running = step.scaled(workload.total_steps)
    whole = running if compile_s is None else total((running, compile_s), 0.0)
    found = interrupted(workload, pool, step.mid, 0.0 if compile_s is None else compile_s.mid, saved)
    middle, sigma, evidence = whole.mid, whole.sigma, whole.evidence
    if found is not None:
        middle = whole.mid + running.mid * (found.factor.mid - 1)
        sigma, evidence = hypot(sigma, found.factor.sigma), (*evidence, found.words)
    tier = step.tier if middle - running.mid <= MINOR * middle else worst_tier((step.tier, whole.tier))
    return log_normal(middle, sigma, tier, *evidence).at_least(running.low)


def cost_of(workload: Workload, pool: Pool, step: Quantity, job: Quantity | None = None) -> Quantity | None:
    """Return US dollars of the job (or 1,000 steps) by price x hours; None when the price is not known.

    Args:
        workload: the job.
        pool: with its price.
        step: seconds of a step.
        job: seconds of the whole job, from `job_of`; None counts the steps alone.
    """
    if pool.price_usd_per_h is None:
        return None
    where = f" ({pool.where})" if pool.where else ""
    note = f"{pool.price_usd_per_h:g} USD an hour for {pool.count} x {pool.accelerator}{where}"
    paid = step.scaled(steps_charged(workload)) if job is None else job
    return paid.scaled(pool.price_usd_per_h / 3600.0, note)


def service_cost_of(workload: Workload, pool: Pool, step: Quantity) -> Quantity | None:
    """Return US dollars while the requests of the job (or of 1,000 steps) come at the rate that the workload asks for.

    A pool that could serve more is paid for all the same. None when the price is not known, or no rate is asked for.

    Args:
        workload: the job, `batch` requests a step.
        pool: with its price.
        step: of which the tier and the evidence are taken.
    """
    rate = workload.targets.requests_per_s
    if pool.price_usd_per_h is None or rate is None:
        return None
    requests = workload.batch * steps_charged(workload)
    where = f" ({pool.where})" if pool.where else ""
    note = f"{pool.price_usd_per_h:g} USD an hour for {pool.count} x {pool.accelerator}{where} while {requests:g} requests come"
    return exact(pool.price_usd_per_h * requests / rate / 3600.0, step.tier, *step.evidence, note)


def service_energy_of(workload: Workload, chip: Accelerator | None, count: int, used: float, step: Quantity) -> Quantity | None:
    """Return joules while the requests of the job (or of 1,000 steps) come, of chips that wait for a part of that time.

    Args:
        workload: the job, `batch` requests a step.
        chip: of the pool, so many `count`.
        used: part of what the pool can serve that comes, 0 to 1.
        step: of which the tier and the evidence are taken.
    """
    rate = workload.targets.requests_per_s
    if chip is None or chip.power_w is None or rate is None:
        return None
    (idle_low, idle_high), (low, high) = BELIEFS.idle_share, BELIEFS.power_share
    least, most = idle_low + (low - idle_low) * used, idle_high + (high - idle_high) * used
    seconds = workload.batch * steps_charged(workload) / rate
    drawn = f"{least:.0%} to {most:.0%} of the board power limit of {chip.power_w:g} W"
    note = f"{drawn} at {used:.0%} of what it can serve, modelled, not metered"
    joules = chip.power_w * count * (least * most) ** 0.5 * seconds
    return log_normal(joules, log(most / least) / (2 * Z_80), "datasheet", *step.evidence, note)


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
