"""Proven lower bounds of a pipeline's step: of given plans at once, and of all plans together.

They let the search leave out what cannot win; the tests hold them against the simulated schedule.
"""

import numpy as np
from numpy.typing import NDArray

from advisor.split.pipeline_schedule import Floats, Times, ahead

COARSE, ROUNDS = 128, 25
"""Groups of layers on which weights are improved, and how often."""


def of_plans(times: Times, schedule: str, micro_batches: int) -> Floats:
    """Return a bound of each plan, equal to the step where all stages are alike and links cost nothing.

    No step is shorter than one micro-batch's way there and back plus the other micro-batches on any resource that must do all of
    its passes of one direction before or after that way (each link, each stage's forwards or backwards); nor than, for any
    stage, the way to it and back, all of its work, and the idle time before its first and before its last backward pass, in which
    it has fewer passes to fill in than the stages after it take; nor than the chain in which each micro-batch is begun only
    after an earlier one is through, as a stage keeps only so many.

    Args:
        times: of the plans.
        schedule: one of `SCHEDULES`.
        micro_batches: of a step.
    """
    stages = len(times.forward)
    both = times.forward + times.backward
    ways = times.out + times.back + times.out_latency + times.back_latency
    whole = both.sum(axis=0) + ways.sum(axis=0)
    longest = np.maximum(times.forward, times.backward).max(axis=0)
    if stages > 1:
        longest = np.maximum(longest, np.maximum(times.out, times.back).max(axis=0))
    found = whole + (micro_batches - 1) * longest + times.update[0]
    there, back = np.zeros_like(whole), np.zeros_like(whole)
    for stage in range(stages):
        kept = ahead(schedule, stages - 1 - stage, micro_batches)
        after = whole - there - back - both[stage]
        tail = np.maximum(times.update[stage], back + times.update[0])
        first = np.maximum(0.0, after - (kept - 1) * times.forward[stage])
        last = np.maximum(0.0, after - (kept - 1) * times.backward[stage])
        idle = first + last if micro_batches > kept else np.maximum(first, last)
        turns = -(-micro_batches // kept)
        chain = (micro_batches - 1) % kept * times.forward[stage] + turns * (both[stage] + after)
        found = np.maximum(found, there + tail + np.maximum(micro_batches * both[stage] + idle, chain))
        if stage < stages - 1:
            there = there + times.forward[stage] + times.out[stage] + times.out_latency[stage]
            back = back + times.backward[stage] + times.back[stage] + times.back_latency[stage]
    return found


class Relaxed:
    """Bounds of all plans with one number of micro-batches on some pools, whatever the cuts.

    For weights of the pools that sum to one, a step takes at least the weighted mean of its stages' bounds. Each of these is a
    sum over layers of what the layer's pool takes, so that giving every layer to the pool where its term is least bounds all
    plans. Two such means are used: of (way to the stage) + M x stage, whose factor is least over all orders when the pools
    stand by falling weight; and of (one way through all) + (M - 1) x stage - (what it does while the first, or the last, way
    through the stages after it is open: no more passes of the shorter direction than it keeps). The weights are improved by
    subgradient steps on groups of layers; any weights are valid. As stages are stretches, all but `pools - 1` groups of
    neighbouring layers lie on one pool whole, which lifts the bound where pools differ from layer to layer.

    Args:
        forward, backward: (pools, layers) seconds of one micro-batch.
        micro_batches: M.
        kept: micro-batches that any stage keeps at most.

    Source: Lagrangian bound of scheduling on unrelated machines (Lenstra, Shmoys and Tardos 1990 have the relaxation).
    """

    def __init__(self, forward: Floats, backward: Floats, micro_batches: int, kept: int) -> None:
        self.micro_batches = micro_batches
        self.both = forward + backward
        shorter = forward if backward.sum() >= forward.sum() else backward
        self.more = (micro_batches - 1) * self.both - (kept - 1) * shorter
        size = -(-forward.shape[1] // COARSE)
        both, more = _grouped(self.both, size), _grouped(self.more, size)
        self.weights = self._improved(both, both, False)
        through = self._improved(both, more, True)
        self.spread = self._least(self.weights[:, None] * self.both)
        self.through = self._least(self.both + through[:, None] * self.more)
        self.once = self._least(self.both)

    def of_all(self) -> float:
        """Return the bound over all orders of these pools, any of them left out, with free links."""
        order = np.argsort(-self.weights, kind="stable")  # exchanging two shows that no order has a smaller factor
        return max(self.of_order(tuple(int(pool) for pool in order), 0.0, 0.0), 0.0)

    def of_order(self, order: tuple[int, ...], ways_s: float, slowest_s: float) -> float:
        """Return the bound over plans that have the pools in this order.

        Args:
            order: pools by row, first stage first.
            ways_s: of one micro-batch over all links there and back, at least.
            slowest_s: that one micro-batch occupies the busiest of these links one way, at least.
        """
        gathered = 0.0
        for pool in reversed(order):
            weight = float(self.weights[pool])
            gathered = max(gathered, gathered + (weight - gathered) / self.micro_batches)
        spread = self.spread / gathered if gathered > 0 else 0.0
        return max(spread, self.through + ways_s, self.once + ways_s + (self.micro_batches - 1) * slowest_s)

    def _improved(self, both: Floats, own: Floats, once: bool) -> Floats:
        weights = 1 / np.maximum(own.sum(axis=1), 1e-300)
        weights /= weights.sum()
        best, kept = -1.0, weights
        for turn in range(ROUNDS):
            terms = both + weights[:, None] * own if once else weights[:, None] * own
            winners: NDArray[np.intp] = terms.argmin(axis=0)
            columns = np.arange(own.shape[1], dtype=np.intp)
            value = float(terms[winners, columns].sum()) * (1.0 if once else 1 / self._gathered(weights))
            if value > best:
                best, kept = value, weights
            loads = np.bincount(winners, weights=own[winners, columns], minlength=len(weights))
            if loads.sum() <= 0:
                break
            # work becomes dearer on a pool that wins more than the mean
            weights = weights * np.exp((0.5 / (1 + turn) ** 0.7) * np.clip(loads / loads.mean() - 1, -2, 2))
            weights /= weights.sum()
        return kept

    def _gathered(self, weights: Floats) -> float:
        gathered = 0.0
        for weight in np.sort(weights):
            gathered = max(gathered, gathered + (float(weight) - gathered) / self.micro_batches)
        return max(gathered, 1e-300)

    def _least(self, terms: Floats) -> float:
        layers = terms.min(axis=0)
        cuts, best, size = len(terms) - 1, float(layers.sum()), 2
        while size < terms.shape[1]:
            whole = _grouped(terms, size).min(axis=0)
            gains = np.sort(whole - _grouped(layers[None], size)[0])
            best = max(best, float(whole.sum() - gains[max(0, len(gains) - cuts) :].sum()))
            size *= 2
        return best


def _grouped(rows: Floats, size: int) -> Floats:
    if size == 1:
        return rows
    starts = np.arange(0, rows.shape[1], size, dtype=np.intp)
    return np.add.reduceat(rows, starts, axis=1)
