"""What is done in a step once every part has its pool: passes and messages, their order, and when each begins.

Every lane does one thing at a time: a pool one pass, a link one message in each direction. Nothing is interrupted. What goes from
one part to two others on the same pool is sent twice, as two flows are given.
"""

import heapq
from collections.abc import Callable, Sequence

from advisor.split.operators_words import OperatorProblem, Task

STEPS = 20
"""Steps that are simulated to see how fast they follow each other; the second half is looked at."""


def tasks_of(problem: OperatorProblem, placed: Sequence[int]) -> tuple[Task, ...]:
    """Return the tasks of one step, each after those that it waits for.

    Args:
        problem: parts and flows.
        placed: number of the pool of each part; every message must have a link.
    """
    found: list[Task] = []
    forward: list[int] = []
    for number, part in enumerate(problem.parts):
        after = [
            _sent(problem, placed, found, index, forward[flow.source])
            for index, flow in enumerate(problem.flows) if flow.target == number
        ]
        one = part.on[placed[number]]
        forward.append(len(found))
        lane = problem.pools[placed[number]]
        found.append(Task(f"forward of {part.name}", lane, one.forward_s, tuple(after), number))
    backward: dict[int, int] = {}
    for number in reversed(range(len(problem.parts))):
        after = [
            _sent(problem, placed, found, index, backward[flow.target], backward=True)
            for index, flow in enumerate(problem.flows) if flow.source == number and flow.backward_bytes > 0
        ]
        one = problem.parts[number].on[placed[number]]
        backward[number] = len(found)
        lane = problem.pools[placed[number]]
        name = f"backward of {problem.parts[number].name}"
        found.append(Task(name, lane, one.backward_s, (forward[number], *after), number, backward=True))
    return tuple(found)


def in_turn(tasks: Sequence[Task]) -> tuple[float, ...]:
    """Return when each task begins when nothing is ever done beside another."""
    clock, begins = 0.0, list[float]()
    for task in tasks:
        begins.append(clock)
        clock += task.seconds
    return tuple(begins)


def in_order(tasks: Sequence[Task], hints: Sequence[float]) -> tuple[float, ...]:
    """Return when each task begins at the earliest, every lane keeping the order of the hints.

    Args:
        tasks: of one step.
        hints: any beginnings that keep the precedences.
    """
    begins, free = [0.0] * len(tasks), dict[str, float]()
    for number in sorted(range(len(tasks)), key=lambda one: (hints[one], one)):
        task = tasks[number]
        ready = max((begins[one] + tasks[one].seconds for one in task.after), default=0.0)
        begins[number] = max(ready, free.get(task.lane, 0.0) if task.seconds else ready)
        if task.seconds:
            free[task.lane] = begins[number] + task.seconds
    return tuple(begins)


def end_of(tasks: Sequence[Task], begins: Sequence[float]) -> float:
    """Return when the last task ends."""
    return max(begin + task.seconds for task, begin in zip(tasks, begins, strict=True))


def in_steady_state(problem: OperatorProblem, tasks: Sequence[Task]) -> tuple[float, tuple[float, ...], int]:
    """Return seconds from step to step, when the tasks of one step begin, and how many steps a forward pass ran ahead.

    Lanes take what is ready, earlier steps first; of one step what comes first, or what has most behind it: the faster of both.

    Args:
        problem: what may run ahead.
        tasks: of one step.
    """
    tails = _tails(tasks)

    def by_number(step: int, number: int) -> tuple[float, float]:
        return step, number

    def by_tail(step: int, number: int) -> tuple[float, float]:
        return step, -tails[number]

    return min(
        (_measured(tasks, _followed(problem, tasks, order, STEPS)) for order in (by_number, by_tail)), key=lambda one: one[0]
    )


def side_by_side(problem: OperatorProblem, tasks: Sequence[Task]) -> tuple[float, ...]:
    """Return when each task of one step begins when every lane, once free, takes what is ready with most behind it.

    Args:
        problem: whose tasks they are.
        tasks: of one step.
    """
    tails = _tails(tasks)
    begins = _followed(problem, tasks, lambda _, number: (-tails[number], number), 1)
    return tuple(begins[0, number] for number in range(len(tasks)))


