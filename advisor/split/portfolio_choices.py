"""What each workload may do, by number: every option with the starts that it allows, and the reason where it allows none.

A pool that is closed at times has its own clock, which stands still meanwhile: on it, a workload that may be interrupted is one
stretch, and any other must not run over an hour of closing.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise

from advisor.split.portfolio_words import PortfolioProblem, TeamPool, Work, WorkOption
from core import format as write
from core.errors import BadInput

SECONDS_PER_H = 3600.0
LEAST_S = 1e-3
"""Seconds that a workload takes at least: what takes none has neither a start nor a stop to hold to."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Open seconds of one pool.

    Args:
        windows: (start, stop), ascending.
        opened: open seconds before each window.
    """

    windows: tuple[tuple[float, float], ...]
    opened: tuple[float, ...]

    @property
    def whole(self) -> float:
        """Open seconds in all."""
        return self.opened[-1] + self.windows[-1][1] - self.windows[-1][0] if self.windows else 0.0

    def at(self, wall_s: float) -> float:
        """Return the open seconds before a moment."""
        index = bisect_right([start for start, _ in self.windows], wall_s) - 1
        if index < 0:
            return 0.0
        start, stop = self.windows[index]
        return self.opened[index] + min(wall_s, stop) - start

    def starts(self, open_s: float) -> float:
        """Return the moment at which something starts after so many open seconds: when it opens again, if it just closed."""
        index = min(max(bisect_right(self.opened, open_s + 1e-9 * max(1.0, open_s)) - 1, 0), len(self.windows) - 1)
        return self.windows[index][0] + max(0.0, open_s - self.opened[index])

    def stops(self, open_s: float) -> float:
        """Return the moment at which something ends after so many open seconds: when it closes, if it closes just then."""
        index = max(bisect_left(self.opened, open_s - 1e-9 * max(1.0, open_s)) - 1, 0)
        return self.windows[index][0] + open_s - self.opened[index]


@dataclass(frozen=True, slots=True)
class Choice:
    """One way of one workload that is possible when it is alone.

    Args:
        work, pool: by number.
        chips, seconds: that it needs.
        spans: starts that it allows, on the pool's clock: (first, last), ascending.
        usd, joules: that it costs; 0 where not known.
    """

    work: int
    pool: int
    chips: int
    seconds: float
    spans: tuple[tuple[float, float], ...]
    usd: float
    joules: float

    @property
    def first(self) -> float:
        """Its earliest start."""
        return self.spans[0][0]

    @property
    def last(self) -> float:
        """Its latest start."""
        return self.spans[-1][1]


@dataclass(frozen=True, slots=True)
class Table:
    """A problem by number.

    Args:
        problem: that it is of.
        clocks: of each pool.
        choices: of all workloads, those of one workload in a row.
        of_work: for each workload the numbers of its choices.
        reasons: for each workload why options fall away, one phrase each.
    """

    problem: PortfolioProblem
    clocks: tuple[Clock, ...]
    choices: tuple[Choice, ...]
    of_work: tuple[tuple[int, ...], ...]
    reasons: tuple[tuple[str, ...], ...]


def tabled(problem: PortfolioProblem) -> Table:
    """Return a problem by number.

    Raises:
        BadInput: names that are twice or unknown, windows that overlap, numbers that cannot be.
    """
    _check(problem)
    longest = [max((option.seconds or 0.0 for option in work.options), default=0.0) for work in problem.works]
    moments = [work.release_s for work in problem.works] + [stop for pool in problem.pools for _, stop in pool.windows]
    horizon = max([1.0, *moments]) + sum(longest)
    clocks = tuple(_clock(pool, horizon) for pool in problem.pools)
    pool_of = {pool.name: index for index, pool in enumerate(problem.pools)}
    choices: list[Choice] = []
    of_work: list[tuple[int, ...]] = []
    reasons: list[tuple[str, ...]] = []
    for index, work in enumerate(problem.works):
        before = len(choices)
        said: list[str] = []
        for option in work.options:
            pool = pool_of[option.pool]
            why = _why_not(problem, work, option, problem.pools[pool])
            spans = () if why else _spans(work, option.seconds or 0.0, clocks[pool])
            if why or not spans:
                said.append(f"{option.pool}: {why or _too_late(work, option, clocks[pool])}")
                continue
            choices.append(_choice(index, option, (pool, problem.pools[pool]), spans))
        of_work.append(tuple(range(before, len(choices))))
        reasons.append(tuple(dict.fromkeys(said)))
    return Table(problem, clocks, tuple(choices), tuple(of_work), tuple(reasons))


def _choice(work: int, option: WorkOption, at: tuple[int, TeamPool], spans: tuple[tuple[float, float], ...]) -> Choice:
    index, pool = at
    seconds = option.seconds or 0.0
    usd = option.chips * seconds / SECONDS_PER_H * (pool.usd_per_chip_h or 0.0)
    return Choice(work, index, option.chips, seconds, spans, usd, option.chips * seconds * (pool.watts_per_chip or 0.0))


def _clock(pool: TeamPool, horizon: float) -> Clock:
    windows = pool.windows or ((0.0, horizon),)
    opened: list[float] = []
    total = 0.0
    for start, stop in windows:
        opened.append(total)
        total += stop - start
    return Clock(windows, tuple(opened))


def _why_not(problem: PortfolioProblem, work: Work, option: WorkOption, pool: TeamPool) -> str:
    """Return why an option falls away before any time is looked at."""
    if option.seconds is None:
        return option.missing or "no reason given"
    if option.chips > pool.chips:
        return f"{option.chips} chips of the {pool.chips} that there are at once"
    if pool.spot and not work.interruptible:
        return "spot, and it must not be interrupted"
    if pool.usd_per_chip_h is None and (problem.objective == "cost" or problem.budget_usd is not None):
        return "its price is not known"
    if pool.watts_per_chip is None and problem.objective == "energy":
        return "its power is not known"
    chip_h = option.chips * option.seconds / SECONDS_PER_H
    if pool.quota_chip_h is not None and chip_h > pool.quota_chip_h * (1 + 1e-9):
        return f"{chip_h:,.4g} chip-hours of a quota of {pool.quota_chip_h:,.4g}"
    usd = chip_h * (pool.usd_per_chip_h or 0.0)
    if problem.budget_usd is not None and usd > problem.budget_usd * (1 + 1e-9):
        return f"{usd:,.2f} USD of a budget of {problem.budget_usd:,.2f} USD"
    return ""


def _spans(work: Work, seconds: float, clock: Clock) -> tuple[tuple[float, float], ...]:
    """Return the starts that a workload may have on a pool's clock."""
    end = clock.whole if work.deadline_s is None else clock.at(work.deadline_s)
    begin = clock.at(work.release_s)
    if work.interruptible:
        return ((begin, end - seconds),) if end - seconds >= begin - 1e-9 else ()
    found: list[tuple[float, float]] = []
    for (start, stop), opened in zip(clock.windows, clock.opened, strict=True):
        first, last = max(begin, opened), min(end, opened + stop - start) - seconds
        if last >= first - 1e-9 * max(1.0, first):
            found.append((first, max(first, last)))
    return tuple(found)


