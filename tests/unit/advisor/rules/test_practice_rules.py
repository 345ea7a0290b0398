"""Rules of practice out of public threads: each fires where it should and is silent where it should be."""

import csv
import io
from dataclasses import replace
from statistics import median

import pytest

from advisor.rules.case import Case, case_of, code_of
from advisor.rules.scattered import USUAL_SHARE
from catalog.measurements import measurements_text
from core.ops import Op
from core.workload import Peaks
from tests.unit.advisor.rules import test_case_rules
from tests.unit.advisor.rules.subjects import CASE_RULES, LLAMA, MLP, RESNET, WRITES, case, said
from tests.unit.advisor.test_rules import FIRES as FIRST

BAGS = {
    "model": {"blocks": [{"kind": "embedding_bag", "tables": 1000, "rows": 1000, "width": 64, "per_bag": 30}]}, "batch": 128,
    "dtype": "fp32", "task": "train",
}
TABLES = {**BAGS, "model": {"blocks": [{"kind": "embedding_bag", "tables": 26, "rows": 10_000, "width": 64}]}}
LSTM = {"model": {"preset": "lstm-lm"}, "batch": 64, "length": 100, "dtype": "fp32", "task": "train"}
TINY = {"model": {"blocks": [{"kind": "dense_tower", "widths": [8, 8]}]}, "batch": 1, "dtype": "fp32", "task": "infer"}
SERVES = {**WRITES, "task": "serve"}
LONG = {**SERVES, "batch": 1, "prompt": 16000, "output": 256}
BERT = {"model": {"preset": "bert-base"}, "batch": 32, "length": 128, "dtype": "bf16", "task": "finetune"}
TORCH_XLA = {"framework": "torch-xla"}


def with_ops(runtime: str, accelerator: str, *ops: Op) -> Case:
    """A case whose workload has operations beside its blocks."""
    plain = case(runtime, accelerator, TINY)
    workload = replace(plain.workload, ops=ops)
    return case_of(workload, code_of(workload), plain.runtime, plain.kind, plain.chip, accelerator)


def holds(accelerator: str, plain_gb: float, tiled_gb: float) -> Case:
    """A case of a pass that holds so much, and so much in tiles."""
    one = with_ops("jax", accelerator)
    plain, tiled, shape = int(plain_gb * 1e9), int(tiled_gb * 1e9), "256 x 512 x 128 x 2 fp32" if tiled_gb else ""
    peaks = Peaks(plain, plain, 0, tiled, 0, shape, 64.0)
    workload = replace(one.workload, peaks=peaks)
    return case_of(workload, code_of(workload), one.runtime, one.kind, one.chip, accelerator)


def on(accelerator: str, count: int) -> dict[str, object]:
    return {"pools": [{"accelerator": accelerator, "count": count}]}


