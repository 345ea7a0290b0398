"""Rules about versions that do not fit: what a chip, a library or a driver is too old or too new for. Numbers are compared."""

from advisor.rules import Finding, job_rule, rule
from advisor.rules.ages import PACKAGES, PRACTICE, SILICON, TPU_ONLY, facts
from advisor.rules.case import TENSORFLOW, Case, Code, not_older

SWITCHES = ("xla-use-bf16", "xla-downcast-bf16")
BLACKWELL = ("rtx5090", "rtxpro6000", "b200", "gb200", "b300", "gb300")
CUDNN_OF_JAX = (("0.8.0", "9.13.1"), ("0.4.31", "9.1"), ("0.4.20", "8.8"))
"""From which JAX on its CUDA build was compiled with which cuDNN, newest first; an older library is refused."""
ONNX_NEEDS = (("cuda", "12.0"), ("cudnn", "9.0"))
DOUBLES = ("fp64", "float64", "double")


def _switched(code: Code) -> str | None:
    """Return the switch that turns floats into bf16 in PyTorch/XLA, or None when none is set."""
    stated = dict(code.versions)
    return next((name.upper().replace("-", "_") for name in SWITCHES if stated.get(name, "0") not in ("0", "", "false")
                 or name in code.operations), None)


@rule("R186", facts(
    "eol", "exclude", "compute capability 7.5 or newer", "pytorch/pytorch issues 172352, 190385", PACKAGES, kinds=("gpu",),
    by_runtime=True,
))
def volta_was_dropped(case: Case) -> Finding | None:
    """Builds for CUDA 13 dropped V100 and P100."""
    if case.key.split("-", maxsplit=1)[0] not in ("v100", "p100") or not case.at_least("cuda", "13"):
        return None
    return Finding(
        "exclude",
        f"builds for CUDA 13 dropped the generation of {case.chip_name}: pin one for CUDA 12, or take a newer GPU",
    )


@rule("R187", facts("version_conflict", "exclude", "torch 2.7 and CUDA 12.8 or newer", "pytorch/pytorch issues 153928, 167244",
SILICON,
                    kinds=("gpu",), by_runtime=True))
def blackwell_needs_new_builds(case: Case) -> Finding | None:
    """Blackwell GPUs need builds for CUDA 12.8 or newer, in PyTorch from 2.7 on."""
    if case.key not in BLACKWELL:
        return None
    uses_torch = case.runtime.id.startswith("torch") or case.runtime.id == "keras-torch"
    if uses_torch and case.at_least("torch", "2.7") is False:
        return Finding(
            "exclude",
            f"torch {case.version('torch')} has no kernels for {case.chip_name}: take 2.7 or newer for CUDA 12.8",
        )
    if case.code.at_least("cuda", "12.8") is False:
        return Finding("exclude", f"CUDA {case.stated('cuda')} has no kernels for {case.chip_name}: take 12.8 or newer")
    return None


@rule("R188", facts(
    "version_conflict", "warn", "the first cuDNN that is loaded wins", "jax-ml/jax issue 18032", PRACTICE, kinds=("gpu",),
))
def two_frameworks_share_one_cudnn(case: Case) -> Finding | None:
    """PyTorch and JAX in one process share whichever cuDNN is loaded first."""
    if case.vendor != "nvidia" or not (case.needs("torch") and case.needs("jax", "jaxlib")):
        return None
    return Finding(
        "warn",
        "PyTorch and JAX in one process share the cuDNN that is loaded first, and the other may see no GPU: give each its own "
        "process and environment",
    )


@rule("R189", facts("version_conflict", "exclude", "cuDNN as new as the build's",
"conda-forge/jaxlib-feedstock issue 329; jax-ml/jax issue 18032",
                    PACKAGES, kinds=("gpu",), runtimes=("jax", "keras-jax")))
def jax_refuses_an_older_cudnn(case: Case) -> Finding | None:
    """JAX refuses a cuDNN that is older than the one that it was built with."""
    jax, cudnn = case.version("jax"), case.stated("cudnn")
    if case.vendor != "nvidia" or jax is None or cudnn is None:
        return None
    needed = next((wanted for since, wanted in CUDNN_OF_JAX if not_older(jax, since)), None)
    if needed is None or not_older(cudnn, needed) is not False:
        return None
    return Finding(
        "exclude",
        f"JAX {jax} was built with cuDNN {needed} and refuses {cudnn}: upgrade cuDNN, or use the build that brings its own",
    )


@rule("R190", facts("version_conflict", "warn", "CUDA 12 and cuDNN 9 from 1.19 on", "microsoft/onnxruntime issues 23372, 23612",
PACKAGES,
                    kinds=("gpu",), by_runtime=True))
def onnx_runtime_needs_its_cuda(case: Case) -> Finding | None:
    """ONNX Runtime for GPUs needs CUDA 12 and cuDNN 9 from 1.19 on."""
    if not case.needs("onnxruntime-gpu") or case.at_least("onnxruntime-gpu", "1.19") is False:
        return None
    old = [f"{name} {case.stated(name)}" for name, needed in ONNX_NEEDS if case.code.at_least(name, needed) is False]
    if not old:
        return None
    return Finding(
        "warn",
        f"ONNX Runtime for GPUs is built for CUDA 12 and cuDNN 9, not {' and '.join(old)}: it will fall back to the CPU",
    )


