"""Plans which part of a step runs on which of some unlike pools, and what crosses between them in every step.

It takes numbers only. Each way of carrying a step out has its own exact search (`advisor.split.operators_solver`); whatever it
finds is then timed anew by a plain schedule (`advisor.split.operators_tasks`), and that is what the plan says. One pool for all
parts is always among what is compared.
"""

from collections.abc import Sequence
from dataclasses import replace

from advisor.split.operators_solver import solve_bounds, solve_overlapped, solve_serial
from advisor.split.operators_tasks import end_of, in_order, in_steady_state, in_turn, side_by_side, tasks_of
from advisor.split.operators_words import WAYS, NoPlacement, OperatorPlan, OperatorProblem, PlacedAlone, Task
from core.device import Link
from core.errors import BadInput
from core.split import Bar, Move

_SAME, _NEAR = 1e-9, 1e-3


def plan_operators(problem: OperatorProblem, way: str = "overlapped", limit_s: float = 10.0) -> OperatorPlan | NoPlacement:
    """Return the fastest placement.

    Args:
        problem: parts and pools.
        way: one of `WAYS`: how a step is carried out.
        limit_s: seconds that a solver may take; what it cannot prove by then shows in the bound.

    Raises:
        BadInput: a way that there is not.
    """
    if way not in WAYS:
        raise BadInput(f"way {way!r}", f"one of {', '.join(WAYS)}", "choose one")
    singles = tuple(_alone(problem, pool) for pool in range(len(problem.pools)))
    whole = [(number,) * len(problem.parts) for number, one in enumerate(singles) if one.seconds is not None]
    whole = whole if problem.least_pools == 1 else []
    if way == "serial":
        solved, placed = solve_serial(problem, limit_s)
    else:
        solved, placed = solve_bounds(problem, limit_s / 2, one_step=way == "overlapped")
    if not placed:
        why = _why(problem) if solved.infeasible else (f"the solver found no placement within {limit_s:g} s",)
        return NoPlacement(why, singles)
    if way == "serial":
        tasks = tasks_of(problem, placed)
        return _told(problem, way, placed, tasks, in_turn(tasks), min(solved.bound, sum(task.seconds for task in tasks)), singles)
    if way == "overlapped":
        return _overlapped(problem, [placed, *whole], solved.bound, singles, limit_s / 2)
    followed = [(in_steady_state(problem, tasks_of(problem, one)), one) for one in (placed, *whole)]
    if min(followed)[0][0] > solved.bound * (1 + _NEAR):
        _, other = solve_serial(problem, limit_s / 2)
        followed.extend([(in_steady_state(problem, tasks_of(problem, other)), other)] if other else [])
    (period, begins, missed), best = min(followed)
    first = min(begins)
    begins = tuple(begin - first for begin in begins)
    plan = _told(problem, way, best, tasks_of(problem, best), begins, solved.bound, singles, max(period, solved.bound))
    return replace(plan, staleness=missed, said=_said(problem, missed))


def _overlapped(
    problem: OperatorProblem, choices: list[tuple[int, ...]], bound_s: float, singles: tuple[PlacedAlone, ...], limit_s: float
) -> OperatorPlan:
    """Return the plan whose step ends first, of known placements and, unless one is at its bound, of what CP-SAT finds."""
    known = [_timed(problem, placed) for placed in choices]
    if min(known)[0] > bound_s * (1 + _SAME):
        _, serial = solve_serial(problem, limit_s)
        known.extend([_timed(problem, serial)] if serial else [])
        shortest = min(known)
        found = solve_overlapped(problem, shortest[1], shortest[0], limit_s)
        if found is not None:
            placed, proven, hints = found
            bound_s = max(bound_s, proven)
            tasks = tasks_of(problem, placed)
            begins = in_order(tasks, [_hint(task, hints) for task in tasks])
            known.append((end_of(tasks, begins), placed, begins))
    seconds, placed, begins = min(known)
    return _told(problem, "overlapped", placed, tasks_of(problem, placed), begins, min(bound_s, seconds), singles)


def _timed(problem: OperatorProblem, placed: tuple[int, ...]) -> tuple[float, tuple[int, ...], tuple[float, ...]]:
    """Return a placement with the end and the beginnings of a step of it."""
    tasks = tasks_of(problem, placed)
    both = (in_order(tasks, in_turn(tasks)), side_by_side(problem, tasks))
    end_s, begins = min((end_of(tasks, begins), begins) for begins in both)
    return end_s, placed, begins


def _hint(task: Task, hints: dict[str, float]) -> float:
    """Return when the solver begins a task; its names are those of parts and flows."""
    if task.part is not None:
        return hints[f"{'b' if task.backward else 'f'}{task.part}"]
    return hints[f"{'r' if task.backward else 'm'}{task.flow}"]


def seconds_at(problem: OperatorProblem, bytes_per_s: float, way: str = "overlapped", limit_s: float = 10.0) -> float:
    """Return seconds of a step, planned anew with every link at another rate; infinite where there is no placement.

    Args:
        problem: its latencies stay.
        bytes_per_s: of every link, one way.
        way, limit_s: as `plan_operators` has them.
    """
    links = tuple(
        tuple(None if link is None else Link(link.latency_s, bytes_per_s) for link in row) for row in problem.links
    )
    plan = plan_operators(replace(problem, links=links), way, limit_s)
    return plan.seconds if isinstance(plan, OperatorPlan) else float("inf")


