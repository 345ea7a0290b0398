"""In which order XLA's CPU compiler runs kernels: breadth first, all that is ready before anything that becomes so.

Among the readers of one result, those come first that the program's first results rest on.

Source: BFScheduler of xla/hlo/transforms/simplifiers/hlo_memory_scheduler.cc, which the CPU compiler takes by default
(`xla_cpu_enable_concurrency_optimized_scheduler`): independent work can run at once, at the cost of memory.
"""

from collections import deque

from intake.xla_cpu.effort import Effort
from intake.xla_cpu.fusion import Kernel
from intake.xla_cpu.hlo import Body


def ordered(body: Body, kernels: dict[int, Kernel]) -> list[int]:
    """Return the operations whose results are seen outside their kernel, views of them and what is given, as they are run.

    Args:
        body: of them.
        kernels: of the body.
    """
    wanted = {*body.returns, *body.parameters, *kernels, *(one for kernel in kernels.values() for one in kernel.reads(body))}
    todo = list(wanted)
    while todo:  # views of views
        at = todo.pop()
        for one in () if at in kernels else body.ops[at].operands:
            if one not in wanted:
                wanted.add(one)
                todo.append(one)
    reads = {
        at: list(dict.fromkeys(kernels[at].reads(body) if at in kernels else body.ops[at].operands)) for at in sorted(wanted)
    }
    place = _depth_first(reads, body.returns, body.effort)
    users: dict[int, list[int]] = {}
    for at in sorted(reads, key=lambda at: place.get(at, -1)):
        for one in reads[at]:
            users.setdefault(one, []).append(at)
    left = {at: len(operands) for at, operands in reads.items()}
    rank = {"parameter": 0, "constant": 1}
    first = [at for at, count in left.items() if not count]
    ready = deque(
        sorted(first, key=lambda at: (rank.get(body.ops[at].name, 2), place.get(at, -1) * (body.ops[at].name != "parameter")))
    )
    found: list[int] = []
    while ready:
        at = ready.popleft()
        found.append(at)
        for user in users.get(at, ()):
            left[user] -= 1
            if not left[user]:
                ready.append(user)
    return found


def _depth_first(reads: dict[int, list[int]], returns: tuple[int, ...], effort: Effort) -> dict[int, int]:
    """Return the place of each operation where each comes right after what it reads, from the first result on."""
    place: dict[int, int] = {}
    todo = [*reversed(returns)]
    while todo:
        at = todo[-1]
        effort.spend(1 + len(reads[at]))
        missing = [one for one in reads[at] if one not in place]
        if at in place or not missing:
            todo.pop()
            place.setdefault(at, len(place))
        else:
            todo.extend(reversed(missing))
    return place