@rule("R191", facts(
    "eol", "exclude", "removed 2025-12", "vllm-project/vllm pull request 30808", PACKAGES, kinds=TPU_ONLY,
    runtimes=("torch-xla",),
))
def vllm_left_torch_xla(case: Case) -> Finding | None:
    """VLLM's path to TPUs through PyTorch/XLA was removed."""
    found = case.needs("vllm", "vllm-tpu")
    if not found:
        return None
    return Finding(
        "exclude",
        "vLLM removed its path through PyTorch/XLA: serve with vllm-torchtpu or vLLM for JAX (tpu-inference)",
    )


@rule("R192", facts("version_conflict", "exclude", "torch 2.14 and JAX 0.11.2 against torch 2.9",
"PyPI metadata and pip resolver, 2026-11-30",
                    PACKAGES, kinds=TPU_ONLY, runtimes=("torch-xla",)))
def vllm_needs_another_torch(case: Case) -> Finding | None:
    """Current vLLM needs a newer torch than PyTorch/XLA allows."""
    if not case.needs("vllm", "vllm-tpu") or case.code.at_least("vllm", "0.13") is False:
        return None
    return Finding("exclude", "current vLLM needs torch 2.14 or newer, PyTorch/XLA is fixed at 2.9: they share no environment")


@rule("R193", facts("eol", "warn", "last release 2.9.0 (2025-11)", "README of pytorch/xla, 2026-04-22", PACKAGES, kinds=TPU_ONLY,
                    runtimes=("torch-xla",)))
def existing_torch_xla_code_is_frozen(case: Case) -> Finding | None:
    """Code that is on PyTorch/XLA already stands on a frozen package."""
    if case.workload.existing.framework != "torch-xla" and not case.needs("torch_xla"):
        return None
    return Finding("warn", "PyTorch/XLA is frozen at 2.9: keep the job alive on it, and plan to move to TorchTPU or JAX")


@rule("R194", facts("version_conflict", "warn", "tensorflow-tpu 2.20.0 at most",
"googlecolab/colabtools issue 5164; PyPI metadata, 2026-11-30",
                    PACKAGES, kinds=TPU_ONLY, runtimes=TENSORFLOW))
def tensorflow_on_tpu_is_another_package(case: Case) -> Finding | None:
    """TensorFlow on a TPU is a package of its own, which images no longer bring."""
    if case.stated("tensorflow-tpu") is not None or case.needs("tensorflow-tpu") or case.at_least("tensorflow", "2.16") is False:
        return None
    return Finding("warn", "plain tensorflow has no TPU in it: install tensorflow-tpu (2.20.0 at most), or use Keras on JAX")


@rule("R195", facts("version_conflict", "exclude", "2.x only",
"docs.cloud.google.com/tpu/docs/runtimes (2026); tensorflow/tensorflow issue 33347",
                    PACKAGES, kinds=TPU_ONLY, runtimes=TENSORFLOW))
def tensorflow_1_has_no_image(case: Case) -> Finding | None:
    """No TPU runtime has TensorFlow 1 any more."""
    if case.code.at_least("tensorflow", "2.0") is not False:
        return None
    return Finding(
        "exclude",
        f"no TPU runtime has TensorFlow {case.stated('tensorflow')} any more: move to 2.x first, or to Keras on JAX",
    )


@rule("R196", facts("precision_default", "warn", "float becomes bf16, double becomes float or bf16",
"huggingface/accelerate pull request 523; "
                    "pytorch/xla issue 1741", PACKAGES, kinds=TPU_ONLY, runtimes=("torch-xla",)))
def switches_change_the_format(case: Case) -> Finding | None:
    """The switches of PyTorch/XLA for bf16 change the format that was declared."""
    switch = _switched(case.code)
    if switch is None:
        return None
    rest = "doubles become floats" if "DOWNCAST" in switch else "floats and doubles both become bf16"
    return Finding("warn", f"{switch} changes what is computed: {rest}; cast the model instead")


@rule("R197", facts("dtype_overflow", "warn", "the smallest fp32 rounds to minus infinity",
"pytorch/xla issue 4152; huggingface/transformers pull "
                    "request 20605", PACKAGES, kinds=TPU_ONLY, runtimes=("torch-xla",)))
def mask_constants_overflow(case: Case) -> Finding | None:
    """Under a global switch to bf16 the smallest fp32, used in masks, becomes minus infinity."""
    if _switched(case.code) is None or not case.needs("transformers") or case.code.at_least("transformers", "4.26"):
        return None
    return Finding(
        "warn",
        "masks hold the smallest fp32, which becomes minus infinity in bf16, and 0 times that is no number: upgrade "
        "transformers to 4.26 or newer",
    )


@rule("R198", facts("version_conflict", "warn", "4.21 to 4.25",
"pytorch/xla issue 4152; huggingface/transformers pull request 20605", PACKAGES,
                    kinds=TPU_ONLY, runtimes=("torch-xla",)))
