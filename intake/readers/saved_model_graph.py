"""Walks a TensorFlow graph from its answers back: shapes and work of each operation, calls, branches and loops followed.

Only what the signature's answers need is read, so saving, restoring and training helpers are left out. A handle of a variable is
held as the variable itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.errors import BadInput, one_line
from core.graph import Graph, Shape
from core.symbols import Extent, Polynomial
from intake.readers import tf_dense, tf_elementwise, tf_index, tf_layout
from intake.readers.draft import Done, Draft, Result, Value, Work
from intake.readers.onnx_file import Attribute, Stored
from intake.readers.onnx_folding import folded
from intake.readers.operations import custom
from intake.readers.operator_step import Operator, Step
from intake.readers.saved_model_file import Signature, TfFunction, TfModel, TfNode
from intake.readers.symbol_names import Names, input_shape
from intake.readers.symbolic import Extents, Unclear

OPERATORS: dict[str, Operator] = {
    **tf_elementwise.OPERATORS, **tf_layout.OPERATORS, **tf_index.OPERATORS, **tf_dense.OPERATORS,
}  # fmt: skip
_CALLS = ("PartitionedCall", "StatefulPartitionedCall", "TPUPartitionedCall", "RemoteCall")
_VARIABLES = ("VarHandleOp", "VariableV2", "Variable")
_NOTHING = ("NoOp", "Assert", "PrintV2", "Print", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
_SAME = (*tf_elementwise.SAME, "Enter", "Exit", "NextIteration", "RefEnter", "RefExit", "RefNextIteration")
_HOST = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
_ELEMENT = {
    "Add": "Add", "AddV2": "Add", "Sub": "Sub", "Mul": "Mul", "RealDiv": "Div", "Div": "Div", "FloorDiv": "Div",
    "FloorMod": "Mod", "Mod": "Mod",
    "Maximum": "Max", "Minimum": "Min", "Pow": "Pow", "Equal": "Equal", "Greater": "Greater", "Less": "Less",
    "GreaterEqual": "GreaterOrEqual", "LessEqual": "LessOrEqual", "LogicalAnd": "And", "LogicalOr": "Or", "LogicalNot": "Not",
    "Neg": "Neg", "Abs": "Abs", "Sqrt": "Sqrt", "Floor": "Floor", "Ceil": "Ceil", "Round": "Round", "SelectV2": "Where",
    "Cast": "Cast", "Prod": "ReduceProd", "Sum": "ReduceSum", "Max": "ReduceMax", "Min": "ReduceMin",
}  # fmt: skip
"""Operations on small known tensors, as `onnx_folding` names them."""
_REMEDY = "save the model with a fixed input signature, or convert it to ONNX"
_MOST_CALLS = 64


class TfWalk:
    """One reading of a model."""

    def __init__(self, model: TfModel, names: Names, extents: Extents, batch: int, length: int) -> None:
        self.model, self.names, self.extents = model, names, extents
        self.batch, self.length = batch, length
        self.draft = Draft(extents)
        self.variables: dict[str, Value] = {}
        self.depth = 0
        self.frozen = not any(node.op in _VARIABLES for node in model.nodes.values())

    def graph(self, title: str, signature: Signature) -> Graph:
        """Return the whole graph of one signature."""
        given: dict[str, list[Value]] = {}
        for tensor, shape, dtype in signature.inputs:
            name = tensor.split(":")[0]
            if shape is None:
                raise BadInput(f"an input {name!r:.60} without a shape", "inputs with their axes", _REMEDY)
            extents = input_shape(name, shape, dtype, self.names, self.batch, self.length)
            self.extents.values.update(self.names.values)
            given[name] = [Value(name, extents, dtype, "input", self.draft.tensor(name, extents, dtype, "input"))]
        return self.draft.graph("saved_model", title, self.answers(self.model.nodes, given, signature.outputs))

    def answers(self, nodes: Mapping[str, TfNode], given: dict[str, list[Value]], wanted: Sequence[str]) -> list[Value]:
        """Return the values of tensors, after everything that they need.

        Args:
            nodes: by name.
            given: values that are there already, by name of node or argument.
            wanted: references such as `dense/MatMul:0`.
        """
        values, open_nodes = dict(given), set[str]()
        stack = [_source(one) for one in reversed(wanted)]
        while stack:
            name = stack[-1]
            if name in values:
                stack.pop()
                continue
            if name not in nodes:
                raise BadInput(f"an operation {name!r:.80} that the graph does not have", "a whole graph", "save the model again")
            node = nodes[name]
            needed = node.inputs[:1] if node.op in {"Merge", "RefMerge"} else node.inputs
            missing = [source for one in needed if (source := _source(one)) not in values]
            if missing and name in open_nodes:
                raise BadInput(f"operations in a circle at {name!r:.80}", "a graph without circles", _REMEDY)
            if missing:
                open_nodes.add(name)
                stack.extend(reversed(missing))
                continue
            values[name] = self._followed(node, [self._pick(one, values, nodes) for one in needed])
            stack.pop()
        return [self._pick(one, values, nodes) for one in wanted]

    def _pick(self, reference: str, values: Mapping[str, list[Value]], nodes: Mapping[str, TfNode]) -> Value:
        parts = reference.split(":")
        made, last = values[parts[0]], parts[-1]
        at = int(last) if len(parts) > 1 and last.isdigit() and len(last) < 9 else 0
        if len(parts) == 3 and parts[0] in nodes:
            at += self._offset(nodes[parts[0]], parts[1])
        if at >= len(made):
            raise BadInput(f"answer {at} of {parts[0]!r:.80}, which has {len(made)}", "a whole graph", "save the model again")
        return made[at]

    def _offset(self, node: TfNode, answer: str) -> int:
        """Return how many tensors lie before an answer's first one."""
        at = 0
        for name, many in self.model.answers.get(node.op, ()):
            if name == answer:
                return at
            count = node.attributes.get(many, 1) if many else 1
            at += len(count) if isinstance(count, tuple) else count if isinstance(count, int) else 1
        return 0

    def _followed(self, node: TfNode, inputs: list[Value]) -> list[Value]:
        self.draft.step()
        try:
            return self._node(node, inputs)
        except Unclear as error:
            raise self._refused(node, str(error)) from None
        except (IndexError, KeyError, ValueError, TypeError, OverflowError, ZeroDivisionError) as error:
            raise self._refused(node, f"operands that do not fit: {error!s:.80}") from None

    def _refused(self, node: TfNode, why: str) -> BadInput:
        got = one_line(f"operation {node.op} {node.name!r:.80} ({why})", 260)
        return BadInput(got, "shapes that follow from the file", _REMEDY)

    def _node(self, node: TfNode, inputs: list[Value]) -> list[Value]:
        scope = ".".join(part for part in node.name.split("/")[:-1] if part)
        if node.op in _VARIABLES:
            return [self._variable(node)]
        if node.op == "Const":
            return [self._constant(node)]
        if node.op in {"Placeholder", "PlaceholderV2"}:
            return [self._placeholder(node)]
        if node.op in _NOTHING:
            return []
        if node.op == "LoopCond":
            self._host(node, scope, inputs, "operations of TensorFlow 1's loops are counted once")
        if node.op in _SAME and inputs:
            return inputs[:1]
        if node.op in {"Switch", "RefSwitch"}:
            return [inputs[0], inputs[0]]
        if node.op in {"Merge", "RefMerge"}:
            return [inputs[0], Value(node.name, (), "int32")]
        if node.op == "IdentityN":
            return inputs
        if node.op in _CALLS or node.op in self.model.messages:
            return self._call(_named(node, "f") if node.op in _CALLS else node.op, inputs)
        if node.op in {"While", "StatelessWhile"}:
            return self._loop(node, inputs, scope)
        if node.op in {"If", "StatelessIf", "Case", "StatelessCase"}:
            return self._branch(node, inputs, scope)
        return self._operator(node, inputs, scope)

    def _variable(self, node: TfNode) -> Value:
        name = str(node.attributes.get("shared_name") or node.name)
        if node.name not in self.variables:
            known = self.model.variables.get(name) or self.model.variables.get(node.name)
            shape, dtype = node.attributes.get("shape"), str(node.attributes.get("dtype", "fp32"))
            sizes = tuple(one for one in shape if isinstance(one, int)) if isinstance(shape, tuple) else None
            if (sizes is None or any(one < 0 for one in sizes)) and known is not None:
                sizes = tuple(one for one in known.shape if isinstance(one, int))
            if sizes is None or any(one < 0 for one in sizes):
                raise Unclear("a variable without a shape")
            fraction = dtype.startswith(("fp", "bf", "complex"))
            trained = known.trained if known is not None else fraction and not _moving(name)
            role = "parameter" if trained else "constant"
            index = self.draft.tensor(name, sizes, dtype, role)
            self.variables[node.name] = Value(name, sizes, dtype, role, index, trained=trained)
        return self.variables[node.name]

    def _constant(self, node: TfNode) -> Value:
        stored = node.attributes.get("value")
        if not isinstance(stored, Stored):
            raise Unclear("a constant without a value")
        total = 1
        for extent in stored.shape:
            total *= extent
        weight = self.frozen and total > 1 and stored.dtype.startswith(("fp", "bf")) and not _moving(node.name)
        known = None if weight else stored.known
        value = Value(node.name, stored.shape, stored.dtype, "parameter" if weight else "constant", None, known, trained=weight)
        if weight:
            self.draft.index(value)
        return value

    def _placeholder(self, node: TfNode) -> Value:
        shape = node.attributes.get("shape")
        if not isinstance(shape, tuple):
            raise Unclear("an input without a shape")
        dtype = str(node.attributes.get("dtype", "fp32"))
        declared = tuple(one if isinstance(one, int) and one >= 0 else None for one in shape)
        extents = input_shape(node.name, declared, dtype, self.names, self.batch, self.length)
        self.extents.values.update(self.names.values)
        return Value(node.name, extents, dtype, "input", self.draft.tensor(node.name, extents, dtype, "input"))

    def _call(self, name: str, inputs: list[Value]) -> list[Value]:
        function = self.model.function(name)
        if function is None:
            raise Unclear(f"a function {name[:60]!r} that the file does not have")
        if self.depth >= _MOST_CALLS:
            raise Unclear(f"functions nested over {_MOST_CALLS} deep")
        self.depth += 1
        given = {argument: [value] for argument, value in zip(function.arguments, inputs, strict=False)}
        made = self.answers(function.nodes, given, function.returns)
        self.depth -= 1
        return made

    def _host(self, node: TfNode, scope: str, inputs: list[Value], note: str) -> None:
        self.extents.notes[note] = None
        decided = Value(f"{node.name}.decided", (), "bool")
        self.draft.add(node.op, scope, inputs[:1], [decided], Done((), (Work("host_sync", (1,), ("data_loop", "host_read")),)))

    def _branch(self, node: TfNode, inputs: list[Value], scope: str) -> list[Value]:
        listed = node.attributes.get("branches")
        two = ("else_branch", "then_branch")
        sides = [str(one) for one in listed] if isinstance(listed, tuple) else [_named(node, name) for name in two]
        known = inputs[0].known
        if known is not None and isinstance(known[0], int) and 0 <= known[0] < len(sides):
            return self._call(sides[known[0]], inputs[1:])
        functions = [self.model.function(name) for name in sides]
        if not sides or any(one is None for one in functions):
            raise Unclear("a branch whose function the file does not have")
        longest = max(range(len(sides)), key=lambda at: _size(functions[at]))
        self._host(node, scope, inputs, "of a branch that depends on values, the longer side is counted")
        return self._call(sides[longest], inputs[1:])

    def _loop(self, node: TfNode, inputs: list[Value], scope: str) -> list[Value]:
        trips = self._trips(_named(node, "cond"), inputs)
        if trips is None:
            self._host(node, scope, inputs, "a loop whose count depends on values is counted once")
        body = self.model.function(_named(node, "body"))
        if body is None:
            raise Unclear("a loop whose body the file does not have")
        carried = [self._fresh(value, _passes(body, at)) for at, value in enumerate(inputs)]
        repeats, serial = self.draft.repeats, self.draft.serial
        self.draft.repeats, self.draft.serial = repeats * (1 if trips is None else trips), True
        made = self._call(_named(node, "body"), carried)
        self.draft.repeats, self.draft.serial = repeats, serial
        return made

    def _fresh(self, value: Value, same: bool) -> Value:
        """Return a carried value; what changes from step to step loses its elements."""
        if same or value.known is None:
            return value
        return Value(value.name, value.shape, value.dtype, index=self.draft.index(value))

    def _trips(self, name: str, inputs: list[Value]) -> Extent | None:
        """Return how often a loop runs, where its condition compares a counter that is known with bounds that are known."""
        function = self.model.function(name)
        if function is None or len(function.returns) != 1:
            return None
        found: list[Extent] = []
        queue = [function.returns[0]]
        for _ in range(64):
            if not queue:
                break
            node = function.nodes.get(_source(queue.pop()))
            if node is None:
                continue
            if node.op in {"LogicalAnd", "Identity"}:
                queue.extend(node.inputs)
            elif node.op == "Less":
                first, last = (self._bound(one, function, inputs) for one in node.inputs[:2])
                if first is not None and last is not None:
                    found.append(last - first)
        return min(found, key=self.extents.at) if found else None

    def _bound(self, reference: str, function: TfFunction, inputs: list[Value]) -> Extent | None:
        name = _source(reference)
        for _ in range(16):
            node = function.nodes.get(name)
            if node is None:
                known = inputs[function.arguments.index(name)].known if name in function.arguments else None
                return known[0] if known and isinstance(known[0], int | Polynomial) else None
            if node.op == "Const":
                known = self._constant(node).known
                return known[0] if known and isinstance(known[0], int) else None
            if node.op not in _SAME or not node.inputs:
                return None
            name = _source(node.inputs[0])
        return None

    def _declared(self, node: TfNode) -> tuple[Shape | None, ...]:
        """Return the shapes that the file knows; an open first axis is the batch."""
        found: list[Shape | None] = []
        first = next(iter(self.names.extents.values()), None)
        for shape in node.shapes:
            opened = None if shape is None else [first if one is None and at == 0 else one for at, one in enumerate(shape)]
            whole = None if opened is None else [one for one in opened if one is not None and not isinstance(one, str)]
            found.append(tuple(whole) if whole is not None and opened is not None and len(whole) == len(opened) else None)
        return tuple(found)

    def _operator(self, node: TfNode, inputs: list[Value], scope: str) -> list[Value]:
        count = sum(self._count(node, many) for _, many in self.model.answers.get(node.op, ())) or 1
        step = Step(node.op, tuple(inputs), node.attributes, count, 99, self.extents, self._declared(node))
        operator = OPERATORS.get(node.op)
        done = self._foreign(step, node) if operator is None else operator(step)
        known = tuple(result.known for result in done.results)
        if node.op in _ELEMENT:
            known = folded(replace(step, op=_ELEMENT[node.op], attributes=_to(step)), done)
        made = [Value(f"{node.name}:{at}" if at else node.name, one.shape, one.dtype, known=known[at], items=one.items)
                for at, one in enumerate(done.results)]  # fmt: skip
        for result, value in zip(done.results, made, strict=True):
            value.trained = result.view_of is not None and inputs[result.view_of].trained
        self.draft.add(node.op, scope, inputs, made, done)
        return made

    def _count(self, node: TfNode, many: str) -> int:
        found = node.attributes.get(many, 1) if many else 1
        return len(found) if isinstance(found, tuple) else found if isinstance(found, int) else 1

    def _foreign(self, step: Step, node: TfNode) -> Done:
        if not step.declared or any(shape is None for shape in step.declared):
            raise Unclear("not one that Tandem knows, and the file does not say the shape of its result")
        dtypes = node.attributes.get("Tout") or node.attributes.get("T") or "fp32"
        told = [str(one) for one in dtypes] if isinstance(dtypes, tuple) else [str(dtypes)]
        results = tuple(Result(shape or (), told[min(at, len(told) - 1)]) for at, shape in enumerate(step.declared))
        self.extents.notes[_unknown(node.op)] = None
        work = custom(node.op, step.shapes, [one.shape for one in results])
        return Done(results, (replace(work, marks=(*work.marks, "host_read")) if node.op in _HOST else work,))


