"""Plans which part of a step runs on which of some unlike pools, and what crosses between them in every step.

It takes numbers only. Each way of carrying a step out has its own exact search (`advisor.split.operators_solver`); whatever it
finds is then timed anew by a plain schedule (`advisor.split.operators_tasks`), and that is what the plan says. One pool for all
parts is always among what is compared.
"""

from collections.abc import Sequence
from dataclasses import replace

from advisor.split.operators_solver import solve_overlapped, solve_prefetch, solve_serial
from advisor.split.operators_tasks import end_of, in_order, in_steady_state, in_turn, tasks_of
from advisor.split.operators_words import WAYS, NoPlacement, OperatorPlan, OperatorProblem, PlacedAlone, Task
from core.device import Link
from core.errors import BadInput
from core.split import Bar, Move

_SAME = 1e-9


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
    solved, placed = solve_serial(problem, limit_s)
    if not placed:
        why = _why(problem) if solved.infeasible else (f"the solver found no placement within {limit_s:g} s",)
        return NoPlacement(why, singles)
    whole = [(number,) * len(problem.parts) for number, one in enumerate(singles) if one.seconds is not None]
    if way == "serial":
        tasks = tasks_of(problem, placed)
        return _told(problem, way, placed, tasks, in_turn(tasks), min(solved.bound, sum(task.seconds for task in tasks)), singles)
    if way == "overlapped":
        return _overlapped(problem, [placed, *whole], singles, limit_s)
    steady, ahead = solve_prefetch(problem, limit_s)
    choices = {*([ahead] if ahead else []), placed, *whole}
    (period, begins, missed), best = min((in_steady_state(problem, tasks_of(problem, one)), one) for one in choices)
    tasks = tasks_of(problem, best)
    first = min(begins)
    begins = tuple(begin - first for begin in begins)
    bound = min(steady.bound, period) if steady.bound == float("inf") else steady.bound
    plan = _told(problem, way, best, tasks, begins, bound, singles, max(period, bound))
    return replace(plan, staleness=missed, said=_said(problem, missed))


def _overlapped(
    problem: OperatorProblem, choices: list[tuple[int, ...]], singles: tuple[PlacedAlone, ...], limit_s: float
) -> OperatorPlan:
    """Return the plan whose step ends first, of what CP-SAT finds and of the placements that are known."""
    known: list[tuple[float, tuple[int, ...], tuple[float, ...]]] = []
    for placed in choices:
        tasks = tasks_of(problem, placed)
        begins = in_order(tasks, in_turn(tasks))
        known.append((end_of(tasks, begins), placed, begins))
    shortest = min(known)
    bound = 0.0
    found = solve_overlapped(problem, shortest[1], shortest[0], limit_s) if shortest[0] > 0 else None
    if found is not None:
        placed, bound, hints = found
        tasks = tasks_of(problem, placed)
        begins = in_order(tasks, [_hint(task, hints) for task in tasks])
        known.append((end_of(tasks, begins), placed, begins))
    seconds, placed, begins = min(known)
    return _told(problem, "overlapped", placed, tasks_of(problem, placed), begins, min(bound, seconds), singles)


def _hint(task: Task, hints: dict[str, float]) -> float:
    """Return when the solver begins a task; its names are those of parts and flows."""
    if task.part is not None:
        return hints[f"{'b' if task.backward else 'f'}{task.part}"]
    return hints[f"{'r' if task.backward else 'm'}{task.flow}"]


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
        unlinked = end_of(tasks, in_order(tasks, in_turn(tasks)))
    else:
        unlinked = in_steady_state(problem, tasks)[0]
    link = min(max(seconds - unlinked, 0.0), max(seconds - work, 0.0))
    return (("work", work), ("link", link), ("wait", seconds - work - link))
