"""Rules about libraries and kernels that existing code cannot do without."""

from advisor.rules import Finding, job_rule, rule
from advisor.rules.ages import PACKAGES, PLATFORM, TPU_ONLY, facts
from advisor.rules.case import Case, Code, canonical

WHEN_TPU = 'cloud.google.com/tpu/docs/intro-to-tpu, "When to use TPUs" (2026)'
METADATA = "PyPI metadata and pip resolver, 2026-11-30"
CUDA_ONLY = (
    "flash-attn", "flash-attention", "bitsandbytes", "nvidia-dali", "dali", "rapids", "cudf", "cuml", "cupy",
    "transformer-engine",
    "tensorrt", "hugectr", "apex", "xformers", "torch-scatter", "torch-sparse", "torch-cluster", "pyg-lib", "spconv",
    "minkowskiengine", "mamba-ssm", "causal-conv1d", "tiny-cuda-nn", "liger-kernel", "flashinfer", "unsloth", "natten", "pycuda",
    "cugraph", "nvtabular", "torchsparse",
)
BEFORE_AMPERE = ("t4", "v100", "p100")
FROM_HOPPER = ("h100", "h200", "gh200", "b200", "gb200", "b300", "gb300")
CUDA_KERNELS = ("cuda", "cuda-c++", "c++", "triton", "cutlass", "cute")
NON_SYMMETRIC = ("eig", "eigvals", "schur", "nonsymmetric-eig", "linalg-eig", "linalg-eigvals", "linalg-schur")


def _names(items: tuple[str, ...]) -> str:
    return ", ".join(items)


@rule("R014", facts("custom_kernel_cuda_only", "exclude", "no way to run", f"{WHEN_TPU}; {METADATA}", PLATFORM, kinds=TPU_ONLY))
def cuda_code_does_not_move(case: Case) -> Finding | None:
    """CUDA and Triton kernels and CUDA-only libraries do not run on a TPU."""
    if not case.on_tpu:
        return None
    kernels = (name for name in case.workload.existing.custom_kernels if canonical(name) in CUDA_KERNELS)
    found = (*kernels, *case.needs(*CUDA_ONLY)) if case.code.kernels or case.code.libraries else ()
    if not found:
        return None
    return Finding("exclude", f"the code needs {_names(found)}, which only runs on CUDA: port it to Pallas or plain XLA first")


@rule("R015", facts("custom_kernel_cuda_only", "exclude", "no way to run until it is ported", WHEN_TPU, PLATFORM, kinds=TPU_ONLY))
def custom_operations_need_a_port(case: Case) -> Finding | None:
    """Custom operations inside the training loop keep a job off TPUs unless they are ported."""
    custom = case.workload.existing.custom_kernels
    found = tuple(name for name in custom if canonical(name) not in (*CUDA_KERNELS, "pallas"))
    if not found:
        return None
    return Finding("exclude", f"the step has custom operations ({_names(found)}): port them to Pallas before choosing a TPU")


@rule("R018", facts(
    "op_not_lowered", "exclude", "eig on CPU and GPU, Schur on CPU", "jax documentation, jax._src.lax.linalg (@cec06d1)",
    PACKAGES, kinds=TPU_ONLY,
))
def eigendecomposition_stays_off_tpu(case: Case) -> Finding | None:
    """Non-symmetric eigendecomposition and Schur are not there on TPU."""
    found = case.code.names(*NON_SYMMETRIC)
    if not found:
        return None
    return Finding("exclude", f"{_names(found)} is not there on TPU: eig runs on CPU and GPU, Schur on CPU only")


@rule("R021", facts(
    "op_not_lowered", "exclude", "no way to run", "deepspeedai/DeepSpeed accelerator/ (@edaa722)",
    PACKAGES, kinds=TPU_ONLY,
))
def deepspeed_has_no_tpu(case: Case) -> Finding | None:
    """DeepSpeed has no TPU accelerator."""
    if not case.needs("deepspeed"):
        return None
    return Finding("exclude", "DeepSpeed has no TPU accelerator: use FSDP2, DTensor or JAX sharding")


@rule("R022", facts(
    "op_not_lowered", "exclude", "no way to run", "NVIDIA/Megatron-LM, NVIDIA/NeMo (2026-08)",
    PACKAGES, kinds=TPU_ONLY,
))
def megatron_has_no_tpu(case: Case) -> Finding | None:
    """Megatron-LM and NeMo do not run on TPU."""
    found = case.needs("megatron-lm", "megatron-core", "megatron", "nemo", "nemo-toolkit")
    if not found:
        return None
    return Finding("exclude", f"{_names(found)} does not run on TPU: use MaxText or TorchTitan")


