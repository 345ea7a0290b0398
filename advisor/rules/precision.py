"""Rules about number formats that a chip has no units for, or only slow ones."""

from advisor.rates import NEVER_EMULATED
from advisor.rules import Finding, rule
from advisor.rules.case import Case, canonical

WHEN_TPU = 'cloud.google.com/tpu/docs/intro-to-tpu, "When to use TPUs" (2026)'
DERIVED = "dense peaks of the accelerator table"


def _complex_double(case: Case) -> bool:
    named = any(canonical(op) in ("complex128", "fft64", "c128") for op in case.workload.existing.ops)
    ops = (op for block in case.workload.blocks for op in block.ops_forward)
    return named or any(op.kind == "fft" and op.dtype == "fp64" for op in (*case.workload.ops, *ops))


@rule("R016", flag="dtype_unsupported", source=f"{WHEN_TPU}; jax-ml/jax issues 10158, 19769", as_of="2026-11-30")
def tpu_has_no_double_precision(case: Case) -> Finding | None:
    """TPUs have no fp64 units."""
    if not case.on_tpu or not case.uses_dtype("fp64"):
        return None
    return Finding("exclude", f"{case.chip_name} has no fp64 units: a few operations are emulated, most are not")


@rule("R017", flag="dtype_unsupported", source="jax-ml/jax issues 10158, 19769", as_of="2026-11-30")
def tpu_has_no_complex128(case: Case) -> Finding | None:
    """complex128 and fp64 FFTs are refused on TPU."""
    if not case.on_tpu or not _complex_double(case):
        return None
    return Finding("exclude", "complex128 and fp64 FFTs are refused on TPU: complex64 only")


@rule("R019", flag="dtype_slow", source=DERIVED, as_of="2026-11-30")
def b300_is_slow_in_fp64(case: Case) -> Finding | None:
    """B300 and GB300 have a thirtieth of the fp64 rate of their predecessors."""
    if case.key not in ("b300", "gb300") or not case.uses_dtype("fp64"):
        return None
    return Finding("penalise", f"{case.chip_name} does about 1.2 TFLOP/s in fp64, 30 times below B200 and H200", 1 / 30)


@rule("R020", flag="dtype_slow", source=DERIVED, as_of="2026-11-30")
def fp64_wants_other_chips(case: Case) -> Finding | None:
    """Work in fp64 is best placed on chips that keep fp64 units."""
    if case.kind != "gpu" or case.workload.dtype != "fp64" or case.chip is None:
        return None
    peak = case.chip.peak("fp64")
    if peak is None or peak >= 5e12:
        return None
    return Finding("suggest", "for fp64 prefer MI300X, MI250X, H100, H200 or A100, which keep full fp64 units")


@rule("R062", flag="dtype_unsupported", source=DERIVED, as_of="2026-11-30")
def no_units_no_stand_in(case: Case) -> Finding | None:
    """A format without units on the chip is refused, not emulated."""
    dtype = case.workload.dtype
    if case.chip is None or dtype not in NEVER_EMULATED or (dtype == "fp64" and case.on_tpu):
        return None
    if not case.chip.flop_per_s or case.chip.peak(dtype) is not None:
        return None
    return Finding("exclude", f"{case.chip_name} has no {dtype} rate in its datasheet: choose a format it has units for")


@rule("R064", flag="dtype_unsupported", source=DERIVED, as_of="2026-11-30")
def bf16_needs_units(case: Case) -> Finding | None:
    """T4 and V100 have no bf16 units: fp16 with loss scaling stands in."""
    if case.chip is None or case.kind != "gpu" or case.workload.dtype != "bf16":
        return None
    if case.chip.peak("bf16") is not None or case.chip.peak("fp16") is None:
        return None
    return Finding("penalise", f"{case.chip_name} has no bf16 units: use fp16 with loss scaling there", 0.8)


@rule("R065", flag="precision_default", source="jax.lax.Precision documentation (recalled)", as_of="2026-11-30")
def fp32_on_tpu_is_not_fp32(case: Case) -> Finding | None:
    """An fp32 matmul on TPU is one bf16 pass unless more are asked for."""
    if not case.on_tpu or case.workload.dtype not in ("fp32", "tf32"):
        return None
    reason = "fp32 matmuls on TPU are one bf16 pass by default; real fp32 costs 3 or 6 passes, which is what is estimated"
    return Finding("warn", reason)


@rule("R059", flag="dtype_slow", source="docs.cloud.google.com, TPU machines; jax 0.12.0.1 tpu_info", as_of="2026-11-30")
def fp8_is_no_faster_before_v7(case: Case) -> Finding | None:
    """fp8 on TPU v5e, v5p and v6e runs at the bf16 rate."""
    if case.key not in ("tpu-v5e", "tpu-v5p", "tpu-v6e") or case.workload.dtype != "fp8":
        return None
    return Finding("warn", f"fp8 on {case.chip_name} is no faster than bf16: it saves memory only")


@rule("R058", flag="dtype_slow", source="ai-dynamo/aiconfigurator system tables (@095f58a)", as_of="2026-11-30")
def int8_is_slow_on_b300(case: Case) -> Finding | None:
    """B300 and GB300 have about 3 % of B200's int8 rate."""
    if case.key not in ("b300", "gb300") or case.workload.dtype != "int8":
        return None
    return Finding("penalise", f"{case.chip_name} has about 3 % of B200's int8 rate: use fp8 there", 0.5)
