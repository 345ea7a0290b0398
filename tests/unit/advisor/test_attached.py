"""Estimates on attached devices: measured blocks are summed, the tier says how a figure came about, what lacks is named."""

from dataclasses import replace

import pytest

from advisor import advise
from advisor.beliefs import BELIEFS
from core.advice import Estimate, Recommendation
from core.device import Device, Pool
from core.low_rank import LowRank
from core.ops import Op
from core.probe import NOT_BEGUN, Outcome
from core.quantity import TIER_SIGMA
from core.workload import Total
from tests.unit.advisor.cases import (
    CPU,
    HERE,
    TAKEN,
    block_measurements,
    block_probe,
    existing,
    failure,
    kernel,
    kernels,
    measurement,
    question,
    runtime,
    tower,
    transformer,
)

SECONDS = {"first": 0.010, "middle": 0.020}
WHOLE = 0.010 + 4 * 0.020


def estimate_of(answer: Recommendation, identity: str = "jax") -> Estimate:
    return next(e for e in (*answer.ranked, *answer.unranked) if e.candidate.runtime == identity)


def frame(identity: str = "jax", seconds: float = 0.001, mode: str = "train") -> Outcome:
    return kernel("step_frame", {"arrays": 4}, seconds, identity, mode=mode)


def test_a_step_is_the_sum_of_its_measured_blocks_times_their_repeats_and_one_frame() -> None:
    found = estimate_of(advise(question(tower(), [*block_measurements(tower(), "jax", SECONDS), frame()])))
    assert found.step_time_s is not None
    assert found.step_time_s.mid == pytest.approx(WHOLE + 0.001)
    assert found.step_time_s.tier == "measured"
    assert not [phrase for phrase in found.missing if "step frame" in phrase]


def test_adapters_take_the_part_of_a_measured_block_that_its_frozen_weights_leave() -> None:
    outcomes = [*block_measurements(tower(), "jax", SECONDS), frame()]
    found = estimate_of(advise(question(replace(tower(), lora=LowRank(8, 1000)), outcomes)))
    assert found.step_time_s is not None
    assert found.step_time_s.mid == pytest.approx(WHOLE * 2 / 3 + 0.001, rel=0.02)
    assert found.step_time_s.tier == "transferred"
    assert any("without gradients of frozen weights" in text for text in found.step_time_s.evidence)


def test_without_a_measured_frame_it_is_left_out_and_said_so() -> None:
    found = estimate_of(advise(question(tower(), block_measurements(tower(), "jax", SECONDS))))
    assert found.step_time_s is not None
    assert found.step_time_s.mid == pytest.approx(WHOLE)
    assert any("step frame of jax on cpu:0: not measured" in phrase for phrase in found.missing)


def test_the_frame_of_another_mode_is_not_used() -> None:
    found = estimate_of(advise(question(tower(), [*block_measurements(tower(), "jax", SECONDS), frame(mode="forward")])))
    assert any("step frame" in phrase for phrase in found.missing)


def test_the_slices_of_a_step_add_up_to_it() -> None:
    outcomes = [*block_measurements(tower(), "jax", SECONDS), frame(), *kernels("jax", bytes_per_s=4e9)]
    found = estimate_of(advise(question(tower(), outcomes)))
    assert found.step_time_s is not None
    assert sum(share.seconds.mid for share in found.breakdown) == pytest.approx(found.step_time_s.mid)
    assert {share.term for share in found.breakdown} >= {"compute", "memory traffic", "launch"}


def test_without_kernels_all_of_a_block_is_shown_as_compute_and_said_so() -> None:
    found = estimate_of(advise(question(tower(), block_measurements(tower(), "jax", SECONDS))))
    assert {share.term for share in found.breakdown} == {"compute"}
    assert all("not split" in " ".join(share.seconds.evidence) for share in found.breakdown)


def test_a_noisy_measurement_has_a_wider_band() -> None:
    quiet = estimate_of(advise(question(tower(), block_measurements(tower(), "jax", SECONDS, spread=0.01))))
    noisy = estimate_of(advise(question(tower(), block_measurements(tower(), "jax", SECONDS, spread=0.8))))
    assert quiet.step_time_s is not None
    assert noisy.step_time_s is not None
    assert noisy.step_time_s.sigma > 1.5 * quiet.step_time_s.sigma


