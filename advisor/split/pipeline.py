"""Layers in a row over unlike pools: which pool has which stretch, in how many micro-batches, in which order of passes.

What is made least is the step of the simulated schedule (`pipeline_schedule`), not a formula for it. Up to six pools the plan is
the best of all unless it says otherwise; beyond, it states how much shorter a step could be at most.
"""

from math import inf

import numpy as np

from advisor.split.pipeline_large import search_large
from advisor.split.pipeline_schedule import Times, depth, step_seconds, timeline
from advisor.split.pipeline_search import Best, prove
from advisor.split.pipeline_tables import Cut, Cuts, Tables
from advisor.split.pipeline_words import PipelinePlan, PipelineProblem, PoolAlone, Stage
from core import format as write
from core.split import Move


def plan_pipeline(problem: PipelineProblem) -> PipelinePlan | None:
    """Return the fastest plan; None when no plan fits: `why_no_pipeline` says why.

    Args:
        problem: to be planned.
    """
    tables = Tables(problem)
    best = search_large(tables)
    prove(tables, best)
    return _told(tables, best) if best.cut is not None else None


def why_no_pipeline(problem: PipelineProblem) -> tuple[str, ...]:
    """Return what stands in the way of a plan, one phrase each; empty when a plan exists.

    Args:
        problem: as given to `plan_pipeline`.
    """
    if plan_pipeline(problem) is not None:
        return ()
    tables = Tables(problem)
    found = [text for layer in range(tables.layers) if (text := _nowhere(tables, layer))]
    if found:
        return (found[0], *([f"{len(found) - 1} more layers fit nowhere"] if len(found) > 1 else []))
    if problem.least_pools > 1 and not tables.orders(problem.least_pools):
        return (f"no {problem.least_pools} pools can send to each other in a row",)
    held, room = float(tables.state[:, -1].max()), sum(tables.memory)
    needed = f"{write.memory(held)} of state at most and what is kept in flight"
    rooms = write.memory(room) if room < inf else "room without limit"
    return (f"each layer fits somewhere, but no row of stretches holds all {tables.layers}: {needed}, for {rooms} in all pools",)


def alone(problem: PipelineProblem) -> tuple[PoolAlone, ...]:
    """Return each pool with all layers, as given.

    Args:
        problem: as given to `plan_pipeline`.
    """
    tables = Tables(problem)
    return tuple(_alone(tables, pool) for pool in range(len(tables.names)))


def _nowhere(tables: Tables, layer: int) -> str:
    needs: list[float] = []
    for pool in range(len(tables.names)):
        state = float(tables.state[pool, layer + 1] - tables.state[pool, layer])
        least = min(float(cut.kept[pool, layer + 1] - cut.kept[pool, layer]) for cut in tables.cuts)
        if state + least <= tables.memory[pool]:
            return ""
        needs.append(state + least)
    pairs = zip(tables.names, needs, tables.memory, strict=True)
    text = ", ".join(f"{write.memory(need)} of {write.memory(room)} on {name}" for name, need, room in pairs)
    return f"layer {layer} fits nowhere: it needs {text}"


def _told(tables: Tables, best: Best) -> PipelinePlan:
    cut = best.cut
    assert cut is not None
    edges = np.array(best.edges, dtype=np.intp)[:, None]
    times = tables.times(cut, best.order, edges)
    lanes = tuple(tables.names[pool] for pool in best.order)
    spared = _spared(times, best, cut.micro_batches)
    return PipelinePlan(
        best.seconds,
        cut.micro_batches,
        best.schedule,
        _stages(tables, best, cut, edges, times),
        _terms(times, best, cut.micro_batches, spared[-1]),
        _moves(times, best, cut, lanes, spared),
        timeline(times, best.schedule, cut.micro_batches, lanes),
        tuple(_alone(tables, pool) for pool in range(len(tables.names))),
        best.bound_s,
        best.bound_s >= best.enough,
    )


