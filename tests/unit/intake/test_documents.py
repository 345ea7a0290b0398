"""Documents that can be used: every section, every way to name a model, and what is filled in."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from catalog import DEMO, preset, preset_names
from core.codec import from_json, to_json
from core.errors import BadInput
from core.workload import TASKS, DataPipeline, Existing, PoolRequest, Targets, Total, Where, Workload
from intake import preset_document, read_document, read_file, read_text
from intake.families import families
from intake.typical import typical_decoder
from tests.calls import calls_of

CAUSAL = "attention is counted in full, as FLOP counters do, also where a causal mask hides up to half of it"
ROOT = Path(__file__).parents[3]
WHOLE = """
schema: 1
name: 8B finetune on our own text
task: finetune
model: {preset: llama-3-8b}
batch: 64
length: 4096
dtype: bf16
optimizer: adamw
total: {tokens: 2.0e9}
existing: {framework: pytorch, code: src/, libraries: [flash-attn], custom_kernels: [triton], ops: [nonzero], distinct_shapes: 40,
           serial_steps: 0, host_reads_per_step: 1, versions: {cuda: "12.4"}}
data: {bytes_per_sample: 120000, decode: jpeg, host_vcpus: 32, source_bytes_per_s: 1.0e9}
targets: {deadline_h: 24, budget_usd: 500, latency_ms: null, requests_per_s: null}
pools: [{accelerator: tpu-v6e, count: 16}, {accelerator: h100-sxm, count: 8, price_usd_per_h: 2.5},
        {accelerator: "cpu:0", count: 1}]
