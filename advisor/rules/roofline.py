"""Rules about what limits a step: how many tokens fill a chip, what decoding waits for, what peaks are worth. They explain."""

from advisor.beliefs import ACHIEVABLE
from advisor.rules import Finding, job_rule, rule
from advisor.rules.ages import PACKAGES, PRACTICE, SILICON, TPU_ONLY, facts
from advisor.rules.case import Case, Code
from advisor.rules.split_case import side_of
from catalog import accelerators
from core.format import memory
from core.ops import DTYPE_BYTES

BOOK = "jax-ml.github.io/scaling-book (2025-02 snapshot)"
DERIVED = "dense peaks and memory rates of the accelerator table"
STAS = "stas00/ml-engineering (@744d01e, 2026-08-22)"
AGAINST = "alpharomercoma/MI300X-vs-H200 REPORT.md"
ANSWERS = ("infer", "serve", "rl")
PREFILL_BOUND = 240


def critical_rows(case: Case) -> float | None:
    """Return the rows at which a product is no longer bound by reading its weights; None when the chip's rates are not known.

    Source: jax-ml.github.io/scaling-book, roofline: peak / memory rate x bytes of a weight / 2.
    """
    chip = case.chip
    peak = None if chip is None else chip.peak(case.workload.dtype)
    if chip is None or peak is None or not chip.memory_bytes_per_s:
        return None
    return peak / chip.memory_bytes_per_s * DTYPE_BYTES[case.workload.dtype] / 2


@rule("R052", facts(
    "small_work", "warn", "rows / critical rows (bf16: v5e 240, v5p 166, v6e 560, H100 295, MI300X 247); computed from the case",
    f"{BOOK}; {DERIVED}", SILICON, explains=True, kinds=("gpu", "tpu", "other"),
))
def few_rows_read_more_than_they_compute(case: Case) -> Finding | None:
    """Below its critical number of rows a chip waits for weights, not for arithmetic."""
    rows, critical = case.code.graph.rows, critical_rows(case)
    if rows is None or critical is None or case.code.graph.decodes or (case.code.graph.matrix_share or 0) < 0.5:
        return None
    own = rows / case.fewest
    if own >= critical:
        return None
    return Finding(
        "warn",
        f"{own:,.0f} rows on a chip are {own / critical:.0%} of the {critical:,.0f} at which {case.chip_name} stops waiting for "
        "weights: raise the batch, or take fewer chips",
    )


@job_rule("R053", facts(
    "quant_support", "suggest", "half the critical rows (240 becomes 120 on v5e)", BOOK, PRACTICE, explains=True,
))
def int8_weights_halve_what_is_read(code: Code) -> Finding | None:
    """8-bit weights with 16-bit arithmetic halve what each decode step reads."""
    if not code.graph.decodes or code.workload.trains or code.workload.dtype not in ("bf16", "fp16"):
        return None
    return Finding(
        "suggest",
        f"int8 weights with {code.workload.dtype} arithmetic halve the {memory(code.weight_bytes)} that each decode step reads",
    )


@job_rule("R054", facts(
    "small_work", "suggest", "(weights + keys and values) / memory rate; computed from the case", BOOK, PRACTICE, explains=True,
))
def decoding_ranks_by_memory_rate(code: Code) -> Finding | None:
    """Decoding with a small batch is ranked by memory rate."""
    graph = code.graph
    if not graph.decodes or graph.decode_rows >= PREFILL_BOUND:
        return None
    read = code.weight_bytes + graph.cache_bytes
    return Finding(
        "suggest",
        f"each decode step of {graph.decode_rows} sequences reads {memory(code.weight_bytes)} of weights and "
        f"{memory(graph.cache_bytes)} of keys and values: at 1 TB/s {read / 1e9:.3g} ms at least; rank by memory rate",
    )


