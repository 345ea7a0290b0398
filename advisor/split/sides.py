"""The pools that are to work together, each with what it would do alone and how its time grows with its share of a batch."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import gcd

import catalog
from advisor.answer import advise
from advisor.datasheet import Datasheets
from advisor.question import Question
from advisor.split.pace import Pace
from core.advice import Estimate, Exclusion, Recommendation
from core.device import Accelerator, Device, Pool
from core.errors import NotFound
from core.probe import Runtime
from core.split import Single, pool_words
from core.workload import Workload

Variant = Callable[[Mapping[str, object]], Workload]
"""Builds the same workload with other values of some keys of its document, such as `batch`."""

LADDER = (1, 2, 4, 6, 8, 10, 12, 14, 16)
"""Sixteenths of the batch at which a pool that is not attached is estimated; a line is drawn between them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A pool as it was asked for.

    Args:
        pool: alone, where it is cheapest.
        runtime: that is to run on it; empty leaves it open.
        joined: the same chips where they are had beside the other pools; None is the same as alone.
    """

    pool: Pool
    runtime: str = ""
    joined: Pool | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """One pool of a split.

    Args:
        name: lane of timelines; no two sides have the same.
        pool: alone, where it is cheapest.
        joined: the same chips where they are had beside the other pools: what a split pays for.
        runtime: id of the best one alone, or the one that was asked for; empty when none is known to run.
        chip: catalog entry; None when it has none.
        alone: what it would do with the whole work; None when nothing is known. It may not fit.
        pace: seconds by batch; None when it cannot be told.
        missing: why `alone` or `pace` is None, or does not fit; empty otherwise.
        open: whether `alone` is None only because nothing was measured.
    """

    name: str
    pool: Pool
    joined: Pool
    runtime: str
    chip: Accelerator | None
    alone: Estimate | None
    pace: Pace | None
    missing: str = ""
    open: bool = False

    @property
    def fits(self) -> bool:
        """Whether the whole work fits in its memory."""
        return self.alone is not None and self.alone.step_time_s is not None and self.alone.fits is not False

    @property
    def memory_bytes(self) -> float | None:
        """Of one chip, with the whole work."""
        memory = None if self.alone is None else self.alone.memory_bytes_per_chip
        return None if memory is None else memory.mid

    @property
    def sigma(self) -> float:
        """Standard deviation of ln(truth / estimate) of its step."""
        return self.alone.step_time_s.sigma if self.alone is not None and self.alone.step_time_s is not None else 0.0

    @property
    def single(self) -> Single:
        """The same work on this pool alone."""
        alone = self.alone
        late = () if alone is None else alone.misses
        why = self.missing or "; ".join(f"misses the {phrase}" for phrase in late)
        if alone is None:
            return Single(self.pool, self.runtime, None, None, None, None if self.open else False, why)
        feasible = self.fits and not late
        return Single(self.pool, self.runtime, alone.step_time_s, alone.cost_usd, alone.energy_j, feasible, why)


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why there is no number of a pool alone, and whether (`open`) that is only because it was not measured."""

    words: str
    open: bool = False


def sides_of(question: Question, asked: tuple[Asked, ...], variant: Variant) -> tuple[tuple[Side, ...], Recommendation]:
    """Return the sides in the order in which they were asked for, and the recommendation over each pool alone.

    Args:
        question: over exactly the pools that are asked for.
        asked: two or more; the same attached device may be asked for several times, and is then divided equally.
        variant: the workload with other sizes.
    """
    answer = advise(question)
    times = _times(asked)
    chosen = [_chosen(answer, one, question) for one in asked]
    ladders = _ladders(question.workload, [(one, found) for one, found in zip(asked, chosen, strict=True)], variant)
    names = _names(asked, chosen)
    sides: list[Side] = []
    for one, found, ladder, name in zip(asked, chosen, ladders, names, strict=True):
        chip = _chip(one.pool, question.devices)
        if isinstance(found, _Reason):
            sides.append(Side(name, one.pool, one.joined or one.pool, one.runtime, chip, None, None, found.words, found.open))
            continue
        shared = times[one.pool.accelerator] if one.pool.attached else 1
        alone = found if shared == 1 else _part_of_device(found, shared)
        pace = _pace_here(alone, question.workload) if one.pool.attached else ladder
        joined = one.joined or one.pool
        sides.append(Side(name, one.pool, joined, alone.candidate.runtime, chip, alone, pace, _not_fitting(alone)))
    return tuple(sides), answer


