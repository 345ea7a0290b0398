"""Rules about which class of chip a job belongs on by its size and nature, and what feeds it. They suggest, numbers decide."""

from advisor.feeding import decoding_of
from advisor.rules import Finding, job_rule, rule
from advisor.rules.ages import PLATFORM, PRACTICE, SILICON, TPU_ONLY, facts
from advisor.rules.case import Case, Code
from advisor.rules.split_case import side_of
from catalog import slice_of
from core.format import memory

WHEN_TPU = 'cloud.google.com/tpu/docs/intro-to-tpu, "When to use TPUs" (2026)'
GUIDE = "cloud.google.com/tpu/docs/performance-guide"
METADATA = "PyPI metadata and pip resolver, 2026-11-30"
SMALL_STEP_FLOP = 5e9
"""A step that a large chip does in tens of microseconds: calling it takes as long."""
_REACHED = 0.4
"""Part of a chip's peak that dense work usually reaches, where a rule needs a figure before anything was predicted (prior)."""
FOREIGN_STORES = {
    "boto3": "S3", "s3fs": "S3", "s3torchconnector": "S3", "aiobotocore": "S3", "smart-open-s3": "S3", "awscli": "S3",
    "adlfs": "Azure storage", "azure-storage-blob": "Azure storage", "oci": "OCI storage", "ossfs": "OSS",
}


@rule("R048", facts(
    "small_work", "suggest", "below 5 GFLOP in a step, or minutes in all; computed from the case", WHEN_TPU, PRACTICE,
    kinds=TPU_ONLY,
))
def tiny_jobs_belong_elsewhere(case: Case) -> Finding | None:
    """A tiny model, a small batch or a job of minutes belongs on a CPU or one GPU."""
    flop = case.code.flop_per_step
    if case.code.graph.decodes or not 0 < flop < SMALL_STEP_FLOP or case.code.parameters > 50e6:
        return None
    return Finding(
        "suggest",
        f"a step of {flop / 1e9:.2g} GFLOP is too little for a TPU: take a CPU or one GPU, or put many steps or samples in one "
        "call",
    )


@job_rule("R049", facts(
    "none", "suggest", "weeks of work, matrix products, large batch; computed from the case", WHEN_TPU, PRACTICE,
))
def long_matrix_work_suits_tpus(code: Code) -> Finding | None:
    """Weeks of training that is mostly matrix products with a large batch suit a TPU."""
    steps, share, rows = code.workload.total_steps, code.graph.matrix_share, code.graph.rows
    if steps is None or share is None or rows is None or not code.workload.trains:
        return None
    days = steps * code.flop_per_step / (_REACHED * 1e15) / 86400
    clean = not (code.kernels or code.names("nonzero", "dynamic-shape", "gather", "scatter", "sort"))
    if days < 7 or share < 0.9 or rows < 1024 or not clean:
        return None
    return Finding(
        "suggest",
        f"{days:,.0f} days of work for a chip that reaches {_REACHED:.0%} of 1 PFLOP/s, {share:.0%} of it "
        f"matrix products over {rows:,} rows: the kind of job that TPUs are made for",
    )


@job_rule("R050", facts(
    "custom_kernel_cuda_only", "suggest", "GPU preferred", WHEN_TPU, PRACTICE,
))
def custom_operations_suit_gpus(code: Code) -> Finding | None:
    """A medium to large model with custom operations suits a GPU."""
    own = code.kernels - {"pallas"}
    weighed = not code.asked or any(side_of(key, count).kind == "tpu" for key, count in code.asked)
    if not own or not weighed or code.parameters < 1e7:
        return None
    return Finding(
        "suggest",
        f"the step has custom operations ({', '.join(sorted(own))}): GPUs are the class of chip for it until they are ported",
    )


@rule("R051", facts(
    "gather_scatter", "suggest warn", "SparseCore on v4, v5p, v6e and v7", f"{WHEN_TPU}; jax-tpu-embedding 0.2.0", SILICON,
    kinds=("gpu", "tpu"),
))
def large_tables_want_their_hardware(case: Case) -> Finding | None:
    """Very large embedding tables suit a TPU with SparseCores, or GPUs with TorchRec."""
    tables = case.code.graph.table_bytes
    if tables < 4e9:
        return None
    size = memory(tables)
    if case.kind == "gpu":
        return Finding("suggest", f"{size} of embedding tables: shard them by row or table with TorchRec")
    if case.key in ("tpu-v4", "tpu-v5p", "tpu-v6e", "tpu-v7"):
        return Finding(
            "suggest",
            f"{size} of embedding tables: keep them on the SparseCores (jax-tpu-embedding, or TorchRec on TorchTPU)",
        )
    return Finding("warn", f"{size} of embedding tables, and no SparseCore to look them up: rows are gathered by the vector unit")


