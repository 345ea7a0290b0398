"""In which order XLA's CPU compiler runs kernels: breadth first, all that is ready before anything that becomes so.

Source: BFScheduler of xla/hlo/transforms/simplifiers/hlo_memory_scheduler.cc, which the CPU compiler takes by default
(`xla_cpu_enable_concurrency_optimized_scheduler`): independent work can run at once, at the cost of memory.
"""

from collections import deque

from intake.compiled.fusion import Kernel
from intake.compiled.hlo import Body


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
    users: dict[int, list[int]] = {}
    for at, operands in reads.items():
        for one in operands:
            users.setdefault(one, []).append(at)
    left = {at: len(operands) for at, operands in reads.items()}
    rank = {"parameter": 0, "constant": 1}
    ready = deque(sorted((at for at, count in left.items() if not count), key=lambda at: rank.get(body.ops[at].name, 2)))
    found: list[int] = []
    while ready:
        at = ready.popleft()
        found.append(at)
        for user in users.get(at, ()):
            left[user] -= 1
            if not left[user]:
                ready.append(user)
    return found