SCATTER, SVD, EIGH = Op("scatter", (1_300_000, 1), "fp32"), Op("linalg", (1, 64), "fp32"), Op("linalg", (100_000, 2), "fp32")
LARGE, FFT = Op("linalg", (1, 8192), "fp32"), Op("fft", (4096, 4096), "complex64")
VOLUME = Op("conv", (1, 4096, 64, 32, 4096, 64, 32, 9, 3, 1), "bf16")
PLANE = Op("conv", (1, 64, 64, 32, 64, 64, 32, 3, 3, 1), "bf16")
FIRES: dict[str, Case] = {
    "R044": with_ops("jax", "tpu-v4", Op("softmax", (4096, 1), "fp32")),
    "R133": with_ops("jax", "tpu-v6e", SCATTER),
    "R134": case("jax", "tpu-v3", existing={"ops": ["gather"]}),
    "R135": with_ops("torch-xla", "tpu-v4", SCATTER),
    "R136": case("tf-xla", "tpu-v3", BAGS),
    "R137": case("tf-xla", "tpu-v3", BAGS),
    "R138": case("jax", "tpu-v6e", TABLES, **on("tpu-v6e", 8)),
    "R141": with_ops("jax", "tpu-v3", SVD),
    "R142": with_ops("jax", "v100-16", EIGH),
    "R143": with_ops("jax", "v100-16", EIGH),
    "R144": with_ops("torch-xla", "tpu-v3", VOLUME),
    "R145": with_ops("jax", "a100-80", VOLUME),
    "R146": with_ops("jax", "tpu-v4", FFT),
    "R147": case("jax", "a100-40", TINY, existing={"serial_steps": 10_000_000}),
    "R148": case("jax", "a100-40", TINY, existing={"serial_steps": 10_000_000}),
    "R149": case("torch-xla", "tpu-v3", LSTM),
    "R150": case("torch-xla", "tpu-v3", LSTM),
    "R151": case("torch-xla", "tpu-v4", existing={"serial_steps": 50}),
    "R152": case("torch-xla", "tpu-v4", existing={"serial_steps": 50}),
    "R153": case("torch-tpu", "tpu-v5e", {**WRITES, "dtype": "int8", "model": {"params": 7e10}}, **on("tpu-v5e", 8)),
    "R154": case("torch-tpu", "tpu-v5e", LONG, existing={"libraries": ["vllm"]}),
    "R155": case("torch-xla", "tpu-v4", WRITES, existing={"libraries": ["transformers"]}),
    "R156": case("torch-eager", "a10g", {**SERVES, "dtype": "int4", "model": {"params": 7e10}}, existing={"libraries": ["vllm"]},
                 **on("a10g", 8)),
    "R157": case("torch-tpu", "tpu-v6e", SERVES, existing={"libraries": ["vllm"]}),
    "R158": case("jax", "tpu-v3", WRITES, total={"steps": 1}),
    "R159": case("torch-eager", "v100-32", {**WRITES, "dtype": "int4"}, existing={"libraries": ["autoawq"]}),
    "R160": case("torch-tpu", "tpu-v6e", WRITES, existing={"libraries": ["auto-gptq"]}),
    "R161": case("jax", "tpu-v4", dtype="fp16"),
    "R162": case("tf-xla", "tpu-v2", RESNET, existing={"libraries": ["DeepLabCut"]}),
    "R163": case("keras-jax", "tpu-v3", RESNET, existing={"ops": ["RandomZoom", "random-zoom"]}),
    "R165": case("jax", "tpu-v3", existing={"ops": ["int64"]}),
    "R166": case("tf-xla", "tpu-v3", RESNET, existing={"ops": ["int64", "scatter"]}),
    "R167": case("torch-tpu", "tpu-v4", RESNET, existing={"ops": ["roi_align"]}),
    "R168": case("jax", "b200", existing={"ops": ["ragged_dot"]}),
    "R169": case("jax", "h100-sxm", existing={"ops": ["grouped-matmul"]}),
    "R170": case("torch-xla", "a100-80"),
    "R171": case("torch-xla", "a100-80", existing=TORCH_XLA),
    "R172": case("jax", "a100-40", existing={"framework": "jax"}),
    "R174": case("torch-xla", "tpu-v3", RESNET, data={"decode": "jpeg"}),
    "R175": case("jax", "tpu-v3", RESNET, **on("tpu-v3", 4)),
    "R176": case("jax", "tpu-v4", **on("tpu-v4", 16)),
    "R177": case("jax", "tpu-v3", **on("tpu-v3", 8)),
    "R178": case("jax", "tpu-v3", **on("tpu-v3", 8)),
    "R179": case("torch-compile", "rtx4090", BERT, **on("rtx4090", 2)),
    "R180": case("torch-compile", "a100-80", {**WRITES, "batch": 1}, **on("a100-80", 2)),
    "R181": case("jax", "t4", RESNET, existing={"libraries": ["onnxruntime-gpu"]}),
    "R184": case("jax", "tpu-v5p"),
    "R185": case("torch-xla", "tpu-v4", existing={"ops": ["nonzero"]}),
    "R186": case("torch-eager", "v100-16", existing={"versions": {"cuda": "13.0"}}),
    "R187": case("torch-compile", "rtx5090", BERT, existing={"versions": {"torch": "2.6"}}),
    "R188": case("jax", "a100-40", existing={"libraries": ["torch", "jax"]}),
    "R189": case("jax", "a100-40", existing={"versions": {"jax": "0.4.20", "cudnn": "8.7"}}),
    "R190": case("jax", "t4",
        existing={"libraries": ["onnxruntime-gpu"], "versions": {"cudnn": "8.9", "onnxruntime-gpu": "1.20"}}),
    "R191": case("torch-xla", "tpu-v6e", SERVES, existing={"libraries": ["vllm"]}),
    "R192": case("torch-xla", "tpu-v6e", SERVES, existing={"libraries": ["vllm"]}),
    "R193": case("torch-xla", "tpu-v4", existing=TORCH_XLA),
    "R194": case("tf-graph", "tpu-v2", RESNET, existing={"framework": "tensorflow"}),
    "R195": case("tf-graph", "tpu-v2", RESNET, existing={"versions": {"tensorflow": "1.14"}}),
    "R196": case("torch-xla", "tpu-v3", existing={"versions": {"XLA_USE_BF16": "1"}}),
    "R197": case("torch-xla", "tpu-v3", BERT, existing={"libraries": ["transformers"], "versions": {"XLA_DOWNCAST_BF16": "1"}}),
    "R198": case("torch-xla", "tpu-v3", BERT, existing={"versions": {"transformers": "4.21", "XLA_DOWNCAST_BF16": "1"}}),
    "R199": case("torch-xla", "tpu-v3", MLP, existing={"ops": ["float64"]}),
    "R200": case("torch-xla", "tpu-v3", BERT, existing={"ops": ["gather"], "versions": {"torch-xla": "1.11"}}),
    "R201": case("torch-eager", "v100-16", BERT, dtype="fp16"),
    "R202": case("torch-eager", "t4", RESNET, dtype="fp32"),
    "R204": case("jax", "l40s", {**LLAMA, "model": {"preset": "gpt2-small"}, "batch": 64, "length": 1024}),
    "R205": case("jax", "tpu-v3", {**BERT, "batch": 2048, "length": 512}, **on("tpu-v3", 4)),
    "R206": case("torch-compile", "h100-sxm", RESNET, data={"decode": "jpeg", "bytes_per_sample": 110000, "host_vcpus": 4}),
    "R207": case("torch-xla", "v100-32", BERT, existing={"ops": ["gather"], "versions": {"torch-xla": "1.11"}}),
    "R209": case("jax", "a100-80", existing={"distinct_shapes": 60}),
    "R210": case("torch-eager", "t4", BERT, existing={"libraries": ["flash-attn"]}),
    "R212": case("jax", "a100-80", existing={"framework": "pytorch"}),
    "R213": case("tf-graph", "a100-80", existing={"framework": "jax"}),
    "R214": case("tf-graph", "tpu-v2", RESNET, existing={"framework": "tensorflow"}),
    "R215": with_ops("jax", "tpu-v3", Op("gather", (33_554_432, 1), "fp32")),
    "R216": holds("tpu-v3", 0.5, 34.0),
    "R217": holds("tpu-v3", 0.5, 17.5),
}
SILENT: dict[str, tuple[Case, ...]] = {
    "R044": (case("jax", "tpu-v4"), with_ops("jax", "h100-sxm", Op("softmax", (4096, 1), "fp32"))),
    "R133": (with_ops("jax", "h100-sxm", SCATTER), case("jax", "tpu-v6e"),
        with_ops("jax", "tpu-v6e", Op("gather", (1000, 1), "fp32"))),
    "R134": (case("jax", "tpu-v3"), case("jax", "tpu-v3", existing={"ops": ["gather", "scatter"]}),
        case("jax", "l4", existing={"ops": ["gather"]})),
    "R135": (with_ops("jax", "tpu-v4", SCATTER), case("torch-xla", "tpu-v4")),
    "R136": (case("tf-xla", "tpu-v4", BAGS), case("jax", "tpu-v3"), case("tf-xla", "tpu-v3", TABLES)),
    "R137": (case("tf-xla", "tpu-v4", BAGS), case("jax", "tpu-v3")),
    "R138": (case("jax", "tpu-v6e", TABLES), case("jax", "tpu-v6e", **on("tpu-v6e", 8))),
    "R141": (with_ops("jax", "h100-sxm", SVD), with_ops("jax", "tpu-v3", LARGE), case("jax", "tpu-v3")),
    "R142": (with_ops("jax", "v100-16", LARGE), with_ops("jax", "cpu-spr-56c", EIGH)),
    "R143": (with_ops("jax", "v100-16", LARGE), with_ops("jax", "cpu-spr-56c", EIGH)),
    "R144": (with_ops("torch-xla", "tpu-v3", PLANE), with_ops("jax", "v100-16", VOLUME)),
    "R145": (with_ops("jax", "a100-80", PLANE), with_ops("torch-compile", "a100-80", VOLUME), with_ops("jax", "mi300x", VOLUME)),
    "R146": (with_ops("jax", "a100-80", FFT), case("jax", "tpu-v4")),
    "R147": (
        case("jax", "cpu-spr-56c", TINY, existing={"serial_steps": 10_000_000}),
            case("jax", "a100-40", TINY, existing={"serial_steps": 100}),
        case("jax", "a100-40", existing={"serial_steps": 10_000}),
    ),
    "R148": (case("jax", "a100-40", TINY), case("jax", "a100-40", existing={"serial_steps": 10_000})),
    "R149": (case("torch-eager", "v100-16", LSTM), case("torch-xla", "tpu-v3")),
    "R150": (case("jax", "tpu-v3", LSTM), case("torch-xla", "tpu-v3")),
    "R151": (case("jax", "tpu-v4", existing={"serial_steps": 50}), case("torch-xla", "tpu-v4", existing={"serial_steps": 1})),
    "R152": (case("jax", "tpu-v4", existing={"serial_steps": 50}), case("torch-xla", "tpu-v4")),
    "R153": (
        case("torch-tpu", "tpu-v5e", {**WRITES, "dtype": "int8"}, **on("tpu-v5e", 8)),
        case("torch-eager", "h100-sxm", {**WRITES, "dtype": "int4", "model": {"params": 7e10}},
            existing={"libraries": ["autoawq"]}),
        case("torch-tpu", "tpu-v5e", {**WRITES, "model": {"params": 7e10}}, **on("tpu-v5e", 8)),
    ),
    "R154": (
        case("torch-tpu", "tpu-v5e", SERVES, existing={"libraries": ["vllm"]}),
            case("torch-tpu", "tpu-v6e", LONG, existing={"libraries": ["vllm"]}),
        case("torch-tpu", "tpu-v5e", LONG),
    ),
    "R155": (case("torch-xla", "tpu-v4", BERT, existing={"libraries": ["transformers"]}), case("torch-xla", "tpu-v4", WRITES)),
    "R156": (
        case("torch-eager", "a10g", SERVES, existing={"libraries": ["vllm"]}, **on("a10g", 4)),
        case("torch-eager", "h100-sxm", {**SERVES, "model": {"params": 7e10}}, existing={"libraries": ["vllm"]},
            **on("h100-sxm", 8)),
    ),
    "R157": (case("torch-tpu", "tpu-v6e", SERVES), case("torch-tpu", "tpu-v6e", existing={"libraries": ["vllm"]})),
    "R158": (case("jax", "tpu-v3", WRITES), case("jax", "tpu-v3", WRITES, total={"steps": 1e7}),
        case("torch-eager", "t4", WRITES, total={"steps": 1})),
    "R159": (case("torch-eager", "t4", WRITES, existing={"libraries": ["autoawq"]}), case("torch-eager", "v100-32", WRITES)),
    "R160": (case("torch-eager", "a100-80", WRITES, existing={"libraries": ["auto-gptq"]}), case("torch-tpu", "tpu-v6e", WRITES)),
    "R161": (case("jax", "tpu-v4"), case("jax", "h100-sxm", dtype="fp16")),
    "R162": (case("tf-xla", "t4", RESNET, existing={"libraries": ["deeplabcut"]}), case("tf-xla", "tpu-v2", RESNET)),
    "R163": (case("keras-jax", "tpu-v3", RESNET, existing={"ops": ["random-normal"]}),
        case("keras-jax", "l4", RESNET, existing={"ops": ["random-zoom"]})),
    "R165": (case("jax", "tpu-v3"), case("jax", "h100-sxm", existing={"ops": ["int64"]})),
    "R166": (case("jax", "tpu-v3", RESNET, existing={"ops": ["int64", "scatter"]}),
        case("tf-xla", "tpu-v3", RESNET, existing={"ops": ["int64"]})),
    "R167": (case("jax", "tpu-v4", RESNET, existing={"ops": ["nms"]}),
        case("torch-eager", "l4", RESNET, existing={"ops": ["nms"]})),
    "R168": (case("jax", "tpu-v6e", existing={"ops": ["ragged_dot"]}), case("torch-compile", "b200", existing={"ops": ["moe"]}),
        case("jax", "b200")),
    "R169": (case("jax", "mi300x", existing={"ops": ["moe"]}), case("jax", "h100-sxm")),
    "R170": (case("torch-xla", "tpu-v4"), case("torch-eager", "a100-80")),
    "R171": (case("torch-xla", "a100-80", existing={"framework": "keras"}), case("torch-xla", "tpu-v4", existing=TORCH_XLA)),
    "R172": (case("jax", "a100-40"), case("jax", "tpu-v6e", existing={"framework": "jax"}),
        case("jax", "a100-40", RESNET, existing={"framework": "jax"})),
    "R174": (case("torch-xla", "tpu-v3", RESNET), case("jax", "tpu-v3", RESNET, data={"decode": "jpeg"})),
    "R175": (case("jax", "tpu-v3", RESNET), case("jax", "tpu-v3", **on("tpu-v3", 4))),
    "R176": (case("jax", "tpu-v4", **on("tpu-v4", 4)), case("jax", "tpu-v4"), case("jax", "h100-sxm", **on("h100-sxm", 16))),
    "R177": (case("jax", "tpu-v3", **on("tpu-v3", 16)), case("jax", "tpu-v3"), case("jax", "h100-sxm", **on("h100-sxm", 3))),
    "R178": (case("jax", "tpu-v3", **on("tpu-v3", 16)), case("jax", "tpu-v3")),
    "R179": (case("torch-compile", "rtx4090", BERT), case("torch-compile", "a100-80", BERT, **on("a100-80", 2))),
    "R180": (
        case("torch-compile", "a100-80", {**WRITES, "batch": 64}, **on("a100-80", 2)), case("torch-compile", "a100-80", WRITES),
        case("torch-compile", "a100-40", {**WRITES, "batch": 1, "model": {"params": 7e10}}, **on("a100-40", 4)),
    ),
    "R181": (case("jax", "t4", RESNET, existing={"libraries": ["onnxruntime"]}),
        case("jax", "tpu-v4", existing={"libraries": ["onnxruntime-gpu"]})),
    "R184": (case("jax", "tpu-v5e"), case("jax", "tpu:0")),
    "R185": (case("jax", "tpu-v4", existing={"ops": ["nonzero"]}), case("torch-xla", "tpu-v4")),
    "R186": (case("torch-eager", "v100-16", existing={"versions": {"cuda": "12.8"}}),
        case("torch-eager", "t4", existing={"versions": {"cuda": "13.0"}})),
    "R187": (
        case("torch-compile", "rtx5090", BERT, existing={"versions": {"torch": "2.10"}}), case("torch-compile", "rtx5090", BERT),
        case("torch-compile", "rtx4090", BERT, existing={"versions": {"torch": "2.6"}}),
            case("jax", "rtx5090", BERT, existing={"versions": {"torch": "2.6"}}),
    ),
    "R188": (case("jax", "a100-40", existing={"libraries": ["jax"]}),
        case("jax", "tpu-v4", existing={"libraries": ["torch", "jax"]})),
    "R189": (
        case("jax", "a100-40", existing={"versions": {"jax": "0.4.20", "cudnn": "8.9"}}),
            case("jax", "a100-40", existing={"versions": {"cudnn": "8.7"}}),
        case("jax", "a100-40", existing={"versions": {"jax": "0.4.10", "cudnn": "8.6"}}),
    ),
    "R190": (
        case("jax", "t4", existing={"libraries": ["onnxruntime-gpu"], "versions": {"cudnn": "9.1", "cuda": "12.4"}}),
        case("jax", "t4", existing={"libraries": ["onnxruntime-gpu"], "versions": {"cudnn": "8.9", "onnxruntime-gpu": "1.18"}}),
    ),
    "R191": (case("torch-tpu", "tpu-v6e", SERVES, existing={"libraries": ["vllm"]}), case("torch-xla", "tpu-v6e", SERVES)),
    "R192": (case("torch-xla", "tpu-v6e", SERVES, existing={"libraries": ["vllm"], "versions": {"vllm": "0.9"}}),
        case("torch-xla", "tpu-v6e", SERVES)),
    "R193": (case("torch-xla", "tpu-v4"), case("jax", "tpu-v4", existing=TORCH_XLA)),
    "R194": (case("tf-graph", "tpu-v2", existing={"versions": {"tensorflow-tpu": "2.19.1"}}), case("tf-graph", "t4"),
        case("jax", "tpu-v2")),
    "R195": (case("tf-graph", "tpu-v2", existing={"versions": {"tensorflow": "2.3"}}), case("tf-graph", "tpu-v2")),
    "R196": (case("torch-xla", "tpu-v3", existing={"versions": {"XLA_USE_BF16": "0"}}), case("torch-xla", "tpu-v3")),
    "R197": (
        case("torch-xla", "tpu-v3", BERT, existing={"libraries": ["transformers"]}),
        case("torch-xla", "tpu-v3", BERT,
            existing={"libraries": ["transformers"], "versions": {"XLA_USE_BF16": "1", "transformers": "4.30"}}),
    ),
    "R198": (case("torch-xla", "tpu-v3", BERT, existing={"versions": {"XLA_USE_BF16": "1"}}), case("torch-xla", "tpu-v3", BERT)),
    "R199": (case("jax", "tpu-v3", MLP), case("jax", "h100-sxm", MLP, existing={"ops": ["fp64"]}),
        case("jax", "tpu-v3", {**MLP, "dtype": "fp64"},
            existing={"ops": ["fp64"]})),
    "R200": (case("torch-xla", "tpu-v3", BERT, existing={"ops": ["gather"], "versions": {"torch-xla": "2.1"}}),
             case("torch-xla", "tpu-v3", BERT, existing={"ops": ["gather"]})),
    "R201": (case("torch-eager", "v100-16", RESNET, dtype="fp16"), case("torch-eager", "a100-80", BERT),
        case("torch-eager", "v100-16", {**BERT,
                                                                                                        "task": "infer"},
                                                                                                            dtype="fp16")),
    "R202": (case("torch-eager", "a100-80", RESNET, dtype="fp32"), case("torch-eager", "t4", RESNET, dtype="fp16")),
    "R204": (case("jax", "l40s", RESNET), case("jax", "l40s", WRITES), case("jax", "l40s")),
    "R205": (case("jax", "tpu-v3", **on("tpu-v3", 4)),
        case("jax", "tpu-v3", RESNET, **on("tpu-v3", 8)), case("jax", "tpu-v3", WRITES)),
    "R206": (
        case("torch-compile", "h100-sxm", RESNET, data={"decode": "jpeg with DALI", "bytes_per_sample": 110000}),
        case("torch-compile", "h100-sxm", RESNET, data={"decode": "jpeg", "bytes_per_sample": 110000, "host_vcpus": 900}),
        case("torch-compile", "h100-sxm", RESNET, data={"decode": "tokenise", "bytes_per_sample": 110000, "host_vcpus": 4}),
    ),
    "R207": (case("torch-xla", "v100-32", BERT, existing={"ops": ["gather"]}),
        case("torch-eager", "v100-32", BERT, existing={"ops": ["gather"]})),
    "R209": (case("torch-eager", "a100-80", existing={"distinct_shapes": 60}),
        case("jax", "a100-80", existing={"distinct_shapes": 4})),
    "R212": (
        case("torch-compile", "a100-80", existing={"framework": "torch-xla"}), case("jax", "a100-80"),
        case("jax", "a100-80", existing={"framework": "caffe"}), case("jax", "cpu:0", existing={"framework": "torch"}),
    ),
    "R213": (case("tf-xla", "a100-80", existing={"framework": "keras"}), case("jax", "a100-80"),
        case("tf-graph", "a100-80", existing={"libraries": ["tensorflow"]})),
    "R214": (case("tf-graph", "t4", RESNET, existing={"framework": "tensorflow"}), case("tf-graph", "tpu-v2", RESNET)),
    "R215": (with_ops("jax", "tpu-v4", Op("gather", (33_554_432, 1), "fp32")),
        with_ops("jax", "tpu-v3", Op("gather", (33_554_432, 64), "fp32"))),
    "R216": (holds("tpu-v3", 0.5, 0.0), holds("h100-sxm", 0.5, 34.0), case("jax", "tpu-v4")),
    "R217": (
        holds("tpu-v3", 0.5, 15.5), holds("tpu-v4", 0.5, 17.5), holds("tpu-v3", 17.0, 34.0), holds("v100-16", 0.5, 34.0),
        case("jax", "tpu-v4"),
    ),
    "R210": (
        case("torch-eager", "a100-80", BERT, existing={"libraries": ["flash-attn"]}), case("torch-eager", "t4", BERT),
        case("torch-eager", "t4", BERT, existing={"libraries": ["flash-attn"], "versions": {"flash-attn": "1.0.9"}}),
    ),
}


