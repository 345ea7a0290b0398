"""Which results of a traced step never reach memory, because XLA computes them inside what reads them.

A graph has one operation for each of the program's; compiled, an elementwise operation that only others like it read is made
where it is read, element by element. Its memory is that of its largest operand then, which has to be kept for so long. Without
this, the activations of a step written out in single operations would look several times as large as they are.

An elementwise result that is stored takes the place of an operand of its size that nothing reads any more, and what is written
into an operand (an update, a scatter) takes that operand's.

Source: XLA's instruction fusion (github.com/openxla/xla, xla/service/instruction_fusion.cc): a producer is fused into each of its
users; one that is expensive, or has several users, only where none of them needs it in memory, and it is not computed twice. Its
dataflow analysis (xla/hlo/analysis/hlo_dataflow_analysis.cc, CanShareOperandBufferWithUser): who may take an operand's place.
"""

from collections.abc import Sequence
from dataclasses import replace

from core.graph import DTYPE_BITS, VIEW, Node, Tensor
from core.symbols import product
from intake.readers.stablehlo_build import Builder

_FUSED_INTO = frozenset({"elementwise", "reduce"})
_WRITTEN_INTO = ("dynamic_update_slice", "scatter")
_KEPT = ("dynamic_update_slice", "scatter", "concatenate")
"""Operations that are written to memory for their own sake."""
CHEAP = 1
"""FLOPs of one element up to which an operation is rather done again for each user than stored."""


def fuse(build: Builder, outputs: Sequence[int], *, joined: bool) -> None:
    """Note of each tensor after which node its memory is free, and which never reach memory.

    Args:
        build: what was walked; its tensors are changed.
        outputs: tensors of the answer.
        joined: whether one that never reaches memory shares that of its largest operand from now on. Of a pass whose backward
            pass is still to be derived, which of them are kept is not known yet: there they only die before they are made.
    """
    tensors, nodes = build.tensors, build.nodes
    users = _users(tensors, nodes)
    answered = {tensors[at].storage for at in outputs}
    stored = answered | {tensors[at].storage for at in build.carried if at >= 0}
    lies_in: dict[int, int] = {}
    reads: dict[int, tuple[int, ...]] = {}
    for node in nodes:
        for at in node.outputs:
            if tensors[at].storage != at or at in stored or not _is_fused(node, users.get(at, ())):
                continue
            sources = dict.fromkeys(tensors[one].storage for one in node.inputs)
            held = tuple(dict.fromkeys(one for source in sources for one in reads.get(source, (source,))))
            reads[at] = held
            lies_in[at] = max(held, key=lambda one: build.extents.at(product(tensors[one].shape)))
    last = _last_uses(tensors, nodes, reads)
    _take_places(build, reads, last, stored)
    born = {at: moment for moment, node in reversed([*enumerate(nodes)]) for at in node.outputs}
    for at, one in enumerate(tensors):
        storage = lies_in.get(one.storage, one.storage) if joined else one.storage
        own = storage == at and one.role == "value" and at not in answered
        gone = max(0, born.get(at, 0) - 1) if at in lies_in else last.get(at)
        tensors[at] = replace(one, storage=storage, dies=gone if own else None)


def _take_places(build: Builder, reads: dict[int, tuple[int, ...]], last: dict[int, int], stored: set[int]) -> None:
    """Let operands whose place a result takes die before that result is made; `last` is changed."""
    tensors = build.tensors
    for moment, node in enumerate(build.nodes):
        written = node.op.endswith(_WRITTEN_INTO)
        for at in node.outputs:
            if tensors[at].storage != at or at in reads or not (written or node.kind == "elementwise") or not node.inputs:
                continue
            sources = [tensors[one].storage for one in (node.inputs[:1] if written else node.inputs)]
            held = dict.fromkeys(one for source in sources for one in reads.get(source, (source,)))
            free = (one for one in held if last.get(one) == moment and one not in stored and one != at and _alike(build, one, at))
            taken = next(free, None)
            if taken is not None:
                last[taken] = moment - 1


def _alike(build: Builder, one: int, other: int) -> bool:
    """Whether two pieces of memory are results of one size."""
    first, second = build.tensors[one], build.tensors[other]
    same = DTYPE_BITS[first.dtype] == DTYPE_BITS[second.dtype] and product(first.shape) == product(second.shape)
    return same and first.role == "value"


def _is_fused(node: Node, users: Sequence[Node]) -> bool:
    if node.kind != "elementwise" or node.op.endswith(_KEPT) or not users or not node.inputs:
        return False
    each = node.dims[2]
    again = len(users) == 1 or (isinstance(each, int) and each <= CHEAP)
    return again and all(one.kind in _FUSED_INTO and not one.op.endswith(_KEPT) for one in users)


def _users(tensors: Sequence[Tensor], nodes: Sequence[Node]) -> dict[int, list[Node]]:
    """Operations that read each piece of memory, through views of it too; a view computes nothing and is none."""
    found: dict[int, list[Node]] = {}
    for node in nodes:
        if node.kind != VIEW:
            for storage in dict.fromkeys(tensors[at].storage for at in node.inputs):
                found.setdefault(storage, []).append(node)
    return found


def _last_uses(tensors: Sequence[Tensor], nodes: Sequence[Node], reads: dict[int, tuple[int, ...]]) -> dict[int, int]:
    last: dict[int, int] = {}
    for moment, node in enumerate(nodes):
        for at in (*node.inputs, *node.outputs):
            storage = tensors[at].storage
            for one in reads.get(storage, (storage,)):
                last[one] = moment
    return last
