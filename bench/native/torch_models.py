"""The models in PyTorch: transformers' own classes from a configuration where it has them, plain `nn.Module`s otherwise."""
# ruff: noqa: D102 (every model is called with the same arguments; the class says what its call does)

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import nn

from bench.native.cases import Case, Dense, Image, Recommender, Recurrent, Segmentation, Text, Vision


def gpt2(case: Case) -> nn.Module:
    """Return transformers' GPT-2 with its language model head; attention is its default, sdpa."""
    from transformers import GPT2Config, GPT2LMHeadModel

    assert isinstance(case.shape, Text)
    s = case.shape
    config = GPT2Config(vocab_size=s.vocabulary, n_positions=s.positions, n_embd=s.width, n_layer=s.layers, n_head=s.heads,
                        n_inner=s.hidden, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
                        bos_token_id=0, eos_token_id=0)
    return GPT2LMHeadModel(config)


def bert(case: Case) -> nn.Module:
    """Return transformers' BERT with its masked language model head."""
    from transformers import BertConfig, BertForMaskedLM

    assert isinstance(case.shape, Text)
    s = case.shape
    config = BertConfig(vocab_size=s.vocabulary, hidden_size=s.width, num_hidden_layers=s.layers, num_attention_heads=s.heads,
                        intermediate_size=s.hidden, max_position_embeddings=s.positions, hidden_dropout_prob=0.0,
                        attention_probs_dropout_prob=0.0)
    return BertForMaskedLM(config)


def llama(case: Case) -> nn.Module:
    """Return transformers' Llama with its own language model head, untied."""
    from transformers import LlamaConfig, LlamaForCausalLM

    assert isinstance(case.shape, Text)
    s = case.shape
    config = LlamaConfig(vocab_size=s.vocabulary, hidden_size=s.width, intermediate_size=s.hidden, num_hidden_layers=s.layers,
                         num_attention_heads=s.heads, num_key_value_heads=s.kv_heads, max_position_embeddings=s.length,
                         tie_word_embeddings=False, use_cache=False, bos_token_id=0, eos_token_id=0)
    return LlamaForCausalLM(config)


def vit(case: Case) -> nn.Module:
    """Return transformers' vision transformer with a linear classifier."""
    from transformers import ViTConfig, ViTForImageClassification

    assert isinstance(case.shape, Vision)
    s = case.shape
    config = ViTConfig(hidden_size=s.width, num_hidden_layers=s.layers, num_attention_heads=s.heads, intermediate_size=s.hidden,
                       image_size=s.image, patch_size=s.patch, num_labels=s.classes)
    return ViTForImageClassification(config)


def resnet50(case: Case) -> nn.Module:
    """Return transformers' ResNet-50: version 1.5, its stride in the 3x3, no convolution biases."""
    from transformers import ResNetConfig, ResNetForImageClassification

    assert isinstance(case.shape, Image)
    return ResNetForImageClassification(ResNetConfig(num_labels=case.shape.classes))


def mobilenet_v2(case: Case) -> nn.Module:
    """Return transformers' MobileNetV2 with PyTorch's symmetric padding, as torchvision's."""
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    assert isinstance(case.shape, Image)
    config = MobileNetV2Config(num_labels=case.shape.classes, image_size=case.shape.image, tf_padding=False,
                               classifier_dropout_prob=0.0)
    return MobileNetV2ForImageClassification(config)


class LanguageModel(nn.Module):
    """Embedding, `nn.LSTM`, linear decoder: the word language model of PyTorch's examples."""

    def __init__(self, shape: Recurrent) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.lstm = nn.LSTM(shape.width, shape.width, shape.layers, batch_first=True)
        self.decoder = nn.Linear(shape.width, shape.vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(self.embedding(tokens))
        return self.decoder(hidden)


def lstm(case: Case) -> nn.Module:
    """Return a language model of LSTM layers."""
    assert isinstance(case.shape, Recurrent)
    return LanguageModel(case.shape)


def tower(widths: tuple[int, ...], last_activation: bool) -> nn.Sequential:
    """Return linear layers with relu between, and after the last one when asked."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*(layers if last_activation else layers[:-1]))


class Dlrm(nn.Module):
    """Deep learning recommendation model, after facebookresearch/dlrm: one `nn.EmbeddingBag` a table."""

    def __init__(self, shape: Recommender) -> None:
        super().__init__()
        self.bottom = tower(shape.bottom, last_activation=True)
        self.tables = nn.ModuleList(nn.EmbeddingBag(shape.rows, shape.width, mode="sum") for _ in range(shape.tables))
        features = shape.tables + 1
        joined = shape.bottom[-1] + features * (features - 1) // 2
        self.top = tower((joined, *shape.top), last_activation=False)
        rows, columns = torch.tril_indices(features, features, offset=-1)
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("columns", columns, persistent=False)

    def forward(self, dense: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        first = self.bottom(dense)
        vectors = torch.stack([first] + [table(ids[:, i]) for i, table in enumerate(self.tables)], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        pairs = products[:, self.rows, self.columns]
        return self.top(torch.cat([first, pairs], dim=1)).squeeze(1)


def dlrm(case: Case) -> nn.Module:
    """Return a DLRM."""
    assert isinstance(case.shape, Recommender)
    return Dlrm(case.shape)


def mlp(case: Case) -> nn.Module:
    """Return a multilayer perceptron."""
    assert isinstance(case.shape, Dense)
    return tower(case.shape.widths, last_activation=False)


class DoubleConvolution(nn.Sequential):
    """Twice 3x3 convolution, batch norm, relu."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    """U-Net with batch norm and transposed convolutions, after milesial/Pytorch-UNet."""

    def __init__(self, shape: Segmentation) -> None:
        super().__init__()
        widths = [shape.base * 2**i for i in range(5)]
        self.first = DoubleConvolution(3, widths[0])
        self.down = nn.ModuleList(
            nn.Sequential(nn.MaxPool2d(2), DoubleConvolution(a, b)) for a, b in pairwise(widths)
        )
        pairs = list(pairwise(widths[::-1]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in pairs)
        self.join = nn.ModuleList(DoubleConvolution(a, b) for a, b in pairs)
        self.head = nn.Conv2d(widths[0], shape.classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        skips = [x]
        for down in self.down:
            x = down(x)
            skips.append(x)
        for up, join, skip in zip(self.up, self.join, skips[-2::-1], strict=True):
            x = join(torch.cat([skip, up(x)], dim=1))
        return self.head(x)


def unet(case: Case) -> nn.Module:
    """Return a U-Net."""
    assert isinstance(case.shape, Segmentation)
    return UNet(case.shape)


BUILDERS: dict[str, Callable[[Case], nn.Module]] = {
    "gpt2": gpt2, "bert": bert, "llama": llama, "vit": vit, "resnet50": resnet50, "mobilenet_v2": mobilenet_v2,
    "lstm": lstm, "dlrm": dlrm, "mlp": mlp, "unet": unet,
}
FROM_TRANSFORMERS = {"gpt2": "input_ids", "bert": "input_ids", "llama": "input_ids",
                     "vit": "pixel_values", "resnet50": "pixel_values", "mobilenet_v2": "pixel_values"}
"""Families that compute their own loss from `labels`, and the name of their first argument."""
