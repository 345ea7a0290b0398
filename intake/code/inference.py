"""Guesses what kind of value an expression gives: a tensor, a numpy array, a plain Python value, or not known.

Follows names, methods and calls for a few steps; it never tries to be complete. A wrong "tensor" would invent findings, so a
kind is
only given where a name that was imported, an annotation or a method that only tensors have says so.
"""

import ast
from functools import lru_cache

from intake.code.names import dotted_of
from intake.code.values import BOOL, CALLABLE, DATASET, HOST, ON_DEVICE, PLAIN, TENSOR, UNKNOWN, WEAK, Scope

_DEEPEST = 20
_PLAIN_ATTRIBUTES = frozenset({"shape", "dtype", "device", "ndim", "is_cuda", "requires_grad", "layout", "size", "itemsize",
    "is_sparse",
                               "names", "name", "is_leaf", "nbytes"})
_KERNEL_INDICES = frozenset({"blockIdx", "threadIdx", "blockDim", "gridDim"})
_TO_PLAIN = frozenset({"item", "tolist", "asscalar", "size", "dim", "numel", "nelement", "ndimension", "data_ptr", "element_size",
                       "stride", "get_device", "type", "is_contiguous", "storage", "storage_offset", "is_floating_point",
                       "as_list",
                       "get_shape"})
_TO_HOST = frozenset({"numpy", "asnumpy"})
_TO_BOOL = frozenset({"any", "all", "eq", "ne", "gt", "lt", "ge", "le", "bool", "isnan", "isinf", "isfinite", "logical_and",
    "logical_or",
                      "logical_not", "logical_xor"})
_ONLY_TENSORS = frozenset({"detach", "cuda", "unsqueeze", "contiguous", "masked_fill", "masked_fill_", "log_softmax", "softmax",
    "view_as",
                           "index_select", "new_zeros", "new_ones", "new_full", "new_tensor", "requires_grad_", "expand_as",
                           "half",
                           "bfloat16", "unflatten", "index_add", "scatter_add", "as_in_context", "as_in_ctx"})
_OF_TENSORS = frozenset({
    "abs", "add", "argmax", "argmin", "argsort", "astype", "bmm", "chunk", "clamp", "clip", "clone", "cos", "cumprod", "cumsum",
    "diagonal", "diff", "div", "dot", "double", "einsum", "exp", "expand", "flatten", "flip", "float", "floor", "gather", "int",
    "kthvalue", "log", "long", "logsumexp", "matmul", "max", "mean", "median", "min", "mm", "mode", "mul", "mv", "narrow", "neg",
    "nonzero", "norm", "outer", "permute", "pow", "prod", "quantile", "repeat", "repeat_interleave", "reshape", "roll", "round",
    "rsqrt", "scatter", "select", "sigmoid", "sign", "sin", "sort", "sqrt", "square", "squeeze", "std", "sub", "sum",
    "swapaxes", "t", "take", "tanh", "tile", "to", "topk", "trace", "transpose", "tril", "triu", "type_as", "unbind", "unfold",
    "unique", "var", "view",
})
"""What may be called on a tensor; other classes have some of them too, but none of what is asked of a dictionary or a cache."""
_TORCH_BOOL = frozenset({"isnan", "isinf", "isfinite", "eq", "ne", "gt", "lt", "ge", "le", "logical_and", "logical_or",
    "logical_not",
                         "logical_xor", "any", "all", "equal", "allclose", "isclose", "greater", "less", "greater_equal",
                         "less_equal", "not_equal"})
_TORCH_NOT = frozenset({"is_tensor", "numel", "load", "save", "manual_seed", "seed", "no_grad", "enable_grad", "set_grad_enabled",
                        "inference_mode", "get_default_dtype", "set_default_dtype", "set_default_tensor_type", "compile",
                        "device",
                        "Generator", "finfo", "iinfo", "Size", "is_grad_enabled", "get_num_threads", "set_num_threads",
                        "typename",
                        "is_floating_point", "is_complex", "set_printoptions", "set_float32_matmul_precision", "autocast",
                        "dtype",
                        "is_inference_mode_enabled", "use_deterministic_algorithms", "result_type", "can_cast", "vmap", "export"})
_TENSORFLOW = frozenset({"cast", "constant", "concat", "stack", "reshape", "transpose", "expand_dims", "squeeze", "zeros", "ones",
                         "zeros_like", "ones_like", "equal", "less", "greater", "matmul", "gather", "gather_nd", "where", "tile",
                         "convert_to_tensor", "reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "shape", "range",
                         "Variable", "size", "rank", "reduce_any", "reduce_all", "reduce_prod", "argmax", "argmin", "one_hot",
                         "not_equal", "less_equal", "greater_equal", "logical_and", "logical_or", "logical_not", "abs", "add",
                         "subtract", "multiply", "divide", "maximum", "minimum", "sqrt", "exp", "square", "pow", "sign", "round",
                         "sigmoid", "tanh", "einsum", "norm", "pad", "fill", "identity", "stop_gradient", "sequence_mask",
                         "boolean_mask", "clip_by_value", "random.normal", "random.uniform", "to_int32", "to_float"})
