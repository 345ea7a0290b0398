"""Estimates for chips that are not attached: fallbacks of dtypes, plans, memory, communication, cost and energy."""

from dataclasses import replace

import pytest

from advisor import advise
from advisor.communication import all_gather_s, all_reduce_s, exposed_s, fabric_of
from advisor.datasheet import Datasheets
from advisor.memory import Layout, memory_parts, model_bytes
from advisor.rates import rate_of
from advisor.work import work_of
from core.advice import Estimate
from core.device import Accelerator, Link, Pool
from core.low_rank import LowRank
from core.ops import Op
from core.workload import Block, Total, Workload
from tests.unit.advisor.cases import (
    GPU,
    HERE,
    OLD,
    TPU,
    SmallFacts,
    block_measurements,
    chip,
    pool,
    question,
    runtime,
    tower,
    transformer,
)

GIB = 2**30


def estimate(
    workload: Workload, accelerator: Accelerator, count: int = 1, identity: str = "jax", price: float | None = None
) -> Estimate:
    asked = Pool(accelerator.key, count, accelerator.kind, price)
    found = Datasheets(workload, [(asked, accelerator)]).estimate(runtime(identity), asked, accelerator)
    assert isinstance(found, Estimate), found
    return found


def test_a_figure_of_a_measured_generation_is_published_and_names_its_source() -> None:
    step = estimate(transformer(), GPU).step_time_s
    assert step is not None
    assert step.tier == "published"
    assert any("vendor page (2026-01-01)" in text for text in step.evidence)
    assert any("best of " in text for text in step.evidence)


def test_a_chip_that_nobody_measured_has_a_wider_band_and_the_lower_tier() -> None:
    known, unknown = (estimate(transformer(), one).step_time_s for one in (GPU, chip("newcomer")))
    assert known is not None
    assert unknown is not None
    assert unknown.tier == "datasheet"
    assert unknown.sigma > known.sigma


def test_adapters_alone_are_tuned_faster_and_in_less_memory_than_all_weights() -> None:
    whole = replace(transformer(batch=8, length=1024, width=2048, repeats=4), task="finetune")
    full, adapted = (estimate(job, GPU) for job in (whole, replace(whole, lora=LowRank(16, 1_000_000))))
    assert full.step_time_s is not None
    assert adapted.step_time_s is not None
    assert 1.2 < full.step_time_s.mid / adapted.step_time_s.mid < 1.7
    parts = [dict(one.memory_parts) for one in (full, adapted)]
    assert parts[1]["optimizer states"] == 8e6 < parts[0]["optimizer states"]


@pytest.mark.parametrize("accelerator", [GPU, OLD, TPU], ids=lambda c: c.key)
def test_a_training_step_reaches_a_believable_share_of_the_peak(accelerator: Accelerator) -> None:
    workload = transformer(batch=8, length=1024, width=2048, repeats=4)
    step = estimate(workload, accelerator).step_time_s
    assert step is not None
    peak = accelerator.peak("bf16") or accelerator.peak("fp16")
    assert peak is not None
    assert 0.15 < workload.flop_per_step / step.mid / peak < 0.75


def test_the_figure_lies_above_its_lower_bound_and_the_bounds_are_in_order() -> None:
    found = estimate(transformer(), GPU, 8)
    assert found.step_time_s is not None
    assert found.lower_s is not None
    assert found.upper_s is not None
    assert found.lower_s <= found.upper_s
    assert found.lower_s < found.step_time_s.mid


def test_the_slices_add_up_to_the_step() -> None:
    found = estimate(transformer(), GPU, 8)
    assert found.step_time_s is not None
    assert sum(share.seconds.mid for share in found.breakdown) == pytest.approx(found.step_time_s.mid)
    assert {share.block for share in found.breakdown} == {"all blocks"}
    assert {share.term for share in found.breakdown} >= {"compute", "memory traffic", "communication"}


def test_the_leading_candidates_are_told_by_block() -> None:
    answer = advise(question(transformer(), pools=(pool("h100-sxm", 8),)))
    best = answer.ranked[0]
    assert best.step_time_s is not None
    assert {share.block for share in best.breakdown} == {"layer", "optimizer update", "all blocks"}
    assert sum(share.seconds.mid for share in best.breakdown) == pytest.approx(best.step_time_s.mid)


def test_frameworks_differ_on_one_chip() -> None:
    steps = [estimate(transformer(), GPU, 1, identity).step_time_s for identity in ("jax", "torch-compile", "torch-eager")]
    middles = [step.mid for step in steps if step is not None]
    assert len(set(middles)) == 3


