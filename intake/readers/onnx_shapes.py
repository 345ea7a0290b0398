"""Walks an ONNX graph: each operator's shapes and work, functions expanded, branches and loops followed.

Our own shape inference, over polynomials. What the file declares of values is only used where shapes depend on data, and for
operators that ONNX does not have.
"""

from collections import ChainMap
from collections.abc import Mapping, Sequence

from core.errors import BadInput, one_line
from core.graph import Graph, Shape
from core.symbols import Extent, Polynomial
from intake.readers import onnx_dense, onnx_elementwise, onnx_fused, onnx_index, onnx_layout
from intake.readers.draft import Done, Draft, Result, Value, Work
from intake.readers.onnx_file import Attribute, Declared, OnnxFunction, OnnxGraph, OnnxModel, OnnxNode, Reference, Stored
from intake.readers.onnx_folding import folded
from intake.readers.onnx_roles import role_of, stored_value, uses_of
from intake.readers.operations import custom, elementwise
from intake.readers.operator_step import Operator, Step
from intake.readers.symbol_names import Names, input_shape
from intake.readers.symbolic import Extents, Unclear

OPERATORS: dict[str, Operator] = {
    **onnx_elementwise.OPERATORS, **onnx_layout.OPERATORS, **onnx_index.OPERATORS, **onnx_dense.OPERATORS,
    **onnx_fused.OPERATORS,
}  # fmt: skip
_REMEDY = "export it with static shapes, or with shapes inferred into the file (onnx.shape_inference.infer_shapes)"
_MOST_CALLS, _MOST_TRIPS = 32, 1 << 31


