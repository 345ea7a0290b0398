"""What is measured and what came of it: Probe -> Timing -> Measurement or ProbeFailure."""

from dataclasses import dataclass, replace
from typing import TypeAlias

from core.statistics import Summary, median, slope_samples, summary
from core.workload import Size

RUNTIME_IDS = (
    "jax",
    "torch-eager",
    "torch-compile",
    "torch-xla",
    "torch-tpu",
    "tf-graph",
    "tf-xla",
    "keras-jax",
    "keras-tensorflow",
    "keras-torch",
    "mxnet",
)
STAGES = ("start", "import", "device", "agree", "compile", "warm-up", "measure", "gate", "lost")
"""Where a probe can fail, in order. `lost`: its worker died, hung or broke the protocol."""
MODES = ("forward", "train")


@dataclass(frozen=True, slots=True)
class Runtime:
    """A framework in one mode, with the versions and the interpreter that hold it.

    Args:
        id: one of `RUNTIME_IDS`.
        framework: `jax`, `torch`, `tensorflow`, `keras`, `mxnet`.
        mode: `jit`, `eager`, `compile`, `graph`, `xla`, or keras' backend.
        versions: distribution and version pairs, sorted.
        interpreter: path of the Python that runs it; empty when it is not installed.
        installed: whether it can be started.
        reason: why not, and what to do; empty when installed.
    """

    id: str
    framework: str
    mode: str
    versions: tuple[tuple[str, str], ...] = ()
    interpreter: str = ""
    installed: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing to measure in one runtime on one device.

    Args:
        subject: kind of a block (`transformer_layer`), name of a kernel (`matmul_chain`), name of a system probe
            (`host_device`) or `core.reduced.REDUCED_MODEL`.
        family: `block`, `kernel`, `model` or `system`.
        sizes: by name, sorted.
        dtype: compute dtype.
        runtime: a runtime id.
        device: a device id.
        mode: `forward`, or `train` (forward, backward and optimizer update in one step).
        optimizer: used when mode is `train`.
        tier: `quick` or `full`; fixes the number of samples.
        seed: of weights and inputs.
    """

    subject: str
    family: str
    sizes: tuple[tuple[str, Size], ...]
    dtype: str
    runtime: str
    device: str
    mode: str = "forward"
    optimizer: str = "none"
    tier: str = "quick"
    seed: int = 0

    @property
    def label(self) -> str:
        """One short line that names the probe to a person."""
        shown = ("batch", "length", "width", "n", "bytes", "hidden")
        sizes = " ".join(f"{k}={v}" for k, v in self.sizes if k in shown or self.family in ("system", "kernel"))
        return f"{self.subject} {sizes} {self.dtype} {self.mode}".replace("  ", " ")


@dataclass(frozen=True, slots=True)
class Timing:
    """Raw samples of one program.

    Args:
        depth: how many copies of the subject one call of the program runs; 0 is the bare frame around it.
        loops: calls per sample; each sample is divided by it.
        samples_ns: nanoseconds per call, in the order they were taken.
        warm_ns: the same for warm-up calls, kept but not counted.
        compile_s: first call minus a steady call; None when nothing is compiled.
        part: empty for the subject itself; else what was timed beside it in the same rounds, such as a copy alone.
    """

    depth: int
    loops: int
    samples_ns: tuple[int, ...]
    warm_ns: tuple[int, ...] = ()
    compile_s: float | None = None
    part: str = ""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A probe that was answered.

    Args:
        probe: what was asked.
        timings: one for each depth, interleaved when taken.
        method: how time was taken (`slope`, `difference`, `direct`).
        flop: of one copy of the subject in this mode; 0 when it is pure traffic.
        traffic_bytes: read plus written by one copy; counted for kernels, 0 for blocks.
        peak_memory_bytes: of the worker while it ran; None when unknown.
        warnings: doubts raised by the gates, one phrase each.
        trusted: False when quarantined (over 105 % of peak, too noisy to use); the reason is in warnings.
        versions, device_uuid, taken_at: provenance; taken_at in UTC, ISO 8601.
        counts: what the worker counted besides time, by name with its unit, such as `largest_bytes`.
    """

    probe: Probe
    timings: tuple[Timing, ...]
    method: str
    flop: int
    traffic_bytes: int
    peak_memory_bytes: int | None
    warnings: tuple[str, ...]
    trusted: bool
    versions: tuple[tuple[str, str], ...]
    device_uuid: str
    taken_at: str
    counts: tuple[tuple[str, float], ...] = ()

    @property
    def samples_s(self) -> tuple[float, ...]:
        """Seconds for one copy of the subject, one value per sample."""
        return slope_samples(tuple((t.depth, t.samples_ns) for t in self.timings if not t.part))

    @property
    def figures(self) -> Summary:
        """Median, quartiles and count of `samples_s`, and as minimum what the least samples of all depths give.

        The least of the paired differences would be an artefact: a slow shallow call beside a fast deep one.
        """
        least = slope_samples(tuple((t.depth, (min(t.samples_ns),)) for t in self.timings if not t.part))[0]
        told = summary(self.samples_s)
        return replace(told, minimum=min(least, told.median))

    def part_s(self, part: str) -> tuple[float, ...]:
        """Seconds of one call of what was timed beside the subject, one value per sample; empty when it was not."""
        return tuple(ns * 1e-9 for t in self.timings if t.part == part for ns in t.samples_ns)

    @property
    def contended(self) -> bool:
        """Whether other processes used the device meanwhile, as the gates said."""
        return any(warning.startswith("contended") for warning in self.warnings)

    @property
    def median_s(self) -> float:
        """Median seconds for one copy of the subject."""
        return median(self.samples_s)

    @property
    def compile_s(self) -> float | None:
        """Seconds to compile the shallowest program that holds the subject, or None."""
        known = [t.compile_s for t in self.timings if t.depth > 0 and not t.part and t.compile_s is not None]
        return known[0] if known else None


@dataclass(frozen=True, slots=True)
class ProbeFailure:
    """A probe that was not answered, as data.

    Args:
        stage: one of `STAGES`.
        error: one line: what happened and what to do.
        exit_code: of the worker when it died, negative for a signal.
        stderr_tail: last lines of the worker's stderr, capped.
    """

    probe: Probe
    stage: str
    error: str
    exit_code: int | None
    stderr_tail: str
    taken_at: str


NOT_BEGUN = "not begun"
"""How the error of a probe begins that was never started."""

Outcome: TypeAlias = Measurement | ProbeFailure