def test_one_block_alone_has_the_sigma_of_its_tier() -> None:
    workload = replace(tower(), blocks=tower().blocks[:1])
    found = estimate_of(advise(question(workload, block_measurements(workload, "jax", {"first": 0.01}, spread=0.0))))
    assert found.step_time_s is not None
    assert found.step_time_s.sigma == pytest.approx(TIER_SIGMA["measured"])


def test_the_newest_of_equal_probes_wins() -> None:
    old = block_measurements(tower(), "jax", SECONDS, taken_at="2026-11-01T00:00:00Z")
    new = block_measurements(tower(), "jax", {name: 2 * value for name, value in SECONDS.items()})
    for outcomes in ([*old, *new], [*new, *old]):
        found = estimate_of(advise(question(tower(), outcomes)))
        assert found.step_time_s is not None
        assert found.step_time_s.mid == pytest.approx(2 * WHOLE)


def test_a_quarantined_measurement_is_named_and_not_used() -> None:
    good = block_measurements(tower(), "jax", {"first": 0.010})
    bad = block_measurements(tower(), "jax", {"middle": 0.001}, trusted=False, warnings=("150 % of peak",))
    found = estimate_of(advise(question(tower(), [*good, *bad])))
    assert found.step_time_s is None
    assert any("middle: a measurement was set aside (150 % of peak)" in phrase for phrase in found.missing)


def test_a_measurement_of_another_machine_says_nothing_about_this_one() -> None:
    answer = advise(question(tower(), block_measurements(tower(), "jax", SECONDS, uuid="another-cpu")))
    assert answer.best is None
    assert estimate_of(answer).step_time_s is None


def test_a_measurement_follows_its_device_when_the_numbering_changes() -> None:
    moved = Device("cpu:1", "cpu", "Test CPU", "cpu-uuid", 16 * 2**30)
    pools = (Pool("cpu:1", 1, "cpu", 0.0, "attached", attached=True),)
    answer = advise(question(tower(), block_measurements(tower(), "jax", SECONDS), devices=(moved,), pools=pools))
    found = estimate_of(answer)
    assert found.step_time_s is not None
    assert found.step_time_s.tier == "measured"


def test_a_measurement_of_another_version_is_used_with_a_wider_band_and_a_gap() -> None:
    outcomes = block_measurements(tower(), "jax", SECONDS, versions=(("jax", "0.9.0"),))
    answer = advise(question(tower(), outcomes, runtimes=(runtime("jax", ("jax", "0.10.2")),)))
    found = estimate_of(answer)
    assert found.step_time_s is not None
    assert found.step_time_s.tier == "transferred"
    assert any("measured with jax 0.9.0; 0.10.2 is installed" in text for text in found.step_time_s.evidence)
    assert [gap.probe.subject for gap in answer.gaps if gap.probe] == ["dense_tower", "dense_tower"]


def test_one_other_batch_is_scaled_at_equal_efficiency() -> None:
    workload = tower()
    outcomes = [measurement(block_probe(workload, block, "jax", 32), SECONDS[block.name] / 2) for block in workload.blocks]
    found = estimate_of(advise(question(workload, outcomes)))
    assert found.step_time_s is not None
    assert found.step_time_s.tier == "interpolated"
    assert found.step_time_s.mid == pytest.approx(WHOLE)


def test_between_two_batches_efficiency_is_interpolated_and_not_time() -> None:
    workload = replace(tower(), blocks=tower().blocks[:1])
    block = workload.blocks[0]
    # 16 samples in 4 ms and 256 in 16 ms: 4,000 and 16,000 samples a second; half way in log space lies 64 at 8,000
    probes = [block_probe(workload, block, "jax", batch) for batch in (16, 256)]
    outcomes = [measurement(probes[0], 0.004), measurement(probes[1], 0.016)]
    found = estimate_of(advise(question(workload, outcomes)))
    assert found.step_time_s is not None
    assert found.step_time_s.mid == pytest.approx(64 / 8000)


