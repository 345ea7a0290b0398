"""Real architectures: what the readers understand of each, held against torch's own counts.

    .venv/bin/python -m bench.architectures [--only NAME ...] [--json]

Every row is a class of transformers' own with the sizes of its configuration class, traced over shapes. Beside it stand
  parameters   `sum(p.numel())` of the model itself: must be equal;
  FLOPs        of the forward and of the forward and backward pass by torch.utils.flop_counter.FlopCounterMode: within 1 %.
FlopCounterMode counts products, convolutions and attention alone. Two things are done so that it counts the same operations:
attention and experts are handed to it unfused (it has no formula for `_grouped_mm`), and its weight gradient of a grouped
convolution, which it multiplies by the number of groups, is divided by them; rows that needed the latter are marked with `g`.
Small models are also exported with torch.export and read as `.pt2`: parameters equal, FLOPs within 1 %.

Exits with 0 when every row holds.
"""

import argparse
import io
import json
import os
import pickle
import resource
import sys
import time
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from core.graph import Graph
from core.ops import Op
from core.symbols import value_of
from intake.source import BytesSource

COUNTED = ("matmul", "conv", "attention")
"""Kinds of which FlopCounterMode counts the operations."""
DEEP: dict[str, object] = {"num_hidden_layers": 4}
ROWS: tuple[tuple[str, str, int, dict[str, object]], ...] = (
    *((kind, "decoder", 128, {}) for kind in (
        "gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "phi", "phi3", "opt", "bloom", "gpt_neox", "gptj",
        "falcon", "stablelm", "olmo2", "starcoder2", "cohere", "codegen", "mpt")),
    ("llama", "100 layers", 128, {"num_hidden_layers": 100, "hidden_size": 8192, "num_attention_heads": 64,
                                  "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 128_256}),
    *((kind, "encoder", 128, {}) for kind in (
        "bert", "roberta", "distilbert", "albert", "electra", "deberta-v2", "mpnet", "modernbert")),
    ("esm", "encoder", 128, {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32}),
    *((kind, "encoder-decoder", 128, {}) for kind in ("t5", "bart", "pegasus", "mbart", "marian")),
    *((kind, "vision", 1, {}) for kind in (
        "vit", "deit", "swin", "convnext", "resnet", "regnet", "beit", "dinov2", "mobilenet_v2", "efficientnet", "segformer",
        "detr", "dpt", "poolformer")),
    *((kind, "video", 1, {}) for kind in ("videomae", "timesformer")),
    *((kind, "audio", 64, {}) for kind in ("wav2vec2", "hubert", "whisper", "audio-spectrogram-transformer")),
    *((kind, "multimodal", 64, {}) for kind in ("clip", "siglip", "llava", "blip")),
    ("qwen2_vl", "multimodal", 64, {"vision_config": {"hidden_size": 1536}, "text_config": {
        "hidden_size": 1536, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
        "intermediate_size": 8960}}),
    *((kind, "mixture of experts", 64, DEEP) for kind in (
        "mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v3", "olmoe", "gpt_oss")),
    ("deepseek_v3", "a trillion", 64, {"num_hidden_layers": 61, "n_routed_experts": 384, "num_attention_heads": 64,
                                       "num_key_value_heads": 64, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
                                       "vocab_size": 163_840}),
    *((kind, "state space", 16, DEEP) for kind in ("mamba", "mamba2", "falcon_mamba", "jamba")),
)  # fmt: skip
"""model_type, kind, length, and what is changed of its configuration class."""
_TINY: dict[str, object] = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128,
                            "vocab_size": 200}  # fmt: skip
EXPORTED: tuple[tuple[str, dict[str, object]], ...] = (
    ("llama", {**_TINY, "num_key_value_heads": 2}), ("qwen2", {**_TINY, "num_key_value_heads": 2}), ("bert", _TINY),
    ("roberta", _TINY), ("vit", {**_TINY, "image_size": 32, "patch_size": 8}),
    ("resnet", {"depths": [1, 1], "hidden_sizes": [16, 32], "embedding_size": 8}), ("mixtral", {**_TINY, "num_key_value_heads": 2,
                                                                                               "num_local_experts": 4}),
    ("convnext", {"depths": [1, 1], "hidden_sizes": [16, 32], "num_stages": 2}),
    ("t5", {"num_layers": 2, "d_model": 64, "d_kv": 16, "num_heads": 4, "d_ff": 128, "vocab_size": 200}),
)  # fmt: skip


@dataclass(slots=True)
class Row:
    """One architecture."""

    name: str
    kind: str
    parameters: int = 0
    parameters_torch: int = 0
    forward: int = 0
    forward_torch: int = 0
    training: int = 0
    training_torch: int = 0
    uncounted: tuple[str, ...] = ()
    marks: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    fault: str = ""

    @property
    def holds(self) -> bool:
        """Whether parameters are equal and both counts are within 1 %."""
        return (
            not self.fault
            and self.parameters == self.parameters_torch
            and self.parameters > 0
            and _off(self.forward, self.forward_torch) <= 0.01
            and _off(self.training, self.training_torch) <= 0.01
        )


def _off(ours: int, theirs: int) -> float:
    return abs(ours - theirs) / theirs if theirs else float(ours != 0)


def main() -> int:
    """Run the rows and print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="a model_type or a kind; may be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore")
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    rows: list[Row] = []
    for name, kind, length, changes in ROWS:
        if not chosen.only or {name, kind} & {*chosen.only}:
            rows.append(
                _apart(
                    lambda name=name, kind=kind, length=length, changes=changes: _row(name, kind, length, changes),
                    Row(name, kind),
                )
            )
            if not chosen.json:
                print(_line(rows[-1]), flush=True)
    for name, changes in EXPORTED:
        if not chosen.only or name in chosen.only:
            rows.append(_apart(lambda name=name, changes=changes: _exported(name, changes), Row(name, "exported .pt2")))
            if not chosen.json:
                print(_line(rows[-1]), flush=True)
    held = [row for row in rows if row.holds]
    if chosen.json:
        print(json.dumps({"schema_version": 1, "rows": [asdict(row) | {"holds": row.holds} for row in rows]}))
    else:
        worst = max(
            (max(_off(row.forward, row.forward_torch), _off(row.training, row.training_torch)) for row in held), default=0.0
        )
        print(
            f"verdict: {len(held)} of {len(rows)} rows hold (parameters equal, FLOPs within 1 %); worst of these {worst:.3%}, "
            f"most memory {max((row.peak_bytes for row in rows), default=0) / 1e9:.2f} GB"
        )
    return 0 if len(held) == len(rows) else 1


def _line(row: Row) -> str:
    if row.fault:
        return f"{row.name:32} {row.kind:18} {row.fault[:160]}"
    return (
        f"{row.name:32} {row.kind:18} {'ok ' if row.holds else 'OFF'} {row.parameters:>15,} "
        f"{row.parameters_torch - row.parameters:+} "
        f"{row.forward:.4g} {_off(row.forward, row.forward_torch):.3%} {row.training:.4g} "
        f"{_off(row.training, row.training_torch):.3%}{row.marks} {row.seconds:.1f} s {row.peak_bytes / 1e9:.2f} GB "
        f"{' '.join(row.uncounted)}"
    )


def _apart(work: Any, empty: Row) -> Row:
    """Run a row in a process of its own, so that its memory is its own."""
    given, taken = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(given)
        try:
            found = work()
            found.peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        except Exception as error:  # noqa: BLE001 - a row that fails is a row that says so
            found = empty
            found.fault = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        with os.fdopen(taken, "wb") as pipe:
            pickle.dump(found, pipe)
        os._exit(0)
    os.close(taken)
    with os.fdopen(given, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    if not data:
        empty.fault = "its process ended without a word"
        return empty
    return pickle.load(io.BytesIO(data))  # what our own child wrote


def flop_of(graph: Graph, phase: str, **sizes: int) -> int:
    """Return the FLOPs of a graph's products, convolutions and attention in one phase."""
    values = dict(graph.symbols) | sizes
    return sum(
        Op(node.kind, tuple(value_of(extent, values) for extent in node.dims), "fp32").flop
        for node in graph.nodes
        if node.kind in COUNTED and node.phase == phase
    )


def _row(name: str, kind: str, length: int, changes: Mapping[str, object]) -> Row:
    from intake.readers.hugging_face_config import graph_of

    begun = time.monotonic()
    graph = graph_of({"model_type": name, **changes}, {"length": length, "batch": 2})
    seconds = time.monotonic() - begun
    sizes = dict(graph.symbols)
    row = Row(name, kind, dict(graph.facts)["parameters"], seconds=seconds)
    held = {one.name: one for one in graph.tensors if one.role == "parameter"}
    row.parameters = sum(_elements(one, sizes) for one in held.values())
    row.forward = flop_of(graph, "forward")
    row.training = row.forward + flop_of(graph, "backward")
    point = (sizes.get("batch", 2), sizes.get("length", length))
    row.parameters_torch, row.forward_torch, row.training_torch, row.marks = _reference(name, changes, point)
    kinds = Counter(node.op for node in graph.nodes if node.kind in ("rnn", "fft", "linalg", "custom"))
    row.uncounted = tuple(sorted(kinds))[:4]
    return row


def _elements(tensor: Any, sizes: Mapping[str, int]) -> int:
    total = 1
    for extent in tensor.shape:
        total *= value_of(extent, sizes)
    return total


def _reference(name: str, changes: Mapping[str, object], point: tuple[int, int]) -> tuple[int, int, int, str]:
    """Count with torch alone: attention and experts unfused, on the meta device."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from intake.readers.hugging_face_inputs import Inputs
    from intake.readers.hugging_face_model import model_of
    from intake.readers.torch_fit import Point
    from intake.readers.torch_functions import OWN
    from intake.readers.torch_recorder import Recorder
    from intake.readers.torch_trace import loss_of, traced

    model, _ = model_of({"model_type": name, **changes}, None)
    count = sum(one.numel() for one in model.parameters())
    if type(model)._can_set_experts_implementation():  # noqa: SLF001 - whether it has experts
        model.set_experts_implementation("batched_mm")
    model.train()
    grouped = [0]
    for labels in (True, False):
        inputs = Inputs(model, training=True)
        inputs.labels = labels
        recorder = Recorder(OWN)
        recorder.recording = False
        given = inputs.make(recorder, Point(*point))
        forward = FlopCounterMode(display=False)
        try:
            with traced(recorder, {}, fused=False):
                with forward:
                    made = model(**given)
                backward = FlopCounterMode(
                    display=False, custom_mapping={torch.ops.aten.convolution_backward: _gradients(grouped)}
                )
                with backward:
                    loss_of(made).backward()
        except (RuntimeError, ValueError, NotImplementedError, TypeError, AttributeError, IndexError):
            if not labels:
                raise
            continue
        whole = forward.get_total_flops()
        return count, whole, whole + backward.get_total_flops(), "g" if grouped[0] else ""
    raise RuntimeError("no loss")


def _gradients(grouped: list[int]) -> Any:
    """FlopCounterMode's formula for the gradients of a convolution, its weight gradient divided by the groups."""
    from torch.utils.flop_counter import conv_backward_flop

    def flop(gradient: Any, given: Any, weight: Any, *rest: Any, out_shape: Any = None, **_: Any) -> int:
        groups, mask = rest[6], rest[7]
        parts = [
            conv_backward_flop(gradient, given, weight, *rest[:7], [one == at for one in range(3)], out_val=out_shape)
            if mask[at]
            else 0
            for at in range(2)
        ]
        grouped[0] += int(groups > 1 and mask[1])
        return parts[0] + parts[1] // groups

    return flop


def _exported(name: str, changes: Mapping[str, object]) -> Row:
    import torch

    from core.graph_json import graph_from_json
    from intake.readers import pt2
    from intake.readers.hugging_face_config import graph_of
    from intake.readers.hugging_face_inputs import Inputs
    from intake.readers.hugging_face_model import model_of
    from intake.readers.torch_fit import Point
    from intake.readers.torch_functions import OWN
    from intake.readers.torch_recorder import Recorder

    begun = time.monotonic()
    config = {"model_type": name, **changes}
    ours = graph_of(config, {"length": 16, "batch": 2, "phase": "infer"})
    model, _ = model_of(config, None)
    inputs = Inputs(model, training=False)
    recorder = Recorder(OWN)
    given = inputs.make(recorder, Point(2, 16))
    real = model.to_empty(device="cpu").eval()
    real.tie_weights()
    filled = {
        key: recorder.value(one) if recorder.value(one) is not None else torch.ones(one.shape, dtype=one.dtype)
        for key, one in given.items()
    }
    program = torch.export.export(real, (), filled, strict=False)
    file = io.BytesIO()
    torch.export.save(program, file)
    graph = graph_from_json(pt2.read(BytesSource(f"{name}.pt2", file.getvalue()), {}))
    assert isinstance(graph, Graph)
    row = Row(name, "exported .pt2", seconds=time.monotonic() - begun)
    row.parameters, row.parameters_torch = dict(graph.facts)["parameters"], dict(ours.facts)["parameters"]
    row.forward, row.forward_torch = flop_of(graph, "forward"), flop_of(ours, "forward")
    row.training, row.training_torch = row.forward, row.forward_torch
    return row


if __name__ == "__main__":
    sys.exit(main())
