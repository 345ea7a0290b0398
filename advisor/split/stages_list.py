"""Schedules of a workflow by list: exact times of a given assignment, a first plan, and its betterment stage by stage.

The first plan is HEFT (most urgent stage first, each where it ends first, into the first hole that fits) for time, and the same
with the cheapest place for cost and energy. It is then bettered along the chain that decides the end, in a fixed count of tries.

Source: H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-effective and low-complexity task scheduling for heterogeneous
computing", IEEE TPDS 13(3), 2002.
"""

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from advisor.split.stages_model import Model

TRIES = 40_000
"""Stages timed in all while a plan is bettered."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An assignment with its times.

    Args:
        pools: of each stage.
        cheapest: of each edge, whether it takes the cheapest way rather than the fastest.
        starts, lasts: of each task, seconds.
        held_s: of each pool.
        usd: without pools whose price is not known.
        joules: without pools whose power is not known.
    """

    pools: tuple[int, ...]
    cheapest: tuple[bool, ...]
    starts: tuple[float, ...]
    lasts: tuple[float, ...]
    held_s: tuple[float, ...]
    usd: float
    joules: float

    @property
    def seconds(self) -> float:
        """End of the last task."""
        return max(start + last for start, last in zip(self.starts, self.lasts, strict=True))

    def value(self, objective: str) -> float:
        """Seconds, USD or joules."""
        return {"time": self.seconds, "cost": self.usd, "energy": self.joules}[objective]


class Lanes:
    """What is taken of each pool's slots: intervals, sorted."""

    def __init__(self, model: Model) -> None:
        self._slots: list[list[list[tuple[float, float]]]] = [[[] for _ in range(pool.slots)] for pool in model.problem.pools]

    def earliest(self, pools: tuple[int, ...], ready: float, last: float) -> tuple[float, tuple[int, ...]]:
        """Return when a task can start on all of its pools at once, and on which slot of each."""
        start = ready
        while True:
            found = [self._first(pool, start, last) for pool in pools]
            latest = max(at for at, _ in found)
            if latest <= start:
                return start, tuple(slot for _, slot in found)
            start = latest

    def take(self, pools: tuple[int, ...], slots: tuple[int, ...], start: float, last: float) -> None:
        """Occupy slots."""
        for pool, slot in zip(pools, slots, strict=True):
            insort(self._slots[pool][slot], (start, start + last))

    def _first(self, pool: int, ready: float, last: float) -> tuple[float, int]:
        best, best_slot = float("inf"), 0
        for slot, taken in enumerate(self._slots[pool]):
            at = ready
            for begin, end in taken:
                if begin >= at + last:
                    break
                at = max(at, end)
            if at < best:
                best, best_slot = at, slot
            if at <= ready:
                break
        return best, best_slot


def lasting(model: Model, task: int, pools: tuple[int, ...] | list[int], cheapest: tuple[bool, ...]) -> float:
    """Return the seconds of a task: of its busiest pool, or of its slowest stream."""
    members = model.tasks[task]
    if len(members) == 1:
        return model.seconds(members[0], pools[members[0]])
    work: dict[int, float] = {}
    for stage in members:
        work[pools[stage]] = work.get(pools[stage], 0.0) + model.seconds(stage, pools[stage])
    streams = (
        model.crossing(edge, pools[source], pools[target], cheapest=cheapest[edge]).seconds
        for edge, (source, target) in enumerate(model.ends)
        if model.streamed(edge) and model.task_of[source] == task
    )
    return max(*work.values(), *streams)


def scheduled(model: Model, pools: tuple[int, ...], cheapest: tuple[bool, ...], order: tuple[int, ...]) -> Draft:
    """Return exact times of an assignment.

    Args:
        model: of the problem.
        pools: of each stage; every hand-over between them is possible.
        cheapest: of each edge.
        order: of tasks, none before one that it waits for; each is put into the first hole that fits.
    """
    lanes, count = Lanes(model), len(model.tasks)
    starts, lasts = [0.0] * count, [0.0] * count
    held = [0.0] * len(model.problem.pools)
    for task in order:
        ready = 0.0
        for edge, source_task, source, target in model.inbound[task]:
            way = (model.cheap if cheapest[edge] else model.fast)[edge][pools[source], pools[target]]
            ready = max(ready, starts[source_task] + lasts[source_task] + way.seconds)
        members = model.tasks[task]
        used = (pools[members[0]],) if len(members) == 1 else tuple(sorted({pools[stage] for stage in members}))
        lasts[task] = lasting(model, task, pools, cheapest)
        starts[task], slots = lanes.earliest(used, ready, lasts[task])
        lanes.take(used, slots, starts[task], lasts[task])
        for pool in used:
            held[pool] += lasts[task]
    crossing_usd = sum(
        model.crossing(edge, pools[source], pools[target], cheapest=cheapest[edge]).usd
        for edge, (source, target) in enumerate(model.ends)
    )
    usd = sum(seconds * (price or 0.0) for seconds, price in zip(held, model.usd_per_s, strict=True))
    joules = sum(seconds * (power or 0.0) for seconds, power in zip(held, model.watts, strict=True))
    return Draft(pools, cheapest, tuple(starts), tuple(lasts), tuple(held), usd + crossing_usd, joules)


