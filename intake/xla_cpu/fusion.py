"""Which operations XLA's CPU compiler computes inside others, so that they never reach memory, and what then is one kernel.

Sources (github.com/openxla/xla): service/instruction_fusion.cc and service/cpu/cpu_instruction_fusion.cc. An operation is
computed inside each of its readers that can take it, over again for each where that is cheap; where one of them needs it in
memory, it is stored as well, and not done again if it reads more than it makes.
"""

from dataclasses import dataclass, field

from intake.xla_cpu.effort import JOIN_STEPS
from intake.xla_cpu.hlo import DEAR, ELEMENTWISE, Body, Op
from intake.xla_cpu.library import calls

_MOVES = frozenset({
    "reshape", "bitcast_convert", "broadcast_in_dim", "concatenate", "dynamic_slice", "dynamic_update_slice", "iota", "pad",
    "reverse", "slice", "transpose",
})  # fmt: skip
_FUSED = ELEMENTWISE | _MOVES | {"gather", "reduce"}
IN_PLACE = {"dynamic_update_slice": 0, "scatter": 0}
"""Operations that are written into one of their operands, and which."""
_MOST_JOINED, _LONG_ROW = 8, 128
"""A concatenation of more operands, or along the last axis to rows of at least so many elements, stands alone."""


@dataclass(slots=True)
class Kernel:
    """What is computed in one go.

    Args:
        at: the operation whose result is stored.
        members: operations computed in it.
        plain: those whose result goes into the stored one element by element.
        spread: those whose elements are needed more than once.
    """

    at: int
    members: set[int] = field(default_factory=set[int])
    plain: set[int] = field(default_factory=set[int])
    spread: set[int] = field(default_factory=set[int])

    def reads(self, body: Body) -> list[int]:
        """Return what it takes from outside, in order."""
        body.effort.spend(len(self.members))
        found = (one for at in sorted(self.members, reverse=True) for one in body.ops[at].operands)
        return list(dict.fromkeys(one for one in found if one not in self.members))

    def shared(self, body: Body) -> list[int]:
        """Return those of its operands whose place its result may take."""
        op = body.ops[self.at]
        if self.members == {self.at} and op.name in IN_PLACE:
            return [op.operands[IN_PLACE[op.name]]]
        first = op.operands[0] if op.name in IN_PLACE else -1
        able: list[int] = []
        for one in self.reads(body):
            body.effort.spend(len(self.members))
            readers = [at for at in self.members if one in body.ops[at].operands]
            if all(at in self.plain and body.ops[at].name in ELEMENTWISE for at in readers) or (
                one == first and readers == [self.at]
            ):
                able.append(one)
        return able


def kernels_of(body: Body) -> dict[int, Kernel]:
    """Return the kernels of a body, by the operation whose result they store; parameters, constants and views are none.

    Args:
        body: simplified.
    """
    users, library = body.users(), calls(body)
    found: dict[int, Kernel] = {}
    inside: dict[int, list[int]] = {}
    for at in reversed(list(body.ops)):
        op = body.ops[at]
        body.effort.spend(1 + len(users[at]))
        if op.name in {"parameter", "part"} or (op.name == "constant" and op.shape):
            continue
        if at in library:
            out = library[at]
            kernel = found.setdefault(out, Kernel(out))
            kernel.members.add(at)
            inside[at] = []
            continue
        able = [] if op.name not in _FUSED and op.name != "constant" else _takers(body, users, found, inside, at)
        wanted = [kernel for user in users[at] for kernel in (inside.get(user) or [-1])]
        everywhere = all(kernel in able for kernel in wanted) and bool(wanted)
        if op.name == "constant":
            able, everywhere = [one for one in able if len(found[one].members) > 1], True
        if not everywhere and (_is_dear(op) or _reads_more(body, op)):
            able = []
        elif _is_dear(op) and len(able) > 1:
            able, everywhere = [], False
        for one in able:
            _join(body, users, found[one], at)
        inside[at] = list(able)
        if not everywhere:
            found[at] = Kernel(at, {at}, {at})
            inside[at].append(at)
    return {at: kernel for at, kernel in found.items() if kernel.members != {at} or body.ops[at].name != "reshape"}


def _takers(
    body: Body, users: dict[int, list[int]], found: dict[int, Kernel], inside: dict[int, list[int]], at: int
) -> list[int]:
    """Return the kernels of its users that can compute an operation themselves."""
    op = body.ops[at]
    able: dict[int, bool] = {}
    for user in users[at]:
        if user == -1:
            continue
        for one in inside.get(user, []):
            body.effort.spend()
            kernel = found[one]
            out = body.ops[one]
            alone = any(_stands_alone(each) for each in ([op] if kernel.members != {one} else [op, out]))
            spread = user in kernel.spread or body.ops[user].name == "broadcast_in_dim"
            fits = out.name in _FUSED and not alone and not (_is_dear(op) and spread)
            able[one] = able.get(one, True) and fits
    return [one for one, fits in able.items() if fits]


def _join(body: Body, users: dict[int, list[int]], kernel: Kernel, at: int) -> None:
    body.effort.spend(JOIN_STEPS + len(users[at]))
    readers = [user for user in users[at] if user in kernel.members]
    kernel.members.add(at)
    if all(user in kernel.plain and body.ops[user].name in ELEMENTWISE for user in readers):
        kernel.plain.add(at)
    if any(user in kernel.spread or body.ops[user].name == "broadcast_in_dim" for user in readers):
        kernel.spread.add(at)


def _stands_alone(op: Op) -> bool:
    if op.name != "concatenate":
        return False
    (axis,) = op.attributes["dimension"]
    last = len(op.shape) > 1 and axis == len(op.shape) - 1
    return len(op.operands) > _MOST_JOINED or (last and op.shape[axis] >= _LONG_ROW)


def _is_dear(op: Op) -> bool:
    return op.name in DEAR or op.name in {"gather", "reduce"}


def _reads_more(body: Body, op: Op) -> bool:
    """Whether an operation has several operands as wide as its result, and more elements in them than it makes."""
    rank = sum(size != 1 for size in op.shape)
    wide = [one for one in op.operands if not _is_light(body.ops[one]) and sum(size != 1 for size in body.ops[one].shape) >= rank]
    return len(wide) > 1 and sum(body.ops[one].elements for one in dict.fromkeys(op.operands)) > op.elements


def _is_light(op: Op) -> bool:
    return op.name in {"broadcast_in_dim", "iota"} or (op.name == "constant" and op.elements == 1)
