"""Walks a syntax tree in the order of the file, keeps scopes and context, and asks each matcher at each node.

Depth is bounded: what is nested deeper than people write is passed over and told.
"""

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from core.finding import LOOP, ONCE, STEP
from intake.code.evidence import differentiated, is_criterion
from intake.code.inference import kind_of_annotation
from intake.code.match import MATCHERS
from intake.code.match.branches import match_test
from intake.code.names import bind_imports
from intake.code.values import BOOL, CALLABLE, HOST, NOTHING, ON_DEVICE, PLAIN, TENSOR, UNKNOWN, WEAK, Scope, Value
from intake.code.view import Context, View

_DEEPEST = 230
_CALLED_CRITERIA = frozenset({"torch", "jax"})
_FORWARD = frozenset({"forward", "hybrid_forward", "training_step", "train_step", "compute_loss", "_train_step", "loss_fn",
    "update_step",
                      "train_batch", "train_one_batch", "training_loss", "forward_step", "backward_step"})
_FORWARD_OF_CLASS = frozenset({"__call__", "call"})
_JITTED = frozenset({"jax.jit", "jax.pmap", "tensorflow.function", "torch.jit.script", "torch.compile",
    "jax.experimental.pjit.pjit",
                     "jax.checkpoint", "flax.linen.jit", "flax.nnx.jit"})
_STEPPERS = frozenset({"backward", "train_on_batch", "training_step", "train_step", "apply_gradients", "train_batch"})
_OPTIMIZERS = re.compile(r"(optim|trainer|scaler|opt$|optimizer|engine)", re.IGNORECASE)
_DEVICE_TEST = re.compile(r"(^|[._])(use_)?(cuda|gpu|gpus|ngpu|num_gpus|on_gpu|tpu|use_tpu|xla|no_cuda|is_available"
                          r"|device_count)$", re.IGNORECASE)


def walk(tree: ast.Module, view: View) -> bool:
    """Walk a tree.

    Args:
        tree: of a file, a block or a cell.
        view: of the file; findings and names are added to it.

    Returns:
        Whether all of it was seen.
    """
    walker = _Walker(view)
    view.scope.differentiated |= differentiated(tree.body)
    walker.bodies(tree.body)
    return not walker.cut


