"""Runs whose division nobody stated: what is assumed of them could have run, and what was stated stays."""

import numpy as np
import pytest

import catalog
from advisor.cost import known_predictor
from advisor.search.grid import Grid
from advisor.search.sketched import divided_to_fit, division_of, needed_bytes
from core.sketch import Setup
from intake.published import PublishedRun, read_runs

HEAD = (
    "id,task,model,params_b,arch_notes,n_layers,d_model,n_heads,n_kv_heads,d_ff,vocab,moe_experts,moe_topk,seq_len,global_batch,"
    "per_device_batch,precision,accelerator,n_devices,framework,framework_version,parallelism,metric,value,source,date,notes\n"
)
LARGE = "70.55,SwiGLU; RoPE; GQA,80,8192,64,8,28672,128256"
SMALL = "8.03,SwiGLU; RoPE; GQA,32,4096,32,8,14336,128256"


def run_of(task: str, sizes: str, batch: int, chips: int, parallelism: str = "", notes: str = "") -> PublishedRun:
    where = f"bf16,H100-SXM,{chips},pytorch/nemo,,{parallelism}"
    text = f"{HEAD}r,{task},NewLM,{sizes},,,8192,{batch},,{where},tokens_per_s_total,1000,somebody,2025-06,{notes}\n"
    (run,) = read_runs(text)
    return run


def setup_of(task: str, sizes: str, batch: int, chips: int, parallelism: str = "", notes: str = "") -> Setup:
    run = run_of(task, sizes, batch, chips, parallelism, notes)
    assert run.setup is not None, run.refusal
    return run.setup


def divided(setup: Setup) -> Setup:
    return divided_to_fit(setup, catalog.accelerator(setup.accelerator), known_predictor(training=True))


def need_of(setup: Setup) -> float:
    return float(needed_bytes(setup, Grid(*(np.array([value]) for value in division_of(setup))))[0])


@pytest.mark.parametrize(("sizes", "chips"), [(SMALL, 8), (LARGE, 64)])
def test_a_run_that_does_not_say_how_it_was_divided_is_taken_as_one_that_fits(sizes: str, chips: int) -> None:
    published = setup_of("train_pretrain", sizes, 128, chips)
    capacity = catalog.accelerator("h100-sxm").memory_bytes
    assert need_of(published) > capacity
    taken = divided(published)
    assert need_of(taken) <= capacity
    layout = taken.layout
    assert layout.data * layout.tensor * layout.pipeline * layout.context == chips
    assert taken.assumed[-1] == f"divided as {layout.words}: the row does not say"
    assert divided(taken) == taken


def test_what_a_row_states_of_its_division_stays() -> None:
    stated = setup_of("train_pretrain", LARGE, 128, 64, "tp8 pp2", "mbs 1")
    assert divided(stated) == stated
    in_parts = divided(setup_of("train_pretrain", LARGE, 128, 64, "fsdp64 tp1"))
    assert (in_parts.layout.data, in_parts.layout.sharded, in_parts.layout.tensor) == (64, 64, 1)
    assert need_of(in_parts) <= catalog.accelerator("h100-sxm").memory_bytes
    one_at_a_time = divided(setup_of("train_pretrain", SMALL, 128, 8, "", "mbs 2"))
    assert one_at_a_time.layout.micro_batch == 2


def test_a_run_that_fits_as_it_is_stays_in_plain_replicas() -> None:
    fits = setup_of("train_pretrain", "0.4,GELU,24,1024,16,16,4096,50257", 8, 8)
    assert divided(fits).layout == fits.layout
    alone = setup_of("train_pretrain", "0.4,GELU,24,1024,16,16,4096,50257", 8, 1)
    assert divided(alone) == alone


def test_a_model_that_answers_on_several_chips_is_one_replica_over_those_that_a_link_joins() -> None:
    served = setup_of("infer_serve", LARGE, 64, 8)
    assert (served.layout.data, served.layout.tensor) == (1, 8)
    assert any("tp 8" in one for one in served.assumed)
    beyond = setup_of("infer_serve", LARGE, 64, 16)
    assert (beyond.layout.data, beyond.layout.tensor) == (2, 8)
    assert setup_of("infer_serve", LARGE, 64, 8, "tp4").layout.tensor == 4


@pytest.mark.parametrize(("notes", "length", "output", "told"), [
    ("ISL 6000 OSL 2192", 6000, 2192, False),
    ("prompt 6000; output 2192", 6000, 2192, False),
    ("prompt 6000", 6000, 2192, True),
    ("output 2192", 6000, 2192, True),
    ("", 4096, 4096, True),
])
def test_tokens_of_prompts_and_answers_are_stated_or_said_to_be_assumed(
    notes: str, length: float, output: float, told: bool
) -> None:
    served = setup_of("infer_serve", SMALL, 64, 1, "", notes)
    assert (served.length, served.output) == (length, output)
    assert any("prompt of" in one for one in served.assumed) is told


def test_a_prompt_that_leaves_nothing_for_an_answer_is_refused() -> None:
    refused = run_of("infer_serve", SMALL, 64, 1, "", "prompt 8192")
    assert refused.setup is None
    assert "how many tokens are answered" in refused.refusal
