"""Adapters: how many parameters they have, and what of a backward pass remains when weights are frozen."""

from dataclasses import replace

import pytest

from core.low_rank import adapter_parameters, matrices_of, through_frozen
from core.ops import Op
from intake import read_document

JOB = {"task": "finetune", "model": {"preset": "llama-3-8b"}, "batch": 4, "length": 512}
TRAINED = 41_943_040
"""Of adapters of rank 16 on q, k, v, o, gate, up and down of Llama 3 8B, as PEFT counts them for `all-linear`."""


def product(m: int, n: int, k: int, count: int = 1, batch: int = 1) -> Op:
    return Op("matmul", (batch, m, n, k), "bf16", count)


def test_adapters_on_every_linear_layer_of_llama_3_8b_have_as_many_parameters_as_its_library_counts() -> None:
    workload = read_document(JOB)
    matrices = matrices_of(workload.blocks)
    assert adapter_parameters(matrices, 16) == TRAINED
    assert adapter_parameters(matrices, 32) == 2 * TRAINED


def test_a_model_without_layers_that_repeat_gets_adapters_everywhere() -> None:
    block = replace(read_document({"task": "train", "model": {"preset": "mlp"}, "batch": 4}).blocks[0], repeats=1)
    sides = sum((op.dims[2] + op.dims[3]) * op.count for op in block.ops_forward if op.kind == "matmul")
    assert adapter_parameters(matrices_of((block,)), 2) == 2 * sides > 0


@pytest.mark.parametrize("gradient", [product(64, 32, 256), product(32, 64, 256)], ids=["as it stands", "turned over"])
def test_the_product_that_makes_the_gradient_of_frozen_weights_falls_away(gradient: Op) -> None:
    forward, through = product(256, 32, 64), product(256, 64, 32)
    assert through_frozen((forward,), (through, gradient)) == (through,)


def test_of_alike_products_as_many_fall_away_as_there_are_weights() -> None:
    square = product(64, 64, 64, 2)
    assert through_frozen((product(64, 64, 64),), (square,)) == (product(64, 64, 64),)


def test_products_of_many_pairs_and_everything_else_remain() -> None:
    scores = product(64, 64, 32, batch=8)
    others = (scores, Op("attention", (2, 4, 4, 64, 64, 32), "bf16", 2), Op("norm", (64, 64), "bf16"))
    assert through_frozen((scores,), others) == others


def test_a_step_of_adapters_does_two_thirds_of_the_products_of_a_full_one() -> None:
    full, adapted = read_document(JOB), read_document({**JOB, "lora": 16})
    products = {
        job: sum(op.flop * block.repeats for block in job.blocks for op in job.ops_of(block) if op.kind == "matmul")
        for job in (full, adapted)
    }
    assert products[adapted] / products[full] == pytest.approx(2 / 3, abs=1e-9)
    assert adapted.flop_forward == full.flop_forward
