"""Rules of practice from public threads: which path a program really takes, what many chips change, what is paid for a result."""

import re

from advisor.rules import Finding, job_rule, rule
from advisor.rules.ages import PACKAGES, PRACTICE, SILICON, TPU_ONLY, facts
from advisor.rules.case import JAX, KERAS, TENSORFLOW, Case, Code
from catalog.slices import count_fault, slice_of

NO_TPU_PATH = (
    "deeplabcut", "detectron2", "mmcv", "mmcv-full", "mmdet", "mmdetection", "mmengine", "ultralytics", "yolov5", "fastai",
    "spacy",
    "openpose", "nnunet", "nnunetv2", "stardist", "cellpose", "kaolin", "pytorch3d", "nerfstudio", "gsplat", "faiss-gpu", "sleap",
    "scvi-tools", "allennlp", "fairseq2", "espnet", "speechbrain", "monai", "dgl", "tensorly", "rvc", "insightface",
)
"""Packages whose own code selects CUDA or the CPU and has no path for a TPU."""
IN_MODEL = re.compile(
    r"(random-(?!normal|uniform|seed)[a-z-]+|string-lookup|integer-lookup|text-vectorization|category-encoding|hashing|"
    r"hashed-crossing|discretization|center-crop|rescaling-lookup|preprocessing-layers?)"
)
BOXES = ("nms", "roi-align", "roi-pool", "deform-conv", "deformable-conv", "ps-roi-align")
GROUPED = ("ragged-dot", "grouped-matmul", "grouped-gemm", "gmm", "moe", "mixture-of-experts", "expert-dispatch")
XLA_RUNTIMES = ("jax", "keras-jax", "tf-xla")
TINY_STEP_FLOP = 1e7


@rule("R162", facts(
    "runtime_not_used", "exclude", "runs on the CPU", "DeepLabCut/DeepLabCut issue 297", PACKAGES, kinds=TPU_ONLY,
))
def packages_without_tpu_path_stay_away(case: Case) -> Finding | None:
    """A package that has no code for TPUs runs on the CPU of a TPU machine."""
    found = case.needs(*NO_TPU_PATH)
    if not found:
        return None
    return Finding("exclude", f"{', '.join(found)} has no code for TPUs: it would run on the CPU beside the TPU; take a GPU")


@rule("R163", facts("op_not_lowered", "penalise", "rank x 0.5 until they are moved",
"tensorflow/tensorflow issues 53051, 101188", PRACTICE,
                    kinds=TPU_ONLY, runtimes=(*TENSORFLOW, *KERAS)))
def preparation_inside_a_model_does_not_compile(case: Case) -> Finding | None:
    """Random augmentation and lookups of strings inside a model do not compile for a TPU."""
    found = _prepared_inside(case.code)
    if not found:
        return None
    return Finding(
        "penalise",
        f"{', '.join(found)} inside the model does not compile for a TPU: move it into tf.data on the host",
        0.5,
    )


@job_rule("R164", facts("stage_split", "suggest", "host and device side by side", "tensorflow/tensorflow issue 53051", PRACTICE))
def preparation_is_a_stage(code: Code) -> Finding | None:
    """Preparation of samples is a stage for the host, apart from the model."""
    found = _prepared_inside(code)
    if not found:
        return None
    return Finding("suggest", f"split {', '.join(found)} from the model: prepare on CPUs, train on the accelerator")


def _prepared_inside(code: Code) -> tuple[str, ...]:
    return tuple(sorted(name for name in code.operations if IN_MODEL.fullmatch(name)))


@rule("R165", facts(
    "dtype_unsupported", "warn", "rejected by the compiler", "leondgarse/keras_cv_attention_models issue 8", PACKAGES,
    kinds=TPU_ONLY,
))
def int64_is_rare_on_tpu(case: Case) -> Finding | None:
    """64-bit whole numbers are hardly supported on a TPU."""
    if not (case.code.names("int64", "uint64", "extract-image-patches") or "int64" in case.code.graph.dtypes):
        return None
    return Finding("warn", "64-bit whole numbers are hardly supported on a TPU: use int32 indices")


@rule("R166", facts("op_not_lowered", "penalise", "rank x 0.5 until it is rewritten",
"leondgarse/keras_cv_attention_models issue 8", PACKAGES,
                    kinds=TPU_ONLY, runtimes=(*TENSORFLOW, *KERAS)))
