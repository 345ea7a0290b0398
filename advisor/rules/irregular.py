"""Rules about work that is no matrix product: lookups, small linear algebra, transforms, loops of dependent steps.

No part of the cost model knows these operations well: the factors are the smallest that public measurements report, rounded.
"""

from advisor.rules import Finding, job_rule, rule
from advisor.rules.ages import PACKAGES, PRACTICE, SILICON, TPU_ONLY, facts
from advisor.rules.case import Case, Code
from advisor.rules.scattered import is_aside

ACCELERATORS = ("gpu", "tpu")
XLA_RUNTIMES = ("jax", "keras-jax", "tf-xla")
LINALG = ("linalg", "svd", "eigh", "eigvalsh", "qr", "cholesky", "lu", "inv", "inverse", "pinv", "lstsq", "solve", "det", "expm",
"slogdet")
SPARSE = ("sparse", "bcoo", "bcsr", "coo", "csr", "sparse-matmul", "sparse-tensor", "spmm", "spgemm")
RECURRENT = ("rnn", "lstm", "gru")
VOLUMES = ("conv3d", "conv-3d", "convolution-3d")
BAGS = 1e6
NO_SPARSE_CORE = ("tpu-v2", "tpu-v3", "tpu-v5e")
LONG_LOOP = 1_000
CHAIN, MATRIX_UNIT = 50, 128
"""Dependent steps of recurrent layers that make a chain; rows at which one of them fills the matrix unit of a TPU."""
SMALL_STEP_FLOP = 1e6


def _step_flop(case: Case) -> float:
    """Return FLOPs of one dependent step of the loop that the user states."""
    return case.code.flop_per_step / max(1, case.workload.existing.serial_steps or 1)

@rule("R136", facts(
    "gather_scatter", "warn", "vector unit in place of a SparseCore", "tensorflow/tensorflow issue 43784", SILICON,
    kinds=TPU_ONLY,
))
def lookups_want_a_sparse_core(case: Case) -> Finding | None:
    """Millions of lookups in a step want SparseCores, which v2, v3 and v5e lack."""
    if case.key not in NO_SPARSE_CORE or not _bags(case.code):
        return None
    return Finding(
        "warn",
        f"{case.code.graph.lookups:,} lookups in a step and no SparseCore: use the embedding interface of the framework for "
        "TPUs, a TPU that has them, or a GPU",
    )


@rule("R137", facts(
    "onchip_memory", "warn", "vector memory of 16 MB", "tensorflow/tensorflow issue 43784", SILICON, kinds=TPU_ONLY,
))
def lookups_fill_vector_memory(case: Case) -> Finding | None:
    """A plain lookup of very many values at once exhausts the vector memory of a TPU when it is compiled."""
    if case.key not in NO_SPARSE_CORE or not _bags(case.code):
        return None
    return Finding(
        "warn",
        f"{case.code.graph.lookups:,} values looked up at once may exhaust the vector memory when the step is compiled: split "
        "the lookup or use the embedding interface",
    )


def _bags(code: Code) -> bool:
    return code.graph.lookups >= BAGS and code.graph.vocabulary is None


@rule("R138", facts(
    "comm_overhead", "suggest", "one all-to-all a lookup saved", "keras-team/keras-rs pull request 94", PRACTICE,
    kinds=ACCELERATORS,
))
def small_tables_are_replicated(case: Case) -> Finding | None:
    """Embedding tables that fit one chip are faster when each chip has them all."""
    tables, chip = case.code.graph.table_bytes, case.chip
    if chip is None or case.most < 2 or case.code.graph.vocabulary is not None or not 0 < 3 * tables < 0.5 * chip.memory_bytes:
        return None
    return Finding(
        "suggest",
        "the embedding tables with their states fit one chip: give each chip all of them; spreading them costs an all-to-all "
        "for each lookup",
    )


@job_rule("R139", facts("serving", "warn", "terabytes", "tensorflow/recommenders issue 127", PRACTICE))
def huge_tables_are_hard_to_serve(code: Code) -> Finding | None:
    """Embedding tables of terabytes are limited by the store that serves them."""
    if code.graph.table_bytes < 1e12:
        return None
    return Finding(
        "warn",
        f"{code.graph.table_bytes / 1e12:.2g} TB of embedding tables, and two to three times that with an optimizer: the store "
        "that serves them is the limit; hash or narrow them, or shard over parameter servers",
    )


@job_rule("R140", facts("sparse_not_paying", "warn", "dense unless about 1 % is set", "jax-ml/jax issues 18249, 14821", PRACTICE))
def sparse_formats_pay_late(code: Code) -> Finding | None:
    """Sparse formats pay only when about one entry in a hundred is set, or fewer."""
    found = code.names(*SPARSE)
    if not found:
        return None
    return Finding(
        "warn",
        f"{', '.join(found)}: stay dense unless about 1 % of the entries or fewer are set; a product of two sparse arrays makes "
        "every pair of entries",
    )