def _sent(
    problem: OperatorProblem, placed: Sequence[int], found: list[Task], index: int, after: int, backward: bool = False
) -> int:
    """Return the number of the task after which something has arrived, adding its message where there is one."""
    flow = problem.flows[index]
    source, target = (flow.target, flow.source) if backward else (flow.source, flow.target)
    size_bytes = flow.backward_bytes if backward else flow.forward_bytes
    ends = (placed[source], placed[target])
    seconds = problem.crossing_s(size_bytes, *ends)
    assert seconds is not None, "placed over a link that there is not"
    if not seconds:
        return after
    lane = f"{problem.pools[ends[0]]}>{problem.pools[ends[1]]}"
    what = f"{problem.parts[source].name} to {problem.parts[target].name}"
    found.append(Task(what, lane, seconds, (after,), None, backward, index, size_bytes, ends))
    return len(found) - 1


def _tails(tasks: Sequence[Task]) -> list[float]:
    """Return for each task the longest way from its beginning to the end of the step."""
    tails = [task.seconds for task in tasks]
    for number in reversed(range(len(tasks))):
        for before in tasks[number].after:
            tails[before] = max(tails[before], tasks[before].seconds + tails[number])
    return tails


def _followed(
    problem: OperatorProblem, tasks: Sequence[Task], order: Callable[[int, int], tuple[float, float]], steps: int
) -> dict[tuple[int, int], float]:
    """Return when each task of each step begins, steps into each other: a free lane takes what comes first by an order."""
    waits = _waits(problem, tasks, steps)
    left = {one: len(before) for one, before in waits.items()}
    then: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for one, before in waits.items():
        for other in before:
            then.setdefault(other, []).append(one)
    ready: dict[str, list[tuple[tuple[float, float], tuple[int, int]]]] = {}
    begins: dict[tuple[int, int], float] = {}
    busy: set[str] = set()
    events: list[tuple[float, tuple[int, int]]] = []

    def lane_of(one: tuple[int, int]) -> str:
        return tasks[one[1]].lane if tasks[one[1]].seconds else f"nothing {one}"

    def wait_for_lane(one: tuple[int, int]) -> None:
        heapq.heappush(ready.setdefault(lane_of(one), []), (order(*one), one))

    for one in (one for one, count in left.items() if count == 0):
        wait_for_lane(one)
    clock = 0.0
    while ready or events:
        for lane in [lane for lane in ready if lane not in busy]:
            _, one = heapq.heappop(ready[lane])
            begins[one] = clock
            busy.add(lane)
            heapq.heappush(events, (clock + tasks[one[1]].seconds, one))
            if not ready[lane]:
                del ready[lane]
        clock = events[0][0]
        while events and events[0][0] <= clock:
            _, one = heapq.heappop(events)
            busy.discard(lane_of(one))
            for other in then.get(one, ()):
                left[other] -= 1
                if left[other] == 0:
                    wait_for_lane(other)
    return begins


def _waits(problem: OperatorProblem, tasks: Sequence[Task], steps: int) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Return what each task of each step waits for, in its own step and in earlier ones."""
    last = {task.part: number for number, task in enumerate(tasks) if task.part is not None and task.backward}
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for step in range(steps):
        for number, task in enumerate(tasks):
            before = [(step, one) for one in task.after]
            if step:
                before.append((step - 1, number))
            if task.part is not None and not task.backward:
                since = step - 1 - problem.parts[task.part].ahead
                before.extend([(since, last[task.part])] if since >= 0 else [])
            found[step, number] = before
    return found


def _measured(
    tasks: Sequence[Task], begins: dict[tuple[int, int], float]
) -> tuple[float, tuple[float, ...], int]:
    ends = [max(begins[step, number] + task.seconds for number, task in enumerate(tasks)) for step in range(STEPS)]
    half = STEPS // 2
    busy = {lane: sum(task.seconds for task in tasks if task.lane == lane) for lane in {task.lane for task in tasks}}
    period = max((ends[-1] - ends[half - 1]) / (STEPS - half), *busy.values())  # the last steps have no later ones beside them
    last = {task.part: number for number, task in enumerate(tasks) if task.part is not None and task.backward}
    ahead = 0
    for number, task in enumerate(tasks):
        if task.part is None or task.backward or not tasks[last[task.part]].seconds:
            continue
        begun = begins[half, number]
        done = last[task.part]
        missed = sum(begins[step, done] + tasks[done].seconds > begun + 1e-12 for step in range(half))
        ahead = max(ahead, missed)
    return period, tuple(begins[half, number] for number in range(len(tasks))), ahead