def test_a_compile_time_is_estimated_with_a_wide_band_and_an_eager_one_is_nothing() -> None:
    compiled, eager = (estimate(transformer(), GPU, 1, identity).compile_s for identity in ("torch-compile", "torch-eager"))
    assert compiled is not None
    assert eager is not None
    assert compiled.tier == "datasheet"
    assert compiled.high / compiled.low > 4
    assert eager.high == 0


def test_bf16_falls_back_to_fp16_where_there_are_no_units_and_says_so() -> None:
    rate = rate_of(OLD, "bf16", "jax")
    assert rate is not None
    assert rate.flop_per_s == 125e12
    assert "no bf16 units" in rate.note


def test_fp32_on_tpu_costs_between_three_and_six_bf16_passes() -> None:
    rate = rate_of(TPU, "fp32", "jax")
    assert rate is not None
    assert 918e12 / 6 < rate.flop_per_s < 918e12 / 3
    wide, narrow = (estimate(transformer(batch=64, length=512, dtype=dtype), TPU) for dtype in ("fp32", "bf16"))
    assert wide.lower_s is not None
    assert narrow.lower_s is not None
    assert wide.lower_s > 3 * narrow.lower_s


def test_fp32_uses_the_units_that_the_framework_uses_by_default() -> None:
    jax, torch = rate_of(GPU, "fp32", "jax"), rate_of(GPU, "fp32", "torch-eager")
    assert jax is not None
    assert torch is not None
    assert (jax.flop_per_s, torch.flop_per_s) == (494e12, 67e12)
    assert "tf32" in jax.note


@pytest.mark.parametrize("dtype", ["fp8", "fp4", "int8", "int4"])
def test_narrow_formats_without_units_are_refused_and_not_emulated(dtype: str) -> None:
    assert rate_of(OLD, dtype, "jax") is None
    asked = pool("v100-32")
    found = Datasheets(tower(dtype=dtype), [(asked, OLD)]).estimate(runtime("jax"), asked, OLD)
    assert found == f"{OLD.name} has no {dtype} units and no documented stand-in"


def test_recurrent_steps_pay_for_each_dependent_step() -> None:
    block = Block("lstm", "lstm_layer", (("batch", 32),), 1, (Op("rnn", (1000, 32, 0, 512, 4), "fp32"),), (), 2_100_000, 1000)
    workload = Workload("lstm", "infer", (block,), 32, "samples", 32.0, "fp32", "none")
    found = estimate(workload, GPU)
    launch = sum(share.seconds.mid for share in found.breakdown if share.term == "launch")
    assert launch >= 1000 * 1e-6


def test_work_for_a_share_of_the_batch_keeps_weights_and_divides_the_rest() -> None:
    whole, part = (work_of(tower(task="infer"), share)[1].works[0] for share in (1.0, 0.25))
    assert part.flop == whole.flop / 4
    assert part.rows == whole.rows // 4
    weights = 4 * 1024 * 1024 * 4
    assert part.traffic_bytes - weights == pytest.approx((whole.traffic_bytes - weights) / 4)


def test_the_gradient_of_weights_keeps_its_result_and_divides_its_depth() -> None:
    gradient = next(w for w in work_of(tower(batch=16384), 0.25)[0].works if w.family == "matmul" and w.depth == 4096)
    assert (gradient.rows, gradient.columns) == (512, 1024)


def test_data_parallel_is_taken_whenever_it_fits_and_sharding_when_it_does_not() -> None:
    small = estimate(transformer(batch=64, repeats=4, length=128), GPU, 8)
    assert (small.candidate.plan.data, small.candidate.plan.fsdp) == (8, 1)
    large = estimate(transformer(batch=16, length=128, width=8192, repeats=16), GPU, 8)
    plan = large.candidate.plan
    assert plan.data < 8
    assert plan.data * plan.fsdp * plan.tensor * plan.pipeline * plan.context == 8
    assert large.fits


def test_a_large_batch_is_taken_in_parts_that_fit() -> None:
    found = estimate(transformer(batch=512, length=1024, width=1024, repeats=24), GPU)
    assert found.fits
    assert found.candidate.plan.micro_batch is not None
    assert 512 % found.candidate.plan.micro_batch == 0