class _Walker:
    def __init__(self, view: View) -> None:
        self.view = view
        self.depth = 0
        self.cut = False

    def bodies(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self.visit(statement)

    def visit(self, node: ast.AST) -> None:
        if self.depth >= _DEEPEST:
            self.cut = True
            return
        self.depth += 1
        for matcher in MATCHERS.get(type(node), ()):
            matcher(node, self.view)
        special = _SPECIAL.get(type(node))
        if special is not None:
            special(self, node)
        else:
            for child in ast.iter_child_nodes(node):
                self.visit(child)
        self.depth -= 1

    def inside(self, context: Context, nodes: Iterable[ast.AST]) -> None:
        before, self.view.context = self.view.context, context
        for node in nodes:
            self.visit(node)
        self.view.context = before

    def imports(self, node: ast.Import | ast.ImportFrom) -> None:
        for full, line in bind_imports(node, self.view.scope):
            self.view.add_import(full, node.lineno if isinstance(node, ast.ImportFrom) else line)

    def attribute(self, node: ast.Attribute) -> None:
        """Visit what an attribute is taken of, unless it is part of one full name, which was matched as a whole."""
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            inner = inner.value
        if not isinstance(inner, ast.Name):
            self.visit(inner)

    def expression_statement(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        view = self.view
        for part in (*node.decorator_list, *node.args.defaults, *[one for one in node.args.kw_defaults if one is not None]):
            self.visit(part)
        for argument in _arguments(node.args):
            if argument.annotation is not None:
                self.visit(argument.annotation)
        jitted = any(_decorator(one, view) in _JITTED for one in node.decorator_list)
        in_class = view.scope.is_class
        step = jitted or node.name in _FORWARD or (in_class and node.name in _FORWARD_OF_CLASS and bool(view.frameworks))
        view.scope.names[node.name] = NOTHING
        outer = view.scope
        view.scope = Scope(outer, differentiated=differentiated(node.body, returns=step))
        self.bind_arguments(node, weak=step and "torch" in view.frameworks)
        where = STEP if step or view.context.where == STEP else ONCE
        self.inside(Context(where, optional=view.context.optional), node.body)
        view.scope = outer

    def bind_arguments(self, node: ast.FunctionDef | ast.AsyncFunctionDef, *, weak: bool) -> None:
        scope = self.view.scope
        arguments = _arguments(node.args)
        defaults: dict[str, ast.expr | None] = {}
        positional = [*node.args.posonlyargs, *node.args.args]
        for argument, default in zip(reversed(positional), reversed(node.args.defaults), strict=False):
            defaults[argument.arg] = default
        for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=False):
            defaults[argument.arg] = default
        gathered = [one for one in (node.args.vararg, node.args.kwarg) if one is not None]  # a tuple and a dictionary
        apart = [*gathered, *(one for one in arguments if one.arg in ("self", "cls", "ctx"))]
        for argument in arguments:
            kind = UNKNOWN if argument in gathered else kind_of_annotation(argument.annotation)
            default = defaults.get(argument.arg)
            if kind == UNKNOWN and isinstance(default, ast.Constant) and default.value is not None:
                kind = PLAIN
            elif kind == UNKNOWN and weak and argument.annotation is None and argument not in apart:
                kind = WEAK if default is None else UNKNOWN
            if kind in (UNKNOWN, WEAK) and argument.arg in scope.differentiated:
                kind = TENSOR
            scope.names[argument.arg] = Value("", kind)
        if node.name == "hybrid_forward" and any(argument.arg == "F" for argument in arguments):
            scope.names["F"] = Value("mxnet.nd")

    def lambda_(self, node: ast.Lambda) -> None:
        for default in (*node.args.defaults, *[one for one in node.args.kw_defaults if one is not None]):
            self.visit(default)
        outer = self.view.scope
        self.view.scope = Scope(outer)
        for argument in _arguments(node.args):
            self.view.scope.names[argument.arg] = NOTHING
        self.visit(node.body)
        self.view.scope = outer

    def class_(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *[keyword.value for keyword in node.keywords]):
            self.visit(part)
        view = self.view
        view.scope.names[node.name] = NOTHING
        outer = view.scope
        view.scope = Scope(outer, is_class=True)
        self.inside(Context(ONCE, optional=view.context.optional), node.body)
        view.scope = outer

    def loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        view = self.view
        if isinstance(node, ast.While):
            match_test(node.test, node, view)
            self.visit(node.test)
        else:
            self.visit(node.iter)
            bind(node.target, ast.Call(ast.Name("iter", ast.Load()), [], []), view, kind=_item_kind(node.iter, view))
            self.visit(node.target)
        steps = _has_step(node.body)
        view.steps += steps
        where = STEP if steps or view.context.where == STEP else LOOP
        never = isinstance(node, ast.While) and _is_false(node.test)
        if not never:
            self.inside(view.within(where=where), node.body)
        self.inside(view.context, node.orelse)

    def if_(self, node: ast.If) -> None:
        """Walk a chain of if and elif without going deeper for each link."""
        view = self.view
        current: ast.If | None = node
        while current is not None:
            match_test(current.test, current, view)
            self.visit(current.test)
            never, always = _is_false(current.test), _is_true(current.test)
            guarded = view.context.guarded or is_device_test(current.test)
            periodic = view.context.periodic or any(isinstance(one, ast.Mod) for one in ast.walk(current.test))
            inner = view.within(guarded=guarded, periodic=periodic, optional=True)
            if not never:
                self.inside(inner, current.body)
            follows = current.orelse
            current = follows[0] if len(follows) == 1 and isinstance(follows[0], ast.If) else None
            if current is None and not always:
                self.inside(inner if guarded and follows else view.context, follows)

    def if_expression(self, node: ast.IfExp) -> None:
        match_test(node.test, node, self.view)
        self.visit(node.test)
        context = self.view.within(guarded=self.view.context.guarded or is_device_test(node.test))
        self.inside(context, (node.body, node.orelse))

    def try_(self, node: ast.Try | ast.TryStar) -> None:
        self.inside(self.view.within(optional=True), node.body)
        for handler in node.handlers:
            self.inside(self.view.within(optional=True), handler.body)
        self.inside(self.view.context, (*node.orelse, *node.finalbody))

    def assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)
            bind(target, node.value, self.view)

    def annotated(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
        self.visit(node.target)
        kind = kind_of_annotation(node.annotation)
        if node.value is not None:
            bind(node.target, node.value, self.view, kind=None if kind == UNKNOWN else kind)

    def augmented(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        self.visit(node.target)
        kinds = {self.view.kind(node.target), self.view.kind(node.value)}
        if isinstance(node.op, ast.Div | ast.FloorDiv):
            kinds.discard(UNKNOWN)  # of a sum: what it is divided by is a count
        joined = TENSOR if kinds & ON_DEVICE else PLAIN if kinds and kinds <= {PLAIN, HOST} else UNKNOWN
        bind(node.target, node.value, self.view, kind=joined)

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        for generator in node.generators:
            self.visit(generator.iter)
            bind(generator.target, generator.iter, self.view, kind=_item_kind(generator.iter, self.view))
            for test in generator.ifs:
                match_test(test, test, self.view)
                self.visit(test)
        parts: Sequence[ast.expr] = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        where = STEP if self.view.context.where == STEP else LOOP
        self.inside(self.view.within(where=where), parts)

    def call(self, node: ast.Call) -> None:
        self.visit(node.func)
        if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass") and len(node.args) == 2:
            self.visit(node.args[0])
            self.inside(self.view.within(tested=True), node.args[1:])
            return
        for part in (*node.args, *[keyword.value for keyword in node.keywords]):
            self.visit(part)


def bind(target: ast.expr, value: ast.expr, view: View, kind: str | None = None) -> None:
    """Bind what is assigned.

    Args:
        target: a name, an attribute of self, or several of them.
        value: what is assigned.
        view: whose scope is changed.
        kind: of the value where it is known; None to find out.
    """
    if isinstance(target, ast.Tuple | ast.List):
        items = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) else None
        each = value.elt if isinstance(value, ast.ListComp | ast.GeneratorExp) else value  # made for every name alike
        whole = kind if kind is not None else view.kind(each)
        for index, part in enumerate(target.elts):
            plain = part.value if isinstance(part, ast.Starred) else part
            if items is not None and kind is None:
                bind(plain, items[index], view)
            else:
                bind(plain, value, view, kind=TENSOR if whole == BOOL else UNKNOWN if whole == CALLABLE else whole)
        return
    if isinstance(value, ast.Constant) and value.value is None and isinstance(target,
        ast.Name) and view.scope.find(target.id).dotted:
        return  # "except ImportError: name = None" does not change what the name is where it is used
    told = kind if kind is not None else view.kind(value)
    found = Value("" if kind is not None or told == PLAIN else view.dotted(value), told)  # a number read off a name is no name
    if isinstance(target, ast.Name):
        view.scope.names[target.id] = _settled(found, target.id, value, view)
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in ("self", "cls"):
        holder = view.scope.enclosing_class()
        if holder is not None:
            holder.attributes[target.attr] = _settled(found, f"self.{target.attr}", value, view)


def _settled(found: Value, name: str, value: ast.expr, view: View) -> Value:
    """Return what a name is bound to: a tensor where nothing else is known and it is differentiated, or made by a criterion."""
    if found.kind not in (UNKNOWN, WEAK) or found.dotted or isinstance(value, ast.Constant):
        return found
    whole = isinstance(value, ast.Call) and is_criterion(value) and bool(view.frameworks & _CALLED_CRITERIA)
    return Value("", TENSOR) if name in view.scope.differentiated or whole else found


def is_device_test(test: ast.expr) -> bool:
    """Whether an expression asks which device there is: `torch.cuda.is_available()`, `args.cuda`, `device == "cuda"`."""
    for node in ast.walk(test):
        if isinstance(node, ast.Name | ast.Attribute):
            last = node.id if isinstance(node, ast.Name) else node.attr
            if _DEVICE_TEST.search(last) and last != "xla":
                return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.lower() in ("cuda", "gpu", "cpu", "xla",
            "tpu", "mps"):
            return True
    return False


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [*found, *[one for one in (arguments.vararg, arguments.kwarg) if one is not None]]


def _decorator(node: ast.expr, view: View) -> str:
    if isinstance(node, ast.Call):
        inner = view.dotted(node.func)
        return view.dotted(node.args[0]) if inner == "functools.partial" and node.args else inner
    return view.dotted(node)


def _item_kind(iterated: ast.expr, view: View) -> str:
    """Return the kind of the items of what is iterated over: those of a tensor are tensors, those of a range plain."""
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id in ("range", "xrange"):
        return PLAIN
    kind = view.kind(iterated)
    return kind if kind in (TENSOR, HOST) else UNKNOWN


def _has_step(body: list[ast.stmt]) -> bool:
    """Whether a loop trains: one of its own statements, not those of a loop within it, updates weights."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node,
            ast.For | ast.While | ast.AsyncFor | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if name in _STEPPERS or "train_step" in name or "update_fn" in name:
                return True
            if name == "step" and isinstance(node.func, ast.Attribute) and _OPTIMIZERS.search(ast.unparse(node.func.value)[-60:]):
                return True
        stack.extend(ast.iter_child_nodes(node))
    return False


def _is_false(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and not test.value


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


_SPECIAL: dict[type[ast.AST], Callable[[_Walker, Any], None]] = {
    ast.Import: _Walker.imports, ast.ImportFrom: _Walker.imports, ast.Attribute: _Walker.attribute,
        ast.Expr: _Walker.expression_statement,
    ast.FunctionDef: _Walker.function, ast.AsyncFunctionDef: _Walker.function, ast.Lambda: _Walker.lambda_,
        ast.ClassDef: _Walker.class_,
    ast.For: _Walker.loop, ast.AsyncFor: _Walker.loop, ast.While: _Walker.loop, ast.If: _Walker.if_,
        ast.IfExp: _Walker.if_expression,
    ast.Try: _Walker.try_, ast.TryStar: _Walker.try_, ast.Assign: _Walker.assign, ast.AnnAssign: _Walker.annotated,
    ast.AugAssign: _Walker.augmented,
    ast.ListComp: _Walker.comprehension, ast.SetComp: _Walker.comprehension, ast.GeneratorExp: _Walker.comprehension,
    ast.DictComp: _Walker.comprehension, ast.Call: _Walker.call,
}