def urgency(model: Model) -> tuple[float, ...]:
    """Return of each task the mean seconds from its start to the end of the workflow."""
    means = [
        sum(sum(model.seconds(stage, pool) for pool in model.options[stage]) / len(model.options[stage]) for stage in members)
        for members in model.tasks
    ]
    moved = [sum(one.seconds for one in matrix.values()) / len(matrix) if matrix else 0.0 for matrix in model.fast]
    after = [0.0] * len(model.tasks)
    for task in reversed(range(len(model.tasks))):
        after[task] += means[task]
        for edge, source, _, _ in model.inbound[task]:
            after[source] = max(after[source], moved[edge] + after[task])
    return tuple(after)


def least_of_all(model: Model, objective: str) -> float:
    """Return a value that no plan is below, at once: every stage where it is best, and for time the longest chain of those."""
    if objective != "time":
        rates = model.usd_per_s if objective == "cost" else model.watts
        return (1 - 1e-9) * sum(
            min((model.seconds(stage, pool) * (rates[pool] or 0.0) for pool in options), default=0.0)
            for stage, options in enumerate(model.options)
        )
    ends = [0.0] * len(model.tasks)
    for task, members in enumerate(model.tasks):
        ready = max((ends[before] for _, before, _, _ in model.inbound[task]), default=0.0)
        ends[task] = ready + max(min(model.seconds(stage, pool) for pool in model.options[stage]) for stage in members)
    return (1 - 1e-9) * max(ends)