def transformers_is_too_old_for_the_switch(case: Case) -> Finding | None:
    """Transformers before 4.26 does not go together with a global switch to bf16."""
    if _switched(case.code) is None or case.code.at_least("transformers", "4.26") is not False:
        return None
    return Finding(
        "warn",
        f"transformers {case.stated('transformers')} does not go together with a global bf16 switch: take 4.26 or newer",
    )


@rule("R199", facts("dtype_unsupported", "warn", "fp32 in its place",
"huggingface/accelerate pull request 523; jax-ml/jax issue 10158", SILICON,
                    kinds=TPU_ONLY))
def doubles_in_the_code_are_not_doubles(case: Case) -> Finding | None:
    """Doubles in code for a TPU become floats, or are emulated."""
    found = case.code.names(*DOUBLES)
    if not found or case.workload.dtype == "fp64":
        return None
    return Finding("warn", f"{', '.join(found)} in the code: a TPU has no doubles, so that they become floats or are emulated")


@rule("R200", facts(
    "version_conflict", "warn", "29.7 ms became 0.25 ms", "pytorch/xla pull request 3450", PACKAGES, runtimes=("torch-xla",),
))
def old_torch_xla_gathers_slowly(case: Case) -> Finding | None:
    """PyTorch/XLA before 1.12 takes a slow path for gathers."""
    if case.code.at_least("torch_xla", "1.12") is not False or not (case.code.names("gather") or case.code.graph.scattered):
        return None
    return Finding("warn", f"PyTorch/XLA {case.stated('torch_xla')} takes a slow path for gathers that 1.12 mended")


@rule("R201", facts("dtype_overflow", "warn suggest", "65,504 is the largest fp16", "huggingface/transformers issue 5651; "
                    "google-research/text-to-text-transfer-transformer issue 539", PRACTICE, kinds=("gpu", "other")))
def fp16_overflows(case: Case) -> Finding | None:
    """Training in fp16 overflows where a model was made in bf16."""
    if case.chip is None or case.workload.dtype != "fp16" or not case.workload.trains or not case.code.graph.head_widths:
        return None
    if case.chip.peak("bf16") is not None:
        return Finding(
            "suggest",
            f"{case.chip_name} has bf16: activations above 65,504 overflow in fp16, and most models are made in bf16",
        )
    return Finding(
        "warn",
        f"{case.chip_name} has fp16 only: activations above 65,504 become infinite in models that were made in bf16; scale the "
        "loss and keep sums in fp32, or take a chip with bf16",
    )


@rule("R202", facts("dtype_slow", "suggest", "27 % faster with mixed precision where XLA in fp32 was 15 % slower",
"pytorch/xla issue 2901; dense "
                    "peaks of the accelerator table", SILICON, kinds=("gpu",)))
def fp32_leaves_tensor_cores_idle(case: Case) -> Finding | None:
    """On GPUs without TF32, fp32 leaves the tensor cores idle."""
    chip = case.chip
    if chip is None or case.workload.dtype != "fp32" or not case.workload.trains or chip.peak("tf32") is not None:
        return None
    single, half = chip.peak("fp32"), chip.peak("bf16") or chip.peak("fp16")
    if single is None or half is None or half < 3 * single or (case.code.graph.matrix_share or 0) < 0.5:
        return None
    return Finding(
        "suggest",
        f"fp32 leaves the tensor cores of {chip.name} idle: mixed precision has {half / single:.0f} times the peak",
    )


@job_rule("R203", facts(
    "eol", "warn", "PyTorch, JAX or ONNX", "apache/tvm pull request 16572; documentation of torch.nn, torch.compile, Grain",
    PACKAGES,
))
def mxnet_code_has_ways_out(code: Code) -> Finding | None:
    """MXNet is retired: what its idioms become elsewhere."""
    if code.workload.existing.framework != "mxnet" and not code.needs("mxnet", "gluoncv", "gluonnlp", "gluonts",
    "autogluon-mxnet"):
        return None
    return Finding(
        "warn",
        "MXNet is retired: Gluon blocks and Trainer become torch.nn modules and optimizers, hybridize() becomes torch.compile "
        "or jit, KVStore becomes DDP or sharding, RecordIO becomes tf.data, Grain or WebDataset; symbols and parameters go "
        "over by ONNX",
    )


@rule("R207", facts("gather_scatter", "warn", "29.7 ms against 0.25 ms", "pytorch/xla pull request 3450", PACKAGES,
kinds=("gpu",),
                    runtimes=("torch-xla",)))
def torch_xla_gathers_slowly_on_gpus(case: Case) -> Finding | None:
    """PyTorch/XLA before 1.12 gathered far slower on GPUs than PyTorch."""
    if case.code.at_least("torch_xla", "1.12") is not False or not (case.code.names("gather") or case.code.graph.scattered):
        return None
    return Finding(
        "warn",
        "a gather took 29.7 ms in this PyTorch/XLA where a later one took 0.25 ms: use PyTorch itself on a GPU",
    )
