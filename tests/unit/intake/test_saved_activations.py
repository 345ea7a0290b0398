"""Saved bytes are held against what torch really keeps between a forward and a backward pass."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from core.workload import Workload
from intake import read_document

NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def gpt2(workload: Workload) -> tuple[Any, Callable[[Any], Any]]:
    config = transformers.GPT2Config(
        n_layer=4,
        n_embd=256,
        n_head=4,
        n_positions=256,
        use_cache=False,
        resid_pdrop=0,
        embd_pdrop=0,
        attn_pdrop=0,
        attn_implementation="sdpa",
    )
    ids = torch.randint(50257, (workload.batch, workload.length or 1))
    return transformers.GPT2LMHeadModel(config), lambda model: model(ids, labels=ids).loss


def bert(workload: Workload) -> tuple[Any, Callable[[Any], Any]]:
    config = transformers.BertConfig(num_hidden_layers=2, attn_implementation="sdpa", **NO_DROPOUT)
    ids = torch.randint(30522, (workload.batch, workload.length or 1))
    return transformers.BertForMaskedLM(config), lambda model: model(ids, labels=ids).loss


def llama(workload: Workload) -> tuple[Any, Callable[[Any], Any]]:
    config = transformers.LlamaConfig(
        hidden_size=256,
        intermediate_size=1024,
        num_hidden_layers=4,
        num_attention_heads=8,
        use_cache=False,
        num_key_value_heads=2,
        vocab_size=1000,
        attn_implementation="sdpa",
    )
    ids = torch.randint(1000, (workload.batch, workload.length or 1))
    return transformers.LlamaForCausalLM(config), lambda model: model(ids, labels=ids).loss


def images(model: str, **options: Any) -> Callable[[Workload], tuple[Any, Callable[[Any], Any]]]:
    def build(workload: Workload) -> tuple[Any, Callable[[Any], Any]]:
        config = getattr(transformers, f"{model}Config")(num_labels=1000, **options)
        pixels, labels = torch.randn(workload.batch, 3, 64, 64), torch.zeros(workload.batch, dtype=torch.long)
        return getattr(transformers, f"{model}ForImageClassification")(config), lambda made: made(pixels, labels=labels).loss

    return build


def lstm(workload: Workload) -> tuple[Any, Callable[[Any], Any]]:
    x = torch.randn(workload.batch, workload.length or 1, 64)
    return nn.LSTM(64, 64, batch_first=True), lambda model: model(x)[0].sum()


LLAMA = {
    "preset": "llama-3-8b",
    "layers": 4,
    "width": 256,
    "heads": 8,
    "kv_heads": 2,
    "head_width": 32,
    "hidden": 1024,
    "vocabulary": 1000,
}
CASES: dict[str, tuple[dict[str, object], dict[str, int], Callable[[Workload], tuple[Any, Callable[[Any], Any]]], float]] = {
    "gpt2": ({"preset": "gpt2-demo"}, {"batch": 2, "length": 64}, gpt2, 0.1),
    "bert": ({"preset": "bert-base", "layers": 2}, {"batch": 1, "length": 64}, bert, 0.1),
    "llama": (LLAMA, {"batch": 2, "length": 64}, llama, 0.3),
    "resnet": ({"preset": "resnet-50"}, {"batch": 2, "image": 64}, images("ResNet"), 0.1),
    "mobilenet": ({"preset": "mobilenet-v2"}, {"batch": 2, "image": 64}, images("MobileNetV2", classifier_dropout_prob=0.0), 0.1),
    "vit": (
        {"preset": "vit-b16", "layers": 2},
        {"batch": 1, "image": 64},
        images("ViT", num_hidden_layers=2, image_size=64, attn_implementation="sdpa", **NO_DROPOUT),
        0.1,
    ),
    "lstm": ({"blocks": [{"kind": "lstm_layer", "inputs": 64, "hidden": 64}]}, {"batch": 4, "length": 16}, lstm, 0.5),
}


def saved_bytes(model: Any, run: Callable[[Any], Any]) -> int:
    """Return the bytes of every storage that is kept for the backward pass and is not a weight."""
    own = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    kept: dict[int, tuple[int, Any]] = {}

    def keep(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        run(model)
    return sum(count for count, _ in kept.values())


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", sorted(CASES))
def test_saved_bytes_are_those_that_torch_keeps(name: str) -> None:
    model, shape, build, tolerance = CASES[name]
    workload = read_document({"task": "train", "dtype": "fp32", "model": model, **shape})
    logits = next((block for block in workload.blocks if "ends" in block.kind or "head" in block.kind), None)
    gradient = 0
    if logits is not None:
        sizes = dict(logits.sizes)
        gradient = 4 * (shape["batch"] * shape.get("length", 1)) * int(sizes.get("vocabulary") or sizes["classes"])  # type: ignore[arg-type]
    made, run = build(workload)
    made.train()
    assert workload.activation_bytes - gradient == pytest.approx(saved_bytes(made, run), rel=tolerance)
