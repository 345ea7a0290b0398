"""What a system probe is given and what it gives: a bench to build on, and a rig of stopwatches to be sampled in turn."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from core.errors import WorkerError
from core.probe import Probe, Timing
from core.statistics import median
from probes.case import Case, Program
from probes.environment import MEMORY
from probes.kernels import kernel_modules
from probes.timer import SHORTEST_SAMPLE_S, WARM_CALLS, WARM_S, Stopwatch

_FRAMEWORK = {"jax": "jax", "torch-eager": "torch", "torch-compile": "torch", "tf-graph": "tensorflow", "tf-xla": "tensorflow"}
TOLERANCE = 1e-5
"""Relative to the largest value, for float32 sums over a few devices."""


def nothing() -> None:
    """Do nothing."""


@dataclass
class SystemWatch(Stopwatch):
    """A stopwatch whose calls may need something done before each, which is not timed; every call goes through `_time` for that.

    Args:
        before: runs before every call, such as making a fresh array or an empty compiler.
        begin: told the number of calls before they start, so that other processes join in.
        part: what it times beside the subject; empty for the subject itself.
        warms: False when a warm call would be another thing than what is measured, such as a compilation.
    """

    before: Callable[[], object] = nothing
    begin: Callable[[int], object] | None = None
    part: str = ""
    warms: bool = True

    def first_call(self) -> None:
        """Run once, what comes before it included; for a compiling program this holds the compilation."""
        self.first_ns = self._time(1)

    def warm_up(self) -> None:
        """Warm up where that means something, then fix the number of calls in a sample."""
        if not self.warms:
            self.warm.append(self.first_ns)
            return
        taken: list[int] = []
        while len(taken) < WARM_CALLS or sum(taken) < WARM_S * 1e9:
            taken.append(self._time(1))
        self.warm.extend(taken)
        steady = max(1.0, median(taken[len(taken) // 2 :]))
        self.loops = max(1, round(SHORTEST_SAMPLE_S * 1e9 / steady + 0.5))

    def rewarm(self) -> None:
        """Run once after a pause where that means something."""
        if self.warms:
            super().rewarm()

    def timing(self) -> Timing:
        """Return the raw samples under the name of their part."""
        return replace(super().timing(), part=self.part)

    def _time(self, loops: int) -> int:
        run, clock, before = self.program.run, self.clock, self.before
        if self.begin is not None:
            self.begin(loops)
        spent = 0
        for _ in range(loops):
            before()
            start = clock()
            run()
            spent += clock() - start
        return spent


@dataclass
class Rig:
    """What is sampled, and what else was found.

    Args:
        watches: sampled in turn; the subject's own first.
        close: frees what they hold and ends what they started.
        counts: what was counted besides time, by name with its unit.
    """

    watches: tuple[Stopwatch, ...]
    close: Callable[[], object] = nothing
    counts: tuple[tuple[str, float], ...] = ()


@dataclass
class SystemBench:
    """What a system probe builds on.

    Args:
        backend: of the runtime, opened.
        device_kind: `cpu`, `gpu` or `tpu`.
        probe: what is asked.
        prove: compares a kernel with the reference, as for kernel probes; raises WorkerError when it differs.
        kept: the primitives as an earlier probe of this worker opened them, or None.
    """

    backend: Any
    device_kind: str
    probe: Probe
    prove: Callable[[Probe], object]
    kept: Any = None

    @property
    def links(self) -> Any:
        """Return the framework's own transfers, collectives, compiling and allocation (`probes/backends/*_system.py`)."""
        if self.kept is None:
            name = _FRAMEWORK.get(self.probe.runtime)
            if name is None:
                known = ", ".join(_FRAMEWORK)
                raise WorkerError(f"got runtime {self.probe.runtime}; expected one of {known}; choose one of these")
            module = import_module(f"probes.backends.{name}_system")
            self.kept = module.open_links(self.backend, self.device_kind, self.probe.runtime)
        return self.kept

    @property
    def memory_limit_bytes(self) -> int | None:
        """Resident bytes that this worker is killed at, as its launcher said; None when it did not."""
        said = os.environ.get(MEMORY, "")
        return int(said) if said.isdigit() else None

    def kernel(self, name: str, sizes: dict[str, Any]) -> Program:
        """Return one copy of a kernel as a program, after its answer was compared with the reference."""
        module = kernel_modules()[name]
        asked = replace(
            self.probe, subject=name, family="kernel", sizes=tuple(sorted(sizes.items())), mode=module.MODE, optimizer="none"
        )
        self.prove(asked)
        return self.backend.block_program(Case(module, sizes, 1, asked.mode, "none", asked.dtype, asked.seed))


def watch(program: Program, **options: Any) -> SystemWatch:
    """Return a stopwatch of one call, its first call made."""
    made = SystemWatch(program, 1, **options)
    made.first_call()
    return made


def random_floats(count: int, seed: int) -> Any:
    """Draw `count` float32 values, uniform in [-1, 1): random, since constants flatter transfers and reductions."""
    import numpy as np

    return np.random.Generator(np.random.PCG64(seed)).random(count, dtype=np.float32) * np.float32(2) - np.float32(1)


def must_equal(got: Any, expected: Any, what: str) -> None:
    """Compare an answer with numpy's before it is timed.

    Raises:
        WorkerError: shapes differ, or a value by more than `TOLERANCE` of the largest.
    """
    import numpy as np

    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape:
        raise WorkerError(f"got {what} of shape {got.shape}; expected {expected.shape}; the framework moved something else")
    error = float(np.max(np.abs(got - expected), initial=0.0))
    if not error <= TOLERANCE * max(1.0, float(np.max(np.abs(expected), initial=0.0))):
        raise WorkerError(f"got {what} that differs by {error:.3g}; expected numpy's answer; the framework moved something else")