@rule("R141", facts(
    "op_slow", "penalise warn", "rank x 0.02 where the sides are known, else 0.3; SVD of 128 x 64: 0.35 s on v3 against 0.0015 s",
    "jax-ml/jax issue 10052", PRACTICE,
    kinds=TPU_ONLY,
))
def small_linear_algebra_crawls_on_tpu(case: Case) -> Finding | None:
    """Factorisations of small matrices are hundreds of times slower on a TPU than on a CPU."""
    sides = [side for _, side in case.code.graph.linalg]
    found = case.code.names(*LINALG)
    if (sides and min(sides) > 1024) or not (sides or found):
        return None
    if not sides and is_aside(case):
        return Finding("warn", f"{', '.join(found)} in the step: a TPU has no good kernel for small matrices; mind how often")
    what = f"linear algebra on sides of {min(sides)}" if sides else ", ".join(found)
    return Finding(
        "penalise",
        f"{what}: a TPU has no good kernel (SVD of 128 x 64 took 0.35 s against 0.0015 s): do it on a CPU",
        0.02 if sides else 0.3,
    )


@rule("R142", facts(
    "op_slow", "penalise", "rank x 0.02; 100,000 eigenproblems of 2 x 2: 7.3 s against 0.02 s",
    "tensorflow/tensorflow issue 30466",
    PRACTICE, kinds=("gpu",),
))
def tiny_matrices_crawl_on_gpus(case: Case) -> Finding | None:
    """Factorisations of tiny matrices are started one by one on a GPU."""
    sides = [side for _, side in case.code.graph.linalg]
    if not sides or min(sides) > 64:
        return None
    return Finding(
        "penalise",
        f"linear algebra on sides of {min(sides)} is started matrix by matrix on a GPU: do it on a CPU, or by a closed formula",
        0.02,
    )


@rule("R143", facts(
    "small_work", "warn", "a launch for each matrix", "tensorflow/tensorflow issue 30466", PRACTICE, kinds=ACCELERATORS,
))
def tiny_matrices_are_too_little_work(case: Case) -> Finding | None:
    """Each tiny matrix is too little work for an accelerator."""
    sides = [(count, side) for count, side in case.code.graph.linalg if side <= 64]
    if not sides:
        return None
    count, side = sides[0]
    return Finding("warn", f"{count:,} matrices of side {side}: each is done before its call is over")


@rule("R144", facts(
    "op_slow", "penalise", "rank x 0.1; a device step of over 10 minutes", "pytorch/xla issue 2383", PACKAGES, kinds=TPU_ONLY,
))
def volumes_are_untested_on_tpu(case: Case) -> Finding | None:
    """Three-dimensional convolutions on a TPU are an untested path of its compiler, whichever framework asks for them."""
    if not (case.code.graph.volumes or case.code.names(*VOLUMES)):
        return None
    return Finding("penalise", "a step of three-dimensional convolutions took over 10 minutes on a TPU: use a GPU", 0.1)


@rule("R145", facts("framework_choice", "penalise", "rank x 0.1; 41.3 ms against 0.46 ms", "openxla/xla issue 34273", PACKAGES,
kinds=("gpu",),
                    runtimes=XLA_RUNTIMES))
def xla_picks_slow_volumes(case: Case) -> Finding | None:
    """On NVIDIA GPUs XLA picks slow algorithms for three-dimensional convolutions."""
    if case.vendor != "nvidia" or not (case.code.graph.volumes or case.code.names(*VOLUMES)):
        return None
    return Finding(
        "penalise",
        "XLA picked an algorithm 90 times slower than PyTorch's for a three-dimensional convolution: use PyTorch, or measure "
        "other layouts",
        0.1,
    )


@rule("R146", facts(
    "precision_default", "penalise warn",
    "rank x 0.5; 0.15 where fp32 is wanted and transforms are most of the work: six passes, which nothing asks for, would be 1/6",
    "jax-ml/jax issue 9881", PRACTICE, kinds=TPU_ONLY,
))
def transforms_ignore_the_precision(case: Case) -> Finding | None:
    """The precision of a Fourier transform on a TPU is not governed by the matmul setting."""
    if not (case.code.names("fft", "rfft", "fft2", "ifft", "stft") or "fft" in case.code.graph.kinds):
        return None
    reason = "Fourier transforms on a TPU stay inexact whatever matmul precision is set: take a GPU where digits matter"
    if "fft" not in case.code.graph.kinds and is_aside(case):
        return Finding("warn", reason)
    share = case.code.graph.matrix_share
    decides = case.workload.dtype == "fp32" and "fft" in case.code.graph.kinds and share is not None and share < 0.5
    return Finding("penalise", reason, 0.15 if decides else 0.5)


