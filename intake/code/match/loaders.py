"""Rules about input pipelines: PyTorch's data loader and tf.data, by the arguments that are given or left out."""

import ast
import re

from intake.code.values import DATASET, HOST, PLAIN, UNKNOWN
from intake.code.view import View

_LOADERS = ("torch.utils.data.DataLoader", "torch_geometric.loader.DataLoader", "torch_geometric.data.DataLoader",
            "torchdata.stateful_dataloader.StatefulDataLoader")
_NAMED = re.compile(r"(^|_)(d|ds|data|dataset|datasets|dset|train_ds|test_ds|val_ds|raw_dataset)\d?$", re.IGNORECASE)
_SIZED = frozenset({"map", "batch", "padded_batch"})
_STEPS = frozenset({"map", "batch", "prefetch", "shuffle", "repeat", "cache", "padded_batch", "interleave", "filter", "take",
    "skip",
                    "apply", "with_options", "shard", "flat_map", "unbatch", "zip"})


def match_loader(node: ast.Call, view: View) -> None:
    """Report a data loader or a step of a tf.data pipeline."""
    dotted = view.dotted(node.func)
    if dotted in _LOADERS:
        _torch_loader(node, view)
    elif dotted.endswith("Dataset.from_generator") and dotted.startswith("tensorflow.data"):
        view.at("tf-data-generator", node.func)
    elif isinstance(node.func, ast.Attribute) and "tensorflow" in view.frameworks and node.func.attr in _SIZED:
        _pipeline_step(node, node.func, view)


def _torch_loader(node: ast.Call, view: View) -> None:
    view.at("torch-loader", node.func)
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if None in given or any(isinstance(one, ast.Starred) for one in node.args):
        return  # options that are not seen here
    positional = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory",
        "drop_last")
    given.update(dict(zip(positional, node.args, strict=False)))
    if _is_off(given.get("num_workers")):
        view.at("loader-workers", node.func)
    if _is_off(given.get("pin_memory")):
        view.at("loader-pin-memory", node.func)
    batched = "batch_size" in given and not (isinstance(given["batch_size"], ast.Constant) and given["batch_size"].value in (1,
        None))
    if _is_off(given.get("drop_last")) and "batch_sampler" not in given and batched:
        view.at("loader-ragged-batch", node.func)


def _is_off(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and not value.value)


def _pipeline_step(node: ast.Call, function: ast.Attribute, view: View) -> None:
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if None in given or not (node.args or given) or not _is_dataset(function.value, view):
        return
    if function.attr == "map":
        if "num_parallel_calls" not in given and len(node.args) < 2:
            view.at("tf-data-map", function)
        return
    place = 1 if function.attr == "batch" else 3
    remainder = given.get("drop_remainder", node.args[place] if len(node.args) > place else None)
    if _is_off(remainder):
        view.at("tf-data-batch", function)


def _is_dataset(node: ast.expr, view: View) -> bool:
    """Whether something is a tf.data pipeline: made by tf.data, named as one, or followed by steps that only pipelines have."""
    kind = view.kind(node)
    if kind == DATASET:
        return True
    if kind in (HOST, PLAIN):
        return False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return (node.func.attr in _STEPS and _is_dataset(node.func.value,
            view)) or view.dotted(node.func).startswith("tensorflow.data")
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return kind == UNKNOWN and bool(_NAMED.search(name)) and not view.dotted(node)
