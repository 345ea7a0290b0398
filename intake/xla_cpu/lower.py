"""A program of StableHLO becomes the operations that XLA's CPU compiler fuses: calls opened, loops kept as loops.

What does not change within a loop is computed once before it, as the compiler does, where it lies until the loop ends; what a
loop carries and nobody reads is left out. Conditions of loops are not gone through: they compare numbers, or the program is not
followed.

Source: xla/service/while_loop_invariant_code_motion.cc and while_loop_simplifier.cc (github.com/openxla/xla).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from struct import pack
from typing import cast
from zlib import crc32

from intake.readers.stablehlo_program import Instruction, Program, Region, Value
from intake.xla_cpu.effort import Effort
from intake.xla_cpu.followed import check_instruction, check_program, check_value, running
from intake.xla_cpu.hlo import Body, Maker, Op, Sizes
from intake.xla_cpu.rewrite import convolution, folded, product, reduction, running_sum, select_and_scatter

_NOT_ALONE = frozenset({"constant", "reshape", "broadcast_in_dim", "iota", "reverse", "slice", "transpose", "part", "parameter"})
"""What is not worth computing before a loop for its own sake."""


def lower(program: Program, effort: Effort | None = None) -> Body:
    """Return the operations of a program.

    Args:
        program: as it was read.
        effort: how much work it may be.

    Raises:
        NotFollowed: it has something that is not followed, or is too large.
    """
    check_program(program)
    main = program.functions[program.main].region
    scope = _Scope(program, Maker(Body(effort=effort or Effort())))
    for value in main.arguments:
        scope.seen[value.number] = scope.make.parameter(*_typed(value))
    scope.make.body.returns = tuple(scope.region(main))
    return trimmed(scope.make.body)


def _typed(value: Value) -> tuple[Sizes, str]:
    check_value(value)
    return cast("tuple[Sizes, str]", value.type)


@dataclass(slots=True)
class _Scope:
    """What is visible in one body.

    Args:
        program: of it all.
        make: where its operations go.
        outer: the body around it.
        seen: operations of values, by the values' numbers.
        captured: values of the bodies around that it reads.
    """

    program: Program
    make: Maker
    outer: "_Scope | None" = None
    seen: dict[int, int] = field(default_factory=dict[int, int])
    captured: list[int] = field(default_factory=list[int])

    def of(self, number: int) -> int:
        """Return the operation of a value; one from outside becomes a parameter."""
        if number not in self.seen and self.outer is not None:
            source = self.outer.make[self.outer.of(number)]
            constant = self.outer.make.is_constant(self.outer.of(number)) and not source.shape
            self.seen[number] = self.make.scalar(source.dtype) if constant else self.make.parameter(source.shape, source.dtype)
            if not constant:
                self.captured.append(number)
        return self.seen[number]

    def region(self, region: Region) -> list[int]:
        """Add the operations of a region and return what it gives back."""
        for instruction in region.body:
            self.make.body.effort.spend(1 + len(instruction.operands))
            check_instruction(instruction)
            made = _SPECIAL.get(instruction.op, _plain)(self, instruction)
            self.seen.update(zip((result.number for result in instruction.results), made, strict=True))
        return [self.of(number) for number in region.returns]


def _numbers(instruction: Instruction) -> dict[str, tuple[int, ...]]:
    """Return the whole numbers among an operation's attributes."""
    found: dict[str, tuple[int, ...]] = {}
    for name, value in instruction.attributes.items():
        items = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
        if all(isinstance(one, int) for one in items):
            found[name] = tuple(int(cast("int", one)) for one in items)
        elif isinstance(value, str):
            found[name] = (crc32(value.encode()),)
    return found


def _plain(scope: _Scope, instruction: Instruction) -> list[int]:
    """Add an operation as it is, with `part` for each of several results."""
    make = scope.make
    operands = tuple(scope.of(number) for number in instruction.operands)
    types = [_typed(result) for result in instruction.results]
    if not types:
        return []
    at = make.add(Op(instruction.op, operands, *types[0], _numbers(instruction), tuple(types[1:])))
    if len(types) == 1:
        return [at]
    return [make.add(Op("part", (at,), *type_, {"index": (i,)})) for i, type_ in enumerate(types)]


def _constant(scope: _Scope, instruction: Instruction) -> list[int]:
    shape, dtype = _typed(instruction.results[0])
    if not instruction.attributes.get("splat") and shape:
        return [scope.make.add(Op("constant", (), shape, dtype))]
    number = instruction.attributes.get("number")
    bits = (int.from_bytes(pack("<d", number)),) if isinstance(number, float) else instruction.attributes.get("value", ())
    value = cast("tuple[int, ...]", bits)[:1] or (instruction.results[0].number,)
    scalar = scope.make.add(Op("constant", (), (), dtype, {"value": value}))
    return [scope.make.broadcast(scalar, shape, ())]