where: {clouds: [gcp, AWS], regions: [], spot: true, own_only: false}
objective: cost
"""


def test_the_whole_contract_is_read() -> None:
    workload = read_text(WHOLE).workload
    assert (workload.name, workload.task, workload.batch, workload.length) == (
        "8B finetune on our own text",
        "finetune",
        64,
        4096,
    )
    assert (workload.dtype, workload.optimizer, workload.objective, workload.unit) == ("bf16", "adamw", "cost", "tokens")
    assert workload.units_per_step == 64 * 4096
    assert workload.total == Total(tokens=2e9)
    assert workload.existing == Existing(
        "torch", "src/", ("flash-attn",), ("triton",), ("nonzero",), 40, 0, 1, (("cuda", "12.4"),)
    )
    assert workload.data == DataPipeline(120000.0, "jpeg", 32, 1e9)
    assert workload.targets == Targets(24.0, 500.0)
    assert workload.pools == (PoolRequest("tpu-v6e", 16), PoolRequest("h100-sxm", 8, 2.5), PoolRequest("cpu:0", 1))
    assert workload.where == Where(("gcp", "aws"), (), True, False)
    assert workload.assumptions == ("all weights are trained", "dropout is 0", CAUSAL)
    assert workload.total_steps == pytest.approx(2e9 / (64 * 4096))


def test_json_says_the_same_as_yaml() -> None:
    document = json.loads(read_text(WHOLE).document)
    assert read_text(json.dumps(document)).workload == read_text(WHOLE).workload


def test_a_mapping_in_braces_without_quotes_is_yaml() -> None:
    assert read_text("{model: {preset: mlp}, batch: 8}").workload.batch == 8


@pytest.mark.parametrize("name", preset_names())
@pytest.mark.parametrize("task", TASKS)
def test_the_document_of_a_preset_gives_the_same_workload_again(name: str, task: str) -> None:
    understood = read_text(f"{name}:{task}")
    again = read_text(understood.document)
    assert again.document == understood.document
    assert again.workload.blocks == understood.workload.blocks
    assert (again.workload.task, again.workload.name) == (task, understood.workload.name)
    assert from_json(Workload, to_json(again.workload)) == again.workload
    assert read_document(preset_document(name, task)) == again.workload


def test_a_preset_without_a_task_is_trained() -> None:
    assert read_text("gpt2-small").workload.task == "train"


def test_what_a_preset_fills_in_is_an_assumption() -> None:
    assert set(read_text("gpt2-small:train").workload.assumptions) == {
        "bf16, as the preset says",
        "adamw, as the preset says",
        "batch 8, as the preset says",
        "length 1,024, as the preset says",
        "dropout is 0",
        CAUSAL,
    }


def test_a_configuration_that_is_no_regular_file_is_refused_and_not_read(tmp_path: Path) -> None:
    text = "{schema: 1, task: infer, batch: 1, model: {config: /dev/zero}}"
    (tmp_path / "job.yaml").write_text(text, encoding="utf-8")
    for path in (tmp_path / "job.yaml", "/dev/zero"):
        with pytest.raises(BadInput, match="no regular file"):
            read_file(path)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("gpt2-small:train", True),
        ("llama-3-8b:infer", True),
        ("bert-base:train", False),
        ("resnet-50:train", False),
    ],
)
def test_attention_that_a_mask_halves_is_said_to_be_counted_in_full(text: str, masked: bool) -> None:
    assert (CAUSAL in read_text(text).workload.assumptions) is masked


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_says_every_size_of_its_family(name: str) -> None:
    known = preset(name)
    assert set(known.config) == {spec.name for spec in families()[known.family].specs}
    assert {"train", "finetune", "infer"} <= set(known.tasks)


def test_the_demo_is_small() -> None:
    workload = read_text(f"{DEMO}:train").workload
    assert workload.flop_per_step < 5e10
    assert workload.parameter_count < 2e7


def test_changed_sizes_change_the_model() -> None:
    workload = read_document(
        {"task": "train", "model": {"preset": "gpt2-small", "layers": 6, "heads": 12}, "batch": 1, "length": 64}
    )
    assert next(block for block in workload.blocks if block.name == "layer").repeats == 6
    assert workload.name == "GPT-2 small, 124 M, changed"


def test_heads_and_mlp_follow_a_changed_width() -> None:
    workload = read_document({"model": {"preset": "gpt2-small", "width": 512}})
    layer = next(block for block in workload.blocks if block.name == "layer")
    assert (layer.size("heads"), layer.size("head_width"), layer.size("hidden")) == (8, 64, 2048)
    assert "heads 8, kv_heads 8, hidden 2048, in proportion to the new width" in workload.assumptions


def test_grouped_heads_still_divide_after_a_change_of_width() -> None:
    layer = read_document({"model": {"preset": "llama-3-8b", "width": 3072}}).blocks[1]
    assert int(str(layer.size("heads"))) % int(str(layer.size("kv_heads"))) == 0


def test_a_width_that_is_changed_with_heads_is_left_alone() -> None:
    layer = read_document({"model": {"preset": "gpt2-small", "width": 512, "heads": 4, "kv_heads": 4, "hidden": 100}}).blocks[1]
    assert (layer.size("heads"), layer.size("hidden")) == (4, 100)


def test_generation_counts_the_prompt_once_and_each_output_token() -> None:
    workload = read_document({"task": "infer", "model": {"preset": "gpt2-small"}, "batch": 2, "prompt": 100, "output": 10})
    prompt, decode, first, later = workload.blocks
    assert (prompt.size("length"), prompt.size("cache"), prompt.repeats) == (100, 0, 12)
    assert (decode.size("length"), decode.size("cache"), decode.repeats) == (1, 105, 120)
    assert first.repeats + later.repeats == 10
    assert (workload.units_per_step, workload.length, workload.optimizer) == (20, 110, "none")
    assert workload.parameter_count == read_document({"model": {"preset": "gpt2-small"}}).parameter_count


def test_one_output_token_needs_no_later_tokens() -> None:
    workload = read_document({"task": "infer", "model": {"preset": "gpt2-small"}, "prompt": 100, "output": 1})
    assert [block.name for block in workload.blocks] == ["layer, prompt", "layer, decoding", "embedding and head, first token"]


def test_inference_of_a_length_is_one_forward_pass() -> None:
    workload = read_document({"task": "infer", "model": {"preset": "gpt2-small"}, "batch": 2, "length": 64})
    assert (workload.units_per_step, len(workload.blocks)) == (128, 2)
    assert workload.flop_per_step == workload.flop_forward


def test_a_prompt_without_an_output_is_one_forward_pass() -> None:
    workload = read_document({"task": "infer", "model": {"params": 1e8}, "batch": 2, "prompt": 64, "dtype": "int8"})
    assert (workload.length, workload.units_per_step, workload.dtype) == (64, 128, "int8")


def test_an_optimizer_is_not_used_when_nothing_is_trained() -> None:
    workload = read_document({"task": "infer", "model": {"preset": "mlp"}, "optimizer": "adamw"})
    assert workload.optimizer == "none"
    assert "adamw is not used, since nothing is trained" in workload.assumptions


@pytest.mark.parametrize("parameters", [1e7, 7e7, 3e8, 1e9, 8e9, 7e10, 4e11, 1e13])
def test_a_typical_decoder_has_about_the_parameters_that_were_asked_for(parameters: float) -> None:
    workload = read_document({"model": {"params": parameters}, "batch": 1, "length": 128})
    assert workload.parameter_count == pytest.approx(parameters, rel=0.1)
    assert any("a typical decoder is assumed" in text for text in workload.assumptions)
    assert any("vocabulary 32,000" in text for text in workload.assumptions)
    assert typical_decoder(parameters)["gated"] == 1


HUGGING_FACE = {
    "gpt2": (
        {
            "model_type": "gpt2",
            "n_embd": 768,
            "n_layer": 12,
            "n_head": 12,
            "n_positions": 1024,
            "vocab_size": 50257,
            "n_inner": None,
            "activation_function": "gelu_new",
        },
        "gpt2-small",
    ),
    "llama": (
        {
            "model_type": "llama",
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 128256,
            "hidden_act": "silu",
            "tie_word_embeddings": False,
        },
        "llama-3-8b",
    ),
    "bert": (
        {
            "model_type": "bert",
            "architectures": ["BertForMaskedLM"],
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "vocab_size": 30522,
            "max_position_embeddings": 512,
            "type_vocab_size": 2,
            "hidden_act": "gelu",
        },
        "bert-base",
    ),
    "vit": (
        {
            "model_type": "vit",
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "image_size": 224,
            "patch_size": 16,
            "id2label": {str(i): str(i) for i in range(1000)},
            "hidden_act": "gelu",
        },
        "vit-b16",
    ),
    "resnet": (
        {
            "model_type": "resnet",
            "depths": [3, 4, 6, 3],
            "hidden_sizes": [256, 512, 1024, 2048],
            "embedding_size": 64,
            "layer_type": "bottleneck",
            "num_labels": 1000,
        },
        "resnet-50",
    ),
}


@pytest.mark.parametrize("kind", sorted(HUGGING_FACE))
def test_a_hugging_face_configuration_gives_the_blocks_of_its_preset(kind: str, tmp_path: Path) -> None:
    config, name = HUGGING_FACE[kind]
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    shape = {key: preset(name).tasks["train"][key] for key in ("length", "image") if key in preset(name).tasks["train"]}
    document = {"task": "train", "batch": 4, "dtype": "bf16", "optimizer": "sgd", **shape}
    (tmp_path / "workload.json").write_text(json.dumps({**document, "model": {"config": "config.json"}}), encoding="utf-8")
    understood = read_file(tmp_path / "workload.json")
    expected = read_document({**document, "model": {"preset": name}})
    assert understood.workload.blocks == expected.blocks
    assert read_text(understood.document).workload == understood.workload


def test_what_a_configuration_has_and_the_count_has_not_is_an_assumption() -> None:
    config = {
        "model_type": "qwen2",
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "vocab_size": 151936,
        "tie_word_embeddings": True,
        "sliding_window": 4096,
        "use_sliding_window": True,
        "quantization_config": {"bits": 4},
    }
    workload = read_document({"model": {"config": config}, "batch": 1, "length": 128})
    assert workload.parameter_count == pytest.approx(494_032_768, rel=1e-3)
    said = " ".join(workload.assumptions)
    assert "biases of single projections" in said
    assert "sliding window" in said
    assert "quantisation" in said


def test_an_image_model_from_a_configuration_takes_its_image_size() -> None:
    workload = read_document({"model": {"config": HUGGING_FACE["vit"][0]}, "batch": 2})
    assert workload.blocks[0].size("image") == 224


def test_blocks_can_be_listed_one_by_one() -> None:
    workload = read_text("""
