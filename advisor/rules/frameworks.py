"""Rules about frameworks that an accelerator has, had, or never had: TensorFlow, MXNet, PyTorch/XLA, TorchTPU, JAX."""

from advisor.rules import Finding, rule
from advisor.rules.ages import PACKAGES, PLATFORM, PRACTICE, SILICON, TPU_ONLY, facts
from advisor.rules.case import JAX, KERAS, TENSORFLOW, Case
from advisor.rules.versions import BLACKWELL

TORCH_RUNTIMES = ("torch-eager", "torch-compile", "torch-xla", "torch-tpu")
OWN_RUNTIMES = {
    "torch": TORCH_RUNTIMES, "torch-xla": TORCH_RUNTIMES, "torch-tpu": TORCH_RUNTIMES,
    "tensorflow": TENSORFLOW,
    "keras": KERAS,
    "jax": ("jax",),
    "mxnet": ("mxnet", "torch-eager", "torch-compile"),
}
"""Runtimes that code of a framework goes to without being written anew; for MXNet also those of its way out."""
AT_HOME_ON_TPU = ("jax", "tensorflow", "torch-xla", "torch-tpu")
METADATA = "PyPI metadata and pip resolver, 2026-11-30"
NEW_TPUS = ("tpu-v7", "tpu-8i", "tpu-8t")


@rule("R001", facts("eol", "exclude", "no build", "docs.cloud.google.com/tpu/docs/tpu7x (2026)", PLATFORM, runtimes=TENSORFLOW))
def tensorflow_stops_before_tpu7x(case: Case) -> Finding | None:
    """TensorFlow does not run on TPU7x or newer."""
    if case.key not in NEW_TPUS:
        return None
    return Finding("exclude", f"TensorFlow does not run on {case.chip_name}: TPU7x and newer take JAX and PyTorch only")


@rule("R002", facts(
    "eol", "exclude", "the last build is 2.20.0 (2025-08)", f"{METADATA}; keras requirements-tensorflow-tpu.txt (2026-08)",
    PACKAGES, kinds=TPU_ONLY, runtimes=TENSORFLOW,
))
def tensorflow_221_has_no_tpu(case: Case) -> Finding | None:
    """TensorFlow 2.21 and newer have no TPU build."""
    if not case.at_least("tensorflow", "2.21"):
        return None
    return Finding("exclude", f"TensorFlow {case.version('tensorflow')} has no TPU build; the last one is 2.20.0")


@rule("R003", facts(
    "eol", "penalise", "rank x 0.5", f"{METADATA}; docs.cloud.google.com/tpu/docs/runtimes (2026)",
    PACKAGES, kinds=TPU_ONLY, runtimes=TENSORFLOW,
))
def tensorflow_on_tpu_is_frozen(case: Case) -> Finding | None:
    """TensorFlow on TPU, 2.20 at most, is a frozen stack; so it is when no version is known."""
    if case.key in NEW_TPUS:
        return None
    if case.at_least("tensorflow", "2.21"):
        return None
    version = case.version("tensorflow") or "2.20 at most"
    reason = f"TensorFlow {version} on TPU is a frozen stack; new work goes to Keras on JAX"
    return Finding("penalise", reason, 0.5)


@rule("R004", facts(
    "op_not_lowered", "exclude", "no backend; last build for NVIDIA GPUs: CUDA 12.4.1, up to Hopper",
    f"{METADATA}; NVIDIA's MXNet container 24.06, its last (docs.nvidia.com, read 2026-12-02)", PACKAGES, runtimes=("mxnet",),
))
def mxnet_has_no_backend(case: Case) -> Finding | None:
    """MXNet has no backend for TPU, AMD or Apple, and no build for Blackwell GPUs."""
    if case.key in BLACKWELL:
        last = "the last one, NVIDIA's container 24.06, has CUDA 12.4 and ends with Hopper"
        return Finding("exclude", f"MXNet has no build for {case.chip_name}: {last}")
    if not (case.on_tpu or (case.vendor in ("amd", "apple") and case.kind == "gpu")):
        return None
    return Finding("exclude", f"MXNet has no backend for {case.chip_name}")


@rule("R005", facts(
    "eol", "penalise", "rank x 0.4 for new work, 0.5 for code of its own; retired in 2023-09; CUDA 11.2 and numpy below 2",
    METADATA, PACKAGES,
    kinds=("gpu",), runtimes=("mxnet",),
))
def mxnet_is_retired(case: Case) -> Finding | None:
    """MXNet on CUDA is retired: it needs CUDA 11.2 and numpy below 2, and is nothing for new work."""
    if case.vendor != "nvidia":
        return None
    if case.workload.existing.framework == "mxnet" or case.needs("mxnet"):
        reason = "MXNet is retired and needs CUDA 11.2 and numpy below 2: move to PyTorch, whose modules are nearest to Gluon's"
        return Finding("penalise", reason, 0.5)
    return Finding("penalise", "MXNet is retired and needs CUDA 11.2 and numpy below 2: take PyTorch or JAX for new work", 0.4)