@pytest.mark.parametrize("identity", sorted(FIRES))
def test_a_rule_fires_on_what_it_is_about(identity: str) -> None:
    found = said(identity, FIRES[identity])
    assert found is not None
    assert found.effect in CASE_RULES[identity].facts.effects


@pytest.mark.parametrize(("identity", "silent"), [(key, one) for key, found in SILENT.items() for one in found])
def test_a_rule_is_silent_on_everything_else(identity: str, silent: Case) -> None:
    assert said(identity, silent) is None


@pytest.mark.parametrize(("identity", "operation"), [("R133", "scatter"), ("R134", "gather"), ("R141", "svd")])
def test_an_operation_that_is_only_named_beside_much_matrix_work_is_not_charged(identity: str, operation: str) -> None:
    beside, alone = (said(identity, case("jax", "tpu-v4", base, existing={"ops": [operation]})) for base in (LLAMA, MLP))
    assert beside is not None
    assert alone is not None
    assert (beside.effect, alone.effect) == ("warn", "penalise")


def beside_a_step(runtime: str, *ops: Op, batch: int = 64) -> Case:
    """A case of an 8B model with operations beside its blocks."""
    plain = case(runtime, "tpu-v6e", batch=batch)
    workload = replace(plain.workload, ops=ops)
    return case_of(workload, code_of(workload), plain.runtime, plain.kind, plain.chip, "tpu-v6e")


