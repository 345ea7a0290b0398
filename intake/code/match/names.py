"""Rules that a full name makes apply: at imports, and wherever the name is used."""

import ast

from intake.code.match.dotted import QUIET_WHEN_TESTED, rules_of
from intake.code.match.libraries import library_rule
from intake.code.match.methods import KERAS_BACKEND
from intake.code.match.old_tensorflow import is_old
from intake.code.names import one_spelling
from intake.code.view import View

_LOOPED = "jax-unrolled-loop"
_JAX_JIT = ("jax.jit", "jax.pmap", "jax.experimental.pjit.pjit")
_BATCHING = frozenset({"batch", "padded_batch"})


def match_import(node: ast.Import | ast.ImportFrom, view: View) -> None:
    """Report what an import brings in."""
    if isinstance(node, ast.ImportFrom) and node.level:
        return
    for alias in node.names:
        written = alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
        if isinstance(node, ast.ImportFrom) and alias.name == "*":
            written = node.module or ""
        for rule in _rules(one_spelling(written)):
            view.emit(rule, alias.lineno if rule != library_rule(written) else node.lineno, node.col_offset)
        if written.startswith("tensorflow.compat.v1"):
            view.emit("tf1-api", node.lineno, node.col_offset)
        library = library_rule(written)
        if library is not None:
            view.emit(library, node.lineno, node.col_offset)


def match_name(node: ast.Attribute | ast.Name, view: View) -> None:
    """Report what a name that is used stands for."""
    dotted = view.dotted(node)
    if not dotted:
        _backend_module(node, view)
        return
    if "." not in dotted:
        return  # the bare module, as in an argument
    for rule in _rules(dotted):
        if view.context.tested and rule in QUIET_WHEN_TESTED:
            continue
        view.at(rule, node)
    library = library_rule(dotted)
    if library is not None:
        view.at(library, node)
    if isinstance(node, ast.Attribute) and ".compat.v1." in f".{ast.unparse(node)}.":
        view.at("tf1-api", node)


def match_function(node: ast.FunctionDef, view: View) -> None:
    """Report loops that JAX unrolls, and functions that build a tf.data pipeline without prefetching."""
    if "tensorflow" in view.frameworks:
        _unprefetched(node, view)
    if not any(_is_jitted(one, view) for one in node.decorator_list):
        return
    for inner in ast.walk(node):
        if isinstance(inner, ast.For) and isinstance(inner.iter, ast.Call) and isinstance(inner.iter.func, ast.Name):
            if inner.iter.func.id == "range" and not _is_short(inner.iter):
                view.at(_LOOPED, inner)
        elif isinstance(inner, ast.While):
            view.at(_LOOPED, inner)


def _unprefetched(node: ast.FunctionDef, view: View) -> None:
    called = [inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute)]
    names = {one.attr for one in called}
    made = any("tensorflow.data" in view.dotted(one) for one in called) and names & _BATCHING
    if made and not names & {"prefetch", "prefetch_to_device"}:
        view.emit("tf-data-prefetch", node.lineno, node.col_offset)


def _rules(dotted: str) -> list[str]:
    if dotted.startswith("tensorflow.flags.FLAGS."):
        return []
    if dotted.startswith("tensorflow.") and is_old(dotted):
        return [*rules_of(dotted), "tf1-api"]
    return list(rules_of(dotted))


def _backend_module(node: ast.Attribute | ast.Name, view: View) -> None:
    """Report functions of a Keras backend that was handed over under its usual name."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("K", "backend", "_backend"):
        known = node.attr in KERAS_BACKEND and not view.dotted(node.value) and view.kind(node.value) == "unknown"
        distinct = node.value.id != "K" or "keras" in view.frameworks or "tensorflow" in view.frameworks
        torch_only = view.frameworks and view.frameworks <= {"torch"}
        if known and distinct and not torch_only:
            view.at("keras-backend", node)


def _is_jitted(node: ast.expr, view: View) -> bool:
    if isinstance(node, ast.Call):
        inner = view.dotted(node.func)
        if inner == "functools.partial" and node.args:
            return view.dotted(node.args[0]) in _JAX_JIT
        return inner in _JAX_JIT
    return view.dotted(node) in _JAX_JIT


def _is_short(call: ast.Call) -> bool:
    """Whether a range has at most eight steps, so that unrolling it costs nothing worth telling."""
    only = call.args[0] if len(call.args) == 1 else None
    return isinstance(only, ast.Constant) and isinstance(only.value, int) and only.value <= 8
