"""A model in a few numbers: counts against the textbook, averages of keys against counting them one by one."""

from dataclasses import replace
from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.ops import Op
from core.sketch import Sketch, reach
from core.sketching import output_of, prompt_of, routed_experts, sketch_of
from intake.published.architecture import sketch_from
from intake.understand import read_text
from tests.unit.advisor.cases import tower, transformer

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)
LLAMA_3_8B = {
    "model": "a model of these sizes", "params_b": "8.03", "arch_notes": "SwiGLU 3-matrix MLP; RoPE; GQA; untied head",
    "n_layers": "32", "d_model": "4096", "n_heads": "32", "n_kv_heads": "8", "d_ff": "14336", "vocab": "128256",
}  # fmt: skip


@pytest.mark.parametrize("count", [
    "linear_flop", "head_flop", "attention_flop", "parameters", "cached_elements", "layers", "width", "head_width", "hidden",
    "logits",
])  # fmt: skip
def test_a_preset_and_a_published_row_of_the_same_sizes_have_the_same_counts(count: str) -> None:
    preset, published = sketch_of(read_text("llama-3-8b:train").workload), sketch_from(LLAMA_3_8B)
    assert getattr(preset, count) == pytest.approx(getattr(published, count), rel=0.01)


@pytest.mark.parametrize("dtype", ["fp32", "tf32", "bf16", "fp8"])
@pytest.mark.parametrize("name", ["llama-3-8b", "resnet-50", "lstm-lm"])
def test_what_element_wise_work_moves_is_counted_in_elements_whatever_their_width(name: str, dtype: str) -> None:
    found, wide = (sketch_of(read_text(_with_batch(name, 4) + f"dtype: {one}\n").workload) for one in (dtype, "bf16"))
    assert found.vector_elements == pytest.approx(wide.vector_elements, rel=0.05)  # losses are kept in fp32 in any dtype


@pytest.mark.parametrize("dtype", ["bf16", "tf32", "fp8"])
def test_element_wise_work_of_a_preset_is_that_of_a_published_row_in_every_dtype(dtype: str) -> None:
    text = f"schema: 1\nname: x\ntask: train\nmodel: {{preset: llama-3-8b}}\nbatch: 8\nlength: 4096\ndtype: {dtype}\n"
    preset, published = sketch_of(read_text(text).workload), sketch_from(LLAMA_3_8B)
    assert preset.vector_elements == pytest.approx(published.vector_elements, rel=0.02)


def test_llama_3_8b_has_the_counts_of_its_published_sizes() -> None:
    found = sketch_of(read_text("llama-3-8b:train").workload)
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    assert found.linear_flop == 2 * 32 * layer
    assert found.head_flop == 2 * 4096 * 128256
    assert found.attention_flop == 32 * 4 * 4096
    assert found.cached_elements == 32 * 2 * 1024
    assert found.parameters == 32 * (layer + 2 * 4096) + 4096 + 2 * 4096 * 128256
    assert (found.kind, found.causal) == ("decoder", True)


@pytest.mark.parametrize(
    "name", ["llama-3-8b", "gpt2-small", "bert-base", "resnet-50", "vit-b16", "lstm-lm", "mlp", "unet", "dlrm-small"]
)
def test_counts_of_a_position_do_not_change_with_the_batch(name: str) -> None:
    first, second = (sketch_of(read_text(_with_batch(name, size)).workload) for size in (4, 32))
    counted = {count: (getattr(first, count), getattr(second, count)) for count in (
        "linear_flop", "head_flop", "attention_flop", "convolution_flop", "depthwise_flop", "other_flop", "cached_elements",
        "parameters", "layers", "lookup_elements", "logits",
    )}  # fmt: skip
    assert all(isclose(one, other, rel_tol=1e-9) for one, other in counted.values()), counted


def _with_batch(name: str, batch: int) -> str:
    return f"schema: 1\nname: x\ntask: train\nmodel: {{preset: {name}}}\nbatch: {batch}\n"


