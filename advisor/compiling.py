"""How long a runtime compiles before its first step on chips that are not here, from what others saw; told with a wide band.

Seconds grow with the operations of the program, from a start that even the smallest program costs; the pace is that of the
compiler on the kind of chip, the geometric mean of the rows of `catalog.compile_times`, and the band is how far these lie
apart. What is not known and is assumed: that JAX code compiles equal layers once (scan), as its large trainers do, where all
others write every layer out; the band of JAX reaches to layers written out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import exp, log, log2, sqrt

from advisor.beliefs import BELIEFS, UNCOMPILED_RUNTIMES
from catalog.compile_times import CompileTime, compile_times
from core.ops import Op
from core.probe import Measurement, Outcome
from core.quantity import Z_80, Quantity, exact, log_normal
from core.sketching import once, output_of
from core.workload import Block, Size, Workload

COMPILERS = {
    "jax": "xla",
    "keras-jax": "xla",
    "tf-xla": "xla",
    "torch-xla": "xla",
    "torch-tpu": "xla",
    "keras-tensorflow": "xla",
    "torch-compile": "inductor",
    "tf-graph": "graph",
    "mxnet": "graph",
}
"""What makes the program of each runtime; on a TPU it is XLA for all."""
SCANNING = ("jax",)
"""Runtimes whose code for large models compiles equal layers once."""
START_OPERATIONS = 50.0
"""Operations that the start of any compilation is worth; fits what was measured on CPUs with 19 and 175 of them."""
MORE_CHIPS = 0.1
"""Longer by this part for each doubling of the chips, for which the program is partitioned (prior)."""
LEAST_SIGMA, MOST_SIGMA = log(2.0) / Z_80, log(8.0) / Z_80
"""Error of a pace at least and at most: a factor of 2 and of 8 either way."""
BORROWED_SIGMA = log(3.0) / Z_80
"""Further error where a compiler is only known for another kind of chip."""
_WEIGHTS = {"high": 1.0, "medium": 1.0, "low": 1 / 3}
"""Of a row in the mean; people report what was slow, and those rows are of low confidence."""
CACHED = "a compilation cache on disk left 17 to 50 % of it in public reports"
"""vllm-project/vllm pull requests 6856 and 32191, pytorch/pytorch issue 172547."""


@dataclass(frozen=True, slots=True)
class Programs:
    """What a workload gives a compiler.

    Args:
        once: operations with equal layers compiled once.
        written_out: operations with every layer in the program.
        shapes: compilations, one for each distinct input shape.
    """

    once: float
    written_out: float
    shapes: int


def programs_of(workload: Workload) -> Programs:
    """Return the operations that are compiled for a workload, and how often.

    Args:
        workload: the job; a generation is two programs, for the prompt and for one token.
    """
    first = once(workload.blocks)
    tokens = max(1.0, output_of(workload))
    apart, whole = float(_count(workload.ops)), float(_count(workload.ops))
    for block in workload.blocks:
        each = _operations(block, workload.trains)
        apart += each
        whole += each * max(1.0, round(block.repeats / (1.0 if block in first else tokens)))
    steps = workload.total_steps
    shapes = max(1, workload.existing.distinct_shapes or 1)
    return Programs(apart, whole, shapes if steps is None else max(1, min(shapes, int(steps))))


def compile_time(programs: Programs, runtime: str, kind: str, chips: int, here: Mapping[str, Quantity]) -> Quantity:
    """Return the seconds that a runtime compiles before all shapes of a job were met once.

    Args:
        programs: from `programs_of`.
        runtime: one of `RUNTIME_IDS`.
        kind: of the chips.
        chips: that the program is partitioned for.
        here: by runtime, what its compilation of this very workload took or would take on a CPU that is attached.
    """
    if runtime in UNCOMPILED_RUNTIMES:
        return exact(0.0, "datasheet", "nothing is compiled")
    compiler = "xla" if kind == "tpu" else COMPILERS[runtime]
    scans = runtime in SCANNING
    operations = programs.once if scans else programs.written_out
    pace = _pace(compiler, kind)
    times = (1 + MORE_CHIPS * log2(chips)) * programs.shapes
    layers = "equal layers once, the band reaches to layers written out" if scans else "every layer written out"
    told = f"{operations:.0f} operations, {layers}"
    if programs.shapes > 1:
        told += f", {programs.shapes} shapes"
    own = here.get(runtime)
    if own is not None and kind != "cpu":
        ratio = pace.mid / _pace(compiler, "cpu").mid
        note = f"{ratio:.2g} times as long as on the CPU here, as other programs took"
        sigma = sqrt(own.sigma**2 + pace.sigma**2)
        return log_normal(own.mid * ratio * times, sigma, "transferred", *own.evidence, note, CACHED)
    found = pace.scaled((START_OPERATIONS + operations) * times, told, CACHED)
    if not scans:
        return found
    most = max(found.high, pace.mid * (START_OPERATIONS + programs.written_out) * times)
    return Quantity(found.low, found.mid, most, found.tier, found.evidence)


def compiled_here(workload: Workload, outcomes: Iterable[Outcome]) -> dict[str, Quantity]:
    """Return by runtime what compiling the workload takes on a CPU, from its blocks that were measured on one.

    Args:
        workload: the job.
        outcomes: of any runtime and device; a runtime counts when every block of the workload was compiled in it, at any batch.
    """
    newest: dict[tuple[str, object], Measurement] = {}
    for outcome in sorted((one for one in outcomes if isinstance(one, Measurement)), key=lambda one: one.taken_at):
        probe = outcome.probe
        if probe.family == "block" and probe.device.startswith("cpu") and outcome.trusted and outcome.compile_s is not None:
            newest[probe.runtime, _form(probe.subject, probe.sizes, probe.mode)] = outcome
    first, tokens = once(workload.blocks), max(1.0, output_of(workload))
    mode = "train" if workload.trains else "forward"
    found: dict[str, Quantity] = {}
    for runtime in sorted({name for name, _ in newest}):
        seconds = [newest.get((runtime, _form(block.kind, block.sizes, mode))) for block in workload.blocks]
        known = [one.compile_s for one in seconds if one is not None and one.compile_s is not None]
        if not known or len(known) < len(workload.blocks):
            continue
        copies = [_copies(block, runtime, tokens if block not in first else 1.0) for block in workload.blocks]
        total_s = sum(each * count for each, count in zip(known, copies, strict=True))
        dates = sorted({one.taken_at[:10] for one in seconds if one is not None})
        note = f"its {len(known)} blocks compiled on a CPU here in {runtime}, measured {' and '.join(dates[-2:])}"
        found[runtime] = log_normal(total_s, BELIEFS.compile_sigma, "transferred", note)
    return found


def _copies(block: Block, runtime: str, tokens: float) -> float:
    return 1.0 if runtime in SCANNING else max(1.0, round(block.repeats / tokens))


def _form(kind: str, sizes: tuple[tuple[str, Size], ...], mode: str) -> tuple[object, ...]:
    return (kind, tuple(item for item in sizes if item[0] != "batch"), mode)


@cache
def _pace(compiler: str, kind: str) -> Quantity:
    """Return seconds for an operation, those of the start counted in.

    The mean leans to the pace on CPUs, which was measured and not complained of, by the weight of one firm row.
    """
    points = [(_WEIGHTS[row.confidence], log(row.seconds / (START_OPERATIONS + row.operations)))
              for row in compile_times(compiler, kind)]  # fmt: skip
    known = len(points)
    if kind != "cpu":
        points.append((1.0, log(_pace(compiler, "cpu").mid)))
    if not known:
        near = _pace(compiler, "cpu")
        note = f"as {compiler} on CPUs, for want of anything on a {kind.upper()}"
        return log_normal(near.mid, sqrt(near.sigma**2 + BORROWED_SIGMA**2), "datasheet", note)
    middle, spread = _spread(points)
    note = f"pace of {compiler} on {kind.upper()}s in {known} reports: {_sources(compile_times(compiler, kind))}"
    return log_normal(exp(middle), min(MOST_SIGMA, max(LEAST_SIGMA, spread)), "datasheet", note)


def _spread(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the weighted mean of (weight, value), and how far a further value is expected from it."""
    whole = sum(weight for weight, _ in points)
    middle = sum(weight * value for weight, value in points) / whole
    rows = whole**2 / sum(weight**2 for weight, _ in points)
    if rows <= 1:
        return middle, MOST_SIGMA
    variance = sum(weight * (value - middle) ** 2 for weight, value in points) / whole * rows / (rows - 1)
    return middle, sqrt(variance * (1 + 1 / rows))


def _sources(rows: tuple[CompileTime, ...]) -> str:
    return ", ".join(dict.fromkeys(row.source.split(",")[0] for row in rows))


def _operations(block: Block, trains: bool) -> int:
    return _count(block.ops_forward) + (_count(block.ops_backward) if trains else 0)


def _count(ops: tuple[Op, ...]) -> int:
    return sum(op.count for op in ops)