def _call(scope: _Scope, instruction: Instruction) -> list[int]:
    name = str(instruction.attributes.get("callee") or instruction.attributes.get("decomposition") or "")
    region = instruction.regions[0] if instruction.regions else scope.program.functions[name].region
    given = {value.number: scope.of(number) for value, number in zip(region.arguments, instruction.operands, strict=True)}
    inner = _Scope(scope.program, scope.make, scope if instruction.regions else None, given)
    return inner.region(region)


def _moved(scope: _Scope, instruction: Instruction) -> list[int]:
    make, at = scope.make, scope.of(instruction.operands[0])
    shape, dtype = _typed(instruction.results[0])
    numbers = _numbers(instruction)
    match instruction.op:
        case "reshape":
            return [make.reshape(at, shape)]
        case "transpose":
            turned = folded(make, at, numbers["permutation"])
            return [make.transpose(at, numbers["permutation"]) if turned is None else turned]
        case "broadcast_in_dim":
            return [make.broadcast(at, shape, numbers["broadcast_dimensions"])]
        case "convert" if make[at].dtype == dtype:
            return [at]
        case "slice" | "pad" | "concatenate" if make[at].shape == shape and make[at].dtype == dtype:
            return [at]
        case "square":
            return [make.add(Op("multiply", (at, at), shape, dtype))]
        case _:
            return _plain(scope, instruction)


def _divide(scope: _Scope, instruction: Instruction) -> list[int]:
    """Division by one number is multiplication; by numbers that are repeated, by the inverse of each."""
    make, (shape, dtype) = scope.make, _typed(instruction.results[0])
    first, second = (scope.of(number) for number in instruction.operands)
    if not dtype.startswith(("fp", "bf")):
        return _plain(scope, instruction)
    below = make[second]
    if below.name == "broadcast_in_dim" and not make.is_constant(second):
        inner = make[below.operands[0]]
        inverse = make.add(
            Op("divide", (make.broadcast(make.scalar(dtype), inner.shape, ()), below.operands[0]), inner.shape, dtype)
        )
        return [make.add(Op("multiply", (first, make.broadcast(inverse, shape, below.attributes["axes"])), shape, dtype))]
    return [make.add(Op("multiply" if make.is_constant(second) else "divide", (first, second), shape, dtype))]


def _sum(scope: _Scope, instruction: Instruction) -> list[int]:
    """What is scattered into zeros and then added is scattered into what it is added to, as gradients of lookups are."""
    make, sides = scope.make, [scope.of(number) for number in instruction.operands]
    for at, other in (sides, sides[::-1]):
        op = make[at]
        if op.name == "scatter" and make.is_constant(op.operands[0]) and make[other].name != "scatter":
            return [make.add(replace(op, operands=(other, *op.operands[1:])))]
    return _plain(scope, instruction)


def _maximum(scope: _Scope, instruction: Instruction) -> list[int]:
    """The greatest of something and a number is no more than the greatest, as the frameworks write softmax."""
    make, sides = scope.make, [scope.of(number) for number in instruction.operands]
    for at, other in (sides, sides[::-1]):
        op = make[make.body.root(at)]
        if op.name == "reduce" and op.attributes["kind"] == (crc32(b"maximum"),) and make.is_constant(other):
            return [at]
    return _plain(scope, instruction)


def _minimum(scope: _Scope, instruction: Instruction) -> list[int]:
    """The least of a number and of the greatest of something and a number keeps that within both, in one operation."""
    make, sides = scope.make, [scope.of(number) for number in instruction.operands]
    for at, most in (sides, sides[::-1]):
        op = make[at]
        if op.name == "maximum" and make.is_constant(most):
            for inner, least in (op.operands, op.operands[::-1]):
                if make.is_constant(least):
                    return [make.add(Op("clamp", (least, inner, most), op.shape, op.dtype))]
    return _plain(scope, instruction)


def _product(scope: _Scope, instruction: Instruction) -> list[int]:
    left, right = (scope.of(number) for number in instruction.operands)
    rule = convolution if instruction.op == "convolution" else product
    return [rule(scope.make, left, right, _numbers(instruction), *_typed(instruction.results[0]))]


def _reduce(scope: _Scope, instruction: Instruction) -> list[int]:
    if len(instruction.operands) != 2:
        return _plain(scope, instruction)
    kind = instruction.regions[0].body[0].op if instruction.regions and len(instruction.regions[0].body) == 1 else ""
    at, start = (scope.of(number) for number in instruction.operands)
    return [reduction(scope.make, at, start, _numbers(instruction)["dimensions"], kind)]


def _windows(scope: _Scope, instruction: Instruction) -> list[int]:
    axis = running(instruction)
    if axis is None:
        return _plain(scope, instruction)
    at, start = (scope.of(number) for number in instruction.operands)
    return [running_sum(scope.make, at, start, axis)]


def _pool_backwards(scope: _Scope, instruction: Instruction) -> list[int]:
    source, updates, start = (scope.of(number) for number in instruction.operands)
    return [select_and_scatter(scope.make, source, updates, start, _numbers(instruction))]


def _barrier(scope: _Scope, instruction: Instruction) -> list[int]:
    return [scope.of(number) for number in instruction.operands]


