"""Rules about models that answer: loading, on-chip memory, warm-up, and which quantised formats run where."""

from advisor.beliefs import UNCOMPILED_RUNTIMES
from advisor.compiling import compile_time, programs_of
from advisor.rules import Finding, rule
from advisor.rules.ages import PACKAGES, PRACTICE, SILICON, TPU_ONLY, facts
from advisor.rules.case import Case
from core import format as fmt
from core.ops import DTYPE_BYTES

ANSWERS = ("infer", "serve")
SERVERS = ("vllm", "vllm-tpu", "tpu-inference", "vllm-jax", "vllm-torchtpu", "jetstream", "sglang", "tensorrt-llm", "lmdeploy",
"tgi",
           "text-generation-inference")
QUANTISED_BEFORE = ("autoawq", "awq", "auto-gptq", "autogptq", "gptq", "gptqmodel", "compressed-tensors", "llm-compressor",
"gguf",
                    "llama-cpp", "llama-cpp-python", "exllama", "exllamav2", "exllamav3", "modelopt", "nvidia-modelopt")
WEIGHT_FORMATS = ("autoawq", "awq", "auto-gptq", "autogptq", "gptq", "gptqmodel", "exllama", "exllamav2")
NARROW = ("int8", "int4", "fp8", "fp4")
USABLE = 0.92
"""Part of a chip's memory that is left to a program."""
SCALAR_CONTEXT = 8192
USUAL_SHARE = 0.4
"""Part of its peak that a chip is taken to work at where only the order of magnitude counts."""
LONG_S = 4 * 3600.0
"""Work from which on no compilation is a matter."""
STARTS_SLOWLY = 0.25
"""Part of the work from which on compiling is worth a word."""
OLD_GPUS = ("v100", "p100")


@rule("R153", facts(
    "load_peak", "warn", "2 bytes a parameter while loading; computed from the case", "vllm-project/vllm issue 9331", PRACTICE,
    kinds=("gpu", "tpu", "other"),
))
def quantising_at_load_needs_room(case: Case) -> Finding | None:
    """Weights that are quantised while they are loaded pass through 16 bits first."""
    chip, dtype = case.chip, case.workload.dtype
    if chip is None or case.workload.task not in ANSWERS or dtype not in NARROW or case.needs(*QUANTISED_BEFORE):
        return None
    room, chips = USABLE * chip.memory_bytes, case.most
    staged, kept = 2.0 * case.code.parameters / chips, DTYPE_BYTES[dtype] * case.code.parameters / chips
    if staged <= room or kept > room:
        return None
    return Finding(
        "warn",
        f"{dtype} weights take {kept / 1e9:.1f} GB of a chip, but quantising them while loading takes {staged / 1e9:.1f} of "
        f"{chip.memory_bytes / 1e9:.0f} GB: load a checkpoint that is quantised already",
    )


@rule("R154", facts(
    "onchip_memory", "warn", "1 MB of scalar memory; 16,384 failed where 8,192 worked", "vllm-project/vllm issue 8318", PACKAGES,
    kinds=TPU_ONLY,
))
def page_tables_fill_scalar_memory(case: Case) -> Finding | None:
    """Page tables of a long context fill the scalar memory of a small TPU."""
    context = case.code.graph.context
    if case.key not in ("tpu-v5e", "tpu-v4", "tpu-v3", "tpu-v2") or context <= SCALAR_CONTEXT or not case.needs(*SERVERS):
        return None
    return Finding(
        "warn",
        f"a context of {context:,} needs page tables beyond 1 MB of scalar memory on {case.chip_name}: stay at "
        f"{SCALAR_CONTEXT:,}, or take v6e or a GPU",
    )


@rule("R155", facts(
    "onchip_memory", "warn", "29.95 of 16 MB of vector memory", "pytorch/xla issue 7942", PACKAGES, kinds=TPU_ONLY,
    runtimes=("torch-xla",),
))
def generate_is_not_made_for_xla(case: Case) -> Finding | None:
    """Transformers' generate in PyTorch/XLA makes steps that exceed vector memory."""
    if case.workload.task not in ANSWERS or not case.code.graph.decodes or not case.needs("transformers"):
        return None
    return Finding(
        "warn",
        "transformers' generate in PyTorch/XLA asked for 30 MB of 16 MB vector memory and spilled: use a server with a static "
        "cache",
    )