def test_the_band_grows_with_the_distance_to_the_measured_batch() -> None:
    workload = replace(tower(), blocks=tower().blocks[:1])
    sigmas = []
    for batch in (32, 4, 1):
        outcomes = [measurement(block_probe(workload, workload.blocks[0], "jax", batch), 0.001, spread=0.0)]
        step = estimate_of(advise(question(workload, outcomes))).step_time_s
        assert step is not None
        sigmas.append(step.sigma)
    assert sigmas == sorted(sigmas)
    assert sigmas[0] > BELIEFS.sigma("interpolated")


def test_a_measured_batch_stays_exact_among_others() -> None:
    workload = replace(tower(), blocks=tower().blocks[:1])
    outcomes = [measurement(block_probe(workload, workload.blocks[0], "jax", batch), 0.001 * batch) for batch in (32, 64, 128)]
    found = estimate_of(advise(question(workload, outcomes)))
    assert found.step_time_s is not None
    assert found.step_time_s.mid == pytest.approx(0.064)
    assert found.step_time_s.tier == "measured"


def test_beyond_the_measured_batches_efficiency_goes_on_with_a_bounded_slope() -> None:
    workload = replace(tower(), blocks=tower().blocks[:1])
    block = workload.blocks[0]
    # from 1 to 2 samples the time falls, which no trend may carry on: beyond, time stays where it is
    probes = [block_probe(workload, block, "jax", batch) for batch in (1, 2)]
    outcomes = [measurement(probes[0], 0.004), measurement(probes[1], 0.002)]
    found = estimate_of(advise(question(workload, outcomes)))
    assert found.step_time_s is not None
    assert found.step_time_s.mid == pytest.approx(0.002)


def test_kernels_alone_give_a_transferred_figure_near_their_roofline() -> None:
    workload = replace(tower(task="infer"), blocks=tower(task="infer").blocks[1:])
    found = estimate_of(advise(question(workload, kernels("jax", flop_per_s=1e11, bytes_per_s=1e12))))
    assert found.step_time_s is not None
    assert found.step_time_s.tier == "transferred"
    matmuls = workload.flop_forward / 1e11
    assert matmuls * 0.95 < found.step_time_s.mid < matmuls * 1.5


def test_an_eager_runtime_pays_a_launch_for_each_operation_and_all_traffic() -> None:
    outcomes = [*kernels("jax", bytes_per_s=1e9), *kernels("torch-eager", bytes_per_s=1e9)]
    answer = advise(question(tower(), outcomes))
    compiled, eager = estimate_of(answer).step_time_s, estimate_of(answer, "torch-eager").step_time_s
    assert compiled is not None
    assert eager is not None
    assert eager.mid > compiled.mid


def test_kernels_of_another_dtype_are_not_used() -> None:
    answer = advise(question(tower(dtype="bf16"), kernels("jax")))
    assert estimate_of(answer).step_time_s is None


def test_nothing_measured_gives_no_number_a_reason_and_the_probe_that_would_fill_it() -> None:
    answer = advise(question(tower()))
    found = estimate_of(answer)
    assert found.step_time_s is found.throughput is found.cost_usd is None
    assert "first: not measured in jax on cpu:0" in found.missing
    wanted = [gap.probe for gap in answer.gaps if gap.probe is not None and gap.probe.runtime == "jax"]
    assert wanted == [block_probe(tower(), block, "jax") for block in tower().blocks]
    assert answer.best is None
    assert "none has a known time" in answer.sentence


def test_a_failed_probe_is_named_with_its_stage_and_never_replaced_by_kernels() -> None:
    workload = tower()
    broken = failure(block_probe(workload, workload.blocks[1], "jax"), "compile", "out of memory")
    outcomes = [*block_measurements(workload, "jax", {"first": 0.01}), broken, *kernels("jax")]
    found = estimate_of(advise(question(workload, outcomes)))
    assert found.step_time_s is None
    assert "middle: its probe failed at compile: out of memory" in found.missing


def test_a_probe_that_was_never_begun_did_not_fail_and_needs_more_time() -> None:
    workload = tower()
    late = failure(block_probe(workload, workload.blocks[1], "jax"), "start", f"{NOT_BEGUN}: the budget was used up; give more")
    answer = advise(question(workload, [*block_measurements(workload, "jax", {"first": 0.01}), late, *kernels("jax")]))
    assert "middle: not begun: the budget was used up; give more" in estimate_of(answer).missing
    (gap,) = (one for one in answer.gaps if one.probe == late.probe)
    assert not any("mend" in text for text in (gap.what, gap.remedy))


