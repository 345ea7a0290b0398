"""Arguments whose memory a program gives away for its results, and where XLA's CPU compiler has to copy them first.

A result can be written where its argument lay once all that reads the argument comes before, whatever the order of work is: what
is to be copied is settled before that order. Else the argument is copied when the program starts, and the copy is read.

Source: AddCopiesForAliasedInputOutputs of xla/service/copy_insertion.cc (github.com/openxla/xla).
"""

from collections.abc import Mapping
from dataclasses import replace

from intake.readers.stablehlo_program import Program
from intake.xla_cpu.copies import COPY
from intake.xla_cpu.effort import NotFollowed
from intake.xla_cpu.fusion import Kernel, kernels_of
from intake.xla_cpu.hlo import Body, Op


def donated_of(program: Program, body: Body) -> dict[int, int]:
    """Return the operation that is written into the memory of each parameter that is given away.

    Args:
        program: as it was read.
        body: of it.

    Raises:
        NotFollowed: it is open which result takes it, one takes two, or a result is another argument as it was, of a loop, a view
            or a constant.
    """
    found: dict[int, int] = {}
    for argument, result in program.functions[program.main].donated:
        if result < 0:
            raise NotFollowed("arguments given away (donated) for a result that the compiler chooses are not followed")
        given, written = body.parameters[argument], body.root(body.returns[result])
        if written != body.returns[result] or body.ops[written].name in {"part", "while", "constant", "broadcast_in_dim"}:
            raise NotFollowed("results of loops, views and constants written into arguments (donated) are not followed")
        others = [at for at in body.returns if body.root(at) == written]
        other = written in body.parameters and written != given
        if other or len(others) > 1 or written in found.values() or body.ops[given].parts[0] != body.ops[written].parts[0]:
            raise NotFollowed("results that are several at once, or other arguments, written into arguments are not followed")
        found[given] = written
    return found


def with_donated(body: Body, donated: Mapping[int, int]) -> Body:
    """Return a body in which parameters that are written into too early are copied first.

    Args:
        body: simplified.
        donated: what is written into each parameter.
    """
    if not donated:
        return body
    kernels = kernels_of(body)
    readers = _readers(body, kernels, donated)
    copies: dict[int, int] = {}
    ops = dict(body.ops)
    for given, result in donated.items():
        if given != result and not all_before(body, kernels, readers[given], result, given):
            copies[given] = max(ops) + 1
            ops[copies[given]] = Op(COPY, (given,), ops[given].shape, ops[given].dtype)
    ordered: dict[int, Op] = {}
    for at, op in body.ops.items():
        operands = tuple(copies.get(one, one) for one in op.operands)
        ordered[at] = op if operands == op.operands else replace(op, operands=operands)
        if at in copies:
            ordered[copies[at]] = ops[copies[at]]
    return replace(body, ops=ordered)


def _readers(body: Body, kernels: Mapping[int, Kernel], wanted: Mapping[int, int]) -> dict[int, set[int]]:
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