class Listing:
    """Makes and betters drafts of one model for one objective."""

    def __init__(self, model: Model, objective: str, deadline_s: float | None, budget_usd: float | None) -> None:
        """Prepare; deadline and budget are of this search, whatever those of the problem are."""
        self.model, self.objective = model, objective
        self.deadline_s, self.budget_usd = deadline_s, budget_usd
        ranks = urgency(model)
        self.order = tuple(sorted(range(len(model.tasks)), key=lambda task: (-ranks[task], task)))
        self.touching: list[list[int]] = [[] for _ in model.problem.stages]
        for edge, ends in enumerate(model.ends):
            for stage in {*ends}:
                self.touching[stage].append(edge)

    def worth(self, draft: Draft) -> tuple[float, float, float]:
        """Return what is to be least: by how much limits are missed, the objective, and then time or cost."""
        missed = max(0.0, draft.seconds / self.deadline_s - 1) if self.deadline_s else 0.0
        if self.budget_usd is not None and draft.usd > self.budget_usd:
            missed += draft.usd / self.budget_usd - 1 if self.budget_usd > 0 else draft.usd
        for held, quota in zip(draft.held_s, self.model.quota_s, strict=True):
            if quota is not None and held > quota * (1 + 1e-9):
                missed += held / quota - 1 if quota > 0 else held
        missed += float(self._too_many(draft.pools))
        second = draft.usd if self.objective == "time" else draft.seconds
        return missed if missed > 1e-9 else 0.0, draft.value(self.objective), second

    def _too_many(self, pools: tuple[int, ...]) -> int:
        most = self.model.problem.most_pools
        if most is None:
            return 0
        return max(0, len({pool for pool in pools if counted(self.model, pool)}) - most)

    def first(self, cheapest: bool) -> Draft | None:
        """Return a first draft, or None where the list runs into a pair of pools that cannot hand over."""
        chosen: list[int] = [-1] * len(self.model.problem.stages)
        lanes, ends = Lanes(self.model), [0.0] * len(self.model.tasks)
        for task in self.order:
            for stage in self.model.tasks[task]:
                best = self._best_place(task, stage, chosen, (lanes, ends), cheapest)
                if best is None:
                    return None
                chosen[stage] = best
            pools, flags = tuple(chosen), (cheapest,) * len(self.model.ends)
            last = lasting(self.model, task, pools, flags)
            used = tuple(sorted({chosen[stage] for stage in self.model.tasks[task]}))
            start, slots = lanes.earliest(used, self._ready(task, chosen, ends, cheapest), last)
            lanes.take(used, slots, start, last)
            ends[task] = start + last
        return scheduled(self.model, tuple(chosen), (cheapest,) * len(self.model.ends), self.order)

    def _ready(self, task: int, chosen: list[int], ends: list[float], cheapest: bool) -> float:
        ready = 0.0
        for stage in self.model.tasks[task]:
            for edge in self.touching[stage]:
                source, target = self.model.ends[edge]
                if target != stage or self.model.streamed(edge) or chosen[source] < 0 or chosen[stage] < 0:
                    continue
                moved = self.model.crossing(edge, chosen[source], chosen[stage], cheapest=cheapest)
                ready = max(ready, ends[self.model.task_of[source]] + moved.seconds)
        return ready

    def _best_place(
        self, task: int, stage: int, chosen: list[int], so_far: tuple[Lanes, list[float]], cheapest: bool
    ) -> int | None:
        lanes, ends = so_far
        best: tuple[tuple[float, float, int], int] | None = None
        for pool in self.model.options[stage]:
            chosen[stage] = pool
            if not self._fits(stage, chosen):
                continue
            seconds = self.model.seconds(stage, pool)
            stop = lanes.earliest((pool,), self._ready(task, chosen, ends, cheapest), seconds)[0] + seconds
            rate = {"cost": self.model.usd_per_s[pool], "energy": self.model.watts[pool]}.get(self.objective)
            spent = seconds * (rate or 0.0)
            if self.objective == "cost":
                spent += sum(
                    self.model.crossing(edge, *(chosen[end] for end in self.model.ends[edge]), cheapest=cheapest).usd
                    for edge in self.touching[stage] if all(chosen[end] >= 0 for end in self.model.ends[edge])
                )  # fmt: skip
            key = (spent, stop, pool) if self.objective != "time" else (stop, seconds * (self.model.usd_per_s[pool] or 0.0), pool)
            if best is None or key < best[0]:
                best = key, pool
        chosen[stage] = -1
        return None if best is None else best[1]

    def _fits(self, stage: int, chosen: list[int]) -> bool:
        """Whether a stage can hand over with every neighbour that has its place, and leaves the others one."""
        for edge in self.touching[stage]:
            source, target = self.model.ends[edge]
            starts = [chosen[source]] if chosen[source] >= 0 else self.model.options[source]
            stops = [chosen[target]] if chosen[target] >= 0 else self.model.options[target]
            if not any((p, q) in self.model.fast[edge] for p in starts for q in stops):
                return False
        return True

    def better(self, draft: Draft, tries: int = TRIES, *, go_on: Callable[[], bool] = lambda: True) -> Draft:
        """Return a draft that is no worse: stages of the deciding chain, and now and then others, are moved one at a time.

        Args:
            draft: to begin with.
            tries: stages that are timed in all.
            go_on: asked before every try.
        """
        if all(len(options) < 2 for options in self.model.options):
            return draft
        chance, best, worth = Random(0), draft, self.worth(draft)
        moving = [stage for stage, options in enumerate(self.model.options) if len(options) > 1]
        on_chain = self._on_chain(best)
        for turn in range(tries // len(self.model.tasks)):
            stage = chance.choice(on_chain if on_chain and turn % 4 else moving)
            pool = chance.choice([one for one in self.model.options[stage] if one != best.pools[stage]])
            pools = (*best.pools[:stage], pool, *best.pools[stage + 1 :])
            if not go_on():
                break
            if not self._possible(stage, pools):
                continue
            tried = scheduled(self.model, pools, best.cheapest, self.order)
            found = self.worth(tried)
            if found <= worth:
                best, worth = tried, found
                on_chain = self._on_chain(best)
        return best

    def _on_chain(self, draft: Draft) -> list[int]:
        """Return the stages that decide the end and have a choice, where the end is what is sought."""
        if self.objective != "time":
            return []
        deciding = (stage for task in chain(self.model, draft) for stage in self.model.tasks[task])
        return [stage for stage in deciding if len(self.model.options[stage]) > 1]

    def _possible(self, stage: int, pools: tuple[int, ...]) -> bool:
        ends = ((edge, *self.model.ends[edge]) for edge in self.touching[stage])
        return all((pools[source], pools[target]) in self.model.fast[edge] for edge, source, target in ends)


def counted(model: Model, pool: int) -> bool:
    """Whether a pool counts among those of which only so many may be used: hosts do not."""
    return not (model.problem.pools[pool].host_of or model.problem.pools[pool].is_host)


def chain(model: Model, draft: Draft) -> tuple[int, ...]:
    """Return the tasks that decide the end, first one first: each starts the moment that the one before lets it."""
    ends = [start + last for start, last in zip(draft.starts, draft.lasts, strict=True)]
    task = max(range(len(ends)), key=lambda one: (ends[one], -one))
    found = [task]
    while draft.starts[task] > 0:
        task = _decider(model, draft, task, ends)
        found.append(task)
    return tuple(reversed(found))


def _decider(model: Model, draft: Draft, task: int, ends: list[float]) -> int:
    """Return the task that another waited for last: one that hands to it, or one that had its pool."""
    latest: list[tuple[float, int]] = []
    for edge, source, s, t in model.inbound[task]:
        moved = model.crossing(edge, draft.pools[s], draft.pools[t], cheapest=draft.cheapest[edge]).seconds
        latest.append((ends[source] + moved, source))
    mine = {draft.pools[stage] for stage in model.tasks[task]}
    start = draft.starts[task]
    for other, members in enumerate(model.tasks):
        if ends[other] <= start and draft.starts[other] < start and any(draft.pools[stage] in mine for stage in members):
            latest.append((ends[other], other))
    return max(latest)[1]


def in_time(draft: Draft) -> tuple[int, ...]:
    """Return the tasks by their start, those that were numbered first first."""
    return tuple(sorted(range(len(draft.starts)), key=lambda task: (draft.starts[task], task)))