def gradients_with_int64_indices_are_refused(case: Case) -> Finding | None:
    """The gradient of taking patches, or of a scatter with 64-bit indices, is refused on a TPU."""
    wide = bool(case.code.names("int64"))
    irregular = bool(case.code.names("scatter", "gather", "take-along-axis") or case.code.graph.scattered)
    if not case.code.names("extract-image-patches", "extract-patches") and not (wide and irregular and case.workload.trains):
        return None
    return Finding(
        "penalise",
        "the gradient scatters by 64-bit indices, which the compiler for TPUs refuses: take patches by a convolution",
        0.5,
    )


@rule("R167", facts("custom_kernel_cuda_only", "exclude", "CPU and CUDA kernels only",
"pytorch/vision issue 2486; pytorch/xla issue 1667", PACKAGES,
                    kinds=TPU_ONLY, runtimes=("torch-xla", "torch-tpu")))
def detection_operations_have_no_tpu_kernel(case: Case) -> Finding | None:
    """Torchvision's operations for detection have kernels for CPU and CUDA only."""
    found = case.code.names(*BOXES)
    if not found:
        return None
    return Finding(
        "exclude",
        f"{', '.join(found)} of torchvision has kernels for CPU and CUDA only: take a GPU, or a detector with static boxes",
    )


@rule("R168", facts("custom_kernel_missing", "penalise warn", "rank x 0.3; 22 to 26 against 1,470 to 1,560 TFLOP/s",
"marin-community/marin issue 7012",
                    PACKAGES, kinds=("gpu",), runtimes=JAX))
def grouped_products_fall_back_on_gpus(case: Case) -> Finding | None:
    """Grouped products of experts in JAX fall back to a slow path on GPUs without a tuned kernel."""
    found = case.code.names(*GROUPED)
    if case.vendor != "nvidia" or not (found or case.code.graph.mixture):
        return None
    if not found:
        return Finding("warn", "grouped products of experts in JAX fall back on a GPU without a tuned kernel: check yours")
    return Finding(
        "penalise",
        f"{', '.join(found)} in JAX on a GPU fell back to 26 of 1,500 TFLOP/s: use a tuned kernel from a library",
        0.3,
    )


@rule("R169", facts("per_chip_memory", "warn", "54 against 7.2 GiB of temporaries", "marin-community/marin pull request 5350",
PACKAGES,
                    kinds=("gpu",), runtimes=JAX))
def grouped_products_expand(case: Case) -> Finding | None:
    """The slow path of grouped products writes out every expert in full."""
    found = case.code.names(*GROUPED)
    if case.vendor != "nvidia" or not found:
        return None
    return Finding("warn", f"{', '.join(found)} without its kernel writes out every expert: 54 GiB of temporaries against 7.2")


@rule("R170", facts("eol", "exclude", "CUDA was removed", "pytorch/xla README and pull request 9613; issue 5116", PACKAGES,
kinds=("gpu",),
                    runtimes=("torch-xla",)))
def torch_xla_left_gpus(case: Case) -> Finding | None:
    """PyTorch/XLA no longer supports GPUs."""
    return Finding("exclude", f"PyTorch/XLA has no GPU build any more: use PyTorch itself on {case.chip_name}")


@rule("R171", facts("framework_choice", "exclude", "about 30 % slower than eager CUDA; 15 to 18 % in fp32",
"pytorch/xla issues 5116, 2901",
                    PACKAGES, kinds=("gpu",), runtimes=("torch-xla",)))
def torch_is_faster_than_torch_xla_on_gpus(case: Case) -> Finding | None:
    """On GPUs PyTorch itself was faster than PyTorch/XLA while that still ran there."""
    if case.workload.existing.framework != "torch-xla" and not case.needs("torch_xla"):
        return None
    return Finding(
        "exclude",
        f"on {case.chip_name} PyTorch itself was up to 30 % faster than PyTorch/XLA when that still ran there",
    )


@rule("R172", facts("framework_choice", "suggest", "GPT-2 on A100 clearly slower than in PyTorch", "jax-ml/jax issue 24411",
PACKAGES,
                    kinds=("gpu",), runtimes=("jax",)))
