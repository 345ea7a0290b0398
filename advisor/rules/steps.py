"""Rules about steps that a compiler cannot hold still: changing shapes, sizes that depend on data, reads by the host, tracing."""

from advisor.rules import Finding, rule
from advisor.rules.ages import PACKAGES, PRACTICE, TPU_ONLY, facts
from advisor.rules.case import KERAS, Case

TROUBLESHOOT = "pytorch/xla docs/source/learn/troubleshoot.md (@41398bf)"
EAGER = "pytorch/xla docs/source/learn/eager.md and README (@41398bf)"
MANY_SHAPES = 10
UNBOUNDED_SHAPES = 1000
SHAPE_FACTORS = ((50, 0.7), (200, 0.4), (UNBOUNDED_SHAPES, 0.2))
"""Up to so many shapes, rank by so much; a judgement, since each costs a compilation whatever the step takes."""
"""A thousand compilations of seconds each are hours: nothing that buckets would not have to cure first."""
DYNAMIC = (
    "nonzero", "masked-select", "boolean-mask", "boolean-indexing", "unique", "where-indices", "data-dependent-loop",
    "dynamic-shape", "dynamic-shapes", "nms", "roi-align", "packed-sequence", "ragged", "ragged-tensor",
)
TRACED_OPERATIONS = 2000


@rule("R030", facts(
    "recompile", "penalise exclude", "rank x 0.7 above 10 shapes, 0.4 above 50, 0.2 above 200; out from 1,000 or one a step",
    TROUBLESHOOT,
    PRACTICE, kinds=TPU_ONLY,
))
def shapes_are_compiled_one_by_one(case: Case) -> Finding | None:
    """Each new input shape is compiled again on TPU."""
    shapes, steps = case.workload.existing.distinct_shapes, case.workload.total_steps
    if shapes is None or shapes <= MANY_SHAPES:
        return None
    cure = f"pad them into at most {MANY_SHAPES} buckets"
    if shapes >= UNBOUNDED_SHAPES or (steps is not None and shapes >= steps):
        return Finding("exclude", f"{shapes:,} distinct input shapes leave nothing to reuse between compilations: {cure} first")
    factor = next(factor for most, factor in SHAPE_FACTORS if shapes <= most)
    return Finding("penalise", f"{shapes} distinct input shapes mean as many compilations: {cure}", factor)


@rule("R031", facts(
    "dynamic_shape", "penalise", "rank x 0.6; 102 compilations became 49 with bounded shapes",
    f"{TROUBLESHOOT}; learn/dynamic_shape.md", PRACTICE, kinds=TPU_ONLY,
))
def sizes_that_depend_on_data(case: Case) -> Finding | None:
    """Operations whose result size depends on the data are compiled again or refused on TPU."""
    found = case.code.names(*DYNAMIC)
    if not found:
        return None
    reason = f"{', '.join(found)} gives results whose size depends on the data: rewrite with masks of a fixed size"
    return Finding("penalise", reason, 0.6)


@rule("R032", facts("host_sync", "penalise", "rank x 0.8", TROUBLESHOOT, PRACTICE, kinds=TPU_ONLY))
def reads_by_the_host_stop_the_device(case: Case) -> Finding | None:
    """Reading a value on the host in every step makes a TPU wait."""
    reads = case.workload.existing.host_reads_per_step
    if not reads:
        return None
    many = "value is" if reads == 1 else "values are"
    reason = f"{reads} {many} read by the host in each step: keep them on the device and read every 100 steps"
    return Finding("penalise", reason, 0.8)


@rule("R033", facts(
    "host_bound", "warn", "about 45 % of the compiled speed", EAGER, PACKAGES, kinds=TPU_ONLY, runtimes=("torch-xla",),
))
def eager_xla_is_half_as_fast(case: Case) -> Finding | None:
    """PyTorch/XLA in eager mode, without compile, reaches about 45 % of the compiled speed."""
    plain = case.workload.existing.framework == "torch" or bool(case.code.names("eager", "eager-mode"))
    if not plain:
        return None
    return Finding(
        "warn",
        "plain PyTorch code that is moved to PyTorch/XLA as it is, without torch_xla.compile around the step, reached about 45 "
        "% of the compiled speed: compile the step",
    )