_PLAIN_BUILTINS = frozenset({"len", "int", "float", "bool", "str", "repr", "range", "isinstance", "hasattr", "list", "dict",
    "set", "tuple",
                             "type", "ord", "hash", "id", "open", "enumerate", "round", "callable", "issubclass", "frozenset"})
_PLAIN_MODULES = ("cuda.is_", "cuda.get_device", "cuda.device_count", "cuda.current_device", "cuda.memory", "cuda.max_memory",
                  "distributed.get_", "distributed.is_", "backends.")
_JAX_PLAIN = frozenset({"shape", "ndim", "size", "axis_index", "result_type", "issubdtype", "iscomplexobj", "isrealobj",
                        "isscalar", "promote_types", "finfo", "iinfo", "dtype", "can_cast", "broadcast_shapes"})
_HOST_ROOTS = frozenset({"numpy", "scipy", "pandas", "PIL", "cv2", "skimage", "sklearn", "matplotlib"})


def kind_of_expression(node: ast.expr, scope: Scope, depth: int = 0) -> str:
    """Return the kind of value that an expression gives.

    Args:
        node: the expression.
        scope: where it stands.
        depth: of the recursion; beyond a bound nothing is known.
    """
    if depth > _DEEPEST:
        return UNKNOWN
    if isinstance(node, ast.Name):
        return scope.find(node.id).kind
    if isinstance(node, ast.Attribute):
        return _of_attribute(node, scope, depth)
    if isinstance(node, ast.Call):
        return _of_call(node, scope, depth)
    if isinstance(node, ast.Subscript):
        kind = kind_of_expression(node.value, scope, depth + 1)
        sizes = isinstance(node.value, ast.Attribute) and node.value.attr in _PLAIN_ATTRIBUTES
        return UNKNOWN if kind in (CALLABLE, DATASET) or (kind == PLAIN and not sizes) else kind
    if isinstance(node, ast.Compare):
        return _of_compare(node, scope, depth)
    if isinstance(node, ast.BinOp):
        return _mixed(kind_of_expression(node.left, scope, depth + 1), kind_of_expression(node.right, scope, depth + 1))
    if isinstance(node, ast.UnaryOp):
        return PLAIN if isinstance(node.op, ast.Not) else kind_of_expression(node.operand, scope, depth + 1)
    if isinstance(node, ast.IfExp):
        first, second = (kind_of_expression(part, scope, depth + 1) for part in (node.body, node.orelse))
        return first if first == second else _mixed(first, second) if ON_DEVICE & {first, second} else UNKNOWN
    if isinstance(node, ast.NamedExpr):
        return kind_of_expression(node.value, scope, depth + 1)
    if isinstance(node, ast.Constant) and node.value is None:
        return UNKNOWN
    if isinstance(node,
        ast.Constant | ast.JoinedStr | ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp | ast.Tuple
                  | ast.GeneratorExp | ast.Lambda):
        return PLAIN
    return UNKNOWN


def kind_of_annotation(node: ast.expr | None) -> str:
    """Return the kind that an annotation names.

    Args:
        node: such as `torch.Tensor`, `np.ndarray`, `int` or `Optional[Tensor]`; None when there is none.
    """
    if node is None:
        return UNKNOWN
    words = {part.id if isinstance(part, ast.Name) else part.attr for part in ast.walk(node) if isinstance(part,
        ast.Name | ast.Attribute)}
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        words = set(node.value.replace("[", ".").replace("]", ".").replace(",", ".").replace(" ", ".").split("."))
    containers = {"List", "list", "Dict", "dict", "Tuple", "tuple", "Sequence", "Iterable", "Callable", "Mapping", "Union"}
    if words & containers:
        return UNKNOWN
    if words & {"Tensor", "LongTensor", "FloatTensor", "BoolTensor", "NDArray"}:
        return TENSOR
    if "ndarray" in words:
        return HOST
    return PLAIN if words & {"int", "float", "bool", "str", "bytes", "Path", "DataFrame", "complex"} else UNKNOWN