class Walk:
    """One reading of a model.

    Args:
        model: the file.
        names: its symbols.
        extents: what is assumed of them.
        batch, length: values for open extents.
    """

    def __init__(self, model: OnnxModel, names: Names, extents: Extents, batch: int, length: int) -> None:
        self.model, self.names, self.extents = model, names, extents
        self.batch, self.length = batch, length
        self.draft = Draft(extents)
        self.uses = uses_of(model.graph.nodes)
        self.declared: Mapping[str, Declared] = model.graph.declared
        self.depth = 0
        self.missing: frozenset[str] = frozenset()

    def graph(self, title: str) -> Graph:
        """Return the whole graph."""
        graph = self.model.graph
        values: ChainMap[str, Value] = ChainMap({})
        stored = {one.name for one in graph.stored}
        for name in graph.inputs:
            if name not in stored:
                values[name] = self._input(name, graph.declared[name])
        self._store(graph.stored, values)
        self.nodes(graph.nodes, values, self.model.opsets, "")
        missing = [name for name in graph.outputs if name not in values]
        if missing:
            raise BadInput(f"an output {missing[0]!r:.60} that nothing makes", "a whole ONNX graph", "export the model again")
        return self.draft.graph("onnx", title, [values[name] for name in graph.outputs])

    def _input(self, name: str, declared: Declared) -> Value:
        if declared.form != "tensor" or not declared.dtype:
            raise BadInput(f"an input {name!r:.60} that is a {declared.form}", "tensors as inputs", "export the model without it")
        if declared.shape is None:
            raise BadInput(f"an input {name!r:.60} without a shape", "inputs with their axes", "export the model with them")
        shape = input_shape(name, declared.shape, declared.dtype, self.names, self.batch, self.length)
        self.extents.values.update(self.names.values)
        return Value(name, shape, declared.dtype, "input", self.draft.tensor(name, shape, declared.dtype, "input"))

    def _store(self, stored: Sequence[Stored], values: ChainMap[str, Value]) -> None:
        for one in stored:
            kind = self.declared[one.name].kind if one.name in self.declared else ""
            role = role_of(one, kind, self.uses.get(one.name, set()))
            value = stored_value(one, role)
            if role == "parameter":
                self.draft.index(value)
            values[one.name] = value

    def nodes(self, nodes: Sequence[OnnxNode], values: ChainMap[str, Value], opsets: Mapping[str, int], scope: str,
              given: Mapping[str, Attribute] | None = None) -> None:
        """Follow operators in order.

        Args:
            nodes: the operators.
            values: by name; results are added.
            opsets: version by domain.
            scope: of the function that they stand in.
            given: the function's own attributes.
        """
        for node in nodes:
            self.draft.step()
            attributes = _resolved(node.attributes, given)
            inputs = [self._operand(node, name, values) for name in node.inputs]
            inner = scope or node.scope
            function = self._function(node)
            try:
                if function is not None:
                    made = self._call(node, function, inputs, attributes, inner)
                elif not node.domain and node.op in {"If", "Loop", "Scan"}:
                    made = self._control(node, inputs, values, opsets, attributes, inner)
                else:
                    made = self._operator(node, inputs, opsets, attributes, inner)
            except Unclear as error:
                raise self._refused(node, str(error)) from None
            except (IndexError, KeyError, ValueError, TypeError, OverflowError, ZeroDivisionError) as error:
                raise self._refused(node, f"operands that do not fit: {error!s:.80}") from None
            for name, value in zip(node.outputs, made, strict=False):
                if name in values.maps[0]:
                    raise BadInput(f"operator {node.op} that makes {name!r:.80}, which is there already", "each value made once",
                                   _REMEDY)  # fmt: skip
                if name:
                    values[name] = value

    def _refused(self, node: OnnxNode, why: str) -> BadInput:
        where = f" {node.name!r:.80}" if node.name else ""
        return BadInput(one_line(f"operator {node.op}{where} ({why})", 260), "shapes that follow from the file", _REMEDY)

    def _operand(self, node: OnnxNode, name: str, values: ChainMap[str, Value]) -> Value | None:
        if not name or (name in self.missing and name not in values):
            return None
        if name not in values:
            raise BadInput(f"operator {node.op} that takes {name!r:.80}, which nothing makes before it", "a sorted ONNX graph",
                           "export the model again")  # fmt: skip
        return values[name]

    def _function(self, node: OnnxNode) -> OnnxFunction | None:
        functions = self.model.functions
        if not functions:
            return None
        return functions.get((node.domain, node.op, node.overload)) or functions.get((node.domain, node.op, ""))

    def _call(self, node: OnnxNode, function: OnnxFunction, inputs: list[Value | None], attributes: Mapping[str, Attribute],
              scope: str) -> list[Value]:
        if self.depth >= _MOST_CALLS:
            raise Unclear(f"functions nested over {_MOST_CALLS} deep")
        values: ChainMap[str, Value] = ChainMap({})
        for name, value in zip(function.inputs, inputs, strict=False):
            if value is not None:
                values[name] = value
        self.depth += 1
        outer, self.missing = self.missing, frozenset(function.inputs) - values.keys()
        self.nodes(function.nodes, values, {**self.model.opsets, **function.opsets}, scope, {**function.defaults, **attributes})
        self.missing = outer
        self.depth -= 1
        return [values[name] for name in function.outputs if name in values][: len(node.outputs)]

    def _operator(self, node: OnnxNode, inputs: list[Value | None], opsets: Mapping[str, int],
                  attributes: Mapping[str, Attribute], scope: str) -> list[Value]:
        name = node.op if not node.domain else f"{node.domain}.{node.op}"
        shapes = tuple(self.names.declared(self.declared[one].shape) if one in self.declared else None for one in node.outputs)
        version = opsets.get("", opsets.get("ai.onnx", 1))
        step = Step(name, tuple(inputs), attributes, max(len(node.outputs), 1), version, self.extents, shapes)
        if node.op == "Constant" and (stored := step.stored("value")) is not None and stored.known is None:
            named = Stored(node.outputs[0], stored.shape, stored.dtype)
            return [stored_value(named, role_of(named, "", self.uses.get(node.outputs[0], set())))]
        operator = OPERATORS.get(name)
        done = self._foreign(step, node) if operator is None else self._meant(operator, step, node)
        known = folded(step, done)
        made: list[Value] = []
        for place, result in enumerate(done.results):
            own = node.outputs[place] if place < len(node.outputs) else f"{node.name}.{place}"
            made.append(Value(own, result.shape, result.dtype, known=known[place], items=result.items))
        self._keep(done, inputs, made)
        self.draft.add(name, scope, [one for one in inputs if one is not None], made, _renumbered(done, inputs))
        return made

    def _keep(self, done: Done, inputs: list[Value | None], made: list[Value]) -> None:
        """Let a view of a trained tensor stay one, so that a table that is cast or transposed is still looked up as one."""
        for result, value in zip(done.results, made, strict=False):
            source = inputs[result.view_of] if result.view_of is not None and result.view_of < len(inputs) else None
            if source is not None:
                value.trained = source.trained

    def _meant(self, operator: Operator, step: Step, node: OnnxNode) -> Done:
        try:
            return operator(step)
        except Unclear:
            if step.declared and all(shape is not None for shape in step.declared):
                self.extents.notes["shapes that depend on data are taken as the file declares them"] = None
                results = self._as_declared(step, node)
                return Done(results, (elementwise(results[0].shape, len(step.shapes), 0, "dynamic_shape"),))
            raise

    def _foreign(self, step: Step, node: OnnxNode) -> Done:
        if not step.declared or any(shape is None for shape in step.declared):
            raise Unclear("not one of ONNX's own, and the file does not declare the shape of its result")
        results = self._as_declared(step, node)
        self.extents.notes[f"the arithmetic of {step.op[:80]} is not known and not counted"] = None
        return Done(results, (custom(step.op, step.shapes, [one.shape for one in results]),))

    def _as_declared(self, step: Step, node: OnnxNode) -> tuple[Result, ...]:
        first = next((one.dtype for one in step.inputs if one is not None), "fp32")
        pairs = zip(node.outputs, step.declared, strict=True)
        return tuple(Result(shape or (), self.declared[own].dtype or first) for own, shape in pairs)

    def _control(self, node: OnnxNode, inputs: list[Value | None], values: ChainMap[str, Value], opsets: Mapping[str, int],
                 attributes: Mapping[str, Attribute], scope: str) -> list[Value]:
        if self.depth >= _MOST_CALLS:
            raise Unclear(f"loops nested over {_MOST_CALLS} deep")
        self.depth += 1
        follow = {"If": self._branch, "Loop": self._loop, "Scan": self._scan}[node.op]
        made = follow(inputs, values, opsets, attributes, scope)
        self.depth -= 1
        return made

    def _body(self, body: OnnxGraph, given: Sequence[Value], values: ChainMap[str, Value], opsets: Mapping[str, int],
              scope: str) -> list[Value]:
        inner = values.new_child(dict(zip(body.inputs, given, strict=False)))
        outer, self.declared = self.declared, ChainMap(dict(body.declared), dict(self.declared))
        self._store(body.stored, inner)
        self.nodes(body.nodes, inner, opsets, scope)
        self.declared = outer
        if missing := [name for name in body.outputs if name not in inner]:
            raise Unclear(f"a result {missing[0]!r:.60} that nothing makes")
        return [inner[name] for name in body.outputs]

    def _branch(self, inputs: list[Value | None], values: ChainMap[str, Value], opsets: Mapping[str, int],
                attributes: Mapping[str, Attribute], scope: str) -> list[Value]:
        sides = [_graph_of(attributes, "then_branch"), _graph_of(attributes, "else_branch")]
        known = inputs[0].known if inputs and inputs[0] is not None else None
        if known:
            return self._body(sides[0] if known[0] else sides[1], [], values, opsets, scope)
        side = max(sides, key=_size)
        made = self._body(side, [], values, opsets, scope)
        self.extents.notes["of a branch that depends on values, the longer side is counted"] = None
        self._host("If", scope, [one for one in inputs if one is not None])
        return made

    def _host(self, op: str, scope: str, inputs: list[Value]) -> None:
        decided = Value(f"{op} decided", (), "bool")
        self.draft.add(op, scope, inputs[:1], [decided], Done((), (Work("host_sync", (1,), ("data_loop", "host_read")),)))

    def _loop(self, inputs: list[Value | None], values: ChainMap[str, Value], opsets: Mapping[str, int],
              attributes: Mapping[str, Attribute], scope: str) -> list[Value]:
        body = _graph_of(attributes, "body")
        most = inputs[0].known if inputs[0] is not None else None
        trips: Extent | None = most[0] if most and not isinstance(most[0], float) else None
        fixed = trips is not None and _runs_on(body) and (isinstance(trips, Polynomial) or trips < _MOST_TRIPS)
        count: Extent = trips if fixed and trips is not None else 1
        carried = [one for one in inputs[2:] if one is not None]
        if not fixed:
            self.extents.notes["a loop whose count depends on values is counted once"] = None
            self._host("Loop", scope, [one for one in inputs[:2] if one is not None])
        turn = Value("step", (), "int64", index=self.draft.tensor("step", (), "int64", "value"))
        start = [turn, Value("go", (), "bool", known=(1,))]
        made = self._repeated(body, [*start, *map(self._fresh, carried)], count, values, opsets, scope)[1:]
        final = [self._grown(before, after, count) for before, after in zip(carried, made, strict=False)]
        return [*final, *(_stacked(one, count) for one in made[len(carried) :])]

    def _scan(self, inputs: list[Value | None], values: ChainMap[str, Value], opsets: Mapping[str, int],
              attributes: Mapping[str, Attribute], scope: str) -> list[Value]:
        body, given = _graph_of(attributes, "body"), [one for one in inputs if one is not None]
        count = attributes.get("num_scan_inputs")
        if not isinstance(count, int) or not 0 < count <= len(given) or opsets.get("", 9) < 9:
            raise Unclear("a scan without inputs to run over")
        axes = attributes.get("scan_input_axes")
        states, rows = given[: len(given) - count], given[len(given) - count :]
        chosen = [one if isinstance(one, int) else 0 for one in axes] if isinstance(axes, tuple) else [0] * count
        trips = rows[0].shape[chosen[0]]
        parts = [self._row(one, axis) for one, axis in zip(rows, chosen, strict=True)]
        made = self._repeated(body, [*map(self._fresh, states), *parts], trips, values, opsets, scope)
        return [*made[: len(states)], *(_stacked(one, trips) for one in made[len(states) :])]

    def _row(self, value: Value, axis: int) -> Value:
        axis %= len(value.shape)
        shape = (*value.shape[:axis], *value.shape[axis + 1 :])
        source = self.draft.tensors[self.draft.index(value)].storage
        index = self.draft.tensor(value.name, shape, value.dtype, "value", source)
        return Value(f"{value.name} row", shape, value.dtype, index=index)

    def _fresh(self, value: Value) -> Value:
        """Return a carried value without its elements, since they change from step to step."""
        if value.items is not None:
            return value
        return Value(value.name, value.shape, value.dtype, value.role, self.draft.index(value))

    def _repeated(self, body: OnnxGraph, given: list[Value], count: Extent, values: ChainMap[str, Value],
                  opsets: Mapping[str, int], scope: str) -> list[Value]:
        repeats, serial = self.draft.repeats, self.draft.serial
        self.draft.repeats, self.draft.serial = repeats * count, True
        made = self._body(body, given, values, opsets, scope)
        self.draft.repeats, self.draft.serial = repeats, serial
        return made

    def _grown(self, before: Value, after: Value, count: Extent) -> Value:
        if after.items is not None and before.items is not None:
            new = after.items[len(before.items) :]
            if new and isinstance(count, int) and count <= 4096:
                return Value(after.name, (), after.dtype, items=(*before.items, *new * count))
            return after
        if len(before.shape) != len(after.shape) or before.shape == after.shape:
            return Value(after.name, after.shape, after.dtype, after.role, self.draft.index(after))
        shape: Shape = tuple(one + (other - one) * count for one, other in zip(before.shape, after.shape, strict=True))
        self.extents.notes["what grows from step to step of a loop is counted at its first size"] = None
        return Value(after.name, shape, after.dtype)


