"""Whole sample runs: done, running, failed and hostile; see `parts.py` for what they are made of.

They are built from the words alone, so that reports and pages can be tested and looked at without probing anything.
"""

from dataclasses import replace

from core.advice import Candidate, Confidence, Estimate, Exclusion, Flip, Gap, Plan, Recommendation, Share, Verdict
from core.device import Pool
from core.probe import Measurement, Outcome, Probe
from core.quantity import Quantity, exact, log_normal, total
from core.run import Actual, Progress, Run, RunOptions
from core.workload import Workload
from tests.samples.parts import (
    COMPILE_S,
    HOSTILE_NAME,
    NAME,
    RUNTIMES,
    TAKEN_AT,
    TOKENS,
    VERSIONS,
    block_outcomes,
    kernel_outcomes,
    sample_device,
    sample_document,
    sample_workload,
)

STEPS = 2000
ATTACHED = Pool("cpu:0", 1, "cpu", None, "attached", attached=True)
GPU_POOL = Pool("h100-sxm", 8, "gpu", 8 * 3.93, "aws us-east-1")
TPU_POOL = Pool("tpu-v6e", 16, "tpu", 16 * 2.70, "gcp us-east5", hosts=2)
GIB = 2**30


def _memory_parts(workload: Workload, chips: int, reserve: float) -> tuple[tuple[str, float], ...]:
    weights = workload.parameter_count * 4.0
    return (
        ("weights", weights),
        ("gradients", weights),
        ("optimizer state", 2 * weights),
        ("saved activations", workload.activation_bytes / chips),
        ("runtime reserve", reserve),
    )


def _estimate(
    workload: Workload,
    candidate: Candidate,
    shares: tuple[Share, ...],
    capacity: float,
    compile_s: Quantity | None,
    watts: float | None,
) -> Estimate:
    pool = candidate.pools[0]
    step = total(tuple(share.seconds for share in shares))
    throughput = Quantity(TOKENS / step.high, TOKENS / step.mid, TOKENS / step.low, step.tier, step.evidence)
    parts = _memory_parts(workload, pool.count, 0.6 * GIB if pool.attached else 1.5 * GIB)
    peak = log_normal(sum(size for _, size in parts), 0.05, step.tier, "sum of its parts")
    cost = None if pool.price_usd_per_h is None else step.scaled(STEPS / 3600 * pool.price_usd_per_h, f"price of {pool.where}")
    energy = None if watts is None else step.scaled(STEPS * watts * pool.count, "board power limit")
    missing = tuple(text for text, value in (("price of this machine", cost), ("power of this machine", energy)) if value is None)
    lower, upper = max(share.seconds.low for share in shares), sum(share.seconds.high for share in shares)
    return Estimate(
        candidate,
        step,
        throughput,
        peak,
        compile_s,
        cost,
        energy,
        parts,
        capacity,
        shares,
        lower,
        upper,
        peak.high < capacity,
        missing,
    )


def _attached(workload: Workload, outcomes: tuple[Outcome, ...], runtime: str) -> Estimate:
    mine = {o.probe.subject: o for o in outcomes if o.probe.runtime == runtime and isinstance(o, Measurement)}
    candidate = Candidate(runtime, (ATTACHED,), Plan())
    compile_s = (
        log_normal(2.2 * COMPILE_S[runtime], 0.3, "transferred", "compile time of its blocks") if runtime in COMPILE_S else None
    )
    if any(block.kind not in mine for block in workload.blocks):
        parts = _memory_parts(workload, 1, 0.6 * GIB)
        peak = log_normal(sum(size for _, size in parts), 0.05, "measured", "sum of its parts")
        return Estimate(
            candidate,
            None,
            None,
            peak,
            compile_s,
            None,
            None,
            parts,
            float(sample_device().memory_bytes),
            fits=True,
            missing=("step time: embedding and head was not measured in keras-torch",),
        )
    shares = tuple(
        Share(
            "compute",
            block.name,
            log_normal(
                block.repeats * mine[block.kind].median_s, 0.06, "measured", f"{mine[block.kind].probe.label} in {runtime}"
            ),
        )
        for block in workload.blocks
    )
    shares += (
        Share("host", "", log_normal(0.02, 0.3, "measured", "frame around the blocks")),
        Share("input", "", log_normal(0.004, 0.3, "measured", "triad of the same runtime")),
    )
    return _estimate(workload, candidate, shares, float(sample_device().memory_bytes), compile_s, None)


