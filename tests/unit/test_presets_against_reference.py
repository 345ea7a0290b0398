"""Presets equal their reference implementations: the same parameters, the same FLOPs forward and backward.

References are built on torch's meta device, which computes shapes and nothing else, and counted by torch's FlopCounterMode.
Attention runs as plain matrix products (`eager`), so that its FLOPs are seen. Only kinds that the counter knows are compared.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode, conv_flop_count

from catalog import preset_names
from core.workload import Block, Workload
from intake import read_document

COUNTED = ("matmul", "conv", "attention", "rnn")
SMALL = {
    "gpt2-small": {"batch": 2, "length": 128},
    "gpt2-demo": {"batch": 2, "length": 64},
    "llama-3.2-1b": {"batch": 2, "length": 64},
    "llama-2-7b": {"batch": 1, "length": 96},
    "mistral-7b": {"batch": 2, "length": 64},
    "llama-3-8b": {"batch": 2, "length": 96},
    "llama-3-70b": {"batch": 1, "length": 64},
    "bert-base": {"batch": 2, "length": 64},
    "resnet-50": {"batch": 2, "image": 224},
    "mobilenet-v2": {"batch": 2, "image": 224},
    "vit-b16": {"batch": 2, "image": 224},
    "lstm-lm": {"batch": 4, "length": 12},
    "dlrm-small": {"batch": 16},
    "mlp": {"batch": 16},
    "unet": {"batch": 1, "image": 256},
}
Reference = tuple[Any, Callable[[Any], Any]]


class LanguageModel(nn.Module):
    """An LSTM language model with a tied decoder, as in pytorch/examples word_language_model."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.lstm, self.decoder = (
            nn.Embedding(33278, 650),
            nn.LSTM(650, 650, 2, batch_first=True),
            nn.Linear(650, 33278),
        )
        self.decoder.weight = self.embedding.weight

    def forward(self, tokens: Any) -> Any:
        return self.decoder(self.lstm(self.embedding(tokens))[0])


