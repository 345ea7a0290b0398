"""One and the same model in four formats: does Tandem tell the same of it, whatever was handed in?

    .venv/bin/python -m bench.formats --onnx-python PYTHON [--xla-python PYTHON] [--only KIND] [--keep FOLDER] [--json]

Each model is a class of transformers' own. It is read as its `config.json`, as `.pt2` (torch.export of this environment), as
ONNX (PyTorch's exporter over torch.export, and its older one over TorchScript) and as StableHLO (torch_xla, in the environment
that `./tandem runtimes install torch-xla` makes). PYTHON is an interpreter with `torch`, `transformers`, `onnx` and `onnxscript`.
Every exporter also counts the model itself: `sum(p.numel())`, and FlopCounterMode over one forward pass with attention unfused.

Bounds, all of which must hold for exit 0, for each model: parameters exactly equal in every format and to the model's own; FLOPs
of products, convolutions and attention within 1 % of FlopCounterMode in every format, and of each other. All operations together,
as `./tandem inspect` tells them, stand beside it: formats write a norm in different operations, so no bound is set. The older
exporter lacks operations that some models need: a model that it refuses has a row that says so, and no bound.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any, cast

from bench.truth import interpreter_of
from core.errors import BadInput
from core.graph import Graph
from core.graph_json import graph_from_json
from core.ops import Op
from core.symbols import value_of
from intake.readers import onnx, pt2, stablehlo
from intake.source import PathSource

REPOSITORY = Path(__file__).resolve().parent.parent
PRODUCTS = ("matmul", "conv", "attention", "rnn")
WITHIN = 0.01
LIMIT_S = 1800
TOLD = "told.json"
FORMS = ("config", "pt2", "onnx", "onnx_old", "stablehlo")
MAY_LACK = ("onnx_old",)
_LENGTH, _BATCH = 64, 2


@dataclass(frozen=True, slots=True)
class Case:
    """One model.

    Args:
        kind: its model_type.
        model: class in transformers.
        what: the family, in words.
        config: what differs from the configuration class.
        inputs: name and shape of what it is called with.
    """

    kind: str
    model: str
    what: str
    config: dict[str, object]
    inputs: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def document(self) -> dict[str, object]:
        """Its `config.json`."""
        return {"model_type": self.kind, "architectures": [self.model], **self.config}


_IDS, _PIXELS = ("input_ids", (_BATCH, _LENGTH)), ("pixel_values", (_BATCH, 3, 224, 224))
CASES = (
    Case("llama", "LlamaForCausalLM", "decoder", {
        "num_hidden_layers": 4, "hidden_size": 256, "intermediate_size": 688, "num_attention_heads": 8, "num_key_value_heads": 4,
        "vocab_size": 2000}, (_IDS,)),
    Case("gpt2", "GPT2LMHeadModel", "decoder, tied", {"n_layer": 4, "n_embd": 256, "n_head": 8, "vocab_size": 2000}, (_IDS,)),
    Case("bert", "BertForMaskedLM", "encoder, tied", {
        "num_hidden_layers": 4, "hidden_size": 256, "intermediate_size": 1024, "num_attention_heads": 8, "vocab_size": 2000},
        (_IDS,)),
    Case("t5", "T5ForConditionalGeneration", "encoder-decoder", {
        "num_layers": 3, "d_model": 256, "d_kv": 32, "num_heads": 8, "d_ff": 1024, "vocab_size": 2000},
        (_IDS, ("decoder_input_ids", (_BATCH, _LENGTH)))),
    Case("vit", "ViTForImageClassification", "vision transformer", {
        "num_hidden_layers": 4, "hidden_size": 192, "intermediate_size": 768, "num_attention_heads": 6, "image_size": 64,
        "patch_size": 8}, (("pixel_values", (_BATCH, 3, 64, 64)),)),
    Case("resnet", "ResNetForImageClassification", "convolutions", {
        "depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512], "embedding_size": 32}, (_PIXELS,)),
    Case("convnext", "ConvNextForImageClassification", "depthwise convolutions", {
        "depths": [2, 2, 2, 2], "hidden_sizes": [48, 96, 192, 384]}, (_PIXELS,)),
    Case("poolformer", "PoolFormerForImageClassification", "MLP with pooling mixer", {}, (_PIXELS,)),
    Case("mixtral", "MixtralForCausalLM", "mixture of experts", {
        "num_hidden_layers": 3, "hidden_size": 192, "intermediate_size": 384, "num_attention_heads": 6, "num_key_value_heads": 2,
        "vocab_size": 2000, "num_local_experts": 4}, (_IDS,)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One model, read from one format.

    Args:
        kind, form: which.
        parameters, parameters_true: as read, and the model's own count.
        flop, flop_true: of products, convolutions and attention, forward: as read, and by FlopCounterMode where it was exported.
        flop_all: of all operations, as read.
        fault: why there is none; empty otherwise.
    """

    kind: str
    form: str
    parameters: int = 0
    parameters_true: int = 0
    flop: int = 0
    flop_true: int = 0
    flop_all: int = 0
    fault: str = ""

    @property
    def off(self) -> float:
        """Relative error of the FLOPs."""
        return abs(self.flop / self.flop_true - 1) if self.flop_true else 1.0

    @property
    def holds(self) -> bool:
        """Whether both bounds do; an older exporter may refuse a model."""
        if self.fault:
            return self.form in MAY_LACK
        return self.parameters == self.parameters_true > 0 and self.off <= WITHIN