def _pooled(
    workload: Workload, runtime: str, pool: Pool, flop_per_s: float, share: float, capacity: float, watts: float
) -> Estimate:
    """Build one estimate from data sheet figures.

    Args:
        flop_per_s: peak of one chip.
        share: of that peak which is assumed to be reached.
        capacity: bytes of one chip.
        watts: of one chip.
    """
    source = f"data sheet of {pool.accelerator}"
    chip = flop_per_s * share * pool.count
    factor = 1 + 2.0
    shares = tuple(
        Share("compute", b.name, log_normal(factor * b.repeats * b.flop_forward / chip, 0.5, "datasheet", source))
        for b in workload.blocks
    )
    shares += (
        Share("memory traffic", "optimizer", log_normal(workload.parameter_count * 28 / 2.4e12, 0.5, "datasheet", source)),
        Share("launch", "", log_normal(0.0009, 0.5, "datasheet", "typical launch cost")),
        Share("communication", "", log_normal(workload.parameter_count * 8 / 3e11, 0.5, "datasheet", source)),
    )
    compile_s = log_normal(40.0, 0.5, "datasheet", "typical compile time")
    return _estimate(workload, Candidate(runtime, (pool,), Plan(data=pool.count)), shares, capacity, compile_s, watts)


def sample_recommendation(workload: Workload, outcomes: tuple[Outcome, ...]) -> Recommendation:
    """Return a recommendation over this machine, a GPU pool and a TPU pool, ranked by step time."""
    estimates = [_attached(workload, outcomes, runtime) for runtime in RUNTIMES]
    for runtime, share in (("jax", 0.36), ("torch-compile", 0.34), ("keras-jax", 0.33), ("torch-eager", 0.22)):
        estimates.append(_pooled(workload, runtime, GPU_POOL, 67e12, share, 80e9, 700))
    for runtime, share in (("jax", 0.21), ("keras-jax", 0.19)):
        estimates.append(_pooled(workload, runtime, TPU_POOL, 153e12, share, 32e9, 300))
    known = [(e.step_time_s.mid, e) for e in estimates if e.step_time_s is not None]
    ranked = tuple(e for _, e in sorted(known, key=lambda pair: pair[0]))
    best = ranked[0]
    probe = Probe("token_ends", "block", workload.blocks[1].sizes, "fp32", "keras-torch", "cpu:0", "train", "adamw")
    return Recommendation(
        "time",
        best,
        ranked,
        tuple(e for e in estimates if e.step_time_s is None),
        _exclusions(),
        _verdicts(),
        (
            Flip("chips of tpu-v6e", 16.0, 8.0, "chips", "jax on 8 x h100-sxm"),
            Flip("rate between tpu-v6e chips", 3e11, 9e10, "bytes per second", "jax on 8 x h100-sxm"),
        ),
        (
            Gap("step time of keras-torch on cpu:0", probe, 14.0, "lower the batch to 8 and probe it again"),
            Gap("speed of jax on 16 x tpu-v6e", None, None, "run Tandem on a machine with that TPU, or enter what you have seen"),
        ),
        Confidence(0.41, 0.09),
        tuple(e.candidate.label for e in ranked[1:3]),
        f"Run this with {best.candidate.runtime} on 16 x tpu-v6e, data parallel over 16 chips.",
        "It has the shortest step of 13 candidates, but two others cannot be told apart from it.",
        "It rests on data sheets for pools that are not attached, and on 15 measured blocks for this machine.",
    )


def _exclusions() -> tuple[Exclusion, ...]:
    return (
        Exclusion(
            "torch-eager",
            "tpu-v6e",
            "A3",
            "no-tpu-backend",
            "eager PyTorch does not run on a TPU; use torch-xla or jax",
            "https://docs.pytorch.org/xla/",
        ),
        Exclusion(
            "tf-graph",
            "tpu-v6e",
            "A4",
            "old-backend",
            "TensorFlow supports TPU v6e only through XLA in a pinned release",
            "https://docs.cloud.google.com/tpu/docs/v6e",
        ),
        Exclusion(
            "mxnet",
            "",
            "A1",
            "retired",
            "MXNet was retired in September 2023 and has no builds for current hardware",
            "https://attic.apache.org/projects/mxnet.html",
        ),
        Exclusion(
            "mxnet",
            "cpu:0",
            "A1",
            "not-installed",
            "mxnet needs numpy below 1.24, which is not in this environment",
            "requirements/mxnet.txt",
        ),
    )


def _verdicts() -> tuple[Verdict, ...]:
    return (
        Verdict(
            "B2",
            "small-batch-per-chip",
            "warn",
            "one sample for each of 16 chips leaves the matrix units waiting; raise the batch to 64 or more",
            "https://jax-ml.github.io/scaling-book/roofline/",
            "2026-03-01",
            "jax",
            "tpu-v6e",
        ),
        Verdict(
            "B5",
            "fp32-on-tpu",
            "penalise",
            "fp32 matmuls run as several bf16 passes on a TPU",
            "https://docs.cloud.google.com/tpu/docs/bfloat16",
            "2026-08-26",
            "",
            "tpu-v6e",
            1.2,
        ),
        Verdict(
            "C1",
            "use-bf16",
            "suggest",
            "bf16 would halve the memory traffic and use the tensor units fully",
            "https://docs.pytorch.org/docs/stable/amp.html",
            "2026-05-01",
        ),
        Verdict(
            "C4",
            "long-compile",
            "warn",
            "torch-compile spends about a minute compiling before its first step",
            "measured here",
            "2026-05-04",
            "torch-compile",
            "cpu:0",
        ),
        Verdict(
            "A1",
            "retired",
            "exclude",
            "MXNet was retired in September 2023 and has no builds for current hardware",
            "https://attic.apache.org/projects/mxnet.html",
            "2023-09-01",
            "mxnet",
        ),
    )