def jax_attention_wants_its_kernel(case: Case) -> Finding | None:
    """Attention in JAX on a GPU is slow unless the fused kernel is used."""
    if case.vendor != "nvidia" or case.workload.existing.framework != "jax" or not case.code.graph.head_widths:
        return None
    return Finding(
        "suggest",
        "before you blame the chip check that JAX uses the fused attention of cuDNN, computes in bf16 and donates its buffers; "
        "PyTorch is the one to compare with",
    )


@job_rule("R173", facts("framework_choice", "suggest", "1.5 ms an epoch in Keras 2, 32 ms in Keras 3 on TensorFlow, 3 ms on JAX",
                        "keras-team/keras issue 18648", PACKAGES))
def tiny_keras_models_are_all_overhead(code: Code) -> Finding | None:
    """A tiny model in Keras spends its time in Python: Keras on JAX, or many steps a call."""
    if code.workload.existing.framework != "keras" or not 0 < code.flop_per_step < TINY_STEP_FLOP:
        return None
    return Finding(
        "suggest",
        f"a step of {code.flop_per_step:,} FLOP is all overhead in Keras: take its JAX backend, which was ten times as fast, "
        "and run many steps in one call",
    )


@rule("R174", facts("framework_choice", "suggest", "50 ms against 500 to 700 ms a step",
"pytorch/xla issues 2574, 1221, 1544, 2530", PACKAGES,
                    kinds=TPU_ONLY, runtimes=("torch-xla",)))
def torch_xla_feeds_from_its_process(case: Case) -> Finding | None:
    """PyTorch/XLA feeds a TPU from its own process, where TensorFlow and JAX have pipelines of the host."""
    if case.workload.data.decode is None:
        return None
    return Finding(
        "suggest",
        f"{case.workload.data.decode} is decoded in PyTorch's own processes: tf.data or Grain feed a TPU better; else use a "
        "machine with more processors and the loader that runs ahead",
    )


@rule("R175", facts("global_batch_semantics", "suggest", "61 against 81 % after 10 epochs", "pytorch/xla issue 2565", PRACTICE))
def more_replicas_mean_another_batch(case: Case) -> Finding | None:
    """With more replicas the batch, the learning rate and batch norm change their meaning."""
    if case.most < 2 or not case.workload.trains or "conv" not in case.code.graph.kinds:
        return None
    own = case.workload.batch // case.most
    return Finding(
        "suggest",
        f"a batch of {case.workload.batch} over {case.most} chips is {own} each: scale the learning rate to the whole batch, "
        "and mind that batch norm sees a chip's part only",
    )


@rule("R176", facts(
    "topology", "suggest", "hangs until all hosts have started", "jax-ml/jax issues 19971, 12456", PRACTICE, kinds=TPU_ONLY,
))
def every_host_starts_the_program(case: Case) -> Finding | None:
    """A slice over several hosts hangs until the program is started on all of them."""
    shape = slice_of(case.key, case.most) if case.key and case.counts else None
    if shape is None or shape.hosts < 2:
        return None
    return Finding(
        "suggest",
        f"{case.most} chips have {shape.hosts} hosts: start the program on all of them, since it waits for the last",
    )


@rule("R177", facts(
    "topology", "warn", "no such slice", "AI-Hypercomputer/maxtext issue 372; slices of the catalog", PACKAGES, kinds=TPU_ONLY,
))
def separate_slices_do_not_join(case: Case) -> Finding | None:
    """TPU chips that are no slice have no links between them."""
    fault = next((fault for count in case.counts if (fault := count_fault(case.key, count))), None)
    if fault is None or case.attached:
        return None
    return Finding("warn", f"{fault}; separate machines cannot be joined into one")


@rule("R178", facts(
    "interconnect", "warn", "no ICI between them", "AI-Hypercomputer/maxtext issue 372", PACKAGES, kinds=TPU_ONLY,
))
def separate_machines_have_no_ici(case: Case) -> Finding | None:
    """Separate TPU machines that are no slice only share the data centre network."""
    if case.attached or not any(count_fault(case.key, count) for count in case.counts):
        return None
    return Finding("warn", "machines of separate slices share the data centre network only: each sees its own chips")


