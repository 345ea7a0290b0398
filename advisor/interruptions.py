"""How long a job takes when it is interrupted: by faults of chips, and by clouds that take revocable machines back.

A job saves its state every so often, loses on average half of what it did since, and starts again with a compilation. How
often to save is a trade that has a closed optimum. What is not counted: waiting for machines to be had again, which no cloud
tells. The state is assumed to be written while the steps wait, which asynchronous savers hide in part.
"""

from dataclasses import dataclass
from functools import cache
from math import exp, expm1, inf, log, sqrt
from statistics import fmean, stdev

from advisor.memory import model_bytes
from catalog import TERMS
from catalog.interruptions import FIRM, REVOCABLE, interruptions
from core import format as fmt
from core.advice import Estimate
from core.device import Pool
from core.ops import DTYPE_BYTES
from core.quantity import Z_80, Quantity, log_normal, total
from core.workload import Workload

SAVED_BYTES_PER_S = 1e9
"""Bytes a second that one host writes to, or reads from, storage that outlives it (prior).

Source: Llama 3 (arXiv 2407.21783), section 3.3.1: 2 TB/s sustained for some 3,000 hosts.
"""
STARTED_S = 180.0
"""Seconds until a new machine is up and the processes have found each other, before anything is compiled or loaded (prior)."""
LEAST_SIGMA, MOST_SIGMA = log(2.0) / Z_80, log(10.0) / Z_80
"""Error of a rate at least and at most: a factor of 2 and of 10 either way, however near or far the counts lie."""
TOLD = 1.01
"""Times the undisturbed time from which on interruptions are told in the answer's own sentences."""
NEVER = 1000.0
"""Times the undisturbed time from which on a job is told to take just that: it would hardly ever end."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """What interruptions cost one job.

    Args:
        mean_time_s: between interruptions of the whole pool.
        checkpoint_s: to write the state once.
        restart_s: from an interruption until work goes on: machines, compilation, loading.
    """

    mean_time_s: float
    checkpoint_s: float
    restart_s: float


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A job with its interruptions.

    Args:
        restarts: what it was reckoned with.
        parts: pieces of work between two checkpoints.
        interval_s: of work between two checkpoints.
        factor: expected time over undisturbed time; low and high at the ends of the band of the rate.
        why: where the rate comes from.
    """

    restarts: Restarts
    parts: int
    interval_s: float
    factor: Quantity
    why: str

    @property
    def goodput(self) -> float:
        """Share of the time that goes into work that stays done."""
        return 1.0 / self.factor.mid

    @property
    def words(self) -> str:
        """One line for people."""
        rests, factor = self.restarts, self.factor
        every = f"state saved in {fmt.seconds(rests.checkpoint_s)} every {fmt.seconds(self.interval_s)}, "
        saved = every if self.parts > 1 and rests.checkpoint_s > 0 else ""
        return (
            f"interrupted every {fmt.seconds(rests.mean_time_s)} on average ({self.why}): {saved}{fmt.seconds(rests.restart_s)} "
            f"to restart; takes {factor.mid:.3g} ({factor.low:.3g} to {factor.high:.3g}) times as long"
        )


def optimal_interval_s(checkpoint_s: float, mean_time_s: float) -> float:
    """Return the seconds of work between two checkpoints that cost least.

    Args:
        checkpoint_s: to write one.
        mean_time_s: between interruptions.

    Source: J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, 2006; its first term,
    sqrt(2 x checkpoint x mean time), is that of J. W. Young, 1974.
    """
    if checkpoint_s >= 2 * mean_time_s:
        return mean_time_s
    ratio = checkpoint_s / (2 * mean_time_s)
    return sqrt(2 * checkpoint_s * mean_time_s) * (1 + sqrt(ratio) / 3 + ratio / 9) - checkpoint_s


def expected_s(work_s: float, restarts: Restarts, parts: int) -> float:
    """Return the expected seconds of some work in equal parts, each but the last with a checkpoint at its end.

    Interruptions come at random, at work, while saving and while restarting; infinite where the figure cannot be written.

    Args:
        work_s: undisturbed.
        restarts: what interruptions cost.
        parts: of the work, from 1.

    Source: Daly 2006, section on the complete model: M exp(R / M) (exp((interval + checkpoint) / M) - 1) for each part.
    """
    mean_s, piece_s = restarts.mean_time_s, work_s / parts
    longest = (piece_s + restarts.checkpoint_s + restarts.restart_s) / mean_s
    if longest > log(NEVER):
        return inf
    growth = mean_s * exp(restarts.restart_s / mean_s)
    return growth * ((parts - 1) * expm1((piece_s + restarts.checkpoint_s) / mean_s) + expm1(piece_s / mean_s))