def _too_late(work: Work, option: WorkOption, clock: Clock) -> str:
    seconds = option.seconds or 0.0
    free = Work(work.name, work.options, work.release_s, None, work.priority, work.interruptible)
    spans = _spans(free, seconds, clock)
    if not spans:
        return f"{write.seconds(seconds)} fit into no time in which it is open"
    end = clock.stops(spans[0][0] + seconds)
    return f"could end after {write.seconds(end)} at the earliest, past its deadline of {write.seconds(work.deadline_s)}"


def _check(problem: PortfolioProblem) -> None:
    works, pools = [work.name for work in problem.works], [pool.name for pool in problem.pools]
    for what, names in (("workload", works), ("pool", pools)):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise BadInput(f"{what} {twice[0]!r} twice", f"every {what} once", "rename one of them")
    if not works or not pools:
        raise BadInput(f"{len(works)} workloads and {len(pools)} pools", "at least one of each", "add what is missing")
    for work in problem.works:
        for option in work.options:
            if option.pool not in pools:
                expected = f"one of {', '.join(pools[:12])}"
                raise BadInput(f"pool {option.pool!r} of {work.name}", expected, "correct the name")
            if option.chips < 1 or not (option.seconds is None or LEAST_S <= option.seconds < float("inf")):
                got = f"{option.chips} chips and {option.seconds} s of {work.name}"
                raise BadInput(got, f"one chip or more, and finite seconds from {LEAST_S:g} on", "correct them")
        if work.priority < 1 or not 0 <= work.release_s < float("inf"):
            got = f"priority {work.priority} and release {work.release_s} of {work.name}"
            raise BadInput(got, "a priority from 1 and a release from 0", "correct them")
    for pool in problem.pools:
        edges = [moment for window in pool.windows for moment in window]
        if any(low > high for low, high in pairwise(edges)) or (edges and edges[0] < 0):
            raise BadInput(f"windows of {pool.name}", "starts and stops that ascend from 0", "put them in order")
