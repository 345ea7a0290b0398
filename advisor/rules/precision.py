"""Rules about number formats that a chip has no units for, or only slow ones."""

from advisor.rates import NEVER_EMULATED
from advisor.rules import Finding, rule
from advisor.rules.ages import PLATFORM, SILICON, TPU_ONLY, facts
from advisor.rules.case import Case

WHEN_TPU = 'cloud.google.com/tpu/docs/intro-to-tpu, "When to use TPUs" (2026)'
DERIVED = "dense peaks of the accelerator table"
STAS = "stas00/ml-engineering (@744d01e, 2026-08-22)"
INFO = "jax 0.12.0.1 tpu_info"
NARROW = ("fp8", "int8", "fp4", "int4")
NO_INT8 = ("tpu-v7", "tpu-8i")
FAST_INT8 = ("tpu-v5e", "tpu-v5p", "tpu-v6e")


def _complex_double(case: Case) -> bool:
    if case.code.names("complex128", "fft64", "c128"):
        return True
    graph = case.code.graph
    return "complex128" in graph.dtypes or ("fft" in graph.kinds and "fp64" in graph.dtypes)


@rule("R016", facts(
    "dtype_unsupported", "exclude", "no units", f"{WHEN_TPU}; jax-ml/jax issues 10158, 19769",
    SILICON, kinds=TPU_ONLY,
))
def tpu_has_no_double_precision(case: Case) -> Finding | None:
    """TPUs have no fp64 units."""
    if not case.uses_dtype("fp64"):
        return None
    return Finding("exclude", f"{case.chip_name} has no fp64 units: a few operations are emulated, most are not")


@rule("R017", facts(
    "dtype_unsupported", "exclude", "refused by the compiler", "jax-ml/jax issues 10158, 19769",
    PLATFORM, kinds=TPU_ONLY,
))
def tpu_has_no_complex128(case: Case) -> Finding | None:
    """complex128 and fp64 FFTs are refused on TPU."""
    if not _complex_double(case):
        return None
    return Finding("exclude", "complex128 and fp64 FFTs are refused on TPU: complex64 only")


@rule("R019", facts("dtype_slow", "penalise", "rank x 1/30", DERIVED, SILICON, kinds=("gpu",)))
def b300_is_slow_in_fp64(case: Case) -> Finding | None:
    """B300 and GB300 have a thirtieth of the fp64 rate of their predecessors."""
    if case.key not in ("b300", "gb300") or not case.uses_dtype("fp64"):
        return None
    return Finding("penalise", f"{case.chip_name} does about 1.2 TFLOP/s in fp64, 30 times below B200 and H200", 1 / 30)


@rule("R020", facts(
    "dtype_slow", "suggest", "82 to 163 TFLOP/s on MI300X, 34 to 67 on H100, against about 1 on others", DERIVED,
    SILICON, kinds=("gpu",),
))
def fp64_wants_other_chips(case: Case) -> Finding | None:
    """Work in fp64 is best placed on chips that keep fp64 units."""
    if case.kind != "gpu" or case.workload.dtype != "fp64" or case.chip is None:
        return None
    peak = case.chip.peak("fp64")
    if peak is None or peak >= 5e12:
        return None
    return Finding("suggest", "for fp64 prefer MI300X, MI250X, H100, H200 or A100, which keep full fp64 units")


@rule("R062", facts(
    "dtype_unsupported", "exclude warn", "fp8 from compute capability 8.9 or MI300 on; narrow weights of inference are widened",
    f"{DERIVED}; vllm-project/vllm, quantisation by Marlin kernels", SILICON,
))
def no_units_no_stand_in(case: Case) -> Finding | None:
    """A format without units on the chip is refused, not emulated; narrow weights are widened where nothing is trained."""
    dtype = case.workload.dtype
    return None if dtype == "fp4" or (dtype == "int8" and case.key in NO_INT8) else _refused(case, dtype)


@rule("R063", facts("dtype_unsupported", "exclude warn", "Blackwell and MI355X only", STAS, SILICON))
def fp4_is_new(case: Case) -> Finding | None:
    """fp4 needs Blackwell or MI355X, or another chip with units for it."""
    return _refused(case, "fp4") if case.workload.dtype == "fp4" else None