def test_activations_are_computed_again_only_when_it_pays_or_nothing_else_fits() -> None:
    workload = transformer(batch=1, length=16384, width=2048, repeats=24)
    tight, roomy = chip("tight", memory_bytes=40.0 * GIB), chip("roomy", memory_bytes=400.0 * GIB)
    assert estimate(workload, tight).candidate.plan.remat
    assert estimate(workload, tight).fits
    assert not estimate(workload, roomy).candidate.plan.remat


def test_a_batch_that_does_not_divide_over_the_chips_is_said_so() -> None:
    asked = pool("h100-sxm", 8)
    found = Datasheets(tower(batch=12), [(asked, GPU)]).estimate(runtime("jax"), asked, GPU)
    assert found == "a batch of 12 does not divide over 8 chips: a batch of 8 or 16 would, or 6 or 12 chips"
    answer = advise(question(tower(batch=12), pools=(pool("h100-sxm", 8),)))
    assert {item.flag for item in answer.excluded} == {"topology"}


def test_adamw_in_bf16_takes_sixteen_bytes_a_parameter() -> None:
    parts = dict(memory_parts(model_bytes(transformer()), Layout(), "gpu"))
    names = ("weights", "gradients", "optimizer states", "fp32 master weights")
    assert sum(parts[name] for name in names) == 16 * transformer().parameter_count


def test_sharding_divides_what_belongs_to_the_model_and_gathers_two_layers() -> None:
    model = model_bytes(transformer())
    whole, part = dict(memory_parts(model, Layout(), "gpu")), dict(memory_parts(model, Layout(1 / 8, 1 / 8, 8), "gpu"))
    assert part["weights"] == whole["weights"] / 8
    assert part["activations"] == whole["activations"] / 8
    assert part["gathered layers"] == 2 * 2 * transformer().blocks[0].parameter_count
    assert "gathered layers" not in whole


def test_a_ring_moves_two_times_n_minus_one_over_n_of_the_bytes() -> None:
    fabric = fabric_of(Pool("h100-sxm", 4, "gpu", link=Link(0.0, 100e9)), GPU)
    assert fabric is not None
    assert all_reduce_s(8e9, fabric) == pytest.approx(2 * 3 / 4 * 8e9 / 80e9)
    assert all_gather_s(8e9, fabric) == pytest.approx(all_reduce_s(8e9, fabric) / 2)


def test_more_chips_than_a_domain_holds_go_over_the_network() -> None:
    inside, outside = fabric_of(pool("h100-sxm", 8), GPU), fabric_of(pool("h100-sxm", 16), GPU)
    assert inside is not None
    assert outside is not None
    assert (inside.domains, outside.domains) == (1, 2)
    assert outside.network_bytes_per_s == 400e9
    assert all_reduce_s(1e9, outside) > all_reduce_s(1e9, inside)


def test_an_unknown_link_is_said_and_not_filled_in() -> None:
    lonely, asked = chip("lonely", link_bytes_per_s=None, host_bytes_per_s=None), Pool("lonely", 8, "gpu")
    found = Datasheets(transformer(), [(asked, lonely)]).estimate(runtime("jax"), asked, lonely)
    assert found == "the link rate between chips of lonely is not known"


def test_a_host_bus_stands_in_for_a_missing_link_and_is_slower() -> None:
    bus = replace(GPU, link_bytes_per_s=None)
    slow, fast = fabric_of(pool("h100-sxm", 8), bus), fabric_of(pool("h100-sxm", 8), GPU)
    assert slow is not None
    assert fast is not None
    assert all_reduce_s(1e9, slow) > all_reduce_s(1e9, fast)
    assert "host bus" in slow.evidence


@pytest.mark.parametrize(("communication", "compute", "left"), [(1.0, 10.0, 0.3), (10.0, 1.0, 9.3), (0.0, 1.0, 0.0)])
def test_communication_hides_behind_computation_in_part(communication: float, compute: float, left: float) -> None:
    assert exposed_s(communication, compute) == pytest.approx(left)


def test_cost_is_price_times_hours_of_the_whole_job() -> None:
    found = estimate(transformer(total=Total(steps=7200)), GPU, 2, price=6.0)
    assert found.step_time_s is not None
    assert found.cost_usd is not None
    assert found.job_s is not None
    assert found.compile_s is not None
    assert found.cost_usd.mid == pytest.approx(6.0 * found.job_s.mid / 3600)
    assert found.job_s.mid == pytest.approx(7200 * found.step_time_s.mid + found.compile_s.mid, rel=1e-3)
    assert any("6 USD an hour for 2 x h100-sxm" in text for text in found.cost_usd.evidence)


