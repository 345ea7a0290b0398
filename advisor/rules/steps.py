"""Rules about steps that a compiler cannot hold still: changing shapes, data-dependent sizes, reads by the host."""

from advisor.rules import Finding, rule
from advisor.rules.case import Case, canonical

TROUBLESHOOT = "pytorch/xla docs/source/learn/troubleshoot.md (@41398bf)"
MANY_SHAPES = 10
DYNAMIC = ("nonzero", "masked-select", "boolean-mask", "unique", "where-indices", "data-dependent-loop", "dynamic-shape")


@rule("R030", flag="recompile", source=TROUBLESHOOT, as_of="2026-11-30")
def shapes_are_compiled_one_by_one(case: Case) -> Finding | None:
    """Each new input shape is compiled again on TPU."""
    shapes = case.workload.existing.distinct_shapes
    if not case.on_tpu or shapes is None or shapes <= MANY_SHAPES:
        return None
    reason = f"{shapes} distinct input shapes mean as many compilations: pad them into at most {MANY_SHAPES} buckets"
    return Finding("penalise", reason, 0.7)


@rule("R031", flag="dynamic_shape", source=f"{TROUBLESHOOT}; learn/dynamic_shape.md", as_of="2026-11-30")
def sizes_that_depend_on_data(case: Case) -> Finding | None:
    """Operations whose result size depends on the data are compiled again or refused on TPU."""
    found = tuple(op for op in case.workload.existing.ops if canonical(op) in DYNAMIC)
    if not case.on_tpu or not found:
        return None
    reason = f"{', '.join(found)} gives results whose size depends on the data: rewrite with masks of a fixed size"
    return Finding("penalise", reason, 0.6)


@rule("R032", flag="host_sync", source=TROUBLESHOOT, as_of="2026-11-30")
def reads_by_the_host_stop_the_device(case: Case) -> Finding | None:
    """Reading a value on the host in every step makes a TPU wait."""
    reads = case.workload.existing.host_reads_per_step
    if not case.on_tpu or not reads:
        return None
    many = "value is" if reads == 1 else "values are"
    reason = f"{reads} {many} read by the host in each step: keep them on the device and read every 100 steps"
    return Finding("penalise", reason, 0.8)


@rule("R102", flag="availability", source="stas00/ml-engineering (@744d01e); jax 0.12.0.1 tpu_info", as_of="2026-11-30")
def announced_is_not_available(case: Case) -> Finding | None:
    """Chips that were announced but cannot be confirmed to be available are for information only."""
    if case.chip is None or case.key not in ("tpu-8i", "tpu-8t", "rubin", "mi455x"):
        return None
    reason = f"{case.chip_name} is announced, nobody confirms that it can be had"
    named = any(wanted.accelerator == case.key for wanted in case.workload.pools)
    return Finding("warn", reason) if named else Finding("exclude", f"{reason}: name it among the pools to see it")
