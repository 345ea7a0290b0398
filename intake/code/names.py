"""Full names: what `th.cuda` or `tf.compat.v1.layers` means after the imports of the file, in one spelling for one thing."""

import ast
from functools import lru_cache

from intake.code.values import Scope, Value

_SAME = (
    ("tensorflow.compat.v1", "tensorflow"), ("tensorflow.compat.v2", "tensorflow"), ("tensorflow._api.v2", "tensorflow"),
    ("tensorflow.v1", "tensorflow"), ("tensorflow.v2", "tensorflow"),
    ("tensorflow.python.keras", "keras"), ("tensorflow.keras", "keras"), ("tf_keras", "keras"),
    ("tensorflow_estimator.python.estimator.api._v1.estimator", "tensorflow.estimator"),
    ("tensorflow_estimator.python.estimator.estimator_lib", "tensorflow.estimator"),
    ("tensorflow.python.estimator.estimator_lib", "tensorflow.estimator"),
    ("tensorflow_estimator", "tensorflow.estimator"),
    ("tensorflow.python.data", "tensorflow.data"),
    ("mxnet.ndarray", "mxnet.nd"), ("mxnet.symbol", "mxnet.sym"), ("mxnet.numpy_extension", "mxnet.npx"),
    ("mxnet.numpy", "mxnet.np"), ("mxnet.context", "mxnet"), ("mxnet.device", "mxnet"), ("mxnet.module", "mxnet.mod"),
    ("lightning.pytorch", "pytorch_lightning"),
    ("torch.nn.parallel.distributed", "torch.nn.parallel"),
    *((f"torch.nn.modules.{file}", "torch.nn") for file in (
        "activation", "batchnorm", "container", "conv", "dropout", "instancenorm", "linear", "loss", "module", "normalization",
        "pooling", "rnn", "sparse", "transformer", "upsampling")),
    ("torch.nn.modules", "torch.nn"),
    ("torch.distributed.distributed_c10d", "torch.distributed"),
    ("torch.autograd.function", "torch.autograd"),
    ("torch.multiprocessing.spawn", "torch.multiprocessing"),
    ("torch.utils.data.dataloader", "torch.utils.data"),
    ("flax.linen.module", "flax.linen"), ("numpy.core", "numpy"),
)

_USUAL = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "tf": "tensorflow", "np": "numpy", "mx": "mxnet",
    "jax": "jax",
          "jnp": "jax.numpy", "xm": "torch_xla.core.xla_model"}
"""What names usually stand for, where everything of another module was imported and they may come from there."""


@lru_cache(maxsize=1 << 14)
def one_spelling(dotted: str) -> str:
    """Return a dotted name in the spelling that the rules use.

    Args:
        dotted: such as `tensorflow.compat.v1.keras.Model`, which becomes `keras.Model`.
    """
    for _ in range(3):
        before = dotted
        for prefix, same in _SAME:
            if dotted == prefix or dotted.startswith(prefix + "."):
                dotted = same + dotted[len(prefix) :]
        if dotted == before:
            break
    return dotted


def dotted_of(node: ast.expr, scope: Scope) -> str:
    """Return the full name of an expression, empty when it has none.

    Args:
        node: a name or an attribute of one; anything else has no full name.
        scope: where it stands.
    """
    tail: list[str] = []
    while isinstance(node, ast.Attribute):
        tail.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    if node.id in ("self", "cls") and tail:
        holder = scope.enclosing_class()
        base = holder.attributes[tail.pop()].dotted if holder is not None and tail[-1] in holder.attributes else ""
    else:
        base = scope.find(node.id).dotted or _from_star(node.id, scope)
    return one_spelling(".".join((base, *reversed(tail)))) if base else ""


def _from_star(name: str, scope: Scope) -> str:
    stars = scope.star_modules()
    if stars and name in _USUAL and not scope.knows(name):
        return _USUAL[name]
    if len(stars) != 1 or stars[0].startswith(".") or scope.knows(name) or not name[:1].isupper():
        return ""
    return f"{stars[0]}.{name}"


def bind_imports(node: ast.Import | ast.ImportFrom, scope: Scope) -> list[tuple[str, int]]:
    """Bind the names of an import in a scope, and return each full name with its line.

    Args:
        node: the statement.
        scope: where it stands.
    """
    found: list[tuple[str, int]] = []
    if isinstance(node, ast.Import):
        for alias in node.names:
            full = alias.name
            scope.names[alias.asname or full.split(".")[0]] = Value(full if alias.asname else full.split(".")[0])
            found.append((full, alias.lineno))
        return found
    base = "." * node.level + (node.module or "")
    for alias in node.names:
        full = f"{base}.{alias.name}" if not base.endswith(".") else base + alias.name
        if alias.name == "*":
            scope.stars.append(base)
            found.append((base, node.lineno))
            continue
        scope.names[alias.asname or alias.name] = Value("" if node.level else full)
        found.append((full, alias.lineno))
    return found
