"""A model that was read is told by the numbers that published runs of the same model are told by: what speed was fitted on."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.ops import Op
from core.sketch import Sketch
from core.sketching import sketch_of
from core.transformer import key_heads_of, layer_of, vocabulary_of
from intake import read_file, read_text
from intake.published.architecture import sketch_from

MIXTRAL = {
    "model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
}  # fmt: skip
QWEN3 = {
    "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4,
    "head_dim": 128, "moe_intermediate_size": 768, "vocab_size": 151936, "num_experts": 128, "num_experts_per_tok": 8,
}  # fmt: skip
FALCON = {
    "model_type": "falcon", "hidden_size": 4096, "num_hidden_layers": 12, "num_attention_heads": 64, "num_kv_heads": 8,
    "vocab_size": 65024, "new_decoder_architecture": True,
}  # fmt: skip
CONFIGS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "experts": (MIXTRAL, {
        "n_layers": "32", "d_model": "4096", "n_heads": "32", "n_kv_heads": "8", "d_ff": "14336", "vocab": "32000",
        "moe_experts": "8", "moe_topk": "2", "arch_notes": "SwiGLU 3-matrix MLP; RoPE; MoE",
    }),
    "experts by many": (QWEN3, {
        "n_layers": "48", "d_model": "2048", "n_heads": "32", "n_kv_heads": "4", "d_ff": "768", "vocab": "151936",
        "moe_experts": "128", "moe_topk": "8", "arch_notes": "SwiGLU 3-matrix MLP; RoPE; head_dim 128; MoE",
    }),
    "experts as wide as the model, attention in two products": ({"model_type": "gpt_oss", "num_local_experts": 32}, {
        "n_layers": "36", "d_model": "2880", "n_heads": "64", "n_kv_heads": "8", "d_ff": "2880", "vocab": "201088",
        "moe_experts": "32", "moe_topk": "4", "arch_notes": "SwiGLU 3-matrix MLP; RoPE; head_dim 64; MoE",
    }),
    "wide heads": ({"model_type": "gemma"}, {
        "n_layers": "28", "d_model": "3072", "n_heads": "16", "n_kv_heads": "16", "d_ff": "24576", "vocab": "256000",
        "arch_notes": "GeGLU 3-matrix MLP; RoPE; head_dim 256; tied",
    }),
    "two matrices": ({"model_type": "gptj"}, {
        "n_layers": "28", "d_model": "4096", "n_heads": "16", "n_kv_heads": "16", "d_ff": "16384", "vocab": "50400",
        "arch_notes": "2-matrix MLP",
    }),
    "fused queries, keys and values": (FALCON, {
        "n_layers": "12", "d_model": "4096", "n_heads": "64", "n_kv_heads": "8", "d_ff": "16384", "vocab": "65024",
        "arch_notes": "2-matrix MLP; tied",
    }),
}  # fmt: skip


@pytest.fixture(scope="module", params=sorted(CONFIGS))
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Sketch, Sketch]:
    """A model as it was read, and as a published row of the same sizes has it."""
    config, row = CONFIGS[request.param]
    folder: Path = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text(json.dumps(config))
    job = "schema: 1\nname: x\ntask: train\nmodel: {config: config.json}\nbatch: 4\nlength: 2048\n"
    (folder / "job.yaml").write_text(job)
    return sketch_of(read_file(folder / "job.yaml").workload), sketch_from({"model": "x", **row})


def test_a_model_that_was_read_has_the_counts_of_a_published_row_of_its_sizes(both: tuple[Sketch, Sketch]) -> None:
    found, published = both
    for count in ("linear_flop", "expert_flop", "head_flop", "attention_flop", "vector_elements", "logits", "cached_elements"):
        assert getattr(found, count) == pytest.approx(getattr(published, count), rel=0.03), count


def test_a_model_that_was_read_is_of_the_kind_and_the_sizes_of_a_published_row(both: tuple[Sketch, Sketch]) -> None:
    found, published = both
    for size in ("kind", "causal", "layers", "width", "head_width", "hidden", "experts", "experts_used"):
        assert getattr(found, size) == getattr(published, size), size
    assert found.expert_parameters == pytest.approx(published.expert_parameters, rel=0.03)
    assert found.kernels == pytest.approx(published.kernels, rel=0.15, abs=40)  # what lies beside the layers is not fused


@pytest.mark.parametrize(("preset", "row"), [
    ("gpt2-small", {"n_layers": "12", "d_model": "768", "n_heads": "12", "d_ff": "3072", "vocab": "50257",
                    "arch_notes": "2-matrix MLP; tied"}),
    ("bert-base", {"n_layers": "12", "d_model": "768", "n_heads": "12", "d_ff": "3072", "vocab": "30522",
                   "arch_notes": "encoder; 2-matrix MLP; tied"}),
])  # fmt: skip
def test_layers_of_a_preset_move_as_much_as_those_of_a_published_row(preset: str, row: dict[str, str]) -> None:
    found = sketch_of(read_text(f"{preset}:train").workload)
    assert found.vector_elements == pytest.approx(sketch_from({"model": "of these sizes", **row}).vector_elements, rel=0.03)


def weights(m: int, n: int, k: int, count: int = 1) -> Op:
    return Op("matmul", (1, m, n, k), "bf16", count)


def test_what_has_no_attention_is_no_transformer() -> None:
    assert layer_of((weights(64, 32, 16), Op("conv", (1, 8, 8, 4, 8, 8, 4, 3, 3, 1), "bf16")), 1) is None
    assert layer_of((Op("attention", (1, 2, 2, 8, 8, 4), "bf16"),), 1) is None
    assert key_heads_of((weights(64, 32, 16),), 1) == 1


def test_products_of_many_pairs_that_nothing_turns_back_are_no_attention() -> None:
    alone = (weights(64, 16, 32, 3), weights(64, 32, 16), Op("matmul", (8, 16, 16, 8), "bf16"))
    assert layer_of(alone, 4) is None
    found = layer_of((*alone, Op("matmul", (8, 16, 8, 16), "bf16")), 4)
    assert found is not None
    assert (found.attention.heads, found.attention.head_width, found.attention.pairs) == (2, 8, 4 * 16 * 16)


def test_products_of_experts_side_by_side_are_no_attention() -> None:
    experts = (Op("matmul", (8, 64, 128, 32), "bf16"), Op("matmul", (8, 64, 32, 128), "bf16"))
    assert layer_of((weights(64, 32, 32, 4), *experts), 4) is None


def test_a_vocabulary_is_a_table_that_a_product_comes_back_to() -> None:
    table = Op("embedding", (64, 32, 50_000), "bf16")
    assert vocabulary_of((table, weights(64, 50_000, 32))) == 50_000
    assert vocabulary_of((table, weights(64, 1_000, 32))) == 0
    assert vocabulary_of((Op("embedding", (64, 32, 512), "bf16"), weights(64, 512, 32))) == 0