def _unknown(op: str) -> str:
    if op == "XlaCallModule":
        return "a StableHLO program within it (XlaCallModule) is not counted: give that part as StableHLO itself"
    return f"the arithmetic of {op[:80]} is not known and not counted"


def _source(reference: str) -> str:
    return reference.split(":", 1)[0]


def _named(node: TfNode, attribute: str) -> str:
    found = node.attributes.get(attribute)
    if not isinstance(found, str):
        raise Unclear(f"no function {attribute!r}")
    return found


def _moving(name: str) -> bool:
    return any(part in name for part in ("moving_mean", "moving_variance", "global_step", "seed_generator"))


def _size(function: TfFunction | None) -> int:
    return 0 if function is None else len(function.nodes)


def _passes(body: TfFunction, at: int) -> bool:
    """Whether a loop's body hands an argument on as it was."""
    if at >= len(body.arguments) or at >= len(body.returns):
        return False
    name = _source(body.returns[at])
    for _ in range(16):
        if name == body.arguments[at]:
            return True
        node = body.nodes.get(name)
        if node is None or node.op not in _SAME or not node.inputs:
            return False
        name = _source(node.inputs[0])
    return False


def _to(step: Step) -> Mapping[str, Attribute]:
    """Return the attributes of a cast, or a reduction, as `onnx_folding` names them."""
    dtype = step.text("DstT")
    return {"to": 9 if dtype == "bool" else 7 if dtype.startswith(("int", "uint")) else 1}
