"""The two sides of a comparison: Tandem's own worker, and a foreign harness in a process of its own, each asked in turn."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.foreign.cases import HEAD_WIDTH, Case
from core.errors import WorkerError
from core.probe import Probe, Timing
from core.statistics import slope_samples
from probes.environment import worker_environment
from probes.launcher import Limits, WorkerHandle
from probes.messages import Finish, Finished, Open, Prepare, Prepared, Ready, Sample, Sampled

REPOSITORY = Path(__file__).resolve().parent.parent
FEWEST = 3


def probe_of(one: Case, runtime: str) -> Probe:
    """Return Tandem's probe of what the foreign harness times."""
    match one.kind:
        case "matmul":
            subject, family, sizes = "matmul_chain", "kernel", {"n": one.side}
        case "triad" | "scale":
            subject, family, sizes = f"memory_{'triad' if one.kind == 'triad' else 'copy'}", "kernel", {"bytes": one.side}
        case "dense":
            subject, family = "dense_tower", "block"
            sizes = {
                "batch": one.batch,
                "widths": (one.side, one.side),
                "activation": "relu",
                "last_activation": "relu",
                "first": int(one.first),
            }
        case _:
            subject, family = "transformer_layer", "block"
            heads = one.side // HEAD_WIDTH
            sizes = {
                "batch": one.batch,
                "length": one.length,
                "width": one.side,
                "heads": heads,
                "kv_heads": heads,
                "head_width": HEAD_WIDTH,
                "hidden": 4 * one.side,
                "gated": 0,
                "activation": "gelu_tanh",
                "norm": "layer",
                "norm_first": 1,
                "bias": 1,
                "causal": 1,
                "rotary": 0,
                "cache": 0,
                "fused_qkv": 1,
            }
    mode, optimizer = ("train", "adamw") if one.train else ("forward", "none")
    return Probe(subject, family, tuple(sorted(sizes.items())), "fp32", runtime, "cpu:0", mode, optimizer)


class OwnSide:
    """A real worker of Tandem, as a session starts it."""

    def __init__(self, runtime: str, environment: Mapping[str, str]) -> None:
        self.worker = WorkerHandle(sys.executable, environment, Limits())
        self._expect(Open(runtime, "cpu"), Ready)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the worker."""
        self.worker.close()

    def prepare(self, probe: Probe) -> None:
        """Agree, compile and warm up."""
        self._expect(Prepare(probe), Prepared)

    def sample(self, seconds: float, fewest: int = FEWEST) -> int:
        """Sample so long, and so many times at least, and return how many samples of each program there are now."""
        return self._expect(Sample(seconds, fewest), Sampled).samples

    def finish(self) -> tuple[Timing, ...]:
        """Return all raw samples."""
        return self._expect(Finish(), Finished).timings

    def _expect(self, request: Any, kind: type[Any]) -> Any:
        reply = self.worker.ask(request, 180.0)
        if not isinstance(reply, kind):
            raise WorkerError(f"got {reply}; expected {kind.__name__}; see the message")
        return reply


def cut(timings: tuple[Timing, ...], start: int, end: int) -> tuple[list[float], list[float]]:
    """Return seconds of one call of the deepest program, and of one more copy, of the samples between two counts.

    Args:
        timings: of every depth, the deepest last.
        start, end: counts of samples before and after a request.
    """
    part = tuple((one.depth, one.samples_ns[start:end]) for one in timings)
    return [ns * 1e-9 for ns in part[-1][1]], list(slope_samples(part))


class Answering:
    """A process that answers each line of its standard input with one line of JSON."""

    def __init__(self, command: tuple[str, ...], environment: Mapping[str, str]) -> None:
        self.command = command
        self.process = subprocess.Popen(
            command, cwd=REPOSITORY, env=dict(environment), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close its input, which ends it."""
        self.process.communicate()

    def ask(self, line: str) -> Any:
        """Write one line and return the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.hear()

    def hear(self) -> Any:
        """Return the next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            ended = self.process.wait()
            raise WorkerError(f"got no answer from {Path(self.command[0]).name} (exit {ended}); expected one; see stderr")
        return json.loads(line)


class ForeignSide(Answering):
    """A foreign harness in its own process, with the environment of Tandem's worker."""

    def __init__(self, runtime: str, environment: Mapping[str, str]) -> None:
        super().__init__((sys.executable, "-m", "bench.foreign.serve", runtime), environment)
        self.about = self.hear()

    def build(self, one: Case) -> None:
        """Build and warm up."""
        self.ask(json.dumps(["build", asdict(one)]))

    def time(self, seconds: float) -> list[list[float]]:
        """Return seconds of each call, or of each block of calls, of the shallow and of the deep stack."""
        return self.ask(json.dumps(["time", seconds]))["calls_s"]


class Stream(Answering):
    """STREAM as it was compiled here, with its arrays."""

    def __init__(self, program: Path, elements: int, passes: int, environment: Mapping[str, str]) -> None:
        super().__init__((str(program), str(elements), str(passes)), environment)

    def best_s(self, way: str, kernel: str) -> float:
        """Return the seconds of its best pass with one kernel and one way to store: `plain`, `wide` or `stream`."""
        told = self.ask(f"{way} {kernel}")
        if told["wrong"]:
            raise WorkerError(f"got {told['wrong']} wrong elements from stream {way} {kernel}; expected right answers")
        return told["best_s"]


def environment_for(runtime: str) -> dict[str, str]:
    """Return the environment that both sides get; caches go to the folder for temporary files."""
    return worker_environment(runtime, "cpu", os.environ, Path(tempfile.gettempdir()) / "tandem-bench", "")
