"""A pipeline's problem as arrays: what any stretch of layers takes on any pool, from sums over the layers before."""

from dataclasses import dataclass
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from advisor.split.pipeline_schedule import Floats, Times, depth
from advisor.split.pipeline_words import PipelineProblem
from core.device import Link

Cuts = NDArray[np.intp]
Order = tuple[int, ...]
"""Pools by index, first stage first."""


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """Sums for one number of micro-batches.

    Args:
        micro_batches: of a step.
        forward, backward, kept: (pools, layers + 1), of the layers before each.
        activation_bytes, gradient_bytes: (layers + 1), that cross before each layer; nothing at both ends.
    """

    micro_batches: int
    forward: Floats
    backward: Floats
    kept: Floats
    activation_bytes: Floats
    gradient_bytes: Floats


class Tables:
    """The sums of a problem.

    Where no layer has backward work and no gradients cross, nothing goes back: `returns` is False, the schedule is `forward`.

    Args:
        problem: to be planned.
    """

    def __init__(self, problem: PipelineProblem) -> None:
        self.problem = problem
        self.layers = problem.layers
        self.names = tuple(pool.name for pool in problem.pools)
        self.state = _sums([pool.state_bytes for pool in problem.pools])
        self.update = _sums([pool.update_s or (0.0,) * self.layers for pool in problem.pools])
        self.memory = [np.inf if pool.memory_bytes is None else pool.memory_bytes for pool in problem.pools]
        self.cuts = tuple(self._cut(index) for index in range(len(problem.crossings)))
        self.returns = any(cut.backward[:, -1].any() or cut.gradient_bytes.any() for cut in self.cuts)
        self.schedules = problem.schedules if self.returns else ("forward",)

    def _cut(self, index: int) -> Cut:
        crossing = self.problem.crossings[index]
        count = crossing.micro_batches
        sizings = [next(one for one in pool.sizings if one.micro_batches == count) for pool in self.problem.pools]
        return Cut(
            count,
            _sums([one.forward_s for one in sizings]),
            _sums([one.backward_s for one in sizings]),
            _sums([one.kept_bytes for one in sizings]),
            np.array((0.0, *crossing.activation_bytes, 0.0)),
            np.array((0.0, *crossing.gradient_bytes, 0.0)),
        )

    def link(self, source: int, target: int) -> Link | None:
        """Return the way from one pool to another."""
        return self.problem.links[source][target]

    def joined(self, order: Order) -> bool:
        """Return whether each stage can send to the next and back."""
        pairs = pairwise(order)
        return all(self.link(a, b) is not None and self.link(b, a) is not None for a, b in pairs)

    def way_s(self, cut: Cut, source: int, target: int, edges: Cuts) -> Floats:
        """Return seconds of a micro-batch from one pool to another and back, for boundaries before the layers `edges`."""
        out, back = self.link(source, target), self.link(target, source)
        assert out is not None
        assert back is not None
        sent = cut.activation_bytes[edges] / out.bytes_per_s + cut.gradient_bytes[edges] / back.bytes_per_s
        return sent + out.latency_s + (back.latency_s if self.returns else 0.0)

    def times(self, cut: Cut, order: Order, edges: Cuts) -> Times:
        """Return seconds of plans with one order.

        Args:
            cut: number of micro-batches.
            order: pools of the stages.
            edges: (stages + 1, plans): where each stage begins, and the last one's end.
        """
        rows = np.array(order)[:, None]

        def own(sums: Floats) -> Floats:
            return sums[rows, edges[1:]] - sums[rows, edges[:-1]]

        inner = edges[1:-1]
        shape = inner.shape
        ways = [(self.link(a, b), self.link(b, a)) for a, b in pairwise(order)]
        out = [link for link, _ in ways if link is not None]
        back = [link for _, link in ways if link is not None]
        assert len(out) == len(back) == len(order) - 1
        return Times(
            own(cut.forward),
            own(cut.backward),
            own(self.update),
            cut.activation_bytes[inner] / _column([link.bytes_per_s for link in out]),
            cut.gradient_bytes[inner] / _column([link.bytes_per_s for link in back]),
            np.broadcast_to(_column([link.latency_s for link in out]), shape),
            np.broadcast_to(_column([link.latency_s if self.returns else 0.0 for link in back]), shape),
        )

    def memory_bytes(self, cut: Cut, schedule: str, order: Order, edges: Cuts) -> Floats:
        """Return bytes that each stage needs, (stages, plans)."""
        rows = np.array(order)[:, None]
        flights = _column([depth(schedule, len(order) - 1 - stage, cut.micro_batches) for stage in range(len(order))])
        state = self.state[rows, edges[1:]] - self.state[rows, edges[:-1]]
        return state + flights * (cut.kept[rows, edges[1:]] - cut.kept[rows, edges[:-1]])

    def fits(self, cut: Cut, schedule: str, order: Order, edges: Cuts) -> NDArray[np.bool_]:
        """Return which plans fit in memory; a rounding of the sums does not count."""
        limits = _column([self.memory[pool] for pool in order])
        whole = _column([float(self.state[pool, -1] + cut.micro_batches * cut.kept[pool, -1]) for pool in order])
        return np.all(self.memory_bytes(cut, schedule, order, edges) <= limits + 1e-12 * whole, axis=0)

    def orders(self, stages: int) -> tuple[Order, ...]:
        """Return all orders of so many pools that can send to each other; of those that are alike in all, the first."""
        kinds = self._kinds()
        found: dict[tuple[object, ...], Order] = {}
        for order in permutations(range(len(self.names)), stages):
            if self.joined(order):
                ways = tuple((self.link(a, b), self.link(b, a)) for a, b in pairwise(order))
                found.setdefault((tuple(kinds[pool] for pool in order), ways), order)
        return tuple(found.values())

    def _kinds(self) -> list[int]:
        seen: list[tuple[object, ...]] = []
        kinds: list[int] = []
        for pool in self.problem.pools:
            sizings = tuple(sorted(pool.sizings, key=lambda one: one.micro_batches))
            own = (sizings, pool.state_bytes, pool.memory_bytes, pool.update_s)
            if own not in seen:
                seen.append(own)
            kinds.append(seen.index(own))
        return kinds


def _sums(rows: list[tuple[float, ...]]) -> Floats:
    table = np.zeros((len(rows), len(rows[0]) + 1))
    np.cumsum(np.array(rows, dtype=np.float64), axis=1, out=table[:, 1:])
    return table


def _column(values: list[float] | list[int]) -> Floats:
    return np.array(values, dtype=np.float64)[:, None]