class Recommender(nn.Module):
    """DLRM: two towers around a pairwise interaction."""

    def __init__(self) -> None:
        super().__init__()
        self.bottom = tower(13, 512, 256, 32)
        self.tables = nn.ModuleList(nn.EmbeddingBag(20000, 32, mode="sum") for _ in range(26))
        self.top = nn.Sequential(tower(27 * 26 // 2 + 32, 512, 256), nn.Linear(256, 1))

    def forward(self, dense: Any, rows: Any) -> Any:
        first = self.bottom(dense)
        vectors = torch.stack([first, *(table(rows[i]) for i, table in enumerate(self.tables))], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        below = torch.tril_indices(27, 27, -1, device="meta")
        return self.top(torch.cat([first, products[:, below[0], below[1]]], 1))


class Double(nn.Sequential):
    """Twice a 3x3 convolution, batch norm and relu."""

    def __init__(self, inputs: int, outputs: int) -> None:
        layers: list[Any] = []
        for channels in (inputs, outputs):
            layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        super().__init__(*layers)


class Segmenter(nn.Module):
    """U-Net with four stages down."""

    def __init__(self) -> None:
        super().__init__()
        widths = (64, 128, 256, 512, 1024)
        self.start = Double(3, 64)
        self.down = nn.ModuleList(Double(a, b) for a, b in pairwise(widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairwise(widths))
        self.join = nn.ModuleList(Double(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv2d(64, 2, 1)

    def forward(self, x: Any) -> Any:
        skips = [self.start(x)]
        for stage in self.down:
            skips.append(stage(functional.max_pool2d(skips[-1], 2)))
        x = skips.pop()
        for up, join in zip(reversed(self.up), reversed(self.join), strict=True):
            x = join(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)


def tower(*widths: int) -> Any:
    layers: list[Any] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers)


def tokens(workload: Workload, vocabulary: int) -> Any:
    return torch.randint(vocabulary, (workload.batch, workload.length or 1))


def causal(workload: Workload) -> Any:
    """A mask made beforehand, since transformers looks at the values of positions to make one, and meta tensors have none."""
    return torch.zeros(workload.batch, 1, workload.length or 1, workload.length or 1)


def gpt2(layers: int, width: int, heads: int, positions: int) -> Callable[[Workload], Reference]:
    def build(workload: Workload) -> Reference:
        config = transformers.GPT2Config(
            n_layer=layers, n_embd=width, n_head=heads, n_positions=positions, attn_implementation="eager", use_cache=False
        )
        ids, mask = tokens(workload, 50257), causal(workload)
        return transformers.GPT2LMHeadModel(config), lambda model: model(ids, labels=ids, attention_mask=mask).loss

    return build


def llama(layers: int, width: int, hidden: int, *, kv_heads: int = 8, vocabulary: int = 128256, tied: bool = False,
          make: str = "Llama") -> Callable[[Workload], Reference]:  # fmt: skip
    def build(workload: Workload) -> Reference:
        config = getattr(transformers, f"{make}Config")(
            hidden_size=width,
            intermediate_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=64 if layers > 32 else 32,
            num_key_value_heads=kv_heads,
            vocab_size=vocabulary,
            attn_implementation="eager",
            tie_word_embeddings=tied,
            use_cache=False,
        )
        ids, mask = tokens(workload, vocabulary), causal(workload)
        model = getattr(transformers, f"{make}ForCausalLM")(config)
        return model, lambda model: model(ids, labels=ids, attention_mask=mask).loss

    return build


def bert(workload: Workload) -> Reference:
    ids = tokens(workload, 30522)
    return (
        transformers.BertForMaskedLM(transformers.BertConfig(attn_implementation="eager")),
        lambda model: model(ids, labels=ids).loss,
    )


def images(workload: Workload) -> Any:
    side = dict(workload.blocks[0].sizes)
    side = side.get("image") or side["height"]
    return torch.randn(workload.batch, 3, side, side)


def classifier(model: str, config: str, **options: Any) -> Callable[[Workload], Reference]:
    def build(workload: Workload) -> Reference:
        pixels, labels = images(workload), torch.zeros(workload.batch, dtype=torch.long)
        made = getattr(transformers, model)(getattr(transformers, config)(num_labels=1000, **options))
        return made, lambda model: model(pixels, labels=labels).loss

    return build


def language_model(workload: Workload) -> Reference:
    ids = tokens(workload, 33278)
    return LanguageModel(), lambda model: functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())


def recommender(workload: Workload) -> Reference:
    dense, rows, labels = (
        torch.randn(workload.batch, 13),
        torch.randint(20000, (26, workload.batch, 1)),
        torch.ones(workload.batch, 1),
    )
    return Recommender(), lambda model: functional.binary_cross_entropy_with_logits(model(dense, rows), labels)


def perceptron(workload: Workload) -> Reference:
    x, labels = torch.randn(workload.batch, 784), torch.zeros(workload.batch, dtype=torch.long)
    return nn.Sequential(tower(784, 2048, 2048, 2048), nn.Linear(2048, 10)), lambda model: functional.cross_entropy(
        model(x), labels
    )


def segmenter(workload: Workload) -> Reference:
    x = images(workload)
    labels = torch.zeros(workload.batch, x.shape[2], x.shape[3], dtype=torch.long)
    return Segmenter(), lambda model: functional.cross_entropy(model(x), labels)


REFERENCES: dict[str, Callable[[Workload], Reference]] = {
    "gpt2-small": gpt2(12, 768, 12, 1024),
    "gpt2-demo": gpt2(4, 256, 4, 256),
    "llama-3.2-1b": llama(16, 2048, 8192, tied=True),
    "llama-2-7b": llama(32, 4096, 11008, kv_heads=32, vocabulary=32000),
    "mistral-7b": llama(32, 4096, 14336, vocabulary=32768, make="Mistral"),
    "llama-3-8b": llama(32, 4096, 14336),
    "llama-3-70b": llama(80, 8192, 28672),
    "bert-base": bert,
    "resnet-50": classifier("ResNetForImageClassification", "ResNetConfig"),
    "mobilenet-v2": classifier("MobileNetV2ForImageClassification", "MobileNetV2Config"),
    "vit-b16": classifier("ViTForImageClassification", "ViTConfig", attn_implementation="eager"),
    "lstm-lm": language_model,
    "dlrm-small": recommender,
    "mlp": perceptron,
    "unet": segmenter,
}


def grouped_conv_backward(
    grad: Any,
    x: Any,
    w: Any,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    groups: int,
    mask: Any,
    out_shape: Any,
    **_: Any,
) -> int:
    """Backward FLOPs of a convolution, twice its forward; torch's own formula counts grouped weight gradients `groups` times."""
    assert groups == 1 or not transposed
    forward = conv_flop_count(x, w, grad, transposed)
    return forward * (int(mask[0]) + int(mask[1]))


def reference_counts(build: Callable[[Workload], Reference], workload: Workload) -> tuple[int, int, int]:
    """Return parameters, forward FLOPs and backward FLOPs of the reference."""
    with torch.device("meta"):
        model, run = build(workload)
    model.train()
    counter = {torch.ops.aten.convolution_backward: grouped_conv_backward}
    with FlopCounterMode(display=False, custom_mapping=counter) as forward, torch.device("meta"):
        loss = run(model)
    with FlopCounterMode(display=False, custom_mapping=counter) as backward:
        loss.backward()
    return sum(p.numel() for p in model.parameters()), forward.get_total_flops(), backward.get_total_flops()


def counted(blocks: tuple[Block, ...], phase: str) -> int:
    ops = "ops_forward" if phase == "forward" else "ops_backward"
    return sum(block.repeats * op.flop for block in blocks for op in getattr(block, ops) if op.kind in COUNTED)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_a_preset_has_the_parameters_and_flop_of_its_reference(name: str) -> None:
    workload = read_document({"task": "train", "model": {"preset": name}, **SMALL[name]})
    parameters, forward, backward = reference_counts(REFERENCES[name], workload)
    assert workload.parameter_count == parameters
    assert counted(workload.blocks, "forward") == forward
    assert counted(workload.blocks, "backward") == backward


def test_every_preset_has_a_reference() -> None:
    assert set(preset_names()) == set(REFERENCES)