task: train
model: {blocks: [{kind: token_ends, width: 64, vocabulary: 100, tied: true},
                 {kind: lstm_layer, repeats: 2, inputs: 64, hidden: 64, name: recurrent}]}
batch: 8
length: 16
""").workload
    assert [block.name for block in workload.blocks] == ["token_ends 1", "recurrent"]
    assert workload.blocks[1].repeats == 2
    assert (workload.unit, workload.units_per_step) == ("tokens", 128)
    assert workload.blocks[0].size("batch") == 8


def test_blocks_without_a_length_count_samples() -> None:
    workload = read_document(
        {"model": {"blocks": [{"kind": "class_head", "inputs": 8, "classes": 2}]}, "batch": 8, "total": {"samples": 80}}
    )
    assert (workload.unit, workload.total_steps) == ("samples", 10)


def test_null_stands_for_absent() -> None:
    workload = read_document(
        {"schema": None, "model": {"preset": "mlp", "config": None}, "batch": None, "total": None, "where": {"spot": None}}
    )
    assert workload.batch == 256


def test_a_framework_that_nothing_is_known_of_is_kept() -> None:
    assert (
        read_document({"model": {"preset": "mlp"}, "existing": {"framework": "PaddlePaddle"}}).existing.framework
        == "paddlepaddle"
    )


def test_a_form_may_read_its_document_at_every_stroke() -> None:
    document = preset_document("mobilenet-v2", "train")
    read_document(document)
    assert calls_of(lambda: read_document(document)) < 5_000


def test_importing_intake_and_catalog_loads_nothing_heavy() -> None:
    code = "import sys, intake, catalog; catalog.accelerators(); intake.read_text('gpt2-small'); print(*sys.modules)"
    names = set(subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())
    assert not names & {
        "numpy",
        "pandas",
        "ruamel.yaml",
        "torch",
        "jax",
        "tensorflow",
        "keras",
        "transformers",
        "sqlalchemy",
        "streamlit",
    }


@pytest.mark.parametrize(
    ("total", "steps"),
    [({"tokens": 1}, 1.0), ({"samples": 3}, 1.0), ({"samples": 16}, 2.0), ({"samples": 20}, 2.5), ({"steps": 1}, 1.0)],
)
def test_a_job_has_one_step_at_least(total: dict[str, float], steps: float) -> None:
    document = {"task": "train", "model": {"preset": "gpt2-small"}, "batch": 8, "length": 128, "total": total}
    assert read_document(document).total_steps == steps
