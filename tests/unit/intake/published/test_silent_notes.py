"""Rows whose notes leave out what their sizes, or the name of their model, say."""

import pytest

from core.sketch import Setup
from intake.published import read_runs

HEAD = (
    "id,task,model,params_b,arch_notes,n_layers,d_model,n_heads,n_kv_heads,d_ff,vocab,moe_experts,moe_topk,seq_len,global_batch,"
    "per_device_batch,precision,accelerator,n_devices,framework,framework_version,parallelism,metric,value,source,date,notes\n"
)


def setup_of(task: str, model: str, sizes: str, metric: str) -> Setup:
    text = f"{HEAD}r,{task},{model},{sizes},,,,64,,bf16,H100-SXM,8,pytorch,,,{metric},1000,somebody,2025-06,\n"
    (run,) = read_runs(text)
    assert run.setup is not None, run.refusal
    return run.setup


@pytest.mark.parametrize(("params", "sizes"), [("8.03", "32,4096,32,8,14336,128256"), ("6.74", "32,4096,32,32,11008,32000")])
def test_parameters_say_whether_an_mlp_has_gates(params: str, sizes: str) -> None:
    silent = setup_of("train_pretrain", "NewLM", f"{params},,{sizes}", "tokens_per_s_total").sketch
    told = setup_of("train_pretrain", "NewLM", f"{params},SwiGLU 3-matrix MLP,{sizes}", "tokens_per_s_total").sketch
    assert silent.linear_flop == told.linear_flop


def test_a_model_without_gates_keeps_two_matrices() -> None:
    silent = setup_of("train_pretrain", "NewLM", "1.56,,48,1600,25,25,6400,50257", "tokens_per_s_total").sketch
    told = setup_of("train_pretrain", "NewLM", "1.56,GELU 2-matrix MLP,48,1600,25,25,6400,50257", "tokens_per_s_total").sketch
    assert silent.linear_flop == told.linear_flop


@pytest.mark.parametrize("notes", ["", "vision transformer 224px", "image 224 patch 16"])
def test_a_vision_transformer_is_one_by_its_name(notes: str) -> None:
    silent = setup_of("vision_train", "ViT-L/16", f"0.304,{notes},24,1024,16,16,4096,", "samples_per_s")
    told = setup_of("vision_train", "ViT-L/16", "0.304,224x224,24,1024,16,16,4096,", "samples_per_s")
    assert (silent.sketch.kind, silent.sketch.length) == ("vision", 197)
    assert silent.sketch.linear_flop == told.sketch.linear_flop
    assert silent.length == told.length == 1