def _times(asked: tuple[Asked, ...]) -> Mapping[str, int]:
    """Return how often each device is asked for."""
    found: dict[str, int] = {}
    for one in asked:
        found[one.pool.accelerator] = found.get(one.pool.accelerator, 0) + 1
    return found


def _names(asked: tuple[Asked, ...], chosen: Iterable[Estimate | _Reason]) -> tuple[str, ...]:
    """Return a name for each side: the pool, with its runtime where it comes twice, with a number where that is not enough."""
    plain = [pool_words(one.pool) for one in asked]
    runtimes = [one.runtime or ("" if isinstance(found, _Reason) else found.candidate.runtime) for one, found in
                zip(asked, chosen, strict=True)]
    fuller = [
        f"{name} ({runtime})" if runtime and plain.count(name) > 1 else name
        for name, runtime in zip(plain, runtimes, strict=True)
    ]
    return tuple(
        f"{name} {fuller[:index + 1].count(name)}" if fuller.count(name) > 1 else name for index, name in enumerate(fuller)
    )


def _chip(pool: Pool, devices: tuple[Device, ...]) -> Accelerator | None:
    """Return the catalog entry of a pool's chips, or None."""
    device = next((one for one in devices if one.id == pool.accelerator), None) if pool.attached else None
    key = device.accelerator if device is not None else pool.accelerator
    try:
        return None if key is None else catalog.accelerator(key)
    except NotFound:
        return None


def _chosen(answer: Recommendation, asked: Asked, question: Question) -> Estimate | _Reason:
    """Return the best estimate of a pool alone, one that does not fit where none does, or why there is none."""
    def mine(estimate: Estimate) -> bool:
        candidate = estimate.candidate
        return candidate.pools[0] == asked.pool and asked.runtime in ("", candidate.runtime)

    found = next((one for one in (*answer.ranked, *answer.unranked) if mine(one)), None)
    if found is not None:
        unknown = _Reason(next(iter(found.missing), f"{found.candidate.label} has no step time"), open=True)
        return found if found.step_time_s is not None else unknown
    out = [one for one in answer.excluded if one.accelerator in (asked.pool.accelerator, pool_words(asked.pool), "")
           and asked.runtime in ("", one.runtime)]
    crowded = [one for one in out if one.flag == "per_chip_memory"]
    if crowded and not asked.pool.attached:
        return _most_frugal(question, asked.pool, crowded)
    reasons = tuple(one.reason for one in sorted(out, key=lambda one: one.runtime))
    told = (reason.removeprefix(f"{pool_words(asked.pool)}: ") for reason in reasons)
    return _Reason(next(told, f"nothing is known of {pool_words(asked.pool)}"))


def _most_frugal(question: Question, pool: Pool, crowded: list[Exclusion]) -> Estimate | _Reason:
    """Return the fastest estimate of a pool on which the whole work does not fit: parts of it may."""
    chip = catalog.accelerator(pool.accelerator)
    datasheets = Datasheets(question.workload, [(pool, chip)])
    specs = catalog.runtime_specs()
    found = [
        datasheets.estimate(Runtime(name, specs[name].framework, specs[name].mode), pool, chip)
        for name in sorted({one.runtime for one in crowded})
    ]
    told = [one for one in found if not isinstance(one, str) and one.step_time_s is not None]
    return min(told, key=lambda one: one.step_time_s.mid if one.step_time_s else 0.0) if told else _Reason(crowded[0].reason)