@job_rule("R055", facts(
    "small_work", "warn", "prefill is bound by arithmetic above about 480 tokens", BOOK, PRACTICE, explains=True,
))
def decoding_attention_waits_for_memory(code: Code) -> Finding | None:
    """Attention of a decode step is bound by memory whatever the batch is."""
    if not code.graph.decodes:
        return None
    return Finding(
        "warn",
        "attention in decode steps is bound by memory at any batch, since each sequence reads its own keys and values; prefill "
        "is bound by arithmetic above about 480 tokens",
    )


@job_rule("R056", facts(
    "none", "suggest", "above 240 tokens", BOOK, PRACTICE, explains=True,
))
def prefill_ranks_by_arithmetic(code: Code) -> Finding | None:
    """Prefill of more than 240 tokens is ranked by FLOP/s."""
    rows = code.graph.prompt_rows
    if not code.graph.decodes or rows <= PREFILL_BOUND:
        return None
    return Finding("suggest", f"the prompts have {rows:,} tokens together: their prefill is ranked by FLOP/s, not by memory rate")


@job_rule("R066", facts(
    "claim_conflict", "warn",
    "best matmul over peak: A100 .87, H100 .80, B200 .78, GB200 .73, MI300X .51, MI355X .68, Gaudi2 .97",
    STAS, SILICON, explains=True,
))
def peaks_of_vendors_are_not_alike(code: Code) -> Finding | None:
    """The share of its peak that the best matmul reaches differs from vendor to vendor."""
    named = {key: side_of(key, count) for key, count in code.asked}
    known = {key: ACHIEVABLE[key] for key in named if key in ACHIEVABLE}
    if len(known) < 2 or len({named[key].vendor for key in known}) < 2:
        return None
    shares = ", ".join(f"{key} {share:.0%}" for key, share in known.items())
    return Finding("warn", f"do not compare datasheet peaks: the best matmul reaches {shares} of them")


@rule("R067", facts(
    "claim_conflict", "warn", "H200 1.32 to 1.40 times as fast on 8B in bf16, although its peak is 0.76 of MI300X's", AGAINST,
    PACKAGES,
    explains=True, kinds=("gpu",),
))
def mi300x_trains_below_its_peak(case: Case) -> Finding | None:
    """MI300X trains slower than H200 although its peak is higher."""
    if case.key != "mi300x" or not case.workload.trains or case.workload.dtype != "bf16":
        return None
    return Finding(
        "warn",
        "MI300X has 1.32 times the bf16 peak of H200, which yet trained an 8B model 1.32 to 1.40 times as fast",
    )


@job_rule("R068", facts(
    "per_chip_memory", "suggest", "141 GB of weights for 70B in bf16; computed from the case", f"{AGAINST}; accelerator table",
    SILICON,
    explains=True,
))
def large_weights_fit_few_chips(code: Code) -> Finding | None:
    """A model of 70B in 16 bits fits a single chip only where memory is largest."""
    if code.workload.trains or code.weight_bytes < 75e9:
        return None
    room = code.weight_bytes + code.graph.cache_bytes
    able = [
        key for key, chip in accelerators().items()
        if chip.kind in ("gpu", "tpu") and chip.memory_bytes * 0.92 >= room and "announced" not in chip.clouds + chip.name
    ]
    if not able:
        return Finding("suggest", f"weights of {memory(code.weight_bytes)} fit no single chip of the catalog: plan for several")
    return Finding("suggest", f"weights of {memory(code.weight_bytes)} with their cache fit a single {', '.join(able)}")


@rule("R070", facts(
    "none", "suggest", "dense 39.8 %, mixture of experts 38 to 50 % on one pod, 35 % on four",
    "MaxText guides/optimization (@e591f30)",
    PACKAGES, explains=True, kinds=TPU_ONLY, runtimes=("jax",),
))
def maxtext_says_what_to_expect(case: Case) -> Finding | None:
    """MaxText publishes what share of a v6e's peak training reaches."""
    if case.key != "tpu-v6e" or not case.workload.trains or case.code.graph.hidden is None or case.code.parameters < 1e9:
        return None
    return Finding(
        "suggest",
        "MaxText reports 39.8 % of peak for dense models on v6e, 38 to 50 % with experts on one pod, 35 % on four: hold a "
        "measured run against that",
    )
