"""Which results of a traced step never reach memory, because XLA computes them inside what reads them.

A graph has one operation for each of the program's; compiled, an elementwise operation that only others like it read is made
where it is read, element by element. Its memory is that of its largest operand then, which has to be kept for so long. Without
this, the activations of a step written out in single operations would look several times as large as they are.

Source: XLA's instruction fusion (github.com/openxla/xla, xla/service/instruction_fusion.cc): a producer is fused into each of its
users; one that is expensive, or has several users, only where none of them needs it in memory, and it is not computed twice.
"""

from collections.abc import Sequence
from dataclasses import replace

from core.graph import VIEW, Node, Tensor
from core.symbols import product
from intake.readers.stablehlo_build import Builder

_FUSED_INTO = frozenset({"elementwise", "reduce"})
_KEPT = ("dynamic_update_slice", "scatter", "concatenate")
"""Operations that are written to memory for their own sake."""
CHEAP = 1
"""FLOPs of one element up to which an operation is rather done again for each user than stored."""


def fuse(build: Builder, outputs: Sequence[int]) -> None:
    """Make each tensor that never reaches memory share that of its largest operand, and note after which node each dies.

    Args:
        build: what was walked; its tensors are changed.
        outputs: tensors of the answer.
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
    for at, one in enumerate(tensors):
        storage = lies_in.get(one.storage, one.storage)
        own = storage == at and one.role == "value" and at not in answered
        tensors[at] = replace(one, storage=storage, dies=last.get(at) if own else None)


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
