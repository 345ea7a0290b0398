"""Where XLA's CPU compiler copies something because a loop or a scatter writes into it while it is still needed as it was.

Source: xla/service/copy_insertion.cc (github.com/openxla/xla).
"""

from collections.abc import Collection
from dataclasses import replace

from intake.xla_cpu.before import all_before, readers_of
from intake.xla_cpu.fusion import IN_PLACE, kernels_of
from intake.xla_cpu.hlo import Body, Op

COPY = "copied"
"""Name of the operation that is added."""


def with_copies(body: Body, donated: Collection[int] = ()) -> Body:
    """Return a body in which nothing is written into that has another use; of several that write, the last needs no copy.

    Unless it is a loop that something else may read beside, as far as what depends on what tells.

    Args:
        body: simplified.
        donated: parameters that may be written into.
    """
    slots: dict[int, list[tuple[int, int]]] = {}
    for at, op in body.ops.items():
        for slot in _written(op):
            slots.setdefault(body.root(op.operands[slot]), []).append((at, slot))
    if not slots:
        return body
    kernels = kernels_of(body)
    readers = readers_of(body, kernels, slots)
    copies: dict[tuple[int, int], int] = {}
    after: dict[int, list[int]] = {}
    ops = dict(body.ops)
    for source, takers in slots.items():
        given = body.ops[source].name in {"parameter", "constant"} and source not in donated
        inside = given and source in body.parameters and len(takers) == 1
        last = takers[-1][0]
        early = body.ops[last].name == "while" and not all_before(body, kernels, readers[source] - {last}, last, source)
        for at, slot in takers if early or (given and not inside) else takers[:-1]:
            operand = body.ops[at].operands[slot]
            body.effort.spend(len(ops))
            new = max(ops) + 1
            ops[new] = Op(COPY, (operand,), ops[operand].shape, ops[operand].dtype)
            copies[at, slot] = new
            after.setdefault(operand, []).append(new)
    if not copies:
        return body
    ordered: dict[int, Op] = {}
    for at, op in body.ops.items():
        operands = tuple(copies.get((at, slot), one) for slot, one in enumerate(op.operands))
        ordered[at] = op if operands == op.operands else replace(op, operands=operands)
        ordered.update({new: ops[new] for new in after.get(at, ())})
    return replace(body, ops=ordered)


def _written(op: Op) -> list[int]:
    """Return the operands that an operation writes into."""
    if op.name == "while":
        (inner,) = op.bodies
        return [i for i, (at, given) in enumerate(zip(inner.parameters, inner.returns, strict=True)) if at != given]
    return [IN_PLACE[op.name]] if op.name in IN_PLACE else []