def _stacked(value: Value, count: Extent) -> Value:
    return Value(value.name, (count, *value.shape), value.dtype)


def _graph_of(attributes: Mapping[str, Attribute], name: str) -> OnnxGraph:
    found = attributes.get(name)
    if not isinstance(found, OnnxGraph):
        raise Unclear(f"no graph {name!r}")
    return found


def _size(graph: OnnxGraph) -> int:
    inner = (value for node in graph.nodes for value in node.attributes.values() if isinstance(value, OnnxGraph))
    return len(graph.nodes) + sum(map(_size, inner))


def _runs_on(body: OnnxGraph) -> bool:
    """Whether a loop's body never ends it early: its condition is the one that it was given, or a constant."""
    made = {name: node for node in body.nodes for name in node.outputs}
    name = body.outputs[0] if body.outputs else ""
    for _ in range(16):
        node = made.get(name)
        if node is None:
            return name in body.inputs[1:2] or any(one.name == name and one.known == (1,) for one in body.stored)
        if node.op == "Constant":
            return True
        if node.op not in {"Identity", "Cast"} or not node.inputs:
            return False
        name = node.inputs[0]
    return False


def _resolved(attributes: Mapping[str, Attribute], given: Mapping[str, Attribute] | None) -> Mapping[str, Attribute]:
    if not any(isinstance(value, Reference) for value in attributes.values()):
        return attributes
    own = given or {}
    found: dict[str, Attribute] = {}
    for name, value in attributes.items():
        if not isinstance(value, Reference):
            found[name] = value
        elif value.name in own:
            found[name] = own[value.name]
    return found


def _renumbered(done: Done, inputs: list[Value | None]) -> Done:
    """Count a view's operand among the operands that are there."""
    if all(one is not None for one in inputs):
        return done
    places = {place: sum(one is not None for one in inputs[:place]) for place in range(len(inputs))}
    moved = (Result(one.shape, one.dtype, one.known, places.get(one.view_of) if one.view_of is not None else None, one.items)
             for one in done.results)  # fmt: skip
    return Done(tuple(moved), done.work)