def _while(scope: _Scope, instruction: Instruction) -> list[int]:
    body = instruction.regions[1]
    inner = _Scope(scope.program, Maker(Body(effort=scope.make.body.effort)), scope)
    for value in body.arguments:
        inner.seen[value.number] = inner.make.parameter(*_typed(value))
    returns = inner.region(body)
    carried = [*(scope.of(number) for number in instruction.operands), *(scope.of(number) for number in inner.captured)]
    made = inner.make.body
    made.returns = (*returns, *made.parameters[len(returns) :])
    carried += _hoisted(scope.make, made, carried)
    types = [(made.ops[at].shape, made.ops[at].dtype) for at in made.parameters]
    at = scope.make.add(Op("while", tuple(carried), *types[0], {}, tuple(types[1:]), (made,)))
    still = [made.returns[i] == made.parameters[i] for i in range(len(returns))]
    return [
        carried[i] if still[i] else scope.make.add(Op("part", (at,), *types[i], {"index": (i,)})) for i in range(len(returns))
    ]


def _hoisted(make: Maker, body: Body, carried: Sequence[int]) -> list[int]:
    """Move what does not change within a loop before it; return what the loop carries for it."""
    threes = zip(body.parameters, carried, body.returns, strict=True)
    outside = {at: source for at, source, given in threes if at == given}
    still, worth = set(outside), dict[int, None]()
    for at, op in body.ops.items():
        if op.name != "parameter" and not op.bodies and all(one in still for one in op.operands):
            still.add(at)
            if op.name not in _NOT_ALONE:
                worth[at] = None
    users = body.users()
    moved = [at for at in worth if any(user == -1 or user not in worth for user in users[at])]
    for at in moved:
        body.effort.spend(len(body.parameters) // 64)
        source = _remade(make, body, at, outside)
        op = body.ops[at]
        body.ops[at] = Op("parameter", (), op.shape, op.dtype)
        body.parameters, body.returns = (*body.parameters, at), (*body.returns, at)
        outside[at] = source
    return [outside[at] for at in moved]


def _remade(make: Maker, body: Body, at: int, outside: dict[int, int]) -> int:
    """Return an operation of a loop's body, with all that it rests on, made outside."""
    todo = [at]
    while todo:
        body.effort.spend()
        op = body.ops[todo[-1]]
        missing = [one for one in op.operands if one not in outside]
        if missing and todo[-1] not in outside:
            todo.extend(missing)
            continue
        one = todo.pop()
        if one not in outside:
            outside[one] = make.add(replace(op, operands=tuple(outside[each] for each in op.operands)))
    return outside[at]


_Rule = Callable[[_Scope, Instruction], list[int]]
_SPECIAL: Mapping[str, _Rule] = {
    "constant": _constant, "call": _call, "composite": _call, "while": _while,
    "divide": _divide, "maximum": _maximum, "minimum": _minimum, "add": _sum, "dot_general": _product, "convolution": _product,
    "reduce": _reduce, "reduce_window": _windows, "select_and_scatter": _pool_backwards, "optimization_barrier": _barrier,
    **dict.fromkeys(("reshape", "transpose", "broadcast_in_dim", "convert", "slice", "pad", "concatenate", "square"), _moved),
}  # fmt: skip


def trimmed(body: Body) -> Body:
    """Return a body without what nothing needs, loops without what they carry for nobody."""
    body = body.without_dead()
    parts: dict[int, set[int]] = {}
    for op in body.ops.values():
        if op.name == "part":
            parts.setdefault(op.operands[0], set()).add(op.attributes["index"][0])
    for at, op in list(body.ops.items()):
        if op.name == "while":
            body = _narrowed(body, at, parts.get(at, set()))
    return body.without_dead()


def _narrowed(body: Body, at: int, wanted: set[int]) -> Body:
    """Return a body whose loop carries what is wanted of it, and what that rests on."""
    op = body.ops[at]
    (inner,) = op.bodies
    place = {number: i for i, number in enumerate(inner.parameters)}
    needed, before = set(wanted), -1
    while before != len(needed):
        before = len(needed)
        body.effort.spend(before)
        part = replace(inner, returns=tuple(inner.returns[i] for i in sorted(needed)), parameters=())
        needed |= {place[number] for number in part.without_dead().ops if number in place}
    kept = sorted(needed)
    slim = trimmed(
        replace(inner, parameters=tuple(inner.parameters[i] for i in kept), returns=tuple(inner.returns[i] for i in kept))
    )
    types = [((op.shape, op.dtype), *op.others)[i] for i in kept]
    new = {old: i for i, old in enumerate(kept)}
    body.effort.spend(len(body.ops))
    ops = dict(body.ops)
    ops[at] = replace(
        op,
        operands=tuple(op.operands[i] for i in kept),
        shape=types[0][0],
        dtype=types[0][1],
        others=tuple(types[1:]),
        bodies=(slim,),
    )
    for number, one in ops.items():
        if one.name == "part" and one.operands[0] == at:
            ops[number] = replace(one, attributes={"index": (new[one.attributes["index"][0]],)})
    return replace(body, ops=ops)