def test_without_a_total_cost_and_energy_are_for_a_thousand_steps() -> None:
    found = estimate(transformer(), GPU, price=3.6)
    assert found.step_time_s is not None
    assert found.cost_usd is not None
    assert found.cost_usd.mid == pytest.approx(found.step_time_s.mid)


def test_energy_lies_between_six_and_nine_tenths_of_the_power_limit() -> None:
    found = estimate(transformer(), GPU, 2)
    assert found.step_time_s is not None
    assert found.energy_j is not None
    assert 0.6 * 1400 * 1000 < found.energy_j.mid / found.step_time_s.mid < 0.9 * 1400 * 1000
    assert found.energy_j.sigma > found.step_time_s.sigma


def test_no_power_limit_no_energy() -> None:
    assert estimate(transformer(), TPU).energy_j is None


def test_throughput_counts_the_units_of_the_workload_and_turns_the_band_around() -> None:
    found = estimate(transformer(batch=64, length=512), GPU)
    assert found.step_time_s is not None
    assert found.throughput is not None
    assert found.throughput.mid == pytest.approx(64 * 512 / found.step_time_s.mid)
    assert found.throughput.low == pytest.approx(64 * 512 / found.step_time_s.high)


def test_an_unsupported_pair_is_excluded_with_its_source() -> None:
    facts = SmallFacts(unsupported=frozenset({("torch-eager", "tpu")}))
    answer = advise(question(transformer(), pools=(pool("tpu-v6e"),), facts=facts))
    out = [(item.runtime, item.accelerator, item.rule, item.source) for item in answer.excluded]
    assert out == [("torch-eager", "tpu-v6e", "support", "the test (2026-11-30)")]


def test_a_single_gpu_a_single_tpu_and_the_attached_machine_stand_side_by_side() -> None:
    workload = tower()
    outcomes = block_measurements(workload, "jax", {"first": 0.01, "middle": 0.02})
    answer = advise(question(workload, outcomes, pools=(HERE, pool("tpu-v6e"), pool("h100-sxm"))))
    assert {e.candidate.pools[0].accelerator for e in answer.ranked} == {"cpu:0", "tpu-v6e", "h100-sxm"}


def test_an_answer_names_the_library_whose_tuned_programs_its_figure_stands_on() -> None:
    asked = pool("h100-sxm", 8)
    answer = advise(question(transformer(), pools=(asked,), runtimes=(runtime("torch-compile"),)))
    assert answer.best is not None
    assert answer.best.step_time_s is not None
    assert answer.best.step_time_s.tier == "published"
    assert "of programs in NVIDIA NeMo, as their authors tuned them" in answer.rests_on
    borrowed = advise(question(transformer(), pools=(asked,), runtimes=(runtime("tf-xla"),)))
    assert "as their authors tuned them" not in borrowed.rests_on


def test_the_utilisation_is_model_arithmetic_over_what_the_peak_does_in_a_step() -> None:
    workload = transformer()
    told = estimate(workload, GPU, 4)
    peak = GPU.peak(workload.dtype)
    assert told.utilisation is not None
    assert told.step_time_s is not None
    assert peak is not None
    done = workload.flop_forward + workload.flop_backward
    assert told.utilisation.mid == pytest.approx(done / (4 * peak * told.step_time_s.mid))
    assert told.utilisation.low == pytest.approx(done / (4 * peak * told.step_time_s.high))
    assert 0 < told.utilisation.high < 1
    assert estimate(transformer(task="infer"), GPU, 4).utilisation is None
    assert estimate(workload, replace(GPU, flop_per_s=(("fp32", 6.7e13),)), 4).utilisation is None


def test_a_figure_of_a_tuned_library_names_it_and_what_another_of_the_framework_needs() -> None:
    told = advise(question(transformer(), runtimes=(runtime("torch-compile"), runtime("torch-eager")), pools=(pool(GPU.key, 8),)))
    best, other = told.ranked
    assert (best.published_of, other.published_of) == ("NVIDIA NeMo", "MosaicML LLM Foundry")
    assert best.step_time_s is not None
    assert other.step_time_s is not None
    times = other.step_time_s.mid / best.step_time_s.mid
    assert "a step as NVIDIA NeMo runs it" in told.sentence
    assert f"in MosaicML LLM Foundry the same job needs {times:.2f} times the time" in told.rests_on