def counted(graph: Graph) -> tuple[int, int, int]:
    """Return (parameters, FLOPs of products, FLOPs of all operations) of a graph's forward pass at its symbols' values."""
    values = dict(graph.symbols)
    held = (tensor.shape for tensor in graph.tensors if tensor.role == "parameter")
    parameters = sum(prod(value_of(one, values) for one in shape) for shape in held)
    nodes = [node for node in graph.nodes if node.dims and node.phase == "forward"]
    flop = {id(node): Op(node.kind, tuple(value_of(one, values) for one in node.dims), "fp32").flop for node in nodes}
    return parameters, sum(flop[id(node)] for node in nodes if node.kind in PRODUCTS), sum(flop.values())


def read_file(form: str, path: Path) -> tuple[int, int, int]:
    """Return the counts of an exported model.

    Args:
        form: one of `FORMS`.
        path: of the file or folder.

    Raises:
        BadInput: it cannot be read.
    """
    reader = {"pt2": pt2, "onnx": onnx, "onnx_old": onnx, "stablehlo": stablehlo}[form]
    graph = graph_from_json(reader.read(PathSource(path), {}))
    assert isinstance(graph, Graph)
    return counted(graph)


def read_config(case: Case) -> tuple[int, int, int]:
    """Return the counts of a model's `config.json`."""
    from intake.readers.hugging_face_config import graph_of

    return counted(graph_of(case.document, {"batch": _BATCH, "length": _LENGTH, "phase": "infer"}))