def _of_attribute(node: ast.Attribute, scope: Scope, depth: int) -> str:
    if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        holder = scope.enclosing_class()
        if holder is not None and node.attr in holder.attributes:
            return holder.attributes[node.attr].kind
        return UNKNOWN
    inner = node.value.attr if isinstance(node.value, ast.Attribute) else ""
    if node.attr in _PLAIN_ATTRIBUTES or inner in _KERNEL_INDICES:
        return PLAIN
    base = kind_of_expression(node.value, scope, depth + 1)
    if base in ON_DEVICE:
        return base if node.attr in ("grad", "data", "T", "mT", "real", "imag", "values", "indices") else UNKNOWN
    return base if base in (HOST, WEAK) and node.attr in ("T", "data", "real", "imag") else UNKNOWN


def _of_call(node: ast.Call, scope: Scope, depth: int) -> str:
    dotted = dotted_of(node.func, scope)
    if dotted:
        known = _of_function(dotted)
        if known != UNKNOWN or "." in dotted:
            return known
    if isinstance(node.func, ast.Name):
        if node.func.id in _PLAIN_BUILTINS and not scope.knows(node.func.id):
            return PLAIN
        return TENSOR if scope.find(node.func.id).kind == CALLABLE else UNKNOWN
    if not isinstance(node.func, ast.Attribute):
        inner = kind_of_expression(node.func, scope, depth + 1)
        return TENSOR if inner == CALLABLE else UNKNOWN
    if _of_attribute(node.func, scope, depth) == CALLABLE:
        return TENSOR
    return _of_method(node.func.attr, kind_of_expression(node.func.value, scope, depth + 1))


def _of_method(name: str, receiver: str) -> str:
    if name in _TO_HOST or "ndarray" in name:
        return HOST
    if receiver in (HOST, DATASET):
        return PLAIN if name in ("item", "tolist") else receiver
    if name in _TO_PLAIN:
        return PLAIN
    if receiver in ON_DEVICE:
        return BOOL if name in _TO_BOOL else TENSOR
    if receiver == WEAK:
        return BOOL if name in _TO_BOOL else TENSOR if name in _OF_TENSORS or name in _ONLY_TENSORS else UNKNOWN
    if receiver == PLAIN:
        return PLAIN
    return TENSOR if name in _ONLY_TENSORS else UNKNOWN


@lru_cache(maxsize=4096)
def _of_function(dotted: str) -> str:
    root, _, rest = dotted.partition(".")
    last = dotted.rsplit(".", 1)[-1]
    if root in _HOST_ROOTS or "ndarray" in last:
        return HOST
    if root == "torch":
        return _of_torch(rest, last)
    if dotted.startswith(("jax.numpy.", "jax.nn.", "jax.random.", "jax.lax.", "jax.scipy.")):
        return PLAIN if last in _JAX_PLAIN else TENSOR
    if dotted.startswith("tensorflow.data."):
        return DATASET
    if root == "tensorflow":
        return TENSOR if rest in _TENSORFLOW or rest.startswith(("math.", "nn.")) else UNKNOWN
    if dotted.startswith(("mxnet.nd.", "mxnet.np.", "mxnet.npx.")):
        return TENSOR
    if dotted.startswith(("mxnet.gluon.nn.", "mxnet.gluon.loss.")) or dotted in ("jax.value_and_grad", "jax.grad"):
        return CALLABLE
    return HOST if dotted == "jax.device_get" else UNKNOWN


def _of_torch(rest: str, last: str) -> str:
    if rest == "nn.Parameter" or rest.startswith(("nn.functional.", "linalg.", "fft.", "special.")):
        return TENSOR
    if rest.startswith("nn.") and rest.count(".") == 1 and last[:1].isupper():
        return CALLABLE
    if "." in rest:
        if last.endswith("Tensor"):
            return TENSOR
        return PLAIN if last[:1].islower() and rest.startswith(_PLAIN_MODULES) else UNKNOWN
    if last in _TORCH_NOT:
        return UNKNOWN if last in ("load", "compile", "vmap", "export") else PLAIN
    return BOOL if last in _TORCH_BOOL else TENSOR


def _of_compare(node: ast.Compare, scope: Scope, depth: int) -> str:
    if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
        return PLAIN
    if any(isinstance(part, ast.Constant) and isinstance(part.value, str | None) for part in (node.left, *node.comparators)):
        return PLAIN
    kinds = {kind_of_expression(part, scope, depth + 1) for part in (node.left, *node.comparators)}
    if kinds & ON_DEVICE:
        return BOOL
    for kind in (WEAK, HOST):
        if kind in kinds:
            return kind
    return PLAIN if kinds == {PLAIN} else UNKNOWN


def _mixed(first: str, second: str) -> str:
    kinds = {first, second}
    if kinds == {BOOL}:
        return BOOL
    for kind in (TENSOR, BOOL, WEAK, HOST):
        if kind in kinds:
            return TENSOR if kind == BOOL else kind
    return PLAIN if kinds == {PLAIN} else UNKNOWN