@pytest.mark.parametrize(("rows", "effect"), [(200_000, None), (3 * 10**6, "warn"), (10**9, "penalise")])
def test_a_scatter_is_weighed_against_the_step_that_it_stands_in(rows: int, effect: str | None) -> None:
    found = said("R133", beside_a_step("jax", Op("scatter", (rows, 1), "fp32")))
    assert (found.effect if found else None) == effect


def test_the_usual_share_of_the_peak_is_what_published_training_on_tpus_reaches() -> None:
    rows = csv.DictReader(io.StringIO(measurements_text()))
    trained = (row for row in rows if row["metric"] == "mfu" and row["task"].startswith("train"))
    shares = [float(row["value"]) for row in trained if row["accelerator"].startswith("v")]
    assert pytest.approx(median(share / 100 if share > 1 else share for share in shares), abs=0.01) == USUAL_SHARE


def test_pytorch_xla_scatters_so_slowly_that_fewer_rows_decide() -> None:
    assert said("R135", beside_a_step("torch-xla", SCATTER)) is not None
    assert said("R135", beside_a_step("torch-xla", Op("scatter", (100_000, 1), "fp32"), batch=4096)) is None


def test_what_sends_positions_to_experts_is_no_scatter_of_its_own() -> None:
    dense = case("jax", "tpu-v6e")
    (layer,) = (block for block in dense.workload.blocks if block.kind == "transformer_layer")
    positions = dense.workload.batch * 4096
    routing = (Op("sort", (positions, 8), "fp32"), Op("gather", (2 * positions, 1), "fp32"), Op("scatter", (10**9, 1), "int64"))
    sent = replace(layer, kind="traced", parameter_count=4 * layer.parameter_count, ops_forward=(*layer.ops_forward, *routing))
    workload = replace(dense.workload, blocks=(sent,))
    found = case_of(workload, code_of(workload), dense.runtime, dense.kind, dense.chip, "tpu-v6e")
    assert found.code.graph.scattered == ()
    assert said("R133", found) is None
    unsorted = replace(workload, blocks=(replace(sent, ops_forward=(*layer.ops_forward, *routing[1:])),))
    assert code_of(unsorted).graph.scattered