@rule("R179", facts(
    "version_conflict", "warn", "hangs unless NCCL_P2P_DISABLE=1", "NVIDIA/nccl-tests issue 117", PRACTICE, kinds=("gpu",),
))
def consumer_cards_have_no_peers(case: Case) -> Finding | None:
    """RTX 4090 and 5090 cards have no peer access, which NCCL must be told."""
    if case.key not in ("rtx4090", "rtx5090") or case.most < 2:
        return None
    return Finding(
        "warn",
        f"{case.chip_name} has no peer access: set NCCL_P2P_DISABLE=1 where a job over several hangs, and expect slower sums",
    )


@rule("R180", facts(
    "interconnect", "penalise warn",
    "rank x 0.8 from 2 chips on where PCIe joins them: the exchanges are counted, not that the host starts each; half as fast",
    "Lightning-AI/litgpt issue 1580", PRACTICE, kinds=("gpu",),
))
def small_models_answer_from_one_card(case: Case) -> Finding | None:
    """A small model answers faster from one GPU than tensor parallel from several."""
    chip, graph = case.chip, case.code.graph
    if chip is None or case.workload.trains or not graph.decodes or not graph.decode_rows < case.most:
        return None
    if case.code.weight_bytes > 0.6 * chip.memory_bytes:
        return None
    reason = f"the model fits one {chip.name}: tensor parallel over {case.most} exchanges twice in each layer"
    if "pcie" in (chip.link_name or "").lower():
        return Finding("penalise", f"{reason}, and two cards on PCIe were half as fast as one", 0.8, 2)
    return Finding("warn", f"{reason}: little is gained while one request is answered")


@rule("R181", facts("runtime_not_used", "warn", "falls back to the CPU with a warning",
"microsoft/onnxruntime issues 23372, 23612", PACKAGES,
                    kinds=("gpu",)))
def onnx_runtime_falls_back_silently(case: Case) -> Finding | None:
    """ONNX Runtime falls back to the CPU when its GPU provider cannot be loaded."""
    if not case.needs("onnxruntime-gpu"):
        return None
    return Finding(
        "warn",
        "ONNX Runtime falls back to the CPU with no more than a warning: check which providers are active, and fail loudly",
    )


@job_rule("R182", facts(
    "cost_per_result", "suggest", "price / rate", "huggingface/transformers pull request 13022; pytorch/xla issue 1580", PRACTICE,
))
def results_have_a_price(code: Code) -> Finding | None:
    """Pools of different size and price are compared by price for a result, not by rate or price alone."""
    if code.workload.objective != "cost" or len(set(code.asked)) < 2:
        return None
    return Finding("suggest", "compare price / rate: what a result costs, not the hour of a pool or its speed; date the prices")


@job_rule("R183", facts("spec_wrong", "warn", "v4-8 has 4 chips", "TPU naming; marin-community/marin issue 1826", SILICON))
def names_of_tpus_count_cores(code: Code) -> Finding | None:
    """Names of TPU v2, v3, v4, v5p and v7 slices count cores, two for a chip."""
    for said in code.workload.assumptions:
        found = re.match(r"(?P<name>(?:tpu-?)?v\d\w*-(?P<number>\d+)) = (?P<chips>\d+) chips?\b", said)
        if found and found["number"] != found["chips"]:
            return Finding(
                "warn",
                f"{found['name']} has {found['chips']} chips, its name counts {found['number']} cores: peaks, memory and prices "
                "here are for a chip",
            )
    return None


@rule("R184", facts(
    "availability", "warn", "insufficient capacity", "skypilot-org/skypilot issues 4579, 3840", PACKAGES, kinds=TPU_ONLY,
))
def a_price_is_no_capacity(case: Case) -> Finding | None:
    """A price in a list does not mean that v5p can be had."""
    if case.key != "tpu-v5p" or case.attached:
        return None
    return Finding(
        "warn",
        "v5p is often out of capacity without a reservation: ask for quota in its region, and name a second choice",
    )


@rule("R185", facts("experimental", "warn", "13 compilations in place of 1 in one report",
"pytorch/xla pull request 5631, issue 4741", PACKAGES,
                    kinds=TPU_ONLY, runtimes=("torch-xla",)))
def bounded_shapes_are_experimental(case: Case) -> Finding | None:
    """Dynamic shapes in PyTorch/XLA are experimental."""
    if not case.code.names("nonzero", "masked-select", "boolean-mask", "unique", "where-indices", "dynamic-shape",
    "dynamic-shapes"):
        return None
    return Finding("warn", "dynamic shapes in PyTorch/XLA are experimental and were never finished: do not plan with them")
