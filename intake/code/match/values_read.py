"""Rules about values that are read by printing, logging or converting a tensor, which makes the host wait for the device."""

import ast
import re

from intake.code.values import HOST, ON_DEVICE, PLAIN, UNKNOWN, WEAK
from intake.code.view import View

_LOGGING = frozenset({"info", "debug", "warning", "error", "log", "write", "print", "set_postfix", "set_description",
    "info_once"})
_LOGGERS = re.compile(r"(log|tqdm|pbar|bar|writer|print)", re.IGNORECASE)
_LOSS = re.compile(r"^(\w+_)?loss$")
_READABLE = frozenset({"torch", "jax", "mxnet"})
_LOSS_KEY = re.compile(r"(\w+[_/])?loss")


def match_read(node: ast.Call, view: View) -> None:
    """Report a call that shows a tensor or makes a Python number of one."""
    if not view.frameworks & _READABLE:
        if view.frameworks & {"tensorflow", "keras"} and (_is_result(node) or _is_eager(node, view)):
            view.at("host-float", node)
        return
    if isinstance(node.func, ast.Name):
        name = node.func.id
        if name in ("float", "int", "bool") and len(node.args) == 1 and not view.scope.knows(name):
            if _is_read(node.args[0], view):
                view.at("host-float", node)
        elif name == "print" and not view.scope.knows("print"):
            _shown(node, view)
    elif isinstance(node.func, ast.Attribute):
        if node.func.attr in _LOGGING and _LOGGERS.search(ast.unparse(node.func.value)[-40:]):
            _shown(node, view)
        elif view.dotted(node.func) in ("numpy.asarray", "numpy.array") and node.args and view.kind(node.args[0]) in ON_DEVICE:
            view.at("host-copy", node.func)
        elif view.dotted(node.func).endswith("master_print"):
            _shown(node, view)


def _shown(node: ast.Call, view: View) -> None:
    for argument in (*node.args, *[keyword.value for keyword in node.keywords]):
        for part in _parts(argument):
            if _is_read(part, view):
                view.emit("host-print", part.lineno if len(node.args) > 1 and part.lineno != node.lineno else node.lineno,
                    node.col_offset)
                return


def _parts(argument: ast.expr) -> list[ast.expr]:
    """Return what is formatted into a text: the values of an f-string, of % and of format."""
    if isinstance(argument, ast.JoinedStr):
        return [part.value for part in argument.values if isinstance(part, ast.FormattedValue)]
    if isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Mod) and isinstance(argument.left, ast.Constant):
        return list(argument.right.elts) if isinstance(argument.right, ast.Tuple) else [argument.right]
    if isinstance(argument, ast.Call) and isinstance(argument.func, ast.Attribute) and argument.func.attr == "format":
        return [*argument.args, *[keyword.value for keyword in argument.keywords]]
    return [argument]


def _is_read(part: ast.expr, view: View) -> bool:
    """Whether a value is on a device: known to be, or called a loss and not known to be anything else."""
    kind = view.kind(part)
    if kind in ON_DEVICE:
        return True
    if kind in (PLAIN, HOST):
        return False
    if _has_unreplicated(part, view) or ("jax" in view.frameworks and _is_loss_item(part)):
        return True
    name = part.id if isinstance(part, ast.Name) else ""
    return kind in (UNKNOWN, WEAK) and bool(_LOSS.match(name)) and view.scope.knows(name) and not view.dotted(part)


def _is_loss_item(part: ast.expr) -> bool:
    """Whether a value is looked up as a loss: a jitted step returns its metrics as arrays."""
    key = part.slice if isinstance(part, ast.Subscript) else None
    return isinstance(key, ast.Constant) and isinstance(key.value, str) and bool(_LOSS_KEY.fullmatch(key.value))


def _is_result(node: ast.Call) -> bool:
    """Whether a Python number is made of a Keras metric: `float(loss.result())`."""
    inner = node.args[0] if len(node.args) == 1 else None
    called = isinstance(node.func, ast.Name) and node.func.id in ("float", "int")
    return called and isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "result"


def _is_eager(node: ast.Call, view: View) -> bool:
    """Whether a Python number is made of a tensor of TensorFlow; a loss by its name alone may come out of a session."""
    called = isinstance(node.func, ast.Name) and node.func.id in ("float", "int", "bool") and not view.scope.knows(node.func.id)
    return called and len(node.args) == 1 and view.kind(node.args[0]) in ON_DEVICE


def _has_unreplicated(part: ast.expr, view: View) -> bool:
    return isinstance(part, ast.Call) and view.dotted(part.func) == "flax.jax_utils.unreplicate"