def test_generation_counts_each_layer_once() -> None:
    generating = read_text("llama-3-8b:infer").workload
    assert output_of(generating) > 0
    found, training = sketch_of(generating), sketch_of(read_text("llama-3-8b:train").workload)
    assert found.layers == 32
    assert found.parameters == training.parameters
    assert found.linear_flop == pytest.approx(training.linear_flop, rel=1e-9)
    assert found.attention_flop == pytest.approx(training.attention_flop, rel=1e-9)
    assert found.cached_elements == pytest.approx(training.cached_elements, rel=1e-9)


def test_training_has_its_length_as_prompt_and_makes_no_token() -> None:
    assert (prompt_of(transformer(length=512)), output_of(transformer(length=512))) == (512, 0)


def test_a_model_of_samples_counts_samples() -> None:
    found = sketch_of(tower(batch=64))
    assert found.linear_flop == 2 * (512 * 1024 + 4 * 1024 * 1024)
    assert (found.head_flop, found.attention_flop, found.length, found.layers) == (0, 0, 0, 5)


def test_products_are_told_with_their_part_of_the_work() -> None:
    parts = sketch_of(transformer(width=1024)).products
    assert sum(part for _, _, part in parts) == pytest.approx(1.0)
    assert {shape[:2]: shape[2] for shape in parts}[4096.0, 1024.0] == pytest.approx(4 / 12)


def brute(length: int, cached: int, window: int | None, *, causal: bool) -> float:
    """Count for each position the keys that it sees."""
    seen = []
    for position in range(length):
        there = cached + (position + 0.5 if causal else length)  # half of itself: the mean over a tile's triangle
        seen.append(there if window is None else min(there, window))
    return sum(seen) / length


@QUICK
@given(st.integers(1, 300), st.integers(0, 300), st.integers(1, 400), st.booleans())
def test_the_average_of_keys_is_that_of_counting_them(length: int, cached: int, window: int, causal: bool) -> None:
    plain = Sketch("x", "decoder", 1.0, causal=causal)
    assert plain.keys(length, cached) == pytest.approx(brute(length, cached, None, causal=causal), rel=1e-6)
    bounded = replace(plain, windows=((1.0, float(window)),))
    assert bounded.keys(length, cached) == pytest.approx(brute(length, cached, window, causal=causal), abs=0.51)


@QUICK
@given(st.integers(1, 3000), st.integers(1, 3000), st.floats(0, 1))
def test_layers_with_a_window_and_without_are_averaged(length: int, window: int, part: float) -> None:
    plain = Sketch("x", "decoder", 1.0, causal=True)
    mixed = replace(plain, windows=((part, float(window)),)).keys(length)
    alone = replace(plain, windows=((1.0, float(window)),)).keys(length)
    assert mixed == pytest.approx(part * alone + (1 - part) * length / 2, rel=1e-9)
    assert alone <= plain.keys(length) + 1e-9


def test_products_of_a_sketch_are_those_of_its_parts() -> None:
    assert (
        Sketch("x", "other", 1.0, expert_flop=2.0, head_flop=4.0, convolution_flop=8.0, attention_flop=16.0).matrix_flop == 15.0
    )


def test_experts_of_a_model_that_was_read_are_those_among_which_its_router_chooses() -> None:
    dense = read_text("llama-3-8b:train").workload
    (layer,) = (block for block in dense.blocks if block.kind == "transformer_layer")
    tokens = dense.batch * 8192
    sorts = (Op("sort", (tokens, 8), "fp32"), Op("sort", (1, 2 * tokens), "int64"))
    mixture = replace(layer, kind="traced", parameter_count=4 * layer.parameter_count, ops_forward=(*layer.ops_forward, *sorts))
    assert routed_experts(replace(dense, blocks=(mixture,))) == 8
    assert routed_experts(replace(dense, blocks=(replace(layer, ops_forward=(*layer.ops_forward, *sorts)),))) == 0
    assert routed_experts(dense) == 0


@pytest.mark.parametrize("sorts", [(), (Op("sort", (8, 64), "fp32"),)])
def test_recurrent_layers_are_no_experts_though_products_leave_most_of_their_weights_alone(sorts: tuple[Op, ...]) -> None:
    job = read_text("lstm-lm:train").workload
    sorting = (replace(block, ops_forward=(*block.ops_forward, *sorts)) for block in job.blocks)
    found = sketch_of(replace(job, blocks=tuple(sorting)))
    assert (found.kind, found.expert_parameters, found.expert_flop, found.experts) == ("recurrent", 0.0, 0.0, 0.0)