def _alone(problem: OperatorProblem, pool: int) -> PlacedAlone:
    """Return all parts on one pool."""
    name = problem.pools[pool]
    for part in problem.parts:
        if part.on[pool].missing:
            return PlacedAlone(name, None, f"{part.name}: {part.on[pool].missing}")
    needed, most = sum(part.on[pool].memory_bytes for part in problem.parts), problem.memory_bytes[pool]
    if most is not None and needed > most * (1 + _SAME):
        return PlacedAlone(name, None, f"its parts need {needed / 1e9:.3g} GB of {most / 1e9:.3g} GB")
    return PlacedAlone(name, sum(part.on[pool].seconds for part in problem.parts))


def _why(problem: OperatorProblem) -> tuple[str, ...]:
    """Return what keeps the parts from running at all."""
    found: list[str] = []
    for part in problem.parts:
        able = [(one, most) for one, most in zip(part.on, problem.memory_bytes, strict=True) if not one.missing]
        if not able:
            reasons = "; ".join(f"{pool}: {one.missing}" for pool, one in zip(problem.pools, part.on, strict=True))
            found.append(f"{part.name} runs on no pool ({reasons})")
        elif all(most is not None and one.memory_bytes > most for one, most in able):
            found.append(f"{part.name} fits in the memory of no pool that runs it")
    if not found and problem.least_pools > 1:
        return (f"the parts cannot be shared out over {problem.least_pools} pools: by what runs where, memory or links",)
    return tuple(found) or ("together the parts do not fit in the memory of the pools, or no link joins those that have room",)


def _said(problem: OperatorProblem, missed: int) -> str:
    """Return what to know of parts that run ahead."""
    names = [part.name for part in problem.parts if part.ahead and any(one.backward_s for one in part.on)]
    if not missed or not names:
        return ""
    steps = "one step" if missed == 1 else f"{missed} steps"
    return f"{', '.join(names)} runs ahead of its own updates: what it looks up is {steps} old"


def _told(
    problem: OperatorProblem, way: str, placed: tuple[int, ...], tasks: Sequence[Task], begins: Sequence[float], bound_s: float,
    singles: tuple[PlacedAlone, ...], period_s: float | None = None,
) -> OperatorPlan:
    """Return a placement and its schedule in words."""
    seconds = end_of(tasks, begins) if period_s is None else period_s
    pools = range(len(problem.pools))
    busy = [sum(task.seconds for task in tasks if task.lane == problem.pools[pool]) for pool in pools]
    work = sum(busy)
    sizes = [part.on[pool].memory_bytes for part, pool in zip(problem.parts, placed, strict=True)]
    used = tuple(sum(size for size, place in zip(sizes, placed, strict=True) if place == pool) for pool in pools)
    moves = tuple(
        Move(task.what, problem.pools[task.ends[0]], problem.pools[task.ends[1]], task.size_bytes, task.seconds,
             task.seconds if way == "serial" else _exposed(tasks, begins, number))
        for number, task in enumerate(tasks) if task.part is None
    )
    bars = sorted(
        (Bar(task.lane, begin, begin + task.seconds, "move" if task.part is None else "compute", task.what)
         for task, begin in zip(tasks, begins, strict=True) if task.seconds),
        key=lambda bar: (bar.start_s, bar.lane),
    )
    return OperatorPlan(
        way, seconds, placed, bound_s, used,
        tuple((name, one / work if work else 1 / len(busy)) for name, one in zip(problem.pools, busy, strict=True)),
        _terms(problem, way, placed, seconds, max(busy)), moves, tuple(bars), singles,
    )


def _exposed(tasks: Sequence[Task], begins: Sequence[float], number: int) -> float:
    """Return how long the receiver of a message stands still and waits for it."""
    task = tasks[number]
    arrives = begins[number] + task.seconds
    exposed = 0.0
    for other, begin in zip(tasks, begins, strict=True):
        if number not in other.after or begin > arrives + _SAME * max(arrives, 1e-12):
            continue
        lane = [(same, start) for same, start in zip(tasks, begins, strict=True) if same.lane == other.lane]
        before = max((start + same.seconds for same, start in lane if start < begin), default=0.0)
        exposed = max(exposed, min(task.seconds, begin - before))
    return max(exposed, 0.0)


def _terms(
    problem: OperatorProblem, way: str, placed: tuple[int, ...], seconds: float, work: float
) -> tuple[tuple[str, float], ...]:
    """Return the seconds of a step: the busiest pool's work, what links add, and the rest that it waits for others."""
    pools = range(len(problem.pools))
    free = tuple(tuple(None if a == b else Link(0.0, float("inf")) for b in pools) for a in pools)
    tasks = tasks_of(replace(problem, links=free), placed)
    if way == "serial":
        unlinked = sum(task.seconds for task in tasks)
    elif way == "overlapped":
        unlinked = end_of(tasks, side_by_side(problem, tasks))
    else:
        unlinked = in_steady_state(problem, tasks)[0]
    link = min(max(seconds - unlinked, 0.0), max(seconds - work, 0.0))
    return (("work", work), ("link", link), ("wait", seconds - work - link))
