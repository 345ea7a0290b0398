"""Walks a program in the order in which it would run and writes down what each operation costs.

Calls are expanded where they stand, so that repeats keep their own places; a loop whose count the program tells is unfolded when
it is short (layers) and multiplied when it is long (time steps); of branches the costliest is taken. Nothing is computed but
whole numbers of a few elements, which are sizes and counters.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import cast

from core.graph import VIEW, Node, Shape
from core.ops import Op
from core.symbols import Extent, Polynomial, product
from intake.readers.stablehlo_build import Builder, Loop, Place, marks_of
from intake.readers.stablehlo_calls import custom_call
from intake.readers.stablehlo_loops import Counter, count_of
from intake.readers.stablehlo_names import is_backward, joined, scope_of
from intake.readers.stablehlo_operations import Made, Step, made_of
from intake.readers.stablehlo_program import Instruction, Program, Region, Type, wholes
from intake.readers.stablehlo_shapes import Known, result_shapes
from intake.readers.stablehlo_values import evaluate
from intake.readers.symbolic import Unclear

MOST_DEPTH = 60
MOST_PASSES, MOST_UNFOLDED = 160, 30_000
"""A loop of more passes, or of more operations in all of them, is multiplied, not unfolded."""
_SHARED_DTYPES = ("fp", "bf", "complex")
_scope = lru_cache(maxsize=20_000)(scope_of)


class Walk:
    """One walk through a program.

    Args:
        program: what is walked.
        build: where its tensors and nodes go.
    """

    def __init__(self, program: Program, build: Builder) -> None:
        self.program, self.build = program, build
        self._control: Mapping[str, Callable[[Instruction, dict[int, int], Place], list[int]]] = {
            "constant": self._constant, "call": self._call, "composite": self._composite, "while": self._while,
            "scan": self._scan, "if": self._branch, "case": self._branch,
        }  # fmt: skip

    def region(self, region: Region, given: Mapping[int, int], place: Place) -> list[int]:
        """Walk a region.

        Args:
            region: of the program.
            given: tensors of the values that it can see, by number.
            place: where it stands.

        Returns:
            Tensors of what it gives back.
        """
        if place.depth > MOST_DEPTH:
            raise Unclear(f"calls and loops over {MOST_DEPTH} deep")
        seen = dict(given)
        for instruction in region.body:
            self.build.step()
            try:
                made = self._control.get(instruction.op, self._leaf)(instruction, seen, place)
            except (IndexError, KeyError, TypeError, ValueError, StopIteration) as error:
                raise Unclear(f"{instruction.label[:60]} whose operands do not go together ({str(error)[:80]})") from None
            if len(made) != len(instruction.results):
                raise Unclear(f"{instruction.label[:60]} makes {len(made)} results where {len(instruction.results)} are named")
            seen.update(zip((result.number for result in instruction.results), made, strict=True))
        return [seen[number] for number in region.returns]

    def _given(self, region: Region, tensors: list[int], around: Mapping[int, int] | None = None) -> dict[int, int]:
        if len(region.arguments) != len(tensors):
            raise Unclear(f"{len(tensors)} operands where {len(region.arguments)} are taken")
        return {**(around or {}), **{value.number: at for value, at in zip(region.arguments, tensors, strict=True)}}

    def _leaf(self, instruction: Instruction, seen: dict[int, int], place: Place) -> list[int]:
        build = self.build
        taken = [seen[number] for number in instruction.operands]
        tensors = [build.tensors[at] for at in taken]
        elements = [build.known.get(at) for at in taken]
        known = Known([one.shape for one in tensors], elements, instruction.attributes, build.extents)
        shapes = result_shapes(instruction, known)
        results = tuple((shape, result.type[1]) for shape, result in zip(shapes, instruction.results, strict=True))
        values = self._values(instruction, known, shapes)
        if values is not None:
            return [self._named(instruction, shapes[0], results[0][1], values)]
        read = sum(build.root(at).shape != () for at in taken)
        operands = tuple((one.shape, one.dtype) for one in tensors)
        step = Step(instruction.op, operands, results, instruction.attributes, read, build.extents)
        made = custom_call(step) if instruction.op == "custom_call" else made_of(step)
        if made.note:
            build.note(made.note)
        return self._add(instruction, made, taken, results, place)

    def _values(self, instruction: Instruction, known: Known, shapes: tuple[Shape, ...]) -> tuple[Extent, ...] | None:
        if len(shapes) != 1 or not instruction.results[0].type[1].startswith(("int", "uint", "bool")):
            return None
        if instruction.op == "get_dimension_size":
            return (known.shapes[0][wholes(instruction.attributes, "dimension")[0]],)
        return evaluate(instruction.op, instruction.attributes, known.elements, product(shapes[0]), self.build.extents)

    def _named(self, instruction: Instruction, shape: Shape, dtype: str, values: tuple[Extent, ...]) -> int:
        at = self.build.tensor(f"{instruction.op}.{len(self.build.tensors)}", shape, dtype, "constant")
        self.build.known[at] = values
        return at

    def _add(
        self, instruction: Instruction, made: Made, taken: list[int], results: tuple[tuple[Shape, str], ...], place: Place
    ) -> list[int]:
        build = self.build
        outputs: list[int] = []
        for at, (shape, dtype) in enumerate(results):
            storage = None
            if made.work is None and taken:
                storage = build.tensors[taken[min(at, len(taken) - 1)]].storage
            elif made.in_place is not None and at == 0:
                storage = self._in_place(instruction, made.in_place, taken, shape)
            outputs.append(build.tensor(f"{instruction.op}.{len(build.tensors)}", shape, dtype, "value", storage))
        if instruction.op in {"convert", "copy"} and len(taken) == 1:
            build.derived[outputs[0]] = taken[0]
        path = joined(place.path, instruction.path)
        dtypes = [build.tensors[at].dtype for at in (*taken, *outputs)]
        dtype = next(
            (one for one in dtypes if one.startswith(_SHARED_DTYPES)), next((one for one in dtypes if one != "bool"), "bool")
        )
        phase = "backward" if is_backward(path) else "forward"
        where = (instruction.label[:100], VIEW if made.work is None else made.work.kind)
        dims, marks = ((), ()) if made.work is None else (made.work.dims, marks_of(made.work, dtype))
        if made.work is not None or outputs:
            build.node(Node(*where, dims, dtype, tuple(taken), tuple(outputs), _scope(path, place.loops), phase, marks))
        return outputs

    def _in_place(self, instruction: Instruction, operand: int, taken: list[int], shape: Shape) -> int | None:
        """Memory that an update is written into: that of its operand, where it is a value that nothing reads any more."""
        root = self.build.root(taken[operand])
        if instruction.operands[operand] not in instruction.last or root.role != "value" or root.shape != shape:
            return None
        return root.storage

    def _constant(self, instruction: Instruction, _: dict[int, int], __: Place) -> list[int]:
        shape, dtype = instruction.results[0].type
        extents = tuple(extent for extent in shape if extent is not None)
        if len(extents) != len(shape):
            raise Unclear("a constant of open shape")
        build = self.build
        name = f"constant.{len(build.tensors)}"
        whole = build.tensor(name, () if instruction.attributes.get("splat") else extents, dtype, "constant")
        values = instruction.attributes.get("value")
        at = whole
        if build.tensors[whole].shape != extents:
            at = build.tensor(f"{name}.filled", extents, dtype, "value", whole)
        if isinstance(values, tuple):
            items = cast("tuple[object, ...]", values)
            build.known[at] = tuple(one for one in items if isinstance(one, int | Polynomial))
        return [at]

    def _call(self, instruction: Instruction, seen: dict[int, int], place: Place) -> list[int]:
        taken = [seen[number] for number in instruction.operands]
        name = str(instruction.attributes.get("callee", ""))
        if instruction.regions:
            region = instruction.regions[0]
        elif name in self.program.functions:
            region = self.program.functions[name].region
        else:
            raise Unclear(f"a call of {name[:60]!r}, which the file does not have")
        first = len(self.build.nodes)
        inside = Place(joined(place.path, self._inner(instruction)), place.loops, place.depth + 1)
        made = self.region(region, self._given(region, taken), inside)
        if "threefry" in name:
            self.build.flag(first, len(self.build.nodes), "random")
        return made

    def _inner(self, instruction: Instruction) -> str:
        return str(instruction.attributes.get("path", instruction.path))

    def _inside(self, instruction: Instruction, place: Place) -> Place:
        """Where the bodies of a loop or a branch stand; locations of MLIR tell it with each operation inside."""
        return replace(place, path=joined(place.path, str(instruction.attributes.get("inside", ""))))

    def _composite(self, instruction: Instruction, seen: dict[int, int], place: Place) -> list[int]:
        if str(instruction.attributes.get("name", "")).endswith("top_k"):
            return self._leaf(replace(instruction, op="top_k", label="chlo.top_k"), seen, place)
        attributes = {**instruction.attributes, "callee": instruction.attributes.get("decomposition", "")}
        return self._call(replace(instruction, attributes=attributes), seen, place)

    def _while(self, instruction: Instruction, seen: dict[int, int], place: Place) -> list[int]:
        condition, body = instruction.regions[:2]
        carry = [seen[number] for number in instruction.operands]
        place = self._inside(instruction, place)

        def one_pass(before: list[int], where: Place) -> list[int]:
            return self.region(body, self._given(body, before, seen), where)

        mark = self.build.mark()
        trial = Place(place.path, (*place.loops, None), place.depth + 1)
        counters = [self._counter(condition, carry, seen, trial)]
        state = carry
        while len(counters) < 3 and (last := counters[-1]) is not None and last.holds:
            state = one_pass(state, trial)
            counters.append(self._counter(condition, state, seen, trial))
        count = count_of(counters, self.build.extents)
        self.build.back_to(mark)
        if count is None:
            return self._unknown(
                lambda before, where: self._with_condition(condition, one_pass, before, seen, where), carry, place
            )
        return self._repeat(one_pass, carry, count, place)

    def _with_condition(self, condition: Region, one_pass: Callable[[list[int], Place], list[int]], before: list[int],
                        seen: Mapping[int, int], where: Place) -> list[int]:  # fmt: skip
        self.region(condition, self._given(condition, before, seen), where)
        return one_pass(before, where)

    def _counter(self, condition: Region, carry: list[int], seen: Mapping[int, int], place: Place) -> Counter | None:
        """What a loop's condition compares, as far as it is known beforehand; what the condition adds is taken back."""
        mark = self.build.mark()
        known = self.build.known
        given = self._given(condition, carry, seen)
        test = next((one for one in condition.body if one.results and one.results[0].number == condition.returns[0]), None)
        sides: list[tuple[Extent, ...] | None] = [None, None]
        if test is not None and test.op == "compare":
            before = Region(condition.arguments, tuple(one for one in condition.body if one is not test), test.operands)
            sides = [known.get(at) for at in self.region(before, given, place)]
        (answer,) = self.region(condition, given, place) or [-1]
        told = known.get(answer)
        self.build.back_to(mark)
        if told is None:
            return None
        left, right = sides[0], sides[-1]
        holds = bool(self.build.extents.at(told[0]))
        if test is None or not left or not right:
            return Counter(holds, None, None, "")
        return Counter(holds, left[0], right[0], str(test.attributes.get("comparison_direction", "")))

    def _scan(self, instruction: Instruction, seen: dict[int, int], place: Place) -> list[int]:
        (body,) = instruction.regions
        (consts,), (carried,) = (wholes(instruction.attributes, name) for name in ("num_consts", "num_carry"))
        length = instruction.attributes.get("length")
        if not isinstance(length, int | Polynomial):
            raise Unclear("a scan whose length is not told")
        taken = [seen[number] for number in instruction.operands]
        fixed, stacks = taken[:consts], taken[consts + carried :]
        made = len(instruction.results) - carried
        place = self._inside(instruction, place)
        label = f"{instruction.label}."

        def one_pass(before: list[int], where: Place) -> list[int]:
            slices = [self._slice(label, stack, where) for stack in stacks]
            after = self.region(body, self._given(body, [*fixed, *before[:carried], *slices]), where)
            kept = [
                self._stack(label, whole, part, result.type, where)
                for whole, part, result in zip(before[carried:], after[carried:], instruction.results[carried:], strict=True)
            ]
            return [*after[:carried], *kept]

        if len(taken) < consts + carried or made < 0:
            raise Unclear(f"a scan of {len(taken)} operands that says it has {consts + carried}")
        state = self._repeat(one_pass, [*taken[consts : consts + carried], *[-1] * made], length, place)
        return [at if at >= 0 else self._empty(result.type) for at, result in zip(state, instruction.results, strict=True)]

    def _empty(self, type_: Type) -> int:
        return self.build.tensor(f"stack.{len(self.build.tensors)}", tuple(one for one in type_[0] if one is not None), type_[1])

    def _slice(self, label: str, stack: int, place: Place) -> int:
        build = self.build
        whole = build.tensors[stack]
        if not whole.shape:
            raise Unclear("a scan over a scalar")
        at = build.tensor(f"slice.{len(build.tensors)}", whole.shape[1:], whole.dtype)
        build.node(self._copy(f"{label}dynamic_slice", product(whole.shape[1:]), (stack,), at, place))
        return at

    def _stack(self, label: str, whole: int, part: int, type_: Type, place: Place) -> int:
        build = self.build
        shape = tuple(extent for extent in type_[0] if extent is not None)
        storage = build.tensors[whole].storage if whole >= 0 else None
        at = build.tensor(f"stack.{len(build.tensors)}", shape, type_[1], "value", storage)
        inputs = (part,) if whole < 0 else (whole, part)
        build.node(self._copy(f"{label}dynamic_update_slice", product(shape[1:]), inputs, at, place))
        return at

    def _copy(self, label: str, elements: Extent, inputs: tuple[int, ...], output: int, place: Place) -> Node:
        phase = "backward" if is_backward(place.path) else "forward"
        dtype = self.build.tensors[output].dtype
        return Node(label, "elementwise", (elements, 1, 0), dtype, inputs, (output,), _scope(place.path, place.loops), phase)

    def _repeat(
        self, one_pass: Callable[[list[int], Place], list[int]], carry: list[int], count: Extent, place: Place
    ) -> list[int]:
        """Walk a loop whose count is known: pass by pass when it is short, else once, multiplied."""
        build = self.build
        if isinstance(count, int) and count <= 0:
            return carry
        first, mark = len(build.nodes), build.mark()
        inside = Place(place.path, (*place.loops, 0), place.depth + 1)
        state = one_pass(carry, inside)
        each = len(build.nodes) - first
        if isinstance(count, int) and count <= MOST_PASSES and each * count <= MOST_UNFOLDED:
            for turn in range(1, count):
                build.carried.update(state)
                state = one_pass(state, replace(inside, loops=(*place.loops, turn)))
        else:
            build.back_to(mark)
            state = one_pass(carry, replace(inside, loops=(*place.loops, None)))
            build.multiply(first, count)
            self._forget(state, carry)
            build.note("loops of many passes are counted as one pass times their count")
        build.carried.update(state)
        build.loops.append(Loop(first, len(build.nodes), serial=count != 1))
        return state

    def _unknown(self, one_pass: Callable[[list[int], Place], list[int]], carry: list[int], place: Place) -> list[int]:
        build = self.build
        first = len(build.nodes)
        state = one_pass(carry, Place(place.path, (*place.loops, None), place.depth + 1))
        build.carried.update(state)
        build.flag(first, len(build.nodes), "data_loop", first_only=True)
        build.loops.append(Loop(first, len(build.nodes), serial=False))
        build.note("a loop whose count depends on values: counted once")
        self._forget(state, carry)
        return state

    def _forget(self, state: list[int], carry: list[int]) -> None:
        for after, before in zip(state, carry, strict=True):
            if after != before:
                self.build.known.pop(after, None)

    def _branch(self, instruction: Instruction, seen: dict[int, int], place: Place) -> list[int]:
        build = self.build
        inside = replace(self._inside(instruction, place), depth=place.depth + 1)
        taken = [seen[number] for number in instruction.operands[1:]]
        ways = [(one, self._given(one, taken, seen) if one.arguments else dict(seen)) for one in instruction.regions]
        told = build.known.get(seen[instruction.operands[0]])
        if told is not None:
            at = build.extents.at(told[0])
            chosen = (0 if at else 1) if instruction.op == "if" else at if 0 <= at < len(ways) else len(ways) - 1
            return self.region(*ways[chosen], inside)
        costs: list[int] = []
        for region, given in ways:
            mark = build.mark()
            self.region(region, given, inside)
            costs.append(self._cost(mark[1]))
            build.back_to(mark)
        first = len(build.nodes)
        made = self.region(*ways[costs.index(max(costs))], inside)
        build.flag(first, len(build.nodes), "data_loop", first_only=True)
        build.note("a branch whose side depends on values: the costliest is counted")
        return made

    def _cost(self, first: int) -> int:
        at = self.build.extents.at
        nodes = (node for node in self.build.nodes[first:] if node.dims)
        return sum(Op(node.kind, tuple(at(extent) for extent in node.dims), "fp32").flop + 1 for node in nodes)
