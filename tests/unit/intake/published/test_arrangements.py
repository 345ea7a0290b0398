"""How runs were divided, out of the words of tables: degrees, micro-batches, recomputation, islands."""

from functools import cache

import pytest

from catalog.measurements import measurements_text
from core.sketch import Layout
from intake.published import PublishedRun, read_runs
from tests.unit.intake.published.tables import TRAINING, one


@cache
def known() -> dict[str, PublishedRun]:
    return {run.id: run for run in read_runs(measurements_text())}


def layout(
    data: int, tensor: int = 1, pipeline: int = 1, context: int = 1, expert: int = 1, virtual: int = 1, **more: float
) -> Layout:
    return Layout(data, tensor, pipeline, context, expert, virtual, **more)  # pyright: ignore[reportArgumentType]


PICKED = {
    "mlpt-v4.1-h100-gnn-n64-g65536": layout(64, micro_batch=1024),
    "dle-bertl-pt-pytorch-a100-80-s128-n256-fp16": layout(256, micro_batch=32),
    "jtb-t5x-h100-xl-n256-fp8": layout(256, micro_batch=8),
    "jtb-t5x-a100-xxl-n512-bf16": layout(64, 8, micro_batch=36),
    "mlpt-v2.1-a100-80-dlrm-n64-g71680": layout(64, micro_batch=1120),
    "llmf-h100-3b-s2048-n512-bf16": layout(512, sharded=512, micro_batch=8),
    "dgxcj-pax-gpt3-175b-fp8-n2048": layout(2048, sharded=128, micro_batch=2),
    "mxt-v5p-1024b-1x4096": layout(128, 16, sharded=128, micro_batch=32, recompute=1.0),
    "mxt-v5e-128b-32x256": layout(512, 16, sharded=16, micro_batch=16, recompute=1.0, islands=32),
    "mxt-v5p-128b-2x256": layout(32, 8, sharded=16, micro_batch=8, islands=2),
    "mxt-v5e-16b-8x256": layout(2048, sharded=256, micro_batch=6, recompute=1.0, islands=8),
    "tpur-v5p-llama4-maverick": layout(32, 4, sharded=32, micro_batch=16, recompute=0.6),
    "mxt-v4-22b-4x128": layout(256, sharded=64, micro_batch=13, recompute=1.0, islands=4),
    "mxt-a3-llama2-7b-16vm": layout(128, sharded=8, micro_batch=4),
    "mxt-v6e-moe10t-16pod": layout(64, 4, 16, expert=64, sharded=64, micro_batch=1, recompute=0.6),
    "trt0-ttft-llama7b-a100-80-tp1-i2048": layout(1, micro_batch=1),
    "mbr26.02.01-gb300-nemotron3-nano-pretrain-mxfp8-n8": layout(8, expert=8, micro_batch=4),
    "nemol-llama3-8b-pretrain-n8": layout(4, context=2, micro_batch=1),
    "mbr25.11-h100-qwen3-30b-pretrain-fp8-cs-n16": layout(8, pipeline=2, expert=8, virtual=24, micro_batch=2),
    "mbr26.06-gb200-qwen3-235b-pretrain-mxfp8-n256": layout(32, pipeline=8, expert=32, virtual=3, micro_batch=1),
    "mbr26.08-gb200-nemotron3-super-pretrain-mxfp8-n64": layout(32, 2, expert=64, micro_batch=1),
    "mbr26.02.01-gb300-llama3-405b-pretrain-mxfp8-n256": layout(8, 2, 8, 2, virtual=4, micro_batch=1),
    "dgxc-nemo-gb200-grok1-bf16-n128": layout(32, 4, expert=8, micro_batch=1),
    "lit-mtnlg-n2240": layout(8, 8, 35, micro_batch=1),
    "jspt-gemma-2b-v5e-n8-int8-b1024-c2048": layout(1, 8, micro_batch=1024),
}


@pytest.mark.parametrize("identity", PICKED)
def test_a_published_run_is_divided_as_its_words_say(identity: str) -> None:
    found = known()[identity].setup
    assert found is not None
    expected = PICKED[identity]
    assert found.layout.micro_batch == pytest.approx(expected.micro_batch, rel=1e-4)
    given = {name: getattr(found.layout, name) for name in Layout.__slots__ if name != "micro_batch"}
    assert given == {name: getattr(expected, name) for name in given}