@rule("R006", facts(
    "eol", "penalise", "rank x 0.4", f"README of pytorch/xla, 2026-04-22; {METADATA}",
    PACKAGES, runtimes=("torch-xla",),
))
def torch_xla_is_deprecated(case: Case) -> Finding | None:
    """PyTorch/XLA is deprecated: not for new projects."""
    if case.workload.existing.framework == "torch-xla" or case.needs("torch_xla"):
        return None
    return Finding("penalise", "PyTorch/XLA is deprecated and fixed at torch 2.9: take TorchTPU or JAX for new work", 0.4)


@rule("R007", facts("version_conflict", "exclude", "torch 2.9 only", METADATA, PACKAGES, runtimes=("torch-xla",)))
def torch_xla_needs_torch_29(case: Case) -> Finding | None:
    """PyTorch/XLA has no build for torch 2.10 or newer."""
    if not case.at_least("torch", "2.10"):
        return None
    return Finding("exclude", f"torch {case.version('torch')} has no matching PyTorch/XLA: the last one needs torch 2.9")


@rule("R008", facts(
    "version_conflict", "exclude", "torch 2.11 to 2.15.0, Python 3.11 or newer, Linux on x86-64", METADATA,
    PACKAGES, runtimes=("torch-tpu",),
))
def torch_tpu_needs_its_versions(case: Case) -> Finding | None:
    """TorchTPU needs torch 2.11 to 2.15, Python 3.11 or newer, and Linux on x86-64."""
    torch, python = case.version("torch"), case.version("python")
    if torch is not None and (case.at_least("torch", "2.11") is False or case.at_least("torch", "2.15.1")):
        return Finding("exclude", f"TorchTPU needs torch 2.11 to 2.15.0, not {torch}")
    if python is not None and case.at_least("python", "3.11") is False:
        return Finding("exclude", f"TorchTPU needs Python 3.11 or newer, not {python}")
    machine, system = case.version("machine"), case.version("os")
    if machine is not None and machine.lower() not in ("x86_64", "amd64"):
        return Finding("exclude", f"TorchTPU is built for x86-64 only, not {machine}")
    if system is not None and system.lower() != "linux":
        return Finding("exclude", f"TorchTPU is built for Linux only, not {system}")
    return None


@rule("R009", facts(
    "experimental", "penalise", "rank x 0.8", f"{METADATA}; torch_tpu 0.2.0 wheel",
    PACKAGES, kinds=TPU_ONLY, runtimes=("torch-tpu",),
))
def torch_tpu_is_beta(_: Case) -> Finding | None:
    """TorchTPU is a beta: pilot first."""
    return Finding("penalise", "TorchTPU is a beta (0.2.0, its first release): run a pilot before you commit", 0.8)


@rule("R010", facts(
    "custom_kernel_generation", "exclude", "v4, v5e, v5p, v6e and v7 only", "torch_tpu 0.2.0 wheel",
    PACKAGES, runtimes=("torch-tpu",),
))
def torch_tpu_starts_at_v4(case: Case) -> Finding | None:
    """TorchTPU does not recognise TPU v2 and v3."""
    if case.key not in ("tpu-v2", "tpu-v3"):
        return None
    return Finding("exclude", f"TorchTPU does not recognise {case.chip_name}: it starts at TPU v4")


@rule("R011", facts(
    "version_conflict", "exclude", "libtpu 0.0.21 against 0.0.50 or newer", METADATA, PACKAGES, kinds=TPU_ONLY, by_runtime=True,
))
def torch_xla_shares_no_environment(case: Case) -> Finding | None:
    """PyTorch/XLA pins a libtpu that TorchTPU and current JAX refuse."""
    if not case.needs("torch_xla"):
        return None
    if case.needs("torch_tpu") and case.runtime.id in ("torch-xla", "torch-tpu"):
        return Finding("exclude", "the code needs PyTorch/XLA and TorchTPU at once: libtpu 0.0.21 against 0.0.50 or newer")
    if case.needs("jax") and case.at_least("jax", "0.8") and case.runtime.id in ("torch-xla", *JAX):
        reason = f"the code needs PyTorch/XLA and JAX {case.version('jax')} at once: their libtpu versions exclude each other"
        return Finding("exclude", reason)
    return None


@rule("R012", facts(
    "version_conflict", "suggest", "one environment with libtpu 0.0.50.1", METADATA, PACKAGES, kinds=TPU_ONLY, by_runtime=True,
))
def torch_tpu_and_jax_fit(case: Case) -> Finding | None:
    """TorchTPU and JAX 0.12.0.1 fit one environment."""
    if case.runtime.id not in ("torch-tpu", *JAX):
        return None
    both = case.needs("torch_tpu") and case.needs("jax")
    if not both or not case.at_least("jax", "0.12.0.1") or case.at_least("jax", "0.12.1"):
        return None
    return Finding("suggest", "TorchTPU and JAX 0.12.0.1 resolve in one environment with libtpu 0.0.50.1")