def test_every_rule_of_a_case_fires_somewhere_and_is_silent_somewhere() -> None:
    assert set(FIRES) == set(SILENT)
    elsewhere = {"R211"}  # test_environments.py
    assert set(FIRES) | set(test_case_rules.FIRES) | set(FIRST) | elsewhere == set(CASE_RULES)


@pytest.mark.parametrize(("identity", "found", "factor"), [
    ("R144", with_ops("jax", "tpu-v3", VOLUME), 0.1),
    ("R146", with_ops("jax", "tpu-v4", FFT), 0.15),
    ("R146", case("jax", "tpu-v4", MLP, existing={"ops": ["fft"]}), 0.5),
    ("R149", case("torch-xla", "tpu-v3", LSTM), 0.1),
    ("R149", case("jax", "tpu-v3", LSTM), 0.5),
    ("R134", case("jax", "tpu-v3", MLP, existing={"ops": ["gather"]}), 0.5),
    ("R134", case("jax", "tpu-v3", MLP, task="rl", existing={"ops": ["gather"], "libraries": ["pgx"]}), 0.1),
    ("R212", case("jax", "a100-80", existing={"framework": "torch"}), 0.7),
    ("R212", case("jax", "tpu-v6e", existing={"framework": "torch"}), 0.5),
    ("R212", case("jax", "tpu-v6e", existing={"framework": "torch_xla"}), 0.7),
    ("R214", case("tf-graph", "tpu-v2", RESNET, existing={"framework": "tensorflow", "ops": ["eager"]}), 0.05),
])
def test_a_rule_holds_back_by_as_much_as_it_writes_down(identity: str, found: Case, factor: float) -> None:
    verdict = said(identity, found)
    assert verdict is not None
    assert (verdict.effect, verdict.factor) == ("penalise", factor)