def test_degrees_of_every_published_run_make_up_its_chips() -> None:
    for run in known().values():
        if run.setup is not None and run.setup.chips >= 1 and run.accelerator != "MI250X":
            found = run.setup.layout
            assert found.data * found.tensor * found.pipeline * found.context == run.setup.chips, run.id
            assert found.sharded <= found.data, run.id


@pytest.mark.parametrize(("words", "expected"), [
    ("tp8", (1, 8, 1, 1)), ("TP=8", (1, 8, 1, 1)), ("tp 4 pp 2", (1, 4, 2, 1)), ("dp2 tp4", (2, 4, 1, 1)),
    ("TP-2, CP-4", (1, 2, 1, 4)),
    ("etp4", (8, 1, 1, 1)), ("", (8, 1, 1, 1)), ("fsdp=8", (8, 1, 1, 1)), ("pp:2 vp4 ep4", (4, 1, 2, 1)),
])  # fmt: skip
def test_degrees_are_read_however_they_are_spelt(words: str, expected: tuple[int, ...]) -> None:
    found = one(TRAINING, parallelism=words).setup
    assert found is not None
    assert (found.layout.data, found.layout.tensor, found.layout.pipeline, found.layout.context) == expected


@pytest.mark.parametrize(
    ("words", "sharded"), [("fsdp4", 4), ("FSDP", 8), ("zero3", 8), ("fsdp99999", 8), ("dp", 1)]
)
def test_weights_are_spread_over_as_many_chips_as_is_said(words: str, sharded: int) -> None:
    found = one(TRAINING, parallelism=words).setup
    assert found is not None
    assert found.layout.sharded == sharded


@pytest.mark.parametrize(("words", "degree"), [("tp0", "tp0"), ("fsdp0", "fsdp0"), ("tp8 pp=0", "pp=0"), ("CP 00", "cp 00")])
def test_a_degree_of_nothing_is_refused(words: str, degree: str) -> None:
    assert f"expected degrees from 1 on, not {degree}" in one(TRAINING, parallelism=words).refusal


@pytest.mark.parametrize("words", ["tp99", "pp3", "tp8 pp8 cp8", "tp16"])
def test_degrees_that_do_not_divide_the_chips_are_refused(words: str) -> None:
    refusal = one(TRAINING, parallelism=words).refusal
    assert repr(words) in refusal
    assert "on 8 chips" in refusal


@pytest.mark.parametrize(("notes", "part"), [
    ("remat full", 1.0), ("full recompute", 1.0), ("activation_checkpointing=True", 1.0), ("selective recompute", 0.6),
    ("custom offload remat", 0.6), ("remat minimal", 0.0), ("no remat", 0.0), ("", 0.0),
])  # fmt: skip
def test_recomputation_is_read_from_the_notes(notes: str, part: float) -> None:
    found = one(TRAINING, notes=notes).setup
    assert found is not None
    assert found.layout.recompute == part


@pytest.mark.parametrize(
    ("notes", "micro"), [("mbs 2", 2), ("micro-batch 4", 4), ("grad_accum 4", 2), ("mbs 0", 8), ("mbs 99", 8), ("", 8)]
)
def test_micro_batches_are_read_from_the_notes_and_are_no_larger_than_a_replicas_share(notes: str, micro: float) -> None:
    found = one(TRAINING, notes=notes).setup
    assert found is not None
    assert found.layout.micro_batch == micro


@pytest.mark.parametrize(("changes", "batch", "assumed"), [
    ({"global_batch": "", "per_device_batch": "4"}, 32, 0), ({"global_batch": "", "notes": "per-device batch 3"}, 24, 0),
    ({"global_batch": "", "notes": "tokens per device 8192"}, 16, 0), ({"global_batch": ""}, 16, 1),
    ({"global_batch": "", "notes": "tokens per device 0"}, 16, 1), ({"global_batch": "1,024"}, 1024, 0),
])  # fmt: skip
def test_a_batch_is_as_stated_or_assumed_and_said(changes: dict[str, str], batch: float, assumed: int) -> None:
    found = one(TRAINING, **changes).setup
    assert found is not None
    assert (found.batch, len(found.assumed)) == (batch, assumed)
