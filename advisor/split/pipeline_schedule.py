"""The exact course of a pipeline's step: who computes which micro-batch when, many plans at once.

A stage does one pass at a time in a fixed order; a link carries the bytes of one message at a time each way, both ways at once,
and what it has carried arrives its latency later. Sending costs the sender nothing. As the order is fixed, a step is a
longest path, and numpy walks it for a whole array of plans.

Without any backward work there is one order, `forward`: every stage does its passes as they come and nothing goes back.

Orders with it: `1f1b` lets a stage begin as many micro-batches as there are stages from it to the end before its first backward
pass, then does one backward and one forward pass in turn; `1f1b-eager` begins almost twice as many, so that a slow link is
hidden for more memory; `gpipe` does all forward passes first. Interleaving several stretches of layers on one pool is left out:
it multiplies the messages, which unlike pools send over their slowest link.

Source: PipeDream, arXiv 1806.03377; Megatron-LM, arXiv 2104.04473 (1F1B); GPipe, arXiv 1811.06965; eager 1F1B: arXiv 2211.05322.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from core.split import Bar

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """Seconds of one micro-batch for a number of plans with equally many stages.

    Args:
        forward, backward, update: (stages, plans).
        out, back: (stages - 1, plans), while the bytes of activations and gradients occupy the link after each stage.
        out_latency, back_latency: the same shape, from there to the arrival.
    """

    forward: Floats
    backward: Floats
    update: Floats
    out: Floats
    back: Floats
    out_latency: Floats
    back_latency: Floats

    def chosen(self, index: NDArray[np.intp]) -> "Times":
        """Return those of some plans."""
        return Times(
            self.forward[:, index],
            self.backward[:, index],
            self.update[:, index],
            self.out[:, index],
            self.back[:, index],
            self.out_latency[:, index],
            self.back_latency[:, index],
        )


def ahead(schedule: str, after: int, micro_batches: int) -> int:
    """Return how many forward passes a stage does before its first backward pass.

    Args:
        schedule: one of `SCHEDULES`, or `forward`.
        after: stages after it.
        micro_batches: of a step.
    """
    wanted = {"1f1b": after + 1, "1f1b-eager": 2 * after + 1}.get(schedule, micro_batches)
    return min(micro_batches, wanted)


def depth(schedule: str, after: int, micro_batches: int) -> int:
    """Return how many micro-batches a stage keeps at most; arguments as of `ahead`."""
    return 1 if schedule == "forward" else ahead(schedule, after, micro_batches)


@lru_cache(maxsize=64)
def passes(schedule: str, stages: int, micro_batches: int) -> tuple[tuple[int, bool, int], ...]:
    """Return (stage, whether backward, micro-batch) such that each comes after all that it waits for."""
    orders = [_order(ahead(schedule, stages - 1 - stage, micro_batches), micro_batches) for stage in range(stages)]
    done = [0] * stages
    forwards, backwards = [0] * stages, [0] * stages
    found: list[tuple[int, bool, int]] = []

    def ready(stage: int) -> bool:
        if done[stage] == len(orders[stage]):
            return False
        backward, index = orders[stage][done[stage]]
        if backward:
            return stage == stages - 1 or backwards[stage + 1] > index
        return stage == 0 or forwards[stage - 1] > index

    while len(found) < 2 * stages * micro_batches:
        for stage in range(stages):
            while ready(stage):
                backward, index = orders[stage][done[stage]]
                found.append((stage, backward, index))
                done[stage] += 1
                (backwards if backward else forwards)[stage] += 1
    return tuple(found)


def _order(kept: int, micro_batches: int) -> list[tuple[bool, int]]:
    order = [(False, index) for index in range(kept)]
    for index in range(micro_batches):
        order.append((True, index))
        if index + kept < micro_batches:
            order.append((False, index + kept))
    return order


def step_seconds(times: Times, schedule: str, micro_batches: int) -> Floats:
    """Return seconds of a step of each plan."""
    if len(times.forward) == 1:
        return (micro_batches * (times.forward + times.backward) + times.update)[0]
    return _walk(times, schedule, micro_batches, None)


def timeline(times: Times, schedule: str, micro_batches: int, lanes: tuple[str, ...]) -> tuple[Bar, ...]:
    """Return who does what in a step of the only plan of `times`; idle stretches of a stage are bars that wait.

    Args:
        times: of one plan.
        schedule, micro_batches: of that plan.
        lanes: names of the stages' pools.
    """
    bars: list[Bar] = []
    total = float(_walk(times, schedule, micro_batches, (lanes, bars))[0])
    waits: list[Bar] = []
    ended = dict.fromkeys(lanes, 0.0)
    for bar in bars:  # those of a pool stand in the order of time
        if bar.lane in ended:
            if bar.start_s > ended[bar.lane]:
                waits.append(Bar(bar.lane, ended[bar.lane], bar.start_s, "wait", "waits for its neighbours"))
            ended[bar.lane] = bar.stop_s
    waits += [Bar(lane, at, total, "wait", "waits for the others' end") for lane, at in ended.items() if total > at]
    seen = [bar for bar in (*bars, *waits) if bar.stop_s > bar.start_s]
    return tuple(sorted(seen, key=lambda bar: (bar.start_s, bar.stop_s, bar.lane)))


def _walk(times: Times, schedule: str, micro_batches: int, kept: tuple[tuple[str, ...], list[Bar]] | None) -> Floats:
    stages, plans = times.forward.shape
    free = [np.zeros(plans) for _ in range(stages)]
    # of each direction: seconds of a pass, the links' spare times, how long they are busy, their latencies; by stage
    ways = (
        (list(times.forward), [np.zeros(plans) for _ in range(stages)], list(times.out), list(times.out_latency)),
        (list(times.backward), [np.zeros(plans) for _ in range(stages)], list(times.back), list(times.back_latency)),
    )
    arrived: dict[tuple[int, bool, int], Floats] = {}
    for stage, backward, index in passes(schedule, stages, micro_batches):
        took, spare, used, latency = ways[backward]
        ready = arrived.pop((stage, backward, index), None)
        begin = free[stage] if ready is None else np.maximum(free[stage], ready)
        end = free[stage] = begin + took[stage]
        if kept:
            what = f"{'backward' if backward else 'forward'} {index + 1}"
            kept[1].append(Bar(kept[0][stage], float(begin[0]), float(end[0]), "compute", what))
        target = stage - 1 if backward else stage + 1
        if not 0 <= target < stages:
            continue
        link = min(stage, target)
        leaves = np.maximum(end, spare[link])
        spare[link] = leaves + used[link]
        arrived[target, backward, index] = arrives = spare[link] + latency[link]
        if kept:
            what = f"{'gradients' if backward else 'activations'} {index + 1}"
            kept[1].append(Bar(f"{kept[0][stage]} to {kept[0][target]}", float(leaves[0]), float(arrives[0]), "move", what))
    ends = np.array(free) + times.update
    if kept:
        starts = zip(kept[0], free, ends, strict=True)
        rows = [(lane, float(start[0]), float(end[0])) for lane, start, end in starts]
        kept[1].extend(Bar(lane, start, end, "update", "update") for lane, start, end in rows if end > start)
    return ends.max(axis=0)