@rule("R013", facts(
    "version_conflict", "exclude", "jax 0.11.2 and libtpu 0.0.48 exactly", METADATA,
    PACKAGES, kinds=TPU_ONLY, runtimes=JAX,
))
def vllm_jax_needs_its_own_container(case: Case) -> Finding | None:
    """The JAX build of vLLM pins jax 0.11.2: it shares no environment with a trainer on JAX 0.12."""
    if not case.needs("tpu-inference", "vllm-jax", "vllm-tpu"):
        return None
    if not case.at_least("jax", "0.12"):
        return None
    return Finding("exclude", f"vLLM for JAX pins jax 0.11.2, the code has {case.version('jax')}: use two containers")


@rule("R027", facts(
    "version_conflict", "exclude", "compute capability 7.5 or newer", "jax documentation, installation (@cec06d1)",
    PACKAGES, kinds=("gpu",), by_runtime=True,
))
def cuda_13_drops_volta(case: Case) -> Finding | None:
    """CUDA 13 has no kernels for V100 and P100."""
    if case.key.split("-")[0] not in ("v100", "p100") or not case.at_least("cuda", "13"):
        return None
    return Finding("exclude", f"CUDA {case.version('cuda')} has no kernels for {case.chip_name}: use a CUDA 12 build")


@rule("R028", facts(
    "op_not_lowered", "exclude", "no build", f"jax documentation, installation (@cec06d1); {METADATA}",
    PACKAGES, kinds=("gpu",), runtimes=JAX,
))
def jax_has_no_windows_or_apple_gpu(case: Case) -> Finding | None:
    """JAX does not run on Apple GPUs, nor on GPUs under Windows."""
    if case.vendor == "apple":
        return Finding("exclude", "JAX on Apple GPUs has had no release since 2024-10")
    if (case.version("os") or "").lower().startswith("win"):
        return Finding("exclude", "JAX has no GPU build for Windows; WSL2 is experimental")
    return None


@rule("R029", facts(
    "version_conflict", "exclude", "ARM host", "host processors of the Grace boards in the accelerator table",
    SILICON, kinds=("gpu",),
))
def grace_hosts_are_arm(case: Case) -> Finding | None:
    """Grace boards have an ARM host: x86-only wheels do not run there."""
    if case.key not in ("gh200", "gb200", "gb300"):
        return None
    machine = case.stated("machine")
    if machine is None or machine.lower() not in ("x86_64", "amd64"):
        return None
    return Finding("exclude", f"the code is built for {machine}, the host of {case.chip_name} is ARM")


@rule("R212", facts(
    "framework_choice", "penalise", "rank x 0.7; 0.5 where the chip is a TPU and the code was never for one; a judgement",
    "apache/tvm pull request 16572; pytorch/xla issues 2422, 2383: code is moved when it gains clearly", PRACTICE,
    by_runtime=True,
))
def another_framework_is_a_port(case: Case) -> Finding | None:
    """Code that is there is written anew for another framework: a small gain does not pay for that.

    On an attached device both are measured, and the figures themselves say what a port gains.
    """
    written = case.workload.existing.framework or ""
    own = OWN_RUNTIMES.get(written)
    if own is None or case.attached or case.runtime.id in own:
        return None
    if case.on_tpu and written not in AT_HOME_ON_TPU:
        return Finding("penalise", f"{written} code is written anew for {case.runtime.id} on a TPU: it should gain twofold", 0.5)
    return Finding("penalise", f"{written} code is written anew for {case.runtime.id}: it should gain clearly", 0.7)


@rule("R213", facts(
    "framework_choice", "penalise", "rank x 0.8", "TensorFlow 2.21 announcement, 2026-03 (secondary copies)", PACKAGES,
    kinds=("gpu", "cpu", "other"), runtimes=("tf-graph", "tf-xla"),
))
def tensorflow_is_maintained_not_extended(case: Case) -> Finding | None:
    """TensorFlow itself is maintained; its makers point new work to Keras 3, JAX and PyTorch."""
    if case.workload.existing.framework in ("tensorflow", "keras") or case.needs("tensorflow", "keras"):
        return None
    return Finding(
        "penalise", "TensorFlow is kept stable, not extended: its makers point new work to Keras 3, JAX and PyTorch", 0.8
    )


@rule("R214", facts(
    "runtime_not_used", "penalise suggest", "rank x 0.05 where steps are eager: they run on the processors of the host",
    "googlecolab/colabtools issue 1013", PACKAGES, kinds=TPU_ONLY, runtimes=TENSORFLOW,
))
def tensorflow_needs_a_strategy_on_tpu(case: Case) -> Finding | None:
    """TensorFlow code without a TPUStrategy leaves the TPU idle: to choose a machine with one moves no code to it."""
    if case.workload.existing.framework != "tensorflow":
        return None
    cure = "make a TPUStrategy, and put the step in a tf.function within it"
    if case.code.names("eager", "eager-mode"):
        return Finding("penalise", f"eager TensorFlow steps run on the processors of the host, not on the TPU: {cure}", 0.05)
    return Finding("suggest", f"TensorFlow code without a strategy runs on the processors of the host: {cure}")
