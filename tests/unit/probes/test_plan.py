"""The plan: every shape once, every runtime, and no call that takes minutes."""

import intake
from core.device import Device
from core.probe import Runtime
from probes.kernels import kernel_modules
from probes.plan import block_probes, kernel_probes

CPU = Device("cpu:0", "cpu", "test", "cpu-test", 16 * 2**30, 2)
RUNTIMES = tuple(Runtime(name, "torch", "eager", (), "/python", installed=True) for name in ("torch-eager", "jax"))


def test_equal_blocks_are_measured_once_in_each_runtime() -> None:
    workload = intake.read_text("gpt2-demo:train").workload
    planned = block_probes(workload, RUNTIMES, CPU)
    keys = [(p.probe.subject, p.probe.sizes, p.probe.runtime) for p in planned]
    assert len(keys) == len(set(keys))
    assert {p.probe.subject for p in planned} == {"step_frame", "reduced_model", "transformer_layer"}
    assert len(planned) == 3 * len(RUNTIMES)


def test_what_the_answer_needs_most_comes_first() -> None:
    planned = block_probes(intake.read_text("resnet-50:infer").workload, RUNTIMES, CPU)
    subjects = list(dict.fromkeys(p.probe.subject for p in planned))
    assert subjects == ["step_frame", "reduced_model", "conv_bottleneck"]
    per_runtime = [p for p in planned if p.probe.subject == "conv_bottleneck" and p.probe.runtime == "jax"]
    assert len(per_runtime) == len([b for b in intake.read_text("resnet-50:infer").workload.blocks if b.repeats > 1])


def test_the_work_of_a_reduced_model_is_that_of_each_block_once() -> None:
    workload = intake.read_text("dlrm-small:train").workload
    planned = next(p for p in block_probes(workload, RUNTIMES, CPU) if p.probe.family == "model")
    assert planned.flop == sum(block.flop_forward + block.flop_backward for block in workload.blocks)


def test_blocks_that_are_no_model_together_are_probed_one_by_one() -> None:
    workload = intake.read_text("gpt2-demo:infer").workload
    planned = block_probes(workload, RUNTIMES, CPU)
    assert "model" not in {p.probe.family for p in planned}
    assert {p.probe.subject for p in planned} == {"step_frame", "transformer_layer", "token_ends"}


def test_a_model_that_does_not_fit_in_memory_is_probed_block_by_block() -> None:
    workload = intake.read_text("gpt2-small:train").workload
    small = Device("cpu:0", "cpu", "test", "cpu-test", 10**9, 2)
    assert "model" not in {p.probe.family for p in block_probes(workload, RUNTIMES, small)}
    assert "model" in {p.probe.family for p in block_probes(workload, RUNTIMES, CPU)}


def test_inference_holds_weights_and_no_optimizer() -> None:
    trained, used = (
        next(p for p in block_probes(intake.read_text(f"bert-base:{task}").workload, RUNTIMES, CPU) if p.probe.family == "model")
        for task in ("train", "infer")
    )
    assert used.held_bytes < trained.held_bytes / 2


def test_training_probes_the_update_with_the_optimizer_of_the_workload() -> None:
    workload = intake.read_text("gpt2-demo:train").workload
    assert {(p.probe.mode, p.probe.optimizer) for p in block_probes(workload, RUNTIMES, CPU)} == {("train", "adamw")}


def test_inference_probes_the_forward_pass_alone() -> None:
    workload = intake.read_text("resnet-50:infer").workload
    assert {(p.probe.mode, p.probe.optimizer) for p in block_probes(workload, RUNTIMES, CPU)} == {("forward", "none")}


def test_a_block_that_would_take_too_long_is_probed_at_a_smaller_batch_with_its_share_of_the_work() -> None:
    document = dict(intake.preset_document("gpt2-small", "train")) | {"batch": 64, "length": 1024}
    workload = intake.read_document(document)
    layer = next(block for block in workload.blocks if block.kind == "transformer_layer")
    planned = next(p for p in block_probes(workload, RUNTIMES, CPU) if p.probe.subject == "transformer_layer")
    batch = dict(planned.probe.sizes)["batch"]
    assert isinstance(batch, int)
    assert 1 <= batch < 64
    assert abs(planned.flop - (layer.flop_forward + layer.flop_backward) * batch / 64) < 1e-6 * planned.flop


def test_a_gpu_is_probed_at_the_whole_batch() -> None:
    document = dict(intake.preset_document("gpt2-small", "train")) | {"batch": 64, "length": 1024}
    gpu = Device("gpu:0", "gpu", "test", "GPU-1", 80 * 10**9)
    planned = block_probes(intake.read_document(document), RUNTIMES, gpu)
    assert {dict(p.probe.sizes)["batch"] for p in planned if p.probe.family == "block"} == {64}


def test_kernels_cover_every_runtime_and_the_full_tier_has_more_sizes() -> None:
    quick, full = kernel_probes(RUNTIMES, CPU, "quick"), kernel_probes(RUNTIMES, CPU, "full")
    assert {p.probe.subject for p in quick} < {p.probe.subject for p in full} == set(kernel_modules()) - {"matmul_shape"}
    assert len(full) > len(quick)


def test_one_kernel_can_be_asked_for_alone() -> None:
    assert {p.probe.subject for p in kernel_probes(RUNTIMES, CPU, "quick", "launch")} == {"launch"}


def test_an_unknown_kernel_gives_nothing() -> None:
    assert kernel_probes(RUNTIMES, CPU, "quick", "no-such") == ()


def test_work_of_a_product_is_two_n_cubed() -> None:
    planned = [p for p in kernel_probes(RUNTIMES, CPU, "quick", "matmul_chain") if ("n", 1024) in p.probe.sizes]
    assert {p.flop for p in planned} == {2 * 1024**3 + 1024**2}