def sample_run(name: str = NAME) -> Run:
    """Return a done run with eight runtimes, one failed probe, two pools and one actual."""
    workload = sample_workload(name)
    outcomes = block_outcomes(workload) + kernel_outcomes()
    versions = (("tandem", "0.1.0"), *sorted(pair for pairs in VERSIONS.values() for pair in pairs))
    return Run(
        "k3v9q2m8x1pz",
        "2026-05-04T09:30:00Z",
        "2026-05-04T09:31:48Z",
        "done",
        sample_document(name),
        RunOptions("quick", 110.0),
        workload,
        (sample_device(),),
        outcomes,
        sample_recommendation(workload, outcomes),
        Progress("finished", len(outcomes), len(outcomes), "", "", 108.0, 0.0),
        versions,
        "example-host",
        "ada",
        note="asked for the planning meeting",
        actuals=(Actual("k3v9q2m8x1pz", "torch-compile", "cpu:0", 11.62, "2026-05-05T08:00:00Z", "ten minutes of the real job"),),
    )


def sample_running() -> Run:
    """Return the same run while it measures: half of the probes are answered."""
    run = sample_run()
    done = run.outcomes[: len(run.outcomes) // 2]
    last = next(o for o in reversed(done) if isinstance(o, Measurement))
    progress = Progress(
        "measuring",
        len(done),
        len(run.outcomes),
        "token_ends batch=16 length=128 width=768 fp32 train in tf-xla on cpu:0",
        f"{last.probe.label} in {last.probe.runtime}: {last.median_s:.3f} s",
        52.0,
        55.0,
    )
    return replace(run, state="running", finished_at=None, outcomes=done, recommendation=None, progress=progress, actuals=())


def sample_failed() -> Run:
    """Return the same run after its process was killed: what was measured is kept, there is no advice."""
    run = sample_running()
    return replace(
        run,
        state="failed",
        finished_at=TAKEN_AT,
        error="the run's process ended with signal 9 after 13 probes; run it again",
        progress=replace(run.progress, stage="finished", remaining_s=None),
    )


def sample_nothing_feasible() -> Run:
    """Return a done run in which every candidate was excluded."""
    run = sample_run()
    assert run.recommendation is not None
    nothing = replace(
        run.recommendation,
        best=None,
        ranked=(),
        unranked=(),
        equal=(),
        confidence=None,
        flips=(),
        sentence="Nothing here can run this workload.",
        why="Every candidate was excluded; the reasons are below.",
        rests_on="It rests on the rules of the catalog.",
    )
    return replace(run, recommendation=nothing, outcomes=())


def sample_hostile() -> Run:
    """Return a done run whose name, note, owner, errors and sources try to break out of every format."""
    run = sample_run(HOSTILE_NAME)
    assert run.recommendation is not None
    hostile = Exclusion(
        "+cmd|' /C calc'!A0",
        "@SUM(1)",
        "A9|x",
        "`tick`",
        f"{HOSTILE_NAME} | [a](javascript:alert(1)) `b` ${{y}}",
        "javascript:alert(1)",
    )
    verdict = Verdict(
        "Z1", "-2+3", "warn", HOSTILE_NAME, 'https://example.com/"><img src=x onerror=alert(1)>', "2026-01-01", "jax", "cpu:0"
    )
    recommendation = replace(
        run.recommendation,
        excluded=(*run.recommendation.excluded, hostile),
        verdicts=(*run.recommendation.verdicts, verdict),
        sentence=f"Take {HOSTILE_NAME}.",
    )
    return replace(
        run, recommendation=recommendation, owner="\t=1+1", note=f"# {HOSTILE_NAME}\n| a | b |\n--- <img src=x onerror=alert(1)>"
    )


def outcomes_of(run: Run, runtime: str) -> tuple[Outcome, ...]:
    """Return what one runtime answered."""
    return tuple(o for o in run.outcomes if o.probe.runtime == runtime)


def step_time(run: Run) -> Quantity:
    """Return the step time of the best candidate; the run must have one."""
    assert run.recommendation is not None
    assert run.recommendation.best is not None
    return run.recommendation.best.step_time_s or exact(0.0, "datasheet")
