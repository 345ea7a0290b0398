"""Rounds of copies that meet: how long the pools compute, what of a meeting is exposed. Numbers for `advisor.split.local`.

Plain: all stop, exchange everything, take the outer step. Streaming: the round has as many meetings as fragments, spread evenly;
each may take `overlap_steps` steps of compute before anybody waits, so that
round = compute + fragments x max(0, way of a fragment - overlap) + outer. Decoupled: nobody waits, the round is bound by the
compute of all together or by the link.

Source: DiLoCo, arXiv 2311.08105; Streaming DiLoCo, arXiv 2501.18512; Decoupled DiLoCo, arXiv 2604.21428.
"""

import heapq
from dataclasses import dataclass
from math import inf

from advisor.split.data_parallel_exchange import Exchange, exchange_of
from advisor.split.data_parallel_shares import Ends, Shares
from advisor.split.data_parallel_words import DataPool, DataProblem
from advisor.split.local_words import LocalProblem


@dataclass(frozen=True, slots=True)
class Round:
    """One way of doing it.

    Args:
        variant, style, inner_steps: as in the plan.
        samples, steps, busy_s: by pool in use: of each step, in a round, computing in a round.
        compute_s: of the pool that computes longest (of all together where each keeps its own pace).
        way: of what is exchanged at once.
        fragments: exchanges in a round.
        waited_s, outer_s: that the exchanges and the outer step add.
    """

    variant: str
    style: str
    inner_steps: int
    samples: dict[int, int]
    steps: dict[int, float]
    busy_s: dict[int, float]
    compute_s: float
    way: Exchange
    fragments: int
    waited_s: float
    outer_s: float

    @property
    def round_s(self) -> float:
        """Seconds of a round."""
        return self.compute_s + self.waited_s + self.outer_s

    @property
    def seconds(self) -> float:
        """Seconds of a step of the whole batch."""
        return self.round_s / self.inner_steps

    @property
    def exposed(self) -> float:
        """Part of the round that meetings cost."""
        return (self.waited_s + self.outer_s) / self.round_s if self.round_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Work:
    """What the pools in use do in a step: samples and seconds of each, and whether they do the same number of steps."""

    style: str
    samples: dict[int, int]
    step_s: dict[int, float]


class Rounds:
    """All rounds of a problem.

    Args:
        problem: to be planned.
    """

    def __init__(self, problem: LocalProblem) -> None:
        self.problem = problem
        pools = tuple(DataPool(pool.name, pool.pace, backward_share=0.0) for pool in problem.pools)
        self.shares = Shares(DataProblem(pools, problem.batch, 0.0, problem.links, buckets=1))

    def works(self, used: tuple[int, ...]) -> list[Work]:
        """Return the ways of keeping some pools busy: level shares of the batch, and equal batches where they divide it."""
        pools, found = self.problem.pools, list[Work]()
        ends: Ends = {index: (pools[index].inner_s, -inf) for index in used}
        level = self.shares.soonest(used, ends, inf)
        if level is not None:
            samples = {index: share * self.shares.unit for index, share in level[1].items()}
            found.append(self._work("shares", samples))
        each, rest = divmod(self.problem.batch, len(used))
        if rest == 0 and len(used) > 1 and all(each % pools[index].pace.grain == 0 for index in used):
            found.append(self._work("steps", dict.fromkeys(used, each)))
        return found

    def _work(self, style: str, samples: dict[int, int]) -> Work:
        pools = self.problem.pools
        step_s = {index: pools[index].pace.seconds(count) + pools[index].inner_s for index, count in samples.items()}
        return Work(style, samples, step_s)

    def round_of(self, variant: str, work: Work, inner_steps: int) -> Round | None:
        """Return the round of one way of working with one number of steps; None where it cannot be.

        Args:
            variant: one of `VARIANTS`.
            work: of the pools in use.
            inner_steps: steps of the whole batch between two meetings.
        """
        problem, used = self.problem, tuple(sorted(work.samples))
        fragments = 1 if variant == "plain" else problem.fragments
        if len(used) == 1 and variant != "plain":
            return None
        if variant != "plain" and inner_steps // fragments < problem.overlap_steps:
            return None
        way = exchange_of(problem.links, used, problem.delta_bytes / fragments)
        if way is None:
            return None
        outer = max(problem.pools[index].outer_s for index in used) if len(used) > 1 else 0.0
        if variant == "decoupled":
            return self._decoupled(work, inner_steps, way, outer)
        steps = self._steps(work, inner_steps)
        busy = {index: steps[index] * work.step_s[index] for index in used}
        compute = max(busy.values())
        hidden = 0.0 if variant == "plain" else problem.overlap_steps * compute / inner_steps
        waited = fragments * max(0.0, way.busy_s + way.latency_s - hidden)
        return Round(variant, work.style, inner_steps, work.samples, steps, busy, compute, way, fragments, waited, outer)

    def _decoupled(self, work: Work, inner_steps: int, way: Exchange, outer_s: float) -> Round:
        rate = sum(count / work.step_s[index] for index, count in work.samples.items())
        compute = inner_steps * self.problem.batch / rate
        waited = max(0.0, self.problem.fragments * way.busy_s - compute - outer_s)
        steps = {index: compute / step for index, step in work.step_s.items()}
        busy = dict.fromkeys(work.step_s, compute)
        return Round(
            "decoupled", "own", inner_steps, work.samples, steps, busy, compute, way, self.problem.fragments, waited, outer_s
        )

    @staticmethod
    def _steps(work: Work, inner_steps: int) -> dict[int, float]:
        """Return steps of each pool: the same, or for equal batches those that together end soonest.

        The next step always goes to the pool that would end first with it, which is the best for the one that ends last.
        """
        if work.style == "shares":
            return dict.fromkeys(work.samples, float(inner_steps))
        total = inner_steps * len(work.samples)
        level_s = total / sum(1 / step for step in work.step_s.values())
        steps = {index: max(1, int(level_s / step * (1 - 1e-9))) for index, step in work.step_s.items()}
        over = sum(steps.values()) - total
        while over > 0:  # a pool that is too slow for even one step takes one all the same
            last = max((index for index in steps if steps[index] > 1), key=lambda index: steps[index] * work.step_s[index])
            steps[last] -= 1
            over -= 1
        queue = [((steps[index] + 1) * step, index) for index, step in work.step_s.items()]
        heapq.heapify(queue)
        for _ in range(-over):
            index = queue[0][1]
            steps[index] += 1
            heapq.heapreplace(queue, ((steps[index] + 1) * work.step_s[index], index))
        return {index: float(count) for index, count in steps.items()}
