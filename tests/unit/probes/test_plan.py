"""The plan: every shape once, every runtime, and no call that takes minutes."""

import intake
from core.device import Device
from core.probe import Runtime
from probes import block_probes, kernel_names, kernel_probes

CPU = Device("cpu:0", "cpu", "test", "cpu-test", 16 * 2**30, 2)
RUNTIMES = tuple(Runtime(name, "torch", "eager", (), "/python", installed=True) for name in ("torch-eager", "jax"))


def test_equal_blocks_are_measured_once_in_each_runtime() -> None:
    workload = intake.read_text("gpt2-demo:train").workload
    planned = block_probes(workload, RUNTIMES, CPU)
    keys = [(p.probe.subject, p.probe.sizes, p.probe.runtime) for p in planned]
    assert len(keys) == len(set(keys))
    assert {p.probe.subject for p in planned} == {"step_frame", "token_ends", "transformer_layer"}
    assert len(planned) == 3 * len(RUNTIMES)


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
    assert {p.probe.subject for p in quick} == set(kernel_names())
    assert len(full) > len(quick)


def test_one_kernel_can_be_asked_for_alone() -> None:
    assert {p.probe.subject for p in kernel_probes(RUNTIMES, CPU, "quick", "launch")} == {"launch"}


def test_an_unknown_kernel_gives_nothing() -> None:
    assert kernel_probes(RUNTIMES, CPU, "quick", "no-such") == ()


def test_work_of_a_product_is_two_n_cubed() -> None:
    planned = [p for p in kernel_probes(RUNTIMES, CPU, "quick", "matmul_chain") if ("n", 1024) in p.probe.sizes]
    assert {p.flop for p in planned} == {2 * 1024**3 + 1024**2}
