"""Arguments whose memory a program gives away for its results, and where XLA's CPU compiler has to copy them first.

A result can be written where its argument lay once all that reads the argument comes before, whatever the order of work is: what
is to be copied is settled before that order. Else the argument is copied when the program starts, and the copy is read.

Source: AddCopiesForAliasedInputOutputs of xla/service/copy_insertion.cc (github.com/openxla/xla).
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from intake.readers.stablehlo_program import Function, Program
from intake.xla_cpu.before import all_before, readers_of
from intake.xla_cpu.copies import COPY
from intake.xla_cpu.effort import NotFollowed
from intake.xla_cpu.fusion import kernels_of
from intake.xla_cpu.hlo import Body, Op


def written_into(function: Function) -> dict[int, int]:
    """Return the argument that each result is written into, by their places; one that is open takes the first result of its type.

    Args:
        function: whose arguments may be given away.
    """
    types = [value.type for value in function.region.arguments]
    made = chain(function.region.arguments, *(one.results for one in function.region.body))
    known = {value.number: value.type for value in made}
    results = [known.get(number) for number in function.region.returns]
    found: dict[int, int] = {}
    for argument, result in sorted(function.donated, key=lambda pair: pair[1] < 0):
        able = [result] if result >= 0 else range(len(results))
        chosen = next((at for at in able if at not in found and results[at] == types[argument]), None)
        if chosen is not None:
            found[chosen] = argument
    return found


def donated_of(program: Program, body: Body) -> dict[int, int]:
    """Return the operation that is written into the memory of each parameter that is given away.

    Args:
        program: as it was read.
        body: of it.

    Raises:
        NotFollowed: it is open which result takes it, one takes two, or a result is another argument as it was, of a loop, a view
            or a constant.
    """
    function = program.functions[program.main]
    if any(result < 0 for _, result in function.donated):
        raise NotFollowed("arguments given away (donated) for a result that the compiler chooses are not followed")
    pairs = written_into(function)
    if len(pairs) < len(function.donated):
        raise NotFollowed("a result that is written into an argument (donated) of another type, or into two, is not followed")
    found: dict[int, int] = {}
    for result, argument in pairs.items():
        given, written = body.parameters[argument], body.root(body.returns[result])
        if written != body.returns[result] or body.ops[written].name in {"part", "while", "constant", "broadcast_in_dim"}:
            raise NotFollowed("results of loops, views and constants written into arguments (donated) are not followed")
        others = [at for at in body.returns if body.root(at) == written]
        other = written in body.parameters and written != given
        if other or len(others) > 1 or written in found.values():
            raise NotFollowed("results given twice, or other arguments, written into arguments (donated) are not followed")
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
    readers = readers_of(body, kernels, donated)
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