@rule("R089", facts(
    "input_bound", "suggest", "time to read a sample over time to compute it; computed from the case", WHEN_TPU, PRACTICE,
    explains=True,
    kinds=("gpu", "tpu", "other"),
))
def reading_takes_longer_than_computing(case: Case) -> Finding | None:
    """A job that waits for its data gains nothing from a faster chip."""
    data, busy_s = case.workload.data, _busy_s(case, case.fewest)
    if not data.bytes_per_sample or not data.source_bytes_per_s or busy_s is None:
        return None
    read_s = case.workload.batch * data.bytes_per_sample / data.source_bytes_per_s
    if read_s <= busy_s:
        return None
    return Finding(
        "suggest",
        f"reading a step takes {read_s:.2g} s at the rate of the source, computing it at {_REACHED:.0%} of the peak "
        f"{busy_s:.2g} s: cure the input or take fewer or cheaper chips, CPUs among them",
    )


@rule("R090", facts(
    "input_bound", "warn",
    "host processors only, about 45 for each v6e chip; 120 pictures of 224 a second and processor; computed from the "
    "case", f"{GUIDE}; {METADATA}; pytorch/xla issue 3001", PLATFORM, explains=True, kinds=TPU_ONLY,
))
def tpus_do_not_decode(case: Case) -> Finding | None:
    """Decoding and augmenting on a TPU is left to the processors of its host."""
    told = _decoding(case)
    if told is None:
        return None
    return Finding(
        "warn",
        f"{told}: prepare beforehand (ArrayRecord with Grain, or tf.data); GPU nodes with DALI can write the shards",
    )


@rule("R206", facts(
    "input_bound", "warn", "120 pictures of 224 a second and processor; computed from the case",
    "pytorch/xla issue 3001; tensorflow/tpu issue 156",
    PRACTICE, explains=True, kinds=("gpu", "other"),
))
def few_processors_starve_gpus(case: Case) -> Finding | None:
    """Few processors cannot decode as fast as a GPU computes."""
    told = _decoding(case)
    if told is None:
        return None
    return Finding("warn", f"{told}: take more processors, decode on the GPU (DALI, nvImageCodec), or prepare beforehand")


def _busy_s(case: Case, chips: int) -> float | None:
    """Return seconds of a step at `_REACHED` of the 16-bit peak of so many chips; None where no peak is known."""
    chip = case.chip
    peak = None if chip is None else chip.peak("bf16") or chip.peak("fp16") or chip.peak("fp32")
    if peak is None or not case.code.flop_per_step:
        return None
    return case.code.flop_per_step / (_REACHED * peak * chips)


def _decoding(case: Case) -> str | None:
    """Return in words that the host decodes slower than the chips compute; None when it keeps up or nobody knows."""
    data = case.workload.data
    if case.attached and not data.host_vcpus:
        return None
    known, pool = slice_of(case.key, case.fewest) if case.key else None, case.code.smallest.get(case.key)
    hosts = pool.hosts if pool is not None else 1 if known is None else known.hosts
    count, vcpus = (case.fewest, None) if pool is None else (pool.count, pool.vcpus)
    decoding = decoding_of(data, case.key, count, hosts, vcpus)
    busy_s = _busy_s(case, count)
    if decoding is None or busy_s is None or decoding.seconds(case.workload.batch) <= busy_s:
        return None
    decode_s = decoding.seconds(case.workload.batch)
    return f"{decoding.words}: {decode_s:.2g} s a step, computing it at {_REACHED:.0%} of the peak {busy_s:.2g} s"


@rule("R091", facts(
    "input_location", "warn", "egress and latency", "general; storage clients of the code", PLATFORM, kinds=TPU_ONLY,
))
def data_of_another_cloud_is_copied_once(case: Case) -> Finding | None:
    """Data that lies in another cloud is copied to Google's storage once before a TPU trains on it."""
    found = case.needs(*FOREIGN_STORES)
    if not found or case.attached:
        return None
    stores = " and ".join(dict.fromkeys(FOREIGN_STORES[name] for name in found))
    return Finding(
        "warn",
        f"the code reads {stores} ({', '.join(found)}): copy the data to Google's storage once, near the TPU; each pass over "
        "the network costs egress and time",
    )


@rule("R092", facts(
    "host_bound", "warn", "2 NUMA nodes and 2 network cards", "docs.cloud.google.com/tpu/docs/tpu7x (2026)", PLATFORM,
    kinds=TPU_ONLY,
))
def tpu7x_hosts_have_two_halves(case: Case) -> Finding | None:
    """A TPU7x machine has two NUMA nodes, each with its own network card."""
    if case.key != "tpu-v7":
        return None
    return Finding(
        "warn",
        "bind each process of a TPU7x machine to its NUMA node: traffic between its two halves is a bottleneck",
    )
