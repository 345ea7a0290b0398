"""Which names of a function must be tensors, from what is done with them anywhere in it: only a tensor can be differentiated.

`loss = criterion(output, target)` says nothing of `loss`; the `loss.backward()` ten lines below does. A name is only named here;
what each assignment binds is still looked at, so that `loss = loss.item()` ends it.
"""

import ast
import re
from collections.abc import Iterable, Iterator

_DIFFERENTIATES = frozenset({"backward", "manual_backward", "scale_loss", "scale"})
"""Methods whose argument is differentiated: of engines, accelerators, scalers, Lightning modules and apex."""
_SCALERS = re.compile(r"(scaler|amp|optim|fabric|accelerator|engine|model|self|trainer|booster)", re.IGNORECASE)
_LOSS = re.compile(r"^(\w+_)?loss$")
_CRITERION = re.compile(r"(^|_)(criterion|criteria|loss_fn|loss_func|loss_function|lossfn)$")
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def differentiated(body: Iterable[ast.stmt], *, returns: bool = False) -> frozenset[str]:
    """Return names, `NAME` or `self.NAME`, that are differentiated in a body, functions within it left out.

    Args:
        body: of a module or function.
        returns: whether what it returns as its loss is differentiated by whoever calls it.
    """
    found: set[str] = set()
    for node in _own_nodes(body):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.update(_of_call(node, node.func))
        elif returns and isinstance(node, ast.Return) and node.value is not None:
            found.update(_returned(node.value))
    return frozenset(found)


def is_criterion(node: ast.expr) -> bool:
    """Whether an expression calls what is named as a loss function."""
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    return _CRITERION.search(name) is not None


def _own_nodes(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if not isinstance(node, _INNER):
            yield node
            stack.extend(ast.iter_child_nodes(node))


def _of_call(node: ast.Call, called: ast.Attribute) -> Iterator[str]:
    receiver = called.value
    if called.attr == "backward" and isinstance(receiver, ast.Name | ast.Attribute | ast.BinOp):
        yield from _names(receiver)
    if called.attr == "grad" and ast.unparse(receiver)[-20:].endswith("autograd"):
        yield from (name for one in node.args[:1] for name in _names(one))
    if called.attr in _DIFFERENTIATES and node.args and _SCALERS.search(ast.unparse(receiver)[-40:]):
        yield from _names(node.args[0])


def _returned(value: ast.expr) -> Iterator[str]:
    """Yield names of a loss in what is returned: itself, the first of several, or the entry of that name."""
    first = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        first = next((one for key, one in pairs if isinstance(key, ast.Constant) and key.value == "loss"), value)
    yield from (name for name in _names(first) if _LOSS.match(name.removeprefix("self.")))


def _names(node: ast.expr) -> Iterator[str]:
    """Yield the name that an expression is, or the names that it is scaled from: `loss / steps`."""
    if isinstance(node, ast.BinOp):
        yield from (name for name in _names(node.left) if _LOSS.match(name.removeprefix("self.")))
    elif isinstance(node, ast.Name) and node.id not in ("self", "cls"):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        yield f"self.{node.attr}"