def _stages(tables: Tables, best: Best, cut: Cut, edges: Cuts, times: Times) -> tuple[Stage, ...]:
    held = tables.memory_bytes(cut, best.schedule, best.order, edges)[:, 0]
    stages: list[Stage] = []
    for index, pool in enumerate(best.order):
        forward, backward = float(times.forward[index, 0]), float(times.backward[index, 0])
        update = float(times.update[index, 0])
        busy = cut.micro_batches * (forward + backward) + update
        stages.append(
            Stage(
                tables.names[pool],
                best.edges[index],
                best.edges[index + 1],
                forward,
                backward,
                update,
                busy,
                max(0.0, best.seconds - busy),
                float(held[index]),
                depth(best.schedule, len(best.order) - 1 - index, cut.micro_batches),
            )
        )
    return tuple(stages)


def _terms(times: Times, best: Best, micro_batches: int, free_s: float) -> tuple[tuple[str, float], ...]:
    work = micro_batches * (times.forward + times.backward)[:, 0]
    busiest = int((work + times.update[:, 0]).argmax())
    compute, update = float(work[busiest]), float(times.update[busiest, 0])
    bubble = max(0.0, free_s - compute - update)
    return (("compute", compute), ("bubble", bubble), ("link", best.seconds - compute - bubble - update), ("update", update))


def _moves(times: Times, best: Best, cut: Cut, lanes: tuple[str, ...], spared: list[float]) -> tuple[Move, ...]:
    """Return what crosses each boundary; what is exposed is what the step would lose if that alone cost nothing."""
    moves: list[Move] = []
    links = len(lanes) - 1
    for link in range(links):
        first, second, edge = lanes[link], lanes[link + 1], best.edges[link + 1]
        both = (
            ("activations", (first, second), cut.activation_bytes[edge], times.out, times.out_latency, spared[link]),
            ("gradients", (second, first), cut.gradient_bytes[edge], times.back, times.back_latency, spared[links + link]),
        )
        for what, ends, size, used, latency, without in both[: 1 if best.schedule == "forward" else 2]:
            seconds = cut.micro_batches * float(used[link, 0]) + float(latency[link, 0])
            moves.append(Move(what, *ends, float(size) * cut.micro_batches, seconds, max(0.0, best.seconds - without)))
    return tuple(moves)


def _spared(times: Times, best: Best, micro_batches: int) -> list[float]:
    """Return the step without each link's way out, without each one's way back, and without any of them."""
    links = len(times.out)
    out, back = np.ones((links, 2 * links + 1)), np.ones((links, 2 * links + 1))
    out[range(links), range(links)] = 0
    back[range(links), range(links, 2 * links)] = 0
    out[:, -1] = back[:, -1] = 0
    whole = np.ones((1, 2 * links + 1))
    many = Times(
        times.forward * whole,
        times.backward * whole,
        times.update * whole,
        times.out * out,
        times.back * back,
        times.out_latency * out,
        times.back_latency * back,
    )
    return [float(one) for one in step_seconds(many, best.schedule, micro_batches)]


def _alone(tables: Tables, pool: int) -> PoolAlone:
    edges: Cuts = np.array([[0], [tables.layers]], dtype=np.intp)
    able: list[tuple[float, int]] = []
    needs: list[float] = []
    for cut in tables.cuts:
        for schedule in tables.schedules:
            needs.append(float(tables.memory_bytes(cut, schedule, (pool,), edges)[0, 0]))
            if tables.fits(cut, schedule, (pool,), edges)[0]:
                times = tables.times(cut, (pool,), edges)
                able.append((float(step_seconds(times, schedule, cut.micro_batches)[0]), cut.micro_batches))
    name = tables.names[pool]
    if able:
        return PoolAlone(name, *min(able))
    room = write.memory(tables.memory[pool])
    return PoolAlone(name, None, None, f"needs {write.memory(min(needs))} of memory at least and has {room}")