def _refused(case: Case, dtype: str) -> Finding | None:
    if case.chip is None or dtype not in NEVER_EMULATED or (dtype == "fp64" and case.on_tpu):
        return None
    if not case.chip.flop_per_s or case.chip.peak(dtype) is not None:
        return None
    if dtype in NARROW and not case.workload.trains:
        return Finding(
            "warn",
            f"{case.chip_name} has no {dtype} units: weights are widened as they are read, which saves memory and traffic, no "
            "arithmetic",
        )
    return Finding("exclude", f"{case.chip_name} has no {dtype} rate in its datasheet: choose a format it has units for")


@rule("R064", facts("dtype_unsupported", "penalise", "rank x 0.8", DERIVED, SILICON, kinds=("gpu",)))
def bf16_needs_units(case: Case) -> Finding | None:
    """T4 and V100 have no bf16 units: fp16 with loss scaling stands in."""
    if case.chip is None or case.kind != "gpu" or case.workload.dtype != "bf16":
        return None
    if case.chip.peak("bf16") is not None or case.chip.peak("fp16") is None:
        return None
    return Finding("penalise", f"{case.chip_name} has no bf16 units: use fp16 with loss scaling there", 0.8)


@rule("R065", facts(
    "precision_default", "warn", "3 or 6 bf16 passes for real fp32", "jax.lax.Precision documentation (recalled)",
    PLATFORM, kinds=TPU_ONLY,
))
def fp32_on_tpu_is_not_fp32(case: Case) -> Finding | None:
    """An fp32 matmul on TPU is one bf16 pass unless more are asked for."""
    if case.workload.dtype not in ("fp32", "tf32"):
        return None
    reason = "fp32 matmuls on TPU are one bf16 pass by default; real fp32 costs 3 or 6 passes, which is what is estimated"
    return Finding("warn", reason)


@rule("R059", facts(
    "dtype_slow", "warn", "918 against 918 TFLOP/s on v6e", "docs.cloud.google.com, TPU machines; jax 0.12.0.1 tpu_info",
    SILICON, kinds=TPU_ONLY,
))
def fp8_is_no_faster_before_v7(case: Case) -> Finding | None:
    """fp8 on TPU v5e, v5p and v6e runs at the bf16 rate."""
    if case.key not in ("tpu-v5e", "tpu-v5p", "tpu-v6e") or case.workload.dtype != "fp8":
        return None
    return Finding("warn", f"fp8 on {case.chip_name} is no faster than bf16: it saves memory only")


@rule("R058", facts(
    "dtype_slow", "penalise", "rank x 0.5; 153 to 165 TOP/s, 3.4 % of B200", "ai-dynamo/aiconfigurator system tables (@095f58a)",
    SILICON, kinds=("gpu",),
))
def int8_is_slow_on_b300(case: Case) -> Finding | None:
    """B300 and GB300 have about 3 % of B200's int8 rate."""
    if case.key not in ("b300", "gb300") or case.workload.dtype != "int8":
        return None
    return Finding("penalise", f"{case.chip_name} has about 3 % of B200's int8 rate: use fp8 there", 0.5)


@rule("R057", facts(
    "quant_support", "exclude", "no int8 units; fp8 at 4,614 TFLOP/s on TPU7x",
    f"{INFO}; vllm tpu-inference support matrices (@b8692ff)",
    SILICON, kinds=TPU_ONLY,
))
def new_tpus_have_no_int8(case: Case) -> Finding | None:
    """TPU7x and TPU 8i have no int8 units: fp8 takes its place."""
    if case.key not in NO_INT8 or case.workload.dtype != "int8":
        return None
    return Finding("exclude", f"{case.chip_name} has no int8 units: quantise to fp8 for it")


@rule("R060", facts("quant_support", "suggest", "2 times the bf16 peak, int4 4 times", INFO, SILICON, kinds=TPU_ONLY))
def int8_doubles_tpus_up_to_v6e(case: Case) -> Finding | None:
    """int8 runs at twice the bf16 rate on TPU v5e, v5p and v6e."""
    if case.key not in FAST_INT8 or case.workload.trains or case.workload.dtype not in ("bf16", "fp16"):
        return None
    return Finding("suggest", f"{case.chip_name} does int8 at twice its bf16 rate: quantise if the accuracy holds")