def _not_fitting(alone: Estimate) -> str:
    """Return in one phrase that the whole does not fit; empty where it does."""
    if alone.fits is not False or alone.memory_bytes_per_chip is None:
        return ""
    need, have = alone.memory_bytes_per_chip.mid / 2**30, (alone.capacity_bytes or 0.0) / 2**30
    return f"the whole needs {need:.1f} GiB on each chip, which has {have:.1f} GiB"


def _part_of_device(estimate: Estimate, shared: int) -> Estimate:
    """Return the estimate of one of several equal parts of an attached device: its time grows by as much."""
    note = f"one of {shared} equal parts of the device"
    step = estimate.step_time_s
    return replace(
        estimate, step_time_s=None if step is None else step.scaled(shared, note),
        cost_usd=estimate.cost_usd, energy_j=estimate.energy_j,
    )


def _pace_here(alone: Estimate, workload: Workload) -> Pace | None:
    """Return the pace of an attached pool by one measured batch: in proportion, until it is measured at several."""
    if alone.step_time_s is None or alone.step_time_s.mid <= 0:
        return None
    mid = alone.step_time_s.mid
    if workload.batch == 1:
        return Pace(((1, mid),))
    return Pace(((1, mid / workload.batch), (workload.batch, mid)))


def _ladders(workload: Workload, found: list[tuple[Asked, Estimate | _Reason]], variant: Variant) -> list[Pace | None]:
    """Return the pace of each pool that is not attached; batches of all pools are estimated together."""
    wanted = [_batches(workload.batch, estimate) if not isinstance(estimate, _Reason) and not one.pool.attached else ()
              for one, estimate in found]
    points: list[list[tuple[int, float]]] = [[] for _ in found]
    for batch in sorted({batch for batches in wanted for batch in batches}):
        mine = [index for index, batches in enumerate(wanted) if batch in batches]
        pools = [(found[index][0].pool, catalog.accelerator(found[index][0].pool.accelerator)) for index in mine]
        datasheets = Datasheets(workload if batch == workload.batch else variant({"batch": batch}), pools)
        for index, (pool, chip) in zip(mine, pools, strict=True):
            estimate = found[index][1]
            if isinstance(estimate, _Reason):
                continue
            told = datasheets.estimate(Runtime(estimate.candidate.runtime, "", ""), pool, chip)
            if not isinstance(told, str) and told.step_time_s is not None and (told.fits is not False or not _fits(estimate)):
                points[index].append((batch, told.step_time_s.mid))
    return [_pace(known, batches) for known, batches in zip(points, wanted, strict=True)]


def _fits(estimate: Estimate) -> bool:
    return estimate.fits is not False


def _batches(batch: int, estimate: Estimate) -> tuple[int, ...]:
    """Return the batches at which a pool is estimated: multiples of its replicas."""
    grain = _grain(batch, estimate)
    sizes = {max(grain, batch * part // LADDER[-1] // grain * grain) for part in LADDER}
    return tuple(sorted({*sizes, batch // grain * grain}))


def _grain(batch: int, estimate: Estimate) -> int:
    """Return the samples that a pool's share comes in: one for each replica, fewer where the batch has not that many."""
    plan = estimate.candidate.plan
    replicas = plan.data * plan.fsdp
    return replicas if replicas * 2 <= batch else gcd(replicas, max(1, batch // 2))


def _pace(points: list[tuple[int, float]], batches: tuple[int, ...]) -> Pace | None:
    """Return the pace through estimated points, never falling; None without any."""
    if not points:
        return None
    rising: list[tuple[int, float]] = []
    for size, seconds in points:
        rising.append((size, max(seconds, rising[-1][1]) if rising else seconds))
    return Pace(tuple(rising), gcd(*batches))
