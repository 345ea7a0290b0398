"""Which kernels read something, and whether all of them come before what is written in its place, whatever the order of work is.

What XLA's CPU compiler copies is settled before the order of work is, by what depends on what.

Source: xla/service/copy_insertion.cc (github.com/openxla/xla).
"""

from collections.abc import Collection, Mapping

from intake.xla_cpu.fusion import Kernel
from intake.xla_cpu.hlo import Body


def readers_of(body: Body, kernels: Mapping[int, Kernel], wanted: Collection[int]) -> dict[int, set[int]]:
    """Return the kernels that read each of some operations, themselves or through views."""
    found: dict[int, set[int]] = {at: set() for at in wanted}
    for at, kernel in kernels.items():
        for one in kernel.reads(body):
            if (owner := owner_of(body, kernels, one)) in found:
                found[owner].add(at)
    return found


def owner_of(body: Body, kernels: Mapping[int, Kernel], at: int) -> int:
    """Return the operation that something is a view of."""
    while at not in kernels and body.ops[at].name in {"reshape", "bitcast_convert"}:
        body.effort.spend()
        at = body.ops[at].operands[0]
    return at


def all_before(body: Body, kernels: Mapping[int, Kernel], readers: set[int], writer: int, given: int) -> bool:
    """Whether all that reads something given comes before what is written in its place, whatever the order of work is.

    Args:
        body: of them.
        kernels: of the body.
        readers: kernels that read it.
        writer: the operation whose result takes its place.
        given: it.
    """
    kernel = kernels.get(owner_of(body, kernels, writer))
    if kernel is None:
        return True
    inside = given in kernel.shared(body)
    left = {one for one in readers if one != kernel.at or not inside}
    todo, seen = [*kernel.reads(body)], set[int]()
    while todo and left:
        body.effort.spend()
        at = todo.pop()
        if at not in seen:
            seen.add(at)
            left.discard(at)
            todo += kernels[at].reads(body) if at in kernels else body.ops[at].operands
    return not left