@rule("R156", facts(
    "overhead", "penalise", "rank x 0.5 from 5 chips on; 8 ranks failed where 4 worked", "vllm-project/vllm issue 2856", PACKAGES,
    kinds=("gpu",),
))
def ranks_cost_memory_each(case: Case) -> Finding | None:
    """Each rank of a server keeps captured graphs and buffers of its own, which small cards feel."""
    chip = case.chip
    if chip is None or case.most <= 4 or chip.memory_bytes > 50e9 or not case.needs(*SERVERS):
        return None
    share = case.code.weight_bytes / case.most / chip.memory_bytes
    if share < 0.1:
        return None
    return Finding(
        "penalise",
        f"{case.most} ranks each keep captured graphs and buffers on cards of {chip.memory_bytes / 1e9:.0f} GB: more than 4 may "
        "fail while graphs are captured; try 4, or no capture",
        0.5,
        5,
    )


@rule("R157", facts(
    "startup_time", "warn", "30 shapes in 10 minutes; up to 30 minutes cold, 5 with a cache",
    "vllm-project/vllm pull request 6856", PACKAGES,
    kinds=TPU_ONLY,
))
def servers_on_tpu_warm_up(case: Case) -> Finding | None:
    """A server on a TPU compiles its shapes before it answers."""
    shapes = case.workload.existing.distinct_shapes or 0
    if case.workload.task != "serve" or not (case.needs(*SERVERS) or shapes > 1 or case.workload.where.spot):
        return None
    often = ", each time that a spot machine is taken away" if case.workload.where.spot else ""
    return Finding(
        "warn",
        f"warming up takes minutes before the first answer (about 30 shapes in 10 minutes){often}: keep the compilation cache",
    )


@rule("R158", facts(
    "startup_time", "warn", "from a quarter of the work on; 40 s against 5 to 6 s on a T4, about 2 minutes for the first call",
    "sanchit-gandhi/whisper-jax issue 130; catalog/data/compile_times.csv", PRACTICE, explains=True, kinds=("gpu", "tpu"),
    by_runtime=True,
))
def short_jobs_wait_for_the_compiler(case: Case) -> Finding | None:
    """A few calls, or a short job, mostly wait for the first one to compile."""
    steps, peak = case.workload.total_steps, None if case.chip is None else case.chip.peak("bf16")
    if steps is None or peak is None or case.runtime.id in UNCOMPILED_RUNTIMES:
        return None
    busy_s = steps * case.code.flop_per_step / (USUAL_SHARE * peak * case.fewest)
    if busy_s > LONG_S:
        return None
    compile_s = compile_time(programs_of(case.workload), case.runtime.id, case.kind, case.fewest, {})
    if compile_s.mid < STARTS_SLOWLY * busy_s:
        return None
    return Finding(
        "warn",
        f"compiling in {case.runtime.id} is estimated at {fmt.seconds(compile_s.mid)} ({fmt.seconds(compile_s.low)} to "
        f"{fmt.seconds(compile_s.high)}), a quarter of the whole job or more: keep a compilation cache on disk, or run a few "
        "calls on a GPU in a runtime that compiles nothing",
    )


@rule("R159", facts(
    "quant_support", "exclude", "compute capability 7.5 or newer", "vllm-project/vllm issue 1488", SILICON, kinds=("gpu",),
))
def awq_needs_turing(case: Case) -> Finding | None:
    """Kernels for AWQ need compute capability 7.5, which V100 and P100 lack."""
    found = case.needs(*WEIGHT_FORMATS)
    if case.key.split("-", maxsplit=1)[0] not in OLD_GPUS or not found:
        return None
    return Finding("exclude", f"{', '.join(found)} has kernels from compute capability 7.5 on, {case.chip_name} is older")


@rule("R160", facts(
    "version_conflict", "warn", "merged in 2026-02", "vllm-project/tpu-inference pull request 1659", PACKAGES, kinds=TPU_ONLY,
))
def awq_on_tpu_is_new(case: Case) -> Finding | None:
    """AWQ and GPTQ on TPU need a recent build of vLLM for TPU."""
    found = case.needs(*WEIGHT_FORMATS)
    if not found:
        return None
    return Finding(
        "warn",
        f"{', '.join(found)} on TPU needs a tpu-inference of 2026-02 or newer: earlier builds refuse bf16 or fail in fp16",
    )


@rule("R161", facts(
    "dtype_unsupported", "warn", "bf16 in its place", "tloen/alpaca-lora issue 58; framework support table", SILICON,
    kinds=TPU_ONLY,
))
def fp16_is_no_format_of_tpus(case: Case) -> Finding | None:
    """TPUs have no fp16 units: bf16 takes its place."""
    if case.workload.dtype != "fp16":
        return None
    return Finding("warn", f"{case.chip_name} has no fp16 units, and kernels in fp16 fail there: use bf16")
