"""The workload document of each case, as a user of Tandem would write it: a preset and what is changed of it.

A case has one document for all runtimes, but for two models that frameworks themselves build differently:
`keras.applications.ResNet50` is version 1 with convolution biases where transformers has version 1.5 without, and
the LSTM of PyTorch and of MXNet keeps two bias vectors where all others keep one. The bench shows which rows these are.
"""

from bench.native.cases import Case, Dense, Image, Recommender, Recurrent, Segmentation, Text, Vision

PRESETS = {
    "gpt2": "gpt2-small", "bert": "bert-base", "llama": "llama-3-8b", "vit": "vit-b16", "resnet50": "resnet-50",
    "mobilenet_v2": "mobilenet-v2", "lstm": "lstm-lm", "dlrm": "dlrm-small", "mlp": "mlp", "unet": "unet",
}


def document(case: Case, runtime: str) -> dict[str, object]:
    """Return the workload document of a case for a runtime.

    Args:
        case: the case.
        runtime: a runtime id; matters only for the models that frameworks build differently.
    """
    model, size = _model_and_size(case, runtime)
    named: dict[str, object] = {
        "schema": 1, "name": case.name, "task": case.task, "model": {"preset": PRESETS[case.family]} | model,
        "batch": case.batch, "dtype": "fp32", "objective": "time",
    }
    return named | size | ({"optimizer": case.optimizer} if case.trains else {})


def _model_and_size(case: Case, runtime: str) -> tuple[dict[str, object], dict[str, object]]:
    match case.shape:
        case Text() as s:
            model: dict[str, object] = {
                "layers": s.layers, "width": s.width, "heads": s.heads, "kv_heads": s.kv_heads, "head_width": s.width // s.heads,
                "hidden": s.hidden, "vocabulary": s.vocabulary,
            }
            return model | ({"positions": s.positions} if s.positions else {}), {"length": s.length}
        case Image() as s:
            version_1 = case.family == "resnet50" and runtime.startswith("keras-")
            return {"classes": s.classes} | ({"stride_first": 1, "conv_bias": 1} if version_1 else {}), {"image": s.image}
        case Vision() as s:
            return {"layers": s.layers, "width": s.width, "heads": s.heads, "kv_heads": s.heads, "head_width": s.width // s.heads,
                    "hidden": s.hidden, "patch": s.patch, "classes": s.classes}, {"image": s.image}
        case Recurrent() as s:
            sizes = {"layers": s.layers, "width": s.width, "vocabulary": s.vocabulary, "tied": 0}
            return sizes | {"biases": 2 if runtime.startswith(("torch-", "mxnet")) else 1}, {"length": s.length}
        case Recommender() as s:
            return {"dense_features": s.bottom[0], "bottom": list(s.bottom[1:]), "tables": s.tables, "rows": s.rows,
                    "per_bag": s.per_bag, "top": list(s.top[:-1])}, {}
        case Dense() as s:
            return {"inputs": s.widths[0], "hidden": list(s.widths[1:-1]), "classes": s.widths[-1]}, {}
        case Segmentation() as s:
            return {"base_channels": s.base, "classes": s.classes}, {"image": s.image}