def best_parts(work_s: float, restarts: Restarts, most: int) -> int:
    """Return in how many equal parts the work takes least.

    Args:
        work_s: undisturbed.
        restarts: what interruptions cost.
        most: parts that can be had: a step is never cut.
    """
    interval_s = optimal_interval_s(restarts.checkpoint_s, restarts.mean_time_s)
    about = min(float(most), work_s / interval_s if interval_s > 0 else float(most))
    near = {max(1, min(most, int(about) + more)) for more in (0, 1)}
    return min(sorted(near), key=lambda parts: expected_s(work_s, restarts, parts))


def saved_bytes(workload: Workload) -> float:
    """Return the bytes of a checkpoint: what is trained, its master weights and states; nothing for a job that only answers."""
    model = model_bytes(workload)
    return workload.trained_parameter_count * DTYPE_BYTES[workload.dtype] + model.states + model.master if model.trains else 0.0


def revocable(pool: Pool, workload: Workload) -> bool:
    """Return whether a pool may be taken back, by the terms of its offer or those that the user named with a price.

    Args:
        pool: rented.
        workload: names pools and their terms.
    """
    told = {part.strip() for part in pool.where.split(",")}
    asked = {
        one.terms for one in workload.pools
        if one.price_usd_per_h is not None and (one.accelerator, one.count) == (pool.accelerator, pool.count)
    }
    return not {"spot", "community"}.isdisjoint(told if told & set(TERMS) else asked)


def rate_per_h(pool: Pool, workload: Workload) -> Quantity:
    """Return the interruptions of a rented pool in an hour: faults of its chips, and machines that are taken back.

    Args:
        pool: its chips and hosts.
        workload: names pools and their terms.
    """
    faults = _rate(FIRM, "").scaled(pool.count)
    if not revocable(pool, workload):
        return faults
    cloud = pool.where.split(" ", maxsplit=1)[0].rstrip(",")
    return total((faults, _rate(REVOCABLE, cloud).scaled(pool.hosts)), 0.0)


def interrupted(workload: Workload, pool: Pool, step_s: float, compile_s: float, saved: float) -> Interrupted | None:
    """Return a job with its interruptions; None without a total, or on a machine that is here.

    Args:
        workload: the job.
        pool: where it runs.
        step_s: of one step.
        compile_s: what is compiled when it starts, and again when it is started again.
        saved: bytes of a checkpoint, from `saved_bytes`.
    """
    steps = workload.total_steps
    if steps is None or pool.attached or step_s <= 0:
        return None
    rate = rate_per_h(pool, workload)
    moved_s = saved / (SAVED_BYTES_PER_S * pool.hosts)
    work_s, restart_s = steps * step_s, STARTED_S + compile_s + moved_s
    parts, ends = 1, list[float]()
    for per_hour in (rate.high, rate.low, rate.mid):
        told = Restarts(3600.0 / per_hour, moved_s, restart_s)
        parts = best_parts(work_s, told, max(1, int(steps)))
        ends.append(min(NEVER, expected_s(work_s, told, parts) / work_s))
    high, low, middle = ends
    factor = Quantity(min(low, middle), middle, max(high, middle), rate.tier, rate.evidence)
    told = Restarts(3600.0 / rate.mid, moved_s, restart_s)
    return Interrupted(told, parts, work_s / parts, factor, "; ".join(rate.evidence))


def interruption_words(workload: Workload, estimate: Estimate) -> str:
    """Return one clause on what interruptions do to a job, for people; empty where that is less than a hundredth.

    Args:
        workload: the job.
        estimate: of it on one pool.
    """
    step, compile_s, pool = estimate.step_time_s, estimate.compile_s, estimate.candidate.pools[0]
    if step is None or workload.total_steps is None:
        return ""
    found = interrupted(workload, pool, step.mid, compile_s.mid if compile_s else 0.0, saved_bytes(workload))
    if found is None or found.factor.mid < TOLD:
        return ""
    taken = "taken back or failing" if revocable(pool, workload) else "failing"
    every = f"interrupted every {fmt.seconds(found.restarts.mean_time_s)} on average by machines {taken}"
    factor = found.factor
    return f"it is {every}, and takes {factor.mid:.3g} ({factor.low:.3g} to {factor.high:.3g}) times as long for it"


@cache
def _rate(terms: str, cloud: str) -> Quantity:
    """Return the rate of one unit from the counts of others: their geometric mean, banded by how far they lie apart."""
    counts = interruptions(terms, cloud)
    logs = [log(one.per_hour) for one in counts]
    spread = stdev(logs) * sqrt(1 + 1 / len(logs)) if len(logs) > 1 else MOST_SIGMA
    sources = ", ".join(dict.fromkeys(one.source.split(" (")[0].split(",")[0] for one in counts))
    middle = exp(fmean(logs))
    note = f"one of a {counts[0].unit} in {fmt.three_digits(1 / middle)} h by {len(counts)} counts: {sources}"
    return log_normal(middle, min(MOST_SIGMA, max(LEAST_SIGMA, spread)), "published", note)