def test_a_runtime_that_cannot_start_says_so_once() -> None:
    workload = tower()
    broken = [failure(block_probe(workload, block, "jax"), "import", "no module named jax") for block in workload.blocks]
    found = estimate_of(advise(question(workload, broken)))
    assert found.missing[0] == "jax failed at import: no module named jax"
    assert not any("its probe failed" in phrase for phrase in found.missing)


def test_a_measurement_outlives_a_later_failure() -> None:
    workload = tower()
    later = replace(failure(block_probe(workload, workload.blocks[0], "jax"), "lost", "killed"), taken_at="2026-11-30T00:00:00Z")
    found = estimate_of(advise(question(workload, [*block_measurements(workload, "jax", SECONDS), later])))
    assert found.step_time_s is not None


def test_a_runtime_that_is_not_installed_is_excluded_with_its_reason() -> None:
    answer = advise(question(tower(), runtimes=(runtime("jax"), runtime("torch-eager", installed=False))))
    out = [item for item in answer.excluded if item.runtime == "torch-eager"]
    assert [(item.accelerator, item.flag, item.reason) for item in out] == [("cpu:0", "runtime_not_used", "it is not there")]


def test_compile_time_counts_each_repeat_and_is_nothing_for_eager() -> None:
    outcomes = [
        *block_measurements(tower(), "jax", SECONDS, compile_s=2.0), *block_measurements(tower(), "torch-eager", SECONDS),
    ]
    answer = advise(question(tower(), outcomes))
    compiled, eager = estimate_of(answer).compile_s, estimate_of(answer, "torch-eager").compile_s
    assert compiled is not None
    assert eager is not None
    assert compiled.mid == pytest.approx(2.0 + 4 * 2.0)
    assert compiled.high > 1.5 * compiled.mid
    assert (eager.low, eager.high) == (0.0, 0.0)


def test_an_unknown_compile_time_is_missing_and_not_zero() -> None:
    found = estimate_of(advise(question(tower(), block_measurements(tower(), "jax", SECONDS))))
    assert found.compile_s is None
    assert "compile time of jax on cpu:0: not measured" in found.missing


def test_a_long_compilation_decides_a_short_job_and_not_a_long_one() -> None:
    slower = {name: 1.5 * value for name, value in SECONDS.items()}
    outcomes = [
        *block_measurements(tower(), "jax", SECONDS, compile_s=60.0), *block_measurements(tower(), "torch-eager", slower),
    ]
    short = advise(question(tower(total=Total(steps=100)), outcomes))
    long = advise(question(tower(total=Total(steps=1e6)), outcomes))
    assert short.best is not None
    assert long.best is not None
    assert short.best.candidate.runtime == "torch-eager"
    assert long.best.candidate.runtime == "jax"


def test_memory_parts_add_up_and_the_capacity_is_the_devices_own() -> None:
    found = estimate_of(advise(question(tower(), block_measurements(tower(), "jax", SECONDS))))
    assert found.memory_bytes_per_chip is not None
    assert sum(size for _, size in found.memory_parts) == pytest.approx(found.memory_bytes_per_chip.mid)
    parts = dict(found.memory_parts)
    assert parts["weights"] == parts["gradients"] == 4 * tower().parameter_count
    assert parts["optimizer states"] == 8 * tower().parameter_count
    assert found.capacity_bytes == CPU.memory_bytes


def test_what_does_not_fit_is_excluded_with_both_figures() -> None:
    small = replace(CPU, memory_bytes=2**20)
    answer = advise(question(tower(), block_measurements(tower(), "jax", SECONDS), devices=(small,)))
    assert answer.best is None
    out = next(item for item in answer.excluded if item.runtime == "jax")
    assert out.flag == "per_chip_memory"
    assert "GiB on each chip" in out.reason


def test_bounds_come_from_the_best_kernels_of_any_runtime() -> None:
    outcomes = [*block_measurements(tower(), "jax", SECONDS), *kernels("torch-eager", flop_per_s=2e11)]
    found = estimate_of(advise(question(tower(), outcomes)))
    assert found.lower_s is not None
    assert found.upper_s is not None
    ops = [(op, block.repeats) for block in tower().blocks for op in (*block.ops_forward, *block.ops_backward)]
    matmul_flop = sum(op.flop * repeats for op, repeats in ops if op.kind == "matmul")
    assert found.lower_s >= matmul_flop / 2e11 * 0.999
    assert found.lower_s <= found.upper_s