@rule("R023", facts(
    "experimental", "penalise", "rank x 0.5", "pytorch-lightning (@7f0c343)",
    PACKAGES, kinds=TPU_ONLY, runtimes=("torch-xla", "torch-tpu"),
))
def lightning_on_tpu_is_experimental(case: Case) -> Finding | None:
    """PyTorch Lightning reaches TPUs through PyTorch/XLA only, marked experimental."""
    if case.runtime.id not in ("torch-xla", "torch-tpu"):
        return None
    if not case.needs("pytorch-lightning", "lightning"):
        return None
    return Finding("penalise", "PyTorch Lightning reaches TPUs through PyTorch/XLA only, and calls that experimental", 0.5)


@rule("R024", facts(
    "op_not_lowered", "exclude", "no execution provider", "onnxruntime.ai/docs/execution-providers (recalled)",
    PACKAGES, kinds=TPU_ONLY,
))
def onnx_runtime_has_no_tpu(case: Case) -> Finding | None:
    """ONNX Runtime has no execution provider for TPU."""
    if not case.needs("onnxruntime", "onnxruntime-gpu", "onnxruntime-rocm"):
        return None
    return Finding("exclude", "ONNX Runtime has no execution provider for TPU")


@rule("R025", facts(
    "version_conflict", "exclude", "removed in 1.23", "onnxruntime ROCm execution provider page (2026-09-04)",
    PACKAGES, kinds=("gpu",), by_runtime=True,
))
def onnx_runtime_dropped_rocm(case: Case) -> Finding | None:
    """ONNX Runtime removed its ROCm provider in 1.23."""
    if case.vendor != "amd" or case.kind != "gpu" or not case.needs("onnxruntime-rocm"):
        return None
    if not (case.at_least("onnxruntime-rocm", "1.23") or case.at_least("onnxruntime", "1.23")):
        return None
    return Finding("exclude", "ONNX Runtime removed its ROCm provider in 1.23: use MIGraphX")


@rule("R026", facts(
    "eol", "exclude", "archived 2026-02-01, or in maintenance",
    "README of JetStream, 2026-01-05; README of optimum-tpu, 2025-12-19",
    PACKAGES, kinds=TPU_ONLY,
))
def jetstream_is_archived(case: Case) -> Finding | None:
    """JetStream and optimum-tpu are no longer developed."""
    found = case.needs("jetstream", "jetstream-pytorch", "optimum-tpu")
    if not found:
        return None
    return Finding("exclude", f"{_names(found)} is archived or in maintenance: serve with vLLM for TPU")


@rule("R210", facts(
    "custom_kernel_generation", "exclude", "compute capability 8.0; 8.9 for fp8 of Transformer Engine",
    "README of Dao-AILab/flash-attention; "
    "NVIDIA Transformer Engine, prerequisites", PACKAGES, kinds=("gpu",), by_runtime=True,
))
def kernels_need_a_generation(case: Case) -> Finding | None:
    """Kernels of a library start at a generation of GPUs: flash-attn 2 at Ampere, flash-attn 3 at Hopper."""
    family = case.key.split("-", maxsplit=1)[0]
    early = case.needs("flash-attn", "flash-attention", "transformer-engine") if family in BEFORE_AMPERE else ()
    hopper = case.needs("flash-attn-3", "flash-attention-3") if case.vendor == "nvidia" and family not in FROM_HOPPER else ()
    if not (early or hopper) or (early and case.at_least("flash-attn", "2.0") is False):
        return None
    return Finding(
        "exclude",
        f"{_names((*early, *hopper))} has no kernels for {case.chip_name}: use another attention, or a newer GPU",
    )


@job_rule("R208", facts(
    "export_portability", "suggest", "64 chips wrote what 2 could not read", "google/orbax issues 648, 986", PACKAGES,
))
def checkpoints_remember_their_sharding(code: Code) -> Finding | None:
    """A sharded checkpoint remembers how many chips wrote it."""
    found = code.needs("orbax", "orbax-checkpoint", "tensorstore", "torch-dcp")
    counts = sorted({count for _, count in code.asked})
    if not found or len(counts) < 2 or len({key for key, _ in code.asked}) > 1:
        return None
    return Finding(
        "suggest",
        f"{_names(found)} keeps the sharding with the data: restore {counts[-1]} chips' checkpoint on {counts[0]} with the "
        "target's sharding given, and try it before the slice is gone",
    )
