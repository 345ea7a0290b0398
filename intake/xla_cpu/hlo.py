"""A program as XLA's CPU compiler sees it before fusion: operations of fixed shapes, equal ones made once, views made none.

Built operation by operation (`Maker`), simplified as it grows the way XLA's algebraic simplifier does where that decides what is
stored; nothing here decides what is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias
from zlib import crc32

from core.graph import DTYPE_BITS
from intake.xla_cpu.effort import MADE_STEPS, Effort

Sizes: TypeAlias = tuple[int, ...]
CHEAP = frozenset({
    "abs", "add", "and", "ceil", "clamp", "compare", "complex", "convert", "copy", "cosine", "floor", "imag", "is_finite",
    "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "real", "reduce_precision", "round_nearest_afz",
    "round_nearest_even", "select", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sine", "subtract",
    "xor",
})  # fmt: skip
DEAR = frozenset({
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cosh", "digamma", "divide", "erf", "erf_inv", "erfc",
    "exponential", "exponential_minus_one", "lgamma", "log", "log_plus_one", "logistic", "power", "remainder", "rsqrt", "sinh",
    "sqrt", "tan", "tanh",
})  # fmt: skip
ELEMENTWISE = CHEAP | DEAR
"""Operations of one element each, those that XLA does again for each reader rather than store, and those that it does not."""


@dataclass(slots=True)
class Op:
    """One operation.

    Args:
        name: in StableHLO, `part` of several results, or `window_sum` for the first half of a wide reduction.
        operands: numbers of operations.
        shape, dtype: of its result; of the first where it has several.
        attributes: whole numbers by name.
        others: shapes and dtypes of further results.
        bodies: of a loop or a branch.
    """

    name: str
    operands: tuple[int, ...]
    shape: Sizes
    dtype: str
    attributes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    others: tuple[tuple[Sizes, str], ...] = ()
    bodies: "tuple[Body, ...]" = ()

    @property
    def elements(self) -> int:
        """How many its first result has."""
        return prod(self.shape)

    @property
    def parts(self) -> tuple[int, ...]:
        """Bytes of each result."""
        return tuple(prod(shape) * DTYPE_BITS[dtype] // 8 for shape, dtype in ((self.shape, self.dtype), *self.others))


@dataclass(slots=True)
class Body:
    """Operations in order, by number.

    Args:
        ops: each after those it reads.
        parameters: numbers of what it is given.
        returns: numbers of what it gives back.
        effort: what going through it is taken from.
    """

    ops: dict[int, Op] = field(default_factory=dict[int, Op])
    parameters: tuple[int, ...] = ()
    returns: tuple[int, ...] = ()
    effort: Effort = field(default_factory=Effort)

    def root(self, at: int) -> int:
        """Return the operation that another is a plain view of."""
        while self.ops[at].name in {"reshape", "bitcast_convert"}:
            self.effort.spend()
            at = self.ops[at].operands[0]
        return at

    def users(self) -> dict[int, list[int]]:
        """Return the operations that read each one; `-1` stands for being given back."""
        self.effort.spend(len(self.ops))
        found: dict[int, list[int]] = {at: [] for at in self.ops}
        for at, op in self.ops.items():
            for operand in dict.fromkeys(op.operands):
                found[operand].append(at)
        for at in self.returns:
            found[at].append(-1)
        return found

    def without_dead(self) -> "Body":
        """Return it without what nothing needs."""
        self.effort.spend(len(self.ops))
        needed, todo = set(self.parameters), [*self.returns]
        while todo:
            self.effort.spend()
            at = todo.pop()
            if at not in needed or at in self.parameters:
                needed.add(at)
                todo.extend(one for one in self.ops[at].operands if one not in needed)
        return Body({at: op for at, op in self.ops.items() if at in needed}, self.parameters, self.returns, self.effort)


@dataclass(slots=True)
class Maker:
    """Builds a body.

    Args:
        body: so far.
        made: number of each operation by what it is, so that equal ones are made once.
    """

    body: Body = field(default_factory=Body)
    made: dict[object, int] = field(default_factory=dict[object, int])

    def __getitem__(self, at: int) -> Op:
        """Return an operation."""
        return self.body.ops[at]

    def add(self, op: Op) -> int:
        """Add an operation, or return the equal one."""
        self.body.effort.spend(MADE_STEPS + len(op.operands) + len(op.others))
        key = (op.name, op.operands, op.shape, op.dtype, tuple(sorted(op.attributes.items())))
        if op.operands and op.name in ELEMENTWISE and all(self.is_constant(one) for one in op.operands):
            number = self.add(Op("constant", (), (), op.dtype, {"value": (crc32(repr(key).encode()),)}))
            return self.broadcast(number, op.shape, ())
        unique = op.name in {"parameter", "while", "if", "case", "custom_call"} or (
            op.name == "constant" and "value" not in op.attributes
        )
        if not unique and key in self.made:
            return self.made[key]
        at = len(self.body.ops)
        self.body.ops[at] = op
        self.made[key] = at
        return at

    def parameter(self, shape: Sizes, dtype: str) -> int:
        """Add a parameter."""
        self.body.effort.spend(len(self.body.parameters) // 64)
        at = self.add(Op("parameter", (), shape, dtype))
        self.body.parameters = (*self.body.parameters, at)
        return at

    def reshape(self, at: int, shape: Sizes) -> int:
        """Look at something in another shape."""
        op = self[at]
        if op.name == "reshape":
            at = op.operands[0]
        return at if self[at].shape == shape else self.add(Op("reshape", (at,), shape, op.dtype))

    def transpose(self, at: int, order: Sizes) -> int:
        """Turn axes; a view where only axes of one element move."""
        op = self[at]
        shape = tuple(op.shape[axis] for axis in order)
        wide = [axis for axis in order if op.shape[axis] != 1]
        if wide == sorted(wide):
            return self.reshape(at, shape)
        if op.name == "transpose":
            inner = op.attributes["permutation"]
            return self.transpose(op.operands[0], tuple(inner[axis] for axis in order))
        return self.add(Op("transpose", (at,), shape, op.dtype, {"permutation": order}))

    def broadcast(self, at: int, shape: Sizes, axes: Sizes) -> int:
        """Repeat something along axes; axes of one element that are repeated are left out of it first."""
        op = self[at]
        kept = tuple(i for i, axis in enumerate(axes) if op.shape[i] == shape[axis] and op.shape[i] != 1)
        if op.elements == prod(shape):
            return self.reshape(at, shape)
        inner = self.reshape(at, tuple(op.shape[i] for i in kept))
        axes = tuple(axes[i] for i in kept)
        below = self[inner]
        if below.name == "broadcast_in_dim":
            inner, axes = below.operands[0], tuple(axes[axis] for axis in below.attributes["axes"])
        return self.add(Op("broadcast_in_dim", (inner,), shape, op.dtype, {"axes": axes}))

    def scalar(self, dtype: str) -> int:
        """Return the constant zero."""
        return self.add(Op("constant", (), (), dtype, {"value": (0,)}))

    def is_constant(self, at: int) -> bool:
        """Whether something is one constant number, repeated or not."""
        op = self[self.body.root(at)]
        repeated = op.name == "broadcast_in_dim" and self.is_constant(op.operands[0])
        return repeated or (op.name == "constant" and not op.shape)


def spread(values: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return pairs of what is written flat, such as padding low and high."""
    return tuple(zip(values[::2], values[1::2], strict=True))