@pytest.mark.parametrize(("dtype", "task", "effect"), [
    ("int4", "serve", "warn"), ("fp8", "infer", "warn"), ("fp8", "train", "exclude"), ("fp64", "infer", "exclude"),
])
def test_narrow_weights_are_widened_where_nothing_is_trained_and_refused_elsewhere(dtype: str, task: str, effect: str) -> None:
    base = LLAMA if task == "train" else {**WRITES, "task": task}
    chip = "a10g" if dtype == "fp64" else "v100-16"
    verdict = said("R062", case("torch-eager", chip, {**base, "dtype": dtype}))
    assert verdict is not None
    assert verdict.effect == effect


def test_recurrent_layers_with_rows_for_the_whole_matrix_unit_are_only_warned_of() -> None:
    verdict = said("R149", case("jax", "tpu-v3", {**LSTM, "batch": 512}))
    assert verdict is not None
    assert verdict.effect == "warn"


def test_a_small_model_is_held_back_on_several_cards_that_pcie_joins_and_only_warned_of_on_others() -> None:
    asked = {**WRITES, "batch": 1}
    small = case("jax", "l4", {**asked, "model": {"params": 3e9}}, **on("l4", 2))
    apart, joined = said("R180", small), said("R180", FIRES["R180"])
    assert apart is not None
    assert joined is not None
    assert (apart.effect, apart.factor, apart.least_chips, joined.effect) == ("penalise", 0.8, 2, "warn")


def test_the_product_that_loses_most_of_its_waves_is_the_one_that_is_named() -> None:
    """A large product fills its waves; a small one does not, and the small one is told."""
    large, small = Op("matmul", (1, 17920, 25600, 64), "bf16"), Op("matmul", (1, 128, 256, 400_000_000), "bf16")
    one = with_ops("torch-compile", "a100-80", large, small)
    found = said("R042", one)
    assert found is not None
    assert "most is lost by those of 1 tile each" in found.reason