@rule("R034", facts(
    "host_bound", "suggest", "fused eager claimed 50 % to over 100 % above strict eager",
    "TorchTPU announcement, 2026-04-22 (secondary copies)", PACKAGES, kinds=TPU_ONLY, runtimes=("torch-tpu",),
))
def torch_tpu_wants_compile(_: Case) -> Finding | None:
    """TorchTPU has eager modes, of which the fused one is the faster; peak speed needs torch.compile."""
    return Finding(
        "suggest",
        "put the step of TorchTPU in torch.compile for peak speed; of its eager modes the fused one is claimed to be 1.5 to 2 "
        "times the strict one",
    )


@rule("R045", facts(
    "compile_time", "warn", "no figure is published; compiled once for each shape", TROUBLESHOOT, PRACTICE, explains=True,
    kinds=TPU_ONLY,
))
def short_jobs_mostly_compile(case: Case) -> Finding | None:
    """A job of a few minutes spends much of them in the compiler."""
    steps, peak = case.workload.total_steps, None if case.chip is None else case.chip.peak("bf16")
    if steps is None or peak is None or not case.code.flop_per_step:
        return None
    busy_s = steps * case.code.flop_per_step / (0.4 * peak * case.fewest)
    if busy_s > 120 or case.workload.task not in ("train", "finetune", "rl", "infer", "preprocess"):
        return None
    return Finding(
        "warn",
        f"at 40 % of its peak the whole job is {busy_s:.2g} s of work for {case.chip_name}: compiling takes as long or longer; "
        "keep the compilation cache between runs",
    )


@rule("R046", facts(
    "host_bound", "warn", "model FLOPs utilisation of 33 % became 39 % with the C++11 ABI build (Mixtral, v5p-256)", EAGER,
    PACKAGES,
    kinds=TPU_ONLY, runtimes=("torch-xla",),
))
def lazy_graphs_are_traced_each_step(case: Case) -> Finding | None:
    """PyTorch/XLA traces every operation anew in each step, on the host."""
    operations = case.code.graph.operations
    if not case.workload.trains or operations < TRACED_OPERATIONS:
        return None
    return Finding(
        "warn",
        f"PyTorch/XLA traces {operations:,} forward operations on the host in every step: take its C++11 ABI build, which "
        "lifted Mixtral from 33 % to 39 % of peak, and scan over equal layers",
    )


@rule("R047", facts(
    "host_bound", "suggest", "about 50 % more throughput in TensorFlow's guide",
    "tensorflow/docs guide/tpu.ipynb, distributed_training.ipynb (2026-03)", PACKAGES, kinds=TPU_ONLY, runtimes=KERAS,
))
def keras_runs_one_step_a_call(case: Case) -> Finding | None:
    """Keras calls the device once a step unless steps_per_execution is raised."""
    if not case.workload.trains:
        return None
    return Finding(
        "suggest",
        "raise steps_per_execution in compile(): with 1, Keras goes back to Python after every step; TensorFlow's guide gained "
        "about 50 %",
    )


@rule("R209", facts(
    "recompile", "warn", "one compilation for each", f"{TROUBLESHOOT}; jax documentation, just-in-time compilation", PRACTICE,
    kinds=("gpu", "cpu"), runtimes=("jax", "keras-jax", "tf-xla", "torch-xla"),
))
def compilers_meet_each_shape_anew(case: Case) -> Finding | None:
    """On GPUs and CPUs too a jitted step is compiled for each input shape."""
    shapes = case.workload.existing.distinct_shapes
    if shapes is None or shapes <= MANY_SHAPES:
        return None
    return Finding(
        "warn",
        f"{shapes} distinct input shapes are compiled one by one in {case.runtime.id}: pad them into buckets, or run eagerly",
    )
