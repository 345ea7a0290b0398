"""Rules that a call makes apply: by the method that is called, and by the arguments of other functions."""

import ast

from intake.code.match.methods import ALWAYS, BY_FRAMEWORK, IN_PLACE, WITHOUT_ARGUMENTS
from intake.code.values import DATASET, HOST, PLAIN, UNKNOWN
from intake.code.view import View

_NOT_TENSORS = frozenset({HOST, PLAIN, DATASET})
_DTYPES = {"float64": "fp64", "double": "fp64", "complex128": "complex128", "complex64": "complex"}
_COMPILED = ("jit_compile", "experimental_compile")
_ROOTS = ("torch", "tensorflow", "keras", "jax", "mxnet")
_READING = frozenset({"host-item", "host-copy"})


def match_call(node: ast.Call, view: View) -> None:
    """Report what a call makes apply beyond the name of what is called."""
    if isinstance(node.func, ast.Attribute):
        _method(node, node.func, view)
    dotted = view.dotted(node.func)
    if dotted:
        _arguments(node, dotted, view)
    for keyword in node.keywords:
        if keyword.arg in _COMPILED and isinstance(keyword.value, ast.Constant) and keyword.value.value is True:
            view.emit("tf-xla-compile", keyword.value.lineno, keyword.value.col_offset)
        if keyword.arg == "kvstore" and "mxnet" in view.frameworks:
            view.emit("mx-kvstore", keyword.value.lineno, keyword.value.col_offset)


def _method(node: ast.Call, function: ast.Attribute, view: View) -> None:
    name = function.attr
    rules = [ALWAYS[name]] if name in ALWAYS else []
    known = [family for family in BY_FRAMEWORK if family in view.frameworks]
    rules.extend(BY_FRAMEWORK[family][name] for family in known if name in BY_FRAMEWORK[family])
    if "torch" in known and name in IN_PLACE:
        rules.append("in-place")
    if not known and name in ("cpu", "numpy"):
        rules.append("host-copy")
    if not rules or (name in WITHOUT_ARGUMENTS and node.args) or _is_of_a_module(function, view):
        return
    receiver = view.kind(function.value)
    if name == "cuda":
        view.at("cuda-call", function)  # nothing else has it: found whatever it seems to be called on
        return
    if receiver in _NOT_TENSORS or (_made_by_numpy(function.value, view) and name not in ALWAYS):
        return
    if name in ("tolist", "item") and view.context.where == "once" and "torch" not in known and receiver == UNKNOWN:
        return
    for rule in dict.fromkeys(rules):
        if rule not in _READING or receiver not in _NOT_TENSORS:
            view.at(rule, function)


def _is_of_a_module(function: ast.Attribute, view: View) -> bool:
    """Whether what is called is a function of an imported module, which is matched by its full name."""
    return bool(view.dotted(function))


def _made_by_numpy(node: ast.expr, view: View) -> bool:
    """Whether a chain of calls begins in numpy."""
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Call) and view.dotted(node.func).startswith(("numpy.", "scipy.", "pandas.")):
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def _arguments(node: ast.Call, dotted: str, view: View) -> None:
    root = dotted.split(".", 1)[0]
    if dotted in ("torch.where", "tensorflow.where", "jax.numpy.where") and len(node.args) + len(node.keywords) == 1:
        view.at("where-one-argument", node.func)
    if root in _ROOTS:
        for value in (*node.args, *[keyword.value for keyword in node.keywords]):
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value in _DTYPES:
                view.at(_DTYPES[value.value], value)
    if dotted.startswith("tensorflow.config.") and _names_gpu(node):
        view.at("tf-gpu-config", node.func)
    if dotted in ("jax.devices", "jax.local_devices", "jax.device_count", "jax.local_device_count") and _names_gpu(node):
        view.at("jax-gpu", node.func)
    if dotted == "torch.repeat_interleave" and len(node.args) > 1 and view.kind(node.args[1]) in ("tensor", "bool"):
        view.at("data-shape", node.func)
    if dotted in ("keras.optimizers.Adam", "keras.optimizers.SGD", "keras.optimizers.RMSprop", "keras.optimizers.Adagrad",
                  "keras.optimizers.Adadelta", "keras.optimizers.Adamax", "keras.optimizers.Nadam") and any(
                      keyword.arg in ("lr", "decay") for keyword in node.keywords):
        view.at("keras2-api", node.func)
    if _shaped_by_data(node, dotted, view):
        view.at("data-shape", node.func)


def _shaped_by_data(node: ast.Call, dotted: str, view: View) -> bool:
    """Whether a new tensor's size is read from another tensor: `torch.zeros(lengths.max().item())`."""
    if dotted not in ("torch.zeros", "torch.ones", "torch.empty", "torch.arange", "torch.full", "torch.rand", "torch.randn"):
        return False
    for argument in node.args[:2]:
        inner = argument.func if isinstance(argument, ast.Call) else None
        if isinstance(inner, ast.Attribute) and inner.attr in ("item", "max",
            "sum") and view.kind(inner.value) not in _NOT_TENSORS:
            return view.kind(inner.value) != UNKNOWN or inner.attr == "item"
    return False


def _names_gpu(node: ast.Call) -> bool:
    values = (*node.args, *[keyword.value for keyword in node.keywords])
    return any(isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value.lower() in ("gpu", "cuda", "rocm")
               for value in values)