def test_operations_that_no_block_covers_are_estimated_from_kernels_or_leave_the_step_unknown() -> None:
    workload = tower(ops=(Op("matmul", (1, 512, 512, 512), "fp32", 10),))
    blocks = block_measurements(workload, "jax", SECONDS)
    without, with_kernels = advise(question(workload, blocks)), advise(question(workload, [*blocks, *kernels("jax")]))
    assert estimate_of(without).step_time_s is None
    step = estimate_of(with_kernels).step_time_s
    assert step is not None
    assert step.mid > WHOLE + 10 * 2 * 512**3 / 1e11 * 0.9
    assert step.tier == "transferred"


def test_owned_machines_cost_nothing_and_machines_of_unknown_price_have_no_cost() -> None:
    outcomes = block_measurements(tower(), "jax", SECONDS)
    owned = estimate_of(advise(question(tower(), outcomes)))
    unknown = estimate_of(advise(question(tower(), outcomes, pools=(replace(HERE, price_usd_per_h=None),))))
    assert owned.cost_usd is not None
    assert owned.cost_usd.mid == 0
    assert unknown.cost_usd is None


def test_inference_counts_weights_cache_and_what_a_pass_carries() -> None:
    workload = transformer(batch=4, length=128, width=256, repeats=2, task="infer", dtype="fp32")
    found = estimate_of(advise(question(workload)))
    parts = dict(found.memory_parts)
    assert parts["key-value cache"] == 2 * 4 * 128 * 256 * 4 * 2
    assert "gradients" not in parts
    assert parts["activations"] == 2 * (4 * 128 * 256 * 4)  # the largest input of a block, twice


def test_several_attached_chips_use_measurements_of_their_own_share_of_the_batch() -> None:
    workload = tower()
    gpu = Device("gpu:0", "gpu", "Test GPU", "gpu-uuid", 80 * 2**30, accelerator="h100-sxm")
    both = Pool("gpu:0", 2, "gpu", 0.0, "attached", attached=True)
    outcomes = [
        measurement(replace(block_probe(workload, block, "jax", 32), device="gpu:0"), SECONDS[block.name] / 2, uuid="gpu-uuid")
        for block in workload.blocks
    ]
    found = estimate_of(advise(question(workload, outcomes, devices=(gpu,), pools=(both,))))
    assert found.candidate.plan.data == 2
    assert found.step_time_s is not None
    assert found.step_time_s.mid > WHOLE / 2
    assert any(share.term == "communication" for share in found.breakdown)


def test_the_framework_of_the_code_settles_a_tie() -> None:
    outcomes = [*block_measurements(tower(), "jax", SECONDS), *block_measurements(tower(), "torch-eager", SECONDS)]
    answer = advise(question(tower(existing=existing(framework="torch")), outcomes))
    assert answer.best is not None
    assert answer.best.candidate.runtime == "torch-eager"
    assert answer.equal == ("jax on cpu:0",)


def test_every_evidence_of_a_measured_step_names_runtime_device_and_date() -> None:
    found = estimate_of(advise(question(tower(), block_measurements(tower(), "jax", SECONDS))))
    assert found.step_time_s is not None
    named = [text for text in found.step_time_s.evidence if ": measured" in text]
    assert len(named) == 2
    assert all(TAKEN[:10] in text and "jax on cpu:0" in text and "21 samples" in text for text in named)


def test_an_optimizer_update_is_not_scaled_with_the_batch() -> None:
    workload = replace(tower(), blocks=tower().blocks[:1])
    block = workload.blocks[0]
    update_s = block.parameter_count * 4 * 7 / 1e10
    half = measurement(block_probe(workload, block, "jax", 32), 0.004 + update_s)
    found = estimate_of(advise(question(workload, [half, *kernels("jax", bytes_per_s=1e10)])))
    assert found.step_time_s is not None
    assert found.step_time_s.mid == pytest.approx(0.008 + update_s)
