"""Made the ONNX samples: small models from both of torch's exporters, their weights left out as external data.

Needs torch 2.13, transformers 5 and onnx 1.23 beside the tests' own packages; run from the repository's root. Prints what torch
says of each: parameters, and FLOPs by its own counter, which the tests hold the reader against.
"""

import sys
from pathlib import Path

import onnx
import torch
import transformers
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

PLACE = Path(__file__).resolve().parent / "onnx"


class Convolutions(nn.Module):
    """Strided, grouped, transposed and plain convolutions, batch normalisation, pooling."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.grouped = nn.Conv2d(16, 32, 3, 2, 1, groups=4)
        self.up = nn.ConvTranspose2d(32, 8, 4, 2, 1)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(torch.relu(self.up(torch.relu(self.grouped(self.stem(x))))).mean((2, 3)))


class Recurrent(nn.Module):
    """An LSTM in both directions and a GRU, after an embedding."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(100, 32), nn.Linear(24, 100)
        self.lstm, self.gru = nn.LSTM(32, 64, batch_first=True, bidirectional=True), nn.GRU(128, 24, batch_first=True)

    def forward(self, tokens):
        return self.head(self.gru(self.lstm(self.table(tokens))[0])[0])


class Logits(nn.Module):
    """The logits of a model of transformers."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        cached = {"use_cache": False} if hasattr(self.model.config, "use_cache") else {}
        return self.model(tokens, **cached).logits


def models():
    """Yield name, exporter, model, example, and the names of its open axes."""
    tokens, both = torch.randint(1, 90, (2, 16)), {0: "batch", 1: "sequence"}
    gpt2 = transformers.GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=211, n_positions=128)
    bert = transformers.BertConfig(num_hidden_layers=1, hidden_size=64, intermediate_size=128, num_attention_heads=4,
                                   vocab_size=211)
    llama = transformers.LlamaConfig(num_hidden_layers=1, hidden_size=64, intermediate_size=160, num_attention_heads=4,
                                     num_key_value_heads=2, vocab_size=211)
    dense = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10))
    yield "dense", "old", dense, torch.randn(3, 64), {0: "batch"}
    yield "convolutions", "new", Convolutions(), torch.randn(2, 3, 64, 64), {0: "batch"}
    yield "recurrent", "old", Recurrent(), torch.randint(1, 90, (2, 17)), both
    yield "bert", "old", Logits(transformers.BertForMaskedLM(bert)), tokens, both
    yield "gpt2", "new", Logits(transformers.GPT2LMHeadModel(gpt2)), tokens, both
    yield "llama", "new", Logits(transformers.LlamaForCausalLM(llama)), tokens, both


def strip(path):
    """Leave weights out: as external data of a file that is not there; small constants stay."""
    model = onnx.load(path)
    for one in model.graph.initializer:
        if len(one.raw_data) > 256 or len(one.float_data) > 64:
            del one.float_data[:]
            one.ClearField("raw_data")
            one.data_location = onnx.TensorProto.EXTERNAL
            one.external_data.add(key="location", value="weights.bin")
    kept = ("pkg.torch.onnx.name_scopes", "pkg.torch.export.graph_signature.InputSpec.kind")
    for one in (*model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output):
        metadata = [(entry.key, entry.value) for entry in one.metadata_props if entry.key in kept]
        del one.metadata_props[:]
        for key, value in metadata:
            one.metadata_props.add(key=key, value=value)
        one.doc_string = ""
    onnx.save(model, path)


def main():
    """Write every sample."""
    PLACE.mkdir(exist_ok=True)
    for name, exporter, model, example, axes in models():
        for one in model.parameters():
            one.data.normal_(0, 0.02)  # equal ones would be stored once
        model.eval()
        with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
            model(example)
        path = str(PLACE / f"{name}.onnx")
        if exporter == "old":
            torch.onnx.export(model, (example,), path, dynamo=False, input_names=["x"], dynamic_axes={"x": axes},
                              opset_version=17, do_constant_folding=False)
        else:
            dynamic = (dict.fromkeys(axes, torch.export.Dim.DYNAMIC),)
            torch.onnx.export(model, (example,), path, dynamo=True, input_names=["x"], dynamic_shapes=dynamic,
                              optimize=name != "convolutions", external_data=False, verbose=False)
        strip(path)
        count = sum(one.numel() for one in model.parameters())
        sys.stdout.write(f"{name} {count} {counter.get_total_flops()} {tuple(example.shape)}\n")


if __name__ == "__main__":
    main()