def test_weights_that_lie_idle_are_experts_only_behind_a_router() -> None:
    dense = read_text("llama-3-8b:train").workload
    (layer,) = (block for block in dense.blocks if block.kind == "transformer_layer")
    idle = replace(layer, kind="traced", parameter_count=4 * layer.parameter_count)
    routed = replace(idle, ops_forward=(*idle.ops_forward, Op("sort", (dense.batch * 8192, 8), "fp32")))
    assert sketch_of(replace(dense, blocks=(idle,))).expert_parameters == 0
    assert sketch_of(replace(dense, blocks=(routed,))).expert_parameters > 2 * idle.repeats * layer.parameter_count


def test_convolutions_of_a_detector_that_keeps_its_best_boxes_are_no_experts() -> None:
    job = tower(batch=16)
    kept = (Op("conv", (16, 32, 32, 256, 32, 32, 256, 3, 3, 1), "bf16", 8), Op("sort", (16, 1000), "fp32"))
    block = replace(job.blocks[0], kind="traced", parameter_count=8 * 9 * 256**2 + 512 * 1024 + 1024,
                    ops_forward=(*job.blocks[0].ops_forward, *kept))  # fmt: skip
    assert sketch_of(replace(job, blocks=(block,))).expert_parameters == 0


def test_positions_that_are_put_in_the_order_of_their_experts_are_no_experts() -> None:
    dense = read_text("llama-3-8b:train").workload
    (layer,) = (block for block in dense.blocks if block.kind == "transformer_layer")
    sorts = (Op("sort", (dense.batch * 8192, 8), "fp32"), Op("sort", (1, 4096), "int64"))
    mixture = replace(layer, kind="traced", parameter_count=4 * layer.parameter_count, ops_forward=(*layer.ops_forward, *sorts))
    assert routed_experts(replace(dense, blocks=(mixture,))) == 8


@pytest.mark.parametrize(("model", "tables"), [
    ("llama-3-8b:infer", 128256 * 4096), ("llama-3-8b:train", 128256 * 4096), ("gpt2-small:train", 0), ("bert-base:train", 0),
    ("lstm-lm:train", 0), ("dlrm-small:train", 0), ("resnet-50:train", 0),
])  # fmt: skip
def test_an_input_table_is_fetched_by_row_unless_the_head_is_the_same(model: str, tables: int) -> None:
    assert sketch_of(read_text(model).workload).fetched_parameters == tables


@pytest.mark.parametrize(("words", "parameters", "tables"), [("untied", "8.03", 128256 * 4096), ("tied", "7.5047", 0)])
def test_an_input_table_of_a_published_row_is_what_its_products_leave_unread(words: str, parameters: str, tables: int) -> None:
    found = sketch_from({**LLAMA_3_8B, "params_b": parameters, "arch_notes": f"SwiGLU 3-matrix MLP; RoPE; GQA; {words}"})
    assert found.fetched_parameters == pytest.approx(tables, abs=2e6)
    assert replace(found, kind="vision").fetched_parameters == 0


def test_a_recurrent_model_of_tokens_is_counted_and_run_by_the_token() -> None:
    told = {name: sketch_of(read_text(name).workload) for name in ("lstm-lm:train", "resnet-50:train", "llama-3-8b:train")}
    assert {name: found.counts_samples for name, found in told.items()} == {
        "lstm-lm:train": False, "resnet-50:train": True, "llama-3-8b:train": False,
    }  # fmt: skip
    assert told["lstm-lm:train"].linear_flop == 2 * 2 * 4 * 650 * 650  # of two layers, their inputs


def test_windows_bound_what_a_position_reads_and_what_is_kept_of_the_positions_before_it() -> None:
    assert reach((), 1000) == 1000
    assert reach(((1.0, 400.0),), 1000) == 400
    assert reach(((0.75, 400.0),), 1000) == 0.25 * 1000 + 0.75 * 400
    assert reach(((1.0, 4096.0),), 1000) == 1000