def exported(interpreter: str, cases: Sequence[Case], forms: Sequence[str], folder: Path) -> list[Mapping[str, Any]]:
    """Export models in another interpreter, and return what it said of each.

    Args:
        interpreter: path of it.
        cases: to export.
        forms: of `bench.formats_export.WRITERS`.
        folder: to write to.
    """
    asked = json.dumps([asdict(case) for case in cases])
    command = [interpreter, "-W", "ignore", "-m", "bench.formats_export", asked, str(folder), *forms]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=LIMIT_S,
                          env={**os.environ, "PJRT_DEVICE": "CPU"})  # fmt: skip
    told = [cast("Mapping[str, Any]", json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]
    seen = {(one["kind"], one["form"]) for one in told}
    reason = f"{interpreter} ended with {done.returncode}: {' '.join(done.stderr.split())[-200:]}"
    lost = [(case.kind, form) for case in cases for form in forms if (case.kind, form) not in seen]
    return [*told, *({"kind": kind, "form": form, "fault": reason} for kind, form in lost)]


def rows_of(cases: Sequence[Case], interpreters: Mapping[str, Sequence[str]], folder: Path) -> list[Row]:
    """Export every model in every format that is not there yet, read all, and return the rows in the order of the cases.

    Args:
        cases: the models.
        interpreters: path -> formats that it writes.
        folder: to write to; what was exported is listed in its `told.json`.
    """
    listed = folder / TOLD
    kept: list[Mapping[str, Any]] = json.loads(listed.read_text()) if listed.exists() else []
    told = {(str(one["kind"]), str(one["form"])): one for one in kept}
    for interpreter, forms in interpreters.items():
        wanted = [form for form in forms if any((case.kind, form) not in told for case in cases)]
        lacking = [case for case in cases if any((case.kind, form) not in told for form in wanted)]
        for one in exported(interpreter, lacking, wanted, folder) if wanted else ():
            told[one["kind"], one["form"]] = one
    listed.write_text(json.dumps([*told.values()]))
    rows: list[Row] = []
    for case in cases:
        truths = [one for (kind, _), one in told.items() if kind == case.kind and "parameters" in one]
        for form in FORMS:
            said = told.get((case.kind, form), {}) if form != "config" else (truths or [{}])[0]
            rows.append(_row(case, form, said))
    return rows


def _row(case: Case, form: str, said: Mapping[str, Any]) -> Row:
    fault = "" if form == "config" else str(said.get("fault", "" if said else "not exported"))
    if fault:
        return Row(case.kind, form, fault=fault)
    try:
        parameters, flop, flop_all = read_config(case) if form == "config" else read_file(form, Path(said["path"]))
    except BadInput as error:
        return Row(case.kind, form, fault=f"not read: {error}")
    return Row(case.kind, form, parameters, said.get("parameters", 0), flop, said.get("flop", 0), flop_all)


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text."""
    what = {case.kind: case.what for case in CASES}
    heads = f"{'model':12}{'':24}{'format':11}{'parameters':>12}{'true':>12}"
    lines = [f"{heads}{'MFLOP':>11}{'true':>11}{'off':>9}{'all MFLOP':>11}"]
    for row in rows:
        head = f"{row.kind:12}{what[row.kind]:24}{row.form:11}"
        if row.fault:
            lines.append(f"{head}{'refused by the exporter' if row.holds else 'FALLS SHORT'}: {row.fault[:150]}")
            continue
        lines.append(
            f"{head}{row.parameters:>12,}{row.parameters_true:>12,}{row.flop / 1e6:>11.3f}{row.flop_true / 1e6:>11.3f}"
            f"{row.off:>9.4%}{row.flop_all / 1e6:>11.3f}{'' if row.holds else '  FALLS SHORT'}"
        )
    return "\n".join(lines)


def apart(rows: Sequence[Row], kind: str) -> tuple[float, float]:
    """Return how far the formats of one model are apart: of products, and of all operations; a fraction of the greatest."""
    read = [row for row in rows if row.kind == kind and not row.fault and row.flop]
    if not read:
        return 1.0, 1.0
    return (1 - min(row.flop for row in read) / max(row.flop for row in read),
            1 - min(row.flop_all for row in read) / max(row.flop_all for row in read))  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Export, read, and print the table and the verdict; return 0 when every bound holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onnx-python", default=sys.executable, help="an interpreter with torch, transformers, onnx, onnxscript")
    parser.add_argument("--xla-python", help="an interpreter with torch_xla and transformers; by default that of the runtime")
    parser.add_argument("--only", action="append", choices=[case.kind for case in CASES], help="a model; may be repeated")
    parser.add_argument("--keep", type=Path, help="folder for the files, which are thrown away otherwise; those in it are taken")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    asked = parser.parse_args(arguments)
    cases = [case for case in CASES if not asked.only or case.kind in asked.only]
    writers: dict[str, list[str]] = {}
    try:
        for path, forms in ((sys.executable, ["pt2"]), (asked.onnx_python, ["onnx", "onnx_old"]),
                            (asked.xla_python or interpreter_of("torch-xla"), ["stablehlo"])):  # fmt: skip
            writers.setdefault(path, []).extend(forms)
        with tempfile.TemporaryDirectory(prefix="tandem-formats-") as room:
            folder = asked.keep or Path(room)
            folder.mkdir(parents=True, exist_ok=True)
            reused = len(json.loads((folder / TOLD).read_text())) if (folder / TOLD).exists() else 0
            rows = rows_of(cases, writers, folder)
    except (BadInput, OSError) as error:
        print(f"formats: {error}", file=sys.stderr)
        return 2
    old = f"{reused} of the files were there before; " if reused else ""
    spread = {case.kind: apart(rows, case.kind) for case in cases}
    held = all(row.holds for row in rows) and all(products <= WITHIN for products, _ in spread.values())
    read = [row for row in rows if not row.fault]
    verdict = (
        f"{'HOLDS' if held else 'FALLS SHORT'}: {old}{len(read)} readings of {len(cases)} models: parameters exact in "
        f"{sum(row.parameters == row.parameters_true for row in read)}; FLOPs of products off by at most "
        f"{max((row.off for row in read), default=1.0):.4%} and apart by at most "
        f"{max(products for products, _ in spread.values()):.4%} between formats; all operations apart by at most "
        f"{max(whole for _, whole in spread.values()):.2%}; {len(rows) - len(read)} not read"
    )
    if asked.json:
        plain = [asdict(row) | {"holds": row.holds} for row in rows]
        print(json.dumps({"schema_version": 1, "holds": held, "rows": plain, "verdict": verdict}))
    else:
        print(f"{table(rows)}\n{verdict}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