@rule("R147", facts(
    "serial_scan", "penalise", "rank x 0.001; ten million steps: 0.06 s on a CPU, 81.6 s on a GPU",
    "QuantEcon/lecture-python-programming "
    "issue 440; jax-ml/jax issue 2491", PRACTICE, kinds=ACCELERATORS,
))
def long_loops_of_little_work_suit_a_cpu(case: Case) -> Finding | None:
    """A long loop of dependent, tiny steps suits a CPU."""
    steps = case.workload.existing.serial_steps
    if steps is None or steps < LONG_LOOP or _step_flop(case) > SMALL_STEP_FLOP:
        return None
    return Finding(
        "penalise",
        f"{steps:,} dependent steps of little work: each waits about 8 us for the next on an accelerator; do it on a CPU",
        0.001,
    )


@rule("R148", facts(
    "small_work", "warn", "8 us a step", "QuantEcon/lecture-python-programming issue 440", PRACTICE, kinds=ACCELERATORS,
))
def steps_of_a_loop_are_too_little_work(case: Case) -> Finding | None:
    """A dependent step of a few operations leaves an accelerator idle."""
    steps = case.workload.existing.serial_steps
    if steps is None or steps < LONG_LOOP or _step_flop(case) > SMALL_STEP_FLOP:
        return None
    return Finding(
        "warn",
        f"{_step_flop(case):,.0f} FLOP in each of {steps:,} dependent steps: nothing is there to do in parallel",
    )


@rule("R149", facts(
    "serial_scan", "penalise warn",
    "rank x 0.1 in PyTorch/XLA, 0.5 in others below 128 rows on a chip; an epoch: TPU 1,748 s, CPU 302 s, GPU 12 s",
    "pytorch/xla issues 2422, 1027",
    PRACTICE, kinds=TPU_ONLY, by_runtime=True,
))
def recurrent_layers_are_serial(case: Case) -> Finding | None:
    """Recurrent layers are chains of small steps, which PyTorch/XLA even unrolls into one graph."""
    steps, named = case.code.graph.serial_steps, case.code.names(*RECURRENT)
    if not steps and not named:
        return None
    what = f"{steps:,} dependent steps of recurrent layers" if steps else ", ".join(named)
    if case.runtime.id == "torch-xla":
        return Finding(
            "penalise",
            f"{what} are unrolled into one graph by PyTorch/XLA: a GPU with cuDNN was 140 times as fast",
            0.1,
        )
    rows = case.code.graph.recurrent_rows // case.fewest
    if steps >= CHAIN and rows < MATRIX_UNIT:
        return Finding(
            "penalise",
            f"{what}, {rows} rows in each, do not fill a TPU: a GPU with cuDNN keeps the whole chain in one kernel",
            0.5,
        )
    return Finding("warn", f"{what} are too small to fill a TPU: use scan, or a GPU with cuDNN")


@rule("R150", facts(
    "compile_time", "warn", "grows with the steps", "pytorch/xla issue 1027", PRACTICE, kinds=TPU_ONLY, runtimes=("torch-xla",),
))
def unrolled_steps_compile_long(case: Case) -> Finding | None:
    """The time to compile grows with the steps that PyTorch/XLA unrolls."""
    steps = case.code.graph.serial_steps
    if steps < 50:
        return None
    return Finding("warn", f"{steps:,} unrolled steps make a graph that compiles for minutes: use a scan-based layer")


@rule("R151", facts("graph_growth", "warn", "over six minutes in the compiler against 2.7 ms of work", "pytorch/xla issue 6614",
PRACTICE,
                    runtimes=("torch-xla",)))
def python_loops_grow_the_graph(case: Case) -> Finding | None:
    """A Python loop in PyTorch/XLA is traced into one growing graph unless it is cut."""
    steps = case.workload.existing.serial_steps
    if steps is None or steps < 2:
        return None
    return Finding(
        "warn",
        f"a loop of {steps:,} steps is traced into one growing graph: cut it with torch_xla.sync() in each step",
    )


@rule("R152", facts("recompile", "warn", "a new graph each time", "pytorch/xla issue 6614", PRACTICE, runtimes=("torch-xla",)))
def grown_graphs_are_new_graphs(case: Case) -> Finding | None:
    """A graph of another length is compiled anew in PyTorch/XLA."""
    steps = case.workload.existing.serial_steps
    if steps is None or steps < 2:
        return None
    return Finding("warn", f"uncut, each further step of {steps:,} makes a longer graph that is compiled anew")
