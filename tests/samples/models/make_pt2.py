"""Makes the samples of exported programs with torch.export: run it when their content is to change.

    .venv/bin/python -m tests.samples.models.make_pt2

What torch writes beside the program (lines of the files that were traced, example inputs) is left out; weights are zeros, so
that they pack small. `older.pt2` holds the same program as `decoder.pt2` in the layout that torch wrote up to version 2.6
(torch/export/__init__.py of that version: four entries beside each other, weights as one pickle, which nobody opens).
"""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent / "pt2"
STAMP = (2026, 1, 1, 0, 0, 0)


def main() -> None:
    """Write every sample."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    auto = torch.export.Dim.AUTO
    sizes = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
             "intermediate_size": 64, "vocab_size": 100, "use_cache": False, "tie_word_embeddings": True}  # fmt: skip
    decoder = LlamaForCausalLM._from_config(LlamaConfig(**sizes)).eval()
    ids = torch.ones(2, 16, dtype=torch.int64)
    write("decoder", decoder, (), {"input_ids": ids}, {"input_ids": {0: auto, 1: auto}})
    older()
    write("images", _images(torch), (torch.ones(2, 3, 4, 8, 8),), {}, ({0: auto},))
    write("control", _control(torch), (torch.ones(3, 12, dtype=torch.int64),), {}, ({0: auto},))


def _images(torch: Any) -> Any:
    nn = torch.nn

    class Images(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.volume = nn.Conv3d(3, 8, 3, padding=1, bias=False)
            self.deep = nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=8)
            self.norm = nn.BatchNorm2d(8)
            self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
            self.groups = nn.GroupNorm(2, 4)
            self.head = nn.Linear(4, 5)

        def forward(self, pixels: Any) -> Any:
            flat = self.volume(pixels).amax(2)
            small = torch.relu(self.norm(self.deep(flat)))
            return self.head(self.groups(self.up(small)).mean((2, 3))).softmax(-1)

    return Images().eval()


def _control(torch: Any) -> Any:
    nn = torch.nn

    class Control(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(50, 16)
            self.layers = nn.LSTM(16, 8, num_layers=2, batch_first=True, bidirectional=True)
            self.head = nn.Linear(16, 50)

        def forward(self, ids: Any) -> Any:
            words, _ = self.layers(self.table(ids))
            scores = self.head(words)
            best, _ = torch.topk(scores, 5)
            turned = torch.cond(best.sum() > 0, lambda x: x.exp(), lambda x: x * 2, (best,))
            return turned, ids.nonzero(), torch.fft.rfft(words, dim=1).abs(), words.double().cumsum(1)

    return Control().eval()


def write(name: str, module: Any, args: tuple[Any, ...], named: dict[str, Any], free: Any) -> None:
    """Export a module and keep of its file what the reader looks at."""
    import torch

    with torch.no_grad():
        for one in module.parameters():
            one.zero_()
    program = torch.export.export(module, args, named, dynamic_shapes=free, strict=False)
    whole = io.BytesIO()
    torch.export.save(program, whole)
    with zipfile.ZipFile(whole) as archive, zipfile.ZipFile(HERE / f"{name}.pt2", "w", zipfile.ZIP_DEFLATED) as kept:
        for entry in archive.infolist():
            inside = entry.filename.partition("/")[2]
            if not inside.startswith(("data/sample_inputs", "data/constants", ".data")):
                content = _plain(inside, archive.read(entry))
                kept.writestr(zipfile.ZipInfo(f"{name}/{inside}", STAMP), content, zipfile.ZIP_DEFLATED)


def _plain(name: str, content: bytes) -> bytes:
    if not name.endswith("model.json"):
        return content
    values = json.loads(content)
    _strip(values)
    return json.dumps(values, separators=(",", ":")).encode()


def _strip(value: Any) -> None:
    if isinstance(value, list):
        for one in value:
            _strip(one)
    elif isinstance(value, dict):
        for key in ("stack_trace", "torch_fn", "source_fn_stack", "from_node", "module_call_graph", "guards_code"):
            value.pop(key, None)
        for one in value.values():
            _strip(one)


def older() -> None:
    """Lay the decoder out as torch did up to version 2.6."""
    with zipfile.ZipFile(HERE / "decoder.pt2") as archive, zipfile.ZipFile(HERE / "older.pt2", "w") as kept:
        program = json.loads(archive.read("decoder/models/model.json"))
        for name, content in (
            ("serialized_exported_program.json", json.dumps(program, separators=(",", ":")).encode()),
            ("serialized_state_dict.pt", b"\x80\x04N."), ("serialized_constants.pt", b"\x80\x04N."),
            ("serialized_example_inputs.pt", b"\x80\x04N."), ("version", b"8.2"),
        ):  # fmt: skip
            kept.writestr(zipfile.ZipInfo(name, STAMP), content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
