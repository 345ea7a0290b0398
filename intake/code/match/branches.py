"""Rules about Python that needs a tensor's value: branches, loops and asserts on tensors, and sizes that depend on data."""

import ast
import re

from intake.code.values import BOOL, CALLABLE, DATASET, HOST, ON_DEVICE, PLAIN, TENSOR, UNKNOWN, WEAK
from intake.code.view import View

_MASK = re.compile(r"(^|_)(mask|masks|valid|valid_mask)$")
_NOT_INDEXED = frozenset({HOST, PLAIN, DATASET, CALLABLE})
_INDEXED_BY_TRUTH = frozenset({"torch", "jax", "mxnet"})
_TESTED_FOR_TRUTH = _INDEXED_BY_TRUTH | {"tensorflow"}
_READING = frozenset({"any", "all"})
_DEEPEST = 12


def match_test(test: ast.expr, node: ast.AST, view: View) -> None:
    """Report a condition that has to read a tensor.

    Args:
        test: the condition of an if, a while, a conditional expression or a comprehension.
        node: the statement or expression that it belongs to.
        view: of the file.
    """
    if not view.frameworks & _TESTED_FOR_TRUTH or not needs_value(test, view):
        return
    view.at("data-loop" if isinstance(node, ast.While) else "tensor-branch", test)


def match_assert(node: ast.Assert, view: View) -> None:
    """Report an assertion on a tensor."""
    match_test(node.test, node, view)


def match_subscript(node: ast.Subscript, view: View) -> None:
    """Report an index of truth values, whose result is as long as there are true ones."""
    if not view.frameworks & _INDEXED_BY_TRUTH or view.kind(node.value) in _NOT_INDEXED or view.dotted(node.value):
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else (node.slice,)
    if any(_is_mask(part, view) for part in parts):
        view.emit("boolean-index", (node.value.end_lineno or node.lineno), node.value.end_col_offset or 0)


def needs_value(test: ast.expr, view: View, depth: int = 0) -> bool:
    """Whether the truth of an expression is that of a tensor.

    Args:
        test: the expression.
        view: of the file.
        depth: of the recursion.
    """
    if depth > _DEEPEST:
        return False
    if isinstance(test, ast.BoolOp):
        return any(needs_value(part, view, depth + 1) for part in test.values)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return needs_value(test.operand, view, depth + 1)
    if isinstance(test, ast.Call) and isinstance(test.func,
        ast.Attribute) and test.func.attr in _READING and not view.dotted(test.func):
        return view.kind(test.func.value) in (*ON_DEVICE, WEAK)
    return view.kind(test) in ON_DEVICE


def _is_mask(part: ast.expr, view: View) -> bool:
    while isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Invert):
        part = part.operand
    kind = view.kind(part)
    if kind == BOOL:
        return True
    if kind in (HOST, PLAIN):
        return False
    if isinstance(part, ast.Compare):
        return not any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in part.ops)
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitAnd | ast.BitOr):
        return _is_mask(part.left, view) and _is_mask(part.right, view)
    name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
    return kind in (UNKNOWN, WEAK, TENSOR) and bool(_MASK.search(name)) and not _is_bound_plain(part, view)


def _is_bound_plain(part: ast.expr, view: View) -> bool:
    return isinstance(part, ast.Name) and view.scope.find(part.id).kind in (PLAIN, HOST)
