"""Compile times of chips that are not here: what they grow with, how wide they are told, what they rest on."""

from dataclasses import replace

import pytest

from advisor import advise
from advisor.compiling import COMPILERS, Programs, compile_time, compiled_here, programs_of
from catalog.compile_times import compile_times
from core.probe import RUNTIME_IDS
from core.quantity import Quantity
from core.workload import Block, Total, Workload
from services import workloads
from tests.unit.advisor.cases import block_measurements, existing, pool, question, tower, transformer

SMALL = Programs(40.0, 400.0, 1)
REPORTED = [(row, runtime) for compiler, runtime in (("inductor", "torch-compile"), ("xla", "tf-xla"))
            for kind in ("cpu", "gpu", "tpu") for row in compile_times(compiler, kind)]  # fmt: skip


def seconds(runtime: str, kind: str = "gpu", chips: int = 1, programs: Programs = SMALL) -> Quantity:
    return compile_time(programs, runtime, kind, chips, {})


@pytest.mark.parametrize("runtime", RUNTIME_IDS)
@pytest.mark.parametrize("kind", ["cpu", "gpu", "tpu", "other"])
def test_every_runtime_is_told_on_every_kind_of_chip(runtime: str, kind: str) -> None:
    found = seconds(runtime, kind)
    assert (found.mid > 0) == (runtime in COMPILERS)
    assert found.tier == "datasheet"


def test_a_model_is_counted_once_a_layer_and_with_every_layer_written_out() -> None:
    # layer() has 10 operations forward and 15 backward, and 24 of it
    assert programs_of(transformer()) == Programs(25.0, 600.0, 1)
    assert programs_of(transformer(task="infer")) == Programs(10.0, 240.0, 1)


def test_a_generation_is_a_program_for_the_prompt_and_one_for_a_token() -> None:
    found = programs_of(workloads.read("gpt2-small:infer").workload)
    prompt, token = 12 * 10 + 4, 12 * 10 + 4
    assert found == Programs(28.0, float(prompt + token), 1)


@pytest.mark.parametrize(
    ("shapes", "steps", "compiled"), [(None, None, 1), (1, None, 1), (40, None, 40), (40, 7, 7), (40, 0.5, 1)]
)
def test_each_shape_is_compiled_anew_but_no_more_than_there_are_steps(
    shapes: int | None, steps: float | None, compiled: int
) -> None:
    workload = transformer(existing=existing(distinct_shapes=shapes), total=Total(steps=steps))
    assert programs_of(workload).shapes == compiled


def test_shapes_multiply_the_time() -> None:
    one, many = seconds("torch-compile"), seconds("torch-compile", programs=replace(SMALL, shapes=30))
    assert many.mid == pytest.approx(30 * one.mid)
    assert "30 shapes" in " ".join(many.evidence)


def test_more_chips_and_more_operations_take_longer() -> None:
    assert seconds("jax", "tpu", 256).mid == pytest.approx(1.8 * seconds("jax", "tpu").mid)
    assert seconds("tf-xla", programs=Programs(40.0, 800.0, 1)).mid > 1.5 * seconds("tf-xla").mid


def test_jax_is_taken_to_scan_and_its_band_reaches_to_layers_written_out() -> None:
    deep, shallow = (seconds("jax", programs=Programs(40.0, written, 1)) for written in (40_000.0, 40.0))
    assert deep.mid == shallow.mid
    assert deep.high > 100 * deep.mid
    assert any("equal layers once" in text for text in deep.evidence)
    assert any("every layer written out" in text for text in seconds("torch-xla", "tpu").evidence)


def test_the_band_of_each_compiler_holds_most_of_the_reports() -> None:
    held = 0
    for row, runtime in REPORTED:
        told = seconds(runtime, row.kind, 1, Programs(row.operations, row.operations, 1))
        held += told.low <= row.seconds <= told.high
    assert held >= 0.8 * len(REPORTED)


def test_a_compiler_without_reports_on_a_kind_of_chip_has_a_wider_band_and_says_so() -> None:
    assert not compile_times("graph", "gpu")
    borrowed = seconds("tf-graph", "gpu")
    assert borrowed.sigma > seconds("tf-graph", "cpu").sigma
    assert any("for want of" in text for text in borrowed.evidence)


def test_a_cache_on_disk_is_mentioned() -> None:
    assert any("cache on disk" in text for text in seconds("jax").evidence)


def blocks_here(workload: Workload, runtime: str, compile_s: float) -> dict[str, Quantity]:
    taken = block_measurements(workload, runtime, {block.name: 0.1 for block in workload.blocks}, compile_s=compile_s)
    return compiled_here(workload, taken)


def test_blocks_that_were_compiled_here_tell_the_whole_model_by_its_layers() -> None:
    # tower() has one first block and four middle ones; jax compiles equal ones once
    assert blocks_here(tower(), "torch-compile", 3.0)["torch-compile"].mid == pytest.approx(15.0)
    assert blocks_here(tower(), "jax", 3.0)["jax"].mid == pytest.approx(6.0)


def test_what_was_compiled_at_another_batch_counts_and_a_missing_block_does_not() -> None:
    taken = block_measurements(tower(batch=8), "jax", {"first": 0.1, "middle": 0.1}, compile_s=3.0)
    assert set(compiled_here(tower(batch=64), taken)) == {"jax"}
    assert compiled_here(tower(), taken[:1]) == {}


def test_a_measured_compilation_is_transferred_by_what_other_programs_took() -> None:
    here = blocks_here(tower(), "torch-compile", 3.0)
    on_gpu = compile_time(SMALL, "torch-compile", "gpu", 1, here)
    ratio = seconds("torch-compile", "gpu").mid / seconds("torch-compile", "cpu").mid
    assert on_gpu.tier == "transferred"
    assert on_gpu.mid == pytest.approx(15.0 * ratio)
    assert on_gpu.sigma > here["torch-compile"].sigma


def test_an_answer_takes_what_was_compiled_here_for_chips_that_are_not() -> None:
    workload = tower()
    taken = block_measurements(workload, "jax", {"first": 0.1, "middle": 0.1}, compile_s=3.0)
    answer = advise(question(workload, taken, pools=(pool("h100-sxm"),)))
    told = {one.candidate.runtime: one.compile_s for one in answer.ranked}
    assert told["jax"] is not None
    assert told["jax"].tier == "transferred"


def test_a_block_is_not_mistaken_for_one_of_other_sizes() -> None:
    workload = tower()
    other: tuple[Block, ...] = tuple(
        replace(block, sizes=tuple((key, (8, 8) if key == "widths" else value) for key, value in block.sizes))
        for block in workload.blocks
    )
    taken = block_measurements(replace(workload, blocks=other), "jax", {"first": 0.1, "middle": 0.1}, compile_s=3.0)
    assert compiled_here(workload, taken) == {}
